"""
A table larger than memory, with Dask on a laptop
=================================================

Choosing a few vectors needs only some of the rows. What comes after is a linear model on their features, and for that
the sums over blocks of rows are enough. Dask computes the blocks, one after another or on many machines, and the table
is never in memory as a whole.
"""

# %%
# 400,000 rows of twenty columns. They are made block by block when they are needed, as if they were read from files.
# With a thousand blocks instead of twenty the script stays the same, and needs no more memory.
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from fewkern import FeatureVectorSelector
from fewkern.datasets import make_twonorm

BLOCKS, ROWS = 20, 20_000


@dask.delayed
def block(seed):
    """One block of the table; the label is the last column."""
    X, y = make_twonorm(ROWS, random_state=seed)
    return np.column_stack([X, y])


table = da.concatenate(
    [da.from_delayed(block(seed), (ROWS, 21), float) for seed in range(BLOCKS)]
)
print(
    f"{table.shape[0]:,} rows, {table.nbytes / 1e6:.0f} MB, in {table.numblocks[0]} blocks"
)

# %%
# The vectors are chosen among the rows of one block.
first = table.blocks[0].compute()
selector = FeatureVectorSelector(max_vectors=60).fit(first[:, :-1])
print(f"{selector.n_vectors_} vectors explain {selector.fitness_[-1]:.1%} of the rows")


# %%
# Every block gives two small sums: of the products of the features, and of their products with the label.
@dask.delayed
def sums(rows):
    """Normal equations of one block."""
    Z = np.column_stack([np.ones(len(rows)), selector.transform(rows[:, :-1])])
    return Z.T @ Z, Z.T @ np.where(rows[:, -1] > 0, 1.0, -1.0)


parts = [sums(part) for part in table.to_delayed().ravel()]
with dask.config.set(scheduler="threads", num_workers=2):
    found = dask.compute(*parts)
G, b = (sum(part[k] for part in found) for k in (0, 1))
weights = np.linalg.solve(G + 1e-3 * np.eye(len(G)), b)

# %%
# A model of 60 vectors from all rows. No classifier can have less than 2.3 % error on these data.
X_test, y_test = make_twonorm(20_000, random_state=999)
scores = selector.transform(X_test) @ weights[1:] + weights[0]
print(f"error on new samples: {np.mean((scores > 0) != (y_test > 0)):.2%}")

# %%
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for label, color in ((1, "#1f77b4"), (0, "#d95f02")):
    ax.hist(scores[(y_test > 0) == label], bins=80, color=color, alpha=0.7, lw=0)
ax.axvline(0, color="black", lw=1)
ax.set(xlabel="score", yticks=[])
plt.show()
