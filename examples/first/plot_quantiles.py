"""
A date that can be kept
=======================

Errors are often on one side: a delivery may be a week late, but not a week early. An interval that goes as far down as
up is then too long below and too short above. Intervals here keep the sign of the errors on held-out rows, and the same
errors give quantiles (``predict_quantile``), probabilities (``cdf``) and standard deviations (``predict_std``).
"""

# %%
# Days that a delivery takes: longer for larger orders, and with a long tail.
import matplotlib.pyplot as plt
import numpy as np

from fewkern import KernelRegressor

rng = np.random.default_rng(0)


def deliveries(n):
    """Size of an order, and the days that it took."""
    size = rng.uniform(0, 10, n)
    days = 3 + 2 * np.sqrt(size) + 0.3 * (1 + size / 3) * rng.lognormal(0, 1, n)
    return size[:, None], days


X, y = deliveries(400)
X_new, y_new = deliveries(5000)
model = KernelRegressor().fit(X, y)
lower, upper = model.predict_interval(X_new, coverage=0.9).T
print(
    f"of 5,000 new deliveries {np.mean(y_new < lower):.1%} came before the interval, "
    f"{np.mean(y_new > upper):.1%} after it"
)

# %%
# The mean is not the day to promise: it is missed by a third of the deliveries. The quantile 0.95 is missed by one in
# twenty.
for name, day in (
    ("mean", model.predict(X_new)),
    ("median", model.predict_quantile(X_new, 0.5)),
    ("quantile 0.95", model.predict_quantile(X_new, 0.95)),
):
    print(f"{name}: missed by {np.mean(y_new > day):.1%}")

# %%
grid = np.linspace(0, 10, 300)[:, None]
fig, ax = plt.subplots(figsize=(6.8, 3.8), layout="constrained")
ax.plot(X_new[:800, 0], y_new[:800], ".", ms=3, color="#8a97a3", label="new deliveries")
ax.plot(grid[:, 0], model.predict(grid), color="#1f78b4", lw=2, label="mean")
for q, style in ((0.05, ":"), (0.5, "-"), (0.95, "--")):
    day = model.predict_quantile(grid, q)
    ax.plot(grid[:, 0], day, style, color="#d95f02", lw=2, label=f"quantile {q}")
ax.set(xlabel="size of the order", ylabel="days", ylim=(2, 18))
ax.legend(frameon=False, loc="upper left", ncols=2)
plt.show()

# %%
# A customer needs an order of size 6 within ten days. Will it be there?
print(f"with probability {model.cdf([[6.0]], 10.0)[0]:.0%}")
same = np.abs(X_new[:, 0] - 6.0) < 0.5
print(f"orders of about that size: {np.mean(y_new[same] <= 10.0):.0%} were")
