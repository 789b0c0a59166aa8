"""Comparison of models on the same samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fewkern.arrays.namespace import Array, asarray_like, namespace

__all__ = ["paired_errors"]


def paired_errors(terms: Sequence[Array], w: Array) -> tuple[Array, Array]:
    """Weighted means of several rows of ``terms``, and the standard errors of their differences to the least."""
    xp = namespace(w)
    means = [float(w @ t) for t in terms]
    best = min(range(len(means)), key=means.__getitem__)
    share = float(xp.sum(w * w))  # 1 / N_eff
    spread = []
    for t in terms:
        gap = t - terms[best]
        gap = gap - float(w @ gap)
        spread.append(math.sqrt(float(w @ (gap * gap)) * share))
    return asarray_like(means, w, dtype=w.dtype), asarray_like(spread, w, dtype=w.dtype)
