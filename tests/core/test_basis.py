import numpy as np
import pytest

from fewkern.core.expansion import KernelBasis
from fewkern.core.kernel import Gram
from fewkern.kernels import Gaussian
from fewkern.select.selection import SelectionRule, approximate_center, select_vectors

PROJECTIONS = ["nested", "symmetric", "raw"]


def make(X, projection, neighbors, limit=200, kernel=Gaussian(length_scale=1.5)):
    gram = Gram(kernel, X)
    if neighbors:
        gram = Gram(kernel, X, approximate_center(gram, neighbors))
    found = select_vectors(gram, SelectionRule("greedy"), limit)
    return gram, found, KernelBasis.from_selection(gram, found.indices, found.factor, projection)


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 2))


@pytest.mark.parametrize("neighbors", [0, 1, 4])
@pytest.mark.parametrize("projection", ["nested", "symmetric"])
def test_products_of_features_are_the_kernel(X, rng, projection, neighbors):
    gram, _, basis = make(X, projection, neighbors)
    Z = basis.features(X)
    np.testing.assert_allclose(Z @ Z.T, gram.columns(np.arange(60)), atol=1e-7)


@pytest.mark.parametrize("neighbors", [0, 1, 4])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_definitions(X, rng, projection, neighbors):
    """Eqs. (9), (10) and (10')."""
    gram, found, basis = make(X, projection, neighbors, limit=8)
    K_S = gram.columns(found.indices)
    K_SS = K_S[found.indices]
    values, V = np.linalg.eigh(K_SS)
    expected = {
        "raw": K_S,
        "symmetric": K_S @ (V / np.sqrt(values)) @ V.T,
        "nested": np.linalg.solve(np.linalg.cholesky(K_SS), K_S.T).T,
    }
    np.testing.assert_allclose(basis.features(X), expected[projection], atol=1e-9)
    np.testing.assert_allclose(basis.rotate(found.G), expected[projection], atol=1e-9)


@pytest.mark.parametrize("neighbors", [0, 1, 4])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_expansion_is_the_linear_function_of_the_features(X, rng, projection, neighbors):
    _, _, basis = make(X, projection, neighbors, limit=9)
    W, b = rng.standard_normal((9, 3)), rng.standard_normal(3)
    new = rng.standard_normal((20, 2))
    f = basis.expand(W, b)
    np.testing.assert_allclose(f(new), basis.features(new) @ W + b, atol=1e-9)
    assert f.n_vectors == 9 + neighbors
    np.testing.assert_array_equal(f.vectors, X[f.indices])
    if neighbors:
        np.testing.assert_allclose(f.coef.sum(axis=0), 0.0, atol=1e-9 * np.abs(f.coef).max())


@pytest.mark.parametrize("neighbors", [0, 1])
def test_head_is_nested(X, neighbors):
    _, _, basis = make(X, "nested", neighbors, limit=9)
    head = basis.head(4)
    assert head.n_vectors == 4
    np.testing.assert_allclose(head.features(X), basis.features(X)[:, :4], atol=1e-12)
    W = np.ones((4, 1))
    np.testing.assert_allclose(head.expand(W, np.zeros(1))(X), head.features(X) @ W, atol=1e-10)


@pytest.mark.parametrize("neighbors", [0, 1, 4])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_unexplained_is_the_distance_to_the_span_of_the_vectors(X, projection, neighbors):
    gram, found, basis = make(X, projection, neighbors, limit=8)
    K_S, K_SS = gram.columns(found.indices), gram.block(found.indices, found.indices)
    left = gram.diag - np.sum(K_S * np.linalg.solve(K_SS, K_S.T).T, axis=1)
    expected = np.divide(left, gram.diag, out=np.zeros(60), where=gram.diag > 0)
    np.testing.assert_allclose(basis.unexplained(X), expected, atol=1e-9)
