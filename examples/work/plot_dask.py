"""
A table larger than memory, with Dask on a laptop
=================================================

Dask cuts a table into blocks of rows that are read or made when they are needed. The estimators take such a table as it
is: they look at a sample of the rows to choose vectors and settings, and then add up small sums over all blocks. The
rows are never in memory as a whole.
"""

# %%
# 300,000 rows of twenty columns, made block by block. With a thousand blocks instead of twelve the script stays the
# same, and needs no more memory. In real life this line would be ``dd.read_parquet("folder/*.parquet")``.
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from fewkern import KernelClassifier
from fewkern.datasets import make_twonorm

BLOCKS, ROWS = 12, 25_000


@dask.delayed
def block(seed):
    """One block of the table; the label is the last column."""
    return np.column_stack(make_twonorm(ROWS, random_state=seed))


blocks = [da.from_delayed(block(seed), (ROWS, 21), float) for seed in range(BLOCKS)]
table = da.concatenate(blocks)
X, y = table[:, :-1], table[:, -1].astype(int)
print(f"{len(table):,} rows, {table.nbytes / 1e6:.0f} MB, {table.numblocks[0]} blocks")

# %%
# The fit is the same as ever. We give it a budget.
model = KernelClassifier(max_vectors=40)
with dask.config.set(scheduler="threads", num_workers=2):
    model.fit(X, y)
print(f"{model.n_vectors_} vectors, {model.held_out_error_:.2%} error on held-out rows")

# %%
# A prediction of a Dask array is a Dask array: nothing is computed until it is asked for.
scores = model.decision_function(X)
print(type(scores).__name__, scores.shape)
some = scores.blocks[0].compute()

# %%
# No classifier can have less than 2.3% error on these data, apart from chance.
X_test, y_test = make_twonorm(20_000, random_state=999)
print(f"error on new samples: {1 - model.score(X_test, y_test):.2%}")
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
labels = y.blocks[0].compute()
for label, color in ((1, "#1f77b4"), (-1, "#d95f02")):
    ax.hist(some[labels == label], bins=80, color=color, alpha=0.7, lw=0)
ax.axvline(0, color="black", lw=1)
ax.set(xlabel="decision function, first block", yticks=[])
plt.show()
