r"""Recursive soft margin subspace learning (RSM; methods part B): hinges in place of the penalty scatter.

A direction is found by the concave-convex procedure. Its convex steps have a hinge per pair, the signs fixed by an
order of the samples (methods B2, B5):

.. math:: \tfrac12 w^T S w + D \sum_e (1 - s_e v_e\, w^T (x_i - x_j))_+ \quad \text{RSM (9)}

The pairs enter one by one in a quadratic program (:class:`ListedPairs`), or through a sort (:class:`RankedPairs`). Each
has the objective ``value(w)`` with absolute values in place of signs, the minimizer ``improve(w, order, near)`` of the
convex step of an order, from ``w`` (``near``: which is close to it), and ``gain_rtol``, the fraction of ``J(0) - J``
that a step must gain if another one is to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewkern.arrays.linalg import cholesky_psd, solve_shifted, solve_triangular
from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.core.path import Stop, peel
from fewkern.margins.embedding import (
    ZERO_RATIO,
    Reflected,
    ScatterDeflation,
    norm,
    penalty_rank,
    principal_space,
    regularized_scatter,
)
from fewkern.margins.graphs import AllPairs, Edges, GraphPair
from fewkern.margins.hinge import HingeProblem, minimize_hinge
from fewkern.margins.ranking import OrderedPairs, RankedLoss

# Concave-convex steps per direction.
MAX_STEPS = 100
# Pairs above which the sorted form takes over from the explicit quadratic program (methods B5: near n = 300).
_MAX_LISTED_PAIRS = 40_000
# Projections are equal if they differ by less than this fraction of their range: far below the gaps of a few hundred
# samples, and above what the convex steps leave where two of them meet.
_TIE_RANGES = 1e-7
# Pairs this near to their margin are in the quadratic program from the start, fewer after the first step, when w moves
# little; others join.
_FIRST_BAND_MARGINS, _BAND_MARGINS = 0.3, 0.05
# Pairs that turn out to lie this far on the wrong side of their margin join.
_WRONG_SIDE_MARGINS = 1e-9
# Widths of the smoothed hinge, in units of the margin. After the first step w is near the solution, and only the last
# ones are used. With the last one only, in three quarters of the time, some results change by one sample.
_SMOOTHING_MARGINS, _LAST_WIDTHS = (0.5, 0.1, 0.02, 0.004, 0.001), 2
# Newton's method per width: steps, and the gain, relative to J(0) - J, at which it ends; a wide hinge only gives the
# start of the next one.
_MAX_NEWTON_STEPS, _NEWTON_RTOL, _WIDE_NEWTON_RTOL = 20, 1e-7, 1e-3
# Armijo's rule: required fraction of the predicted decrease; and the shortest step.
_ARMIJO_FRACTION, _MIN_STEP_LENGTH = 1e-4, 1e-6


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
    """``W``, one column per component: orthonormal, or orthonormal in the metric ``S``."""
    steps: tuple[SoftMarginStep, ...]
    stop: Stop
    """LIMIT, RANK or FLAT (no pair should be apart)."""


def signed_pairs(Z: Array, edges: Edges, order: Array) -> Array:
    """Rows ``v_e s_e (x_i - x_j)`` of ``F``, RSM (9), the signs taken from the order."""
    rank = np.argsort(order, kind="stable")
    factor = np.where(rank[edges.i] > rank[edges.j], edges.v, -edges.v)
    return factor[:, None] * (Z[edges.i] - Z[edges.j])


@dataclass(frozen=True)
class ListedPairs:
    """Convex steps as a quadratic program over the pairs near the margin, RSM (10) (methods B2)."""

    Z: Array
    S: Array
    edges: Edges
    D: float

    gain_rtol = 1e-10

    @cached_property
    def factor(self) -> Array:
        """``L`` with ``S = L L'``."""
        return cholesky_psd(self.S)

    @cached_property
    def white(self) -> Array:
        """Samples in coordinates ``u = L'w``, where lengths are those of the identity."""
        return solve_triangular(self.factor, self.Z.T).T

    def value(self, w: Array) -> float:
        s, e = self.Z @ w, self.edges
        t = e.v * np.abs(s[e.i] - s[e.j])
        return 0.5 * float(w @ (self.S @ w)) + self.D * float(e.count @ np.maximum(1.0 - t, 0.0))

    def improve(self, w: Array, order: Array, near: bool) -> Array:
        """Minimizer of the convex step; pairs far below the margin have the multiplier ``D``, far above it 0."""
        G = signed_pairs(self.white, self.edges, order)
        box = self.D * self.edges.count
        u = self.factor.T @ w
        t = G @ u
        inside = np.abs(t - 1.0) <= (_BAND_MARGINS if near else _FIRST_BAND_MARGINS)
        while True:
            far_below = ~inside & (t < 1.0)
            linear = G.T @ np.where(far_below, box, 0.0)
            rows = np.flatnonzero(inside)
            u = _inside_band(G[rows], box[rows], linear)
            margins = G @ u
            # pairs that now lie on the other side of their margin
            wrong = ~inside & (np.where(far_below, margins - 1.0, 1.0 - margins) > _WRONG_SIDE_MARGINS)
            if not np.any(wrong):
                return solve_triangular(self.factor, u, transposed=True)
            inside = inside | wrong


