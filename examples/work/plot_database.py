"""
A model where the offers are: in the database, and on the page
==============================================================

A site lists used cars. Its offers are in a database, and its pages run in browsers; neither has Python. A model of few
vectors is short enough to be one SQL expression, and one JavaScript module.
"""

# %%
# Offers with a text and with gaps. One in twenty is far too cheap: often a fraud.
import json
import math
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewkern import TableModel, to_js, to_sql

rng = np.random.default_rng(0)
n = 1200
cars = pd.DataFrame(
    {
        "age": rng.integers(0, 15, n).astype(float),
        "km": rng.gamma(4, 30, n).round(),
        "fuel": rng.choice(["petrol", "diesel", "electric"], n),
    }
)
new_price = cars["fuel"].map({"petrol": 24, "diesel": 27, "electric": 36})
worth = new_price * np.exp(-0.12 * cars["age"] - 0.002 * cars["km"])
cars["price"] = (worth * np.exp(0.08 * rng.standard_normal(n))).round(2)
cars.loc[::9, "km"] = np.nan
known, offers = cars[:800], cars[800:].reset_index(drop=True)
offers.loc[::20, "price"] *= 0.5
model = TableModel().fit(known, "price")
print(f"{model.estimator_.n_vectors_} vectors, R² {model.score(known):.2f}")

# %%
# In the database the expression stands where a column can stand. No row leaves it.
database = sqlite3.connect(":memory:")
database.create_function("exp", 1, math.exp)  # where SQLite has none
offers.to_sql("offers", database, index_label="id")
expected = to_sql(model)
print(f"{len(expected):,} characters of SQL")
query = f"SELECT id, price, {expected} AS expected FROM offers"
found = pd.read_sql(query, database)
gap = np.abs(found["expected"] - model.predict(offers)).max()
print(f"largest difference to Python: {gap:.0e}")
cheap = pd.read_sql(f"SELECT id FROM ({query}) WHERE price < 0.7 * expected", database)
print(f"{len(cheap)} offers are 30% below what the model expects")

# %%
# On the page, the same model proposes a price while the form is filled in.
folder = Path(tempfile.mkdtemp())
to_js(model, folder / "price.mjs")
form = {"age": 3, "km": None, "fuel": "diesel"}
page = f'import {{ predict }} from "./price.mjs"; console.log(predict({json.dumps(form)})[0]);'
(folder / "page.mjs").write_text(page)
if shutil.which("node"):
    done = subprocess.run(
        ["node", "page.mjs"], cwd=folder, check=True, capture_output=True
    )
    print(f"JavaScript: {float(done.stdout):.3f}")
print(f"Python:     {model.predict(pd.DataFrame([form]))[0]:.3f}")

# %%
flagged = found["id"].isin(cheap["id"])
fig, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
for rows, color, name in (
    (~flagged, "#8a97a3", "offers"),
    (flagged, "#d95f02", "30% below"),
):
    ax.plot(found["expected"][rows], found["price"][rows], ".", color=color, label=name)
top = found["expected"].max()
ax.plot([0, top], [0, top], color="#1f4e79", lw=1, label="as expected")
ax.set(xlabel="expected by the SQL expression", ylabel="price, in thousands")
ax.legend(frameon=False)
plt.show()
