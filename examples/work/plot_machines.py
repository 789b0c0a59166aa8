"""
Which machine to inspect? One failure in thirty
===============================================

Failures are rare, so a model that never predicts one is right in 97 of 100 cases, and useless. What a workshop needs is
an order: which ten machines to look at today.
"""

# %%
# The log: 4,000 machine days, about one in thirty before a failure. Failures come with heat *and* vibration together.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewkern import TableModel

rng = np.random.default_rng(5)
n = 4000
heat, shake = rng.normal(60, 8, n), rng.gamma(3, 1, n)
load = rng.uniform(0, 100, n)
odds = np.exp(
    -7 + 0.45 * np.maximum(heat - 66, 0) + 1.5 * np.maximum(shake - 3, 0) * (heat > 60)
)
fails = rng.random(n) < odds / (1 + odds)
log = pd.DataFrame(
    {
        "machine": rng.choice([f"M{k:02d}" for k in range(40)], n),
        "temperature": [
            f"{value:.1f}" if k % 50 else "sensor off" for k, value in enumerate(heat)
        ],
        "vibration": shake.round(2),
        "load": [f"{value:.0f}%" for value in load],
        "failure": np.where(fails, "TRUE", "FALSE"),
    }
)
past, today = log[:2500], log[2500:]
print(past["failure"].value_counts().to_string())

# %%
# The summary of the default says that no error is saved, that the order is good all the same (AUC), and what to try.
plain = TableModel().fit(past, "failure")
for name, text in plain.summary():
    print(f"{name:22} {text}")
print(*plain.notes_, sep="\n")

# %%
# ``class_weight="balanced"`` makes every class count the same: more failures are found, at the price of false alarms.
model = TableModel(class_weight="balanced").fit(past, "failure")
for name, text in model.summary():
    print(f"{name:22} {text}")

# %%
# The decision: the workshop can look at 100 machine days of these 1,500. It takes those of the highest probability. For
# that the two models are alike: weights move the threshold, not the order.
truth = (today["failure"] == "TRUE").to_numpy()
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, fitted in {"default": plain, "balanced": model}.items():
    risk = np.asarray(fitted.predict_proba(today))[
        :, list(map(str, fitted.classes_)).index("TRUE")
    ]
    found = np.cumsum(truth[np.argsort(-risk)])
    print(f"{name}: {found[99]} of {truth.sum()} failures among the first 100")
    ax.plot(np.arange(1, len(found) + 1), found, label=name)
ax.plot(
    [0, len(truth)], [0, truth.sum()], color="grey", lw=1, ls=":", label="by chance"
)
ax.set(xlabel="machine days inspected", ylabel="failures found", xlim=(0, 400))
ax.legend()
plt.show()

# %%
# What the model does not know: failures that never happened in the log, and whether an inspection prevents one. The
# rows of one machine resemble each other; to predict for a *new* machine, hold out whole machines:
# ``TableModel().fit(past, "failure", groups="machine")``.
