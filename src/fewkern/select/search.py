"""Length scale, ridge and number of vectors by leave-one-out: FVS-LR without a number to choose (methods F9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fewkern.arrays.blocks import threads_for
from fewkern.arrays.namespace import Array, asarray_like, namespace
from fewkern.arrays.sampling import random_generator, seed_from
from fewkern.core.expansion import KernelBasis
from fewkern.core.kernel import Kernel
from fewkern.core.path import TOLERANCE, Path, Stop
from fewkern.core.samples import Samples, class_targets
from fewkern.select.leave_one_out import MAX_LOO_ROWS, HeldOut, LooScheme, solve
from fewkern.select.paths import (
    FIRST_VECTORS,
    KernelGrid,
    KernelPath,
    SearchSpace,
    as_table,
    choose_model,
    errors_without_fold,
    extend,
    search_length_scales,
    units_to_compare,
)
from fewkern.select.selection import Selection, SelectionRule, choose_basis

# Ridges that are compared, over the mean of k(x, x). Without a ridge, coefficients can grow until the sum consists of
# rounding errors.
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Without a budget a path has one vector for _ROWS_PER_VECTOR rows at first, within FIRST_VECTORS (and at most half of
# the rows). It is extended while that pays: to FIRST_VECTORS[1] or to this share of the rows, and _MAX_VECTORS at most.
_ROWS_PER_VECTOR, _MAX_VECTORS = 8, 1000
_MAX_VECTOR_SHARE = {"accurate": 0.5, "balanced": 0.1, "sparse": 0.1}
# Above MAX_LOO_ROWS rows all but the vectors is chosen on some of them, at most MAX_SEARCH_ROWS; the vectors are then
# chosen among all. This share of the rows takes no part in the search: models are then a quarter smaller, at the
# same error (methods F9).
MAX_SEARCH_ROWS, _UNUSED_SHARE = 10_000, 0.2
# Only length scales near the best on SCREENING_ROWS rows are then looked at: steps of the grid below and above it.
# More rows and longer paths allow narrower kernels.
_SCREENING_ROWS, _STEPS_BELOW, _STEPS_ABOVE = 1000, 2, 1
# The unit of the length scales is decided on as many rows, by paths of this many vectors at two length scales (0.55 and
# 1.3 times that of the rule, by their place in the grid) and two ridges. Paths of 50 or 100 vectors decide alike on ten
# sets; one length scale alone is wrong on four.
_UNIT_VECTORS, _UNIT_PLACES, _UNIT_RIDGES = 30, (3, 5), (1e-4, 1e-2)
# Folds of the rows, each of which is predicted at the settings that the others choose. Above MAX_LOO_ROWS rows there
# are none: the least of many errors is then hardly too small.
_NESTED_FOLDS = 5


@dataclass(frozen=True)
class NestedFold:
    """Vectors, ridge and number of vectors that the rows outside of a fold choose."""

    inside: Array
    """Whether a row belongs to the fold."""
    selection: Selection
    ridge: float
    n_vectors: int


@dataclass(frozen=True)
class SearchResult:
    """Vectors, ridge and number of vectors that a search has chosen."""

    selection: Selection
    ridge: float
    n_vectors: int
    path: Path
    nested_folds: tuple[NestedFold, ...] = ()
    """Empty above ``MAX_LOO_ROWS`` rows."""
    searched: Selection | None = None
    """Where all but the vectors was chosen on some of the rows: the selection among these."""

    @property
    def full_selection(self) -> Selection:
        """The selection whose path was searched."""
        return self.selection if self.searched is None else self.searched

    @property
    def kernel(self) -> Kernel:
        """The kernel with the length scale that was chosen."""
        return self.selection.gram.kernel

    @property
    def Z(self) -> Array:
        """Features of all samples on the vectors that were chosen."""
        return self.selection.G[:, : self.n_vectors]

    @property
    def basis(self) -> KernelBasis:
        """The basis on the vectors that were chosen."""
        return self.selection.basis().head(self.n_vectors)

    @property
    def fitness(self) -> Array:
        """Global fitness of one vector, two vectors, up to those that were chosen."""
        return self.selection.fitness[: self.n_vectors]

    @property
    def stop(self) -> Stop:
        """SIZE if a smaller model was preferred to the whole path, else why the selection ended."""
        return Stop.SIZE if self.n_vectors < self.full_selection.n_vectors else self.full_selection.stop


def automatic_space(
    how: SelectionRule,
    n: int,
    *,
    n_vectors: int | None = None,
    max_vectors: int | None = None,
    ridge: Any = "auto",
    prefer: str = "balanced",
) -> SearchSpace:
    """The search that the parameters of an estimator describe, for ``n`` rows.

    An automatic ridge is in units of the mean of ``k(x, x)``: :func:`in_kernel_units` makes a number of it.
    """
    ridges = RIDGES if ridge == "auto" else (float(ridge),)
    if n_vectors is not None:
        return SearchSpace(how, ridges, min(int(n_vectors), n), 0, None)
    if max_vectors is not None:
        return SearchSpace(how, ridges, min(int(max_vectors), n), 0, TOLERANCE[prefer])
    half = max(1, n // 2)
    first = max(FIRST_VECTORS[0], min(n // _ROWS_PER_VECTOR, FIRST_VECTORS[1]))
    ceiling = max(min(FIRST_VECTORS[1], half), min(_MAX_VECTORS, int(_MAX_VECTOR_SHARE[prefer] * n)))
    return SearchSpace(how, ridges, min(first, half), ceiling, TOLERANCE[prefer])


def n_paths(space: SearchSpace, n_kernels: int, n: int) -> int:
    """Largest number of paths that :func:`automatic_model` starts or extends, those of all ridges counted once.

    Above ``MAX_LOO_ROWS`` rows the vectors are chosen once more, among all.
    """
    rounds, limit = 1, space.limit
    while limit < space.ceiling:
        rounds, limit = rounds + 1, min(2 * limit, space.ceiling)
    if n <= MAX_LOO_ROWS:
        return rounds * n_kernels
    return rounds * min(n_kernels, _STEPS_BELOW + 1 + _STEPS_ABOVE) + 1


def in_kernel_units(space: SearchSpace, kernel: Kernel, samples: Samples) -> SearchSpace:
    """The same search with the grid of ridges times the mean of ``k(x, x)``: units of the data do not matter."""
    if len(space.ridges) == 1:  # a number that was given
        return space
    diag = kernel.diag(samples.X)
    scale = float(namespace(diag).mean(diag))
    return replace(space, ridges=tuple(ridge * scale for ridge in space.ridges)) if scale > 0 else space


def automatic_model(
    samples: Samples, kernel: Kernel, space: SearchSpace, step: Callable[[int], None] = lambda _: None
) -> SearchResult:
    """The kernel, vectors, ridge and size that leave-one-out prefers; ``samples`` have targets.

    A length scale that is a rule becomes a grid of length scales. Of many rows some choose all but the vectors.
    """
    grid = choose_grid(samples, kernel, space)
    space = in_kernel_units(space, grid.kernels[0], samples)
    if samples.n <= MAX_LOO_ROWS:
        return search(samples, grid, space, step)
    mixed = random_generator(space.how.seed).permutation(samples.n).tolist()
    rows = sorted(mixed[int(_UNUSED_SHARE * samples.n) :][:MAX_SEARCH_ROWS])
    some = samples.take(asarray_like(rows, samples.rows, dtype=samples.rows.dtype))
    found = search(some, _near_best(some, grid, space), space, step)
    with threads_for(samples.n * space.limit**2):
        selection = choose_basis(samples, found.kernel, space.how, found.selection.n_vectors)
    step(n_paths(space, len(grid), samples.n))
    n_vectors = min(found.n_vectors, selection.n_vectors)
    return SearchResult(selection, found.ridge, n_vectors, found.path, searched=found.selection)


def _near_best(samples: Samples, grid: KernelGrid, space: SearchSpace) -> KernelGrid:
    """The length scales near the one that short paths on a few of the rows prefer."""
    if len(grid) == 1:
        return grid
    some = samples.some(_SCREENING_ROWS, random_generator(space.how.seed))
    least = _least_errors(some, grid.kernels, space)
    best = least.index(min(least))
    return grid.some(range(max(0, best - _STEPS_BELOW), min(best + _STEPS_ABOVE + 1, len(grid))))


def _least_errors(samples: Samples, kernels: tuple[Kernel, ...], space: SearchSpace) -> list[float]:
    scheme = LooScheme.of(samples)
    with threads_for(samples.n * space.limit**2):
        return [KernelPath.start(samples, kernel, space, scheme).least for kernel in kernels]


def nested_values(samples: Samples, found: SearchResult) -> HeldOut | None:
    """Leave-one-out predictions for every fold at the settings that the other folds choose; None without folds.

    The least of many leave-one-out errors is too small, because the settings were chosen on the same rows.
    """
    if not found.nested_folds:
        return None
    xp = namespace(samples.targets)
    values = xp.zeros_like(samples.targets)
    scheme = LooScheme.of(samples)
    known: dict[tuple[int, float, int], Array] = {}
    for fold in found.nested_folds:
        setting = id(fold.selection), fold.ridge, fold.n_vectors
        if setting not in known:
            Z = fold.selection.G[:, : fold.n_vectors]
            known[setting] = solve(Z, samples.targets, fold.ridge, samples.weights, scheme).held_out
        values = xp.where(fold.inside[:, None], known[setting], values)
    return HeldOut(values, samples)


def class_grid(samples: Samples, kernel: Kernel, seed: int) -> KernelGrid:
    """The length scales to compare for the classes of the samples; see :func:`choose_grid`."""
    samples = class_targets(samples)
    return choose_grid(samples, kernel, automatic_space(SelectionRule(seed=seed_from(seed)), samples.n))


def choose_grid(samples: Samples, kernel: Kernel, space: SearchSpace) -> KernelGrid:
    """The length scales to compare, in the unit that leave-one-out prefers where ``unit="auto"`` leaves the choice."""
    grids = [KernelGrid.around(rival, samples.X) for rival in units_to_compare(kernel, samples.X)]
    if len(grids) == 1:
        return grids[0]
    some = samples.some(_SCREENING_ROWS, random_generator(space.how.seed))
    ridges = space.ridges if len(space.ridges) == 1 else _UNIT_RIDGES
    space = replace(space, ridges=ridges, limit=min(space.limit, _UNIT_VECTORS, max(1, some.n // 2)))
    space = in_kernel_units(space, grids[0].kernels[0], some)
    least = [min(_least_errors(some, grid.some(_UNIT_PLACES).kernels, space)) for grid in grids]
    return grids[least.index(min(least))]


def search(
    samples: Samples, grid: KernelGrid, space: SearchSpace, step: Callable[[int], None] = lambda _: None
) -> SearchResult:
    """Follow the path of every kernel and ridge, and take the smallest model that is as good as the best.

    Parameters
    ----------
    samples : Samples
        With targets.
    grid : KernelGrid
    space : SearchSpace
    step : function
        Called with the number of paths so far, those that were extended counted again.

    Notes
    -----
    Per kernel and ridge ``n L^2`` flops in BLAS-3; memory ``n L`` numbers per kernel.
    """
    folds = samples.deal(_NESTED_FOLDS, space.how.seed) if samples.n <= MAX_LOO_ROWS else None
    scheme = LooScheme.of(samples, folds)
    with threads_for(samples.n * space.limit**2):
        by_kernel = search_length_scales(samples, grid, space, scheme, step)
        grid, paths = grid.some(sorted(by_kernel)), [by_kernel[k] for k in sorted(by_kernel)]
        paths = extend(paths, samples, space, scheme, step)
    error, std_error = as_table(paths)
    chosen = choose_model(paths, error, std_error, space)
    axes: dict[str, tuple[float, ...]] = {
        "length_scale": grid.widths,
        "alpha": space.ridges,
        "n_vectors": tuple(range(int(error.shape[2]))),
    }
    nested = []
    for fold in range(0 if folds is None else _NESTED_FOLDS):
        inside = folds == fold
        rest = errors_without_fold(paths, fold, samples.weights, inside)
        nested.append(NestedFold(inside, *_setting(paths, space, choose_model(paths, rest, std_error, space))))
    return SearchResult(*_setting(paths, space, chosen), Path(axes, error, std_error, chosen), tuple(nested))


def _setting(paths: list[KernelPath], space: SearchSpace, chosen: tuple[int, int, int]) -> tuple[Selection, float, int]:
    k, r, L = chosen
    return paths[k].selection, space.ridges[r], L
