r"""Sparse soft margin directions: an l1 penalty in the original coordinates (methods B8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.linalg import generalized_eigh
from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop
from fewkern.core.peel import peel
from fewkern.margins.convex import ConvexSteps, ListedPairs, RankedPairs, SmoothLoss
from fewkern.margins.embedding import FLAT_TRACE_RATIO, penalty_rank, regularized_scatter
from fewkern.margins.graphs import Edges, GraphPair, PairSet
from fewkern.margins.soft import (
    SoftMargin,
    SoftMarginProblem,
    SoftMarginResult,
    SoftMarginStep,
    soft_margin_direction,
)
from fewkern.margins.spaces import no_columns, norm

__all__ = ["PenalizedSteps", "sparse_soft_margin"]

# Widths of the smoothed hinge in units of the margin: a proximal step needs a bounded second derivative.
_SMOOTHING_MARGINS = (0.3, 0.05)
# Proximal steps per width, and the relative gain at which they stop.
_MAX_PROXIMAL_STEPS, _GAIN_RTOL = 300, 1e-8
# The curvature is doubled while a step overshoots (up to rounding), and multiplied by this factor after every step.
_VALUE_RTOL, _CURVATURE_DECAY = 1e-12, 0.9


def sparse_soft_margin(
    Z: Array, pair: GraphPair, sparsity: float, how: SoftMargin, step: Callable[[int], None] = lambda _: None
) -> SoftMarginResult:
    r"""Directions of :math:`J(w) + \lambda \|w\|_1` with few nonzero entries, one by one.

    :math:`\lambda` is ``sparsity`` times the value at which ``w`` would vanish, :math:`D \max_k |\sum_e s_e v_e (x_i
    - x_j)_k|`.

    Parameters
    ----------
    Z : array of shape (n, d)
        Centered samples in their original coordinates: a rotation would destroy sparsity.
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
    d = int(Z.shape[1])
    state = _SparseDeflation(
        Z, regularized_scatter(pair, Z, how.ridge), pair.penalty.scatter(Z), pair.pairs(), sparsity, how
    )
    asked = penalty_rank(state.B, state.S) if how.n_components is None else how.n_components
    peeled = peel(state, min(asked, d, int(Z.shape[0])), step)
    columns = [w for w, _ in peeled.records]
    W = np.stack(columns, axis=1) if columns else no_columns(d)
    return SoftMarginResult(W, tuple(record for _, record in peeled.records), d, peeled.stop)


class _SparseDeflation:
    """State of :func:`peel`: samples and scatters, projected off the directions so far."""

    def __init__(self, Z: Array, S: Array, B: Array, pairs: PairSet | Edges, sparsity: float, how: SoftMargin) -> None:
        d = int(Z.shape[1])
        self.pairs, self.sparsity, self.how = pairs, sparsity, how
        self.Z, self.S, self.B = Z, S, B
        self.identity = np.eye(d)
        self.tau = how.ridge * float(np.trace(S)) / d / (1.0 + how.ridge)
        # as given: samples, intrinsic scatter without its ridge, penalty scatter
        self.given = (Z, S - self.tau * self.identity, B)
        self.W = no_columns(d)

    def find(self) -> tuple[Array, SoftMarginStep] | Stop:
        if float(np.trace(self.B)) <= FLAT_TRACE_RATIO * float(np.trace(self.given[2])):
            return Stop.RANK
        problem = _SparseProblem(self.Z, self.S, self.pairs, self.sparsity)
        w, step = soft_margin_direction(problem, generalized_eigh(self.B, self.S)[1][:, 0], self.how)
        length = norm(w)
        return Stop.PENALTY if length == 0.0 else (w / length, step)

    def remove(self, found: tuple[Array, SoftMarginStep]) -> list[tuple[Array, SoftMarginStep]]:
        w = found[0]
        self.W = np.concatenate([self.W, w[:, None]], axis=1)
        Q = np.linalg.qr(self.W)[0]
        P = self.identity - Q @ Q.T
        Z, S, B = self.given
        self.Z, self.S, self.B = Z @ P, P @ S @ P + self.tau * self.identity, P @ B @ P
        return [found]


@dataclass(frozen=True)
class _SparseProblem(SoftMarginProblem):
    r"""One direction of :math:`J(w) + \lambda \|w\|_1`."""

    sparsity: float

    def convex_steps(self, D: float, w_s: Array) -> ConvexSteps:
        return PenalizedSteps(self.plain_steps(D), self.S, self.sparsity * D * float(np.max(np.abs(self.S @ w_s))))


@dataclass(frozen=True)
class PenalizedSteps:
    """Convex steps with an l1 penalty, by proximal gradients on the smoothed loss."""

    plain: ListedPairs | RankedPairs
    S: Array
    penalty: float

    noise = 1e-7  # proximal steps end at a gain of this size

    def value(self, w: Array) -> float:
        return self.plain.value(w) + self._l1(w)

    def improve(self, w: Array, order: Array, near: bool) -> Array:
        loss = self.plain.loss(order)
        for mu in _SMOOTHING_MARGINS:
            w = self._proximal(loss, w, mu)
        return w

    def _l1(self, w: Array) -> float:
        return self.penalty * float(np.sum(np.abs(w)))

    def _proximal(self, loss: SmoothLoss, w: Array, mu: float) -> Array:
        """Accelerated proximal gradients with backtracking and restarts."""
        curvature = float(np.trace(self.S)) / int(self.S.shape[0])
        ahead, momentum = w, 1.0
        last = loss.smooth(w, mu)[0] + self._l1(w)
        for _ in range(_MAX_PROXIMAL_STEPS):
            new, value, curvature = self._step(loss, ahead, mu, curvature)
            total = value + self._l1(new)
            if total > last:
                if momentum == 1.0:
                    break
                ahead, momentum = w, 1.0  # the extrapolation overshot: restart
                continue
            gain, last = last - total, total
            longer = (1.0 + (1.0 + 4.0 * momentum * momentum) ** 0.5) / 2.0
            ahead = new + ((momentum - 1.0) / longer) * (new - w)
            w, momentum = new, longer
            curvature *= _CURVATURE_DECAY
            if gain <= _GAIN_RTOL * abs(total):
                break
        return w

    def _step(self, loss: SmoothLoss, ahead: Array, mu: float, curvature: float) -> tuple[Array, float, float]:
        """One proximal step from ``ahead``, its smooth value, and the curvature that it needed."""
        at, g = loss.smooth(ahead, mu)
        while True:
            step = ahead - g / curvature
            new = np.sign(step) * np.maximum(np.abs(step) - self.penalty / curvature, 0.0)
            move = new - ahead
            value, _ = loss.smooth(new, mu)
            if value <= at + float(g @ move) + 0.5 * curvature * float(move @ move) + _VALUE_RTOL * abs(at):
                return new, value, curvature
            curvature *= 2.0
