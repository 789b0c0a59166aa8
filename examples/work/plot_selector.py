"""
Better landmarks for a linear model
===================================

``Nystroem`` turns samples into features by comparing them with some of the samples, drawn blindly. If some groups are
rare, a blind draw misses them. :class:`~fewkern.FeatureVectorSelector` chooses samples that are not yet explained by
the others, so that rare groups get their landmark too. Any linear model may follow.
"""

# %%
# 24 groups in the plane, three classes. The largest group has a third of the samples, the smallest one in a hundred.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fewkern import FeatureVectorSelector
from fewkern.kernels import Gaussian

rng = np.random.default_rng(0)
centers = rng.uniform(-10, 10, size=(24, 2))
share = 1 / np.arange(1, 25) ** 1.2
share /= share.sum()


def draw(n):
    """Samples and their classes."""
    group = rng.choice(24, n, p=share)
    return centers[group] + 0.5 * rng.normal(size=(n, 2)), group % 3


X, y = draw(3000)
X_test, y_test = draw(6000)
print(f"shares of the groups: {share[0]:.0%} to {share[-1]:.1%}")

# %%
# The same kernel, the same linear model, three seeds each.
sizes = [10, 20, 30, 50, 80]
chosen = {
    "Nystroem": lambda m, seed: Nystroem(gamma=0.5, n_components=m, random_state=seed),
    "FeatureVectorSelector": lambda m, seed: FeatureVectorSelector(
        kernel=Gaussian(1.0), max_vectors=m, random_state=seed
    ),
}
error = {name: np.zeros((len(sizes), 3)) for name in chosen}
for name, landmarks in chosen.items():
    for i, m in enumerate(sizes):
        for seed in range(3):
            linear = LogisticRegression(C=100, max_iter=2000)
            pipe = make_pipeline(landmarks(m, seed), linear).fit(X, y)
            error[name][i, seed] = 100 * (1 - pipe.score(X_test, y_test))

# %%
fig, axes = plt.subplots(1, 2, figsize=(9.4, 4), layout="constrained")
axes[0].scatter(*X.T, s=3, c=np.array(["#1f77b4", "#d95f02", "#1b9e77"])[y], lw=0)
kept = FeatureVectorSelector(kernel=Gaussian(1.0), max_vectors=20).fit(X).vectors_
axes[0].scatter(*kept.T, s=60, facecolors="none", edgecolors="black", linewidths=1.4)
axes[0].set_title("the first 20 landmarks")
for (name, found), color in zip(error.items(), ("#1f4e79", "#d95f02")):
    axes[1].errorbar(
        sizes,
        found.mean(axis=1),
        found.std(axis=1),
        marker="o",
        capsize=3,
        color=color,
        label=name,
    )
axes[1].set(xlabel="number of landmarks", ylabel="test error, %", ylim=(0, None))
axes[1].legend(frameon=False)
plt.show()

# %%
# Bars are the spread over the seeds. Where all groups are equally large, the two are close to each other.
