"""What a search moves, the rows that it looks at, and the features of these rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import inverse_psd
from fewkern.arrays.namespace import Array, asarray_like, namespace, on_host, take_rows, to_numpy
from fewkern.core.gaussians import GaussianBasis, Preparation
from fewkern.learn.levels import Scores
from fewkern.learn.policy import Policy
from fewkern.learn.preparation import Cells, Warp

Host = np.ndarray[Any, Any]
# 512 kiB of float64: the dozen matrices of a block stay in the cache of a core, and their memory is used again. Larger
# ones come in fresh pages, which cost five times as much as the arithmetic.
_BLOCK_ELEMENTS = 1 << 16


@dataclass(frozen=True)
class Geometry:
    """The parameters of a search: vectors, metric, widths of the vectors, ridge, and the warp of the columns.

    They are few, and always on the host.
    """

    vectors: Host
    """Shape ``(m, d)``, in prepared columns, before the warp."""
    log_scales: Host
    """Logarithms of the inverse widths of the columns, shape ``(d,)``."""
    log_widths: Host
    """Logarithms of the vectors' own inverse widths, shape ``(m,)``."""
    directions: Host
    """Shape ``(d, r)``."""
    log_ridge: float
    """Logarithm of the ridge per unit of weight."""
    warp: Warp | None = None

    @property
    def size(self) -> int:
        """Number of vectors."""
        return len(self.vectors)

    @cached_property
    def warped_vectors(self) -> Host:
        """The vectors as the Gaussians see them."""
        return self.vectors if self.warp is None else self.warp.at(self.vectors, self.cells)

    @cached_property
    def cells(self) -> Cells:
        """Where the vectors are in the tables of the warp."""
        assert self.warp is not None
        return self.warp.cells(self.vectors)

    def columns(self, T: Array) -> Array:
        """Gaussians of prepared and warped rows around the vectors."""
        own = Gaussians.of(self, T)
        return own.at(own.in_metric(T))

    def basis(self, preparation: Preparation, axes: Host, indices: Host | None = None) -> GaussianBasis:
        """The vectors as a basis, with a preparation that includes the warp."""
        scales, widths = np.exp(self.log_scales), np.exp(self.log_widths)
        return GaussianBasis(preparation, self.warped_vectors, scales, self.directions, widths, axes, indices)


@dataclass(frozen=True)
class Gaussians:
    """The Gaussians of a geometry, with their numbers where the rows are."""

    vectors: Array
    """Warped, shape ``(m, d)``."""
    scales: Array
    directions: Array
    squares: Array
    """Squares of the vectors' own inverse widths, shape ``(m,)``."""

    @classmethod
    def of(cls, geometry: Geometry, like: Array) -> Gaussians:
        """Their numbers in the library, on the device and in the precision of ``like``."""
        numbers = (
            geometry.warped_vectors,
            np.exp(geometry.log_scales),
            geometry.directions,
            np.exp(2.0 * geometry.log_widths),
        )
        return cls(*(asarray_like(one, like, dtype=like.dtype) for one in numbers))

    def in_metric(self, T: Array) -> Array:
        """Warped rows in the metric, their squared norms, and ones: shape ``(n, d + r + 2)``."""
        xp = namespace(T)
        A = xp.concat([T * self.scales, T @ self.directions], axis=1)
        return xp.concat([A, xp.sum(A * A, axis=1)[:, None], xp.ones_like(A[:, :1])], axis=1)

    @cached_property
    def exponents(self) -> Array:
        """What maps rows in the metric to the exponents: ``-s^2 |a - b|^2 / 2 = s^2 (a'b - |a|^2 / 2 - |b|^2 / 2)``."""
        xp, B = namespace(self.vectors), self.in_metric(self.vectors)
        norms, ones = B[:, -2:-1], B[:, -1:]
        return (xp.concat([B[:, :-2], -0.5 * ones, -0.5 * norms], axis=1) * self.squares[:, None]).T

    def at(self, A: Array) -> Array:
        """Values ``(n, m)`` at rows in the metric."""
        K = A @ self.exponents
        if isinstance(K, np.ndarray):  # in place: fresh pages of memory would take longer than the exponentials
            return np.exp(np.minimum(K, 0.0, out=K), out=K)
        xp = namespace(K)
        return xp.exp(xp.minimum(K, xp.zeros_like(K)))


