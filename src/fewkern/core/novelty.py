"""How unlike the training samples a new one is: the share of it that their vectors do not explain."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.core.basis import KernelBasis
from fewkern.core.conformal import HeldOutScores
from fewkern.core.preparation import Preparation

__all__ = ["Novelty"]


def _check(novelty: Novelty) -> None:
    columns = int(novelty.basis.vectors.shape[1])
    if novelty.preparation is not None and novelty.preparation.n_columns != columns:
        raise ValueError(f"the preparation of a Novelty has {novelty.preparation.n_columns} columns, not {columns}")


@storable(check=_check)
@dataclass(frozen=True)
class Novelty:
    """Vectors that stand for the training samples, and what they leave unexplained of samples that are none of them.

    Parameters
    ----------
    basis : KernelBasis
        On samples, in the order of their choice; on prepared ones, if there is a preparation.
    scores : HeldOutScores
        Of the training samples, each without the help of itself (or of its group).
    preparation : Preparation or None
        What every sample passes before the kernel sees it.
    """

    basis: KernelBasis
    scores: HeldOutScores
    preparation: Preparation | None = None

    def __call__(self, X: Array) -> Array:
        """Share of ``k(x, x)`` that the vectors do not explain, in [0, 1]."""
        return self.basis.unexplained(X if self.preparation is None else self.preparation(X))

    @property
    def vectors(self) -> Array:
        """The samples that the basis holds, in the units of the columns."""
        return self.basis.vectors if self.preparation is None else self.preparation.inverse(self.basis.vectors)

    @property
    def blind(self) -> str | None:
        """Why the share says nothing, if so."""
        kernel = self.basis.kernel
        name = type(kernel).__name__
        if kernel.pairwise:
            return f"the kernel {name} does not give k(x, x) of new samples"
        rank = kernel.rank(int(self.basis.vectors.shape[1]))
        if rank is not None and self.basis.n_vectors >= rank:
            return f"{rank} vectors explain every sample with the kernel {name}"
        return None
