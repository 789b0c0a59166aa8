"""What the two kinds of machines say of their settings, and where their paths lead."""

import numpy as np
import pytest

from fewkern.fisher.families import LARGEST, PENALTIES, ForwardFamily, LqFamily
from fewkern.fisher.forward import forward_columns
from fewkern.fisher.lq import LqSettings, leave_one_out_values, lq_fit
from fewkern.fisher.problem import Begun, penalized_problem
from fewkern.kernels import Gaussian


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) > 0, 1.0, -1.0)[:, None]
    return Gaussian(width=1.0)(X, X), Y, np.ones(60)


def test_penalties_are_two_per_decade():
    np.testing.assert_allclose(np.log10(PENALTIES), np.arange(1, 10) * -0.5)
    assert LARGEST == len(ForwardFamily().settings(1.0, 1.0)) == 100


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0])
def test_penalties_follow_the_units_of_kernel_and_targets(q, columns):
    """A kernel ``a`` times as large and targets ``b`` times as long give the same machine, times ``b / a``."""
    K, Y, weights = columns
    family = LqFamily(LqSettings(q=q, start="ridge", tol=1e-13))
    plain, scaled = family.settings(1.0, 1.0), family.settings(3.0, 2.0)
    assert plain == PENALTIES
    for i in (2, 6):
        one = family.fit(K, Y, weights, plain[i])
        # the settings are for longer targets: stretch times as long
        other = family.fit(3.0 * K, 2.0 * Y, weights, scaled[i])
        np.testing.assert_array_equal(other.machine.support, one.machine.support)
        np.testing.assert_allclose(other.machine.coef, one.machine.coef * 2 / 3, rtol=1e-4, atol=1e-6)


def test_what_is_compared_and_what_is_taken_without_a_comparison():
    half, ridge = LqSettings(q=0.5), LqSettings(q=2.0)
    assert LqFamily(half).thins
    assert LqFamily(LqSettings(q=1.0)).thins
    assert not LqFamily(ridge).thins
    assert not LqFamily(half, penalty=0.1).thins
    assert LqFamily(half).default == 3
    assert LqFamily(half, penalty=0.1).default == 0
    assert LqFamily(half, penalty=0.1).settings(5.0, 2.0) == (0.1,)
    assert ForwardFamily().thins
    assert not ForwardFamily(7).thins
    assert ForwardFamily(7).settings(1.0, 1.0) == (7,)
    assert ForwardFamily(7).default == 0
    assert ForwardFamily().default == 9
    assert ForwardFamily(limit=4).settings(1.0, 1.0) == (1, 2, 3, 4)
    assert ForwardFamily(limit=4).default == 3


def test_sparser_and_between():
    lq, forward = LqFamily(LqSettings()), ForwardFamily()
    assert lq.sparser(PENALTIES[4]) == pytest.approx(PENALTIES[3])
    assert lq.between(0.01, 1.0) == pytest.approx(0.1)
    assert [forward.sparser(k) for k in (5, 2, 1)] == [4, 1, 1]
    assert forward.between(3, 8) == 5


def test_forward_machines_have_one_vector_more_each(columns):
    K, Y, weights = columns
    machines = list(ForwardFamily().path(K, Y, weights, (1, 2, 5)))
    assert [machine.size for machine in machines] == [1, 2, 3, 4, 5]
    path = forward_columns(K, Y, 5, weights=weights)
    for k, machine in enumerate(machines):
        np.testing.assert_allclose(machine.values(K), path.machine(k + 1).values(K))
    fitted = ForwardFamily().fit(K, Y, weights, 3)
    assert fitted.machine.size == 3
    np.testing.assert_allclose(fitted.held_out, forward_columns(K, Y, 3, weights=weights).leave_one_out_values(K, Y))
    assert len(fitted.objectives) >= 3
    assert np.all(np.diff(fitted.objectives) <= 0)


