import array_api_compat
import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.arrays import blocks, namespace
from fewkern.arrays.sampling import random_generator


def test_namespace_of_numpy_and_sparse(rng):
    X = rng.standard_normal((3, 2))
    assert namespace.namespace(X) is namespace.namespace(sp.csr_array(X)) is namespace.namespace(None, 3, X)
    assert namespace.is_sparse(sp.csr_array(X))
    assert not namespace.is_sparse(X)
    assert not namespace.is_foreign(X)
    assert namespace.device(sp.csr_array(X)) is None


def test_foreign_arrays_keep_their_library(foreign):
    to, back = foreign
    X = to(np.eye(3))
    assert namespace.is_foreign(X)
    assert namespace.namespace(X) is array_api_compat.array_namespace(X)
    like = namespace.asarray_like([1.0, 2.0], X)
    assert type(like) is type(X)
    np.testing.assert_array_equal(back(namespace.take_rows(X, to(np.array([2, 0])))), np.eye(3)[[2, 0]])
    np.testing.assert_array_equal(back(namespace.concat_rows(X, X)), np.vstack([np.eye(3)] * 2))


@pytest.mark.parametrize(
    ("given", "computed"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.int32, np.float64), (np.bool_, np.float64)],
)
def test_float32_stays_and_all_else_becomes_float64(given, computed):
    assert namespace.float_dtype(np.ones(2, dtype=given)) == computed


def test_row_blocks_cover_all_rows_once():
    for n in (0, 1, 7, 100):
        for elements in (1, 3, 1000):
            rows = [i for part in blocks.row_blocks(n, elements, budget=50) for i in range(n)[part]]
            assert rows == list(range(n))
    assert all(part.stop - part.start <= 50 // 3 for part in blocks.row_blocks(100, 3, budget=50))


def test_random_generator():
    for seed in (3, np.random.SeedSequence(3), [3, 4]):
        one, two = (random_generator(seed).random() for _ in "ab")
        assert one == two
    state = np.random.RandomState(0)
    assert random_generator(state).random() != random_generator(state).random()