def _inside_band(G: Array, box: Array, linear: Array) -> Array:
    """Quadratic program over the pairs ``G``; all others are in the linear term."""
    if not G.shape[0]:
        return linear
    ones = np.ones(len(G))
    return minimize_hinge(HingeProblem(G, ones, ones, box, bias=False, linear=linear)).w


@dataclass(frozen=True)
class RankedPairs:
    """Convex steps on the smoothed hinge, by Newton's method with sums over all pairs in n log n (methods B5)."""

    Z: Array
    S: Array
    pairs: AllPairs
    D: float

    gain_rtol = 1e-7  # smoothing with the last width moves the value by more

    @property
    def margin(self) -> float:
        """Distance of two projections at which their hinge is zero."""
        return 1.0 / self.pairs.v

    @cached_property
    def _plain(self) -> OrderedPairs:
        return OrderedPairs.arranged(self.pairs, np.arange(self.Z.shape[0]))

    @cached_property
    def _at_zero(self) -> float:
        return self.value(np.zeros_like(self.Z[0, :]))

    def loss(self, order: Array) -> RankedLoss:
        """The convex objective of an order."""
        X, pairs = self.Z[order], OrderedPairs.arranged(self.pairs, order)
        return RankedLoss(self.S, X, pairs, self.margin, self.D * self.pairs.v)

    def value(self, w: Array) -> float:
        window = self._plain.window_value(self.Z @ w, self.margin)
        return 0.5 * float(w @ (self.S @ w)) + self.D * self.pairs.v * window

    def improve(self, w: Array, order: Array, near: bool) -> Array:
        """Minimizer of the convex step, with successively narrower smoothing."""
        loss = self.loss(order)
        widths = _SMOOTHING_MARGINS[-_LAST_WIDTHS:] if near else _SMOOTHING_MARGINS
        for mu in widths:
            w = self._newton(loss, w, mu, _NEWTON_RTOL if mu == widths[-1] else _WIDE_NEWTON_RTOL)
        return w

    def _newton(self, loss: RankedLoss, w: Array, mu: float, tol: float) -> Array:
        value, g = loss.smooth(w, mu)
        for _ in range(_MAX_NEWTON_STEPS):
            step = -solve_shifted(loss.curvature(w, mu), g)
            slope = float(g @ step)
            # J is almost J(0) for a small delta: the gain is relative to J(0) - J
            if -slope <= tol * abs(self._at_zero - value):
                break
            length = 1.0
            while length > _MIN_STEP_LENGTH:
                new, new_g = loss.smooth(w + length * step, mu)
                if new <= value + _ARMIJO_FRACTION * length * slope:
                    break
                length /= 2
            else:
                break
            gain = value - new
            w, value, g = w + length * step, new, new_g
            if gain <= tol * abs(self._at_zero - value):
                break
        return w


def score_order(Z: Array, w: Array, order: Array) -> Array:
    """Samples from the lowest projection to the highest; those that are equal to rounding in the reverse of ``order``.

    At ``w`` either order of two equal projections makes a convex step, and the one that led there has nothing left to
    gain. So the minimum that is found does not depend on rounding.
    """
    s = Z @ w
    place = np.argsort(s, kind="stable")
    above = np.diff(s[place]) > _TIE_RANGES * (s[place[-1]] - s[place[0]])
    level = np.empty_like(place)
    level[place] = np.concatenate([[0], np.cumsum(above)])
    back = order[::-1]
    return back[np.argsort(level[back], kind="stable")]


