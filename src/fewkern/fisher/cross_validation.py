r"""Length scale and penalty (or number of vectors) of a kernel Fisher model by cross-validation (methods K6).

Length scales are compared on a coarse grid first, then next to the best of these; each with its whole path of penalties
or numbers of vectors, on at most 1,000 samples and 200 candidates. The path of the length scale of least error is then
followed on all samples and candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import Step
from fewkern.arrays.sampling import Fold, random_generator
from fewkern.core.kernel import Kernel
from fewkern.core.path import TOLERANCE, Path, smallest_within
from fewkern.core.samples import Samples
from fewkern.fisher.forward import ForwardFamily
from fewkern.fisher.lq import LqFamily
from fewkern.fisher.problem import Candidates, Discriminant, FisherTargets, fisher_targets, kernel_scale
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.paths import WIDTH_FACTORS, KernelGrid
from fewkern.select.search import class_grid

Family: TypeAlias = LqFamily | ForwardFamily

# Widths are compared on at most this number of samples, with at most this number of candidates (methods K6).
MAX_WIDTH_ROWS, MAX_WIDTH_CANDIDATES = 1000, 200
# Error rates are sums over folds: smaller differences are rounding.
_EQUAL_ERROR_RATE = 1e-12


@dataclass(frozen=True)
class CVPlan:
    """What is compared, and what is preferred."""

    family: Family
    folds: Sequence[Fold]
    """Positions to train on and to hold out; none where classes are too small for folds."""
    prefer: str = "balanced"
    seed: int = 0

    def max_paths(self, kernel: Kernel) -> int:
        """Largest number of paths that are followed: every second width, two neighbors, and the chosen one again."""
        return 1 + (len(WIDTH_FACTORS[::2]) + 2 if "length_scale" in kernel.rules else 0)

    def best_width(self, paths: dict[int, CrossValidated]) -> int:
        """Width of least error within the budget; of equal errors that of the smallest model, of these the widest."""
        found = [(size, error, -k) for k, path in paths.items() for size, error in zip(path.sizes, path.errors)]
        if self.family.max_vectors is not None:
            within = [one for one in found if one[0] <= self.family.max_vectors]
            found = within or [(path.sizes[0], path.errors[0], -k) for k, path in paths.items()]
        least = min(error for _, error, _ in found)
        return -min(one for one in found if one[1] <= least + _EQUAL_ERROR_RATE)[2]

    def select(self, path: CrossValidated) -> int:
        """Position of the setting with the fewest vectors whose error is within the tolerance of ``prefer``.

        Errors are compared sample by sample. The first model beyond the budget stands for those just within it,
        which the fit finds.
        """
        error, size = path.errors, path.sizes
        if self.family.max_vectors is not None:
            within = size <= self.family.max_vectors
            error = np.where(within | np.append(True, within[:-1]), error, np.inf)
        best = smallest_within(error, size, _EQUAL_ERROR_RATE)[0]
        allowance = TOLERANCE[self.prefer] * path.paired_std_errors(best) + _EQUAL_ERROR_RATE
        return smallest_within(error, size, allowance)[0]


@dataclass(frozen=True)
class Selected:
    """The setting that cross-validation selected."""

    candidates: Candidates
    """Candidates with the selected kernel."""
    setting: float
    trace: Path
    held_out: HeldOut | None = None
    """Discriminant of held-out samples, by the models of the folds at ``setting``; None without folds."""
    nested: HeldOut | None = None
    """The same, each fold at the setting that the other folds select."""


def select_setting(
    samples: Samples, targets: FisherTargets, kernel: Kernel, plan: CVPlan, step: Step = lambda _: None
) -> Selected:
    """Width and setting of least cross-validated error, or a setting with fewer vectors that is nearly as good.

    Parameters
    ----------
    samples : Samples
        With classes.
    targets : FisherTargets
        Those of the samples.
    kernel : Kernel
        A width given as a rule becomes a grid of widths.
    plan : CVPlan
        Without folds the default setting is used.
    step : function
        Called with the number of paths done.
    """
    grid, family = class_grid(samples, kernel, plan.seed), plan.family
    # the scale of equal classes is their number
    settings = family.settings(kernel_scale(samples, grid.kernels[0]), targets.scale / targets.n_classes)
    if not plan.folds:
        k, setting = len(grid) // 2, settings[family.default]
        candidates = Candidates.of(samples, grid.kernels[k], None, plan.seed)
        return Selected(candidates, setting, _record({"length_scale": (grid.widths[k],), family.axis: (setting,)}, {}))
    paths = _compare_widths(samples, grid, settings, plan, step) if len(grid) > 1 else {}
    k = plan.best_width(paths) if paths else 0
    candidates = Candidates.of(samples, grid.kernels[k], None, plan.seed)
    path = paths.get(k)
    if path is None or path.samples is not samples or samples.n > MAX_WIDTH_CANDIDATES:
        path = cross_validate(samples, candidates, family, settings, plan.folds)
    step(len(paths) + 1)
    s = plan.select(path)
    others = [plan.select(path.without(f)) for f in range(path.n_folds)]
    return Selected(
        candidates,
        settings[s],
        _record({"length_scale": grid.widths, family.axis: settings}, {**paths, k: path}, (k, s)),
        path.held_out([s] * path.n_folds, targets),
        path.held_out(others, targets),
    )


def _compare_widths(
    samples: Samples, grid: KernelGrid, settings: tuple[float, ...], plan: CVPlan, step: Step
) -> dict[int, CrossValidated]:
    """Paths of every second width, and of the neighbors of the best one, on a subsample."""
    # Paper: every width and penalty on all samples. We: widths on 1,000 samples with 200 candidates, because a path of
    # (5) costs up to m^3 for m candidates, and a width is as well chosen on them.
    part, part_folds = _subsample(samples, plan)
    paths: dict[int, CrossValidated] = {}

    def follow(k: int) -> None:
        candidates = Candidates.of(part, grid.kernels[k], MAX_WIDTH_CANDIDATES, plan.seed)
        paths[k] = cross_validate(part, candidates, plan.family, settings, part_folds)
        step(len(paths))

    for k in range(0, len(grid), 2):
        follow(k)
    best = plan.best_width(paths)
    for k in (best - 1, best + 1):
        if 0 <= k < len(grid):
            follow(k)
    return paths


def _subsample(samples: Samples, plan: CVPlan) -> tuple[Samples, Sequence[Fold]]:
    """About ``MAX_WIDTH_ROWS`` samples and their part of the folds; all samples if a class is too small for that."""
    part = samples.some(MAX_WIDTH_ROWS, random_generator(plan.seed))
    place = np.full(samples.n, -1)
    place[np.searchsorted(samples.rows, part.rows)] = np.arange(part.n)

    def inside(rows: Sequence[int]) -> list[int]:
        found = place[list(rows)]
        return list(found[found >= 0].tolist())

    part_folds = [(inside(train), inside(test)) for train, test in plan.folds]
    if absent_class(part, part_folds) is not None or any(not test for _, test in part_folds):
        return samples, plan.folds
    return part, part_folds


def absent_class(samples: Samples, folds: Sequence[Fold]) -> tuple[int, int] | None:
    """Number of the first fold without a class among its training samples, and that class."""
    codes: Array = samples.codes
    for k, (train, _) in enumerate(folds):
        absent = np.setdiff1d(np.arange(samples.n_classes), codes[list(train)])
        if len(absent):
            return k, int(absent[0])
    return None


@dataclass(frozen=True)
class CrossValidated:
    """Models along a path, trained without every fold, and their errors on it: ``S`` settings, ``F`` folds."""

    samples: Samples
    parts: tuple[_HeldOutFold, ...]
    models: tuple[tuple[Discriminant, ...], ...]
    """One tuple per setting, with one model per fold."""
    misses: Array
    """Weight of every held-out sample, fold after fold, if it is misclassified, else zero; ``(S, n)``."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.parts)

    @property
    def rows(self) -> Array:
        """The held-out samples, fold after fold."""
        return np.concatenate([part.rows for part in self.parts])

    @property
    def weight(self) -> float:
        """Sum of the held-out weights."""
        return float(np.sum(self.samples.weights[self.rows]))

    @property
    def errors(self) -> Array:
        """Share of the held-out weight that is misclassified, for every setting."""
        return np.sum(self.misses, axis=1) / self.weight

    @property
    def sizes(self) -> Array:
        """Mean number of vectors, for every setting."""
        return np.array([sum(model.size for model in models) for models in self.models]) / self.n_folds

    def paired_std_errors(self, best: int) -> Array:
        """Standard errors of the differences between all errors and that of one setting, on the same samples."""
        return np.sqrt(np.sum((self.misses - self.misses[best]) ** 2, axis=1)) / self.weight

    def without(self, fold: int) -> CrossValidated:
        """The same without one fold; itself if that is the only one."""
        if self.n_folds == 1:
            return self
        kept = [f for f in range(self.n_folds) if f != fold]
        inside = np.repeat(np.arange(self.n_folds), [len(part.rows) for part in self.parts]) != fold
        models = tuple(tuple(row[f] for f in kept) for row in self.models)
        return CrossValidated(self.samples, tuple(self.parts[f] for f in kept), models, self.misses[:, inside])

    def held_out(self, settings: Sequence[int], targets: FisherTargets) -> HeldOut:
        """Discriminant of the held-out samples in units of ``targets``, every fold at a setting of its own.

        Every fold has class shares, and therefore targets, of its own. A sample that is held out more than once counts
        once.
        """
        posteriors = [part.posteriors(self.models[s][f]) for f, (part, s) in enumerate(zip(self.parts, settings))]
        rows, first = np.unique(self.rows, return_index=True)
        samples = self.samples if len(rows) == self.samples.n else self.samples.take(rows)
        return HeldOut(targets.values(np.concatenate(posteriors))[first], samples)