def test_a_share_of_the_targets_ends_a_forward_path(columns):
    K, Y, weights = columns
    whole = forward_columns(K, Y, 20, weights=weights)
    share = (whole.residuals[4] + whole.residuals[5]) / 2 / whole.residuals[0]
    family = ForwardFamily(min_residual=share)
    sizes = [len(list(family.path(K, Y, weights, (20,)))), family.fit(K, Y, weights, 20).machine.size]
    assert sizes == [sizes[0]] * 2
    assert 4 <= sizes[0] <= 6
    assert family.reach(K, Y, weights, (), begun_with(K, Y, 20, 20)).support.shape == (sizes[0],)
    few = begun_with(K, Y, 3, 20)
    assert family.reach(K, Y, weights, (), few) is few
    assert ForwardFamily().reach(K, Y, weights, (), few) is few


@pytest.mark.parametrize("bias", [False, True])
def test_lq_machines_are_those_of_the_path(bias, columns):
    K, Y, weights = columns
    family = LqFamily(LqSettings(q=1.0), penalize_bias=bias)
    settings = (0.1, 0.01)
    problem = penalized_problem(K, Y, weights, penalize_bias=bias)
    for machine, penalty in zip(family.path(K, Y, weights, settings), settings):
        np.testing.assert_allclose(machine.values(K), lq_fit(problem, penalty, LqSettings(q=1.0)).values(K), atol=1e-4)
    fitted = family.fit(K, Y, weights, 0.01)
    fit = lq_fit(problem, 0.01, LqSettings(q=1.0))
    np.testing.assert_allclose(fitted.held_out, leave_one_out_values(K, Y, fit, weights, penalize_bias=bias))


def begun_with(K, Y, size, length):
    """The first ``size`` of ``length`` columns of forward selection."""
    order = forward_columns(K, Y, length).order
    return Begun(order[:size], order)


@pytest.mark.parametrize("q", [0.5, 1.0])
@pytest.mark.parametrize("size", [3, 8])
def test_an_elimination_begins_with_the_first_machine_that_is_large_enough(q, size, columns):
    K, Y, weights = columns
    family = LqFamily(LqSettings(q=q))
    start = begun_with(K, Y, size, 40)
    begun = family.reach(K, Y, weights, PENALTIES, start)
    screened = start.forward[: 3 * size]
    np.testing.assert_array_equal(begun.forward, start.support)
    assert set(begun.support.tolist()) <= set(screened.tolist())
    assert len(begun.support) >= size
    problem = penalized_problem(K[:, screened], Y, weights)
    rough = LqSettings(q=q, tol=1e-5 if q < 1 else None)
    before = [p for p in PENALTIES if p > begun.setting]
    assert all(lq_fit(problem, p, rough).size < size for p in before)
    assert begun.objectives[-1] == pytest.approx(lq_fit(problem, begun.setting, rough).objective, rel=1e-3)


def test_a_rough_solution_is_enough_unless_a_tolerance_is_asked_for(columns):
    K, Y, weights = columns
    start = begun_with(K, Y, 5, 15)
    rough = LqFamily(LqSettings(q=0.5)).reach(K, Y, weights, (0.01,), start)
    fine = LqFamily(LqSettings(q=0.5, tol=1e-12)).reach(K, Y, weights, (0.01,), start)
    assert (rough.ending.tol, fine.ending.tol) == (1e-5, 1e-12)
    assert LqFamily(LqSettings(q=1.0)).reach(K, Y, weights, (0.01,), start).ending.tol == 1e-7


def test_an_elimination_never_begins_with_nothing(columns):
    K, Y, weights = columns
    start = begun_with(K, Y, 4, 12)
    begun = LqFamily(LqSettings(q=1.0)).reach(K, Y, weights, (1e6,), start)
    np.testing.assert_array_equal(begun.support, start.support)


def test_what_is_told_of_the_columns_that_are_left(columns):
    K, Y, weights = columns
    begun = Begun(np.arange(5), np.arange(5), 0.25, (3.0, 2.0), None)
    told = LqFamily(LqSettings()).tell(K[:, :5], Y, weights, begun)
    assert (told.order.tolist(), told.setting, told.objectives) == ([0, 1, 2, 3, 4], 0.25, (3.0, 2.0))
    told = ForwardFamily().tell(K[:, :5], Y, weights, begun)
    path = forward_columns(K[:, :5], Y, 5, weights=weights)
    assert (told.order.tolist(), told.setting) == (path.order.tolist(), path.size)
    assert told.objectives == path.residuals