def all_violate(Z: Array, S: Array, pairs: AllPairs | Edges, order: Array) -> tuple[Array, float]:
    r"""``w_s = S^-1 sum_e s_e v_e (x_i - x_j)`` and :math:`\delta_0 = 1 / (2 v\, range(X w_s))` (methods B4).

    While every pair violates, all multipliers are ``D`` and the direction is ``w_s`` for any delta.
    """
    if isinstance(pairs, AllPairs):
        c = OrderedPairs.arranged(pairs, order).balance()
        w = pairs.v * solve_shifted(S, Z[order].T @ c)
        s = Z @ w
        widest = pairs.v * float(np.max(s) - np.min(s))
    else:
        difference = signed_pairs(Z, pairs, order)
        w = solve_shifted(S, difference.T @ pairs.count)
        widest = float(np.max(np.abs(difference @ w)))
    return w, 0.5 / widest if widest > 0 else 1.0


def soft_margin_direction(
    Z: Array, S: Array, pairs: AllPairs | Edges, w0: Array, how: SoftMargin
) -> tuple[Array, SoftMarginStep]:
    """One direction by the concave-convex procedure, (7) to (10) of RSM (methods B2), from the start ``w0``."""
    order = score_order(Z, w0, np.arange(Z.shape[0]))
    w_s, delta_0 = all_violate(Z, S, pairs, order)
    delta = how.C * delta_0 if how.scale_C else how.C
    convex: ListedPairs | RankedPairs
    if isinstance(pairs, AllPairs):
        convex = RankedPairs(Z, S, pairs, 2.0 * delta)
    else:
        convex = ListedPairs(Z, S, pairs, 2.0 * delta)
    at_zero = convex.value(np.zeros_like(w0))
    w = _best_scale(convex, w0, 2.0 * delta * norm(w_s))
    objectives, stop = [convex.value(w)], Stop.MAX_ITER
    for step in range(MAX_STEPS):
        candidate = convex.improve(w, order, step > 0)
        value = convex.value(candidate)
        gain = objectives[-1] - value
        if gain > 0:
            w = candidate
            objectives.append(value)
        # J is almost constant for a small delta, so the gain is relative to J(0) - J
        if gain <= convex.gain_rtol * max(at_zero - objectives[-1], 0.0):
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


def _best_scale(convex: ListedPairs | RankedPairs, w0: Array, near: float) -> Array:
    """``w0`` scaled to the length, of a geometric grid from above ``near`` down, that minimizes ``J``.

    Along a ray ``J`` is convex, so the first length after which it rises is the best; a large delta calls for a much
    shorter one than ``near``.
    """
    # where the pairs cancel in this order, near is zero
    best = 4.0 * (near / norm(w0) or 1.0) * w0
    value = convex.value(best)
    while (new := convex.value(best / 2.0)) < value:
        best, value = best / 2.0, new
    return best


def recursive_soft_margin(
    Z: Array, pair: GraphPair, how: SoftMargin, step: Callable[[int], None] = lambda _: None
) -> SoftMarginResult:
    r"""Directions one by one, each the minimizer of the soft margin (6) in the complement of the previous ones (11).

    .. math::

        J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (f - v_{ij} |w^T (x_i - x_j)|)_+ \quad (6), \qquad
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
    if isinstance(pairs, AllPairs) and n * (n - 1) // 2 <= _MAX_LISTED_PAIRS:
        pairs = pairs.edges()
    if isinstance(pairs, Edges) and len(pairs.i) == 0:
        return SoftMarginResult(V[:, :0], (), Stop.FLAT)
    state = _SoftMarginDeflation(Reflected.start(Z), S, B, pairs, how)
    peeled = peel(state, min(asked, rank), step)
    W = state.space.W if L is None else solve_triangular(L, state.space.W, transposed=True)
    return SoftMarginResult(V @ W, peeled.records, Stop.RANK if rank < asked else peeled.stop)


@dataclass
class _SoftMarginDeflation(ScatterDeflation):
    """State of :func:`peel`, with the pairs that should be apart."""

    pairs: AllPairs | Edges
    how: SoftMargin

    def __post_init__(self) -> None:
        self.first = self._squared_gaps()

    def _squared_gaps(self) -> float:
        """Sum of the squared distances of listed pairs; of all samples from their mean where pairs are a rule."""
        Z, pairs = self.space.A, self.pairs
        gap = Z - np.mean(Z, axis=0) if isinstance(pairs, AllPairs) else Z[pairs.i] - Z[pairs.j]
        return float(np.sum(gap * gap))

    def find(self) -> tuple[Array, SoftMarginStep] | Stop:
        if self._squared_gaps() <= ZERO_RATIO * self.first:
            return Stop.FLAT
        # start from the direction of the ratio (methods B2); w = 0 is stationary
        w, step = soft_margin_direction(self.space.A, self.S, self.pairs, self.best()[0], self.how)
        return w / norm(w), step
