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
:math:`\gamma, \eta`         ``rules.gamma``, ``rules.eta``
============================ ===========================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.core.path import Path, Stop
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture
from fewkern.density.simplex import LEAST_WEIGHT, active_set

__all__ = [
    "ConstrainedFit",
    "ConstrainedRules",
    "ConstrainedStep",
    "KernelEntry",
    "default_gamma",
    "forward_constrained",
    "mixture_weights",
    "refit_jointly",
    "score_candidates",
    "tune_width",
]

Mixing = Literal["jackknife", "ls"]
StopRule = Literal["loo", "distance", "size"]
WidthRule = Literal["safe", "abs", "bracket"]

# Trials of a bandwidth step, each half as long as the one before.
_MAX_TRIALS = 7
# A kernel of this bandwidth is flat; its square is a number in single precision, too.
_FLAT_IN_PARZEN_BANDWIDTHS = 1e15
# Candidates scored in full at a time.
_BLOCK_CANDIDATES = 32
# Rounding error allowed to the bounds of the pruning: of lambda, of a (relative), and of J (relative to p'p).
_SLACK_MIXING, _SLACK_SQUARE, _SLACK_SCORE = 1e-9, 1e-14, 1e-10
# A kernel of a smaller share does not change the model.
_LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class ConstrainedRules:
    """The options of the algorithm: the parameters of ``ForwardConstrainedDensity`` with a few more.

    ``floor`` and ``cap`` bound a bandwidth, in Parzen bandwidths; ``prune`` skips candidates that cannot win (methods
    D6), with the same result.
    """

    gamma: float
    max_vectors: int = 100
    stop: StopRule = "loo"
    tol: float = 0.0
    width_rule: WidthRule = "safe"
    eta: float = 0.5
    width_steps: int = 5
    mixing: Mixing = "jackknife"
    # Paper: the bandwidth is kept above 0.01. We: a floor relative to the Parzen bandwidth, because an absolute one
    # breaks equivariance under a change of units.
    floor: float = 0.02
    cap: float = 1e3
    prune: bool = True


@dataclass(frozen=True)
class ConstrainedStep:
    """One kernel of the path."""

    index: int
    width: float
    mixing: float
    """:math:`\\lambda` of the step; zero for the first kernel."""
    loo: float
    """Leave-one-out score (20) of the candidate before its bandwidth was tuned (first kernel: training error)."""
    distance: float
    """Distance to the target after the step, relative to the target."""
    evaluated: int
    """Number of candidates whose score was computed in full."""


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
        sizes = tuple(float(k + 1) for k in range(len(error)))
        measure = "leave-one-out error to Parzen's estimate"
        return Path({"n_vectors": sizes}, error, np.zeros_like(error), (len(error) - 1,), measure=measure)


def default_gamma(m: int) -> float:
    r"""Candidate bandwidth in Parzen bandwidths, :math:`\max(1.25,\, 3 m^{-0.3})`."""
    return max(1.25, 3.0 / math.pow(m, 0.3))


class _Scores(NamedTuple):
    """Closed forms (18)-(21) for a block of candidates."""

    loo: Array
    mixing: Array
    admissible: Array


