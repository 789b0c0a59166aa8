"""
A table from the command line
=============================

A CSV file with numbers, texts and gaps; a model of it, predictions for new rows, and a C file, without Python. The
commands are the same in a terminal. Here a small function runs them and prints what they say.
"""

# %%
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

folder = Path(tempfile.mkdtemp())


def run(command):
    """Run a ``fewkern`` command in the folder and print its output."""
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    print(f"$ {command}\n{done.stdout}")


# %%
# The table: 500 bicycle trips. What takes a trip long? Some values are missing.
rng = np.random.default_rng(0)
n = 500
trips = pd.DataFrame(
    {
        "distance_km": rng.gamma(3, 1.5, n).round(2),
        "climb_m": rng.gamma(2, 30, n).round(),
        "bicycle": rng.choice(["city", "race", "electric"], n, p=[0.5, 0.2, 0.3]),
        "rain": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
    }
)
speed = trips["bicycle"].map({"city": 15.0, "race": 22.0, "electric": 21.0})
hill = np.where(trips["bicycle"] == "electric", 0.01, 0.05) * trips["climb_m"]
minutes = (
    60 * trips["distance_km"] / speed * np.where(trips["rain"] == "yes", 1.15, 1.0)
    + hill
)
trips["minutes"] = (minutes * rng.normal(1, 0.05, n)).round(1)
trips.loc[rng.choice(n, 40, replace=False), "climb_m"] = np.nan
trips[:400].to_csv(folder / "trips.csv", index=False)
trips[400:].drop(columns="minutes").to_csv(folder / "new.csv", index=False)
print(trips.head().to_string(index=False))

# %%
# Fit. The column to predict is named; everything else is found out.
run("fewkern fit trips.csv --target minutes --out trips.npz")

# %%
# Predict for rows that the model has not seen.
run("fewkern predict trips.npz new.csv --out predictions.csv")
predicted = pd.read_csv(folder / "predictions.csv").iloc[:, -1].to_numpy()
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.plot(trips["minutes"][400:], predicted, ".", color="#1f4e79")
ax.axline((0, 0), slope=1, color="black", lw=0.8, ls="--")
ax.set(
    xlabel="minutes, as measured", ylabel="minutes, as predicted", title="100 new trips"
)
plt.show()

# %%
# Take the model to a small computer on the handlebar.
run("fewkern export trips.npz trips.c")
print((folder / "trips.c").read_text()[:900])
