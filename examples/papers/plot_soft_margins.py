"""
One far class must not spoil the picture
========================================

Fisher's discriminant adds up squared distances. A class that is far away from all others then has the last word,
although it is the easiest one. Soft margins (the RSM paper) stop counting a pair once it is far enough apart.
"""

# %%
# Four classes in five columns: three close together, one far away.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from fewkern import GraphEmbedding, RecursiveSoftMargin

rng = np.random.default_rng(0)
centers = np.array(
    [[0, 0, 0, 0, 0], [3, 0, 0, 0, 0], [0, 3, 0, 0, 0], [0, 0, 20, 20, 0]], dtype=float
)


def draw(each):
    """Samples of the four classes."""
    labels = np.repeat(np.arange(4), each)
    return centers[labels] + rng.normal(size=(4 * each, 5)), labels


X, y = draw(60)
X_test, y_test = draw(500)

# %%
# Both look for two directions. Nearest neighbours on them say how well the classes are told apart.
fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), layout="constrained")
models = {
    "Fisher's discriminant, recursive": GraphEmbedding(
        graph="fisher", n_components=2, recursive=True
    ),
    "soft margins": RecursiveSoftMargin(
        graph="fisher", n_components=2, C=50, metric="scatter"
    ),
}
for ax, (name, reducer) in zip(axes, models.items()):
    pipe = make_pipeline(reducer, KNeighborsClassifier(15)).fit(X, y)
    T = reducer.transform(X_test)
    for c, color in enumerate(("#1f77b4", "#d95f02", "#1b9e77", "#7570b3")):
        ax.scatter(*T[y_test == c].T, s=4, color=color)
    ax.set(
        title=f"{name}\n{pipe.score(X_test, y_test):.1%} right",
        xlabel="component 1",
        ylabel="component 2",
    )
plt.show()

# %%
# The graph says which pairs should be close and which apart; ``"fisher"`` means same class and different classes.
# There are others in :mod:`fewkern.graphs`.
