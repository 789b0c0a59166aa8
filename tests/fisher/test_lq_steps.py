"""The parts of the iteration (8), one by one: its step, its bounds, Newton's step and the way out of a saddle."""

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.datasets import make_banana
from fewkern.fisher import lq
from fewkern.fisher.lq import LqSettings, lq_fit, max_penalty, walk_path
from fewkern.fisher.problem import ActiveSet, penalized_problem, ridge_rows
from fewkern.kernels import Gaussian
from tests.oracles import kfd

TARGETS = pytest.mark.parametrize("targets", [1, 3])


def problem(n=30, m=6, targets=1, seed=0, **kwargs):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, m))
    Y = K @ rng.normal(size=(m, targets)) + 0.5 * rng.normal(size=(n, targets))
    return penalized_problem(K, Y, **kwargs)


def active_of(found, seed=1, gram=True):
    W = np.random.default_rng(seed).normal(size=found.correlations.shape)
    return ActiveSet.of(found, np.arange(found.m), W, gram=gram)


def J(active, lam, q, W=None):
    """(5), written out."""
    W = active.W if W is None else W
    A, Y = active.problem.take(active.S), active.problem.target
    return 0.5 * np.sum((Y - A @ W) ** 2) + lam * np.sum(np.linalg.norm(W, axis=1) ** q)


