r"""kFDA_1 solved exactly, instead of by the iteration (8).

For ``q = 1`` the objective (5) is the lasso (two classes) or the group lasso over rows (several). Under the iteration
(8) a component converges to zero only linearly, so the support is undefined at any practical stop. An active-set method
ends with exact zeros and a duality gap that certifies the solution.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fewkern.arrays.linalg import divide_where, solve_shifted
from fewkern.arrays.namespace import Array, eps
from fewkern.core.path import Stop
from fewkern.fisher.problem import ActiveSet, Ending, PenalizedProblem, row_norms

# Rounds of adding violators, for several targets also steps within a round; and steps of (8) in lq.py.
MAX_ITERATIONS = 1000

# Relative duality gap at which to stop: one target; several targets, or a solution that only serves as a start.
_RELATIVE_GAP, COARSE_RELATIVE_GAP = 1e-7, 1e-5
# The gap is a difference of numbers of the size of |Y|^2: this multiple of their rounding is the smallest tolerance.
_MIN_GAP_IN_EPS = 1e3
# Violators that join per round; a quarter of the support if that is more, so that dense solutions need few rounds.
_MIN_VIOLATORS_PER_ROUND = 10
# Coefficient of a component that has just joined: far below any other, far above the subnormal numbers of float32.
_NEW_COEF = 1e-30
# Shift of a support's Gram matrix, in units of its mean diagonal, for nearly dependent columns.
_SHIFT_IN_MEAN_DIAGONAL = 1e-12
# The group lasso on a support is solved to this share of the tolerance of the gap on all columns.
_INNER_GAP_SHARE = 0.3
# Steps of (8) per sweep over single rows of the group lasso.
_STEPS_PER_SWEEP = 3
# Anderson extrapolation: number of steps that are combined, and the shift of its equations in units of their trace.
_ANDERSON_STEPS, _ANDERSON_SHIFT_IN_TRACE = 5, 1e-10


def duality_gap(active: ActiveSet, residual_corr: Array, value: float, lam: float) -> float:
    r"""Relative duality gap :math:`(P - D) / (\|Y\|^2 / 2)`.

    The dual point is the residual, scaled so that no column is correlated with it by more than ``lam``.

    Parameters
    ----------
    active : ActiveSet
    residual_corr : array of shape (j, p)
        Correlations of columns with the residual: of all columns, or of the active ones only.
    value : float
        Objective at ``active``.
    lam : float
    """
    square = active.problem.square
    fit = 2.0 * (value - lam * float(np.sum(row_norms(active.W))))
    scale = lam / max(lam, float(np.max(row_norms(residual_corr), initial=0.0)))
    along = square - float(np.sum(active.B * active.W))
    # |Y|^2 - |Y - scale R|^2 with <Y, R> = along
    dual = (2.0 * scale * along - scale * scale * fit) / 2
    return (value - dual) / max(square / 2, float(np.finfo(residual_corr.dtype).tiny))


def lasso_rows(
    problem: PenalizedProblem,
    lam: float,
    start: ActiveSet | None = None,
    *,
    tol: float | None = None,
) -> tuple[ActiveSet, tuple[float, ...], Ending]:
    r"""Minimize :math:`\tfrac12\|Y - A W\|_F^2 + \lambda \sum_i \|W_i\|_2`.

    Parameters
    ----------
    problem : PenalizedProblem
    lam : float
        :math:`\rho N`.
    start : ActiveSet or None
        Solution at a larger ``lam``, for a path.
    tol : float or None
        Relative duality gap at which to stop; None is 1e-7 for one target, 1e-5 for several (1e-4 in float32).

    Returns
    -------
    active : ActiveSet
        The rows that differ from zero, ascending.
    objectives : tuple of float
        After every round.
    ending : Ending
        The criterion is the relative duality gap.

    Notes
    -----
    ``m k + k^3`` per round, with ``m`` columns and a support of ``k``.
    """
    single = problem.correlations.shape[1] == 1
    if tol is None:
        tol = _RELATIVE_GAP if single else COARSE_RELATIVE_GAP
    tol = max(tol, _MIN_GAP_IN_EPS * eps(problem.gram))
    active = ActiveSet.empty(problem) if start is None else start
    trace: list[float] = []
    stop, gap = Stop.MAX_ITER, 1.0
    for _ in range(MAX_ITERATIONS):
        settled = True
        if single:
            active = _signed_support(active, lam)
        else:
            active, settled = _row_support(active, lam, _INNER_GAP_SHARE * tol)
        value = active.objective(lam, 1.0)
        residual_corr = active.gradient()
        gap = duality_gap(active, residual_corr, value, lam)
        stalled = bool(trace) and value >= trace[-1] - eps(problem.gram) * abs(value)
        trace.append(value)
        if gap <= tol:
            stop = Stop.CONVERGED
            break
        new = _violators(active.S, residual_corr, lam)
        if not len(new) or stalled:
            stop = Stop.PRECISION if settled else Stop.MAX_ITER
            break
        active = _join(active, new, residual_corr, lam)
    return active.sorted(), tuple(trace), Ending(stop, len(trace), "relative duality gap", gap, tol)


def _violators(S: Array, residual_corr: Array, lam: float) -> Array:
    """Components outside ``S`` whose correlation with the residual exceeds ``lam``, the largest first."""
    size = row_norms(residual_corr)
    size[S] = 0.0
    above = np.flatnonzero(size > lam * (1 + 10 * eps(residual_corr)))
    count = max(_MIN_VIOLATORS_PER_ROUND, len(S) // 4)
    return above[np.argsort(-size[above], kind="stable")[:count]]


def _join(active: ActiveSet, new: Array, residual_corr: Array, lam: float) -> ActiveSet:
    """Append the components ``new``: at zero with the sign of their correlation, or (rows) near their own minimum."""
    own = residual_corr[new]
    if own.shape[1] == 1:
        # a number so small that it changes nothing but carries the sign
        return active.join(new, np.copysign(np.full_like(own, _NEW_COEF), own))
    # a fraction of the step that each would take alone: together they might overshoot
    shrink = (1.0 - lam / row_norms(own)) / np.diagonal(active.problem.gram)[new] / len(new)
    return active.join(new, own * shrink[:, None])


def _signed_support(active: ActiveSet, lam: float) -> ActiveSet:
    """Minimize over the active components with their signs held, removing each that would change sign (methods K4)."""
    while active.size:
        G, W = active.G, active.W
        sign = np.sign(W)
        jitter = _SHIFT_IN_MEAN_DIAGONAL * float(np.trace(G)) / active.size
        step = solve_shifted(G, active.B - G @ W - lam * sign, jitter)
        ahead = W + step
        crossing = ahead * sign <= 0
        if not np.any(crossing):
            return active.at(ahead)
        size = np.abs(W)
        wrong = crossing & (size <= _NEW_COEF)
        if np.any(wrong):  # components that have just joined
            active = active.where(~wrong[:, 0])
            continue
        reach = divide_where(crossing, size, np.abs(step), 1.0)
        first = np.min(reach)
        active = active.at(W + first * step).where(~(crossing & (reach <= first))[:, 0])
    return active


def majorize_step(active: ActiveSet, lam: float, q: float) -> ActiveSet:
    r"""(8): :math:`\Psi (\Psi G \Psi + \rho N q I)^{-1} \Psi \tilde K' Y`, :math:`\Psi = diag |\Omega_i|^{(2-q)/2}`."""
    psi = (row_norms(active.W) ** ((2.0 - q) / 2))[:, None]
    return active.at(psi * solve_shifted(psi * active.G * psi.T, psi * active.B, lam * q))


def _row_support(active: ActiveSet, lam: float, tol: float) -> tuple[ActiveSet, bool]:
    """Minimize over the active rows (group lasso): steps of (8) with q = 1, sweeps over single rows, extrapolation.

    (8) moves all rows together but is slow where a row is near zero; a sweep minimizes over such rows in closed form.
    J never rises. Also returns whether it ended before its limit of steps.
    """
    before = float("inf")
    past: list[Array] = []
    for turn in range(MAX_ITERATIONS):
        if not active.size:
            return active, True
        active = majorize_step(active, lam, 1.0)
        count = active.size
        if turn % _STEPS_PER_SWEEP == _STEPS_PER_SWEEP - 1:
            active = _sweep_rows(active, lam)
        past = [*past, active.W] if active.size == count else [active.W]
        value = active.objective(lam, 1.0)
        if len(past) > _ANDERSON_STEPS:
            ahead = active.at(_extrapolate(past))
            value_ahead = ahead.objective(lam, 1.0)
            if value_ahead < value:
                active, value = ahead, value_ahead
            past = [active.W]
        gap = duality_gap(active, active.B - active.G @ active.W, value, lam)
        if gap <= tol or before - value <= eps(active.W) * value:
            return active, True
        before = value
    return active, False


def _extrapolate(past: list[Array]) -> Array:
    """Anderson's combination of iterates: the weights, adding up to one, that make the combined step smallest."""
    steps = np.stack([(b - a).ravel() for a, b in pairwise(past)])
    U = steps @ steps.T
    shift = _ANDERSON_SHIFT_IN_TRACE * float(np.trace(U))
    z = solve_shifted(U, np.ones((len(U), 1), dtype=U.dtype), shift)[:, 0]
    shares = z / np.sum(z)
    return np.sum([share * W for share, W in zip(shares, past[1:])], axis=0)


def _sweep_rows(active: ActiveSet, lam: float) -> ActiveSet:
    """Set every row, one after another, to its exact minimum with the others held; drop those that are zero there."""
    G = active.G
    C = active.B - G @ active.W
    rows = list(active.W)
    for i, old in enumerate(rows):
        own = G[i, i]
        partial = C[i] + own * old
        size = float(np.sqrt(np.sum(partial * partial)))
        rows[i] = np.zeros_like(old) if size <= lam else partial * ((1.0 - lam / size) / own)
        C = C + np.outer(G[:, i], old - rows[i])
    W = np.stack(rows)
    return active.at(W).where(row_norms(W) > 0)
