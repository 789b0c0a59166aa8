"""
A sensor that goes on learning
==============================

A temperature compensation is fitted at a desk and compiled into a device. There the sensor ages, and the model has to
follow: ``to_c(model, update=True)`` writes the update into the same C file. Here a compiler of this machine stands for
that of the device.
"""

# %%
# What the desk knows: a reading that depends on pressure and temperature.
import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from fewkern import KernelRegressor, to_c, to_c_test

rng = np.random.default_rng(0)


def samples(n, age=0.0):
    X = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
    drift = age * (0.4 + 0.6 * X[:, 1])
    return X, np.sin(3 * X[:, 0]) * (
        1 + X[:, 1] / 2
    ) + drift + 0.05 * rng.standard_normal(n)


model = KernelRegressor(n_vectors=12).fit(*samples(1000))

# %%
# The file, its header, and a test of 20 rows that can be run on the device itself.
folder = Path(tempfile.mkdtemp())
code = to_c(model, folder / "sensor.c", name="sensor", dtype="float", update=True)
to_c_test(
    model, samples(100)[0], folder / "sensor_test.c", name="sensor", dtype="float"
)
print(next(line for line in code.splitlines() if "Constants" in line))

# %%
# The sensor ages over 4,000 samples. One copy of the device keeps the model of the desk, one learns and never forgets,
# one forgets: with ``forgetting=0.995`` about the last 200 samples count.
parts = [samples(100, one) for one in np.linspace(0, 1, 40)]
X = np.concatenate([x for x, _ in parts]).astype(np.float32)
y = np.concatenate([t for _, t in parts]).astype(np.float32)
errors = {"stays": (model.predict(X) - y) ** 2}


def pointer(values):
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


if shutil.which("cc"):
    for name, forgetting in {"learns": 1.0, "learns and forgets": 0.995}.items():
        library = folder / f"{forgetting}.so"
        sources = ["sensor.c", "sensor_test.c"]
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", *sources, "-o", library, "-lm"],
            cwd=folder,
            check=True,
        )
        device = ctypes.CDLL(str(library))
        print(f"rows of the self-test that differ: {device.sensor_test()}")
        found = np.empty(len(X), np.float32)
        for i in range(len(X)):
            device.sensor_predict(pointer(X[i]), pointer(found[i:]))
            device.sensor_update(
                pointer(X[i]), pointer(y[i:]), ctypes.c_float(forgetting)
            )
        errors[name] = (found - y) ** 2

# %%
# The error of every sample, before it was learned. Noise alone makes 0.05.
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, error in errors.items():
    ax.plot(np.sqrt(error.reshape(40, 100).mean(axis=1)), label=name)
    print(f"{name}: {np.sqrt(error[-1000:].mean()):.3f} at the end")
ax.axhline(0.05, color="gray", linestyle=":", label="noise")
ax.set(xlabel="hundreds of samples on the device", ylabel="RMS error", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
