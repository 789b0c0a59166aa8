"""What must hold for every sparse kernel Fisher discriminant, whatever the data."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fewkern.fisher.forward import forward_columns
from fewkern.kernels import Gaussian
from tests.fisher import helpers
from tests.fisher.helpers import dense
from tests.oracles import kfd

RELAXED = settings(max_examples=40, deadline=None)


@st.composite
def problems(draw, targets=1):
    n = draw(st.integers(8, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.standard_normal((n, draw(st.integers(1, 3))))
    K = Gaussian(length_scale=draw(st.floats(0.3, 3.0)))(X, X)
    if targets == 1:
        y = rng.permutation(np.r_[0, 1, rng.integers(0, 2, n - 2)])
        return K, kfd.targets(y)[:, None], rng
    return K, rng.standard_normal((n, targets)), rng


PENALTY = st.floats(1e-3, 0.3)
POWER = st.sampled_from([0.3, 0.5, 0.7, 1.0, 1.5])
START = st.sampled_from([None, "ridge"])


@RELAXED
@given(problems(targets=1) | problems(targets=2), PENALTY, POWER, START)
def test_objective_never_rises_and_is_what_it_says(data, rho, q, start):
    K, Y, _ = data
    fit = helpers.fit(K, Y, penalty=rho, q=q, start=start)
    values = np.array(fit.objectives)
    assert np.all(np.diff(values) <= 1e-9 * values[0])
    exact = kfd.objective(K, Y, dense(fit, K.shape[1]), rho, q, False)
    np.testing.assert_allclose(fit.objective, exact, rtol=1e-8, atol=1e-10)


@RELAXED
@given(problems(), PENALTY, POWER, START)
def test_free_bias_leaves_residuals_that_sum_to_zero(data, rho, q, start):
    K, Y, _ = data
    fit = helpers.fit(K, Y, penalty=rho, q=q, start=start)
    residual = Y - kfd.augmented(K) @ dense(fit, K.shape[1])
    assert abs(residual.sum()) <= 1e-8 * np.abs(Y).sum()


@RELAXED
@given(problems(), PENALTY, POWER, START)
def test_swapping_the_classes_changes_only_the_sign(data, rho, q, start):
    K, Y, _ = data
    a, b = helpers.fit(K, Y, penalty=rho, q=q, start=start), helpers.fit(K, -Y, penalty=rho, q=q, start=start)
    np.testing.assert_array_equal(a.support, b.support)
    np.testing.assert_allclose(a.coef, -b.coef, rtol=1e-9, atol=1e-12)


@RELAXED
@given(problems(), PENALTY)
def test_permuting_the_samples_permutes_the_solution(data, rho):
    K, Y, rng = data
    p = rng.permutation(len(Y))
    a, b = helpers.fit(K, Y, penalty=rho, q=1), helpers.fit(K[np.ix_(p, p)], Y[p], penalty=rho, q=1)
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-6)
    # both are within the duality gap of the one function that is best
    f = kfd.augmented(K) @ dense(a, len(Y)) - kfd.augmented(K[:, p]) @ dense(b, len(Y))
    assert np.sum(f**2) <= 1e-5 * np.sum(Y**2)


@RELAXED
@given(problems(), PENALTY, st.sampled_from([0.3, 0.5, 0.7]), START)
def test_no_component_below_the_second_order_bound(data, rho, q, start):
    K, Y, _ = data
    fit = helpers.fit(K, Y, penalty=rho, q=q, start=start, tol=1e-12)
    bound = kfd.second_order_bound(K, rho, q, center=True)[fit.support]
    assert np.all(np.abs(fit.coef[:, 0]) >= bound * (1 - 1e-3))


@RELAXED
@given(problems(), PENALTY, POWER)
def test_weight_two_is_a_repeated_row(data, rho, q):
    K, Y, rng = data
    n = len(Y)
    w = rng.integers(1, 4, n).astype(float)
    rows = np.repeat(np.arange(n), w.astype(int))
    a = helpers.fit(K, Y, penalty=rho, q=q, weights=w, start="ridge")
    b = helpers.fit(K[rows], Y[rows], penalty=rho, q=q, start="ridge")
    np.testing.assert_allclose(a.objective / n, b.objective / len(rows), rtol=1e-6)


@RELAXED
@given(problems(targets=1) | problems(targets=3), st.integers(1, 12))
def test_forward_selection_lowers_the_residual_and_adds_up(data, limit):
    K, Y, _ = data
    path = forward_columns(K, Y, limit=limit)
    ratios = np.array(path.ratios)
    assert np.all(ratios >= -1e-12)
    assert len(set(path.order.tolist())) == len(path.order)
    residual = Y - path.discriminant(limit).values(K)
    np.testing.assert_allclose(ratios.sum(), 1 - np.sum(residual**2) / np.sum(Y**2), atol=1e-6)
