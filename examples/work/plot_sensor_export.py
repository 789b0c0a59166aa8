"""
From a spreadsheet to a controller
==================================

A laboratory has 400 measurements in a spreadsheet, with a title above the header. A controller with 64 kB of memory
is to compute the quantity that the laboratory measures. This story reads the file, checks whether the model may be
trusted, writes it as C, and compares the two.
"""

# %%
# The file, as it was exported: a title, an empty line, then the header; semicolons and decimal commas.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fewkern import TableModel, to_c
from fewkern.tables.reading import read_table

rng = np.random.default_rng(11)
n = 400
pressure, heat = rng.uniform(1, 9, n), rng.normal(40, 12, n)
flow = np.sqrt(pressure) * (2 + np.sin(heat / 12)) + 0.05 * rng.normal(size=n)
folder = Path(tempfile.mkdtemp())
lines = [
    f"{p:.3f};{t:.1f};{f:.3f}".replace(".", ",")
    for p, t, f in zip(pressure, heat, flow)
]
(folder / "flow.csv").write_text(
    "Calibration 2024, bench 3\n\npressure;temperature;flow\n" + "\n".join(lines) + "\n"
)
found = read_table(folder / "flow.csv")
table = found.frame
print(*found.notes, sep="\n")

# %%
# The model, and whether it may be trusted: the error on rows held out, beside that of a linear model.
model = TableModel().fit(table, "flow")
for name, text in model.summary():
    print(f"{name:22} {text}")

# %%
# One C file that needs nothing but ``math.h``. Its head says what the inputs are, and how many bytes it takes.
to_c(model, folder / "flow.c", name="flow", dtype="float")
source = (folder / "flow.c").read_text()
print("\n".join(source.splitlines()[:14]))

# %%
# How far off is it across the range, and where does the calibration end? Beyond the measured pressures the novelty
# rises: there the controller should not use the value.
grid = np.linspace(0, 14, 200)
rows = pd.DataFrame({"pressure": grid, "temperature": 40.0})
low, high = np.asarray(model.predict_interval(rows, coverage=0.9)).T
fig, (ax, below) = plt.subplots(
    2, 1, figsize=(6.4, 4.8), sharex=True, layout="constrained"
)
ax.fill_between(grid, low, high, color="#1f4e79", alpha=0.3, label="interval of 90%")
ax.plot(
    grid, np.sqrt(grid) * (2 + np.sin(40 / 12)), color="#d95f02", lw=1, label="truth"
)
ax.set(ylabel="flow")
ax.legend()
below.plot(grid, model.novelty(rows), color="#1f4e79")
below.axhline(model.novelty_threshold(0.01), color="grey", lw=1, ls=":")
below.set(xlabel="pressure (measured from 1 to 9)", ylabel="novelty")
plt.show()

# %%
# What the model does not know: other fluids, a worn sensor, and pressures above 9. The last of these it notices itself.
