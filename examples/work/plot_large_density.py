"""
A density of 100,000 points that answers at once
================================================

``KernelDensity`` puts a kernel on every point. It is fitted in no time, and then every answer takes 100,000
exponentials. :class:`~fewkern.ForwardDensity` describes the same points by a few kernels.
"""

# %%
# 100,000 points from a normal and a Laplace law, whose density is known.
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KernelDensity

from fewkern import ForwardDensity
from fewkern.datasets import gaussian_laplacian_density, make_gaussian_laplacian

X = make_gaussian_laplacian(100_000, random_state=0)
start = time.perf_counter()
few = ForwardDensity(cv=None).fit(X)
fitted = time.perf_counter() - start
full = KernelDensity(bandwidth=0.3).fit(X)
print(f"{few.n_vectors_} kernels in place of {len(X):,}, fitted in {fitted:.1f} s")

# %%
# Time for 200 answers, and how far they are from the true density.
new = make_gaussian_laplacian(200, random_state=1)
seconds = {}
for name, model in (("ForwardDensity", few), ("KernelDensity", full)):
    start = time.perf_counter()
    found = np.exp(model.score_samples(new))
    seconds[name] = time.perf_counter() - start
    error = np.mean(np.abs(found - gaussian_laplacian_density(new)))
    print(f"{name}: {1e3 * seconds[name]:.2f} ms, mean absolute error {error:.1e}")
print(f"{seconds['KernelDensity'] / seconds['ForwardDensity']:,.0f} times faster")

# %%
fig, axes = plt.subplots(
    1, 2, figsize=(8.4, 4), layout="constrained", sharex=True, sharey=True
)
grid = np.linspace(-9, 7, 120)
xx, yy = np.meshgrid(grid, grid)
axes[0].scatter(*X[:4000].T, s=2, color="#8a97a3", lw=0)
axes[0].set_title("4,000 of the points")
axes[1].contourf(
    xx,
    yy,
    few.pdf(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape),
    levels=14,
    cmap="Oranges",
)
axes[1].scatter(*few.vectors_.T, s=14, color="black")
axes[1].set_title(f"density of {few.n_vectors_} kernels, and their centres")
axes[0].set(xlim=(-9, 7), ylim=(-9, 7))
plt.show()
