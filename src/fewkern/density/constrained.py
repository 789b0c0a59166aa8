r"""Forward-constrained regression (FCR-SDC): one kernel at a time, convex combination, closed-form leave-one-out.

The target is the Parzen estimate at the samples, :math:`p_i`; the model after ``k`` kernels is
:math:`y \leftarrow \lambda y + (1-\lambda)\tilde K(\cdot, x', \sigma)`, so that the weights stay on the simplex.

============================ ===========================================
symbol                       name
============================ ===========================================
:math:`w_i`                  ``problem.w``
:math:`p`                    ``target``
:math:`y`                    ``y``: current model at the samples
:math:`\psi`                 column of ``Psi``, a candidate
:math:`u = y - \psi`         ``U`` (the paper's ``w``)
:math:`\lambda`              ``mixing``
:math:`\sigma^{\rm Par}`     ``problem.unit``
:math:`\gamma, \eta`         ``rules.gamma``, 0.5
============================ ===========================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import Step
from fewkern.core.path import Path, Stop
from fewkern.density.problem import DensityProblem, RoundMixture, size_path, squared_distances

# Paper: the bandwidth is kept above 0.01. We: bounds relative to the Parzen bandwidth, because an absolute one breaks
# equivariance under a change of units. The literal rules know no upper bound; a kernel of the last bandwidth is flat,
# and its square is a number in single precision, too.
_LEAST_PARZEN_BANDWIDTHS, _MOST_PARZEN_BANDWIDTHS, _FLAT_PARZEN_BANDWIDTHS = 0.02, 1e3, 1e15
# Rounding error allowed to the bounds of the pruning: of lambda, of a (relative), and of J (relative to p'p).
_SLACK_MIXING, _SLACK_SQUARE, _SLACK_SCORE = 1e-9, 1e-14, 1e-10
# Length of a bandwidth step, the paper's eta, and their number.
_ETA, _BANDWIDTH_STEPS = 0.5, 5
# A kernel of a smaller share does not change the model.
_LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class ConstrainedRules:
    """The options of the algorithm."""

    gamma: float
    max_vectors: int = 100
    bandwidth_rule: str = "safe"
    """Steps that never raise the error ("safe"), or the paper's, taken literally ("abs")."""
    to_the_limit: bool = False
    """Whether kernels enter also when the leave-one-out score rises."""
    prune: bool = True
    """Whether candidates that cannot win are skipped (methods D6), with the same result."""


@dataclass(frozen=True)
class ConstrainedStep:
    """One kernel of the path."""

    index: int
    bandwidth: float
    mixing: float
    """:math:`\\lambda` of the step; zero for the first kernel."""
    loo: float
    """Leave-one-out score (20) of the candidate before its bandwidth was tuned (first kernel: training error)."""


@dataclass(frozen=True)
class ConstrainedFit:
    """The mixture; ``steps`` has one record per kernel that entered."""

    mixture: RoundMixture
    steps: tuple[ConstrainedStep, ...]
    stop: Stop

    @property
    def path(self) -> Path:
        """Leave-one-out score after every kernel; the last model is the one taken."""
        error = np.array([step.loo for step in self.steps])
        return size_path(error, len(error) - 1, "leave-one-out error to Parzen's estimate")


def default_gamma(m: int) -> float:
    r"""Candidate bandwidth in Parzen bandwidths, :math:`\max(1.25,\, 3 m^{-0.3})`."""
    return max(1.25, 3.0 / math.pow(m, 0.3))


