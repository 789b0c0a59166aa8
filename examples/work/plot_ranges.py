"""
A density that knows the range of its columns
=============================================

Arrivals late in the evening, and how long people wait. An hour of 23:50 is close to one of 0:10, and nobody waits less
than no time. An ordinary density knows neither: it puts mass before zero, and sees two groups where there is one.
"""

# %%
# 600 arrivals: hours round midnight, and waiting times in minutes.
import matplotlib.pyplot as plt
import numpy as np

from fewkern import ForwardDensity

rng = np.random.default_rng(0)


def arrivals(n):
    hour = (
        np.where(rng.random(n) < 0.7, rng.normal(0, 1.5, n), rng.normal(13, 1, n)) % 24
    )
    return np.column_stack([hour, rng.exponential(12, n)])


X, new = arrivals(600), arrivals(5000)

# %%
# ``periodic`` wraps kernels round midnight, ``bounds`` reflects them at zero. Both densities integrate to one, but only
# one of them has all of its mass where arrivals can be.
plain = ForwardDensity(scale="std").fit(X)
ranged = ForwardDensity(periodic={0: 24}, bounds={1: (0, None)}).fit(X)
for name, model in (("without ranges", plain), ("with ranges", ranged)):
    drawn = model.sample(20_000, random_state=0)
    outside = np.mean((drawn[:, 0] < 0) | (drawn[:, 0] > 24) | (drawn[:, 1] < 0))
    print(
        f"{name}: {model.n_vectors_} kernels, {outside:.1%} of the mass outside, "
        f"mean log density of new arrivals {model.score(new) / len(new):.3f}"
    )

# %%
# The density of each column, whatever the other is.
hours = np.linspace(0, 24, 400)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].hist(X[:, 0], bins=48, density=True, color="#c3ccd4")
waits = np.linspace(-15, 60, 400)
axes[1].hist(X[:, 1], bins=40, density=True, color="#c3ccd4")
for model, color, name in (
    (plain, "#8a97a3", "without ranges"),
    (ranged, "#e0701a", "with ranges"),
):
    axes[0].plot(
        hours, model.marginal([0]).pdf(hours[:, None]), color=color, label=name
    )
    axes[1].plot(
        waits, model.marginal([1]).pdf(waits[:, None]), color=color, label=name
    )
axes[0].set(xlabel="hour", ylabel="density", xlim=(0, 24))
axes[1].set(xlabel="minutes", xlim=(-15, 60))
axes[1].legend(frameon=False)
plt.show()
