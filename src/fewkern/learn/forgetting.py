"""Rows that a model has learned from are taken out of its sums again.

The coefficients are then those of a fit without these rows on the same vectors. The vectors, the metric, the ridge and
what was measured on rows held out stay, and were chosen with the help of all rows.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewkern.arrays.namespace import Array, eps, is_sparse, namespace, to_numpy
from fewkern.core.samples import Samples
from fewkern.core.statistics import FeatureSums, Statistics
from fewkern.learn.fitting import keep_batch, same_outputs, sums_before

# Rounding of sums over many rows, over that of one number.
_SUM_ROUNDING_ERRORS = 1e4
# Digits to which rows are compared with vectors that went through a preparation and back.
_DIGITS = 6


def forget_rows(estimator: Any, samples: Samples) -> None:
    """Subtract rows from the sums of a fitted estimator, and assign what it then is."""
    name, sums = type(estimator).__name__, sums_before(estimator)
    assert sums is not None
    same_outputs(estimator, sums, samples)
    known = sums.statistics.count
    if samples.n >= known:
        raise ValueError(
            f"{name}.forget: got {samples.n} rows, but the model has learned from {known}, and one must be left; fit a "
            "new model to what should stay."
        )
    left = sums.statistics - FeatureSums(sums.basis)(samples)
    if not is_possible(left, sums.statistics, eps(samples.weights)):
        raise ValueError(
            f"{name}.forget: no rows could have the sums that would be left, so not all of these rows (with these "
            "targets and weights) are among those that the model has learned from; nothing was changed."
        )
    kept = rows_among(samples.X, estimator.vectors_)
    if estimator.novelty_ is not None:
        kept |= rows_among(samples.X, estimator.novelty_.vectors)
    keep_batch(estimator, sums.with_statistics(left))
    if kept.any():
        warnings.warn(
            f"{name}.forget: {int(kept.sum())} of these rows are among the samples that the model keeps (vectors_, or "
            "those of novelty_), so it still contains them. Fit a new model without them if they must not be in it.",
            UserWarning,
            stacklevel=3,
        )


def is_possible(left: Statistics, before: Statistics, rounding: float) -> bool:
    """Whether some rows of positive weight have the sums ``left``, up to the rounding of those from ``before``."""
    xp = namespace(left.gram)
    slack = _SUM_ROUNDING_ERRORS * rounding
    if float(left.weight) <= slack * float(before.weight):
        return False
    least = float(xp.min(xp.linalg.eigvalsh(left.gram)))
    if least < -slack * float(xp.linalg.trace(before.gram)):
        return False
    # of targets whose mean is far from zero little is left when it is taken out
    spread = left.square - left.cross[0, :] ** 2 / left.weight
    return bool(xp.all(spread >= -slack * before.square))


def rows_among(X: Array, vectors: Array) -> Any:
    """Which rows of ``X`` are equal to one of the ``vectors``, up to six digits of the largest number of a column."""
    if is_sparse(X) or is_sparse(vectors):
        known = set(_sparse_keys(vectors))
        return np.array([key in known for key in _sparse_keys(X)], dtype=bool)
    V = to_numpy(vectors).astype(np.float64)
    unit = np.abs(V).max(axis=0, initial=0.0)
    unit[unit == 0] = 1.0
    known = {row.tobytes() for row in _rounded(V / unit)}
    return np.array([row.tobytes() in known for row in _rounded(to_numpy(X) / unit)], dtype=bool)


def _rounded(A: Any) -> Any:
    return np.round(A, _DIGITS) + 0.0  # no negative zeros


def _sparse_keys(A: Any) -> list[bytes]:
    rows = sp.csr_array(A, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = rows.indptr
    return [
        rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].astype(np.float64).tobytes()
        for a, b in pairwise(ends)
    ]
