"""The same input gives the same model: docs/trust.md states what is tested here."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import fewkern
from fewkern.arrays import blocks
from fewkern.datasets import make_banana
from tests.checks.everyone import ALL, every, fresh, outputs

X, Y = make_banana(30, random_state=5)
# Where sums are taken in another order, answers may differ by this much, relative to their size.
BOUND = 1e-9


@cache
def fitted(model):
    return fresh(model).fit(X, Y)


def assert_same(one, other, bound=0.0):
    assert one.keys() == other.keys()
    for method, value in one.items():
        assert value.dtype == other[method].dtype
        if bound:
            atol = bound * np.abs(value).max()
            np.testing.assert_allclose(other[method], value, rtol=bound, atol=atol, err_msg=method)
        else:
            np.testing.assert_array_equal(other[method], value, err_msg=method)


@every(ALL)
@pytest.mark.parametrize(
    "arranged",
    [X, np.asfortranarray(X), np.repeat(X[::-1], 2, axis=0)[::-2], X.astype(X.dtype.newbyteorder())],
    ids=["again", "Fortran", "strided", "other endianness"],
)
def test_any_arrangement_in_memory(model, arranged):
    assert np.array_equal(arranged, X)
    assert_same(outputs(fitted(model), X), outputs(fresh(model).fit(arranged, Y), arranged))


@every(ALL)
def test_any_number_of_threads(model):
    with threadpool_limits(1):
        expected = outputs(fitted(model), X)
    with threadpool_limits(2):
        assert_same(expected, outputs(fresh(model).fit(X, Y), X), BOUND)


@every(ALL)
def test_any_row_blocks(model, monkeypatch):
    whole = outputs(fitted(model), X)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 200)
    assert_same(whole, outputs(fresh(model).fit(X, Y), X), BOUND)


@every(ALL)
def test_pickled_or_saved(model, tmp_path):
    expected = outputs(fitted(model), X)
    assert_same(expected, outputs(pickle.loads(pickle.dumps(fitted(model))), X))
    fewkern.save(fitted(model), tmp_path / "model.npz")
    assert_same(expected, outputs(fewkern.load(tmp_path / "model.npz"), X))


@every(ALL)
def test_sixteen_threads_at_once(model):
    one, expected = fitted(model), outputs(fitted(model), X)
    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(lambda _: outputs(one, X), range(64)):
            assert_same(expected, found)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_after_a_fork():
    models = [fitted(model) for model in ALL]
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def child():
        send.send([outputs(model, X) for model in models])

    process = context.Process(target=child)
    process.start()
    assert receive.poll(60), "the child does not answer"
    found = receive.recv()
    process.join(60)
    assert process.exitcode == 0
    for model, answers in zip(models, found):
        assert_same(outputs(model, X), answers)
