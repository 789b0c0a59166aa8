r"""Forward selection on the integrated squared error (FCR-ISE).

The paper regresses on Parzen's estimate and can at best return it. Here one kernel at a time enters as in the paper,
in a convex combination with a one-parameter closed form, individual bandwidths and a leave-one-out score, but what
falls is

.. math:: Q(g, \sigma) = g'Bg - 2 g'v, \qquad B_{ij} = K(x_{(i)}, x_{(j)}, \sqrt{\sigma_i^2+\sigma_j^2}), \qquad
          v_j(\sigma) = \frac{\sum_{i\ne(j)} w_i K(x_i, x_{(j)}, \sigma)}{1 - w_{(j)}},

an unbiased estimate of the integrated squared error to the true density, up to a constant.

========================== =======================================================================
symbol                     name
========================== =======================================================================
:math:`g, \sigma_j`        ``weights``, ``widths`` of the model
:math:`\omega_q`           ``table.widths``: bandwidths at which a candidate may enter
:math:`V_{cq}`             ``table.V``: ``v`` of candidate ``c`` at bandwidth ``q``
:math:`\langle K_j, \psi_{cq}\rangle`  ``P`` of kernel ``j``
========================== =======================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import divide_where
from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture
from fewkern.density.simplex import LEAST_WEIGHT, active_set

__all__ = ["IntegratedPath", "IntegratedStep", "forward_integrated", "leave_one_out_terms", "width_table"]

# Bandwidths at which a kernel may enter, in Parzen bandwidths; the last one is the widest that a kernel may become.
_ENTRY_PARZEN_BANDWIDTHS = (1.25, 1.5, 1.75, 2.0, 2.25, 2.6, 3.0, 3.6, 4.3, 5.2, 6.2, 7.5, 9.0)
# The next bandwidth above the floor is at least this many times the floor.
_FIRST_RUNG_IN_FLOORS = 1.05
# Half-widths, in the logarithm, of the brackets in which a bandwidth is tuned.
_HALF_WIDTHS_IN_LOG = (0.15, 0.06, 0.024)
# Kernels may leave again: steps of a path, per kernel.
_MAX_STEPS_PER_KERNEL = 3
# An exchange must lower the objective by this part of it.
_LEAST_RELATIVE_GAIN = 1e-12
# A candidate is in the model if its squared distance to it is below this part of its squared norm.
_LEAST_RELATIVE_DISTANCE = 1e-14
# Range of the squared norms of all kernels, in powers of ten.
_MAX_DECADES = 150
# Cut-off of the pseudo-inverse in the leave-one-out terms.
_LEAST_RELATIVE_EIGENVALUE = 1e-13
# Least weight that must remain without a sample and a center.
_LEAST_REMAINDER = 1e-12


def width_table(floor: float, unit: float) -> list[float]:
    """Bandwidths at which a candidate may enter: the ``floor`` and a fixed ladder above it, times ``unit``."""
    first = _FIRST_RUNG_IN_FLOORS * floor
    return [floor * unit] + [factor * unit for factor in _ENTRY_PARZEN_BANDWIDTHS if factor > first]


def leave_one_out_terms(Phi: Array, own: Array, model: _Model, w: Array, center_weights: Array) -> Array:
    r"""Closed-form leave-one-out terms :math:`t_i` of ``Q`` for fixed centers, bandwidths and support.

    .. math:: g^{(-i)} = g + M\, \frac{w_i (v - \varphi_i)}{1 - w_i - w_{(\cdot)}}, \qquad
              t_i = g^{(-i)\prime} B g^{(-i)} - 2 g^{(-i)\prime} \varphi_i,
              \qquad M = B^{-1} - \frac{B^{-1} 1 1' B^{-1}}{1' B^{-1} 1}

    ``Phi (n, s)`` are the kernels at the samples; where a sample is the center (``own``), :math:`\varphi_{ij}` is
    replaced by :math:`v_j`. ``w (n,)`` are the weights of the samples, ``center_weights (s,)`` those of the centers.
    The formula ignores the constraint of non-negative weights: too pessimistic for more than about 30 kernels.
    """
    B, v, g = model.B, model.v, np.array(model.weights)
    Phi = np.where(own, v, Phi)
    inverse = np.linalg.pinv(B, _LEAST_RELATIVE_EIGENVALUE)
    ones = np.sum(inverse, axis=1)
    M = inverse - ones[:, None] * ones[None, :] / np.sum(ones)
    # the weight without the sample and the center; of two samples, none
    left = 1.0 - w[:, None] - center_weights[None, :]
    change = w[:, None] * (v[None, :] - Phi) / np.where(left > _LEAST_REMAINDER, left, math.inf)
    G = g[None, :] + change @ M
    return np.sum((G @ B) * G, axis=1) - 2.0 * np.sum(G * Phi, axis=1)


@dataclass(frozen=True)
class _Component:
    """One kernel of the model, with the distances and products that the steps need."""

    candidate: int
    row: int
    width: float
    D: Array
    """Squared distances of the samples to the center, infinite for the one that is the center."""
    D_candidates: Array
    P: Array
    """Inner products with every candidate at every table bandwidth."""
    v: float


@dataclass(frozen=True)
class _Model:
    """Kernels with their best weights."""

    kernels: tuple[_Component, ...]
    weights: tuple[float, ...]
    B: Array
    v: Array
    objective: float


@dataclass(frozen=True)
class _Insertion:
    candidate: int
    q: int
    gain: float


@dataclass(frozen=True)
class _Table:
    """Quantities computed once for all steps: ``v`` of every candidate at every bandwidth."""

    problem: DensityProblem
    """Its unit is that of the kernel values: the norm of a kernel at the floor is one."""
    centers: Array
    widths: Array
    low: float
    high: float
    V: Array
    squares: Array
    """Squared norm of a kernel, for every table bandwidth."""
    rest: Array
    """Weight of all samples but one."""

    @classmethod
    def of(cls, problem: DensityProblem, floor: float) -> _Table:
        low = floor * problem.unit
        # in hundreds of dimensions, the squared norms of much wider kernels underflow
        high = min(max(_ENTRY_PARZEN_BANDWIDTHS[-1], floor) * problem.unit, low * 10.0 ** (_MAX_DECADES / problem.dim))
        widths = np.array([width for width in width_table(floor, problem.unit) if width <= high])
        problem = replace(problem, unit=math.sqrt(2.0) * low)
        squares = problem.kernel(np.zeros_like(widths), math.sqrt(2.0) * widths)
        return cls(problem, problem.centers, widths, low, high, _targets(problem, widths), squares, problem.rest)

    def number(self, D: float, width: float) -> float:
        """One kernel value, in Python numbers."""
        return math.exp(self.problem.dim * math.log(self.problem.unit / width) - 0.5 * D / width**2)

    def products(self, D_candidates: Array, width: float) -> Array:
        """Inner products of a kernel with all candidates at all table bandwidths."""
        spread = np.sqrt(width**2 + self.widths**2)
        return self.problem.kernel(D_candidates[:, None], spread[None, :])

    def target(self, kernel: _Component, width: float) -> float:
        """``v`` of a kernel at another bandwidth, the own sample left out."""
        # The own term must go: with it a kernel of bandwidth zero gains without bound.
        total = float(self.problem.w @ self.problem.kernel(kernel.D, width))
        return total / self.rest[kernel.row]

    def kernel(self, found: _Insertion) -> _Component:
        """The kernel that enters."""
        row, width = int(self.problem.candidates[found.candidate]), float(self.widths[found.q])
        center = self.centers[found.candidate : found.candidate + 1]
        D = squared_distances(self.problem.Z, center)[:, 0]
        D[row] = math.inf
        near = squared_distances(self.centers, center)[:, 0]
        v = float(self.V[found.candidate, found.q])
        return _Component(found.candidate, row, width, D, near, self.products(near, width), v)

    def fit(self, kernels: Sequence[_Component]) -> _Model:
        """All weights by the simplex programme; kernels without weight leave."""
        widths, v = np.array([k.width for k in kernels]), np.array([k.v for k in kernels])
        chosen = np.array([k.candidate for k in kernels])
        D = np.stack([k.D_candidates[chosen] for k in kernels])
        # symmetric to the last bit, with an exact diagonal
        D = np.where(chosen[:, None] == chosen[None, :], 0.0, (D + D.T) / 2)
        B = self.problem.kernel(D, np.sqrt(widths[:, None] ** 2 + widths[None, :] ** 2))
        solution = active_set(B, v)
        kept = np.flatnonzero(solution.weights > LEAST_WEIGHT).tolist()
        g = solution.weights[kept].tolist()
        return _Model(
            tuple(kernels[j] for j in kept),
            tuple(weight / sum(g) for weight in g),
            B[np.ix_(kept, kept)],
            v[kept],
            2.0 * solution.objective,
        )

    def insertion(self, model: _Model | None) -> _Insertion:
        r"""Best candidate and table bandwidth of :math:`(1-a) y + a \psi`, and its gain.

        :math:`Q(a) - Q(0) = a^2 A_2 - 2 a A_1`, least at :math:`a = A_1 / A_2`, kept between zero and one.
        """
        gain = self.squares[None, :] - 2.0 * self.V if model is None else self._gains(model)
        if model is not None:
            gain[[k.candidate for k in model.kernels]] = math.inf
        candidate, q = divmod(int(np.argmin(gain)), gain.shape[1])  # first minimizer in candidate-major order
        return _Insertion(candidate, q, float(gain[candidate, q]))

    def _gains(self, model: _Model) -> Array:
        g = np.array(model.weights)
        yy, yv = float(g @ (model.B @ g)), float(g @ model.v)
        y_psi = sum(weight * kernel.P for kernel, weight in zip(model.kernels, model.weights))
        A1 = yy - y_psi - (yv - self.V)
        A2 = yy - 2.0 * y_psi + self.squares[None, :]
        positive = A2 > _LEAST_RELATIVE_DISTANCE * self.squares[None, :]
        a = np.clip(divide_where(positive, A1, A2, 0.0), 0.0, 1.0)
        return a * a * A2 - 2.0 * a * A1

    def tune(self, model: _Model) -> _Model:
        """Every bandwidth in turn, the rest fixed; then all weights."""
        kernels = list(model.kernels)
        for j in range(len(kernels)):
            kernels[j] = _BandwidthTuning(self, kernels, model.weights, j).best()
        return self.fit(kernels)

    def exchange(self, model: _Model) -> _Model:
        """Replace each kernel in turn by the best insertion into the rest, where that lowers ``Q``."""
        for candidate in [k.candidate for k in model.kernels]:
            rest = [k for k in model.kernels if k.candidate != candidate]
            if not rest or len(rest) == len(model.kernels):
                continue
            without = self.fit(rest)
            found = self.insertion(without)
            if found.gain >= 0:
                continue
            other = self.fit([*without.kernels, self.kernel(found)])
            if other.objective < model.objective - _LEAST_RELATIVE_GAIN * abs(model.objective):
                model = other
        return model

    def loo_terms(self, model: _Model) -> Array:
        """Leave-one-out terms of the samples, in row blocks."""
        problem, kernels = self.problem, model.kernels
        widths, rows = np.array([k.width for k in kernels]), np.array([k.row for k in kernels])
        parts = []
        for block in row_blocks(problem.n, len(kernels)):
            Phi = problem.kernel(np.stack([k.D[block] for k in kernels], axis=1), widths)
            own = np.arange(block.start, block.stop)[:, None] == rows[None, :]
            parts.append(leave_one_out_terms(Phi, own, model, problem.w[block], problem.w[rows]))
        return np.concatenate(parts)


def _targets(problem: DensityProblem, widths: Array) -> Array:
    """``v`` of every candidate at every table bandwidth, in row blocks: nothing of size n x c is stored."""
    candidates, centers = problem.candidates, problem.centers
    sums = np.zeros((len(widths), len(candidates)))
    for rows in row_blocks(problem.n, len(candidates)):
        D = squared_distances(problem.Z[rows], centers)
        D[np.arange(rows.start, rows.stop)[:, None] == candidates[None, :]] = math.inf
        for q, width in enumerate(widths):
            sums[q] += problem.w[rows] @ np.exp(D * (-0.5 / width**2))
    factors = np.exp(problem.dim * np.log(problem.unit / widths))
    return (factors[:, None] * sums / problem.rest[candidates]).T


class _BandwidthTuning:
    r"""The bandwidth of one kernel, the rest fixed: bracket and parabola in :math:`\log\sigma`, never uphill."""

    def __init__(self, table: _Table, kernels: Sequence[_Component], weights: Sequence[float], j: int) -> None:
        self.table, self.kernel, self.share = table, kernels[j], weights[j]
        self.others = [
            (float(self.kernel.D_candidates[k.candidate]), k.width, g)
            for i, (k, g) in enumerate(zip(kernels, weights))
            if i != j
        ]
        # logarithm of the bandwidth -> objective, v
        self.tried: dict[float, tuple[float, float]] = {}

    def loss(self, t: float) -> float:
        if t not in self.tried:
            table, width = self.table, math.exp(t)
            v = table.target(self.kernel, width)
            cross = sum(g * table.number(D, math.hypot(width, other)) for D, other, g in self.others)
            own = self.share * table.number(0.0, math.sqrt(2.0) * width)
            self.tried[t] = own + 2.0 * cross - 2.0 * v, v
        return self.tried[t][0]

    def best(self) -> _Component:
        """The kernel at its best bandwidth."""
        table, kernel = self.table, self.kernel
        lowest, highest = math.log(table.low), math.log(table.high)
        t = math.log(kernel.width)
        for half in _HALF_WIDTHS_IN_LOG:
            left, right = max(t - half, lowest), min(t + half, highest)
            trials = [t, left, right]
            vertex = self.vertex(left, t, right)
            if vertex is not None:
                trials.append(vertex)
            t = min(trials, key=self.loss)
        width = min(max(math.exp(t), table.low), table.high)
        return replace(kernel, width=width, v=self.tried[t][1], P=table.products(kernel.D_candidates, width))

    def vertex(self, left: float, middle: float, right: float) -> float | None:
        """Lowest point of the parabola through three points, where it is a minimum inside them."""
        if not left < middle < right:
            return None
        f0, f1, f2 = self.loss(left), self.loss(middle), self.loss(right)
        slope_left, slope_right = (f1 - f0) / (middle - left), (f2 - f1) / (right - middle)
        bend = (slope_right - slope_left) / (right - left)
        if not bend > 0:
            return None
        return min(max((left + middle) / 2 - slope_left / (2 * bend), left), right)


@dataclass(frozen=True)
class IntegratedStep:
    """The model after one step of the path."""

    rows: tuple[int, ...]
    widths: tuple[float, ...]
    weights: tuple[float, ...]
    objective: float
    """:math:`Q`, up to the factor that keeps it in range."""
    terms: Array
    """Leave-one-out terms of the samples, in the same unit."""


@dataclass(frozen=True)
class IntegratedPath:
    """Every step of the construction, and why it ended."""

    problem: DensityProblem
    unit: float
    """Unit of the kernel values in the objectives and terms."""
    steps: tuple[IntegratedStep, ...]
    stop: Stop

    def mixture(self, at: int) -> RoundMixture:
        """The model after step ``at``."""
        step = self.steps[at]
        return self.problem.mixture(step.rows, np.array(step.widths), np.array(step.weights))

    def reaching(self, size: int) -> int:
        """The first step whose model has ``size`` kernels; the last one if there is none."""
        return next((k for k, step in enumerate(self.steps) if len(step.rows) >= size), len(self.steps) - 1)


def forward_integrated(
    problem: DensityProblem,
    *,
    floor: float = 1.5,
    max_vectors: int = 20,
    patience: int | None = 5,
    step: Callable[[int], None] = lambda _: None,
) -> IntegratedPath:
    """FCR-ISE: one step inserts a kernel, refits all weights, tunes all bandwidths, exchanges, and scores.

    Parameters
    ----------
    problem : DensityProblem
        Its unit is the bandwidth of Parzen's estimate.
    floor : float
        Least bandwidth, in units of the problem's: the one smoothing parameter.
    max_vectors : int
    patience : int or None
        The path ends after this many steps without a better leave-one-out score; None never ends it for that.
    step : function
        Called with the number of kernels.

    Notes
    -----
    Table ``O(n c G m)`` once; a step ``O(c G s + n s)`` and the exchange ``O(c G s^2)``. Memory ``O(c G s + n s)``.
    """
    table = _Table.of(problem, floor)
    model: _Model | None = None
    steps: list[IntegratedStep] = []
    best, since, stop = math.inf, 0, Stop.LIMIT
    while len(steps) < _MAX_STEPS_PER_KERNEL * max_vectors:
        if patience is not None and since >= patience:
            stop = Stop.ERROR
            break
        if model is not None and len(model.kernels) >= max_vectors:
            break
        found = table.insertion(model)
        if model is not None and not found.gain < 0:
            stop = Stop.EXHAUSTED
            break
        model = table.tune(table.fit([*(model.kernels if model else ()), table.kernel(found)]))
        model = table.exchange(model)
        terms = table.loo_terms(model)
        rows, widths = tuple(k.row for k in model.kernels), tuple(k.width for k in model.kernels)
        steps.append(IntegratedStep(rows, widths, model.weights, model.objective, terms))
        loo = float(problem.w @ terms)
        best, since = (loo, 0) if loo < best else (best, since + 1)
        step(len(model.kernels))
    return IntegratedPath(problem, table.problem.unit, tuple(steps), stop)
