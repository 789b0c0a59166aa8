"""
Probabilities that mean what they say
=====================================

If a model says "90%" a thousand times, it should be right nine hundred times.
:class:`~fewkern.KernelClassifier` fits its probabilities to samples that were held out. We check them on new
samples, beside those of gradient boosting.
"""

# %%
# Three kinds of waves with noise, 600 samples to fit and 6,000 to check.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from fewkern import KernelClassifier
from fewkern.datasets import make_waveform

X, y = make_waveform(600, random_state=0)
X_test, y_test = make_waveform(6000, random_state=1)
models = {
    "KernelClassifier": KernelClassifier(),
    "gradient boosting": HistGradientBoostingClassifier(random_state=0),
}

# %%
# We sort the predictions by how sure they are, into ten groups of the same size, and count in each how many are right.
fig, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
ax.plot([0.4, 1], [0.4, 1], "--", color="black", lw=1, label="perfect")
for (name, model), color in zip(models.items(), ("#d95f02", "#1f4e79")):
    P = model.fit(X, y).predict_proba(X_test)
    sure, right = P.max(axis=1), model.classes_[P.argmax(axis=1)] == y_test
    groups = np.array_split(np.argsort(sure), 10)
    ax.plot(
        [sure[g].mean() for g in groups],
        [right[g].mean() for g in groups],
        "o-",
        color=color,
        label=name,
    )
    print(f"{name}: {1 - right.mean():.1%} wrong, log loss {log_loss(y_test, P):.3f}")
ax.set(xlabel="how sure the model says it is", ylabel="how often it is right")
ax.legend(frameon=False)
plt.show()

# %%
# Points below the dashed line are promises that were not kept.
