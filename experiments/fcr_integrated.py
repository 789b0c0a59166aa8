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
:math:`g, \sigma_j`        ``weights``, ``bandwidth`` of the kernels of a model
:math:`\omega_q`           ``table.bandwidths``: those at which a candidate may enter
:math:`V_{cq}`             ``table.V``: ``v`` of candidate ``c`` at bandwidth ``q``
:math:`\langle K_j, \psi_{cq}\rangle`  ``P`` of kernel ``j``
========================== =======================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.fcr_refit import LEAST_WEIGHT
from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import divide_where
from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import Step
from fewkern.arrays.sampling import Fold
from fewkern.core.path import Path, Stop, smallest_within
from fewkern.density.problem import DensityProblem, RoundMixture, paired_errors, squared_distances
from fewkern.density.simplex import active_set

__all__ = ["FLOORS_IN_PARZEN_BANDWIDTHS", "choose_floor", "choose_step", "entry_bandwidths", "forward_integrated"]

# Bandwidths at which a kernel may enter, in Parzen bandwidths; the last one is the widest that a kernel may become.
_ENTRY_PARZEN_BANDWIDTHS = (1.25, 1.5, 1.75, 2.0, 2.25, 2.6, 3.0, 3.6, 4.3, 5.2, 6.2, 7.5, 9.0)
# Floors that cross-validation compares.
FLOORS_IN_PARZEN_BANDWIDTHS = _ENTRY_PARZEN_BANDWIDTHS[:5]
# Half-widths, in the logarithm, of the brackets in which a bandwidth is tuned.
_HALF_WIDTHS_IN_LOG = (0.15, 0.06, 0.024)


def entry_bandwidths(floor: float, unit: float) -> list[float]:
    """Bandwidths at which a candidate may enter: the ``floor`` and a fixed ladder above it, times ``unit``."""
    return [floor * unit] + [factor * unit for factor in _ENTRY_PARZEN_BANDWIDTHS if factor > 1.05 * floor]


