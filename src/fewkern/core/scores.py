"""From the values of an expansion to classes: what a classifier adds to its sum of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.namespace import Array

__all__ = ["ClassScores"]


@dataclass(frozen=True)
class ClassScores:
    """Class scores as an affine map of an expansion's values, and their way to probabilities.

    There is one score ``s`` for two classes (positive: the second), which stands for ``(-s, s) / 2``, or one per
    class. The class is that of the largest. A classifier hands this to whoever writes it out in another language.
    """

    weights: Array | None = None
    """``(q, s)``: from ``q`` values to ``s`` scores; None where the values are the scores."""
    offset: Array | None = None
    """``(s,)``, added to the scores."""
    factor: float = 1.0
    """Probabilities are the softmax of ``factor`` times the scores,"""
    shares: tuple[float, float] | None = None
    """or, if not None, the positive parts of the scores over their sum. Then one score ``s`` for two classes stands for
    ``(t - s, t + s) / 2`` with ``t = shares[0] * s + shares[1]``."""
