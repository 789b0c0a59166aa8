r"""Length scale and penalty (or number of vectors) of a kernel Fisher machine by cross-validation.

Length scales are compared on a coarse grid first, and next to the best of these; every length scale with its whole path
of penalties or numbers of vectors, on at most 1,000 samples and 200 candidates. The path of the length scale of least
error is then followed on all samples and candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fewkern.arrays.distinct import distinct_rows
from fewkern.arrays.finite import squarable
from fewkern.arrays.folds import Fold
from fewkern.arrays.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.arrays.random import random_generator
from fewkern.core.kernel import Kernel
from fewkern.core.path import TOLERANCE, Path, smallest_within
from fewkern.core.samples import Samples
from fewkern.fisher.families import Family, Fitted
from fewkern.fisher.posterior import AffineScores, least_squares_scores
from fewkern.fisher.problem import Machine
from fewkern.fisher.targets import FisherTargets, fisher_targets
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.paths import WIDTH_FACTORS, KernelGrid
from fewkern.select.search import class_grid
from fewkern.select.selection import SelectionRule, choose_basis

__all__ = [
    "Candidates",
    "Chosen",
    "Comparing",
    "CrossValidated",
    "absent_class",
    "choose_setting",
    "cross_validate",
    "fit_within",
    "kernel_scale",
]

# Up to so many distinct samples all are candidates; above, so many of them, chosen by the gain rule of FVS. With
# several classes (8) starts with all candidates alive, and a step costs their number cubed.
MOST_CANDIDATES, MOST_CANDIDATES_SEVERAL = 1000, 400
# Length scales are compared on at most so many samples, with so many of them as candidates.
WIDTH_ROWS, WIDTH_CANDIDATES = 1000, 200
# Every second length scale is compared first, then the neighbors of the best one.
_COARSE = 2
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

    @classmethod
    def of(cls, samples: Samples, kernel: Kernel, limit: int | None, seed: int) -> Candidates:
        """Every distinct sample, or ``limit`` vectors that span the samples (None: 1000, with several classes 400)."""
        # Paper: one column per sample. We: one per distinct sample, because equal columns leave q = 1 undetermined.
        rows, owners = distinct_rows(samples.X, samples.codes)
        count = int(rows.shape[0])
        if limit is None:
            limit = MOST_CANDIDATES if samples.n_classes == 2 else MOST_CANDIDATES_SEVERAL
        if count > limit:
            found = choose_basis(samples, kernel, SelectionRule(seed=seed), limit)
            rows, owners = namespace(found.indices).sort(found.indices), None
        return cls(kernel, rows, owners, kernel(samples.X, kernel.pick(samples.X, rows)))

    def among(self, rows: Array) -> Array | None:
        """Columns that belong to the samples ``rows``; None: all."""
        if self.owners is None:
            return None
        own = sorted({int(j) for j in to_numpy(take_rows(self.owners, rows))})
        return asarray_like(own, self.rows, dtype=self.rows.dtype)


@dataclass(frozen=True)
class Comparing:
    """What is compared, and what is preferred."""

    family: Family
    prefer: str = "balanced"
    max_vectors: int | None = None
    """Largest machine that may be taken."""
    max_candidates: int | None = None
    """Samples that a machine may keep are chosen among so many; None: see :class:`Candidates`."""
    seed: int = 0

    def n_paths(self, kernel: Kernel) -> int:
        """How many paths are followed at most."""
        return 1 + (-(-len(WIDTH_FACTORS) // _COARSE) + 2 if "length_scale" in kernel.rules else 0)

    @property
    def width_candidates(self) -> int:
        """Number of candidates with which length scales are compared."""
        return WIDTH_CANDIDATES if self.max_candidates is None else min(self.max_candidates, WIDTH_CANDIDATES)

    def same_candidates(self, part: Samples, samples: Samples) -> bool:
        """Whether length scales that were compared on ``part`` were compared with all samples and candidates."""
        few = samples.n <= self.width_candidates or self.width_candidates == self.max_candidates
        return part is samples and few

    @property
    def compares(self) -> bool:
        """Whether the setting is to be chosen."""
        return len(self.family.settings(1.0, 1.0)) > 1


@dataclass(frozen=True)
class Chosen:
    """What was chosen."""

    candidates: Candidates
    """With the kernel that was chosen."""
    setting: float
    trace: Path
    held_out: HeldOut | None = None
    """Discriminant of held-out samples, by the machines of the folds at ``setting``; None without folds."""
    judged: HeldOut | None = None
    """The same, with the penalty or number of vectors that the other folds choose."""


def choose_setting(
    samples: Samples,
    kernel: Kernel,
    plan: Comparing,
    folds: Sequence[Fold],
    step: Callable[[int], None] = lambda _: None,
) -> Chosen:
    """Length scale and setting of least cross-validated error, or a setting with fewer vectors that is nearly as good.

    Parameters
    ----------
    samples : Samples
        With classes.
    kernel : Kernel
        A length scale given as a rule becomes a grid of length scales.
    plan : Comparing
    folds : sequence of (training positions, held-out positions)
        Empty where classes are too small for folds: the default setting is taken.
    step : function
        Called with the number of paths done.
    """
    grid, family = class_grid(samples, kernel, plan.seed), plan.family
    stretch = fisher_targets(samples.codes, samples.n_classes, samples.weights).stretch
    settings = family.settings(kernel_scale(samples, grid.kernels[0]), stretch)
    if not folds:
        k, s = len(grid) // 2, family.default
        candidates = Candidates.of(samples, grid.kernels[k], plan.max_candidates, plan.seed)
        return Chosen(candidates, settings[s], _trace((grid.widths[k],), family, (settings[s],), {}))
    paths = _compare_widths(samples, grid, settings, plan, folds, step) if len(grid) > 1 else {}
    k = _best_width(grid, settings, plan, paths) if paths else 0
    candidates = Candidates.of(samples, grid.kernels[k], plan.max_candidates, plan.seed)
    path = paths.get(k)
    if path is None or not plan.same_candidates(path.samples, samples):
        path = cross_validate(samples, candidates, family, settings, folds)
    step(len(paths) + 1)
    s = _choose_on(path, family, settings, plan)
    others = [_choose_on(path.without(f), family, settings, plan) for f in range(path.n_folds)]
    return Chosen(
        candidates,
        settings[s],
        replace(_trace(grid.widths, family, settings, {**paths, k: path}), chosen=(k, s)),
        path.held_out([s] * path.n_folds),
        path.held_out(others),
    )


def _best_width(
    grid: KernelGrid, settings: tuple[float, ...], plan: Comparing, paths: dict[int, CrossValidated]
) -> int:
    """Position of the length scale of least error; of equal errors the smallest machine, then the widest kernel."""
    falling = {len(grid) - 1 - k: path for k, path in paths.items()}
    trace = _trace(grid.widths[::-1], plan.family, settings, falling)
    return len(grid) - 1 - _choose(trace, plan)[0]


def _compare_widths(
    samples: Samples,
    grid: KernelGrid,
    settings: tuple[float, ...],
    plan: Comparing,
    folds: Sequence[Fold],
    step: Callable[[int], None],
) -> dict[int, CrossValidated]:
    """Paths of a coarse grid of length scales, and of the neighbors of the best one, on some of the samples."""
    # Paper: every length scale and penalty on all samples. We: length scales on 1,000 samples with 200 candidates,
    # because a path of (5) costs up to m^3 for m candidates, and a length scale is as well chosen on them.
    some, parts = _part(samples, folds, random_generator(plan.seed))
    limit = plan.width_candidates
    paths: dict[int, CrossValidated] = {}

    def follow(k: int) -> None:
        candidates = Candidates.of(some, grid.kernels[k], limit, plan.seed)
        paths[k] = cross_validate(some, candidates, plan.family, settings, parts)
        step(len(paths))

    for k in range(0, len(grid), _COARSE):
        follow(k)
    best = _best_width(grid, settings, plan, paths)
    for k in (best - 1, best + 1):
        if 0 <= k < len(grid):
            follow(k)
    return paths


def _part(samples: Samples, folds: Sequence[Fold], rng: object) -> tuple[Samples, Sequence[Fold]]:
    """About ``WIDTH_ROWS`` of the samples, and what the folds have of them; all, if a class is too small for that."""
    some = samples.some(WIDTH_ROWS, rng)
    if some.n == samples.n:
        return samples, folds
    place = {row: i for i, row in enumerate(to_numpy(some.rows).tolist())}
    rows = to_numpy(samples.rows)

    def inside(part: Sequence[int]) -> list[int]:
        return [place[row] for row in rows[list(part)].tolist() if row in place]

    parts = [(inside(train), inside(test)) for train, test in folds]
    if absent_class(some, parts) is not None or any(not test for _, test in parts):
        return samples, folds
    return some, parts


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
class CrossValidated:
    """Machines along a path, trained without every fold, and what they say of it: ``S`` settings, ``F`` folds."""

    samples: Samples
    parts: tuple[_Fold, ...]
    machines: tuple[tuple[Machine, ...], ...]
    """One tuple per setting, with one machine per fold."""
    misses: Any
    """Weight of every held-out sample, fold after fold, if its class is not found, else zero; ``(S, n)``."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.parts)

    @property
    def n(self) -> int:
        """Number of held-out samples."""
        return sum(part.n for part in self.parts)

    @property
    def errors(self) -> tuple[float, ...]:
        """Share of the held-out weight that is misclassified, for every setting."""
        return tuple((self.misses.sum(axis=1) / self.weight).tolist())

    @property
    def weight(self) -> float:
        """Sum of the held-out weights."""
        return sum(part.weight for part in self.parts)

    def paired_spread(self, best: int) -> Any:
        """Standard errors of the differences between all errors and that of one setting, on the same samples."""
        return ((self.misses - self.misses[best]) ** 2).sum(axis=1) ** 0.5 / self.weight

    @property
    def sizes(self) -> tuple[float, ...]:
        """Mean number of vectors, for every setting."""
        return tuple(sum(machine.size for machine in machines) / self.n_folds for machines in self.machines)

    def without(self, fold: int) -> CrossValidated:
        """The same without one fold; itself if that is the only one."""
        kept = [f for f in range(self.n_folds) if f != fold or self.n_folds == 1]
        machines = tuple(tuple(row[f] for f in kept) for row in self.machines)
        inside = [f in kept for f, part in enumerate(self.parts) for _ in range(part.n)]
        misses = self.misses[:, to_numpy(inside)]
        return CrossValidated(self.samples, tuple(self.parts[f] for f in kept), machines, misses)

    def held_out(self, settings: Sequence[int]) -> HeldOut:
        """Discriminant of the held-out samples, every fold at a setting of its own.

        In units of the targets of all samples. A sample that is held out more than once counts once.
        """
        targets = fisher_targets(self.samples.codes, self.samples.n_classes, self.samples.weights)
        first: dict[int, int] = {}
        values, at = [], 0
        for f, (part, s) in enumerate(zip(self.parts, settings)):
            for row in part.rows:
                first.setdefault(row, at)
                at += 1
            values.append(part.values(self.machines[s][f], targets))
        kept, samples, like = sorted(first), self.samples, self.samples.rows
        if len(kept) < samples.n:
            samples = samples.take(asarray_like(kept, like, dtype=like.dtype))
        once = asarray_like([first[row] for row in kept], like, dtype=like.dtype)
        scheme: Literal["cv", "nested"] = "cv" if len(set(settings)) == 1 else "nested"
        return HeldOut(take_rows(namespace(values[0]).concat(values, axis=0), once), samples, scheme)