@dataclass(frozen=True)
class _Component:
    """One kernel of the model, with the distances and products that the steps need."""

    candidate: int
    row: int
    bandwidth: float
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
class _Table:
    """Quantities computed once for all steps: ``v`` of every candidate at every bandwidth."""

    problem: DensityProblem
    """Its unit is that of the kernel values: the norm of a kernel at the floor is one."""
    centers: Array
    bandwidths: Array
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
        # in hundreds of dimensions, the squared norms of much wider kernels underflow: they span 150 powers of ten
        high = min(max(_ENTRY_PARZEN_BANDWIDTHS[-1], floor) * problem.unit, low * 10.0 ** (150 / problem.dim))
        bandwidths = np.array([one for one in entry_bandwidths(floor, problem.unit) if one <= high])
        problem = replace(problem, unit=math.sqrt(2.0) * low)
        squares = problem.kernel(np.zeros_like(bandwidths), math.sqrt(2.0) * bandwidths)
        V = _targets(problem, bandwidths)
        return cls(problem, problem.centers, bandwidths, low, high, V, squares, problem.rest)

    def products(self, D_candidates: Array, bandwidth: float) -> Array:
        """Inner products of a kernel with all candidates at all table bandwidths."""
        spread = np.sqrt(bandwidth**2 + self.bandwidths**2)
        return self.problem.kernel(D_candidates[:, None], spread[None, :])

    def kernel(self, candidate: int, q: int) -> _Component:
        """The kernel of a candidate at a table bandwidth."""
        row, bandwidth = int(self.problem.candidates[candidate]), float(self.bandwidths[q])
        center = self.centers[candidate : candidate + 1]
        D = squared_distances(self.problem.Z, center)[:, 0]
        D[row] = math.inf
        near = squared_distances(self.centers, center)[:, 0]
        v = float(self.V[candidate, q])
        return _Component(candidate, row, bandwidth, D, near, self.products(near, bandwidth), v)

    def fit(self, kernels: Sequence[_Component]) -> _Model:
        """All weights by the simplex programme; kernels without weight leave."""
        bandwidths, v = np.array([k.bandwidth for k in kernels]), np.array([k.v for k in kernels])
        chosen = np.array([k.candidate for k in kernels])
        D = np.stack([k.D_candidates[chosen] for k in kernels])
        # symmetric to the last bit, with an exact diagonal
        D = np.where(chosen[:, None] == chosen[None, :], 0.0, (D + D.T) / 2)
        B = self.problem.kernel(D, np.sqrt(bandwidths[:, None] ** 2 + bandwidths[None, :] ** 2))
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

    def insertion(self, model: _Model | None) -> tuple[int, int, float]:
        r"""Best candidate and table bandwidth of :math:`(1-a) y + a \psi`, and its gain.

        :math:`Q(a) - Q(0) = a^2 A_2 - 2 a A_1`, least at :math:`a = A_1 / A_2`, kept between zero and one.
        """
        gain = self.squares[None, :] - 2.0 * self.V if model is None else self._gains(model)
        if model is not None:
            gain[[k.candidate for k in model.kernels]] = math.inf
        candidate, q = divmod(int(np.argmin(gain)), gain.shape[1])  # first minimizer in candidate-major order
        return candidate, q, float(gain[candidate, q])

    def _gains(self, model: _Model) -> Array:
        g = np.array(model.weights)
        yy, yv = float(g @ (model.B @ g)), float(g @ model.v)
        y_psi = sum(weight * kernel.P for kernel, weight in zip(model.kernels, model.weights))
        A1 = yy - y_psi - (yv - self.V)
        A2 = yy - 2.0 * y_psi + self.squares[None, :]
        positive = A2 > 1e-14 * self.squares[None, :]  # else the candidate is the model, up to rounding
        a = np.clip(divide_where(positive, A1, A2, 0.0), 0.0, 1.0)
        return a * a * A2 - 2.0 * a * A1

    def tune(self, model: _Model) -> _Model:
        """Every bandwidth in turn, the rest fixed; then all weights."""
        kernels = list(model.kernels)
        for j in range(len(kernels)):
            kernels[j] = _tuned(self, kernels, model.weights, j)
        return self.fit(kernels)

    def exchange(self, model: _Model) -> _Model:
        """Replace each kernel in turn by the best insertion into the rest, where that lowers ``Q``."""
        for leaving in [k.candidate for k in model.kernels]:
            rest = [k for k in model.kernels if k.candidate != leaving]
            if not rest or len(rest) == len(model.kernels):
                continue
            without = self.fit(rest)
            candidate, q, gain = self.insertion(without)
            if gain >= 0:
                continue
            other = self.fit([*without.kernels, self.kernel(candidate, q)])
            if other.objective < model.objective - 1e-12 * abs(model.objective):  # more than rounding
                model = other
        return model

    def loo_terms(self, model: _Model) -> Array:
        r"""Closed-form leave-one-out terms :math:`t_i` of ``Q`` for fixed centers, bandwidths and support.

        .. math:: g^{(-i)} = g + M\, \frac{w_i (v - \varphi_i)}{1 - w_i - w_{(\cdot)}}, \qquad
                  t_i = g^{(-i)\prime} B g^{(-i)} - 2 g^{(-i)\prime} \varphi_i,
                  \qquad M = B^{-1} - \frac{B^{-1} 1 1' B^{-1}}{1' B^{-1} 1}

        :math:`\varphi_i` are the kernels at a sample, with :math:`v_j` where it is the center of kernel ``j``. The
        formula ignores the constraint of non-negative weights: too pessimistic for more than about 30 kernels.
        """
        w, kernels, v = self.problem.w, model.kernels, model.v
        bandwidths, rows = np.array([k.bandwidth for k in kernels]), np.array([k.row for k in kernels])
        inverse = np.linalg.pinv(model.B, 1e-13)
        ones = np.sum(inverse, axis=1)
        M = inverse - ones[:, None] * ones[None, :] / np.sum(ones)
        parts = []
        for block in row_blocks(self.problem.n, len(kernels)):
            Phi = self.problem.kernel(np.stack([k.D[block] for k in kernels], axis=1), bandwidths)
            Phi = np.where(np.arange(block.start, block.stop)[:, None] == rows[None, :], v, Phi)
            # the weight without the sample and the center; of two samples, none
            left = 1.0 - w[block][:, None] - w[rows][None, :]
            change = w[block][:, None] * (v[None, :] - Phi) / np.where(left > 1e-12, left, math.inf)
            G = np.array(model.weights)[None, :] + change @ M
            parts.append(np.sum((G @ model.B) * G, axis=1) - 2.0 * np.sum(G * Phi, axis=1))
        return np.concatenate(parts)


