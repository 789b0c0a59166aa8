"""Collections that give other rows at every pass, or not as many as they declare: noticed, and said."""

import itertools

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from fewkern import FeatureVectorDiscriminant, KernelRegressor, TableModel
from fewkern.datasets import make_banana

ROWS, SAMPLE, BLOCK = 1000, 240, 128
X, y = make_banana(ROWS, random_state=3)


@pytest.fixture(autouse=True)
def _here():
    with dask.config.set(scheduler="sync"):
        yield


def another_each_time(change):
    """The rows, and from the second pass on what ``change`` makes of those after the 500th."""
    passes = itertools.count()

    def block(part):
        return change(part) if next(passes) else part

    return da.concatenate(
        [da.from_array(X[:500], chunks=(250, 2)), da.from_array(X[500:]).map_blocks(block, meta=X[:0])]
    )


@pytest.mark.parametrize(
    ("change", "rows"),
    [(lambda part: part + 1e-12, "384"), (lambda part: part[::-1], "384"), (lambda part: part, None)],
)
def test_rows_that_change_between_passes(change, rows):
    lazy = another_each_time(change)
    if rows is None:
        KernelRegressor(max_vectors=3).fit(lazy, X[:, 0])
        return
    with pytest.raises(ValueError, match=rf"5 of 8 blocks .* other rows than in the pass before .*row {rows}"):
        KernelRegressor(max_vectors=3).fit(lazy, X[:, 0])


@pytest.mark.parametrize("labels", [y, np.where(y > 0, "a", "b"), np.where(y > 0, "a", "b").astype(object)])
def test_labels_that_change_between_passes(labels):
    passes = itertools.count()

    def block(part):
        return part[::-1] if next(passes) else part

    lazy = da.from_array(labels, chunks=ROWS).map_blocks(block, meta=labels[:0])
    with pytest.raises(ValueError, match=r"hold other rows than in the pass before"):
        FeatureVectorDiscriminant(max_vectors=5).fit(da.from_array(X, chunks=200), lazy)


def test_a_chunk_of_fewer_rows_than_it_declares():
    parts = [da.from_delayed(dask.delayed(X[:90]), (100, 2), X.dtype), da.from_array(X[100:])]
    with pytest.raises(ValueError, match=r"rows 0 to 127 .* are only 118 rows: .* call compute_chunk_sizes\(\)"):
        FeatureVectorDiscriminant(max_vectors=5).fit(da.concatenate(parts), y)


def test_a_partition_of_a_table_that_changes():
    passes = itertools.count()
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    lazy = dd.from_pandas(table, npartitions=1).map_partitions(
        lambda part: part.iloc[: -next(passes) or None], meta=table.iloc[:0]
    )
    with pytest.raises(ValueError, match=r"partition 0: it had 1,000 rows when they were counted, and has 999 now"):
        TableModel(max_vectors=3).fit(lazy, "y")
