"""Laws of the preparation, and of Gaussians on prepared columns."""

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fewkern.core.conformal import HeldOutScores, Novelty
from fewkern.core.explanation import differentiable, feature_importances
from fewkern.core.gaussians import GaussianExpansion, Preparation
from fewkern.core.kernels import Gaussian
from fewkern.core.samples import Samples
from fewkern.select.selector import FeatureVectorSelector
from tests.core.functions import basis, function, preparation, table

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def maps(draw):
    """A preparation of one column whose knots and values are all clearly different."""
    count = draw(st.integers(1, 8))
    steps = st.lists(st.floats(1e-3, 1e3), min_size=count - 1, max_size=count - 1)
    start = st.floats(-1e3, 1e3)
    knots, values = (np.cumsum([draw(start), *draw(steps)]) for _ in range(2))
    return Preparation(knots[:, None], values[:, None])


@given(maps(), st.lists(numbers, min_size=2, max_size=20))
def test_a_preparation_is_monotone_and_bounded(t, x):
    found = t(np.sort(x)[:, None])[:, 0]
    room = 1e-9 * (1 + np.abs(t.values).max())
    assert (np.diff(found) >= -room).all()
    assert t.values[0, 0] - room <= found.min()
    assert found.max() <= t.values[-1, 0] + room


@given(maps(), st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_a_preparation_passes_through_its_knots_and_has_an_inverse_between_them(t, shares):
    np.testing.assert_allclose(t(t.knots), t.values, rtol=0, atol=1e-9 * (1 + np.abs(t.values).max()))
    low, high = t.knots[0, 0], t.knots[-1, 0]
    x = np.minimum(low + (high - low) * np.array(shares), high)[:, None]
    # slopes lie between 1e-6 and 1e6
    np.testing.assert_allclose(t.inverse(t(x)), x, rtol=0, atol=1e-5)
    beyond = np.array([[low - 5.0], [high + 7.0]])
    np.testing.assert_allclose(t.inverse(t(beyond)), [[low], [high]], rtol=0, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-310, 1e-150, 1e150, 1e300])
def test_units_of_any_size(unit, rng):
    """Also those in which a slope is more than the largest number."""
    X = rng.normal(size=(40, 2))
    t = preparation(X)
    scaled = Preparation(t.knots * unit, t.values)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        np.testing.assert_allclose(scaled(X * unit), t(X), atol=1e-9)


def test_the_definition(rng):
    X = table(rng)
    f = function(rng, X, outputs=2)
    b = f.basis
    T, A = b.preparation(X), np.diag(b.scales**2) + b.directions @ b.directions.T
    expected = f.offset + T @ f.slopes
    for v, s, a in zip(b.vectors, b.inverse_widths, f.coef):
        distance = np.einsum("ni,ij,nj->n", T - v, A, T - v)
        expected = expected + np.exp(-0.5 * s**2 * distance)[:, None] * a
    np.testing.assert_allclose(f(X), expected, atol=1e-12)
    np.testing.assert_allclose(f(X), b.features(X) @ np.concatenate([f.coef, f.slopes / 0.3]) + f.offset, atol=1e-12)
    weights, more = rng.normal(size=(2, 3)), rng.normal(size=3)
    np.testing.assert_allclose(f.then(weights, more)(X), f(X) @ weights + more, atol=1e-12)
    np.testing.assert_allclose(f.then(weights)(X), f(X) @ weights, atol=1e-12)


@given(st.integers(0, 10_000), st.integers(0, 2), st.integers(0, 5))
def test_derivatives_against_finite_differences(seed, directions, linear):
    rng = np.random.default_rng(seed)
    X = table(rng, 20)
    f = function(rng, X, outputs=2, directions=directions, linear=linear)
    T, step = rng.normal(size=(9, 5)), 1e-5

    def value(T, output):
        return f.basis.columns(T) @ f.coef[:, output] + T @ f.slopes[:, output]

    for output in range(2):
        found = f.derivatives(T, output)
        for a in range(5):
            move = step * np.eye(5)[a]
            expected = (value(T + move, output) - value(T - move, output)) / (2 * step)
            np.testing.assert_allclose(found[:, a], expected, atol=1e-7)


