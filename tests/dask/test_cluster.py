"""What can go wrong on a cluster: a worker dies, two fits run at once, a fit is cancelled."""

import os
import signal
import time

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fewkern import FeatureVectorDiscriminant, TableModel
from fewkern.arrays import partitions
from fewkern.datasets import make_banana

ROWS, SAMPLE, BLOCK = 4000, 600, 500


@pytest.fixture(scope="module")
def client():
    """Two processes of one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def table():
    X, y = make_banana(ROWS, random_state=3)
    return X, y


def model():
    return FeatureVectorDiscriminant(max_vectors=8)


def test_a_cluster_gives_the_model_of_one_process(client, table):
    X, y = table
    lazy = da.from_array(X, chunks=700)
    there = model().fit(lazy, y)
    np.testing.assert_allclose(there.decision_function(X), model().fit(X, y).decision_function(X), atol=1e-10)
    np.testing.assert_array_equal(there.predict(lazy).compute(), there.predict(X))


def test_a_table_on_a_cluster(client, table):
    X, y = table
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "side": np.where(y > 0, "left", "right")})
    quick = TableModel(model="discriminant", max_vectors=8)
    there = quick.fit(dd.from_pandas(frame, npartitions=3), "side")
    labels = there.predict(dd.from_pandas(frame, npartitions=3)).compute()
    assert labels.tolist() == there.predict(frame).tolist()
    with dask.config.set(scheduler="sync"):
        here = clone(quick).fit(dd.from_pandas(frame, npartitions=1), "side")
    np.testing.assert_array_equal(there.predict_proba(frame), here.predict_proba(frame))


def test_a_worker_that_is_killed_changes_nothing(client, table, tmp_path):
    X, y = table
    victim, flag = next(iter(client.run(os.getpid).values())), tmp_path / "killed"

    def deadly(block):
        if os.getpid() == victim and not flag.exists():
            flag.touch()
            os.kill(victim, signal.SIGKILL)
        return block

    lazy = da.from_array(X, chunks=(500, 2)).map_blocks(deadly, dtype=float)
    found = model().fit(lazy, y)
    assert flag.exists()
    np.testing.assert_array_equal(
        found.decision_function(X), model().fit(da.from_array(X, chunks=500), y).decision_function(X)
    )


def test_a_partition_that_ends_every_worker_is_one_sentence(client, table):
    """As one does that needs more memory than a worker has."""
    X, y = table
    client.wait_for_workers(2)  # one of them may have just been killed

    def deadly(block):
        if len(block):
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    lazy = da.from_array(X, chunks=(2000, 2)).map_blocks(deadly, meta=X[:0])
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    said = r"could not compute the Dask collection \(KilledWorker.*\): .* or use smaller chunks, and fit again"
    with pytest.raises(partitions.PartitionError, match=said):
        model().fit(lazy, y)
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    client.wait_for_workers(2)


def test_a_lost_cluster_is_named():
    expected = r"^the cluster could not compute the sum \(CommClosedError\('lost'\)\): .* fit again\.$"
    with pytest.raises(partitions.PartitionError, match=expected), partitions.naming("sum", list):
        raise distributed.comm.CommClosedError("lost")


def test_a_cancelled_fit_leaves_nothing_behind(client, table):
    X, y = table

    def slow(block):
        time.sleep(0.5)
        return block

    def stop(*_):
        raise KeyboardInterrupt

    estimator = model()
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(da.from_array(X, chunks=(100, 2)).map_blocks(slow, dtype=float), y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not hasattr(estimator, "expansion_")
    deadline = time.monotonic() + 10
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
