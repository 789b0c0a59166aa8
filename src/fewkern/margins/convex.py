r"""The convex step of the soft margin: signs of the pairs fixed by an order of the samples (methods B2, B5).

.. math:: \tfrac12 w^T S w + D \sum_e (1 - s_e v_e\, w^T (x_i - x_j))_+

with the pairs one by one in a quadratic program (:class:`ListedPairs`), or through a sort (:class:`RankedPairs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from fewkern.arrays.linalg import cholesky_psd, solve_triangular
from fewkern.arrays.namespace import Array, device, namespace, take_rows
from fewkern.margins.graphs import Edges, PairSet
from fewkern.margins.hinge import HingeProblem, minimize_hinge
from fewkern.margins.ranking import OrderedPairs
from fewkern.margins.spaces import Rows

__all__ = [
    "ConvexSteps",
    "ListedLoss",
    "ListedPairs",
    "RankedLoss",
    "RankedPairs",
    "SmoothLoss",
    "signed_pairs",
    "solve",
]

# Pairs this near to their margin are in the quadratic program at first; less far after the first step, when w moves
# little, and so do the pairs.
_FIRST_BAND, _BAND = 0.3, 0.05
# Pairs that turn out to lie on the wrong side join at most so many times; on the wrong side by this much.
_JOINS, _WRONG_SIDE = 50, 1e-9
# Widths of the smoothed hinge, in units of the margin, from wide to narrow, and how many of them after the first step,
# when w is near the solution and wide smoothing would only lead away from it.
_WIDTHS, _LAST_WIDTHS = (0.5, 0.1, 0.02, 0.004, 0.001), 2
# Newton steps per width end at this part of what was gained: a wide hinge only leads to the start of the next one.
_NEWTON_STEPS, _NEWTON_TOL, _NEWTON_TOL_WIDE = 20, 1e-7, 1e-3
# Armijo's rule: least part of the predicted decrease, and the shortest step.
_ARMIJO, _SHORTEST = 1e-4, 1e-6


class ConvexSteps(Protocol):
    """What the concave-convex procedure asks for: the objective, and a minimizer with the signs of an order."""

    @property
    def noise(self) -> float:
        """Gains below this part of ``J(0) - J`` mean nothing."""

    def value(self, w: Array, /) -> float:
        """``J(w)``, with the absolute values."""

    def improve(self, w: Array, order: Array, near: bool, /) -> Array:
        """Minimizer of the convex step, from ``w``; ``near`` says that ``w`` is near it."""


def solve(S: Array, x: Array) -> Array:
    """``S^-1 x`` for a positive definite ``S``."""
    L = cholesky_psd(S)
    return solve_triangular(L, solve_triangular(L, x), transposed=True)


def signed_pairs(Z: Array, edges: Edges, order: Array) -> Array:
    """Rows ``v_e s_e (x_i - x_j)``, the sign taken from the order."""
    xp = namespace(Z)
    rank = xp.argsort(order, stable=True)
    factor = xp.where(take_rows(rank, edges.i) > take_rows(rank, edges.j), edges.v, -edges.v)
    return factor[:, None] * (take_rows(Z, edges.i) - take_rows(Z, edges.j))


class SmoothLoss(Protocol):
    """The convex objective with smoothed hinges."""

    def smooth(self, w: Array, mu: float, /) -> tuple[float, Array]:
        """Value and gradient; ``mu`` is the width of smoothing in units of the margin."""


@dataclass(frozen=True)
class ListedLoss:
    """Over listed pairs, rows of ``G``, each counted ``count`` times."""

    S: Array
    G: Array
    count: Array

    def smooth(self, w: Array, mu: float) -> tuple[float, Array]:
        """Value and gradient; ``mu`` is the width of smoothing in units of the margin."""
        xp = namespace(w)
        t, zero = self.G @ w, xp.zeros_like(self.count)
        outer, inner = xp.maximum(1.0 + mu - t, zero), xp.maximum(1.0 - mu - t, zero)
        value = float(self.count @ (outer * outer - inner * inner)) / (4 * mu)
        slope = -self.count * (outer - inner) / (2 * mu)
        Sw = self.S @ w
        return 0.5 * float(w @ Sw) + value, Sw + self.G.T @ slope


@dataclass(frozen=True)
class RankedLoss:
    """Over pairs of one common weight, in the order of the rows of ``X``."""

    S: Array
    X: Array
    pairs: OrderedPairs
    margin: float
    weight: float

    def smooth(self, w: Array, mu: float) -> tuple[float, Array]:
        """Value and gradient; ``mu`` is the width of smoothing in units of the margin."""
        value, g = self.pairs.huber(self.X @ w, self.margin, mu * self.margin)
        Sw = self.S @ w
        return 0.5 * float(w @ Sw) + self.weight * value, Sw + self.weight * (self.X.T @ g)

    def curvature(self, w: Array, mu: float) -> Array:
        """Second derivative."""
        H = self.pairs.huber_curvature(self.X @ w, self.X, self.margin, mu * self.margin)
        return self.S + self.weight * H


@dataclass(frozen=True)
class ListedPairs:
    """Convex steps as a quadratic program over the pairs near the margin (methods B2)."""

    Z: Array
    S: Array
    edges: Edges
    D: float

    noise = 0.0

    @cached_property
    def factor(self) -> Array:
        """``L`` with ``S = L L'``."""
        return cholesky_psd(self.S)

    @cached_property
    def white(self) -> Array:
        """Samples in coordinates ``u = L'w``, where lengths are those of the identity."""
        return solve_triangular(self.factor, self.Z.T).T

    def loss(self, order: Array) -> ListedLoss:
        """The convex objective of an order."""
        return ListedLoss(self.S, signed_pairs(self.Z, self.edges, order), self.D * self.edges.count)

    def value(self, w: Array) -> float:
        """``J(w)``, with the absolute values."""
        xp = namespace(w)
        s, e = self.Z @ w, self.edges
        t = e.v * xp.abs(take_rows(s, e.i) - take_rows(s, e.j))
        return 0.5 * float(w @ (self.S @ w)) + self.D * float(e.count @ xp.maximum(1.0 - t, xp.zeros_like(t)))

    def improve(self, w: Array, order: Array, near: bool) -> Array:
        """Minimizer of the convex step; pairs far below the margin have the multiplier ``D``, far above it 0."""
        xp = namespace(w)
        G = signed_pairs(self.white, self.edges, order)
        box = self.D * self.edges.count
        u = self.factor.T @ w
        t = G @ u
        inside = xp.abs(t - 1.0) <= (_BAND if near else _FIRST_BAND)
        for _ in range(_JOINS):
            far_below = xp.logical_not(inside) & (t < 1.0)
            linear = G.T @ xp.where(far_below, box, xp.zeros_like(box))
            rows = xp.nonzero(inside)[0]
            u = _inside_band(take_rows(G, rows), take_rows(box, rows), linear)
            margins = G @ u
            # pairs that were taken to be on the one side and now lie on the other one
            wrong = xp.logical_not(inside) & (xp.where(far_below, margins - 1.0, 1.0 - margins) > _WRONG_SIDE)
            if not bool(xp.any(wrong)):
                break
            inside = inside | wrong
        return solve_triangular(self.factor, u, transposed=True)


