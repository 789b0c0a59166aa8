r"""kFDA_OLS without every fold, all folds at once: what machines of every size say of samples they have not seen.

A sample that is held out has weight zero in its fold. All folds then share the columns ``K``, and a step of all of them
is one matrix product. The orthogonalized regressors are carried along for the held-out samples too, so the machines
themselves are never formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from fewkern.backend.finite import largest_power
from fewkern.backend.folds import Fold
from fewkern.backend.namespace import Array, asarray_like, device, eps, namespace, put, to_numpy
from fewkern.core.samples import Samples
from fewkern.fisher.forward import DEPENDENT
from fewkern.fisher.targets import fisher_targets

__all__ = ["QUICK", "THOROUGH", "Folded", "FoldedPath", "Patience", "forward_folds"]

# What is little: a share of the least error.
_LITTLE = 0.02
# Room for so many regressors at first, and for twice as many whenever it is full.
_ROOM = 16


class Patience(NamedTuple):
    """A path is left once its last sizes, so many or one in so many of all, have brought little."""

    sizes: int
    one_in: int


# To compare widths, and to find columns to begin with.
QUICK, THOROUGH = Patience(2, 5), Patience(5, 2)


@dataclass(frozen=True)
class Folded:
    """Samples with classes, and folds as weights of the samples: ``F`` folds, ``n`` samples, ``p`` targets."""

    samples: Samples
    """Those that are in some fold."""
    rows: Array
    """Their positions among all samples."""
    train: Array
    """``(F, n)``; zero where a sample is held out."""
    test: Array
    """``(F, n)``; zero where a sample is not held out."""
    targets: Array
    """``(F, n, p)``, in units in which their points are orthonormal: every fold has those of its own classes."""

    @classmethod
    def of(cls, samples: Samples, folds: Sequence[Fold]) -> Folded:
        """The folds of the samples."""
        xp, like = namespace(samples.weights), samples.weights
        train: list[Array] = []
        test: list[Array] = []
        targets: list[Array] = []
        for fold in folds:
            for part, masks in zip(fold, (train, test)):
                inside = to_numpy(xp.zeros_like(like)).copy()
                inside[list(part)] = 1.0
                masks.append(asarray_like(inside, like, dtype=like.dtype) * like)
            found = fisher_targets(samples.codes, samples.n_classes, train[-1])
            targets.append(found.rows(samples.codes) / found.scale)
        rows = xp.arange(samples.n, dtype=samples.rows.dtype, device=device(like))
        every = cls(samples, rows, xp.stack(train), xp.stack(test), xp.stack(targets))
        used = xp.any((every.train > 0) | (every.test > 0), axis=0)
        return every if bool(xp.all(used)) else every._take(xp.nonzero(used)[0])

    def with_all(self) -> Folded:
        """One more fold, the last: it trains on all of these samples and holds none out."""
        xp, samples = namespace(self.train), self.samples
        found = fisher_targets(samples.codes, samples.n_classes, samples.weights)
        targets = found.rows(samples.codes) / found.scale
        more = samples.weights, xp.zeros_like(samples.weights), targets
        joined = (xp.concat([old, new[None, ...]]) for old, new in zip((self.train, self.test, self.targets), more))
        return Folded(samples, self.rows, *joined)

    def some(self, limit: int, rng: Any) -> Folded:
        """About ``limit`` of the samples, the same share of every class; all if few."""
        part = self.samples.some(limit, rng)
        return self if part is self.samples else self._take(self.find(part))

    def find(self, part: Samples) -> Array:
        """Positions of samples that are some of these."""
        return namespace(part.rows).searchsorted(self.samples.rows, part.rows)

    def _take(self, part: Array) -> Folded:
        xp = namespace(part)
        cut = [xp.take(masks, part, axis=1) for masks in (self.train, self.test, self.targets)]
        return Folded(self.samples.take(part), xp.take(self.rows, part), *cut)

    def held_out(self, losses: Array) -> Array:
        """Share of every sample in the mean held-out loss, ``(n,)``, from its losses ``(F, n)`` in all folds."""
        return namespace(losses).sum(losses * self.shares, axis=0)

    @property
    def half(self) -> int:
        """Half of the training samples of the smallest fold, but not none."""
        counts = (to_numpy(self.train) > 0).sum(axis=1)
        return max(1, int(counts.min()) // 2)

    @cached_property
    def shares(self) -> Array:
        """Shares of all held-out samples in their mean, ``(F, n)``, in double precision."""
        xp = namespace(self.test)
        test = xp.astype(self.test, xp.float64, copy=False)
        return test / xp.sum(test)


@dataclass(frozen=True)
class FoldedPath:
    """The columns that every fold takes, and the held-out errors of its machines."""

    order: Array
    """``(F, L)``: columns in the order of their choice."""
    errors: tuple[float, ...]
    """Mean squared held-out error of machines of 1, 2, ..., L columns."""

    @property
    def least(self) -> float:
        """The smallest of the errors; infinite if no column could be taken."""
        return min(self.errors, default=math.inf)

    def enough(self, error: float) -> int:
        """The first size with this error or less; 0 if there is none."""
        return next((k + 1 for k, reached in enumerate(self.errors) if reached <= error), 0)


def forward_folds(
    K: Array, folded: Folded, limit: int, usable: Array | None = None, patience: Patience | None = QUICK
) -> FoldedPath:
    """Take columns of ``K`` (n, m) in every fold, by the rule of :func:`~fewkern.fisher.forward.forward_columns`.

    Parameters
    ----------
    K : array of shape (n, m)
    folded : Folded
    limit : int
        Largest number of columns; half of the training samples of the smallest fold is a limit, too. As many columns
        as samples explain everything, and in which order the last of them come is decided by rounding.
    usable : boolean array of shape (F, m) or None
        Columns that a fold may take.
    patience : Patience or None
        None goes on to the limit.

    Notes
    -----
    ``F n m`` flops per size, in one matrix product.
    """
    xp = namespace(K)
    # in units of a power of two near the largest entry: exact, and no square overflows
    unit = largest_power(K)
    K = K if unit == 1 else K / unit
    state = _Orthogonal(K, folded, min(limit, int(K.shape[1]), folded.half), usable)
    order: list[Array] = []
    errors: list[float] = []
    share = folded.shares[:, :, None]
    while len(order) < state.limit and not (patience and _settled(errors, patience)):
        found = state.find()
        if found is None:
            break
        state.remove(found)
        order.append(found)
        errors.append(float(xp.sum(share * state.residual**2)))
    if not order:
        return FoldedPath(xp.zeros((int(folded.train.shape[0]), 0), dtype=xp.int64, device=device(K)), ())
    return FoldedPath(xp.stack(order, axis=1), tuple(errors))


def _settled(errors: list[float], patience: Patience) -> bool:
    """Whether the last sizes brought too little to go on."""
    last = max(patience.sizes, len(errors) // patience.one_in)
    return len(errors) > last and min(errors[:-last]) - min(errors) < _LITTLE * min(errors)


class _Orthogonal:
    """Columns and targets of every fold with the regressors taken so far projected out; inner products are weighted."""

    def __init__(self, K: Array, folded: Folded, limit: int, usable: Array | None) -> None:
        xp, w = namespace(K), folded.train
        F, n = w.shape
        self.K, self.w, self.limit = K, w, limit
        # the regressors, and the same times the weights
        self.basis = xp.empty((F, _ROOM, n), dtype=K.dtype, device=device(K))
        self.inside = xp.empty_like(self.basis)
        self.size = 0
        self.residual = folded.targets
        self.norms = w @ (K * K)
        # columns with a square below it are not taken
        self.floor = max(DEPENDENT, 10 * eps(K)) * self.norms
        if usable is not None:
            self.floor = xp.where(usable, self.floor, xp.inf)
        self.folds, self.never = xp.arange(F, device=device(K)), xp.full_like(w[:, 0], xp.inf)
        self.several = int(folded.targets.shape[2]) > 1
        self.correlations = xp.matmul(xp.matrix_transpose(w[:, :, None] * self.residual), K)
        self._project(xp.ones_like(w))

    def find(self) -> Array | None:
        """The column of largest error reduction ratio in every fold, ``(F,)``; None if a fold has none left."""
        xp = namespace(self.K)
        squares = xp.sum(self.correlations**2, axis=1) if self.several else self.correlations[:, 0, :] ** 2
        ratios = squares / xp.where(self.norms > self.floor, self.norms, xp.inf)
        return xp.argmax(ratios, axis=1) if float(xp.min(xp.max(ratios, axis=1))) > 0 else None

    def remove(self, found: Array) -> None:
        """Project the columns ``found``, one per fold, out."""
        xp = namespace(self.K)
        p = xp.take(self.K, found, axis=1).T[:, None, :]
        Q, inside = self.basis[:, : self.size, :], xp.matrix_transpose(self.inside[:, : self.size, :])
        for _ in range(2):
            p = p - xp.matmul(xp.matmul(p, inside), Q)
        put(self.floor, (self.folds, found), self.never)
        self._project(p[:, 0, :])

    def _project(self, p: Array) -> None:
        """Take the regressors ``p`` (F, n), which become normed on the training samples, out of columns and targets."""
        xp = namespace(self.K)
        inside = self.w * p
        norm = xp.sqrt(xp.vecdot(inside, p))[:, None]
        q, inside = p / norm, inside / norm
        projection = xp.matmul(inside[:, None, :], self.residual)
        pulled = inside @ self.K
        self.residual = self.residual - q[:, :, None] * projection
        self.norms = self.norms - pulled * pulled
        self.correlations = self.correlations - xp.matrix_transpose(projection) * pulled[:, None, :]
        if self.size == int(self.basis.shape[1]):
            self.basis, self.inside = (xp.concat([full, full], axis=1) for full in (self.basis, self.inside))
        self.basis[:, self.size, :], self.inside[:, self.size, :] = q, inside
        self.size += 1
