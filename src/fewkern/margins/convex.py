r"""One convex step of recursive soft margins: a hinge per pair, the signs fixed by an order of the samples (B2, B5).

.. math:: \tfrac12 w^T S w + D \sum_e (1 - s_e v_e\, w^T (x_i - x_j))_+ \quad \text{RSM (9)}

The pairs enter one by one in a quadratic program (:class:`ListedPairs`), or through a sort (:class:`RankedPairs`). Each
has the objective ``value(w)`` with absolute values in place of signs, the minimizer ``improve(w, order, near)`` of the
convex step of an order, from ``w`` (``near``: which is close to it), and ``noise``, the fraction of ``J(0) - J`` below
which gains are noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewkern.arrays.linalg import cholesky_psd, solve_triangular
from fewkern.arrays.namespace import Array
from fewkern.margins.graphs import AllPairs, Edges
from fewkern.margins.hinge import HingeProblem, minimize_hinge
from fewkern.margins.ranking import OrderedPairs, RankedLoss

# Pairs this near to their margin are in the quadratic program from the start, fewer after the first step, when w moves
# little; others join.
_FIRST_BAND_MARGINS, _BAND_MARGINS = 0.3, 0.05
# Pairs that turn out to lie this far on the wrong side of their margin join.
_WRONG_SIDE_MARGINS = 1e-9
# Widths of the smoothed hinge, in units of the margin. After the first step w is near the solution, and only the last
# ones are used. Of one only, which takes three quarters of the time, some stored results change by a sample.
_SMOOTHING_MARGINS, _LAST_WIDTHS = (0.5, 0.1, 0.02, 0.004, 0.001), 2
# Newton's method per width: steps, and the gain, relative to J(0) - J, at which it ends; a wide hinge only gives the
# start of the next one.
_MAX_NEWTON_STEPS, _NEWTON_RTOL, _WIDE_NEWTON_RTOL = 20, 1e-7, 1e-3
# Armijo's rule: required fraction of the predicted decrease; and the shortest step.
_ARMIJO_FRACTION, _MIN_STEP_LENGTH = 1e-4, 1e-6


def solve(S: Array, x: Array) -> Array:
    """``S^-1 x`` for a positive definite ``S``."""
    L = cholesky_psd(S)
    return solve_triangular(L, solve_triangular(L, x), transposed=True)


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

    noise = 0.0

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

    noise = 1e-7  # smoothing with the last width moves the value by more

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
            step = -solve(loss.curvature(w, mu), g)
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