def score_candidates(Psi: Array, y: Array, target: Array, w: Array) -> tuple[Array, Array, Array]:
    r"""Leave-one-out score and mixing number of every column of ``Psi``, and whether it is admissible.

    .. math::

        \lambda^{LS} = \frac1a \sum_i w_i u_i t_i, \quad a = \sum_i w_i u_i^2 \quad (18) \qquad
        J = \sum_i w_i \Big(\frac{e_i}{1-h_i}\Big)^2, \quad h_i = w_i u_i^2 / a \quad (20)

        \lambda = \lambda^{LS} + \sum_i (1-w_i) \frac{w_i u_i e_i}{a (1-h_i)} \quad (21)
    """
    U = y[:, None] - Psi
    T = target[:, None] - Psi
    wU = w[:, None] * U
    a = np.sum(wU * U, axis=0)
    usable = a > 0
    a = np.where(usable, a, 1.0)
    least_squares = np.sum(wU * T, axis=0) / a
    E = T - least_squares * U
    H = wU * U / a
    # a row that alone determines lambda (h = 1) has no leave-one-out residual: its candidate is not admissible
    rest = np.where(H < 1, 1.0 - H, 0.0)
    usable = usable & np.all(rest > 0, axis=0)
    rest = np.where(rest > 0, rest, 1.0)
    loo = np.sum(w[:, None] * (E / rest) ** 2, axis=0)
    # Paper: (21) lacks the factor N on lambda^LS. We: the jackknife N lambda - (N-1) mean of lambda^(-i), because as
    # printed it is negative for every N > 2 and no candidate would be admissible.
    jackknife = least_squares + np.sum((1.0 - w)[:, None] * wU * E / rest, axis=0) / a
    usable = usable & np.isfinite(loo)
    for value in (least_squares, jackknife):
        usable = usable & (value >= 0) & (value <= 1)
    return loo, jackknife, usable


@dataclass(frozen=True)
class KernelEntry:
    """The model (15), :math:`\\lambda y + (1-\\lambda) K(\\cdot, c, \\sigma)`, as a function of the bandwidth alone."""

    problem: DensityProblem
    target: Array
    y: Array
    mixing: float
    D: Array
    """Squared distances of the samples to the center ``c``."""

    def at(self, bandwidth: float) -> tuple[Array, Array, float]:
        """Kernel, residual and error at a bandwidth."""
        K = self.problem.kernel(self.D, bandwidth)
        # Paper: the residual of (14). We: that of (15), the model with the new kernel in it.
        e = self.target - self.mixing * self.y - (1.0 - self.mixing) * K
        return K, e, float(np.sum(self.problem.w * e * e))

    def step(self, bandwidth: float, K: Array, e: Array) -> float | None:
        r"""The Gauss-Newton step of (11) and (12), or None where it is not a number.

        .. math:: \Delta = \frac{\eta}{1-\lambda}
                  \frac{\sum_i w_i \varepsilon_i\, \partial_\sigma \tilde K_i}
                  {\sum_i w_i (\partial_\sigma \tilde K_i)^2}
        """
        w = self.problem.w
        slope = K * (self.D / bandwidth**3 - self.problem.dim / bandwidth)  # (13)
        curvature = float(np.sum(w * slope * slope))
        if not (math.isfinite(curvature) and curvature > 0):
            return None
        move = _ETA / (1.0 - self.mixing) * float(np.sum(w * e * slope)) / curvature
        return move if math.isfinite(move) else None


def tune_bandwidth(entry: KernelEntry, bandwidth: float, rule: str = "safe", steps: int = _BANDWIDTH_STEPS) -> float:
    """Gauss-Newton on the bandwidth of one kernel, the mixing number fixed: (11), (12), (22)."""
    least, most, flat = (
        factor * entry.problem.unit
        for factor in (_LEAST_PARZEN_BANDWIDTHS, _MOST_PARZEN_BANDWIDTHS, _FLAT_PARZEN_BANDWIDTHS)
    )
    K, e, loss = entry.at(bandwidth)
    for _ in range(steps):
        move = entry.step(bandwidth, K, e)
        if move is None:
            break
        if rule == "abs":
            bandwidth = max(abs(bandwidth + move), least)
            if bandwidth > flat:
                return flat
            K, e, loss = entry.at(bandwidth)
            continue
        for _ in range(7):  # halved until the error does not rise
            trial = min(max(bandwidth + move, least), most)
            found = entry.at(trial)
            if found[2] <= loss:
                break
            move *= 0.5
        else:
            break
        bandwidth, (K, e, loss) = trial, found
    return bandwidth


