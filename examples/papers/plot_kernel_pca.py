"""
Kernel PCA from a few samples
=============================

:class:`~fewkern.FeatureVectorPCA` computes the leading components of kernel PCA from thirty samples, and learns the
inverse transform.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import KernelPCA

from fewkern import FeatureVectorPCA
from fewkern.datasets import make_rings
from fewkern.kernels import Gaussian

X, y = make_rings(600, radii=(1.0, 0.4), noise=0.08, random_state=0)
few = FeatureVectorPCA(
    n_components=6, kernel=Gaussian(0.5), max_vectors=30, fit_inverse_transform=True
).fit(X)
full = KernelPCA(6, kernel="rbf", gamma=1 / (2 * 0.5**2)).fit(X)
print("eigenvalues, 30 vectors:", few.eigenvalues_.round(1))
print("eigenvalues, all 600:   ", full.eigenvalues_.round(1))

# %%
T, back = few.transform(X), few.inverse_transform(few.transform(X))
fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
for ax, Z, title in zip(
    axes, (X, T[:, [0, 2]], back), ("samples", "components 1 and 3", "and back")
):
    ax.scatter(*Z.T, c=np.where(y == 0, "#1f77b4", "#d95f02"), s=6)
    ax.set_title(title)
axes[0].scatter(*few.basis_.vectors.T, s=50, facecolors="none", edgecolors="k")