def cross_validate(
    samples: Samples, candidates: Candidates, family: Family, settings: tuple[float, ...], folds: Sequence[Fold]
) -> CrossValidated:
    """Models of a whole path on folds of the training samples, and their errors.

    A path is left once it has become larger and clearly worse than its best model. A fold uses only candidates that
    it trains on, unless these were chosen without the labels.

    Notes
    -----
    The rule is the midpoint rule of the paper. The closed-form leave-one-out is no substitute here: the support was
    chosen with the labels, and it picks nearly dense models.
    """
    parts = tuple(_HeldOutFold.of(samples, candidates, family, settings, fold) for fold in folds)
    weight = sum(float(np.sum(samples.weights[part.rows])) for part in parts)
    path, misses, errors, sizes = [], [], [], []
    for models in zip(*(part.path for part in parts)):
        path.append(models)
        misses.append(np.concatenate([part.misses(model, samples) for part, model in zip(parts, models)]))
        errors.append(float(np.sum(misses[-1])) / weight)
        sizes.append(sum(model.size for model in models))
        if _is_clearly_worse(errors, sizes, len(misses[-1])):
            break
    return CrossValidated(samples, parts, tuple(path), np.stack(misses))


def _is_clearly_worse(errors: Sequence[float], sizes: Sequence[float], n: int) -> bool:
    """Whether the last two models are larger than the best so far and worse by two standard errors."""
    least = min(errors)
    bound = least + 2 * math.sqrt(least * (1 - least) / n) + 1 / n
    best = sizes[errors.index(least)]
    return len(errors) > 2 and all(errors[-i] > bound and sizes[-i] > best for i in (1, 2))


