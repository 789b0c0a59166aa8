import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.special

from fewkern.arrays import linalg
from fewkern.arrays.namespace import namespace


@pytest.fixture
def A(rng):
    B = rng.standard_normal((6, 6))
    return B @ B.T + np.eye(6)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("columns", [None, 3])
def test_solve_triangular(A, rng, foreign, lower, transposed, columns):
    T = np.tril(A) if lower else np.triu(A)
    b = rng.standard_normal(6 if columns is None else (6, columns))
    expected = np.linalg.solve(T.T if transposed else T, b)
    np.testing.assert_allclose(linalg.solve_triangular(T, b, lower=lower, transposed=transposed), expected)
    to, back = foreign
    there = linalg.solve_triangular(to(T), to(b), lower=lower, transposed=transposed)
    np.testing.assert_allclose(back(there), expected)


def test_cholesky_of_definite_semi_definite_and_indefinite(A, rng, foreign):
    to, _ = foreign
    np.testing.assert_allclose(linalg.cholesky_psd(A), np.linalg.cholesky(A))
    low = rng.standard_normal((6, 2))
    C = linalg.cholesky_psd(low @ low.T)
    np.testing.assert_allclose(C @ C.T, low @ low.T, atol=1e-6)
    for indefinite in (-A, to(-A)):
        with pytest.raises(ValueError, match="not positive semi-definite, even with jitter"):
            linalg.cholesky_psd(indefinite)


def test_generalized_eigenvalues(A, rng, foreign):
    S = A - 3 * np.eye(6)
    B = A @ A
    expected = scipy.linalg.eigh(S, B, eigvals_only=True)[::-1]
    values, V = linalg.generalized_eigh(S, B)
    np.testing.assert_allclose(values, expected, atol=1e-8)
    np.testing.assert_allclose(S @ V, B @ V * values, atol=1e-6)
    to, back = foreign
    np.testing.assert_allclose(back(linalg.generalized_eigh(to(S), to(B))[0]), expected, atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_distances(rng, sparse):
    X, Y = rng.standard_normal((7, 3)), rng.standard_normal((4, 3))
    wrap = sp.csr_array if sparse else np.asarray
    squares = [[np.sum((x - y) ** 2) for y in Y] for x in X]
    np.testing.assert_allclose(-linalg.neg_squared_distances(wrap(X), wrap(Y)), squares)
    sums = [[np.sum(np.abs(x - y)) for y in Y] for x in X]
    np.testing.assert_allclose(linalg.manhattan(wrap(X), wrap(Y)), sums)
    np.testing.assert_allclose(linalg.product_transposed(wrap(X), wrap(Y)), X @ Y.T)
    np.testing.assert_allclose(linalg.squared_norms(wrap(X)), np.sum(X**2, axis=1))


def test_distances_are_never_negative(rng):
    X = 1e4 + rng.standard_normal((50, 3))
    assert np.all(linalg.neg_squared_distances(X, X) <= 0)
    assert np.all(linalg.neg_squared_distances(sp.csr_array(X), sp.csr_array(X)) <= 0)


def test_solve_definite_solves_or_says_that_it_cannot(rng):
    A, B = rng.standard_normal((6, 5)), rng.standard_normal((5, 2))
    definite = A.T @ A
    np.testing.assert_allclose(definite @ linalg.solve_definite(definite, B), B, atol=1e-10)
    indefinite = definite - 1.1 * np.linalg.eigvalsh(definite)[0] * np.eye(5)
    assert linalg.solve_definite(indefinite, B) is None
    assert linalg.solve_or_none(np.zeros((2, 2)), np.ones(2)) is None


@pytest.mark.parametrize("solve", [linalg.cholesky_psd, lambda A: linalg.solve_or_none(A, A[:, 0])])
def test_memory_that_ran_out_is_not_taken_for_a_singular_matrix(solve, monkeypatch):
    """torch says so by a RuntimeError, as it does for a singular matrix by one of its own."""

    def fails(*_):
        raise RuntimeError("CUDA out of memory")

    xp = namespace(np.eye(2))
    monkeypatch.setattr(xp.linalg, "cholesky", fails)
    monkeypatch.setattr(xp.linalg, "solve", fails)
    with pytest.raises(RuntimeError, match="out of memory"):
        solve(np.eye(2))
