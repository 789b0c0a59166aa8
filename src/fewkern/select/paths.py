"""The models that a search compares: kernels on a grid of length scales, each with its path of sizes (methods F9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from fewkern.arrays.namespace import Array, device, namespace
from fewkern.arrays.numerics import column_ranges, column_spreads
from fewkern.core.kernels import Kernel, resolve_kernel
from fewkern.core.path import TOLERANCE, Stop, smallest_within
from fewkern.core.radial import feature_units
from fewkern.core.samples import Samples
from fewkern.select.leave_one_out import MAX_LOO_ROWS, LooPath, LooScheme, loo_paths
from fewkern.select.selection import Selection, SelectionRule, choose_basis, select_vectors

# Length scales that are compared, over that of the rule.
WIDTH_FACTORS = (0.14, 0.22, 0.35, 0.55, 0.85, 1.3, 2.0, 3.5, 6.0)
# Spread and range of the features are not compared as units where their ratio varies by less than this factor, about
# the step of the length scales: the ranges of normal samples vary as much by chance.
_MIN_UNIT_RATIO = 1.5
# Grids of more length scales are searched at every other one first: errors change little from one to the next.
_MAX_FULL_GRID = 4
# Least and largest number of vectors with which an automatic path begins (methods F9); the latter is also the default
# of a selection without targets.
FIRST_VECTORS = (50, 100)
# A path is extended if its minimum lies in this last part of it (over its length), or if a path of fewer vectors than
# FIRST_VECTORS leaves this share of the error of a constant.
_END_SHARE, _UNEXPLAINED_SHARE = 0.9, 0.7
# Standard errors that an extension must gain; paths within twice as many of the least error are extended.
_EXTENSION_GAIN = TOLERANCE["balanced"]


@dataclass(frozen=True)
class KernelGrid:
    """Kernels that are compared, and the length scales by which ``path_`` names them."""

    kernels: tuple[Kernel, ...]
    """Resolved."""
    widths: tuple[float, ...]
    """The length scale of every kernel, as one number: where every feature has its own, the one for features in their
    units (1 if they were given). Of a kernel without a length scale: 0."""

    @classmethod
    def around(cls, kernel: Kernel, X: Array) -> KernelGrid:
        """Length scales around the one that a rule gives; a length scale that is no rule is kept."""
        resolved: Any = resolve_kernel(kernel, X)
        width: Any = getattr(resolved, "length_scale", 0.0)
        single = isinstance(width, (int, float))
        if "length_scale" not in kernel.rules:
            return cls((resolved,), (float(width) if single else 1.0,))
        number = width if single else float(width[0] / feature_units(X, resolved.unit)[0])
        kernels = tuple(replace(resolved, length_scale=factor * width) for factor in WIDTH_FACTORS)
        return cls(kernels, tuple(factor * number for factor in WIDTH_FACTORS))

    def some(self, positions: Iterable[int]) -> KernelGrid:
        """The grid of some of the kernels."""
        kept = [(self.kernels[k], self.widths[k]) for k in positions]
        return KernelGrid(*zip(*kept))

    def __len__(self) -> int:
        return len(self.kernels)


def units_to_compare(kernel: Any, X: Array) -> tuple[Kernel, ...]:
    """The kernel with each unit that ``unit="auto"`` leaves open; itself where there is nothing to choose.

    The units are those that follow a change of scale of any feature. Where they are proportional, one is enough.
    """
    if "length_scale" not in kernel.rules or getattr(kernel, "unit", None) != "auto":
        return (kernel,)
    std = column_spreads(X)
    ratio = column_ranges(X)[std > 0] / std[std > 0]
    xp = namespace(ratio)
    if ratio.shape[0] < 2 or float(xp.max(ratio)) <= _MIN_UNIT_RATIO * float(xp.min(ratio)):
        return (kernel,)
    return replace(kernel, unit="spread"), replace(kernel, unit="range")


@dataclass(frozen=True)
class SearchSpace:
    """The models that a search compares, and its preference among them."""

    how: SelectionRule
    ridges: tuple[float, ...]
    """Ridges in units of the kernel."""
    limit: int
    """Length of every path at first."""
    ceiling: int
    """While the best model lies at the end of its path, the paths that compete with it are extended to twice the
    length, up to this one, as long as that lowers the error by half a standard error."""
    tolerance: float | None
    """Standard errors that a smaller model may lose; None takes the whole of the path with the best end."""


@dataclass(frozen=True)
class KernelPath:
    """The models of one kernel: one selection of vectors, and for each ridge the errors of all sizes."""

    selection: Selection
    paths: list[LooPath]

    @classmethod
    def start(cls, samples: Samples, kernel: Kernel, space: SearchSpace, scheme: LooScheme) -> KernelPath:
        """Paths of ``space.limit`` vectors."""
        selection = choose_basis(samples, kernel, space.how, space.limit)
        return cls(selection, loo_paths(selection.G, samples.targets, space.ridges, samples.weights, scheme))

    def extended(
        self, samples: Samples, space: SearchSpace, limit: int, within: float, scheme: LooScheme
    ) -> KernelPath:
        """Extend the paths of the ridges that reach an error of ``within``; the others stay as they are."""
        selection = select_vectors(self.selection.gram, space.how, limit, samples.weights, self.selection)
        kept = [r for r, path in enumerate(self.paths) if _least(path) <= within]
        ridges = tuple(space.ridges[r] for r in kept)
        longer = dict(zip(kept, loo_paths(selection.G, samples.targets, ridges, samples.weights, scheme)))
        return KernelPath(selection, [longer.get(r, path) for r, path in enumerate(self.paths)])

    @property
    def least(self) -> float:
        """The least error of all sizes and ridges."""
        return min(_least(path) for path in self.paths)

    @property
    def last(self) -> float:
        """The least error at the ends of the paths."""
        return min(float(path.error[-1]) for path in self.paths)

    def at_end(self, limit: int) -> float:
        """The least error at ``limit`` vectors; infinite where no path is as long."""
        return min((float(path.error[limit]) for path in self.paths if path.error.shape[0] > limit), default=math.inf)


def _least(path: LooPath) -> float:
    return float(namespace(path.error).min(path.error))


def search_length_scales(
    samples: Samples, grid: KernelGrid, space: SearchSpace, scheme: LooScheme, step: Callable[[int], None]
) -> dict[int, KernelPath]:
    """Paths by the number of their kernel: of all in a small grid, else of every other one and next to the best."""
    paths: dict[int, KernelPath] = {}
    wanted = list(range(len(grid))) if len(grid) <= _MAX_FULL_GRID else list(range(1, len(grid), 2))
    while wanted:
        for k in wanted:
            paths[k] = KernelPath.start(samples, grid.kernels[k], space, scheme)
            step(len(paths))
        best = min(paths, key=lambda k: paths[k].last if space.tolerance is None else paths[k].least)
        wanted = [k for k in (best - 1, best + 1) if 0 <= k < len(grid) and k not in paths]
    return paths


def extend(
    paths: list[KernelPath], samples: Samples, space: SearchSpace, scheme: LooScheme, step: Callable[[int], None]
) -> list[KernelPath]:
    """Extend the competing paths while the best model lies at the end of its path and the error falls."""
    limit, done = space.limit, len(paths)
    while limit < space.ceiling:
        k, r, L = _choose(*as_table(paths), 0.0)
        one = paths[k].paths[r]
        best, gain = float(one.error[L]), _EXTENSION_GAIN * float(one.std_error[L])
        # where only some of many rows are left out, a path that still falls may have its least error near its end
        level = samples.n > MAX_LOO_ROWS and min(path.at_end(limit) for path in paths) <= best + gain
        # where few vectors explain hardly any variance, more may explain much
        unexplained = limit < FIRST_VECTORS[1] and best > _UNEXPLAINED_SHARE * float(one.error[0])
        if L < _END_SHARE * limit and not level and not unexplained:
            break
        limit = min(2 * limit, space.ceiling)
        within = best + 2 * gain
        rivals = [path.least <= within and path.selection.stop == Stop.LIMIT for path in paths]
        paths = [
            path.extended(samples, space, limit, within, scheme) if rival else path
            for path, rival in zip(paths, rivals)
        ]
        done += sum(rivals)
        step(done)
        k, r, L = _choose(*as_table(paths), 0.0)
        if best - float(paths[k].paths[r].error[L]) < gain:
            break
    return paths


def choose_model(paths: list[KernelPath], error: Array, std_error: Array, space: SearchSpace) -> tuple[int, int, int]:
    """The model that these errors prefer; without a tolerance the best of those at the ends of the paths."""
    if space.tolerance is not None:
        return _choose(error, std_error, space.tolerance)
    ends = {
        (k, r, path.selection.n_vectors): float(error[k, r, path.selection.n_vectors])
        for k, path in enumerate(paths)
        for r in range(len(space.ridges))
    }
    return min(ends, key=lambda at: ends[at])


def _choose(error: Array, std_error: Array, tolerance: float) -> tuple[int, int, int]:
    """The smallest model (with a vector) within ``tolerance`` standard errors of the least error."""
    # Paper: the number of vectors is read off test curves. We: the least mean squared leave-one-out error, because the
    # leave-one-out error *rate* is 0.6 to 5.6 points optimistic at its minimum.
    xp = namespace(error)
    error, std_error = error[:, :, 1:], std_error[:, :, 1:]
    k, r, L = smallest_within(error, xp.zeros_like(error), 0.0)
    size = xp.zeros_like(error) + xp.arange(error.shape[2], dtype=error.dtype, device=device(error))
    k, r, L = smallest_within(error, size, tolerance * float(std_error[k, r, L]))
    return k, r, L + 1


def as_table(paths: list[KernelPath]) -> tuple[Array, Array]:
    """Errors and standard errors by kernel, ridge and number of vectors; infinite beyond the end of a path."""
    return _table(paths, lambda one: one.error), _table(paths, lambda one: one.std_error)


def errors_without_fold(paths: list[KernelPath], fold: int, weights: Array, inside: Array) -> Array:
    """The errors of all models without those of the rows ``inside`` a fold."""
    xp = namespace(weights)
    total, own = float(xp.sum(weights)), float(weights @ xp.astype(inside, weights.dtype))

    def without(one: LooPath) -> Array:
        rest = (total * one.error - one.fold_sums[fold, :]) / (total - own)  # type: ignore[index]
        return xp.where(xp.isfinite(one.error), rest, one.error)

    return _table(paths, without)


def _table(paths: list[KernelPath], of: Callable[[LooPath], Array]) -> Array:
    """The values ``of`` every path, by kernel, ridge and number of vectors; infinite beyond its end."""
    values = [[of(one) for one in path.paths] for path in paths]
    first = values[0][0]
    shape = (len(paths), len(values[0]), max(int(one.shape[0]) for row in values for one in row))
    table = namespace(first).full(shape, math.inf, dtype=first.dtype, device=device(first))
    for k, row in enumerate(values):
        for r, one in enumerate(row):
            table[k, r, : one.shape[0]] = one
    return table
