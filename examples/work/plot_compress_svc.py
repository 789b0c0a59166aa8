"""
Compress your SVC
=================

You have an ``SVC`` that is good, but every prediction asks hundreds of support vectors. :func:`~fewkern.compress` makes
a short model with the same decisions. It needs samples, and no labels.
"""

# %%
# Two classes of handwritten digits that are easily taken for each other: 3, 5, 8 and 9 against the rest.
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from fewkern import compress

X, digit = load_digits(return_X_y=True)
y = np.isin(digit, (3, 5, 8, 9))
X_train, X_test, y_train, y_test = train_test_split(
    X, y, stratify=digit, random_state=0
)
svc = SVC(C=10).fit(X_train, y_train)
wrong = 1 - svc.score(X_test, y_test)
print(f"SVC: {len(svc.support_)} support vectors, {wrong:.1%} wrong")

# %%
# Short models of several sizes. ``agreement_`` says on how many held-out samples the two decide the same.
sizes = [5, 20]
short = {}
for size in sizes:
    short[size] = compress(svc, X_train, n_vectors=size, tolerance=0.1)
    wrong = 1 - short[size].score(X_test, y_test)
    print(f"{size} vectors: {short[size].agreement_}; {wrong:.1%} wrong")

# %%
# Time for 450 answers: that of the SVC, and of a model of 20 vectors.
for name, model in (("SVC", svc), ("20 vectors", short[20])):
    start = time.perf_counter()
    for _ in range(20):
        model.predict(X_test)
    print(f"{name}: {(time.perf_counter() - start) / 20 * 1e3:.1f} ms")

# %%
# The vectors are no samples any more. They are what the decision needs:
fig, axes = plt.subplots(2, 10, figsize=(9, 2.2), layout="constrained")
for ax, vector in zip(axes.ravel(), short[20].vectors_):
    ax.imshow(vector.reshape(8, 8), cmap="gray_r")
    ax.set_axis_off()
plt.show()