def _inside_band(G: Array, box: Array, linear: Array) -> Array:
    """The program over the pairs ``G`` alone; all others are in the linear term."""
    if not G.shape[0]:
        return linear
    ones = namespace(G).ones((G.shape[0],), dtype=G.dtype, device=device(G))
    return minimize_hinge(HingeProblem(Rows(G), ones, ones, box, bias=False, linear=linear)).w


@dataclass(frozen=True)
class RankedPairs:
    """Convex steps on the smoothed hinge, by Newton's method with sums over all pairs in n log n (methods B5)."""

    Z: Array
    S: Array
    pairs: PairSet
    D: float

    noise = 1e-7  # smoothing with the last width moves the value by more

    @property
    def margin(self) -> float:
        """Distance of two projections at which their pair is apart."""
        return 1.0 / self.pairs.v

    @cached_property
    def _plain(self) -> OrderedPairs:
        xp = namespace(self.Z)
        return OrderedPairs.arranged(self.pairs, xp.arange(self.Z.shape[0], device=device(self.Z)))

    @cached_property
    def _at_zero(self) -> float:
        return self.value(namespace(self.Z).zeros_like(self.Z[0, :]))

    def loss(self, order: Array) -> RankedLoss:
        """The convex objective of an order."""
        X, pairs = take_rows(self.Z, order), OrderedPairs.arranged(self.pairs, order)
        return RankedLoss(self.S, X, pairs, self.margin, self.D * self.pairs.v)

    def value(self, w: Array) -> float:
        """``J(w)``, with the absolute values."""
        window = self._plain.window_value(self.Z @ w, self.margin)
        return 0.5 * float(w @ (self.S @ w)) + self.D * self.pairs.v * window

    def improve(self, w: Array, order: Array, near: bool) -> Array:
        """Minimizer of the convex step with smoothed hinges, ever narrower."""
        loss = self.loss(order)
        widths = _WIDTHS[-_LAST_WIDTHS:] if near else _WIDTHS
        for mu in widths:
            w = self._newton(loss, w, mu, _NEWTON_TOL if mu == widths[-1] else _NEWTON_TOL_WIDE)
        return w

    def _newton(self, loss: RankedLoss, w: Array, mu: float, tol: float) -> Array:
        value, g = loss.smooth(w, mu)
        for _ in range(_NEWTON_STEPS):
            step = -solve(loss.curvature(w, mu), g)
            slope = float(g @ step)
            # J is almost J(0) when delta is small: what matters is how far below it one has come
            if -slope <= tol * abs(self._at_zero - value):
                break
            length = 1.0
            while length > _SHORTEST:
                new, new_g = loss.smooth(w + length * step, mu)
                if new <= value + _ARMIJO * length * slope:
                    break
                length /= 2
            else:
                break
            gain = value - new
            w, value, g = w + length * step, new, new_g
            if gain <= tol * abs(self._at_zero - value):
                break
        return w
