"""
A density from a few kernels
============================

:class:`~fewkern.ForwardDensity` adds one kernel at a time, each with its own bandwidth, and chooses their number by the
likelihood of samples that were left out. The data are the first example of the FCR paper: 500 samples from a normal and
a Laplace law.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fewkern import ForwardDensity, ParzenDensity
from fewkern.datasets import gaussian_laplacian_density, make_gaussian_laplacian
from fewkern.plotting import DensityDisplay

X, X_test = (
    make_gaussian_laplacian(500, random_state=3),
    make_gaussian_laplacian(10_000, random_state=4),
)
few, all_samples = ForwardDensity().fit(X), ParzenDensity().fit(X)
for name, model in (("Parzen", all_samples), ("forward", few)):
    error = np.mean(np.abs(model.pdf(X_test) - gaussian_laplacian_density(X_test)))
    level = model.score(X_test) / len(X_test)
    print(f"{name}: {model.n_vectors_} kernels, L1 error {error:.2e}, ", end="")
    print(f"mean log density {level:.3f}")
print(f"distance between the two: {few.l2_distance(all_samples):.3f}")

# %%
# Ellipses show one standard deviation of each kernel, dots its center; the area of a dot is proportional to the weight.
DensityDisplay.from_estimator(few, X)

# %%
# One feature: the kernels and their sum.
DensityDisplay.from_estimator(ForwardDensity().fit(X[:, :1]), X[:, :1])

# %%
# New samples from the density.
fig, axes = plt.subplots(
    1, 2, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained"
)
for ax, Z, title in zip(
    axes, (X, few.sample(500, random_state=0)), ("samples", "drawn from the density")
):
    ax.scatter(*Z.T, s=6)
    ax.set_title(title)
plt.show()
