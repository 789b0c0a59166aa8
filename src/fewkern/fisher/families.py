"""The two kinds of kernel Fisher machines, as values: what their settings are, and how their machines are made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from fewkern.backend.namespace import Array, device, namespace
from fewkern.core.statistics import Statistics
from fewkern.fisher.deciding import Deciding
from fewkern.fisher.forward import forward_columns
from fewkern.fisher.lq import LqSettings, first_of_size, leave_one_out_values, lq_fit, walk_path
from fewkern.fisher.problem import Begun, Ending, Machine, penalized_problem, summed_problem

__all__ = ["LARGEST", "LARGEST_SEVERAL", "PENALTIES", "Family", "Fitted", "ForwardFamily", "LqFamily", "Told"]

# Penalties that are compared, for a kernel with k(x, x) = 1 and classes of equal size; the ratio of neighbors.
_RATIO = 10.0**-0.5
PENALTIES = tuple(10.0 ** (-0.5 * i) for i in range(1, 10))
# Taken where classes are too small to compare: the fourth penalty, and ten vectors.
_DEFAULT_PENALTY, _DEFAULT_SIZE = 3, 10
# Columns of least penalty are chosen among so many times as many that forward selection takes, where it takes them.
_SCREENED = 3
# Relative change of the objective that ends the iteration where only the columns that are kept matter.
_ROUGH = 1e-5
# A start may hold no zero. A penalized bias that is zero starts here, and is dropped by the first step.
_ABSENT = 1e-30
# Numbers of vectors that are compared go up to this.
LARGEST = 100
# With several classes a selection begins with up to so many columns.
LARGEST_SEVERAL = 300


@dataclass(frozen=True)
class Fitted:
    """A machine on the candidate columns, and how it was found."""

    machine: Machine
    held_out: Array
    """Discriminant ``(n, p)`` of every sample by the machine fitted without it."""
    objectives: tuple[float, ...]
    """What was minimized, after every step; it never rises."""
    ending: Ending
    deciding: Deciding | None = None
    """The logistic regression on the columns that the coefficients are from; None: they are those of the family."""


@dataclass(frozen=True)
class Told:
    """What is said of a machine whose columns were chosen in several steps."""

    order: Array
    """Its columns in the order in which they are listed: positions among them."""
    setting: float
    objectives: tuple[float, ...]
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
    def thins(self) -> bool:
        """Whether the setting is automatic, and larger machines keep more columns than smaller ones."""

    @property
    def default(self) -> int:
        """Position of the setting to take where classes are too small for cross-validation."""

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Machine]:
        """Machines at the settings, in their order, as they are asked for; a path may end early."""

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        """The machine at one setting."""

    def refit(self, machine: Machine, sums: Statistics, setting: float) -> Machine:
        """The machine on the columns of another one, from sums over rows of these columns and of the targets."""

    def reach(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...], begun: Begun) -> Begun:
        """Columns of the first machine that keeps as many as ``begun`` or more, or of the last one; never none.

        ``begun`` is what forward selection on these samples says.
        """

    def tell(self, columns: Array, Y: Array, weights: Array, begun: Begun) -> Told:
        """What is said of the machine on the ``columns`` (n, k) that are left of those it began with."""

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
    penalize_bias: bool = False

    axis = "penalty"

    def settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        if self.penalty is not None:
            return (self.penalty,)
        # a kernel a times as large gives the same function at a penalty a^q times as large, targets at a^(2 - q)
        return tuple(p * scale**self.how.q * stretch ** (2 - self.how.q) for p in PENALTIES)

    @property
    def thins(self) -> bool:
        return self.penalty is None and self.how.q <= 1

    @property
    def default(self) -> int:
        return _DEFAULT_PENALTY if self.penalty is None else 0

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Machine]:
        return walk_path(penalized_problem(K, Y, weights, penalize_bias=self.penalize_bias), settings, self.how)

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        fit = lq_fit(penalized_problem(K, Y, weights, penalize_bias=self.penalize_bias), setting, self.how)
        held_out = leave_one_out_values(K, Y, fit, weights, penalize_bias=self.penalize_bias)
        return Fitted(fit, held_out, fit.objectives, fit.ending)

    def refit(self, machine: Machine, sums: Statistics, setting: float) -> Machine:
        xp, how = namespace(sums.gram), self.how
        if how.q not in (1, 2):  # these are solved exactly; the others go on from the minimum that was found
            start = xp.astype(machine.coef, sums.gram.dtype)
            if self.penalize_bias:
                bias = xp.astype(machine.offset, start.dtype)[None, :]
                start = xp.concat([xp.where(bias == 0, xp.full_like(bias, _ABSENT), bias), start], axis=0)
            how = replace(how, start=start)
        fit = lq_fit(summed_problem(sums, penalize_bias=self.penalize_bias), setting, how)
        return Machine(xp.take(machine.support, fit.support), fit.coef, fit.offset)

    def reach(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...], begun: Begun) -> Begun:
        xp, size = namespace(K), int(begun.support.shape[0])
        screened = begun.forward[: min(_SCREENED * size, int(begun.forward.shape[0]))]
        problem = penalized_problem(xp.take(K, screened, axis=1), Y, weights, penalize_bias=self.penalize_bias)
        how = replace(self.how, tol=_ROUGH) if self.how.tol is None and self.how.q < 1 else self.how
        fit = first_of_size(problem, settings, how, size)
        support = xp.take(screened, fit.support) if fit.size else begun.support
        return Begun(support, begun.support, fit.penalty, fit.objectives, fit.ending)

    def tell(self, columns: Array, Y: Array, weights: Array, begun: Begun) -> Told:
        xp = namespace(columns)
        order = xp.arange(int(columns.shape[1]), dtype=begun.support.dtype, device=device(columns))
        return Told(order, begun.setting, begun.objectives, begun.ending)

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
    def thins(self) -> bool:
        return self.n_vectors is None

    @property
    def default(self) -> int:
        return min(_DEFAULT_SIZE, self.limit) - 1 if self.n_vectors is None else 0

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Machine]:
        path = forward_columns(K, Y, int(settings[-1]), min_residual=self.min_residual, weights=weights)
        return (path.machine(size) for size in range(1, path.size + 1))

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        path = forward_columns(K, Y, int(setting), min_residual=self.min_residual, weights=weights)
        return Fitted(
            path.machine(path.size),
            path.leave_one_out_values(K, Y),
            path.residuals,
            Ending(path.stop, len(path.ratios)),
        )

    def refit(self, machine: Machine, sums: Statistics, setting: float) -> Machine:
        solution = sums.solve(0.0)
        return Machine(machine.support, solution.W, solution.offset)

    def reach(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...], begun: Begun) -> Begun:
        if self.min_residual == 0:
            return begun
        size = int(begun.support.shape[0])
        path = forward_columns(K, Y, size, min_residual=self.min_residual, weights=weights)
        return begun if path.size == size else Begun(path.order, path.order)

    def tell(self, columns: Array, Y: Array, weights: Array, begun: Begun) -> Told:
        path = forward_columns(columns, Y, int(columns.shape[1]), weights=weights)
        return Told(path.order, path.size, path.residuals, Ending(path.stop, len(path.ratios)))

    def sparser(self, setting: float) -> float:
        return max(setting - 1, 1)

    def between(self, one: float, other: float) -> float:
        return (one + other) // 2
