r"""kFDA_1 solved exactly, instead of by the iteration (8).

For ``q = 1`` the objective (5) is the lasso (two classes) or the group lasso over rows (many). The iteration (8) lets
a component die only at a linear rate, which leaves the support undefined at any practical stop; an active set ends
with exact zeros and a duality gap that proves the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from fewkern.backend.linalg import solve_shifted
from fewkern.backend.namespace import Array, device, eps, namespace, to_numpy
from fewkern.fisher.problem import PenalizedProblem, indices_like, objective, row_norms

__all__ = ["LassoFit", "duality_gap", "lasso_rows"]

# Violators that join at once; more when the support is already large, so that dense solutions need few rounds.
_BATCH = 10


@dataclass(frozen=True)
class LassoFit:
    """Solution for ``q = 1``: rows ``W`` on the components ``S``, all others exactly zero."""

    S: Array
    W: Array
    objective: float
    objectives: tuple[float, ...]
    gap: float
    status: str
    """"converged", "stalled" (rounding allows no further descent) or "max_iter"."""


def duality_gap(
    problem: PenalizedProblem, primal: float, fit: float, S: Array, W: Array, C: Array, lam: float
) -> float:
    r"""Relative duality gap :math:`(P - D) / (\|Y\|^2 / 2)` at a residual ``R`` with correlations ``C = A'R``.

    The dual point is the residual scaled until no column is correlated with it by more than ``lam``.
    ``fit`` is :math:`\|R\|^2`.
    """
    xp = namespace(C)
    largest = float(xp.max(row_norms(C))) if C.shape[0] else 0.0
    scale = min(1.0, lam / largest) if largest > 0 else 1.0
    along = (
        problem.square - float(xp.sum(xp.take(problem.correlations, S, axis=0) * W)) if S.shape[0] else problem.square
    )
    # |Y|^2 - |Y - scale R|^2 with <Y, R> = along
    dual = (2.0 * scale * along - scale * scale * fit) / 2
    return (primal - dual) / max(problem.square / 2, 1e-300)


def lasso_rows(
    problem: PenalizedProblem,
    lam: float,
    *,
    start: tuple[Array, Array] | None = None,
    tol: float | None = None,
    max_iter: int = 1000,
) -> LassoFit:
    r"""Minimise :math:`\tfrac12\|Y - A W\|_F^2 + \lambda \sum_i \|W_i\|_2`.

    Parameters
    ----------
    problem : PenalizedProblem
    lam : float
        :math:`\rho N`.
    start : (S, W) or None
        Solution at a larger ``lam``, for a path.
    tol : float or None
        Relative duality gap at which to stop; None is 1e-7 for one target, 1e-5 for several (1e-4 in float32).
    max_iter : int
        Rounds of adding violators.

    Notes
    -----
    Needs ``A'R`` once a round and otherwise only the active columns: ``n k^2 + k^3`` for a support of ``k``.
    """
    xp = namespace(problem.columns)
    single = problem.target.shape[1] == 1
    if tol is None:
        tol = 1e-7 if single else 1e-5
    # the gap is a difference of numbers of the size of |Y|^2, so nothing below their rounding can be asked for
    tol = max(tol, 1e3 * eps(problem.columns))
    S, W = (indices_like([], problem.columns), problem.correlations[:0, :]) if start is None else start
    G = problem.gram_of(S)
    solve = _signed_support if single else _row_support
    trace: list[float] = []
    status = "max_iter"
    value, gap = problem.square / 2, 1.0
    for _ in range(max_iter):
        S, W, G = solve(problem, S, W, G, lam, tol)
        B = xp.take(problem.correlations, S, axis=0)
        value = objective(problem, W, G, B, lam, 1.0)
        fit = 2.0 * (value - lam * float(xp.sum(row_norms(W))))
        C = problem.gradient(S, W)
        gap = duality_gap(problem, value, fit, S, W, C, lam)
        stalled = bool(trace) and value >= trace[-1] - eps(problem.columns) * abs(value)
        trace.append(value)
        if gap <= tol:
            status = "converged"
            break
        new = _violators(S, C, lam)
        if not new or stalled:
            status = "stalled"
            break
        S, W, G = _join(problem, S, W, G, new, C, lam, single)
    kept = xp.nonzero(row_norms(W) > 0)[0]
    S, W = xp.take(S, kept), xp.take(W, kept, axis=0)
    order = xp.argsort(S)
    return LassoFit(xp.take(S, order), xp.take(W, order, axis=0), value, tuple(trace), gap, status)


def _violators(S: Array, C: Array, lam: float) -> list[int]:
    """The components outside ``S`` pulled hardest beyond ``lam``, best first."""
    pull = to_numpy(row_norms(C)).copy()
    pull[to_numpy(S)] = 0.0
    above = (pull > lam * (1 + 10 * eps(C))).nonzero()[0]
    count = max(_BATCH, int(S.shape[0]) // 4)
    order = (-pull[above]).argsort(kind="stable")[:count]
    return [int(i) for i in above[order]]


def _join(
    problem: PenalizedProblem, S: Array, W: Array, G: Array, new: list[int], C: Array, lam: float, single: bool
) -> tuple[Array, Array, Array]:
    """Append the components ``new``: at zero with the sign of their pull, or (rows) at their own minimum."""
    xp = namespace(C)
    N = indices_like(new, problem.columns)
    pull = xp.take(C, N, axis=0)
    if single:
        # zero, marked with its sign: the smallest number keeps the sign and changes nothing
        first = xp.where(pull > 0, xp.full_like(pull, _TINY), xp.full_like(pull, -_TINY))
    else:
        # a fraction of the step each would take alone: together they might overshoot
        size = row_norms(pull)
        shrink = (1.0 - lam / size) / problem.norms_of(N) / len(new)
        first = pull * shrink[:, None]
    joined = xp.concat([S, N])
    if problem.gram is not None:
        return joined, xp.concat([W, first], axis=0), problem.gram_of(joined)
    A_new = problem.take(N)
    corner = A_new.T @ A_new
    if S.shape[0]:
        cross = problem.take(S).T @ A_new
        G = xp.concat([xp.concat([G, cross], axis=1), xp.concat([cross.T, corner], axis=1)], axis=0)
    else:
        G = corner
    return joined, xp.concat([W, first], axis=0), G


# Marks a newcomer: far below any coefficient, far above the subnormal numbers, of float32 too.
_TINY = 1e-30


def _keep(S: Array, W: Array, G: Array, mask: Array) -> tuple[Array, Array, Array]:
    xp = namespace(W)
    kept = xp.nonzero(mask)[0]
    return xp.take(S, kept), xp.take(W, kept, axis=0), xp.take(xp.take(G, kept, axis=0), kept, axis=1)


def _signed_support(
    problem: PenalizedProblem, S: Array, W: Array, G: Array, lam: float, tol: float
) -> tuple[Array, Array, Array]:
    """Minimise over the components ``S`` with their signs held, removing each that would change sign (methods K4)."""
    del tol
    xp = namespace(W)
    while S.shape[0]:
        sign = xp.sign(W)
        B = xp.take(problem.correlations, S, axis=0)
        jitter = 1e-12 * float(xp.mean(xp.linalg.diagonal(G)))
        step = solve_shifted(G, B - G @ W - lam * sign, jitter)
        newcomer = xp.abs(W) <= _TINY
        wrong = newcomer & (step * sign < 0)
        if bool(xp.any(wrong)):
            S, W, G = _keep(S, W, G, ~wrong[:, 0])
            continue
        crossing = ~newcomer & ((W + step) * sign <= 0)
        if not bool(xp.any(crossing)):
            return S, W + step, G
        reach = xp.where(crossing, xp.abs(W) / xp.where(crossing, xp.abs(step), xp.ones_like(W)), xp.ones_like(W))
        first = xp.min(reach)
        W = W + first * step
        S, W, G = _keep(S, W, G, ~(crossing & (reach <= first))[:, 0])
    return S, W, G


def _row_support(
    problem: PenalizedProblem, S: Array, W: Array, G: Array, lam: float, tol: float
) -> tuple[Array, Array, Array]:
    """Minimise over the rows ``S`` (group lasso): steps of (8) with q = 1, sweeps over single rows, extrapolation.

    (8) moves all rows together but is slow where a row is about to die or has just been born; a sweep settles
    such rows in closed form. J never rises.
    """
    xp = namespace(W)
    before = float("inf")
    past: list[Array] = []
    for turn in range(1000):
        if not S.shape[0]:
            break
        B = xp.take(problem.correlations, S, axis=0)
        root = xp.sqrt(row_norms(W))
        W = root[:, None] * solve_shifted(root[:, None] * G * root[None, :], root[:, None] * B, lam)
        count = int(S.shape[0])
        if turn % 3 == 2:
            S, W, G = _sweep_rows(problem, S, W, G, lam)
        past = [*past, W] if int(S.shape[0]) == count else [W]
        if not S.shape[0]:
            break
        B = xp.take(problem.correlations, S, axis=0)
        value = objective(problem, W, G, B, lam, 1.0)
        if len(past) > _MEMORY:
            ahead = _extrapolate(past)
            past = [W]
            value_ahead = objective(problem, ahead, G, B, lam, 1.0)
            if value_ahead < value and bool(xp.all(row_norms(ahead) > 0)):
                W, value, past = ahead, value_ahead, [ahead]
        fit = 2.0 * (value - lam * float(xp.sum(row_norms(W))))
        gap = duality_gap(problem, value, fit, S, W, B - G @ W, lam)
        if gap <= 0.3 * tol or before - value <= eps(W) * value:
            break
        before = value
    return S, W, G


# Iterates that an extrapolation looks back on.
_MEMORY = 5


def _extrapolate(past: list[Array]) -> Array:
    """Anderson's combination of iterates: the weights, adding up to one, that make the combined step smallest."""
    xp = namespace(past[0])
    steps = xp.stack([xp.reshape(b - a, (-1,)) for a, b in pairwise(past)])
    U = steps @ steps.T
    size = float(xp.linalg.trace(U))
    k = int(U.shape[0])
    if not size > 0:
        return past[-1]
    one = xp.ones((k, 1), dtype=U.dtype, device=device(U))
    z = solve_shifted(U, one, 1e-10 * size)[:, 0]
    z = z / xp.sum(z)
    total = xp.zeros_like(past[0])
    for j in range(k):
        total = total + z[j] * past[j + 1]
    return total


def _sweep_rows(problem: PenalizedProblem, S: Array, W: Array, G: Array, lam: float) -> tuple[Array, Array, Array]:
    """Set every row, one after another, to its exact minimum with the others held; drop those that are zero there."""
    xp = namespace(W)
    C = xp.take(problem.correlations, S, axis=0) - G @ W
    rows = [W[i, :] for i in range(int(S.shape[0]))]
    for i, old in enumerate(rows):
        own = G[i, i]
        pull = C[i, :] + own * old
        size = float(xp.sqrt(xp.sum(pull * pull)))
        rows[i] = xp.zeros_like(old) if size <= lam else pull * ((1.0 - lam / size) / own)
        C = C + G[:, i][:, None] * (old - rows[i])[None, :]
    W = xp.stack(rows)
    return _keep(S, W, G, row_norms(W) > 0)
