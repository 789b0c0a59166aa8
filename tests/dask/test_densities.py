"""Densities of Dask collections: choices on a sample, moments, weights and EM iterations from all rows."""

import dask.array as da
import numpy as np
import pytest

from fewkern import ForwardDensity
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana
from fewkern.density.problem import AllRows

N, SAMPLE, BLOCK = 900, 240, 128


@pytest.fixture(scope="module")
def X():
    return make_banana(N, random_state=1)[0]


def test_passes_over_all_rows_raise_their_likelihood(X):
    wide = make_banana(6000, random_state=2)[0]
    few = ForwardDensity(max_vectors=4, cv=None).fit(Samples.of(wide).drawn(SAMPLE).X)
    assert ForwardDensity(max_vectors=4, cv=None).fit(wide).score(wide) > few.score(wide)


def test_the_width_is_that_of_all_rows(X):
    """It falls with the number of rows; one that is given stays."""
    of_all, of_some = (ForwardDensity(bandwidth="silverman").fit(rows) for rows in (X, Samples.of(X).drawn(SAMPLE).X))
    assert of_all.bandwidth_ / of_some.bandwidth_ == pytest.approx((SAMPLE / N) ** (1 / 6), rel=0.05)
    assert of_all.least_bandwidth_ == pytest.approx(1.5 * of_all.bandwidth_)
    assert of_all.bandwidths_.min() >= of_all.least_bandwidth_ * (1 - 1e-12)
    assert ForwardDensity(bandwidth=0.4).fit(X).bandwidth_ == 0.4


@pytest.mark.parametrize("scale", ["none", "std", "whiten"])
@pytest.mark.parametrize("factor", [1.0, 1e150, 1e-150])
def test_moments_of_all_rows(X, scale, factor):
    X, w = X * factor + 3 * factor, np.random.default_rng(0).uniform(0.5, 2, N)
    found = AllRows.of(Samples.of(X, w), scale)
    share = w / w.sum()
    np.testing.assert_allclose(found.scaling.mean, share @ X, rtol=1e-12)
    gap = X / factor - share @ (X / factor)
    np.testing.assert_allclose(found.scaling.spreads, factor * np.sqrt(share @ gap**2))
    A = np.diag(found.scaling.transform) if scale != "whiten" else found.scaling.transform
    covariance = (A * factor) @ (gap.T @ (share[:, None] * gap)) @ (A * factor).T
    if scale == "whiten":
        np.testing.assert_allclose(covariance, np.eye(2), atol=1e-9)
    elif scale == "std":
        np.testing.assert_allclose(np.diag(covariance), 1, rtol=1e-9)
    else:
        np.testing.assert_array_equal(A, np.eye(2))
    assert (found.weight, found.effective_size) == pytest.approx((w.sum(), w.sum() ** 2 / (w @ w)))


def test_a_feature_that_is_constant_in_all_rows_or_in_the_sample(X):
    flat = np.column_stack([X, np.full(N, 0.1)])
    with pytest.warns(UserWarning, match=r"1 of 3 features \(or directions\) are constant"):
        ForwardDensity(max_vectors=3, cv=None).fit(da.from_array(flat, chunks=300))
    flat[np.flatnonzero(~np.isin(np.arange(N), Samples.of(X).drawn(SAMPLE).rows))[:40], 2] = 0.4
    found = AllRows.of(Samples.of(flat), "std").scaling
    assert found.constant == 0
    np.testing.assert_allclose(found.transform, 1 / flat.std(axis=0), rtol=1e-9)


def test_bad_collections(X):
    with pytest.raises(ValueError, match="expected at least 2 samples"):
        ForwardDensity().fit(da.from_array(X[:1], chunks=1))
    with pytest.raises(ValueError, match=r"all samples of positive weight are equal \(n_samples = 900"):
        ForwardDensity().fit(da.ones((N, 2), chunks=100))
    with pytest.raises(ValueError, match="NaN or infinity"):
        ForwardDensity().fit(da.full((N, 2), np.nan, chunks=100))
    with pytest.raises(ValueError, match='with scale="none" the spreads of the features must lie between'):
        ForwardDensity(scale="none").fit(da.from_array(X * 1e200, chunks=100))
