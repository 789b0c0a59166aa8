"""Samples from which directions are removed, and sums of hinges over them (methods A2, B2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from sys import float_info

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop

__all__ = [
    "HingeProblem",
    "HingeSolution",
    "Reflected",
    "hinge_at_zero",
    "norm",
    "reflect",
    "reflect_both",
    "relative_error",
]

# The best bias is a weighted quantile; sums of weights that differ by less than this fraction are equal.
_TIE_RTOL = 1e-12


def norm(w: Array) -> float:
    """Euclidean length of a vector, by pairwise summation."""
    return float(np.sqrt(np.sum(w * w)))


def reflect(A: Array, u: Array) -> tuple[Array, Array]:
    """``A H`` without its first column, and ``A u``, for the reflection ``H`` of the unit vector ``u`` to an axis."""
    sign = -1.0 if float(u[0]) < 0 else 1.0
    # v = u + sign(u_1) e_1: no cancellation, and v'v = 2 (1 + |u_1|)
    Au = A @ u
    Av = Au + sign * A[:, 0]
    scale = 1.0 / (1.0 + abs(float(u[0])))
    return A[:, 1:] - (scale * Av)[:, None] * u[None, 1:], Au


def reflect_both(S: Array, u: Array) -> Array:
    """``H S H`` without its first row and column: a symmetric matrix in the complement of ``u``."""
    return reflect(reflect(S, u)[0].T, u)[0]


@dataclass(frozen=True)
class Reflected:
    """Centered features in coordinates of the complement of the directions removed.

    A Householder reflection maps a removed direction to the first axis, which is dropped: the dimension shrinks by one,
    and the directions are orthonormal to rounding.
    """

    A: Array
    """One row per sample."""
    Q: Array
    """Maps the complement back to the original coordinates."""
    W: Array
    """Removed directions: orthonormal columns in original coordinates."""

    @classmethod
    def start(cls, Z: Array, V: Array | None = None) -> Reflected:
        """The features ``Z``, centered by the caller; with ``V``, in the span of its orthonormal columns."""
        Q = np.eye(Z.shape[1]) if V is None else V
        return cls(Z if V is None else Z @ V, Q, np.zeros((Q.shape[0], 0)))

    @property
    def dimension(self) -> int:
        """Number of remaining directions."""
        return int(self.A.shape[1])

    def largest_norm(self) -> float:
        """Length of the longest deflated sample."""
        return float(np.max(np.sum(self.A * self.A, axis=1))) ** 0.5 if self.dimension else 0.0

    def without(self, U: Array) -> tuple[Reflected, Array]:
        """The complement of the orthonormal columns of ``U``, and the projections of the samples on them."""
        A, Q = self.A, self.Q
        directions, features = [self.W], []
        while U.shape[1]:
            u = U[:, 0] / norm(U[:, 0])
            A, z = reflect(A, u)
            Q, w = reflect(Q, u)
            U = reflect(U.T, u)[0].T[:, 1:]
            directions.append(w[:, None])
            features.append(z)
        return Reflected(A, Q, np.concatenate(directions, axis=1)), np.stack(features, axis=1)


@dataclass(frozen=True)
class HingeProblem:
    r"""Half the squared length of ``w`` plus a weighted sum of hinges (methods A1, B2).

    .. math:: \tfrac12 \|w\|^2 - g^T w + \sum_i C_i (h_i - s_i (\langle w, x_i \rangle + b))_+

    with the dual :math:`\max_\alpha h^T \alpha - \tfrac12 \|g + \sum_i \alpha_i s_i x_i\|^2` over
    :math:`0 \le \alpha_i \le C_i`, :math:`\sum_i s_i \alpha_i = 0` (only with a bias).

    Parameters
    ----------
    X : array of shape (n, q)
        The ``x_i``.
    signs, targets, C : arrays of shape (n,)
        ``s`` (one or minus one), ``h`` and the positive box constants.
    bias : bool
        Whether ``b`` is free; otherwise it is zero.
    linear : array of shape (q,) or None
        ``g``; None is zero.
    """

    X: Array
    signs: Array
    targets: Array
    C: Array
    bias: bool = True
    linear: Array | None = None

    @cached_property
    def g(self) -> Array:
        """The linear term as an array."""
        return np.zeros(self.X.shape[1]) if self.linear is None else self.linear

    @cached_property
    def size(self) -> float:
        """Scale of a margin."""
        return 1.0 + float(np.max(np.abs(self.targets)))

    def combination(self, a: Array) -> Array:
        """``sum_i a_i s_i x_i``."""
        return self.X.T @ (self.signs * a)

    def shortfall(self, w: Array) -> Array:
        """``h_i - s_i <w, x_i>``: the shortfall from the margin without a bias."""
        return self.targets - self.signs * (self.X @ w)

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
        return HingeSolution(w, b, a, primal, dual, relative_error(primal, dual), 0, Stop.CONVERGED)


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


def relative_error(primal: float, dual: float, infeasibility: float = 0.0) -> float:
    """Duality gap relative to the two values, or the infeasibility if that is larger; infinite after an overflow."""
    gap = abs(primal - dual) / max(abs(primal) + abs(dual), float_info.min)
    error = max(gap, infeasibility)
    return error if math.isfinite(error) else math.inf
