"""Samples that a kernel Fisher model may keep, and the scale of their kernel (methods K2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import distinct_rows
from fewkern.arrays.numerics import squarable
from fewkern.core.kernel import Kernel
from fewkern.core.samples import Samples
from fewkern.select.selection import SelectionRule, choose_basis

__all__ = ["Candidates", "kernel_scale"]

# All distinct samples are candidates up to this number; beyond it, this number of them, chosen by the gain rule of FVS.
# With several classes (8) starts with all candidates alive, and a step costs their number cubed.
MAX_CANDIDATES, MAX_CANDIDATES_MULTICLASS = 1000, 400


@dataclass(frozen=True)
class Candidates:
    """Samples that a model may keep, and their kernel columns."""

    kernel: Kernel
    rows: Array
    """Positions among the samples, ``(m,)``."""
    row_to_candidate: Array | None
    """Candidate that equals each sample, ``(n,)``. None if the candidates were chosen without the labels: every fold
    may then use all of them."""
    K: Array
    """``(n, m)``."""

    @classmethod
    def of(cls, samples: Samples, kernel: Kernel, limit: int | None, seed: int) -> Candidates:
        """Every distinct sample, or ``limit`` vectors that span the samples (None: 1,000, with several classes 400)."""
        # Paper: one column per sample. We: one per distinct sample, because equal columns leave q = 1 undetermined.
        rows, row_to_candidate = distinct_rows(samples.X)
        if limit is None:
            limit = MAX_CANDIDATES if samples.n_classes == 2 else MAX_CANDIDATES_MULTICLASS
        if len(rows) > limit:
            rows = np.sort(choose_basis(samples, kernel, SelectionRule(seed=seed), limit).indices)
            row_to_candidate = None
        return cls(kernel, rows, row_to_candidate, kernel(samples.X, kernel.pick(samples.X, rows)))

    def columns_for(self, rows: Array) -> Array | None:
        """Candidates that a fold with the training samples ``rows`` may use; None: all."""
        return None if self.row_to_candidate is None else np.unique(self.row_to_candidate[rows])


def kernel_scale(samples: Samples, kernel: Kernel) -> float:
    """Mean of ``k(x, x)``."""
    diag = kernel.diag(samples.X)
    scale, largest, limit = float(np.mean(diag)), float(np.max(diag)), squarable(diag)
    if scale <= 0:
        raise ValueError(
            "kernel Fisher: every sample is a zero vector of the kernel (k(x, x) = 0), so there is nothing to keep; "
            "use another kernel."
        )
    if not 1 / limit < largest < limit:
        raise ValueError(
            f"kernel Fisher: the largest k(x, x) is {largest:.3g}, but must lie between {1 / limit:.0e} and "
            f"{limit:.0e}, so that its square is a number; scale the samples, for example with StandardScaler."
        )
    return scale
