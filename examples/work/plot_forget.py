"""
Take a person out of a model
============================

A person who took part in a study asks for their rows to be removed, and the table is no longer there. A model that was
fitted by ``partial_fit`` keeps sums over its rows, and ``forget`` subtracts rows from them: what is left is the model of
all others, to the last digits, without their rows.
"""

# %%
# Twenty persons measure a response 40 times each. For one of them the sensor was mounted upside down.
import matplotlib.pyplot as plt
import numpy as np

from fewkern import KernelRegressor

rng = np.random.default_rng(0)
person = np.repeat(np.arange(20), 40)
X = rng.uniform(-3, 3, (800, 1))
y = np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(800)
one = person == 7
y[one] = 2 - y[one]

# five persons came first; vectors, metric and ridge are chosen on them, and stay
early = person < 5


def taught(rows, weight=1.0):
    """A model of the first five persons, and then of other rows."""
    model = KernelRegressor().partial_fit(X[early], y[early])
    return model.partial_fit(X[rows], y[rows], np.where(one[rows], weight, 1.0))


everyone = taught(~early)
grid = np.linspace(-3, 3, 200)[:, None]
before = everyone.predict(grid)

# %%
# The rows of this person are taken out. What is left is the model that never saw them.
without = everyone.forget(X[one], y[one]).predict(grid)
anew = taught(~early & ~one).predict(grid)
print(
    f"largest difference to a model that never saw the person: {abs(without - anew).max():.0e}"
)

# %%
# Rows that cannot have been in it are refused, and nothing is changed.
try:
    everyone.forget(X[:3], y[:3] + 1e6)
except ValueError as error:
    print(error)

# %%
# On the left, the model before and after. On the right, what the model still knows of the person if it learns the rows
# with less weight, and what is left after ``forget``: rounding.
fig, (curves, weights) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
curves.plot(X[~one], y[~one], ".", color="lightgrey", ms=3)
curves.plot(X[one], y[one], ".", color="C1", ms=4, label="rows of the person")
curves.plot(grid, before, "C1--", label="with them")
curves.plot(grid, without, "C0", label="after forget")
curves.plot(grid, anew, "k:", label="never saw them")
curves.set(xlabel="x", ylabel="response", ylim=(-0.6, 3.4))
curves.legend(fontsize="small", loc="upper left", ncols=2)
shares = np.array([1.0, 0.5, 0.1, 0.01, 0.001])
left = [abs(taught(~early, share).predict(grid) - anew).max() for share in shares]
weights.loglog(shares, left, "o-", color="C1", label="smaller weight")
weights.axhline(max(abs(without - anew).max(), 1e-17), color="C0", label="forget")
weights.invert_xaxis()
weights.set(
    xlabel="weight of the person's rows",
    ylabel="difference to a model that never saw them",
)
weights.legend(fontsize="small")
plt.show()

# %%
# ``forget`` changes the coefficients only. Vectors, metric and ridge were chosen with the rows of the first
# five persons, and held-out errors stay as they were: for one of these five, only a new fit removes everything.
# :doc:`The guide </guide/trust>` lists what stays.
