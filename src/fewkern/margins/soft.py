r"""Recursive soft margin subspace learning (RSM; methods part B): hinges in place of the penalty scatter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from fewkern.arrays.linalg import cholesky_psd, generalized_eigh, solve_triangular
from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.core.path import Stop, peel
from fewkern.margins.convex import ConvexSteps, ListedPairs, PenalizedSteps, RankedPairs, signed_pairs, solve
from fewkern.margins.embedding import (
    FLAT_TRACE_RATIO,
    ScatterDeflation,
    as_columns,
    penalty_rank,
    principal_space,
    regularized_scatter,
)
from fewkern.margins.graphs import AllPairs, Edges, GraphPair
from fewkern.margins.problems import norm, reflect
from fewkern.margins.ranking import OrderedPairs

__all__ = [
    "SoftMargin",
    "SoftMarginProblem",
    "SoftMarginResult",
    "SoftMarginStep",
    "all_violate",
    "score_order",
    "recursive_soft_margin",
    "soft_margin_direction",
]

# Pairs above which the sorted form takes over from the explicit quadratic program (methods B5: near n = 300).
_MAX_LISTED_PAIRS = 40_000
# No direction is left once the squared distances of the pairs have fallen to this fraction of their first values.
_FLAT_GAP_RATIO = 1e-20
# The length of a start is halved at least this many times, and then as long as the objective decreases.
_MIN_HALVINGS = 16


@dataclass(frozen=True)
class SoftMargin:
    """Settings of the recursion."""

    n_components: int | None = None
    """None: the rank of the penalty scatter (``c - 1`` for Fisher's graph)."""
    C: float = 5.0
    """Weight of the hinges."""
    scale_C: bool = True
    """``C`` is in units of the ``delta_0`` of every step, below which the direction does not depend on it: there it is
    that of Fisher with a Gini mean difference. Otherwise it is the paper's delta."""
    ridge: float = 1e-2
    """``S = X'LX + ridge tau I``, with the ``tau`` of the first step for all steps."""
    metric: str = "euclidean"
    """"euclidean": orthonormal directions; "scatter": ``W' S W = I``, better with more samples than features."""
    sparsity: float = 0.0
    """Above zero, an l1 penalty in the coordinates of the features, as a part of the one at which all directions
    vanish; ``metric`` is not read then."""
    listed: bool | None = None
    """Whether pairs are listed and their hinges exact, or go through a sort, smoothed; None: by their number."""
    tol: float = 1e-10
    """A step that gains less than this fraction of ``J(0) - J`` is the last."""
    max_iter: int = 100
    """Concave-convex steps per direction."""


@storable
@dataclass(frozen=True)
class SoftMarginStep:
    """One direction."""

    objectives: tuple[float, ...]
    """``J`` after every concave-convex step, never rising."""
    delta: float
    delta_0: float
    """Below it the direction does not depend on delta (methods B4)."""
    at_zero: float
    """``J(0)``."""
    stop: Stop
    """CONVERGED (the order of the projections stays, or a step gains too little) or MAX_ITER."""
    gain: float
    """Gain of the last step, as a fraction of ``J(0) - J``."""


@dataclass(frozen=True)
class SoftMarginResult:
    """Result of :func:`recursive_soft_margin`."""

    directions: Array
    """``W``, one column per component: orthonormal, or orthonormal in the metric ``S``; sparse ones only of unit
    length."""
    steps: tuple[SoftMarginStep, ...]
    stop: Stop
    """LIMIT, RANK, FLAT (no pair should be apart) or PENALTY (sparsity leaves nothing of the next direction)."""


@dataclass(frozen=True)
class SoftMarginProblem:
    r"""One direction: :math:`J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (1 - v_{ij} |w^T (x_i - x_j)|)_+`."""

    Z: Array
    S: Array
    pairs: AllPairs | Edges

    sparsity: float = 0.0

    def convex_steps(self, D: float, w_s: Array) -> ConvexSteps:
        """Solver for the weight ``D``; ``w_s`` is the direction where every pair violates."""
        plain: ListedPairs | RankedPairs
        if isinstance(self.pairs, AllPairs):
            plain = RankedPairs(self.Z, self.S, self.pairs, D)
        else:
            plain = ListedPairs(self.Z, self.S, self.pairs, D)
        if self.sparsity == 0:
            return plain
        return PenalizedSteps(plain, self.S, self.sparsity * D * float(np.max(np.abs(self.S @ w_s))))


def score_order(Z: Array, w: Array, order: Array) -> Array:
    """Samples from the lowest projection to the highest; ties keep their order (never a sign of zero)."""
    return order[np.argsort((Z @ w)[order], kind="stable")]


def all_violate(problem: SoftMarginProblem, order: Array) -> tuple[Array, float]:
    r"""``w_s = S^-1 sum_e s_e v_e (x_i - x_j)`` and :math:`\delta_0 = 1 / (2 v\, range(X w_s))` (methods B4).

    While every pair violates, all multipliers are ``D`` and the direction is ``w_s`` for any delta.
    """
    Z, pairs = problem.Z, problem.pairs
    if isinstance(pairs, AllPairs):
        c = OrderedPairs.arranged(pairs, order).balance()
        w = pairs.v * solve(problem.S, Z[order].T @ c)
        s = Z @ w
        widest = pairs.v * float(np.max(s) - np.min(s))
    else:
        difference = signed_pairs(Z, pairs, order)
        w = solve(problem.S, difference.T @ pairs.count)
        widest = float(np.max(np.abs(difference @ w))) if difference.shape[0] else 0.0
    return w, 0.5 / widest if widest > 0 else 1.0


def soft_margin_direction(problem: SoftMarginProblem, w0: Array, how: SoftMargin) -> tuple[Array, SoftMarginStep]:
    """One direction by the concave-convex procedure (methods B2), from the start ``w0``."""
    Z = problem.Z
    order = score_order(Z, w0, np.arange(Z.shape[0]))
    w_s, delta_0 = all_violate(problem, order)
    delta = how.C * delta_0 if how.scale_C else how.C
    convex = problem.convex_steps(2.0 * delta, w_s)
    at_zero = convex.value(np.zeros_like(w0))
    w = _best_scale(convex, w0, 2.0 * delta * norm(w_s))
    objectives, stop, gain = [convex.value(w)], Stop.MAX_ITER, 0.0
    for step in range(how.max_iter):
        candidate = convex.improve(w, order, step > 0)
        value = convex.value(candidate)
        gain = objectives[-1] - value
        if gain > 0:
            w = candidate
            objectives.append(value)
        # J is almost constant for a small delta, so the gain is relative to J(0) - J
        if gain <= max(how.tol, convex.noise) * max(at_zero - objectives[-1], 0.0):
            stop = Stop.CONVERGED
            break
        new = score_order(Z, w, order)
        if np.all(new == order):
            stop = Stop.CONVERGED
            break
        order = new
    below = at_zero - objectives[-1]
    share = gain / below if below > 0 else 0.0
    return w, SoftMarginStep(tuple(objectives), float(delta), float(delta_0), at_zero, stop, share)


def _best_scale(convex: ConvexSteps, w0: Array, near: float) -> Array:
    """``w0`` scaled to the length, of a geometric grid about ``near``, that minimizes ``J``."""
    length = near / norm(w0)
    if length == 0.0:  # the pairs cancel in this order
        length = 1.0
    best = length * 4.0 * w0
    value = convex.value(best)
    # a large delta calls for a much shorter one
    for k in count(1, -1):
        candidate = length * 2.0**k * w0
        new = convex.value(candidate)
        if new < value:
            best, value = candidate, new
        elif k < -_MIN_HALVINGS:
            break
    return best


def recursive_soft_margin(
    Z: Array, pair: GraphPair, how: SoftMargin, step: Callable[[int], None] = lambda _: None
) -> SoftMarginResult:
    r"""Directions one by one, each the minimizer of the soft margin in the complement of the previous ones.

    .. math::

        J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (f - v_{ij} |w^T (x_i - x_j)|)_+ , \qquad
        S = X^T L X + \rho \tau I, \quad D = 2 \delta, \quad f = 1

    Parameters
    ----------
    Z : array of shape (n, q)
        Centered features.
    pair : GraphPair
    how : SoftMargin
    step : function
        Called with the number of directions so far.

    Returns
    -------
    SoftMarginResult

    Notes
    -----
    Cost of a direction, with ``m`` pairs: explicit :math:`O(m q^2)` per interior point iteration on the pairs near
    the margin; sorted :math:`O(n q^2 + q n \log n)` per Newton step, memory :math:`O(nq)`.
    """
    if how.sparsity > 0:
        return _sparse_directions(Z, pair, how, step)
    V = principal_space(Z)
    rank = int(V.shape[1])
    if rank == 0:
        return SoftMarginResult(V, (), Stop.RANK)
    Z = Z @ V
    S, B, L = regularized_scatter(pair, Z, how.ridge), pair.penalty.scatter(Z), None
    if how.metric == "scatter":
        # Whitened by S, every step has S = I, and orthonormal there is S-orthonormal here (methods B8).
        L = cholesky_psd(S)
        Z = solve_triangular(L, Z.T).T
        S, B = np.eye(rank), solve_triangular(L, solve_triangular(L, B).T)
    asked = penalty_rank(B, S) if how.n_components is None else how.n_components
    n = int(Z.shape[0])
    pairs = pair.pairs()
    if how.listed or (how.listed is None and n * (n - 1) // 2 <= _MAX_LISTED_PAIRS):
        pairs = pairs.edges()
    if isinstance(pairs, Edges) and len(pairs.i) == 0:
        return SoftMarginResult(V[:, :0], (), Stop.FLAT)
    peeled = peel(_SoftMarginDeflation(S, B, np.eye(rank), Z, pairs, how), min(asked, rank), step)
    W = as_columns(peeled, rank)
    if L is not None:
        W = solve_triangular(L, W, transposed=True)
    stop = Stop.RANK if rank < asked else peeled.stop
    return SoftMarginResult(V @ W, tuple(record for _, record in peeled.records), stop)


@dataclass
class _SoftMarginDeflation(ScatterDeflation):
    """State of :func:`peel`: samples and scatters, deflated."""

    Z: Array
    pairs: AllPairs | Edges
    how: SoftMargin

    def __post_init__(self) -> None:
        self.first = self._squared_gaps()

    def _squared_gaps(self) -> float:
        """Sum of the squared distances of listed pairs; of all samples from their mean where pairs are a rule."""
        Z, pairs = self.Z, self.pairs
        gap = Z - np.mean(Z, axis=0) if isinstance(pairs, AllPairs) else Z[pairs.i] - Z[pairs.j]
        return float(np.sum(gap * gap))

    def find(self) -> tuple[Array, SoftMarginStep] | Stop:
        if self.dimension == 0:
            return Stop.RANK
        if self._squared_gaps() <= _FLAT_GAP_RATIO * self.first:
            return Stop.FLAT
        # start from the direction of the ratio (methods B2); w = 0 is stationary
        w, step = soft_margin_direction(SoftMarginProblem(self.Z, self.S, self.pairs), self.best()[0], self.how)
        return w / norm(w), step

    def remove(self, found: tuple[Array, SoftMarginStep]) -> list[tuple[Array, SoftMarginStep]]:
        self.Z = reflect(self.Z, found[0])[0]
        return super().remove(found)


def _sparse_directions(Z: Array, pair: GraphPair, how: SoftMargin, step: Callable[[int], None]) -> SoftMarginResult:
    r"""Directions of :math:`J(w) + \lambda \|w\|_1` with few nonzero entries, one by one (methods B8).

    :math:`\lambda` is ``sparsity`` times the value at which ``w`` would vanish, :math:`D \max_k |\sum_e s_e v_e (x_i
    - x_j)_k|`. The samples stay in their own coordinates, for a rotation would destroy sparsity, and are deflated on an
    orthonormal basis of the directions so far, which are not orthogonal. Cost: concave-convex steps outside,
    accelerated proximal gradients on the smoothed sorted loss inside, :math:`O(nd + n \log n)` each, and one
    :math:`d \times d` scatter.
    """
    n, d = Z.shape
    state = _SparseDeflation(Z, regularized_scatter(pair, Z, how.ridge), pair.penalty.scatter(Z), pair.pairs(), how)
    asked = penalty_rank(state.B, state.S) if how.n_components is None else how.n_components
    peeled = peel(state, min(asked, d, n), step)
    return SoftMarginResult(as_columns(peeled, d), tuple(record for _, record in peeled.records), peeled.stop)


class _SparseDeflation:
    """State of :func:`peel`: samples and scatters, projected off the directions so far."""

    def __init__(self, Z: Array, S: Array, B: Array, pairs: AllPairs | Edges, how: SoftMargin) -> None:
        d = int(Z.shape[1])
        self.pairs, self.how = pairs, how
        self.Z, self.S, self.B = Z, S, B
        self.identity = np.eye(d)
        self.tau = how.ridge * float(np.trace(S)) / d / (1.0 + how.ridge)
        # as given: samples, intrinsic scatter without its ridge, penalty scatter
        self.given = (Z, S - self.tau * self.identity, B)
        self.W = np.zeros((d, 0))

    def find(self) -> tuple[Array, SoftMarginStep] | Stop:
        if float(np.trace(self.B)) <= FLAT_TRACE_RATIO * float(np.trace(self.given[2])):
            return Stop.RANK
        problem = SoftMarginProblem(self.Z, self.S, self.pairs, self.how.sparsity)
        w, step = soft_margin_direction(problem, generalized_eigh(self.B, self.S)[1][:, 0], self.how)
        length = norm(w)
        return Stop.PENALTY if length == 0.0 else (w / length, step)

    def remove(self, found: tuple[Array, SoftMarginStep]) -> list[tuple[Array, SoftMarginStep]]:
        self.W = np.concatenate([self.W, found[0][:, None]], axis=1)
        Q = np.linalg.qr(self.W)[0]
        P = self.identity - Q @ Q.T
        Z, S, B = self.given
        self.Z, self.S, self.B = Z @ P, P @ S @ P + self.tau * self.identity, P @ B @ P
        return [found]