def cross_validate(
    samples: Samples, candidates: Candidates, family: Family, settings: tuple[float, ...], folds: Sequence[Fold]
) -> CrossValidated:
    """Machines of a whole path on folds of the training samples, and their errors.

    A path is left once it has become larger and clearly worse than its best machine. A fold uses only candidates that
    it trains on, unless these were chosen without the labels.

    Notes
    -----
    The rule is the midpoint rule of the paper. The closed-form leave-one-out is no substitute here: the support was
    chosen with the labels, and it picks nearly dense machines.
    """
    parts = tuple(_Fold.of(samples, candidates, family, settings, fold) for fold in folds)
    n, weight = sum(part.n for part in parts), sum(part.weight for part in parts)
    path: list[tuple[Machine, ...]] = []
    misses: list[list[float]] = []
    errors: list[float] = []
    for machines in zip(*(part.machines for part in parts)):
        path.append(machines)
        misses.append([miss for part, machine in zip(parts, machines) for miss in part.misses(machine)])
        errors.append(math.fsum(misses[-1]) / weight)
        if _hopeless(errors, [sum(machine.size for machine in row) for row in path], n):
            break
    return CrossValidated(samples, parts, tuple(path), to_numpy(misses))


def _hopeless(errors: list[float], sizes: Sequence[float], n: int) -> bool:
    """Whether the last two machines are larger than the best so far and two standard errors worse."""
    least = min(errors)
    bound = least + 2 * math.sqrt(least * (1 - least) / n) + 1 / n
    best = sizes[errors.index(least)]
    return len(errors) > 2 and all(errors[-i] > bound and sizes[-i] > best for i in (1, 2))


