"""
A density of 100,000 points that answers at once
================================================

``KernelDensity`` puts a kernel on every point. It is fitted in no time, and then every answer takes 100,000
exponentials. :class:`~fewkern.ForwardDensity` describes the same points by a few kernels.
"""

# %%
# 100,000 points in six dimensions, from three normal laws. Their true density is known.
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KernelDensity

from fewkern import ForwardDensity
from fewkern.datasets import make_three_gaussians, three_gaussians_density

# The last steps of the fit gain next to nothing, and end at their limit.
warnings.simplefilter("ignore", ConvergenceWarning)
X = make_three_gaussians(100_000, random_state=0)
start = time.perf_counter()
few = ForwardDensity(cv=None, max_vectors=8).fit(X)
fitted = time.perf_counter() - start
full = KernelDensity(bandwidth=0.3).fit(X)
print(f"{few.n_vectors_} kernels in place of {len(X):,}, fitted in {fitted:.1f} s")

# %%
# Time for 100 answers, and how far they are from the true density.
new = make_three_gaussians(100, random_state=1)
seconds = {}
for name, model in (("ForwardDensity", few), ("KernelDensity", full)):
    start = time.perf_counter()
    found = np.exp(model.score_samples(new))
    seconds[name] = time.perf_counter() - start
    error = np.mean(np.abs(found - three_gaussians_density(new)))
    print(f"{name}: {1e3 * seconds[name]:.2f} ms, mean absolute error {error:.1e}")
ratio = seconds["KernelDensity"] / seconds["ForwardDensity"]
print(f"{ratio:,.0f} times faster")

# %%
# The density of two of the six columns, whatever the others are, is a mixture of the same kernels.
two = few.expansion_.marginal([0, 1])
low, high = X[:, :2].min(axis=0), X[:, :2].max(axis=0)
xx, yy = np.meshgrid(*(np.linspace(a, b, 120) for a, b in zip(low, high)))
values = np.exp(two.log_density(np.column_stack([xx.ravel(), yy.ravel()])))
fig, axes = plt.subplots(
    1, 2, figsize=(8.4, 4), layout="constrained", sharex=True, sharey=True
)
axes[0].scatter(*X[:4000, :2].T, s=2, color="#8a97a3", lw=0)
axes[0].set_title("4,000 of the points, columns 1 and 2")
axes[1].contourf(xx, yy, values.reshape(xx.shape), levels=14, cmap="Oranges")
axes[1].scatter(*two.vectors.T, s=14, color="black")
axes[1].set_title(f"density of {few.n_vectors_} kernels, and their centers")
plt.show()
