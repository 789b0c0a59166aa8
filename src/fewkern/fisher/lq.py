r"""kFDA_q: the majorize-minimize iteration (8) of the KFD paper, on live components only, and its path.

.. math:: J(\Omega) = \tfrac12 \|Y - \tilde K \Omega\|_F^2 + \rho N \sum_i \|\Omega_i\|_2^q, \quad 0 < q \le 2 \quad (5)

With one target column this is the paper's problem; with ``C - 1`` columns (several classes) the penalty per row makes
all of them share one support.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fewkern.backend.linalg import solve_shifted
from fewkern.backend.namespace import Array, asarray_like, device, eps, namespace
from fewkern.fisher.lasso import lasso_rows
from fewkern.fisher.problem import (
    PenalizedProblem,
    objective,
    penalized_problem,
    ridge_rows,
    row_norms,
)

__all__ = ["LqFit", "Start", "leave_one_out_scores", "lq_fit", "lq_path", "max_penalty", "walk_path"]

Start = Literal["auto", "lasso", "ridge", "best"]
# "best" starts from the exact q = 1 solutions at these multiples of the penalty.
_BEST = (1.0, 1 / 3, 1 / 10)
# Relative change of J below which a Newton step is tried.
_NEAR = 1e-3


@dataclass(frozen=True)
class LqFit:
    """A minimum of (5). Components outside ``support`` are exactly zero and absent."""

    support: Array
    """Candidate columns with a coefficient, ascending."""
    coef: Array
    """``(k, p)``, one row per column of the support."""
    offset: Array
    """Bias, ``(p,)``."""
    penalty: float
    q: float
    objective: float
    objectives: tuple[float, ...]
    """``J`` after every step; it never rises."""
    gap: float | None
    """Relative duality gap where one exists (``q = 1``)."""
    status: str
    """"converged", "stalled", "max_iter", or "zero" when every component died."""

    @property
    def n_iter(self) -> int:
        """Number of steps."""
        return len(self.objectives)


def max_penalty(K: Array, Y: Array, *, weights: Array | None = None, penalize_bias: bool = False) -> float:
    r"""Smallest :math:`\rho` at which nothing is kept for ``q = 1``: :math:`\max_i \|k_i' Y\| / N`."""
    problem = penalized_problem(K, Y, weights=weights, penalize_bias=penalize_bias, gram=False)
    return float(namespace(K).max(row_norms(problem.correlations))) / problem.n


def lq_fit(
    K: Array,
    Y: Array,
    *,
    penalty: float,
    q: float = 0.5,
    weights: Array | None = None,
    penalize_bias: bool = False,
    start: Start | Array = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
) -> LqFit:
    r"""Minimise (5) over the coefficients of the kernel columns ``K``.

    Parameters
    ----------
    K : array of shape (n, m)
        One column per *distinct* candidate: equal columns leave ``q = 1`` undetermined, and put ``q < 1`` on a saddle.
    Y : array of shape (n, p)
    penalty : float
        :math:`\rho > 0`.
    q : float
        ``0 < q <= 2``. 1 is solved exactly, 2 is one ridge solve.
    weights : array of shape (n,) or None
        Positive; scaled to add up to ``n``.
    penalize_bias : bool
        True is the paper.
    start : "auto", "lasso", "ridge", "best" or array of shape (m, p)
        Where ``q < 1`` begins, for it ends in a local minimum. "lasso" is the exact solution for ``q = 1`` at the same
        penalty, "ridge" that for ``q = 2``; "auto" is "lasso" for one target and "ridge" for several. "best" takes the
        lowest of three minima, reached from the solutions for ``q = 1`` at the penalty, a third and a tenth of it. With
        a penalised bias an array has one more row, the first.
    tol : float or None
        ``q = 1``: relative duality gap (None: 1e-7). Otherwise the relative change of ``J`` (None: 1e-8).
    max_iter : int

    Notes
    -----
    One step costs ``k^2 n + k^3`` with ``k`` live components (``k^3`` once ``K'K`` is known).

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.fisher.lq import lq_fit
    >>> K = np.array([[1.0, 0.1, 0.0], [0.1, 1.0, 0.2], [0.0, 0.2, 1.0], [0.0, 0.1, 0.6]])
    >>> fit = lq_fit(K, np.array([[2.0], [2.0], [-2.0], [-2.0]]), penalty=0.05, q=0.5)
    >>> fit.support
    array([0, 1])
    """
    problem = penalized_problem(K, Y, weights=weights, penalize_bias=penalize_bias)
    return _fit(problem, penalty, q, start, tol, max_iter, warm=None)[0]


def lq_path(
    K: Array,
    Y: Array,
    *,
    penalties: Sequence[float],
    q: float = 0.5,
    weights: Array | None = None,
    penalize_bias: bool = False,
    start: Start = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
    gram: bool | None = None,
) -> tuple[LqFit, ...]:
    """One fit per penalty, in the order given; computed from the largest penalty to the smallest.

    The exact ``q = 1`` solutions follow one another warm. A solution for ``q < 1`` is never handed on: zeros are
    absorbing there, and a start from a neighbouring solution ends far above the cold start.
    """
    problem = penalized_problem(K, Y, weights=weights, penalize_bias=penalize_bias, gram=gram)
    order = sorted(range(len(penalties)), key=lambda i: -penalties[i])
    fits = dict(zip(order, walk_path(problem, [penalties[i] for i in order], q, start, tol, max_iter)))
    return tuple(fits[i] for i in range(len(penalties)))


def walk_path(
    problem: PenalizedProblem,
    penalties: Sequence[float],
    q: float,
    start: Start = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
) -> Iterator[LqFit]:
    """The fits of a path, one after another as they are asked for; ``penalties`` must fall."""
    warm = None
    for penalty in penalties:
        fit, warm = _fit(problem, penalty, q, start, tol, max_iter, warm)
        yield fit


def _fit(
    problem: PenalizedProblem, penalty: float, q: float, start: Any, tol: float | None, max_iter: int, warm: Any
) -> tuple[LqFit, Any]:
    """The fit, and the ``q = 1`` solution to start the next smaller penalty from (None where none was computed)."""
    if not penalty > 0:
        raise ValueError(f"lq_fit: penalty must be positive, got {penalty!r}.")
    if not 0 < q <= 2:
        raise ValueError(f"lq_fit: q must lie in (0, 2], got {q!r}.")
    xp = namespace(problem.columns)
    lam = float(penalty) * problem.n
    if q == 1 and isinstance(start, str):
        lasso = lasso_rows(problem, lam, start=warm, tol=tol, max_iter=max_iter)
        status = "zero" if lasso.S.shape[0] == 0 else lasso.status
        support, coef, offset = problem.split(lasso.S, lasso.W)
        fit = LqFit(support, coef, offset, float(penalty), 1.0, lasso.objective, lasso.objectives, lasso.gap, status)
        return fit, (lasso.S, lasso.W)
    if isinstance(start, str) and start == "best" and q < 1:
        return _best_start(problem, float(penalty), q, tol, max_iter, warm)
    every = xp.arange(problem.m, dtype=xp.int64, device=device(problem.columns))
    after = None
    if not isinstance(start, str):
        S, W = every, asarray_like(start, problem.columns, dtype=problem.columns.dtype)
        zeros = int(xp.nonzero(row_norms(W) == 0)[0].shape[0])
        if W.shape != problem.correlations.shape or zeros:
            raise ValueError(
                f"lq_fit: start must have shape {tuple(problem.correlations.shape)} and no zero row, for a zero never "
                f"changes under (8); got shape {tuple(W.shape)} with {zeros} zero rows."
            )
    elif (start == "lasso" or (start == "auto" and problem.target.shape[1] == 1)) and q < 1:
        # a rough solution is enough to start from
        lasso = lasso_rows(problem, lam, start=warm, tol=1e-5)
        S, W = lasso.S, lasso.W
        after = (S, W)
    else:
        S, W = every, ridge_rows(problem, lam)
    S, W, trace, status = _majorize_minimize(problem, S, W, lam, q, 1e-8 if tol is None else tol, max_iter)
    support, coef, offset = problem.split(S, W)
    value = trace[-1] if trace else problem.square / 2
    return LqFit(support, coef, offset, float(penalty), float(q), value, trace, None, status), after


def _best_start(
    problem: PenalizedProblem, penalty: float, q: float, tol: float | None, max_iter: int, warm: Any
) -> tuple[LqFit, Any]:
    """The lowest of the minima reached from several exact solutions for ``q = 1``, and the first of these."""
    lam = penalty * problem.n
    runs = []
    for share in _BEST:
        lasso = lasso_rows(problem, share * lam, start=warm, tol=1e-5)
        warm = (lasso.S, lasso.W)
        S, W, trace, status = _majorize_minimize(problem, lasso.S, lasso.W, lam, q, tol or 1e-8, max_iter)
        runs.append((trace[-1], S, W, trace, status, warm))
    value, S, W, trace, status, _ = min(runs, key=lambda run: run[0])
    support, coef, offset = problem.split(S, W)
    return LqFit(support, coef, offset, penalty, float(q), value, trace, None, status), runs[0][5]


def _majorize_minimize(
    problem: PenalizedProblem, S: Array, W: Array, lam: float, q: float, tol: float, max_iter: int
) -> tuple[Array, Array, tuple[float, ...], str]:
    """The iteration (8) on the live components ``S``, starting at ``W``."""
    xp = namespace(W)
    tol = max(tol, 4 * eps(W))
    S, W = _select(S, W, row_norms(W) > 0)
    G, A = _quadratic(problem, S)
    norms = problem.norms_of(S)
    trace: list[float] = []
    status = "max_iter"
    for _ in range(max_iter):
        if S.shape[0] == 0:
            break
        W = _step(problem, A, G, S, W, lam, q)
        B = xp.take(problem.correlations, S, axis=0)
        value = _value(problem, A, G, B, W, lam, q)
        alive = _alive(norms, W, value, lam, q)
        if not bool(xp.all(alive)):
            # Removing a component that can only shrink lowers J, so the descent is kept.
            kept = xp.nonzero(alive)[0]
            S, W, norms = xp.take(S, kept), xp.take(W, kept, axis=0), xp.take(norms, kept)
            if G is not None:
                G = xp.take(xp.take(G, kept, axis=0), kept, axis=1)
            elif S.shape[0] <= problem.n:
                G, A = _quadratic(problem, S)
            else:
                A = xp.take(A, kept, axis=1)
            value = _value(problem, A, G, xp.take(problem.correlations, S, axis=0), W, lam, q)
        elif G is not None and trace and trace[-1] - value < _NEAR * trace[-1]:
            W, value = _newton(problem, G, B, norms, W, value, lam, q)
        change = (trace[-1] - value) / max(abs(trace[-1]), 1e-300) if trace else math.inf
        trace.append(value)
        # A minimum has no component below the second-order bound: one that is still there is on its way out.
        if q == 2 or (change <= tol and (change <= 4 * eps(W) or not _unsettled(norms, W, lam, q))):
            status = "converged"
            break
    if S.shape[0] == 0:
        trace.append(problem.square / 2)
        status = "zero"
    return S, W, tuple(trace), status


def _newton(
    problem: PenalizedProblem, G: Array, B: Array, norms: Array, W: Array, value: float, lam: float, q: float
) -> tuple[Array, float]:
    """A Newton step on the live components of one target, taken only if ``J`` falls and every sign stays."""
    # Paper: (8) to the end. We: Newton steps once the support has settled, because (8) converges only linearly; no
    # component changes its sign or starts below the second-order bound, so it is the same minimum.
    if q >= 1 or W.shape[1] > 1 or _unsettled(norms, W, lam, q):
        return W, value
    xp = namespace(W)
    size = xp.abs(W[:, 0])
    gradient = G @ W - B + lam * q * (xp.sign(W[:, 0]) * size ** (q - 1))[:, None]
    H = G - xp.eye(int(W.shape[0]), dtype=W.dtype, device=device(W)) * (lam * q * (1 - q) * size ** (q - 2))[None, :]
    ahead = W - xp.linalg.solve(H, gradient)
    if not bool(xp.all(ahead * W > 0)):
        return W, value
    reached = objective(problem, ahead, G, B, lam, q)
    return (ahead, reached) if reached < value else (W, value)


def _quadratic(problem: PenalizedProblem, S: Array) -> tuple[Array | None, Array | None]:
    """Gram matrix of the live columns, or the columns themselves where they outnumber the samples."""
    if problem.gram is None and S.shape[0] > problem.n:
        return None, problem.take(S)
    return problem.gram_of(S), None


def _step(
    problem: PenalizedProblem, A: Array | None, G: Array | None, S: Array, W: Array, lam: float, q: float
) -> Array:
    r"""(8): :math:`\Psi (\Psi G \Psi + \rho N q I)^{-1} \Psi \tilde K' Y`, :math:`\Psi = diag |\Omega_i|^{(2-q)/2}`."""
    xp = namespace(W)
    psi = row_norms(W) ** ((2.0 - q) / 2)
    if G is None:
        # small side: Psi^2 A'(A Psi^2 A' + rho N q I)^{-1} Y
        scaled = A * psi[None, :]
        return psi[:, None] * (scaled.T @ solve_shifted(scaled @ scaled.T, problem.target, lam * q))
    B = xp.take(problem.correlations, S, axis=0)
    return psi[:, None] * solve_shifted(psi[:, None] * G * psi[None, :], psi[:, None] * B, lam * q)


def _value(
    problem: PenalizedProblem, A: Array | None, G: Array | None, B: Array, W: Array, lam: float, q: float
) -> float:
    xp = namespace(W)
    if G is not None:
        return objective(problem, W, G, B, lam, q)
    R = problem.target - A @ W
    return float(xp.sum(R * R)) / 2 + lam * float(xp.sum(row_norms(W) ** q))


def _alive(norms: Array, W: Array, value: float, lam: float, q: float) -> Array:
    r"""False where :math:`|w|^{1-q} |k| (\sqrt{2J} + |k||w|) < q \rho N / 2`: such a component shrinks for ever.

    The correlation of a column with the residual of the others is at most :math:`|k|(\sqrt{2J} + |k||w|)`, and ``J``
    only falls.
    """
    size = row_norms(W)
    if q > 1:
        return size >= 0
    if q == 1:
        return size > 0
    norm = namespace(W).sqrt(norms)
    bound = size ** (1.0 - q) * norm * (math.sqrt(2.0 * value) + norm * size)
    return bound >= q * lam / 2


def _unsettled(norms: Array, W: Array, lam: float, q: float) -> bool:
    r"""Whether a row lies in :math:`0 < |w_i| < (\rho N q (1-q) / |k_i|^2)^{1/(2-q)}`, where no minimum has one."""
    if q >= 1:
        return False
    xp = namespace(W)
    bound = (lam * q * (1.0 - q) / norms) ** (1.0 / (2.0 - q))
    return bool(xp.any(row_norms(W) < bound))


def _select(S: Array, W: Array, mask: Array) -> tuple[Array, Array]:
    xp = namespace(W)
    kept = xp.nonzero(mask)[0]
    return xp.take(S, kept), xp.take(W, kept, axis=0)


def leave_one_out_scores(
    K: Array, Y: Array, fit: LqFit, *, weights: Array | None = None, penalize_bias: bool = False
) -> Array:
    r"""Scores of every sample without itself, the support and the penalty's curvature held: ``Y - (Y - F) / (1 - h)``.

    ``K`` holds the columns of the support only. ``h`` is the diagonal of the one smoother
    :math:`H = \tilde K (\tilde K'\tilde K + \rho N q B)^{-1} \tilde K'`, :math:`B = diag |\Omega_i|^{q-2}`, which
    serves all targets. Good enough to calibrate probabilities on; never to choose the penalty, since the support has
    seen ``Y``.
    """
    xp = namespace(K)
    n = int(K.shape[0])
    one = xp.ones((n, 1), dtype=K.dtype, device=device(K))
    A = xp.concat([one, K], axis=1)
    F = K @ fit.coef + fit.offset[None, :]
    if weights is not None:
        A = A * xp.sqrt(weights * (n / xp.sum(weights)))[:, None]
    rows = xp.concat([fit.offset[None, :], fit.coef], axis=0)
    curvature = fit.penalty * n * fit.q * _inverse_power(row_norms(rows), 2.0 - fit.q)
    if not penalize_bias:
        curvature = xp.concat([xp.zeros_like(curvature[:1]), curvature[1:]])
    # psi = 1 / sqrt(curvature) would do for all but a free bias, so the system is solved as it stands
    M = A.T @ A + xp.eye(int(A.shape[1]), dtype=K.dtype, device=device(K)) * curvature[None, :]
    leverage = xp.sum(A * solve_shifted(M, A.T).T, axis=1)
    # a leverage of one means that the sample decides its own value
    left = xp.maximum(1.0 - leverage, xp.full_like(leverage, 1e-3))
    return Y - (Y - F) / left[:, None]


def _inverse_power(norms: Array, power: float) -> Array:
    xp = namespace(norms)
    floor = 1e-12 * float(xp.max(norms)) if norms.shape[0] else 0.0
    return xp.maximum(norms, xp.full_like(norms, max(floor, 1e-30))) ** (-power)
