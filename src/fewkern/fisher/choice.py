"""Width and setting of a kernel Fisher machine by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fewkern.backend.distinct import distinct_rows
from fewkern.backend.finite import squarable
from fewkern.backend.folds import Fold
from fewkern.backend.linalg import sum_by_index
from fewkern.backend.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.backend.random import random_generator
from fewkern.core.kernel import Kernel
from fewkern.core.samples import Samples
from fewkern.core.trace import TOLERANCE, Trace, smallest_within
from fewkern.fisher.families import Family, Fitted
from fewkern.fisher.forward_folds import Folded
from fewkern.fisher.posterior import AffineScores, least_squares_scores
from fewkern.fisher.problem import Machine
from fewkern.fisher.targets import fisher_targets
from fewkern.vectors.grid import WIDTH_FACTORS, KernelGrid
from fewkern.vectors.search import choose_width, class_grid
from fewkern.vectors.selection import Selecting, choose_basis

__all__ = [
    "Candidates",
    "Chosen",
    "Comparing",
    "PathErrors",
    "absent_class",
    "choose_setting",
    "cross_validate",
    "fit_within",
    "kernel_scale",
]

# Up to so many distinct samples all are candidates; above, so many of them, chosen by the gain rule of FVS.
MOST_CANDIDATES = 1000
# The width is searched by leave-one-out on at most so many samples.
_WIDTH_ROWS = 4000
# A penalty that was raised to meet a budget is lowered again between its last two values by so many halvings.
_HALVINGS = 6
# Errors are sums over folds: what differs by less is equal.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Candidates:
    """Samples that a machine may keep, and their kernel columns."""

    kernel: Kernel
    rows: Array
    """Positions among the samples, ``(m,)``."""
    owners: Array | None
    """Candidate that every sample is. None if they were chosen without looking at labels: all folds may use all."""
    K: Array
    """``(n, m)``."""
    moved: Array | None = None
    """The vectors, where they are not samples any more; ``rows`` are the samples where they began."""

    def pick(self, X: Array, columns: Array) -> Array:
        """The vectors of some columns; ``X`` are the samples."""
        if self.moved is not None:
            return take_rows(self.moved, columns)
        return self.kernel.pick(X, take_rows(self.rows, columns))

    @classmethod
    def of(cls, samples: Samples, kernel: Kernel, limit: int | None, seed: int) -> Candidates:
        """Every distinct sample, or ``limit`` (None: 1000) vectors that span the samples."""
        rows, owners = distinct_rows(samples.X, samples.codes)
        count = int(rows.shape[0])
        limit = MOST_CANDIDATES if limit is None else limit
        if count > limit:
            found = choose_basis(samples, kernel, Selecting(seed=seed), limit)
            rows, owners = namespace(found.indices).sort(found.indices), None
        return cls(kernel, rows, owners, kernel(samples.X, kernel.pick(samples.X, rows)))

    def among(self, rows: Array) -> Array | None:
        """Columns that belong to the samples ``rows``; None: all."""
        if self.owners is None:
            return None
        own = sorted({int(j) for j in to_numpy(take_rows(self.owners, rows))})
        return asarray_like(own, self.rows, dtype=self.rows.dtype)

    def usable(self, folded: Folded) -> Array | None:
        """Columns that every fold may take, ``(F, m)``: those of samples that it trains on; None: all."""
        if self.owners is None:
            return None
        owners, train = take_rows(self.owners, folded.rows), folded.train
        m = int(self.rows.shape[0])
        return namespace(train).stack([sum_by_index(train[f, :], owners, m) > 0 for f in range(int(train.shape[0]))])


@dataclass(frozen=True)
class Comparing:
    """What is compared, and what is preferred."""

    family: Family
    prefer: str = "balanced"
    max_vectors: int | None = None
    """Largest machine that may be taken."""
    max_candidates: int | None = None
    """Samples that a machine may keep are chosen among so many; None: see :class:`Candidates`."""
    width_by: str = "auto"
    """A width given as a rule is chosen by "leave_one_out" (closed form, as in FVS-LR) or "cross_validation"; "auto" is
    the former, except in :mod:`fewkern.fisher.few`."""
    seed: int = 0
    refine: Any = False
    """Whether the vectors are moved: True, False, or "auto" where samples held out ask for it; only of few vectors."""

    @property
    def takes_few(self) -> bool:
        """Whether :func:`fewkern.fisher.few.choose_few` is for this."""
        return self.width_by == "auto" and self.family.thins

    def n_machines(self, kernel: Kernel) -> int:
        """How many machines there are to compare."""
        widths = "width" in kernel.rules and self.width_by == "cross_validation"
        return (len(WIDTH_FACTORS) if widths else 1) * len(self.family.settings(1.0, 1.0))


@dataclass(frozen=True)
class Chosen:
    """What was chosen."""

    candidates: Candidates
    """With the kernel that was chosen."""
    setting: float
    trace: Trace


def choose_setting(
    samples: Samples,
    kernel: Kernel,
    plan: Comparing,
    folds: Sequence[Fold],
    step: Callable[[int], None] = lambda _: None,
) -> Chosen:
    """Width and setting of least cross-validated error, or of a sparser machine that is nearly as good.

    Parameters
    ----------
    samples : Samples
        With classes.
    kernel : Kernel
        A width given as a rule becomes a grid of widths.
    plan : Comparing
    folds : sequence of (training positions, held-out positions)
        Empty if there is nothing to compare, or too little to compare it on: the default setting is taken.
    step : function
        Called with the number of machines done; a path may be left before its end.
    """
    grid = _grid(samples, kernel, plan)
    kernels = grid.kernels
    settings = plan.family.settings(
        kernel_scale(samples, kernels[0]), fisher_targets(samples.codes, samples.n_classes, samples.weights).stretch
    )
    paths: list[PathErrors] = []
    for one in kernels if folds else ():
        candidates = Candidates.of(samples, one, plan.max_candidates, plan.seed)
        paths.append(
            cross_validate(samples, candidates, plan.family, settings, folds, _after(len(paths), settings, step))
        )
    k, s = len(kernels) // 2, plan.family.default
    trace = _trace(grid.only(k), plan.family, (settings[s],), [])
    if any(path.errors for path in paths):  # not so where no column differs from a constant
        trace = _trace(grid, plan.family, settings, paths)
        k, s = _choose(trace, plan)
        trace = replace(trace, chosen=(k, s))
    if len(paths) != 1:  # one kernel at a time: only that of a single one is still there
        candidates = Candidates.of(samples, kernels[k], plan.max_candidates, plan.seed)
    return Chosen(candidates, settings[s], trace)


def _after(paths: int, settings: tuple[float, ...], step: Callable[[int], None]) -> Callable[[int], None]:
    """``step`` for the machines of the next path."""
    return lambda done: step(paths * len(settings) + done)


def _grid(samples: Samples, kernel: Kernel, plan: Comparing) -> KernelGrid:
    """The kernels to cross-validate: one, unless it is cross-validation that shall choose the width."""
    if "width" not in kernel.rules:
        return KernelGrid.around(kernel, samples.X)
    # FVS-LR's closed form is fair here: it never saw a support that was chosen with labels
    if plan.width_by != "cross_validation":
        return choose_width(samples.some(_WIDTH_ROWS, random_generator(plan.seed)), kernel, plan.seed)
    return class_grid(samples, kernel, plan.seed)


def fit_within(samples: Samples, chosen: Chosen, plan: Comparing) -> tuple[Fitted, float]:
    """The machine on all samples, and its setting: the nearest sparser one if that exceeds the budget."""
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    K, Y, setting = chosen.candidates.K, targets.rows(samples.codes), chosen.setting
    fitted = plan.family.fit(K, Y, samples.weights, setting)
    if plan.max_vectors is None or fitted.machine.size <= plan.max_vectors:
        return fitted, setting
    above = setting
    while fitted.machine.size > plan.max_vectors:
        above, setting = setting, plan.family.sparser(setting)
        fitted = plan.family.fit(K, Y, samples.weights, setting)
    for _ in range(_HALVINGS):
        middle = plan.family.between(above, setting)
        found = plan.family.fit(K, Y, samples.weights, middle)
        if found.machine.size > plan.max_vectors:
            above = middle
        else:
            fitted, setting = found, middle
    return fitted, setting


def absent_class(samples: Samples, folds: Sequence[Fold]) -> tuple[int, int] | None:
    """Number of the first fold without a class among its training samples, and that class."""
    codes = to_numpy(samples.codes)
    for k, (train, _) in enumerate(folds):
        absent = set(range(samples.n_classes)) - set(codes[list(train)].tolist())
        if absent:
            return k, min(absent)
    return None


def kernel_scale(samples: Samples, kernel: Kernel) -> float:
    """Mean of ``k(x, x)``."""
    diag = kernel.diag(samples.X)
    xp = namespace(diag)
    scale, largest = float(xp.mean(diag)), float(xp.max(diag))
    if scale <= 0:
        raise ValueError(
            "kernel Fisher: every sample is a zero vector of the kernel (k(x, x) = 0), so there is nothing to keep; "
            "use another kernel."
        )
    limit = squarable(diag)
    if not 1 / limit < largest < limit:
        raise ValueError(
            f"kernel Fisher: the largest k(x, x) is {largest:.3g}, but must lie between {1 / limit:.0e} and "
            f"{limit:.0e}, so that its square is a number; scale the samples, for example with StandardScaler."
        )
    return scale


@dataclass(frozen=True)
class PathErrors:
    """Cross-validated errors along a path of machines."""

    errors: tuple[float, ...]
    """Share of the held-out weight that is misclassified."""
    sizes: tuple[float, ...]
    """Mean number of vectors."""
    n: int
    """Number of held-out samples."""


def cross_validate(
    samples: Samples,
    candidates: Candidates,
    family: Family,
    settings: tuple[float, ...],
    folds: Sequence[Fold],
    step: Callable[[int], None] = lambda _: None,
) -> PathErrors:
    """Errors of a whole path of machines, on folds of the training samples.

    A path is left once it has become larger and clearly worse than its best machine. A fold uses only candidates that
    it trains on, unless these were chosen without the labels.

    Notes
    -----
    The rule is the midpoint rule of the paper. The closed-form leave-one-out is no substitute here: the support was
    chosen with the labels, and it picks nearly dense machines.
    """
    parts = [_Trained.on(samples, candidates, family, settings, fold) for fold in folds]
    n = sum(part.n for part in parts)
    total = sum(part.weight for part in parts)
    errors: list[float] = []
    sizes: list[float] = []
    for machines in zip(*(part.machines for part in parts)):
        errors.append(sum(part.wrong(machine) for part, machine in zip(parts, machines)) / total)
        sizes.append(sum(machine.size for machine in machines) / len(parts))
        step(len(errors))
        if _hopeless(errors, sizes, n):
            break
    return PathErrors(tuple(errors), tuple(sizes), n)


def _hopeless(errors: list[float], sizes: list[float], n: int) -> bool:
    """Whether the last two machines are larger than the best so far and two standard errors worse."""
    least = min(errors)
    bound = least + 2 * math.sqrt(least * (1 - least) / n) + 1 / n
    best = sizes[errors.index(least)]
    return len(errors) > 2 and all(errors[-i] > bound and sizes[-i] > best for i in (1, 2))


@dataclass(frozen=True)
class _Trained:
    """The machines trained without one fold, made as they are asked for, and that fold."""

    machines: Iterator[Machine]
    scores: AffineScores
    K: Array
    codes: Array
    weights: Array

    @classmethod
    def on(
        cls, samples: Samples, candidates: Candidates, family: Family, settings: tuple[float, ...], fold: Fold
    ) -> _Trained:
        xp = namespace(samples.codes)
        train, test = (asarray_like(list(rows), samples.codes, dtype=xp.int64) for rows in fold)
        K_train, K_test = take_rows(candidates.K, train), take_rows(candidates.K, test)
        columns = candidates.among(train)
        if columns is not None:
            K_train, K_test = xp.take(K_train, columns, axis=1), xp.take(K_test, columns, axis=1)
        weights, codes = take_rows(samples.weights, train), take_rows(samples.codes, train)
        targets = fisher_targets(codes, samples.n_classes, weights)
        machines = family.path(K_train, targets.rows(codes), weights, settings)
        held_out = take_rows(samples.codes, test), take_rows(samples.weights, test)
        return cls(machines, least_squares_scores(targets), K_test, *held_out)

    @property
    def n(self) -> int:
        return int(self.codes.shape[0])

    @property
    def weight(self) -> float:
        return float(namespace(self.weights).sum(self.weights))

    def wrong(self, machine: Machine) -> float:
        """Weight of this fold's samples that the machine misclassifies."""
        xp = namespace(self.K)
        miss = xp.argmax(self.scores(machine.values(self.K)), axis=1) != self.codes
        return float(xp.sum(xp.astype(miss, self.weights.dtype) * self.weights))