@dataclass(frozen=True)
class _Fold:
    """The machines trained without one fold, made as they are asked for, and that fold."""

    machines: Iterator[Machine]
    scores: AffineScores
    rows: list[int]
    K: Array
    codes: Array
    weights: Array

    @classmethod
    def of(
        cls, samples: Samples, candidates: Candidates, family: Family, settings: tuple[float, ...], fold: Fold
    ) -> _Fold:
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
        return cls(machines, least_squares_scores(targets), list(fold[1]), K_test, *held_out)

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> float:
        return float(namespace(self.weights).sum(self.weights))

    def misses(self, machine: Machine) -> list[float]:
        """Weights of this fold's samples, zero where the machine finds the class."""
        xp = namespace(self.K)
        miss = xp.argmax(self.scores(machine.values(self.K)), axis=1) != self.codes
        weights: list[float] = to_numpy(xp.astype(miss, self.weights.dtype) * self.weights).tolist()
        return weights

    def values(self, machine: Machine, targets: FisherTargets) -> Array:
        """Discriminant of this fold's samples; a fold's own classes have shares, and so targets, of their own."""
        return targets.values(self.scores(machine.values(self.K)))


def _trace(
    widths: tuple[float, ...], family: Family, settings: tuple[float, ...], paths: dict[int, CrossValidated]
) -> Path:
    """The errors that were measured, infinite elsewhere; nothing is chosen yet."""
    error, spread, size = ([[math.inf] * len(settings) for _ in widths] for _ in range(3))
    for k, path in paths.items():
        for s, (e, m) in enumerate(zip(path.errors, path.sizes)):
            error[k][s], spread[k][s], size[k][s] = e, math.sqrt(e * (1 - e) / path.n), m
    table = [to_numpy(rows) for rows in (error, spread, size)]
    return Path(
        {"length_scale": widths, family.axis: settings},
        table[0],
        table[1],
        chosen=(0, 0),
        size=None if family.axis == "n_vectors" else table[2],
        measure="cross-validated error",
    )


