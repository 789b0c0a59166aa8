"""
Better landmarks for a linear model
===================================

``Nystroem`` turns samples into features by comparing them with some of the samples, drawn blindly.
:class:`~fewkern.FeatureVectorSelector` does the same with samples that explain most of the others, so that fewer are
enough. Any linear model may follow.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fewkern import FeatureVectorSelector
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian

X, y = make_banana(2000, random_state=0)
X_test, y_test = make_banana(5000, random_state=1)
sizes = [3, 5, 8, 12, 20, 40]

# %%
# The same kernel, the same linear model, ten seeds each.
right = {"Nystroem": [], "FeatureVectorSelector": []}
for m in sizes:
    draws = {"Nystroem": [], "FeatureVectorSelector": []}
    for seed in range(10):
        for name, features in (
            ("Nystroem", Nystroem(gamma=0.5, n_components=m, random_state=seed)),
            (
                "FeatureVectorSelector",
                FeatureVectorSelector(
                    kernel=Gaussian(1.0), max_vectors=m, random_state=seed
                ),
            ),
        ):
            pipe = make_pipeline(
                features, LogisticRegression(C=100, max_iter=1000)
            ).fit(X, y)
            draws[name].append(100 * (1 - pipe.score(X_test, y_test)))
    for name, found in draws.items():
        right[name].append((np.mean(found), np.std(found)))

# %%
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, found), color in zip(right.items(), ("#1f4e79", "#d95f02")):
    mean, spread = np.array(found).T
    ax.errorbar(sizes, mean, spread, marker="o", capsize=3, color=color, label=name)
ax.set(xlabel="number of vectors", ylabel="test error, %", xscale="log")
ax.set_xticks(sizes, [str(m) for m in sizes])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()

# %%
# Bars are the spread over the seeds. With few vectors it matters most which they are.