def _targets(problem: DensityProblem, bandwidths: Array) -> Array:
    """``v`` of every candidate at every table bandwidth, in row blocks: nothing of size n x c is stored."""
    candidates, centers = problem.candidates, problem.centers
    sums = np.zeros((len(bandwidths), len(candidates)))
    for rows in row_blocks(problem.n, len(candidates)):
        D = squared_distances(problem.Z[rows], centers)
        D[np.arange(rows.start, rows.stop)[:, None] == candidates[None, :]] = math.inf
        for q, bandwidth in enumerate(bandwidths):
            sums[q] += problem.w[rows] @ np.exp(D * (-0.5 / bandwidth**2))
    factors = np.exp(problem.dim * np.log(problem.unit / bandwidths))
    return (factors[:, None] * sums / problem.rest[candidates]).T


def _tuned(table: _Table, kernels: Sequence[_Component], weights: Sequence[float], j: int) -> _Component:
    r"""Kernel ``j`` at its best bandwidth, the rest fixed: bracket and parabola in :math:`\log\sigma`, never uphill."""
    problem, kernel = table.problem, kernels[j]
    others = [(float(kernel.D_candidates[k.candidate]), k.bandwidth, g) for k, g in zip(kernels, weights)]
    del others[j]
    tried: dict[float, tuple[float, float]] = {}  # logarithm of the bandwidth -> objective, v

    def number(D: float, bandwidth: float) -> float:
        """One kernel value, in Python numbers."""
        return math.exp(problem.dim * math.log(problem.unit / bandwidth) - 0.5 * D / bandwidth**2)

    def loss(t: float) -> float:
        if t not in tried:
            bandwidth = math.exp(t)
            # The own sample must be left out: with it a kernel of bandwidth zero gains without bound.
            v = float(problem.w @ problem.kernel(kernel.D, bandwidth)) / table.rest[kernel.row]
            cross = sum(g * number(D, math.hypot(bandwidth, other)) for D, other, g in others)
            own = weights[j] * number(0.0, math.sqrt(2.0) * bandwidth)
            tried[t] = own + 2.0 * cross - 2.0 * v, v
        return tried[t][0]

    t = math.log(kernel.bandwidth)
    for half in _HALF_WIDTHS_IN_LOG:
        left, right = max(t - half, math.log(table.low)), min(t + half, math.log(table.high))
        trials = [t, left, right]
        if left < t < right:
            trials += _vertex((left, t, right), loss)
        t = min(trials, key=loss)
    bandwidth = min(max(math.exp(t), table.low), table.high)
    return replace(kernel, bandwidth=bandwidth, v=tried[t][1], P=table.products(kernel.D_candidates, bandwidth))


def _vertex(at: tuple[float, float, float], loss: Callable[[float], float]) -> list[float]:
    """Lowest point of the parabola through three points, where it is a minimum, kept inside them."""
    left, middle, right = at
    f0, f1, f2 = (loss(t) for t in at)
    slope_left, slope_right = (f1 - f0) / (middle - left), (f2 - f1) / (right - middle)
    bend = (slope_right - slope_left) / (right - left)
    return [min(max((left + middle) / 2 - slope_left / (2 * bend), left), right)] if bend > 0 else []


