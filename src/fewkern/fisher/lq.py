r"""kFDA_q: the majorize-minimize iteration (8) of the KFD paper, on live components only, and its path.

.. math:: J(\Omega) = \tfrac12 \|Y - \tilde K \Omega\|_F^2 + \rho N \sum_i \|\Omega_i\|_2^q, \quad 0 < q \le 2 \quad (5)

With one target column this is the paper's problem; with ``C - 1`` columns (several classes) the penalty per row makes
all of them share one support.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewkern.arrays.linalg import solve_definite
from fewkern.arrays.namespace import Array, eps
from fewkern.core.path import Stop
from fewkern.core.statistics import Statistics
from fewkern.fisher.lasso import COARSE_RELATIVE_GAP, MAX_ITERATIONS, lasso_rows, majorize_step
from fewkern.fisher.problem import (
    ActiveSet,
    Discriminant,
    Ending,
    PenalizedProblem,
    penalized_problem,
    ridge_rows,
    row_norms,
    summed_problem,
)

# Relative change of J that ends the iteration, and the smallest one that rounding allows, in units of rounding.
_RELATIVE_CHANGE, _MIN_CHANGE_IN_EPS = 1e-8, 4
# Relative change of J below which a Newton step is tried.
_NEWTON_RELATIVE_CHANGE = 1e-3
# Negative curvature, relative to the longest column, that counts as zero; halvings of a step out of a saddle.
_ZERO_RELATIVE_CURVATURE, _SADDLE_HALVINGS = 1e-9, 12
# Penalties that cross-validation compares, for a kernel with k(x, x) = 1 and classes of equal size.
PENALTIES = tuple(10.0 ** (-0.5 * i) for i in range(1, 10))
# Relative duality gap of the group lasso (several classes, q = 1) in the folds. On digits the held-out errors of all
# penalties are those of a gap of 1e-4, in a tenth of the time.
_FOLD_RELATIVE_GAP = 1e-2


def max_penalty(problem: PenalizedProblem) -> float:
    r"""Smallest :math:`\rho` at which nothing is kept for ``q = 1``: :math:`\max_i \|k_i' Y\| / N`."""
    return float(np.max(row_norms(problem.correlations))) / problem.n


def lq_fit(
    problem: PenalizedProblem,
    penalty: float,
    q: float = 0.5,
    *,
    warm: ActiveSet | None = None,
    start: Array | None = None,
    tol: float | None = None,
) -> Discriminant:
    r"""Minimize (5) over the coefficients of the kernel columns.

    Parameters
    ----------
    problem : PenalizedProblem
    penalty : float
        :math:`\rho > 0`.
    q : float
        In (0, 2]. 1 is solved exactly, 2 is one ridge solve.
    warm : ActiveSet or None
        Solution for ``q = 1`` at a larger penalty.
    start : array of shape (m, p) or None
        Where the iteration begins, which for ``q < 1`` ends in a local minimum. None: for one target and ``q < 1`` the
        exact solution for ``q = 1`` at the same penalty, otherwise that for ``q = 2``.
    tol : float or None
        ``q = 1``: relative duality gap (None: that of :func:`lasso_rows`). Otherwise the relative change of ``J``
        (None: 1e-8).

    Notes
    -----
    One step costs ``k^3`` with ``k`` live components.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.fisher.lq import lq_fit
    >>> from fewkern.fisher.problem import penalized_problem
    >>> K = np.array([[1.0, 0.1, 0.0], [0.1, 1.0, 0.2], [0.0, 0.2, 1.0], [0.0, 0.1, 0.6]])
    >>> problem = penalized_problem(K, np.array([[2.0], [2.0], [-2.0], [-2.0]]))
    >>> lq_fit(problem, 0.05, q=0.5).support
    array([0, 1])
    """
    if not penalty > 0:
        raise ValueError(f"lq_fit: penalty must be positive, got {penalty!r}.")
    lam, lasso = float(penalty) * problem.n, None
    if start is not None:
        begin = ActiveSet.of(problem, np.arange(len(start)), start.astype(problem.gram.dtype))
    elif q == 1:
        active, objectives, ending = lasso_rows(problem, lam, warm, tol=tol)
        return Discriminant(*problem.solution(active), penalty, objectives, ending, active)
    elif q < 1 and problem.correlations.shape[1] == 1:
        begin = lasso = lasso_rows(problem, lam, warm, tol=COARSE_RELATIVE_GAP)[0]
    else:
        W = ridge_rows(problem, lam)
        begin = ActiveSet.of(problem, np.arange(len(W)), W)
    return replace(_majorize_minimize(begin, penalty, q, tol), lasso=lasso)


def lq_path(
    problem: PenalizedProblem, penalties: Sequence[float], q: float = 0.5, tol: float | None = None
) -> Iterator[Discriminant]:
    """Fits at falling penalties, computed on demand.

    The exact ``q = 1`` solutions are warm starts of one another. A solution for ``q < 1`` is never handed on: zeros are
    absorbing there, and a start from a neighboring solution ends far above the cold start.
    """
    warm = None
    for penalty in penalties:
        fit = lq_fit(problem, penalty, q, warm=warm, tol=tol)
        warm = fit.lasso
        yield replace(fit, lasso=None)


def _majorize_minimize(start: ActiveSet, penalty: float, q: float, tol: float | None) -> Discriminant:
    """The iteration (8) on the live components, from ``start``."""
    problem = start.problem
    lam = penalty * problem.n
    rounding, least = _MIN_CHANGE_IN_EPS * eps(start.W), float(np.finfo(start.W.dtype).tiny)
    tol = max(_RELATIVE_CHANGE if tol is None else tol, rounding)
    active = start.where(row_norms(start.W) > 0)
    trace: list[float] = []
    stop, change = Stop.MAX_ITER, math.inf
    while active.size and len(trace) < MAX_ITERATIONS:
        active = majorize_step(active, lam, q)
        value = active.objective(lam, q)
        alive = _alive(active, value, lam, q)
        if not np.all(alive):
            # Removing a component that can only shrink lowers J, so the descent is kept.
            active = active.where(alive)
            value = active.objective(lam, q)
        elif trace and trace[-1] - value < _NEWTON_RELATIVE_CHANGE * trace[-1]:
            active, value = _newton(active, value, lam, q)
        change = (trace[-1] - value) / max(trace[-1], least) if trace else math.inf
        trace.append(value)
        # A minimum has no component below the second-order bound: one that is still there is on its way out.
        if q == 2 or (change <= tol and (change <= rounding or not _unsettled(active, lam, q))):
            below = _below_saddle(active, value, lam, q)
            if below is None:
                stop = Stop.CONVERGED
                break
            active = below
            trace.append(active.objective(lam, q))
    if not active.size:  # every component died: zero is a minimum
        stop = Stop.CONVERGED
        trace.append(problem.square / 2)
    ending = Ending(stop, len(trace), "relative change of the objective", change, tol)
    return Discriminant(*problem.solution(active), float(penalty), tuple(trace), ending)


def _newton(active: ActiveSet, value: float, lam: float, q: float) -> tuple[ActiveSet, float]:
    """A Newton step on the live components of one target, taken only if ``J`` falls and every sign stays."""
    # Paper: (8) to the end. We: Newton steps once the support has settled, because (8) converges only linearly; no
    # component changes its sign or starts below the second-order bound, so it is the same minimum.
    W, G = active.W, active.G
    if q >= 1 or W.shape[1] > 1 or _unsettled(active, lam, q):
        return active, value
    sign, size = np.sign(W), np.abs(W)
    gradient = sign * (G @ W - active.B) + lam * q * size ** (q - 1)
    step = solve_definite(_hessian(active, lam, q), gradient)
    if step is None or not np.all(size > step):  # towards a saddle, or through zero
        return active, value
    found = active.at(sign * (size - step))
    reached = found.objective(lam, q)
    return (found, reached) if reached < value else (active, value)


def _hessian(active: ActiveSet, lam: float, q: float) -> Array:
    """Second derivatives of ``J`` by the lengths of the live rows, directions held; all there are for one target."""
    size = row_norms(active.W)
    U = active.W / size[:, None]
    concave = lam * q * (1 - q) * size ** (q - 2)
    return active.G * (U @ U.T) - np.diag(concave)


def _below_saddle(active: ActiveSet, value: float, lam: float, q: float) -> ActiveSet | None:
    """A point with a lower ``J``, if (8) has come to rest at a saddle; None at a minimum.

    (8) stops wherever the gradient vanishes. From a saddle it goes on along the direction of most negative curvature,
    or against it, at most until the first component is zero, which then is dropped.
    """
    if q >= 1 or not active.size:
        return None
    size = row_norms(active.W)
    H = _hessian(active, lam, q)
    flat = _ZERO_RELATIVE_CURVATURE * float(np.max(active.norms)) * np.eye(active.size, dtype=H.dtype)
    if solve_definite(H + flat, size[:, None]) is not None:
        return None
    V = np.linalg.eigh(H)[1]
    best, lowest = None, value * (1 - _MIN_CHANGE_IN_EPS * eps(active.W))
    for direction in (V[:, 0], -V[:, 0]):
        shrinkage = np.maximum(-direction, 0.0) / size
        fastest = float(np.max(shrinkage))
        length = 1.0 / fastest if fastest > 0 else float(np.max(size))
        for _ in range(_SADDLE_HALVINGS):
            moved = np.where(length * shrinkage >= 1, 0.0, size + length * direction)
            found = active.at(active.W * (moved / size)[:, None])
            reached = found.objective(lam, q)
            if reached < lowest:
                best, lowest = found, reached
            length /= 2
    return None if best is None else best.where(row_norms(best.W) > 0)


def _alive(active: ActiveSet, value: float, lam: float, q: float) -> Array:
    r"""False where :math:`|w|^{1-q} |k| (\sqrt{2J} + |k||w|) < q \rho N / 2`: such a component shrinks for ever.

    The correlation of a column with the residual of the others is at most :math:`|k|(\sqrt{2J} + |k||w|)`, and ``J``
    only falls.
    """
    size = row_norms(active.W)
    if q >= 1:
        return size > 0
    norm = np.sqrt(active.norms)
    bound = size ** (1.0 - q) * norm * (math.sqrt(2.0 * value) + norm * size)
    return bound >= q * lam / 2


def _unsettled(active: ActiveSet, lam: float, q: float) -> bool:
    r"""Whether a row lies in :math:`0 < |w_i| < (\rho N q (1-q) / |k_i|^2)^{1/(2-q)}`, where no minimum has one."""
    if q >= 1:
        return False
    bound = (lam * q * (1.0 - q) / active.norms) ** (1.0 / (2.0 - q))
    return bool(np.any(row_norms(active.W) < bound))


@dataclass(frozen=True)
class LqFamily:
    """kFDA_q along the penalty: what cross-validation compares, and how a model is fitted at one penalty."""

    q: float = 0.5
    penalty: float | None = None
    """None compares :data:`PENALTIES`."""
    max_vectors: int | None = None
    """A penalty that keeps more vectors is raised."""

    axis = "alpha"

    def settings(self, kernel_scale: float, target_scale: float) -> tuple[float, ...]:
        """Penalties to compare, the largest first; scales are those of ``k(x, x)`` and of the targets."""
        if self.penalty is not None:
            return (self.penalty,)
        # a kernel a times as large gives the same function at a penalty a^q times as large, targets at a^(2 - q)
        return tuple(p * kernel_scale**self.q * target_scale ** (2 - self.q) for p in PENALTIES)

    @property
    def default(self) -> int:
        """Position of the penalty to use where classes are too small for folds: the fourth, 0.01 before scaling."""
        return 3 if self.penalty is None else 0

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Discriminant]:
        """Models at falling penalties, computed on demand."""
        tol = _FOLD_RELATIVE_GAP if self.q == 1 and Y.shape[1] > 1 else None
        return lq_path(penalized_problem(K, Y, weights), settings, self.q, tol)

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Discriminant:
        """The model at one penalty, or at the smallest larger one that keeps ``max_vectors``."""
        problem = penalized_problem(K, Y, weights)
        fit = lq_fit(problem, setting, self.q)
        if self.max_vectors is not None and fit.size > self.max_vectors:
            below = setting
            while fit.size > self.max_vectors:
                below = fit.setting
                fit = lq_fit(problem, below * PENALTIES[0] / PENALTIES[1], self.q)
            for _ in range(6):  # bisections between a penalty that keeps too many vectors and one that does not
                middle = lq_fit(problem, math.sqrt(below * fit.setting), self.q)
                if middle.size > self.max_vectors:
                    below = middle.setting
                else:
                    fit = middle
        return fit

    def refit(self, fitted: Discriminant, sums: Statistics) -> Discriminant:
        """The model on the same vectors, from sums over rows of their kernel columns and of the targets."""
        # 1 and 2 are solved exactly; the others continue from the minimum that was found
        start = None if self.q in (1, 2) else fitted.coef
        fit = lq_fit(summed_problem(sums), fitted.setting, self.q, start=start)
        return replace(fit, support=fitted.support[fit.support])
