import numpy as np
import pytest

from fewkern.core.kernel import Gram
from fewkern.kernels import Gaussian, Polynomial
from fewkern.select.selection import approximate_center
from tests.oracles import fvs


@pytest.fixture
def X(rng):
    return rng.standard_normal((25, 2)) + 1


@pytest.mark.parametrize("kernel", [Gaussian(length_scale=0.01), Polynomial(3, 1.0, 1.0)])
def test_diagonal_entries_are_exact(kernel, rng):
    X = 100 * rng.standard_normal((40, 3))
    gram = Gram(kernel, X)
    every = np.arange(40)
    assert np.array_equal(np.diag(gram.columns(every)), gram.diag)
    assert np.array_equal(np.diag(gram.block(every, every)), gram.diag)
    assert np.array_equal(gram.columns(np.array([12]), rows=slice(10, 15))[2], gram.diag[[12]])


@pytest.mark.parametrize("neighbors", [1, 3, 25])
@pytest.mark.parametrize("kernel", [Gaussian(length_scale=1.0), Polynomial(2, 1.0, 1.0)])
def test_centred_matrix(kernel, neighbors, X):
    """K~ = (I - B)' K (I - B) with B = b 1' (Appendix A)."""
    plain = Gram(kernel, X)
    K = kernel(X, X)
    centre = approximate_center(plain, neighbors)
    b = np.zeros(25)
    b[centre.indices] = centre.weights
    nearest = np.argsort(np.diag(K) - 2 * K.mean(axis=0))[:neighbors]
    assert set(centre.indices.tolist()) == set(nearest.tolist())
    shift = np.eye(25) - np.outer(b, np.ones(25))
    expected = shift.T @ K @ shift
    gram = Gram(kernel, X, centre)
    np.testing.assert_allclose(gram.columns(np.arange(25)), expected, atol=1e-10 * K.max())
    np.testing.assert_allclose(gram.block(np.arange(5), np.arange(25)), expected[:5], atol=1e-10 * K.max())
    np.testing.assert_allclose(gram.diag, np.diag(expected), atol=1e-10 * K.max())


def test_one_centre_is_the_zero_vector_exactly(X):
    kernel = Gaussian(length_scale=1.0)
    centre = approximate_center(Gram(kernel, X))
    assert int(centre.indices[0]) == fvs.centre_index(kernel(X, X))
    assert Gram(kernel, X, centre).diag[centre.indices[0]] == 0.0


def test_mean_columns_over_some_rows(X, monkeypatch):
    gram = Gram(Gaussian(length_scale=1.0), X)
    K = gram.columns(np.arange(25))
    rows = np.array([1, 5, 6])
    np.testing.assert_allclose(gram.mean_columns(), K.mean(axis=0))
    np.testing.assert_allclose(gram.mean_columns(rows), K[rows].mean(axis=0))
    monkeypatch.setattr("fewkern.arrays.blocks.row_blocks.__defaults__", (30, None))
    np.testing.assert_allclose(gram.mean_columns(rows), K[rows].mean(axis=0))
