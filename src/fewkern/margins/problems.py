"""Sums of hinges as problems: hyperplanes between classes, and tubes around targets (methods A1, A7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from sys import float_info

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.margins.spaces import Points

__all__ = [
    "HingeProblem",
    "HingeSolution",
    "MarginProblem",
    "MarginTask",
    "class_problems",
    "hinge_at_zero",
    "or_infinite",
    "relative_gap",
    "tube_problem",
]


# The best bias is a weighted quantile; sums of weights that differ by less than this fraction are equal.
_TIE_RTOL = 1e-12


@dataclass(frozen=True)
class HingeProblem:
    r"""Half the squared length of ``w`` plus a weighted sum of hinges (methods A1, B2).

    .. math:: \tfrac12 \|w\|^2 - g^T w + \sum_i C_i (h_i - s_i (\langle w, x_i \rangle + b))_+

    with the dual :math:`\max_\alpha h^T \alpha - \tfrac12 \|g + \sum_i \alpha_i s_i x_i\|^2` over
    :math:`0 \le \alpha_i \le C_i`, :math:`\sum_i s_i \alpha_i = 0` (only with a bias).

    Parameters
    ----------
    points : Points
        The ``x_i``.
    signs, targets, C : arrays of shape (n,)
        ``s`` (one or minus one), ``h`` and the positive box constants.
    bias : bool
        Whether ``b`` is free; otherwise it is zero.
    linear : array of shape (q,) or None
        ``g``; None is zero.
    """

    points: Points
    signs: Array
    targets: Array
    C: Array
    bias: bool = True
    linear: Array | None = None

    @cached_property
    def g(self) -> Array:
        """The linear term as an array."""
        if self.linear is not None:
            return self.linear
        return np.zeros(self.points.width)

    @cached_property
    def size(self) -> float:
        """Scale of a margin."""
        return 1.0 + float(np.max(np.abs(self.targets)))

    def combination(self, a: Array) -> Array:
        """``sum_i a_i s_i x_i``."""
        return self.points.transposed_times(self.signs * a)

    def shortfall(self, w: Array) -> Array:
        """``h_i - s_i <w, x_i>``: the shortfall from the margin without a bias."""
        return self.targets - self.signs * self.points.times(w)

    def primal(self, w: Array, short: Array) -> float:
        """Value at ``w`` with the shortfalls ``short``, bias included."""
        return 0.5 * float(w @ w) - float(self.g @ w) + float(self.C @ np.maximum(short, 0.0))

    def best_bias(self, short: Array) -> float:
        """The ``b`` that minimizes the hinges, for shortfalls ``short`` without it."""
        return _best_bias(self.signs, short, self.C) if self.bias else 0.0

    def solution(self, a: Array, b: float | None = None) -> HingeSolution:
        """The pair ``(w(a), b)`` of feasible multipliers, with its duality gap; the best bias if none is given."""
        w = self.g + self.combination(a)
        short = self.shortfall(w)
        b = self.best_bias(short) if b is None else b
        primal = self.primal(w, short - self.signs * b)
        dual = float(self.targets @ a) - 0.5 * float(w @ w)
        return HingeSolution(w, b, a, primal, dual, or_infinite(relative_gap(primal, dual)), 0, Stop.CONVERGED)


@dataclass(frozen=True)
class HingeSolution:
    """Minimizer of a sum of hinges and its certificate."""

    w: Array
    bias: float
    alpha: Array
    primal: float
    dual: float
    error: float
    """Relative duality gap or infeasibility, the larger one."""
    n_iter: int
    stop: Stop
    """CONVERGED, PRECISION or MAX_ITER."""


def hinge_at_zero(signs: Array, targets: Array, C: Array) -> float:
    r""":math:`\min_b \sum_i C_i (h_i - s_i b)_+`: the value at ``w = 0``, the cap of all steps (methods A3.3)."""
    b = _best_bias(signs, targets, C)
    return float(C @ np.maximum(targets - signs * b, 0.0))


def _best_bias(signs: Array, targets: Array, C: Array) -> float:
    """The minimizer: the slope in ``b`` rises by ``C_i`` at every ``s_i h_i``, so it is a weighted quantile."""
    breaks = signs * targets
    order = np.argsort(breaks, kind="stable")
    rising = np.cumsum(C[order])
    below = float(np.sum(np.where(signs > 0, C, 0.0)))
    place = int(np.count_nonzero(rising < below * (1 - _TIE_RTOL)))
    return float(breaks[order[min(place, int(order.shape[0]) - 1)]])


def or_infinite(error: float) -> float:
    """The error, infinite where numbers overflowed."""
    return error if math.isfinite(error) else math.inf


def relative_gap(primal: float, dual: float) -> float:
    """Duality gap, relative to the two values."""
    return abs(primal - dual) / max(abs(primal) + abs(dual), float_info.min)


@dataclass(frozen=True)
class MarginProblem:
    r"""One hyperplane: :math:`\min \frac12 |w|^2 + \sum_k C_k (h_k - s_k (\langle w, x_{r_k} \rangle + b))_+`.

    ``rows`` are the samples of the terms; a sample may occur twice (regression) or not at all (one-vs-one).
    """

    rows: Array
    signs: Array
    targets: Array
    C: Array

    def cap(self) -> float:
        """Value at ``w = 0``, which no step exceeds (methods A3.3)."""
        return hinge_at_zero(self.signs, self.targets, self.C)

    def on(self, space: Points) -> HingeProblem:
        """The problem on the samples of ``space``."""
        return HingeProblem(space.subset(self.rows), self.signs, self.targets, self.C)


def class_problems(codes: Array, n_classes: int, C: Array, strategy: str = "ovr") -> list[MarginProblem]:
    """Two classes against each other (one problem), each against the rest ("ovr"), or all pairs ("ovo").

    Parameters
    ----------
    codes : integer array of shape (n,)
        Classes as 0, 1, ...
    n_classes : int
    C : array of shape (n,)
        Box constants; samples with 0 are left out.
    strategy : {"ovr", "ovo"}
        For three classes or more.
    """
    if n_classes == 2:
        pairs: list[tuple[int, int | None]] = [(1, 0)]
    elif strategy == "ovr":
        pairs = [(k, None) for k in range(n_classes)]
    else:
        pairs = [(k, j) for k in range(n_classes) for j in range(k)]
    problems = []
    for up, down in pairs:
        taking_part = C > 0 if down is None else (C > 0) & ((codes == up) | (codes == down))
        rows = np.flatnonzero(taking_part)
        box = C[rows]
        signs = np.where(codes[rows] == up, 1.0, -1.0)
        problems.append(MarginProblem(rows, signs, np.ones_like(box), box))
    return problems


def tube_problem(y: Array, C: Array, epsilon: float) -> MarginProblem:
    """Epsilon-insensitive regression as hinges: two per sample, one from each side (methods A7)."""
    rows = np.flatnonzero(C > 0)
    y, C = y[rows], C[rows]
    one = np.ones_like(C)
    return MarginProblem(
        np.concatenate([rows, rows]),
        np.concatenate([one, -one]),
        np.concatenate([y - epsilon, -y - epsilon]),
        np.concatenate([C, C]),
    )


@dataclass(frozen=True)
class MarginTask:
    """Hyperplanes between classes, or a tube around targets, for any samples."""

    C: float
    """Weight of the hinges; those of the samples multiply it."""
    strategy: str = "ovr"
    """For three classes or more: "ovr", each against the rest, or "ovo", all pairs."""
    epsilon: float | None = None
    """Half-width of the tube around targets; None where there are classes."""

    def problems(self, samples: Samples) -> list[MarginProblem]:
        """The hyperplanes to find."""
        C = self.C * samples.weights
        if self.epsilon is None:
            return class_problems(samples.codes, samples.n_classes, C, self.strategy)
        assert samples.targets is not None
        return [tube_problem(samples.targets[:, 0].astype(np.float64), C, self.epsilon)]
