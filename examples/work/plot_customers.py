"""
From a messy customer table to a decision
=========================================

A shop wants to call customers who are about to leave. The export of its database is as exports are: a key, prices with
a currency, gaps, three spellings of "yes", a free text, dates. This story goes from the file to the list of customers
to call, and to what the model does not know.
"""

# %%
# The table: 1,500 customers. Those who pay much and have been there for a short time leave, and so do those who
# complained; but hardly anybody with a contract of two years.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewkern import TableModel

rng = np.random.default_rng(7)
n = 1500
price = rng.gamma(6, 8, n)
months = rng.exponential(24, n).round()
contract = rng.choice(["monthly", "1 year", "2 years"], n, p=[0.5, 0.3, 0.2])
complaints = rng.poisson(0.4, n)
risk = 0.15 * (price - 45) - 0.15 * (months - 18) + 3 * (complaints > 1)
risk = np.where(contract == "2 years", -4.0, risk)
leaves = rng.random(n) < 1 / (1 + np.exp(-risk))
spelling = rng.choice(3, n, p=[0.7, 0.2, 0.1])
yes, no = np.array([["Yes", "yes", "Y"], ["No", "no", "N"]])[:, spelling]
customers = pd.DataFrame(
    {
        "customer": [f"C-{k:05d}" for k in rng.permutation(n)],
        "price": [f"{value:,.2f} €" for value in price],
        "months": months,
        "contract": contract,
        "complaints": complaints,
        "joined": pd.Timestamp("2024-06-30") - pd.to_timedelta(30 * months, "D"),
        "remark": [f"called on day {k}, no answer" for k in rng.integers(0, 9999, n)],
        "left": np.where(leaves, yes, no),
    }
)
customers.loc[rng.choice(n, 150, replace=False), "months"] = np.nan
customers.loc[rng.choice(n, 60, replace=False), "price"] = "n/k"
old, new = customers[:1200], customers[1200:]
print(old.head(4).to_string(index=False))

# %%
# One line fits the model. The notes say what became of the columns; ``merge_spellings`` makes one class of "Yes", "yes"
# and "Y".
model = TableModel(merge_spellings=True).fit(old, "left")
print(*model.notes_, sep="\n")

# %%
# Is it any good? The summary compares it with the simplest answer and with a linear model, on customers that it has not
# seen. Here a linear model is nearly as good, and the verdict states it.
for name, text in model.summary():
    print(f"{name:22} {text}")

# %%
# The decision. A call costs 5 €, and a customer who is called in time and stays is worth 40 €; say that one call in
# three helps. Then a call pays from a probability of 5 / (40 / 3) = 0.375 on, not from one half.
warnings.filterwarnings("ignore", message=".*cells are not numbers")  # as noted above
probability = model.predict_proba(new)[:, list(model.classes_).index("Yes")]
truly = new["left"].str.lower().str.startswith("y").to_numpy()
limits = np.linspace(0.02, 0.98, 49)
gain = [np.sum(truly[probability > t] * 40 / 3 - 5) for t in limits]
call = probability > 0.375
called, everybody = (np.sum(part * 40 / 3 - 5) for part in (truly[call], truly))
print(f"{call.sum()} of 300 customers to call; {truly[call].sum()} of them leave")
print(f"gain {called:.0f} €; if everybody is called {everybody:.0f} €")
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(limits, gain, color="#1f4e79")
ax.axvline(0.375, color="#d95f02", lw=1)
ax.set(xlabel="call from this probability on", ylabel="gain, €", title="300 customers")
plt.show()

# %%
# What the model does not know, first: the customers between the classes. A prediction set holds the truth in 9 of 10
# cases; where it has both classes, the model cannot decide.
sets = model.predict_set(new, coverage=0.9)
print(f"{np.mean(sets.sum(axis=1) > 1):.0%} of the new customers could go either way")

# %%
# Second: customers who are like nobody in the table. The model answers for them as well, with a warning, and the answer
# means nothing.
strange = new[:1].assign(price="4,900.00 €", complaints=25, months=400)
limit = model.novelty_threshold(false_alarms=0.01)
for name, rows in {"new customers": new, "a customer from nowhere": strange}.items():
    print(f"{name}: {np.mean(model.novelty(rows) > limit):.0%} unlike those of the fit")

# %%
# Third, what no figure shows: the table is of last year's customers, at last year's prices, and the calls themselves
# change who leaves. Call some customers at random as well, and fit again with what they did.