@dataclass(frozen=True)
class _HeldOutFold:
    """One fold, and the path of models trained without it, which are computed on demand."""

    path: Iterator[Discriminant]
    targets: FisherTargets
    """Targets of the samples that the models are trained on."""
    rows: Array
    """The held-out samples."""
    K: Array
    """Kernel columns of the held-out samples."""

    @classmethod
    def of(
        cls, samples: Samples, candidates: Candidates, family: Family, settings: tuple[float, ...], fold: Fold
    ) -> _HeldOutFold:
        train, test = (np.array(rows, dtype=np.int64) for rows in fold)
        columns = candidates.columns_for(train)
        K = candidates.K if columns is None else np.take(candidates.K, columns, axis=1)
        every: Array = samples.codes
        codes, weights = every[train], samples.weights[train]
        targets = fisher_targets(codes, samples.n_classes, weights)
        return cls(family.path(K[train], targets.rows(codes), weights, settings), targets, test, K[test])

    def posteriors(self, model: Discriminant) -> Array:
        """Least-squares posteriors of the held-out samples."""
        return self.targets.posteriors(model.values(self.K))

    def misses(self, model: Discriminant, samples: Samples) -> Array:
        """Weights of the held-out samples, zero where the model finds the class."""
        codes: Array = samples.codes
        return samples.weights[self.rows] * (np.argmax(self.posteriors(model), axis=1) != codes[self.rows])


def _record(
    axes: dict[str, tuple[float, ...]], paths: dict[int, CrossValidated], chosen: tuple[int, int] = (0, 0)
) -> Path:
    """Errors, their standard errors, and numbers of vectors of every width and setting; infinite if not computed."""
    error, std_error, size = (np.full([len(values) for values in axes.values()], np.inf) for _ in range(3))
    for k, path in paths.items():
        count, e = len(path.models), path.errors
        error[k, :count], size[k, :count] = e, path.sizes
        std_error[k, :count] = np.sqrt(e * (1 - e) / len(path.rows))
    sizes = None if "n_vectors" in axes else size
    return Path(axes, error, std_error, chosen, size=sizes, measure="cross-validated error")
