r"""kFDA_1 solved exactly, instead of by the iteration (8).

For ``q = 1`` the objective (5) is the lasso (two classes) or the group lasso over rows (many). The iteration (8) lets
a component die only at a linear rate, which leaves the support undefined at any practical stop; an active set ends
with exact zeros and a duality gap that proves the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fewkern.arrays.linalg import divide_where, solve_shifted
from fewkern.arrays.namespace import Array, eps
from fewkern.core.trace import Stop
from fewkern.fisher.problem import ActiveSet, Ending, PenalizedProblem, row_norms

__all__ = ["LassoFit", "duality_gap", "lasso_rows"]

# Relative duality gap at which to stop: one target, several targets.
_GAP, _GAP_ROWS = 1e-7, 1e-5
# The gap is a difference of numbers of the size of |Y|^2: nothing below so many units of their rounding can be asked.
_ROUNDING = 1e3
# Violators that join at once; more when the support is already large, so that dense solutions need few rounds.
_BATCH = 10
# Marks a newcomer: far below any coefficient, far above the subnormal numbers, of float32 too.
_TINY = 1e-30
# Shift of a support's Gram matrix, in units of its mean diagonal, for nearly dependent columns.
_SHIFT = 1e-12
# The row lasso on a support is solved to this part of the gap that is asked for on all columns.
_INNER = 0.3
# Every so many steps of (8) the row lasso sweeps over single rows.
_SWEEP = 3
# Iterates that an extrapolation looks back on, and the shift of its equations in units of their trace.
_MEMORY, _ANDERSON = 5, 1e-10


@dataclass(frozen=True)
class LassoFit:
    """Solution for ``q = 1``."""

    active: ActiveSet
    """The rows that differ from zero, ascending."""
    objectives: tuple[float, ...]
    """After every round."""
    ending: Ending
    """The criterion is the relative duality gap."""

    @property
    def gap(self) -> float:
        """Relative duality gap at the solution."""
        return self.ending.reached


def duality_gap(active: ActiveSet, pull: Array, value: float, lam: float) -> float:
    r"""Relative duality gap :math:`(P - D) / (\|Y\|^2 / 2)`.

    The dual point is the residual scaled until no column is correlated with it by more than ``lam``.

    Parameters
    ----------
    active : ActiveSet
    pull : array of shape (j, p)
        Correlations of columns with the residual: of all columns, or of the active ones only.
    value : float
        Objective at ``active``.
    lam : float
    """
    square = active.problem.square
    fit = 2.0 * (value - lam * float(np.sum(row_norms(active.W))))
    largest = float(np.max(row_norms(pull))) if pull.shape[0] else 0.0
    scale = min(1.0, lam / largest) if largest > 0 else 1.0
    along = square - float(np.sum(active.B * active.W)) if active.size else square
    # |Y|^2 - |Y - scale R|^2 with <Y, R> = along
    dual = (2.0 * scale * along - scale * scale * fit) / 2
    return (value - dual) / max(square / 2, float(np.finfo(pull.dtype).tiny))


def lasso_rows(
    problem: PenalizedProblem,
    lam: float,
    start: ActiveSet | None = None,
    *,
    tol: float | None = None,
    max_iter: int = 1000,
) -> LassoFit:
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
    max_iter : int
        Rounds of adding violators, and for several targets also steps within a round.

    Notes
    -----
    Needs ``A'R`` once a round and otherwise only the active columns: ``n k^2 + k^3`` for a support of ``k``.
    """
    single = problem.target.shape[1] == 1
    if tol is None:
        tol = _GAP if single else _GAP_ROWS
    tol = max(tol, _ROUNDING * eps(problem.columns))
    active = ActiveSet.empty(problem) if start is None else start
    trace: list[float] = []
    stop, gap = Stop.MAX_ITER, 1.0
    for _ in range(max_iter):
        settled = True
        if single:
            active = _signed_support(active, lam)
        else:
            active, settled = _row_support(active, lam, _INNER * tol, max_iter)
        value = active.objective(lam, 1.0)
        pull = active.gradient()
        gap = duality_gap(active, pull, value, lam)
        stalled = bool(trace) and value >= trace[-1] - eps(problem.columns) * abs(value)
        trace.append(value)
        if gap <= tol:
            stop = Stop.CONVERGED
            break
        new = _violators(active.S, pull, lam)
        if not len(new) or stalled:
            stop = Stop.PRECISION if settled else Stop.MAX_ITER
            break
        active = _join(active, new, pull, lam)
    return LassoFit(active.sorted(), tuple(trace), Ending(stop, len(trace), "relative duality gap", gap, tol))