class Workspace:
    """Memory for matrices of ``n`` rows, by name: half of a gradient's time would go into fresh pages of memory."""

    def __init__(self, n: int) -> None:
        self._n, self._held = n, dict[str, Host]()

    def __call__(self, name: str, columns: int, like: Array) -> Host | None:
        """A matrix of this name with arbitrary entries; None unless ``like`` is a NumPy array."""
        if not isinstance(like, np.ndarray):
            return None
        size = self._n * columns
        held = self._held.get(name)
        if held is None or len(held) < size:
            held = self._held[name] = np.empty(size)
        return held[:size].reshape(self._n, columns)


@dataclass(frozen=True)
class Rows:
    """Prepared rows with targets and positive weights, in any array library; groups where rows belong together."""

    T: Array
    Y: Array
    weights: Array
    axes: Host
    """The linear features are ``T @ axes``, shape ``(d, p)``."""
    groups: Host | None = None
    places: Array | None = None
    """Places of levels and gaps, shape ``(n, d)``; None where there are none."""
    scores: Scores | None = None
    """What positions of levels are means of, where there are categories; on the host."""
    views: tuple[Rows, ...] = ()
    """The rows as each fold sees them, where folds differ in this."""
    beyond: Rows | None = None
    """Further rows, on a device, that move vectors and give coefficients; nothing else looks at them."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.T.shape[0])

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(namespace(self.weights).sum(self.weights))

    @cached_property
    def root(self) -> Array:
        """Roots of the weights, shape ``(n, 1)``."""
        return namespace(self.weights).sqrt(self.weights)[:, None]

    def mean(self, A: Array) -> Array:
        """Weighted mean of the rows of ``A``."""
        return self.weights @ A / self.total

    def centred(self, A: Array) -> Array:
        """``A`` less its mean, times the roots of the weights."""
        A = A - self.mean(A)
        A *= self.root
        return A

    @cached_property
    def weighted_targets(self) -> Array:
        """Centred targets times the roots of the weights."""
        return self.centred(self.Y)

    @cached_property
    def workspace(self) -> Workspace:
        """Memory for matrices with these rows."""
        return Workspace(self.n)

    def take(self, part: Any) -> Rows:
        """The rows at the positions ``part``: a slice, or whole numbers on the host."""

        def taken(array: Array) -> Array:
            return array[part, ...] if isinstance(part, slice) else take_rows(array, asarray_like(part, array))

        places, groups, scores = self.places, self.groups, self.scores
        return Rows(
            taken(self.T),
            taken(self.Y),
            taken(self.weights),
            self.axes,
            None if groups is None else groups[part],
            None if places is None else taken(places),
            None if scores is None else scores.take(part),
        )

    def first(self, count: int) -> Rows:
        """The first rows, which are a random sample: the learner's order looks random."""
        return self if count >= self.n else self.take(slice(0, count))

    @cached_property
    def every(self) -> Rows:
        """These rows and those beyond, where the latter are."""
        more = self.beyond
        if more is None:
            return self
        xp = namespace(more.T)

        def joined(here: Array, there: Array) -> Array:
            return xp.concat([asarray_like(here, there, dtype=there.dtype), there], axis=0)

        T, Y, weights = (joined(getattr(self, name), getattr(more, name)) for name in ("T", "Y", "weights"))
        places = None if self.places is None or more.places is None else joined(self.places, more.places)
        return Rows(T, Y, weights, self.axes, places=places)

    def with_targets(self, Y: Array) -> Rows:
        """The same rows with other targets."""
        return replace(self, Y=Y)

    def of_fold(self, k: int) -> Rows:
        """The rows as the fold ``k`` sees them."""
        return self.views[k] if self.views else self

    def warped(self, warp: Warp | None) -> Array:
        """The prepared rows as the Gaussians see them."""
        return self.T if warp is None else warp.like(self.T).at(self.T, self.cells(warp))

    def as_vectors(self, warp: Warp | None) -> Array:
        """Vectors that the Gaussians see where the rows are."""
        return self.T if warp is None else warp.like(self.T).as_vectors(self.T, self.cells(warp))

    def cells(self, warp: Warp) -> Cells:
        """Where the rows are in the tables of a warp; warps of one search with equally many knots share this."""
        found = self._cells.get(len(warp.knots))
        if found is None:
            found = self._cells[len(warp.knots)] = warp.like(self.T).cells(self.T, self.places)
        return found

    @cached_property
    def _cells(self) -> dict[int, Cells]:
        return {}

    def blocks(self, columns: int) -> Iterator[slice]:
        """Blocks of rows for matrices of so many columns."""
        return row_blocks(self.n, columns, _BLOCK_ELEMENTS if on_host(self.T) else None, self.T)

    @cached_property
    def linear(self) -> Array:
        """The axes of the linear features, where the rows are."""
        return asarray_like(self.axes, self.T, dtype=self.T.dtype)


