"""
A noisy function from six samples
=================================

The sinc function with strong noise, the linear spline kernel, and the greedy rule of the FVS paper (its Fig. 3).
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from fewkern import FeatureVectorSelector, KernelRegressor
from fewkern.datasets import make_sinc
from fewkern.kernels import LinearSpline

X, y = make_sinc(100, noise=0.5, random_state=0)
greedy = FeatureVectorSelector(kernel=LinearSpline(), max_vectors=6, rule="greedy")
paper = make_pipeline(greedy, LinearRegression()).fit(X, y)
automatic = KernelRegressor().fit(X, y)

# %%
grid = np.linspace(-3, 3, 300)[:, None]
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.plot(X[:, 0], y, ".", color="#b8c4ce", label="samples")
ax.plot(grid, np.sinc(grid), "k--", lw=1, label="true function")
ax.plot(grid, paper.predict(grid), label="spline kernel, 6 vectors")
ax.plot(
    grid,
    automatic.predict(grid),
    label=f"KernelRegressor: {automatic.n_vectors_} vectors",
)
kept = greedy.indices_
ax.plot(X[kept, 0], y[kept], "o", mfc="none", mec="k", ms=9)
ax.legend(frameon=False)
