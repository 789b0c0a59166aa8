"""Names that fisher and margins still use; on their way out."""

from __future__ import annotations

from typing import Any

from fewkern import base
from fewkern.backend.namespace import Array
from fewkern.backend.validation import validate_samples
from fewkern.core.gram import Gram
from fewkern.core.kernels import Kernel, as_kernel
from fewkern.vectors.selection import Selecting, Selection, select_vectors


class KernelEstimator(base.KernelEstimator):
    def _samples(self, X: Any, *, reset: bool, minimum: int = 1) -> Array:
        return validate_samples(self, X, reset=reset, minimum=minimum, pairwise=as_kernel(self.kernel).pairwise)


def build_gram(kernel: Kernel, X: Array, centre: int, rng: Any) -> Gram:  # noqa: ARG001
    return Gram(kernel, X)


def selector(estimator: Any, seed: Any, weights: Array | None = None) -> Any:
    def select(gram: Gram, limit: int) -> Selection:
        return select_vectors(gram, Selecting(estimator.rule, basis_tol=estimator.tol, seed=seed), limit, weights)

    return select
