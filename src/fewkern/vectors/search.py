"""Width, ridge and number of vectors by leave-one-out (FVS-LR without a number to choose; methods F9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fewkern.backend.namespace import Array, device, namespace
from fewkern.backend.storable import floats, storable
from fewkern.core.gram import Gram
from fewkern.vectors.leave_one_out import Choice, Path, choose, loo_path
from fewkern.vectors.selection import Selection

__all__ = ["Search", "Trace", "search"]

# The path is worth going on with when its minimum lies in the last part of it.
_NEAR_END = 0.9


@storable(error=floats("w", "r", "n", finite=False), spread=floats("w", "r", "n", finite=False))
@dataclass(frozen=True)
class Trace:
    """Leave-one-out error along every path that was looked at.

    ``error[k, r, L]`` is the mean squared leave-one-out error with kernel ``k``, ridge ``r`` and ``L`` vectors,
    ``spread`` its standard error; infinite where a path was not followed. ``chosen`` is the position
    ``(k, r, L)`` that was taken.
    """

    widths: tuple[float, ...]
    """Width of every kernel of the grid; empty where the kernel has no single width."""
    ridges: tuple[float, ...]
    error: Array
    spread: Array
    chosen: tuple[int, int, int]

    @property
    def open_end(self) -> bool:
        """Whether the error was still falling where the budget of vectors ended: a larger one may pay."""
        _, _, longest = self.error.shape
        curve = self.curve
        xp = namespace(curve)
        best = int(xp.argmin(curve))
        return longest > 2 and best >= _NEAR_END * (longest - 1) and self.chosen[2] >= _NEAR_END * best

    @property
    def curve(self) -> Array:
        """Error against the number of vectors at the chosen kernel and ridge, from no vector on."""
        return self.error[self.chosen[0], self.chosen[1], :]


@dataclass(frozen=True)
class Search:
    """What the search found: which kernel, its selection, the ridge, the number of vectors."""

    kernel: int
    selection: Selection
    ridge: float
    n_vectors: int
    trace: Trace


def search(
    grams: list[Gram],
    Y: Array,
    *,
    ridges: tuple[float, ...],
    select: Callable[[Gram, int, Selection | None], Selection],
    limit: int,
    ceiling: int,
    tolerance: float | None,
    weights: Array | None = None,
    widths: tuple[float, ...] = (),
    step: Callable[[int], None] | None = None,
) -> Search:
    """Follow the path of every kernel and ridge, and take the smallest model that is as good as the best.

    Parameters
    ----------
    grams : list of Gram
        One per kernel of the grid.
    Y : array of shape (n, q)
    ridges : tuple of float
    select : callable
        ``select(gram, limit, start)`` chooses up to ``limit`` vectors, going on from ``start``.
    limit, ceiling : int
        Length of every path at first, and at most: while the best model lies at the end of its path, the paths that
        compete with it are continued to twice the length, as long as that lowers the error by half a standard error.
    tolerance : float or None
        Standard errors that a smaller model may lose; ``None`` takes the whole of the path with the best end.
    weights : array of shape (n,) or None
    widths : tuple of float
        Kept in the trace.
    step : callable or None
        Called with the number of kernels done.

    Notes
    -----
    Per kernel and ridge ``n L^2`` flops in BLAS-3; memory ``n L`` numbers per kernel.
    """
    selections: list[Selection] = []
    paths: list[list[Path]] = []
    for i, gram in enumerate(grams):
        selections.append(select(gram, limit, None))
        paths.append([loo_path(selections[i].G, Y, ridge, weights) for ridge in ridges])
        if step is not None:
            step(i + 1)
    flat = _choose(paths, 0.0)
    while tolerance is not None and limit < ceiling and flat.n_vectors >= _NEAR_END * limit:
        limit = min(2 * limit, ceiling)
        spread = _half_spread(paths, flat)
        for i, gram in enumerate(grams):
            rivals = min(float(namespace(Y).min(p.error)) for p in paths[i]) <= flat.minimum + 2 * spread
            if rivals and selections[i].stop == "limit":
                selections[i] = select(gram, limit, selections[i])
                paths[i] = [loo_path(selections[i].G, Y, ridge, weights) for ridge in ridges]
        before, flat = flat, _choose(paths, 0.0)
        if before.minimum - flat.minimum < spread:
            break
    if tolerance is None:
        k, r = min(
            ((k, r) for k in range(len(grams)) for r in range(len(ridges))),
            key=lambda at: float(paths[at[0]][at[1]].error[-1]),
        )
        L = int(selections[k].indices.shape[0])
    else:
        choice = _choose(paths, tolerance)
        k, r = divmod(choice.path, len(ridges))
        L = choice.n_vectors
    return Search(k, selections[k], ridges[r], L, _trace(paths, widths, ridges, (k, r, L)))


def _choose(paths: list[list[Path]], tolerance: float) -> Choice:
    return choose([path for family in paths for path in family], tolerance)


def _half_spread(paths: list[list[Path]], best: Choice) -> float:
    family, r = divmod(best.path, len(paths[0]))
    return 0.5 * float(paths[family][r].spread[best.n_vectors])


def _trace(
    paths: list[list[Path]], widths: tuple[float, ...], ridges: tuple[float, ...], chosen: tuple[int, int, int]
) -> Trace:
    first = paths[0][0].error
    xp = namespace(first)
    longest = max(int(p.error.shape[0]) for family in paths for p in family)
    shape = (len(paths), len(ridges), longest)
    error = xp.full(shape, xp.inf, dtype=first.dtype, device=device(first))
    spread = xp.full(shape, xp.inf, dtype=first.dtype, device=device(first))
    for k, family in enumerate(paths):
        for r, path in enumerate(family):
            error[k, r, : path.error.shape[0]] = path.error
            spread[k, r, : path.error.shape[0]] = path.spread
    return Trace(widths, ridges, error, spread, chosen)