@dataclass(frozen=True)
class IntegratedStep:
    """The model after one step of the path."""

    mixture: RoundMixture
    objective: float
    """:math:`Q`, in units in which the squared norm of a kernel at the floor is one."""
    terms: Array
    """Leave-one-out terms of the samples, in the same unit."""

    @property
    def size(self) -> int:
        """Number of kernels."""
        return len(self.mixture.weights)


def forward_integrated(
    problem: DensityProblem,
    *,
    floor: float = 1.5,
    max_vectors: int = 20,
    patience: int | None = 5,
    step: Step = lambda _: None,
) -> tuple[list[IntegratedStep], Stop]:
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
    best, since = math.inf, 0
    while len(steps) < 3 * max_vectors:  # kernels may leave again
        if patience is not None and since >= patience:
            return steps, Stop.ERROR
        if model is not None and len(model.kernels) >= max_vectors:
            break
        candidate, q, gain = table.insertion(model)
        if model is not None and not gain < 0:
            return steps, Stop.EXHAUSTED
        model = table.tune(table.fit([*(model.kernels if model else ()), table.kernel(candidate, q)]))
        model = table.exchange(model)
        bandwidths = np.array([k.bandwidth for k in model.kernels])
        mixture = problem.mixture([k.row for k in model.kernels], bandwidths, np.array(model.weights))
        steps.append(IntegratedStep(mixture, model.objective, table.loo_terms(model)))
        loo = float(problem.w @ steps[-1].terms)
        best, since = (loo, 0) if loo < best else (best, since + 1)
        step(len(model.kernels))
    return steps, Stop.LIMIT


def choose_step(steps: list[IntegratedStep], w: Array, tolerance: float) -> tuple[IntegratedStep, Path]:
    """The step of the smallest model within ``tolerance`` standard errors of the least leave-one-out score.

    Kernels may leave again, so several models can have the same size: the best of them stands for it. ``w`` are the
    weights of the samples.
    """
    by_size: dict[int, IntegratedStep] = {}
    for step in sorted(steps, key=lambda step: float(w @ step.terms), reverse=True):
        by_size[step.size] = step
    sizes = sorted(by_size)
    error, spread = paired_errors([by_size[size].terms for size in sizes], w)
    chosen = smallest_within(error, np.array(sizes, dtype=float), tolerance * spread)
    axes = {"n_vectors": tuple(float(size) for size in sizes)}
    objectives = tuple(step.objective for step in steps)
    measure = "leave-one-out integrated squared error"
    return by_size[sizes[chosen[0]]], Path(axes, error, spread, chosen, measure=measure, objectives=objectives)


def choose_floor(
    problem: DensityProblem, folds: list[Fold], *, max_vectors: int, tolerance: float, step: Step = lambda _: None
) -> Path:
    """FCR-ISE-CV: the floor and the number of kernels together; the path is rebuilt in every fold.

    The floor of least held-out error is chosen, and for it the smallest size within ``tolerance`` standard errors.
    """
    w = problem.held_out_weights(folds)
    errors = []
    for done, floor in enumerate(FLOORS_IN_PARZEN_BANDWIDTHS):
        terms: list[list[Array]] = [[] for _ in range(max_vectors)]
        for count, (train, test) in enumerate(folds):
            steps, _ = forward_integrated(problem.part(train), floor=floor, max_vectors=max_vectors)
            for size in range(max_vectors):
                # the first model that has so many kernels; the last one if there is none
                model = next((one for one in steps if one.size > size), steps[-1])
                terms[size].append(problem.error_terms(model.mixture, problem.Z[list(test)]))
            step(done * len(folds) + count + 1)
        errors.append(paired_errors([np.concatenate(held) for held in terms], w))
    error, spread = (np.stack(values) for values in zip(*errors))
    at, sizes = int(np.argmin(np.min(error, axis=1))), tuple(float(k + 1) for k in range(max_vectors))
    chosen = (at, *smallest_within(error[at], np.array(sizes), tolerance * spread[at]))
    axes = {"floor": FLOORS_IN_PARZEN_BANDWIDTHS, "n_vectors": sizes}
    return Path(axes, error, spread, chosen, measure="cross-validated integrated squared error")