def _violators(S: Array, pull: Array, lam: float) -> Array:
    """The components outside ``S`` pulled hardest beyond ``lam``, best first."""
    size = row_norms(pull)
    size[S] = 0.0
    above = np.flatnonzero(size > lam * (1 + 10 * eps(pull)))
    count = max(_BATCH, len(S) // 4)
    return above[np.argsort(-size[above], kind="stable")[:count]]


def _join(active: ActiveSet, new: Array, pull: Array, lam: float) -> ActiveSet:
    """Append the components ``new``: at zero with the sign of their pull, or (rows) at their own minimum."""
    own = pull[new]
    if own.shape[1] == 1:
        # zero, marked with its sign: the smallest number keeps the sign and changes nothing
        return active.join(new, np.copysign(np.full_like(own, _TINY), own))
    # a fraction of the step each would take alone: together they might overshoot
    shrink = (1.0 - lam / row_norms(own)) / active.problem.norms_of(new) / len(new)
    return active.join(new, own * shrink[:, None])


def _signed_support(active: ActiveSet, lam: float) -> ActiveSet:
    """Minimize over the active components with their signs held, removing each that would change sign (methods K4)."""
    while active.size:
        G, W = active.G, active.W
        sign = np.sign(W)
        jitter = _SHIFT * float(np.trace(G)) / active.size
        step = solve_shifted(G, active.B - G @ W - lam * sign, jitter)
        ahead = W + step
        crossing = ahead * sign <= 0
        if not np.any(crossing):
            return active.at(ahead)
        size = np.abs(W)
        wrong = crossing & (size <= _TINY)
        if np.any(wrong):  # newcomers
            active = active.where(~wrong[:, 0])
            continue
        reach = divide_where(crossing, size, np.abs(step), 1.0)
        first = np.min(reach)
        active = active.at(W + first * step).where(~(crossing & (reach <= first))[:, 0])
    return active


def _row_support(active: ActiveSet, lam: float, tol: float, max_iter: int) -> tuple[ActiveSet, bool]:
    """Minimize over the active rows (group lasso): steps of (8) with q = 1, sweeps over single rows, extrapolation.

    (8) moves all rows together but is slow where a row is about to die or has just been born; a sweep settles
    such rows in closed form. J never rises. Also returns whether it ended before ``max_iter`` steps.
    """
    before = float("inf")
    past: list[Array] = []
    for turn in range(max_iter):
        if not active.size:
            return active, True
        root = np.sqrt(row_norms(active.W))[:, None]
        active = active.at(root * solve_shifted(root * active.G * root.T, root * active.B, lam))
        count = active.size
        if turn % _SWEEP == _SWEEP - 1:
            active = _sweep_rows(active, lam)
        if not active.size:
            return active, True
        past = [*past, active.W] if active.size == count else [active.W]
        value = active.objective(lam, 1.0)
        if len(past) > _MEMORY:
            ahead = active.at(_extrapolate(past))
            value_ahead = ahead.objective(lam, 1.0)
            if value_ahead < value and np.all(row_norms(ahead.W) > 0):
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
    size = float(np.trace(U))
    k = len(U)
    if not size > 0:
        return past[-1]
    z = solve_shifted(U, np.ones((k, 1), dtype=U.dtype), _ANDERSON * size)[:, 0]
    z = z / np.sum(z)
    total = np.zeros_like(past[0])
    for j in range(k):
        total = total + z[j] * past[j + 1]
    return total


def _sweep_rows(active: ActiveSet, lam: float) -> ActiveSet:
    """Set every row, one after another, to its exact minimum with the others held; drop those that are zero there."""
    G = active.G
    C = active.B - G @ active.W
    rows = [active.W[i, :] for i in range(active.size)]
    for i, old in enumerate(rows):
        own = G[i, i]
        pull = C[i, :] + own * old
        size = float(np.sqrt(np.sum(pull * pull)))
        rows[i] = np.zeros_like(old) if size <= lam else pull * ((1.0 - lam / size) / own)
        C = C + G[:, i][:, None] * (old - rows[i])[None, :]
    W = np.stack(rows)
    return active.at(W).where(row_norms(W) > 0)
