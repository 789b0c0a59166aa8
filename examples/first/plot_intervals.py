"""
A prediction with an interval
=============================

"About 14" is a different answer from "between 13 and 15". ``predict_interval`` gives both ends. It is fitted to samples
that were held out during the fit, so it needs no second model and no test set. ``predict_set`` does the same for
classes: it names all that a sample may belong to.
"""

# %%
# A wave whose noise grows from left to right. The intervals should hold nine of ten new values.
import matplotlib.pyplot as plt
import numpy as np

from fewkern import KernelClassifier, KernelRegressor
from fewkern.datasets import make_waveform

rng = np.random.default_rng(0)


def draw(n):
    """Samples of the wave."""
    x = rng.uniform(-3, 3, n)
    return x[:, None], np.sinc(x) + (0.05 + 0.08 * (x + 3)) * rng.normal(size=n)


X, y = draw(400)
X_new, y_new = draw(2000)
model = KernelRegressor().fit(X, y)
lower, upper = model.predict_interval(X_new, coverage=0.9).T
print(
    f"{np.mean((lower <= y_new) & (y_new <= upper)):.1%} of 2,000 new values are inside"
)

# %%
grid = np.linspace(-3, 3, 300)[:, None]
low, high = model.predict_interval(grid, coverage=0.9).T
fig, ax = plt.subplots(figsize=(6.8, 3.8), layout="constrained")
ax.plot(X_new[:600, 0], y_new[:600], ".", ms=3, color="#8a97a3", label="new samples")
ax.plot(grid[:, 0], model.predict(grid), color="#d95f02", lw=2, label="prediction")
ax.fill_between(grid[:, 0], low, high, color="#d95f02", alpha=0.2, label="90% interval")
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# The promise is one about all new samples together. Where the noise is larger in some places than in others the
# intervals follow it, as far as a model of the errors can see it:
for name, part in (("left half", X_new[:, 0] < 0), ("right half", X_new[:, 0] >= 0)):
    inside = (lower <= y_new) & (y_new <= upper)
    width = (upper - lower)[part].mean()
    print(f"{name}: {inside[part].mean():.1%} inside, mean width {width:.2f}")

# %%
# Classes: which ones can it be? Most samples get one answer, those between the classes get two.
X, y = make_waveform(600, random_state=0)
X_new, y_new = make_waveform(4000, random_state=1)
classifier = KernelClassifier().fit(X, y)
sets = classifier.predict_set(X_new, coverage=0.95)
own = sets[np.arange(len(y_new)), np.searchsorted(classifier.classes_, y_new)]
print(f"the true class is named for {own.mean():.1%} of the samples (asked for: 95%)")
print(f"{np.mean(sets.sum(axis=1) == 1):.1%} of the answers are a single class")
print(f"a single answer without sets is right for {classifier.score(X_new, y_new):.1%}")
