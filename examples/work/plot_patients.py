"""
Repeated measurements of patients
=================================

Sixty patients were measured ten times each. Rows of one patient resemble each other, so that a model can recognise the
patient instead of the disease. Its error then looks small, and is large for the next patient who comes in. ``groups``
holds whole patients out.
"""

# %%
# The table: each patient has a level of their own in six blood values, and only the first two have to do with the
# disease. Some cells are missing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewkern import TableModel

rng = np.random.default_rng(3)


def hospital(patients, first=0):
    """Ten rows for every patient."""
    level = rng.normal(size=(patients, 6))
    ill = level[:, 0] + level[:, 1] + rng.normal(size=patients) > 0
    rows = np.repeat(np.arange(patients), 10)
    values = (level[rows] + 0.2 * rng.normal(size=(len(rows), 6))).round(2)
    table = pd.DataFrame(values, columns=[f"blood_{k}" for k in range(1, 7)])
    table.insert(0, "patient", [f"P{first + k:03d}" for k in rows])
    table["ill"] = np.where(ill[rows], "yes", "no")
    return table.mask(rng.random(table.shape) < [0] + 6 * [0.05] + [0])


table, later = hospital(60), hospital(300, first=500)
print(table[8:12].to_string(index=False))

# %%
# Without groups. The column of the patients' names is left out, and still every row that is held out has nine brothers
# among the rows of the fit.
alone = TableModel(drop=["patient"]).fit(table, "ill")
print(dict(alone.summary())["held-out error"])

# %%
# With groups, rows of one patient are held out together. The name of the group is no feature. The error is now that of
# patients whom the model has never seen, and its interval is wide: there are sixty patients, not six hundred.
grouped = TableModel().fit(table, "ill", groups="patient")
print(dict(grouped.summary())["held-out error"])

# %%
# Who is right? Three hundred later patients tell. The second figure is an estimate from a dozen patients; the true error
# lies within its interval. The first one is wrong by far more than its interval admits.
names = ["rows held out", "patients held out"]
stated, true = [], []
for model in (alone, grouped):
    stated.append(model.judgement_.value)
    true.append(1 - model.score(later))
for name, said, found in zip(names, stated, true):
    print(f"{name}: error stated {said:.0%}, on new patients {found:.0%}")
fig, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ax.bar(np.arange(2) - 0.2, stated, width=0.38, color="#d95f02", label="stated")
ax.bar(np.arange(2) + 0.2, true, width=0.38, color="#1f4e79", label="new patients")
ax.set_xticks(range(2), names)
ax.set_ylabel("error")
ax.legend(frameon=False)
plt.show()

# %%
# Groups also make the choice of the model honest: its size, and how smooth it is, are those that serve new patients.
# More rows of the same sixty patients would not help much. More patients would.
print(
    f"vectors: {alone.estimator_.n_vectors_} without groups, {grouped.estimator_.n_vectors_} with groups"
)