def test_importances_are_those_of_the_prepared_columns(rng):
    X = table(rng, 200)
    f = function(rng, X, outputs=2)
    assert differentiable(f)
    T, values = f.basis.prepared(X), f(X)
    expected = sum(
        T.var(axis=0) * np.mean(f.derivatives(T, c) ** 2, axis=0) / values[:, c].var() for c in range(2)
    )  # fmt: skip
    found = feature_importances(f, Samples.of(X))
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-10)
    assert found[2] == 0
    # units do not matter
    t, unit = f.basis.preparation, np.array([1.0, 10.0, 1.0, 1e-3, 1e6])
    scaled = replace(f, basis=replace(f.basis, preparation=Preparation(t.knots * unit, t.values)))
    np.testing.assert_allclose(feature_importances(scaled, Samples.of(X * unit)), found, rtol=1e-9)


def test_other_libraries_precisions_and_sparse_rows(rng, foreign):
    to, back = foreign
    X = table(rng)
    f = function(rng, X, outputs=2)
    truth = f(X)
    found = f(to(X))
    assert type(found) is type(to(X))
    np.testing.assert_allclose(back(found), truth, atol=1e-12)
    np.testing.assert_allclose(back(f.like(to(X)).basis.features(to(X))), f.basis.features(X), atol=1e-12)
    small = f.in_precision(np.float32)
    assert small(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(small(X), truth, atol=1e-4 * np.ptp(truth))
    np.testing.assert_array_equal(f(sp.csr_array(X)), truth)
    np.testing.assert_allclose(back(f.like(to(X)).vectors), f.vectors, atol=1e-12)


def test_novelty_looks_at_prepared_columns(rng):
    X = table(rng)
    t = preparation(X)
    selector = FeatureVectorSelector(kernel=Gaussian(1.5), max_vectors=10).fit(t(X))
    scores = HeldOutScores.of(rng.uniform(size=20))
    plain, prepared = Novelty(selector.basis_, scores), Novelty(selector.basis_, scores, t)
    np.testing.assert_array_equal(prepared(X), plain(t(X)))
    np.testing.assert_allclose(prepared.vectors, X[selector.indices_], atol=1e-9)
    assert plain.vectors is selector.basis_.vectors
    assert prepared.blind is None
    strict = prepared(array_api_strict.asarray(X))
    np.testing.assert_allclose(np.asarray(strict), prepared(X), atol=1e-12)


def test_a_function_without_vectors_is_linear(rng):
    X = table(rng)
    made = basis(rng, X)
    none = replace(made, vectors=made.vectors[:0], inverse_widths=made.inverse_widths[:0])
    f = GaussianExpansion(none, np.zeros((0, 1)), rng.normal(size=(5, 1)), np.ones(1))
    np.testing.assert_allclose(f(X), made.prepared(X) @ f.slopes + 1, atol=1e-12)
    assert f.n_vectors == 0


def test_bytes_count_what_a_prediction_needs(rng):
    X = table(rng)
    f = function(rng, X, outputs=2)
    count = 7 * 5 + 5 + 5 * 2 + 7 + 2 * 6 * 5 + 7 * 2 + 5 * 2 + 2
    assert f.nbytes == 8 * count


@pytest.mark.parametrize("name", ["knots", "values"])
def test_a_preparation_that_descends_is_an_error(name, rng):
    t = preparation(table(rng))
    t.check()
    with pytest.raises(ValueError, match=f"the {name} of a preparation must ascend"):
        replace(t, **{name: getattr(t, name)[::-1]}).check()
    with pytest.raises(ValueError, match="at least one knot"):
        Preparation(t.knots[:0], t.values[:0]).check()
