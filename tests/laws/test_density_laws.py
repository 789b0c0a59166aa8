"""What must hold for every density, whatever the data (methods D12)."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from fewkern import (
    ForwardConstrainedDensity,
    ForwardDensity,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)

few = settings(max_examples=6, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)

# "none" is the isotropic kernel of the paper, the only one that may be rotated.
DENSITIES = {
    "parzen": ParzenDensity(scale="none"),
    "ml": ForwardDensity(scale="none", max_vectors=3),
    "ml-bic": ForwardDensity(cv=None, scale="none", max_vectors=3),
    "paper": ForwardConstrainedDensity(scale="none"),
    "paper-abs": ForwardConstrainedDensity(scale="none", bandwidth_rule="abs"),
    "rsde": ReducedSetDensity(bandwidth="silverman", scale="none"),
    "skd": OrthogonalForwardDensity(scale="none"),
    "sdc": OrthogonalForwardDensity(target="distribution", scale="none"),
}
every_density = pytest.mark.parametrize("name", list(DENSITIES))


def _data(seed, m=2, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    X[n // 2 :] += rng.normal(scale=3.0, size=m)
    return X


def _fit(name, X, weights=None):
    return clone(DENSITIES[name]).fit(X, sample_weight=weights)


def _near(X, seed):
    """Points where a law is tested: among the data, not in the far tails."""
    rng = np.random.default_rng(seed + 1)
    return X[rng.permutation(len(X))[:20]] + 0.2 * rng.normal(size=(20, X.shape[1]))


@every_density
@few
@given(seed=seeds, m=st.integers(1, 4))
def test_weights_are_on_the_simplex(name, seed, m):
    X = _data(seed, m)
    weights = np.random.default_rng(seed).random(60)
    weights[:5] = 0
    model = _fit(name, X, weights)
    assert np.all(model.weights_ >= 0)
    assert abs(model.weights_.sum() - 1) <= 1e-12
    assert np.all(model.bandwidths_ >= 0.02 * model.bandwidth_ * (1 - 1e-12))
    assert 1 <= model.n_vectors_ <= 55


# The paper's literal width rule knows no upper bound, and no quadrature follows a kernel of any width.
@pytest.mark.parametrize("name", [name for name in DENSITIES if name != "paper-abs"])
@few
@given(seed=seeds)
def test_integral_is_one(name, seed):
    line = _fit(name, _data(seed, 1))
    spread = float(line.bandwidths_.max())
    low, high = line.vectors_.min() - 9 * spread, line.vectors_.max() + 9 * spread
    axis = np.arange(low, high, float(line.bandwidths_.min()) / 4)[:, None]
    assert np.sum(line.pdf(axis)) * (axis[1, 0] - axis[0, 0]) == pytest.approx(1, abs=2e-3)


# Rows are dealt to folds in their order.
@pytest.mark.parametrize("name", [name for name in DENSITIES if name != "ml"])
@few
@given(seed=seeds)
def test_order_of_the_rows_does_not_matter(name, seed):
    X = _data(seed)
    shuffled = X[np.random.default_rng(seed).permutation(60)]
    points = _near(X, seed)
    np.testing.assert_allclose(
        _fit(name, shuffled).score_samples(points), _fit(name, X).score_samples(points), atol=1e-6
    )


@every_density
@few
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_shift_and_change_of_unit(name, seed, factor):
    X = _data(seed)
    shift = np.random.default_rng(seed).normal(size=2) * 10
    points = _near(X, seed)
    moved = _fit(name, factor * X + shift).score_samples(factor * points + shift)
    np.testing.assert_allclose(moved, _fit(name, X).score_samples(points) - 2 * np.log(factor), atol=1e-5)


@pytest.mark.parametrize("name", [name for name in DENSITIES if name != "sdc"])
@few
@given(seed=seeds, angle=st.floats(0, 6.28))
def test_rotation(name, seed, angle):
    X = _data(seed)
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = _near(X, seed)
    np.testing.assert_allclose(
        _fit(name, X @ R).score_samples(points @ R), _fit(name, X).score_samples(points), atol=1e-5
    )


@every_density
@few
@given(seed=seeds, factor=st.floats(0.1, 10))
def test_weights_of_zero_and_constant_weights(name, seed, factor):
    X = _data(seed)
    points = _near(X, seed)
    weights = np.random.default_rng(seed).random(60)
    weights[::7] = 0
    first, scaled = _fit(name, X, weights), _fit(name, X, factor * weights)
    np.testing.assert_allclose(scaled.score_samples(points), first.score_samples(points), atol=1e-6)
    kept = weights > 0
    without = _fit(name, X[kept], weights[kept])
    np.testing.assert_allclose(without.score_samples(points), first.score_samples(points), atol=1e-6)


@few
@given(seed=seeds)
def test_path_of_the_paper_s_algorithm(seed):
    model = _fit("paper", _data(seed))
    assert all(b < a for a, b in pairwise(model.path_.error))
