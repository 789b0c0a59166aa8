"""
Images in a few directions
==========================

The RSM and RSVM papers look for a few directions on which images of different people can be told apart by their nearest
neighbour. We do it with the handwritten digits that come with scikit-learn, or with faces, if the environment variable
``FEWKERN_DATA`` names a folder that has them (``faces/yale_32x32.npz``).
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM

faces = Path(os.environ.get("FEWKERN_DATA", "no folder"), "faces", "yale_32x32.npz")
if faces.is_file():
    with np.load(faces) as z:
        X, y, shape = z["X"].astype(float), z["y"], (32, 32)
else:
    X, y = load_digits(return_X_y=True)
    X, y, shape = X[:800], y[:800], (8, 8)
rng = np.random.default_rng(0)
rows = rng.permutation(len(y))
train, test = rows[: len(y) // 2], rows[len(y) // 2 :]
print(f"{len(np.unique(y))} classes, {X.shape[1]} pixels")
print(f"{len(train)} images to fit, {len(test)} to test")

# %%
# How many test images find a neighbour of their own class, with 1 to 9 directions?
dimensions = [1, 2, 3, 5, 9]
models = {
    "PCA": PCA(9),
    "LDA": LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    "GraphEmbedding, recursive": GraphEmbedding(n_components=9, recursive=True),
    "RecursiveSVM": RecursiveSVM(n_components=9),
    "RecursiveSoftMargin": RecursiveSoftMargin(n_components=9, metric="scatter"),
}
fig, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
directions = {}
for name, model in models.items():
    T, T_test = model.fit_transform(X[train], y[train]), model.transform(X[test])
    possible = [d for d in dimensions if d <= T.shape[1]]
    right = [
        KNeighborsClassifier(1).fit(T[:, :d], y[train]).score(T_test[:, :d], y[test])
        for d in possible
    ]
    ax.plot(possible, right, "o-", label=name)
    directions[name] = model
    print(f"{name}: {right[-1]:.1%} with {possible[-1]} directions")
ax.set(xlabel="number of directions", ylabel="right, nearest neighbour")
ax.legend(frameon=False)
plt.show()

# %%
# The first eight directions of the recursive SVM, as images.
fig, axes = plt.subplots(1, 8, figsize=(9, 1.4), layout="constrained")
for ax, direction in zip(axes, directions["RecursiveSVM"].components_):
    ax.imshow(direction.reshape(shape), cmap="RdBu")
    ax.set_axis_off()
plt.show()
