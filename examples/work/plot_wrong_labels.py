"""
Find the labels that are wrong
==============================

Somebody typed the labels of 1,797 pictures of digits, and one in twenty is wrong. Which? :func:`~fewkern.suspects` asks
of every picture what a model that was fitted without it would say, and puts the least credible labels first. No model is
fitted twice: with samples as vectors, predictions for rows left out are exact.
"""

# %%
# The digits of scikit-learn, with 90 labels changed at random.
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from fewkern import suspects

digits = load_digits()
rng = np.random.default_rng(0)
wrong = rng.choice(len(digits.target), 90, replace=False)
labels = digits.target.copy()
labels[wrong] = (labels[wrong] + rng.integers(1, 10, len(wrong))) % 10

start = time.perf_counter()
found = suspects(digits.data, labels)
print(f"{len(labels):,} rows in {time.perf_counter() - start:.1f} s")

# %%
# Of the 90 rows that come first, most are wrong. The score is the probability that the label is another one.
first = found.rows[:90]
planted = np.isin(np.arange(len(labels)), wrong)
print(f"wrong among the first 90 rows: {planted[first].sum()}")
print(
    f"right label proposed for {np.mean(found.expected[wrong] == digits.target[wrong]):.0%} of the wrong rows"
)

# %%
# Whoever corrects labels looks at pictures in this order, and can stop when the labels are right.
fig = plt.figure(figsize=(9, 4.2), layout="constrained")
pictures, curve = fig.subfigures(1, 2, width_ratios=[1.3, 1])
for ax, row in zip(pictures.subplots(3, 5).ravel(), found.rows):
    ax.imshow(digits.images[row], cmap="Greys")
    ax.set_title(f"label {labels[row]}, is it {found.expected[row]}?", fontsize=7)
    ax.set_axis_off()
ax = curve.subplots()
ax.plot(
    np.arange(1, 301),
    np.cumsum(planted[found.rows[:300]]),
    label="least credible first",
)
ax.plot([0, 300], [0, 300 * planted.mean()], "--", color="grey", label="in any order")
ax.axhline(90, color="black", lw=0.5)
ax.set(xlabel="rows looked at", ylabel="wrong labels found")
ax.legend(loc="center right")
plt.show()

# %%
# On the command line, ``fewkern check TABLE --target COLUMN`` does the same for a table as it comes, and looks for
# copies, columns that give the answer away, and rows that belong together.