def score_candidates(Psi: Array, y: Array, target: Array, w: Array, mixing: Mixing = "jackknife") -> _Scores:
    r"""Leave-one-out score and mixing number of every column of ``Psi``.

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
    chosen = jackknife if mixing == "jackknife" else least_squares
    usable = usable & np.isfinite(loo)
    for value in (least_squares, chosen):
        usable = usable & (value >= 0) & (value <= 1)
    return _Scores(loo, chosen, usable)


@dataclass(frozen=True)
class KernelEntry:
    """The model (15), :math:`\\lambda y + (1-\\lambda) K(\\cdot, c, \\sigma)`, as a function of the bandwidth alone."""

    problem: DensityProblem
    target: Array
    y: Array
    mixing: float
    D: Array
    """Squared distances of the samples to the center ``c``."""

    def at(self, width: float) -> _Residual:
        """Kernel, residual and error at a bandwidth."""
        K = self.problem.kernel(self.D, width)
        # Paper: the residual of (14). We: that of (15), the model with the new kernel in it.
        e = self.target - self.mixing * self.y - (1.0 - self.mixing) * K
        return _Residual(width, K, e, float(np.sum(self.problem.w * e * e)))

    def step(self, now: _Residual, eta: float) -> float | None:
        r"""The Gauss-Newton step of (11) and (12), or None where it is not a number.

        .. math:: \Delta = \frac{\eta}{1-\lambda}
                  \frac{\sum_i w_i \varepsilon_i\, \partial_\sigma \tilde K_i}
                  {\sum_i w_i (\partial_\sigma \tilde K_i)^2}
        """
        w = self.problem.w
        slope = now.K * (self.D / now.width**3 - self.problem.dim / now.width)  # (13)
        curvature = float(np.sum(w * slope * slope))
        if not (math.isfinite(curvature) and curvature > 0):
            return None
        move = eta / (1.0 - self.mixing) * float(np.sum(w * now.e * slope)) / curvature
        return move if math.isfinite(move) else None


class _Residual(NamedTuple):
    width: float
    K: Array
    e: Array
    loss: float


def tune_width(entry: KernelEntry, width: float, rules: ConstrainedRules) -> float:
    """Gauss-Newton on the bandwidth of one kernel, the mixing number fixed: (11), (12), (22)."""
    unit = entry.problem.unit
    now = entry.at(width)
    for _ in range(rules.width_steps):
        move = entry.step(now, rules.eta)
        if move is None:
            break
        if rules.width_rule == "safe":
            found = _downhill(entry, now, move, rules)
            if found is None:
                break
            now = found
            continue
        trial = now.width + move
        trial = max(abs(trial) if rules.width_rule == "abs" else trial, rules.floor * unit)
        if trial > _FLAT_IN_PARZEN_BANDWIDTHS * unit:  # these two rules know no upper bound
            return _FLAT_IN_PARZEN_BANDWIDTHS * unit
        now = entry.at(trial)
    return now.width


def _downhill(entry: KernelEntry, now: _Residual, move: float, rules: ConstrainedRules) -> _Residual | None:
    """The longest of the halved steps that does not raise the error."""
    unit = entry.problem.unit
    for _ in range(_MAX_TRIALS):
        trial = entry.at(min(max(now.width + move, rules.floor * unit), rules.cap * unit))
        if trial.loss <= now.loss:
            return trial
        move *= 0.5
    return None


def mixture_weights(mixings: list[float]) -> list[float]:
    r"""Weights from the mixing numbers: :math:`g \leftarrow (\lambda g,\, 1-\lambda)`, FCR (23)."""
    g = [1.0]
    for mixing in mixings:
        g = [mixing * value for value in g] + [1.0 - mixing]
    return g


class _Candidate(NamedTuple):
    loo: float
    """:math:`J`, (20)."""
    column: int
    mixing: float
    evaluated: int


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
        self.steps: list[ConstrainedStep] = []

    @property
    def error(self) -> float:
        """Weighted mean squared distance to the target."""
        return float(np.sum(self.problem.w * (self.target - self.y) ** 2))

    @property
    def distance(self) -> float:
        """Distance to the target, relative to the target."""
        return math.sqrt(self.error / self.pp)

    def nearest(self) -> _Candidate:
        """(10): the candidate nearest to the target."""
        return _Candidate(math.nan, int(np.argmin(self.tt)), 0.0, len(self.tt))

    def best(self) -> _Candidate | None:
        """The admissible candidate of least ``J`` (20), the first one on ties."""
        bound, maybe = self._bounds()
        bound = np.where(maybe, bound, math.inf)
        order = np.argsort(bound)
        winner: _Candidate | None = None
        evaluated, total = 0, int(np.sum(maybe))
        while evaluated < total:
            block = order[evaluated : min(evaluated + _BLOCK_CANDIDATES, total)]
            if self.rules.prune and winner and float(bound[int(block[0])]) > winner.loo + _SLACK_SCORE * self.pp:
                break
            scores = score_candidates(self.Psi[:, block], self.y, self.target, self.problem.w, self.rules.mixing)
            evaluated += len(block)
            for q in np.flatnonzero(scores.admissible):
                found = _Candidate(float(scores.loo[q]), int(block[q]), float(scores.mixing[q]), 0)
                if winner is None or found[:2] < winner[:2]:
                    winner = found
        return None if winner is None else winner._replace(evaluated=evaluated)

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

    def enter(self, found: _Candidate) -> None:
        """Tune the bandwidth of the candidate with its mixing number fixed, and mix it into the model."""
        j, mixing = found.column, found.mixing
        D = squared_distances(self.problem.Z, self.centers[j : j + 1])[:, 0]
        entry = KernelEntry(self.problem, self.target, self.y, mixing, D)
        width = tune_width(entry, self.rules.gamma * self.problem.unit, self.rules)
        self.y = mixing * self.y + (1.0 - mixing) * self.problem.kernel(D, width)
        self.free[j] = False
        loo = found.loo if self.steps else self.error
        row = int(self.problem.candidates[j])
        self.steps.append(ConstrainedStep(row, width, mixing, loo, self.distance, found.evaluated))

    def fit(self, stop: Stop) -> ConstrainedFit:
        """The model as it is."""
        widths = np.array([step.width for step in self.steps])
        g = np.array(mixture_weights([step.mixing for step in self.steps[1:]]))
        mixture = self.problem.mixture([step.index for step in self.steps], widths, g)
        return ConstrainedFit(mixture, tuple(self.steps), stop)


def forward_constrained(
    problem: DensityProblem, target: Array, rules: ConstrainedRules, step: Callable[[int], None] = lambda _: None
) -> ConstrainedFit:
    r"""FCR-SDC (the paper's algorithm): a convex combination of a few kernels that is close to Parzen's estimate.

    The ``target`` is Parzen's estimate at the samples of the ``problem``, whose unit is the Parzen bandwidth; ``step``
    is called with the number of kernels. ``O(n c)`` per step (one matrix-vector product with pruning) and ``n c``
    numbers for the candidate columns.
    """
    model = _Construction(problem, target, rules)
    model.enter(model.nearest())
    for count in range(1, min(rules.max_vectors, len(problem.candidates))):
        step(count)
        if rules.stop == "distance" and model.distance <= rules.tol:
            return model.fit(Stop.CONVERGED)
        found = model.best()
        if found is None:
            return model.fit(Stop.EXHAUSTED)
        if rules.stop == "loo" and found.loo >= (1.0 - rules.tol) * model.steps[-1].loo:
            return model.fit(Stop.ERROR)
        if 1.0 - found.mixing < _LEAST_SHARE:
            return model.fit(Stop.EXHAUSTED)
        model.enter(found)
    return model.fit(Stop.LIMIT)


def refit_jointly(problem: DensityProblem, target: Array, fit: ConstrainedFit, *, sweeps: int = 5) -> ConstrainedFit:
    """All weights by the simplex programme on the same least squares, then bandwidth steps, each with a refit."""
    # Paper: the mixing number of a step is never revised. We: weights and bandwidths of all kernels together, because
    # the selection is kept and the error falls.
    rows, widths = fit.mixture.rows, np.array(fit.mixture.widths)
    D = squared_distances(problem.Z, fit.mixture.centers)
    for sweep in range(sweeps + 1):
        F, w = problem.kernel(D, widths), problem.w
        g = active_set(F.T @ (w[:, None] * F), F.T @ (w * target)).weights
        keep = g > LEAST_WEIGHT
        rows, widths, D, g = rows[keep], widths[keep], D[:, keep], g[keep] / np.sum(g[keep])  # type: ignore[index]
        if sweep < sweeps:
            _tune_in_turn(problem, target, D, widths, g)
    return ConstrainedFit(problem.mixture(rows, widths, g), fit.steps, fit.stop)


def _tune_in_turn(problem: DensityProblem, target: Array, D: Array, widths: Array, g: Array) -> None:
    """One step for every entry of ``widths`` in turn, with the weights fixed."""
    rules = ConstrainedRules(gamma=1.0, width_steps=1)
    for j, share in enumerate(g.tolist()):
        if _LEAST_SHARE < share < 1 - _LEAST_SHARE:
            # the rest of the model as the y of (15): lambda y = F g without column j
            F = problem.kernel(D, widths)
            rest = (F @ g - share * F[:, j]) / (1.0 - share)
            entry = KernelEntry(problem, target, rest, 1.0 - share, D[:, j])
            widths[j] = tune_width(entry, float(widths[j]), rules)
