"""The two kinds of kernel Fisher machines, as values: what their settings are, and how their machines are made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from fewkern.arrays.linalg import solve_triangular
from fewkern.arrays.namespace import Array, namespace
from fewkern.core.statistics import Statistics
from fewkern.fisher.forward import forward_columns
from fewkern.fisher.lq import LqSettings, lq_fit, walk_path
from fewkern.fisher.problem import Ending, Machine, penalized_problem, summed_problem

__all__ = ["LARGEST", "LARGEST_SEVERAL", "PENALTIES", "Family", "Fitted", "ForwardFamily", "LqFamily"]

# Penalties that are compared, for a kernel with k(x, x) = 1 and classes of equal size; the ratio of neighbors.
_RATIO = 10.0**-0.5
PENALTIES = tuple(10.0 ** (-0.5 * i) for i in range(1, 10))
# Taken where classes are too small to compare: the fourth penalty, and ten vectors.
_DEFAULT_PENALTY, _DEFAULT_SIZE = 3, 10
# Relative duality gap of the row lasso (several classes, q = 1) in the folds. On digits the held-out errors of all
# penalties are those of a gap of 1e-4, in a tenth of the time.
_FOLD_GAP = 1e-2
# A start may hold no zero. A penalized bias that is zero starts here, and is dropped by the first step.
_ABSENT = 1e-30
# Numbers of vectors that are compared go up to this; with several classes, which share the vectors, up to the second.
LARGEST, LARGEST_SEVERAL = 100, 300


@dataclass(frozen=True)
class Fitted:
    """A machine on the candidate columns, and how it was found."""

    machine: Machine
    objectives: tuple[float, ...]
    """What was minimized, after every step; it never rises."""
    ending: Ending


class Family(Protocol):
    """Machines along one setting, from the sparsest on."""

    @property
    def axis(self) -> str:
        """What the setting is."""

    def settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        """Settings to compare, the sparsest machine first.

        ``scale`` is the mean of ``k(x, x)``, ``stretch`` how much longer the targets are than with equal classes.
        """

    @property
    def default(self) -> int:
        """Position of the setting to take where classes are too small for cross-validation."""

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Machine]:
        """Machines at the settings, in their order, as they are asked for; a path may end early."""

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        """The machine at one setting."""

    def refit(self, fitted: Fitted, sums: Statistics, setting: float) -> Fitted:
        """The machine on the columns of another one, from sums over rows of these columns and of the targets."""

    def sparser(self, setting: float) -> float:
        """A setting whose machine keeps fewer samples, or as few."""

    def between(self, one: float, other: float) -> float:
        """A setting half way between two."""


@dataclass(frozen=True)
class LqFamily:
    """kFDA_q: the setting is the penalty."""

    how: LqSettings
    penalty: float | None = None
    """None compares :data:`PENALTIES`."""
    # Paper: the bias is penalized like a sample. We: it is free, because it is no sample, and the mean of the fitted
    # posteriors then is the share of the class; test errors do not differ.
    penalize_bias: bool = False

    axis = "alpha"

    def settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        if self.penalty is not None:
            return (self.penalty,)
        # a kernel a times as large gives the same function at a penalty a^q times as large, targets at a^(2 - q)
        return tuple(p * scale**self.how.q * stretch ** (2 - self.how.q) for p in PENALTIES)

    @property
    def default(self) -> int:
        return _DEFAULT_PENALTY if self.penalty is None else 0

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Machine]:
        rough = self.how.tol is None and self.how.q == 1 and Y.shape[1] > 1
        how = replace(self.how, tol=_FOLD_GAP) if rough else self.how
        return walk_path(penalized_problem(K, Y, weights, penalize_bias=self.penalize_bias), settings, how)

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        fit = lq_fit(penalized_problem(K, Y, weights, penalize_bias=self.penalize_bias), setting, self.how)
        return Fitted(fit, fit.objectives, fit.ending)

    def refit(self, fitted: Fitted, sums: Statistics, setting: float) -> Fitted:
        xp, how, machine = namespace(sums.gram), self.how, fitted.machine
        if how.q not in (1, 2):  # these are solved exactly; the others go on from the minimum that was found
            start = xp.astype(machine.coef, sums.gram.dtype)
            if self.penalize_bias:
                bias = xp.astype(machine.offset, start.dtype)[None, :]
                start = xp.concat([xp.where(bias == 0, xp.full_like(bias, _ABSENT), bias), start], axis=0)
            how = replace(how, start=start)
        fit = lq_fit(summed_problem(sums, penalize_bias=self.penalize_bias), setting, how)
        found = Machine(xp.take(machine.support, fit.support), fit.coef, fit.offset)
        return Fitted(found, fit.objectives, fit.ending)

    def sparser(self, setting: float) -> float:
        return setting / _RATIO

    def between(self, one: float, other: float) -> float:
        return math.sqrt(one * other)


@dataclass(frozen=True)
class ForwardFamily:
    """kFDA_OLS: the setting is the number of vectors."""

    n_vectors: int | None = None
    """None compares 1, 2, ..., ``limit``."""
    limit: int = LARGEST
    min_residual: float = 0.0
    """Share of the targets' sum of squares at which to stop."""

    axis = "n_vectors"

    def settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        return tuple(range(1, self.limit + 1)) if self.n_vectors is None else (self.n_vectors,)

    @property
    def default(self) -> int:
        return min(_DEFAULT_SIZE, self.limit) - 1 if self.n_vectors is None else 0

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Machine]:
        path = forward_columns(K, Y, int(settings[-1]), min_residual=self.min_residual, weights=weights)
        for size in settings:
            yield path.machine(min(int(size), path.size))
            if size >= path.size:  # no column is left that differs from those taken
                return

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        path = forward_columns(K, Y, int(setting), min_residual=self.min_residual, weights=weights)
        return Fitted(path.machine(path.size), path.residuals, Ending(path.stop, len(path.ratios)))

    def refit(self, fitted: Fitted, sums: Statistics, setting: float) -> Fitted:
        solution, xp = sums.solve(0.0), namespace(sums.gram)
        # the columns in their order, each orthogonalized against those before it
        explained = xp.sum(solve_triangular(solution.factor, sums.cross) ** 2, axis=1) / xp.sum(sums.square)
        left = xp.maximum(1.0 - xp.cumulative_sum(explained), xp.zeros_like(explained))
        machine = Machine(fitted.machine.support, solution.W, solution.offset)
        return replace(fitted, machine=machine, objectives=tuple(float(share) for share in left))

    def sparser(self, setting: float) -> float:
        return max(setting - 1, 1)

    def between(self, one: float, other: float) -> float:
        return (one + other) // 2