def divided(rows: Rows, warp: Warp | None, fitted: Any, held: Any) -> tuple[tuple[Rows, Rows], Warp | None]:
    """Two parts of the rows, and a warp in which the levels of categories begin where the first part has them.

    Positions of levels are means of targets: those of rows held out must not be among them.
    """
    parts = rows.take(fitted), rows.take(held)
    if rows.scores is None or warp is None:
        return parts, warp
    assert parts[0].scores is not None
    positions = parts[0].scores.positions(parts[0].weights)
    own = [replace(part, T=part.scores.put(part.T, positions)) for part in parts if part.scores is not None]
    starts = np.concatenate([positions, warp.starts[len(positions) :]])
    return (own[0], own[1]), replace(warp, starts=starts)


@dataclass(frozen=True)
class Sums:
    """Weighted sums over rows of products of features and targets, less their means."""

    gram: Host
    """``F'F`` of the centred features, each row times the root of its weight, shape ``(p, p)``."""
    cross: Host
    """``F'Y``, shape ``(p, q)``."""
    mean: Host
    """Weighted means of the features, shape ``(p,)``."""

    @classmethod
    def of(cls, rows: Rows, geometry: Geometry) -> Sums:
        """The sums, in blocks of rows: no matrix of all rows and features is made."""
        blocks, near = _weighted_blocks(rows, geometry)
        added = reduce(
            lambda a, b: tuple(x + y for x, y in zip(a, b)), ((Z.T @ Z, Z.T @ Y, Z.T @ r) for Z, Y, r in blocks)
        )
        gram, cross, sums = (to_numpy(one) for one in added)
        rest = sums[:, 0] / rows.total
        gram = gram - rows.total * np.outer(rest, rest)
        return cls(gram, cross, rest + near)  # the targets are centred: so are the products with them

    def solve(self, ridge: float) -> tuple[Host, Host]:
        """Coefficients of ridge regression, and the inverse of the shifted Gram matrix."""
        shifted = self.gram.copy()
        shifted[np.diag_indices_from(shifted)] += ridge
        inverse = inverse_psd(shifted)
        return inverse @ self.cross, inverse


def _weighted_blocks(rows: Rows, geometry: Geometry) -> tuple[Iterator[tuple[Array, Array, Array]], Host]:
    """Blocks of features less a vector near their mean, of centred targets, and of ones; and that vector.

    It is the mean of the first block: without it constant features would leave rounding errors. All are multiplied by
    the roots of the weights.
    """
    units, T = Gaussians.of(geometry, rows.T), rows.warped(geometry.warp)
    parts = list(rows.blocks(geometry.size + rows.axes.shape[1]))
    near = namespace(T).mean(_features(rows, units, T[parts[0], :]), axis=0)

    def weighted(part: slice) -> tuple[Array, Array, Array]:
        root = rows.root[part, :]
        return (_features(rows, units, T[part, :]) - near) * root, rows.weighted_targets[part, :], root

    return map(weighted, parts), to_numpy(near)


def _features(rows: Rows, units: Gaussians, T: Array) -> Array:
    return namespace(T).concat([units.at(units.in_metric(T)), T @ rows.linear], axis=1)


def features(rows: Rows, geometry: Geometry) -> Array:
    """Gaussians and linear features ``(n, m + p)``."""
    return _features(rows, Gaussians.of(geometry, rows.T), rows.warped(geometry.warp))


def values(rows: Rows, geometry: Geometry, W: Host, offset: Host) -> Array:
    """Values of a function with given coefficients at some rows."""
    units, T = Gaussians.of(geometry, rows.T), rows.warped(geometry.warp)
    W, offset = (asarray_like(one, T, dtype=T.dtype) for one in (W, offset))
    blocks = rows.blocks(geometry.size + len(rows.axes.T))
    return namespace(T).concat([_features(rows, units, T[part, :]) @ W + offset for part in blocks], axis=0)


def coefficients(rows: Rows, geometry: Geometry, policy: Policy) -> tuple[Host, Host]:
    """Coefficients ``(m + p, q)`` of Gaussians and linear features, and the constants ``(q,)``."""
    sums = Sums.of(rows, geometry)
    W, _ = sums.solve(ridge_of(geometry, rows, policy))
    return W, to_numpy(rows.mean(rows.Y)) - sums.mean @ W


def ridge_of(geometry: Geometry, rows: Rows, policy: Policy) -> float:
    """The ridge of a sum over all rows; it stays above the least one per unit of weight, smoothly."""
    return (policy.model.least_ridge + math.exp(geometry.log_ridge)) * rows.total