def _trace(grid: KernelGrid, family: Family, settings: tuple[float, ...], paths: list[PathErrors]) -> Trace:
    """The errors that were measured, infinite elsewhere; nothing is chosen yet."""
    error, spread, size = ([[math.inf] * len(settings) for _ in grid.kernels] for _ in range(3))
    for k, path in enumerate(paths):
        for s, (e, m) in enumerate(zip(path.errors, path.sizes)):
            error[k][s], spread[k][s], size[k][s] = e, math.sqrt(e * (1 - e) / path.n), m
    table = [to_numpy(rows) for rows in (error, spread, size)]
    return Trace(
        {"width": grid.widths, family.axis: settings},
        table[0],
        table[1],
        chosen=(0, 0),
        size=None if family.axis == "n_vectors" else table[2],
        measure="cross-validated error",
    )


def _choose(trace: Trace, plan: Comparing) -> tuple[int, ...]:
    """The sparsest machine that is as good as the best one of those within the budget, up to a standard error.

    The standard error is that of the difference of the two errors, each a share of the held-out samples.
    """
    xp, error = namespace(trace.error), trace.error
    size = trace.size
    if size is None:
        size = xp.zeros_like(error) + asarray_like(list(trace.axes["n_vectors"]), error, dtype=error.dtype)
    if plan.max_vectors is not None:
        # the first machine of a path beyond the budget stands for those just within it: fit_within finds them
        within = size <= plan.max_vectors
        first = xp.concat([xp.ones_like(within[:, :1]), within[:, :-1]], axis=1)
        error = xp.where(within | first, error, xp.full_like(error, xp.inf))
    spread = xp.where(xp.isfinite(error), trace.spread, xp.zeros_like(error))
    best = smallest_within(error, size, 0.0)
    allowance = TOLERANCE[plan.prefer] * xp.sqrt(spread**2 + spread[best] ** 2) + _EQUAL
    return smallest_within(error, size, allowance)
