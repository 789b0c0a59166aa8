r"""Sparse soft margin directions: an l1 penalty in the original coordinates (methods B8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fewkern.arrays.linalg import generalized_eigh
from fewkern.arrays.namespace import Array, device, namespace
from fewkern.core.path import Stop
from fewkern.core.peel import peel
from fewkern.margins.convex import ConvexSteps, ListedPairs, RankedPairs, SmoothLoss
from fewkern.margins.embedding import ridged, seen_directions
from fewkern.margins.graphs import Edges, GraphPair, PairSet
from fewkern.margins.soft import (
    SoftMargin,
    SoftMarginProblem,
    SoftMarginResult,
    SoftMarginStep,
    soft_margin_direction,
)
from fewkern.margins.spaces import no_columns

__all__ = ["sparse_soft_margin"]

# Widths of the smoothed hinge in units of the margin: a proximal step needs no second derivative, but a bounded one.
_WIDTHS = (0.3, 0.05)
# Proximal steps per width, and the relative gain at which they end.
_STEPS, _GAIN = 300, 1e-8
# Curvature is doubled while a step overshoots (up to rounding), and falls by this factor after every step.
_ROUNDING, _EASE = 1e-12, 0.9
# Nothing is left once the penalty scatter has fallen to this part of what it was.
_NOTHING = 1e-12


def sparse_soft_margin(
    Z: Array, pair: GraphPair, sparsity: float, how: SoftMargin, step: Callable[[int], None] = lambda _: None
) -> SoftMarginResult:
    r"""Directions of :math:`J(w) + \lambda \|w\|_1` with few nonzero entries, one by one.

    :math:`\lambda` is ``sparsity`` times the value at which ``w`` would vanish, :math:`D \max_k |\sum_e s_e v_e (x_i
    - x_j)_k|`.

    Parameters
    ----------
    Z : array of shape (n, d)
        Centered samples in their own coordinates: a rotation would spoil what is sparse.
    pair : GraphPair
    sparsity : float
        Between 0 and 1.
    how : SoftMargin
        ``metric`` and ``solver`` are not read.
    step : function
        Called with the number of directions so far.

    Returns
    -------
    SoftMarginResult
        With unit columns, which are not orthogonal: the samples are deflated on an orthonormal basis of those before.

    Notes
    -----
    Concave-convex steps outside, accelerated proximal gradients on the smoothed sorted loss inside: :math:`O(nd + n
    \log n)` each, and one :math:`d \times d` scatter.
    """
    xp, d = namespace(Z), int(Z.shape[1])
    left = _Left(Z, ridged(pair, Z, how.ridge), pair.penalty.scatter(Z), pair.pairs(), sparsity, how)
    asked = seen_directions(left.B, left.S) if how.n_components is None else how.n_components
    peeled = peel(left, min(asked, d, int(Z.shape[0])), step)
    columns = [w for w, _ in peeled.records]
    W = xp.stack(columns, axis=1) if columns else no_columns(d, Z)
    return SoftMarginResult(W, tuple(record for _, record in peeled.records), d, peeled.stop)


class _Left:
    """What is left of the samples and of their scatters outside of the directions so far."""

    def __init__(self, Z: Array, S: Array, B: Array, pairs: PairSet | Edges, sparsity: float, how: SoftMargin) -> None:
        xp, d = namespace(Z), int(Z.shape[1])
        self.pairs, self.sparsity, self.how = pairs, sparsity, how
        self.Z, self.S, self.B = Z, S, B
        self.identity = xp.eye(d, dtype=Z.dtype, device=device(Z))
        self.tau = how.ridge * float(xp.linalg.trace(S)) / d / (1.0 + how.ridge)
        # as given: samples, intrinsic scatter without its ridge, penalty scatter
        self.given = (Z, S - self.tau * self.identity, B)
        self.W = no_columns(d, Z)

    def find(self) -> tuple[Array, SoftMarginStep] | Stop:
        xp = namespace(self.Z)
        if float(xp.linalg.trace(self.B)) <= _NOTHING * float(xp.linalg.trace(self.given[2])):
            return Stop.RANK
        problem = _SparseProblem(self.Z, self.S, self.pairs, self.sparsity)
        w, step = soft_margin_direction(problem, generalized_eigh(self.B, self.S)[1][:, 0], self.how)
        length = float(xp.linalg.vector_norm(w))
        return Stop.PENALTY if length == 0.0 else (w / length, step)

    def remove(self, found: tuple[Array, SoftMarginStep]) -> list[tuple[Array, SoftMarginStep]]:
        w, xp = found[0], namespace(self.W)
        self.W = xp.concat([self.W, w[:, None]], axis=1)
        Q = xp.linalg.qr(self.W)[0]
        P = self.identity - Q @ Q.T
        Z, S, B = self.given
        self.Z, self.S, self.B = Z @ P, P @ S @ P + self.tau * self.identity, P @ B @ P
        return [found]


@dataclass(frozen=True)
class _SparseProblem(SoftMarginProblem):
    r"""One direction of :math:`J(w) + \lambda \|w\|_1`."""

    sparsity: float

    def convex_steps(self, D: float, w_s: Array) -> ConvexSteps:
        xp = namespace(w_s)
        return _Penalized(self.plain_steps(D), self.S, self.sparsity * D * float(xp.max(xp.abs(self.S @ w_s))))


@dataclass(frozen=True)
class _Penalized:
    """Convex steps with the penalty, by proximal gradients on the smoothed loss."""

    plain: ListedPairs | RankedPairs
    S: Array
    penalty: float

    noise = 1e-7  # proximal steps end at a gain of this size

    def value(self, w: Array) -> float:
        return self.plain.value(w) + self._l1(w)

    def improve(self, w: Array, order: Array, near: bool) -> Array:
        loss = self.plain.loss(order)
        for mu in _WIDTHS:
            w = self._proximal(loss, w, mu)
        return w

    def _l1(self, w: Array) -> float:
        xp = namespace(w)
        return self.penalty * float(xp.sum(xp.abs(w)))

    def _proximal(self, loss: SmoothLoss, w: Array, mu: float) -> Array:
        """Accelerated proximal gradients with backtracking and restarts."""
        xp = namespace(w)
        curvature = float(xp.linalg.trace(self.S)) / int(self.S.shape[0])
        ahead, momentum = w, 1.0
        last = loss.smooth(w, mu)[0] + self._l1(w)
        for _ in range(_STEPS):
            new, value, curvature = self._step(loss, ahead, mu, curvature)
            total = value + self._l1(new)
            if total > last:
                if momentum == 1.0:
                    break
                ahead, momentum = w, 1.0  # the extrapolation overshot: start it anew
                continue
            gain, last = last - total, total
            longer = (1.0 + (1.0 + 4.0 * momentum * momentum) ** 0.5) / 2.0
            ahead = new + ((momentum - 1.0) / longer) * (new - w)
            w, momentum = new, longer
            curvature *= _EASE
            if gain <= _GAIN * abs(total):
                break
        return w

    def _step(self, loss: SmoothLoss, ahead: Array, mu: float, curvature: float) -> tuple[Array, float, float]:
        """One proximal step from ``ahead``, its smooth value, and the curvature that it needed."""
        xp = namespace(ahead)
        at, g = loss.smooth(ahead, mu)
        while True:
            step = ahead - g / curvature
            new = xp.sign(step) * xp.maximum(xp.abs(step) - self.penalty / curvature, xp.zeros_like(step))
            move = new - ahead
            value, _ = loss.smooth(new, mu)
            if value <= at + float(g @ move) + 0.5 * curvature * float(move @ move) + _ROUNDING * abs(at):
                return new, value, curvature
            curvature *= 2.0
