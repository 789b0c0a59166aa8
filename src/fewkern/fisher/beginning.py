"""The columns that an elimination begins with, in every fold and on all samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewkern.backend.namespace import Array, take_rows
from fewkern.core.samples import Samples
from fewkern.fisher.choice import Candidates
from fewkern.fisher.deciding import Labelled
from fewkern.fisher.families import LARGEST, LARGEST_SEVERAL, Family
from fewkern.fisher.forward_folds import THOROUGH, Folded, forward_folds
from fewkern.fisher.problem import Begun
from fewkern.fisher.sizes import Sizes
from fewkern.fisher.targets import fisher_targets

__all__ = ["Beginning"]

# The sizes of machines of several classes are compared on at most so many samples.
_SEVERAL_ROWS = 2500
# Columns that lower the error of forward selection by less than this share are not needed to begin with.
_SURPLUS = 0.02
# On all samples of several classes, so many times the columns that are wanted are enough to begin with.
_SPARE = 3


@dataclass(frozen=True)
class Beginning:
    """The columns that every fold begins with, more than it needs."""

    folded: Folded
    candidates: Candidates
    scale: float
    """Mean of ``k(x, x)``."""
    folds: Labelled
    order: Array
    """``(F, k)``; of two classes with one fold more, of all samples."""
    forward: Array
    """Columns that forward selection takes on all samples, in their order."""

    @classmethod
    def of(cls, folded: Folded, candidates: Candidates, scale: float, rng: Any) -> Beginning:
        """By forward selection: for two classes as many as are enough, for several all that it takes."""
        K = take_rows(candidates.K, folded.rows)
        two = folded.samples.n_classes == 2
        # several classes need more columns than least squares says: every class has a score of its own
        limit = LARGEST if two else LARGEST_SEVERAL
        every = folded.with_all()
        path = forward_folds(K, every, limit, candidates.usable(every), THOROUGH if two else None)
        order, forward = path.order, path.order[-1, :]
        if two:
            order = order[:, : path.enough((1 + _SURPLUS) * path.least)]
            return cls(every, candidates, scale, Labelled(K, every.samples.codes, every.train), order, forward)
        some = folded.some(_SEVERAL_ROWS, rng)
        K = take_rows(candidates.K, some.rows)
        return cls(some, candidates, scale, Labelled(K, some.samples.codes, some.train), order[:-1, :], forward)

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.order.shape[1])

    def on_all(self, sizes: Sizes, size: int) -> Array:
        """The columns of forward selection to begin with on all samples, for a machine of this size."""
        if self.folded.samples.n_classes == 2:
            return sizes.columns[size][-1, :]
        return self.forward[: min(self.size, _SPARE * size)]

    def begun(self, samples: Samples, family: Family, columns: Array) -> Begun:
        """Columns to begin with on all samples by the rule of the family, where forward selection says ``columns``."""
        targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
        settings = family.settings(self.scale, targets.stretch)
        begun = Begun(columns, self.forward)
        return family.reach(self.candidates.K, targets.rows(samples.codes), samples.weights, settings, begun)
