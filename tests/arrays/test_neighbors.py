import numpy as np

from fewkern.arrays.neighbors import pairs_scatter


def test_scatter_of_pairs_is_that_of_their_laplacian(rng):
    i, j, weights, Z = rng.integers(0, 5, 9), rng.integers(5, 8, 9), rng.standard_normal(9), rng.standard_normal((8, 3))
    expected = sum(w * np.outer(Z[a] - Z[b], Z[a] - Z[b]) for a, b, w in zip(i, j, weights))
    np.testing.assert_allclose(pairs_scatter(i, j, weights, Z), expected, atol=1e-12)
