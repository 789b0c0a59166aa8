"""
What is a fair rent? Numbers with a decimal comma, a totals row, and an interval
================================================================================

A tenants' office has a list of rents, typed by several people: "1.675,84 €", a line of totals at the end, two rents
with a slipped decimal point. It wants to tell a tenant whether a rent is unusual, which is a question about an
interval, not about a number.
"""

# %%
# The table: 900 flats. The price of a square metre falls with the size and rises towards the centre.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewkern import TableModel

rng = np.random.default_rng(3)
n = 900
size, distance = rng.gamma(8, 9, n) + 15, rng.gamma(2, 2, n)
year = rng.integers(1900, 2024, n)
rent = size * (9 + 6 * np.exp(-distance / 3)) * (1 + 0.3 * (year > 2010)) + 60
rent *= np.exp(0.12 * rng.normal(size=n))
typed = [f"{value:,.2f} €".translate(str.maketrans(",.", ".,")) for value in rent]
flats = pd.DataFrame(
    {"size": size.round(), "km": distance.round(1), "year": year, "rent": typed}
)
asked, flats = flats[-100:], flats[:-100].copy()
flats.loc[[40, 300], "rent"] = ["98.765,00 €", "112.300,00 €"]
total = pd.DataFrame(
    {"size": ["Summe"], "km": [""], "year": [""], "rent": ["1.034.000,00 €"]}
)
flats = pd.concat([flats.astype(object), total], ignore_index=True)
print(flats.tail(3).to_string(index=False))

# %%
# The notes name the line of totals, the decimal comma, and the two rents that are far from all others, by row. An
# office can look these two up; the model does not guess.
model = TableModel().fit(flats, "rent")
print(*model.notes_, sep="\n")

# %%
# With the two lines corrected (here: left out), the verdict.
model = TableModel().fit(flats.drop(index=[40, 300]), "rent")
for name, text in model.summary():
    print(f"{name:22} {text}")

# %%
# A rent is unusual if it lies above the interval that holds nine of ten rents of such flats.
low, high = np.asarray(model.predict_interval(asked, coverage=0.9)).T
paid = rent[-100:]
above = paid > high
print(
    f"{above.sum()} of 100 rents are above their interval, {np.sum(paid < low)} below"
)

order = np.argsort(low + high)
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.vlines(np.arange(100), low[order], high[order], color="#1f4e79", alpha=0.4)
ax.scatter(
    np.arange(100), paid[order], s=9, c=np.where(above[order], "#d95f02", "#1f4e79")
)
ax.set(
    xlabel="flats, by predicted rent",
    ylabel="rent, €",
    title="Rents beside intervals of 90%",
)
plt.show()

# %%
# What the model does not know: whether a flat has a balcony, mould, or a view. A rent above its interval is a reason to
# look, not a verdict. And a flat unlike all others gets an interval, too; ask for its novelty first.