@TARGETS
@pytest.mark.parametrize("q", [0.3, 0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("wide", [False, True])
def test_a_step_minimizes_the_majorizer(q, targets, wide):
    """(8) is the minimum of a quadratic that touches ``J`` at the present point and lies above it elsewhere."""
    found = problem(n=5 if wide else 30, m=8, targets=targets)
    active = active_of(found, gram=not wide)
    assert (active.G is None) == wide
    lam = 0.7
    size = np.linalg.norm(active.W, axis=1)
    A = found.columns
    curvature = np.diag(lam * q * size ** (q - 2))
    exact = np.linalg.solve(A.T @ A + curvature, A.T @ found.target)
    stepped = lq._step(active, lam, q)
    np.testing.assert_allclose(stepped.W, exact, rtol=1e-8, atol=1e-10)
    assert stepped.objective(lam, q) <= J(active, lam, q)


@TARGETS
@pytest.mark.parametrize("q", [0.3, 0.5])
def test_second_derivatives_by_the_lengths(q, targets):
    active = active_of(problem(targets=targets))
    size = np.linalg.norm(active.W, axis=1)
    U, lam, h = active.W / size[:, None], 0.7, 1e-4
    H = lq._hessian(active, lam, q)
    for i in range(6):
        for j in range(6):
            total = 0.0
            for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                moved = size.copy()
                moved[i] += a * h
                moved[j] += b * h
                total += a * b * J(active, lam, q, moved[:, None] * U)
            assert H[i, j] == pytest.approx(total / (4 * h * h), rel=1e-4, abs=1e-3)


def minimum(found, lam, q=0.5):
    """A local minimum with all components, by many small steps."""
    active = active_of(found)
    for _ in range(3000):
        active = lq._step(active, lam, q)
    return active


def test_newtons_step_squares_the_error():
    found = problem()
    lam = 0.02
    exact = minimum(found, lam)
    assert not lq._unsettled(exact, lam, 0.5)
    errors = []
    active = exact.at(exact.W * (1 + 0.05 * np.array([[1], [-1], [1], [1], [-1], [1]])))
    for _ in range(3):
        errors.append(np.abs(active.W - exact.W).max())
        active, value = lq._newton(active, active.objective(lam, 0.5), lam, 0.5)
        assert value == pytest.approx(J(active, lam, 0.5), rel=1e-12)
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] < 1e-3 * errors[1] + 1e-12


def test_newtons_step_is_not_taken_where_it_could_lead_elsewhere():
    found, several = problem(), problem(targets=3)
    lam = 0.02
    exact = minimum(found, lam)
    value = exact.objective(lam, 0.5)
    near = exact.at(exact.W * 1.01)
    # it is taken
    assert lq._newton(near, near.objective(lam, 0.5), lam, 0.5)[0] is not near
    # for q = 1, several targets, columns without their products, an unsettled component, and if J would not fall
    for active, q in ((near, 1.0), (minimum(several, lam), 0.5)):
        assert lq._newton(active, active.objective(lam, q), lam, q) == (active, active.objective(lam, q))
    tiny = near.at(np.where(np.arange(6)[:, None] == 2, 1e-9, near.W))
    assert lq._newton(tiny, tiny.objective(lam, 0.5), lam, 0.5)[0] is tiny
    assert lq._newton(near, value - 1.0, lam, 0.5)[0] is near
    wide = active_of(problem(n=5, m=8), gram=False)
    assert lq._newton(wide, 1.0, lam, 0.5)[0] is wide


def test_newtons_step_keeps_every_sign():
    """One column whose minimum lies beyond zero: the sign would change, so nothing is done."""
    found = penalized_problem(np.linspace(-1, 1, 30)[:, None], np.linspace(-1, 1, 30)[:, None])
    wrong = ActiveSet.of(found, np.arange(1), np.array([[-2.0]]))
    assert lq._newton(wrong, wrong.objective(1e-3, 0.5), 1e-3, 0.5)[0] is wrong


def test_components_at_the_bound_of_dying():
    """Alive exactly where ``|w|^(1-q) |k| (sqrt(2J) + |k||w|) >= q lam / 2``."""
    found = problem()
    active = active_of(found)
    q, value = 0.5, 3.0
    size, norm = np.abs(active.W[:, 0]), np.linalg.norm(found.columns, axis=0)
    bound = size**0.5 * norm * (np.sqrt(2 * value) + norm * size)
    order = np.argsort(bound)
    lam = 2 * (bound[order[2]] + bound[order[3]]) / 2 / q
    alive = lq._alive(active, value, lam, q)
    assert alive.tolist() == (bound >= q * lam / 2).tolist()
    assert alive.sum() == 3


def test_for_q_of_one_only_zero_is_dead_and_above_nothing_dies():
    active = active_of(problem())
    zero = active.at(np.where(np.arange(6)[:, None] < 2, 0.0, active.W))
    assert lq._alive(zero, 1.0, 1e6, 1.0).tolist() == [False] * 2 + [True] * 4
    assert lq._alive(zero, 1.0, 1e6, 1.5).all()


def test_a_component_that_is_dead_only_shrinks():
    """The reason of the bound: without the component the next step is the same or lower, and it never comes back."""
    found = problem(m=4)
    lam, q = 3.0, 0.5
    W = np.array([[1.0], [-0.5], [1e-4], [0.8]])
    active = ActiveSet.of(found, np.arange(4), W)
    alive = lq._alive(active, active.objective(lam, q), lam, q)
    assert not alive[2]
    sizes = [np.abs(W[2, 0])]
    for _ in range(10):
        active = lq._step(active, lam, q)
        sizes.append(abs(float(active.W[2, 0])))
    assert np.all(np.diff(sizes) < 0)


def test_the_second_order_bound():
    """Below ``(lam q (1 - q) / |k|^2)^(1 / (2 - q))`` is ``J`` concave in one coefficient, above convex."""
    found = problem()
    lam, q = 0.9, 0.5
    norms = (found.columns**2).sum(axis=0)
    bound = (lam * q * (1 - q) / norms) ** (1 / (2 - q))
    for factor, expected in ((1.01, False), (0.99, True)):
        active = ActiveSet.of(found, np.arange(6), np.where(np.arange(6) == 3, factor, 2.0)[:, None] * bound[:, None])
        assert lq._unsettled(active, lam, q) is expected
        curvature = np.diag(lq._hessian(active, lam, q))
        assert (curvature[3] < 0) == expected
    assert lq._unsettled(active, lam, 1.0) is False


def twins(n=40):
    """Two columns that do the same job, shared equally: a saddle."""
    t = np.linspace(-1, 1, n)
    found = penalized_problem(np.column_stack([t + 0.1 * t**2, t - 0.1 * t**2]), 4 * t[:, None])
    active = ActiveSet.of(found, np.arange(2), np.ones((2, 1)))
    lam, before = 0.1 * n, np.inf
    while before - active.objective(lam, 0.5) > 1e-9 * before or before == np.inf:
        before = active.objective(lam, 0.5)
        active = lq._step(active, lam, 0.5)
    return active, lam


def test_out_of_a_saddle_goes_down_as_far_as_halvings_allow():
    active, lam = twins()
    value = active.objective(lam, 0.5)
    below = lq._below_saddle(active, value, lam, 0.5)
    assert below is not None
    # the way: along the direction of most negative curvature, by halves of the step at which a component is zero
    size = np.abs(active.W[:, 0])
    V = np.linalg.eigh(lq._hessian(active, lam, 0.5))[1]
    lowest = value
    for way in (V[:, 0], -V[:, 0]):
        longest = 1 / max(-way / size)
        for k in range(12):
            W = np.maximum(size + longest * 0.5**k * way, 0.0)
            W[W < 1e-12] = 0.0
            lowest = min(lowest, J(active, lam, 0.5, W[:, None] * np.sign(active.W)))
    assert below.objective(lam, 0.5) == pytest.approx(lowest, rel=1e-10)
    assert below.objective(lam, 0.5) < value


def test_a_component_that_is_zero_after_the_saddle_is_dropped():
    active, lam = twins()
    below = lq._below_saddle(active, active.objective(lam, 0.5), lam, 0.5)
    assert below.size == np.count_nonzero(below.W)
    if below.size == 1:
        assert below.G.shape == (1, 1)


def test_a_minimum_is_no_saddle():
    found = problem()
    exact = minimum(found, 0.02)
    assert lq._below_saddle(exact, exact.objective(0.02, 0.5), 0.02, 0.5) is None
    active, lam = twins()
    for q in (1.0, 2.0):
        assert lq._below_saddle(active, active.objective(lam, q), lam, q) is None
    assert lq._below_saddle(ActiveSet.empty(found), 1.0, 1.0, 0.5) is None
    # a value that cannot be undercut
    assert lq._below_saddle(active, 0.0, lam, 0.5) is None


def test_a_path_hands_on_the_solutions_for_q_of_one(monkeypatch):
    found = problem()
    starts = []
    rows = lq.lasso_rows
    monkeypatch.setattr(
        lq, "lasso_rows", lambda p, lam, warm=None, **kw: starts.append(warm) or rows(p, lam, warm, **kw)
    )
    for start in ("lasso", "best"):
        starts.clear()
        fits = list(walk_path(found, [0.1, 0.01], LqSettings(q=0.5, start=start)))
        assert starts[0] is None
        assert all(warm is not None for warm in starts[1:])
        assert all(fit.lasso is None for fit in fits)


def test_the_best_start_is_the_lowest_of_three():
    X, y = make_banana(80, random_state=3)
    K = Gaussian(length_scale=1.0)(X, X)
    found = penalized_problem(K, kfd.targets((y > 0).astype(int))[:, None])
    penalty = 0.02
    runs = [lq_fit(found, penalty, LqSettings(start="ridge")).objective]
    warm = None
    for share in (1 / 3, 1 / 10):
        warm = lq.lasso_rows(found, share * penalty * found.n, warm, tol=1e-5).active
        runs.append(lq._majorize_minimize(warm, penalty, LqSettings(), None).objective)
    assert lq_fit(found, penalty, LqSettings(start="best")).objective == pytest.approx(min(runs), rel=1e-12)


def test_what_auto_starts_from():
    one, several = problem(m=6), problem(m=6, targets=3)
    for found, same, other in ((one, "lasso", "ridge"), (several, "ridge", "lasso")):
        auto = lq_fit(found, 0.3, LqSettings(max_iter=1))
        assert auto.objectives == lq_fit(found, 0.3, LqSettings(start=same, max_iter=1)).objectives
        assert auto.objectives != lq_fit(found, 0.3, LqSettings(start=other, max_iter=1)).objectives
    # above one there is one minimum, and the ridge solution is the start
    above = lq_fit(one, 0.3, LqSettings(q=1.5, start="lasso", max_iter=1))
    assert above.objectives == lq_fit(one, 0.3, LqSettings(q=1.5, start="ridge", max_iter=1)).objectives


def test_the_largest_penalty_is_the_largest_correlation():
    found = problem(targets=3)
    assert max_penalty(found) == pytest.approx(np.linalg.norm(found.columns.T @ found.target, axis=1).max() / 30)


@pytest.mark.parametrize("tol", [None, 1e-4, 1e-12, 0.0])
def test_the_tolerance_is_that_asked_for_but_not_below_rounding(tol):
    found = problem()
    fit = lq_fit(found, 0.05, LqSettings(q=1.5, tol=tol))
    assert fit.ending.stop == Stop.CONVERGED
    assert fit.ending.tol == (1e-8 if tol is None else max(tol, 4 * np.finfo(float).eps))
    values = np.array(fit.objectives)
    assert fit.ending.n_iter == len(values)
    changes = -np.diff(values) / values[:-1]
    assert fit.ending.reached == pytest.approx(changes[-1], abs=1e-18)
    assert changes[-1] <= fit.ending.tol
    assert np.all(changes[:-1] > fit.ending.tol)


def test_the_ridge_start_has_the_penalty_of_all_samples():
    found = problem()
    np.testing.assert_allclose(lq._ridge(found, 0.1).W, ridge_rows(found, 3.0))
    exact = np.linalg.solve(found.columns.T @ found.columns + 3.0 * np.eye(6), found.columns.T @ found.target)
    np.testing.assert_allclose(lq._ridge(found, 0.1).W, exact, rtol=1e-9)