class _Construction:
    """The growing model, and what is computed once for all candidates."""

    def __init__(self, problem: DensityProblem, target: Array, rules: ConstrainedRules) -> None:
        self.problem, self.target, self.rules = problem, target, rules
        self.centers = problem.centers
        self.Psi = problem.kernel(squared_distances(problem.Z, self.centers), rules.gamma * problem.unit)
        # for the pruning (methods D6): the products of the target and of every candidate
        wp = problem.w * target
        self.pp = float(wp @ target)
        self.p_psi = wp @ self.Psi
        self.psi_psi = np.sum(problem.w[:, None] * self.Psi * self.Psi, axis=0)
        self.tt = self.pp - 2.0 * self.p_psi + self.psi_psi
        self.free = np.ones(len(self.tt), dtype=bool)
        self.y = np.zeros_like(target)
        self.weights = np.zeros(0)
        self.steps: list[ConstrainedStep] = []

    def best(self) -> tuple[float, int, float] | None:
        """Score, column and mixing number of the admissible candidate of least ``J`` (20), the first one on ties."""
        bound, maybe = self._bounds()
        order = np.argsort(np.where(maybe, bound, math.inf))[: np.count_nonzero(maybe)]
        winner: tuple[float, int, float] | None = None
        for start in range(0, len(order), 32):
            block = order[start : start + 32]
            if self.rules.prune and winner and float(bound[block[0]]) > winner[0] + _SLACK_SCORE * self.pp:
                break
            loo, mixing, admissible = score_candidates(self.Psi[:, block], self.y, self.target, self.problem.w)
            for q in np.flatnonzero(admissible):
                found = float(loo[q]), int(block[q]), float(mixing[q])
                winner = found if winner is None else min(winner, found)
        return winner

    def _bounds(self) -> tuple[Array, Array]:
        """A lower bound of ``J`` for every candidate, and which of them may be admissible.

        The bound is the squared error: ``J >= SSE`` because ``0 <= h <= 1``.
        """
        wy = self.problem.w * self.y
        yy, yp, y_psi = float(wy @ self.y), float(wy @ self.target), wy @ self.Psi
        a = yy - 2.0 * y_psi + self.psi_psi
        positive = a > _SLACK_SQUARE * self.psi_psi
        a = np.where(positive, a, 1.0)
        mixing = (yp - y_psi - self.p_psi + self.psi_psi) / a
        bound = self.tt - mixing * mixing * a
        if not self.rules.prune:
            return bound, self.free
        return bound, self.free & positive & (mixing >= -_SLACK_MIXING) & (mixing <= 1 + _SLACK_MIXING)

    def enter(self, j: int, mixing: float, loo: float | None = None) -> None:
        """Tune the bandwidth of candidate ``j`` with its mixing number fixed, and mix it into the model, (15), (23)."""
        D = squared_distances(self.problem.Z, self.centers[j : j + 1])[:, 0]
        entry = KernelEntry(self.problem, self.target, self.y, mixing, D)
        bandwidth = tune_bandwidth(entry, self.rules.gamma * self.problem.unit, self.rules.bandwidth_rule)
        self.y = mixing * self.y + (1.0 - mixing) * self.problem.kernel(D, bandwidth)
        self.weights = np.append(mixing * self.weights, 1.0 - mixing)
        self.free[j] = False
        if loo is None:
            loo = float(np.sum(self.problem.w * (self.target - self.y) ** 2))
        self.steps.append(ConstrainedStep(int(self.problem.candidates[j]), bandwidth, mixing, loo))

    def fit(self, stop: Stop) -> ConstrainedFit:
        """The model as it is."""
        bandwidths = np.array([step.bandwidth for step in self.steps])
        mixture = self.problem.mixture([step.index for step in self.steps], bandwidths, self.weights)
        return ConstrainedFit(mixture, tuple(self.steps), stop)


def forward_constrained(
    problem: DensityProblem, target: Array, rules: ConstrainedRules, step: Step = lambda _: None
) -> ConstrainedFit:
    r"""FCR-SDC (the paper's algorithm): a convex combination of a few kernels that is close to Parzen's estimate.

    The ``target`` is Parzen's estimate at the samples of the ``problem``, whose unit is the Parzen bandwidth; ``step``
    is called with the number of kernels. ``O(n c)`` per step (one matrix-vector product with pruning) and ``n c``
    numbers for the candidate columns.
    """
    model = _Construction(problem, target, rules)
    model.enter(int(np.argmin(model.tt)), 0.0)  # (10): the candidate nearest to the target
    for count in range(1, min(rules.max_vectors, len(problem.candidates))):
        step(count)
        found = model.best()
        if found is None:
            return model.fit(Stop.EXHAUSTED)
        loo, j, mixing = found
        if loo >= model.steps[-1].loo and not rules.to_the_limit:
            return model.fit(Stop.ERROR)
        if 1.0 - mixing < _LEAST_SHARE:
            return model.fit(Stop.EXHAUSTED)
        model.enter(j, mixing, loo)
    return model.fit(Stop.LIMIT)
