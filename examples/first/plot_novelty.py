"""
Samples that the model has never seen the like of
=================================================

A classifier answers for any sample, even for one that is like nothing in its training data. ``novelty`` says which
these are: it is the share of a sample that the training samples which the model keeps for this cannot explain.
"""

# %%
# The classifier learns the digits from 0 to 7. Then it is shown an 8 or a 9, which it cannot know.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from fewkern import KernelClassifier

X, y = load_digits(return_X_y=True)
known = y < 8
X_train, X_test, y_train, y_test = train_test_split(
    X[known], y[known], stratify=y[known], random_state=0
)
model = KernelClassifier(n_vectors=100).fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} of new digits from 0 to 7 are right")

# %%
# The threshold is that of a false-alarm rate: one in twenty ordinary samples may be above it.
limit = model.novelty_threshold(false_alarms=0.05)
ordinary, strange = model.novelty(X_test), model.novelty(X[~known])
print(f"flagged: {np.mean(ordinary > limit):.1%} of the known digits")
print(f"flagged: {np.mean(strange > limit):.1%} of the unknown ones")
truth = np.repeat([0, 1], [len(ordinary), len(strange)])
area = roc_auc_score(truth, np.concatenate([ordinary, strange]))
print(f"an unknown digit is stranger than a known one in {area:.1%} of all pairs")

# %%
fig, ax = plt.subplots(figsize=(6.8, 3.4), layout="constrained")
bins = np.linspace(0, max(ordinary.max(), strange.max()), 50)
ax.hist(ordinary, bins, color="#1f77b4", alpha=0.7, label="known digits, 0 to 7")
ax.hist(strange, bins, color="#d95f02", alpha=0.6, label="unknown digits, 8 and 9")
ax.axvline(limit, color="black", lw=1, label="limit for 5% false alarms")
ax.set(xlabel="novelty", ylabel="samples")
ax.legend(frameon=False)
plt.show()

# %%
# Noise instead of a digit is found at once.
noise = np.random.default_rng(0).uniform(0, 16, size=(100, 64))
print(f"flagged: {np.mean(model.novelty(noise) > limit):.1%} of images of noise")