def _choose(trace: Path, plan: Comparing, spread: Any = None) -> tuple[int, ...]:
    """The sparsest machine that is as good as the best one of those within the budget.

    ``spread`` are the standard errors of the differences of the errors from the least one; machines within the
    tolerance of ``plan.prefer``, in units of them, are as good. Without it only equal errors are.

    On a single path the first machine beyond the budget stands for those just within it, which :func:`fit_within`
    finds. Length scales are compared by machines within the budget, unless there are none.
    """
    error, size, xp = trace.error, trace.size, namespace(trace.error)
    if size is None:
        size = xp.zeros_like(error) + to_numpy(list(trace.axes["n_vectors"]))
    if plan.max_vectors is not None:
        within = size <= plan.max_vectors
        if spread is not None or not bool(xp.any(within)):
            within = within | xp.concat([xp.ones_like(within[:, :1]), within[:, :-1]], axis=1)
        error = xp.where(within, error, math.inf)
    return smallest_within(error, size, _EQUAL if spread is None else TOLERANCE[plan.prefer] * spread + _EQUAL)


def _choose_on(path: CrossValidated, family: Family, settings: tuple[float, ...], plan: Comparing) -> int:
    """Position of the setting that is taken on one path; errors are compared sample by sample."""
    compared = settings[: len(path.machines)]
    trace = _trace((1.0,), family, compared, {0: path})
    best = _choose(trace, plan, 0.0)[1]
    return _choose(trace, plan, path.paired_spread(best)[None, :])[1]
