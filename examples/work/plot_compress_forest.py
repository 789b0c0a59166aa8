"""
Your forest in 4 kB
===================

A random forest is easy to fit and hard to take along: hundreds of trees, most of a megabyte. :func:`~fewkern.compress`
takes its values at your samples and makes a few Gaussians that decide the same, wherever it can.
"""

# %%
# Three hundred trees that tell malignant from benign tumours.
import pickle
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from fewkern import compress, to_c

X, y = load_breast_cancer(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(
    X, y, test_size=0.4, stratify=y, random_state=0
)
forest = RandomForestClassifier(300, random_state=0).fit(X_train, y_train)
print(
    f"{len(pickle.dumps(forest)) / 1000:.0f} kB, {forest.score(X_new, y_new):.1%} right"
)

# %%
# A forest is a step function, which no short sum of Gaussians follows everywhere, so the decisions may differ on up to
# 5% of the samples of each class. ``agreement_`` is measured between the samples, where the forest has nothing
# memorised. The second line is what rows say that neither model has seen.
short = compress(forest, X_train, tolerance=0.05)
print(f"{short.n_vectors_} vectors; {short.agreement_}")
same = short.predict(X_new) == forest.predict(X_new)
print(
    f"new rows: {same.mean():.1%} equal decisions, {short.score(X_new, y_new):.1%} right"
)

# %%
# As one C file in single precision:
folder = Path(tempfile.mkdtemp())
code = to_c(short, folder / "forest.c", name="forest", dtype="float")
constants = int(re.search(r"Constants: (\d+) bytes", code)[1])
print(f"{constants} bytes of constants")
if shutil.which("cc"):
    subprocess.run(["cc", "-Os", "-c", "forest.c"], cwd=folder, check=True)
    size = ["size", "forest.o"]
    print(subprocess.run(size, cwd=folder, capture_output=True, text=True).stdout)

# %%
# Where do they differ? Only where the trees do not agree with each other either.
votes, ours = forest.predict_proba(X_new)[:, 1], short.predict_proba(X_new)[:, 1]
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.axhline(0.5, color="#888", lw=0.8)
ax.axvline(0.5, color="#888", lw=0.8)
ax.scatter(votes[same], ours[same], s=14, color="#b8c4ce", label="equal decision")
ax.scatter(votes[~same], ours[~same], s=22, color="#d95f02", label="another decision")
ax.set(xlabel="forest: probability of benign", ylabel="short model")
ax.legend(frameon=False, fontsize=9)
print(f"votes where decisions differ: {np.sort(votes[~same]).round(2)}")
plt.show()
