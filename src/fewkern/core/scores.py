"""From the values of an expansion to classes and probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fewkern.arrays.linalg import logsumexp
from fewkern.arrays.namespace import Array, move_fields, namespace
from fewkern.arrays.storable import floats, storable


def softmax(values: Array) -> Array:
    """Rows proportional to ``exp(values)``, summing to one."""
    xp = namespace(values)
    return xp.exp(values - logsumexp(values, axis=1)[:, None])


def class_values(scores: Array) -> Array:
    """One column per class: a single score ``s`` (positive: the second class) becomes ``(-s, s) / 2``."""
    if scores.shape[1] > 1:
        return scores
    return namespace(scores).concat([-scores, scores], axis=1) / 2


@storable(weights=floats("q", "s"), offset=floats("s"))
@dataclass(frozen=True)
class ClassScores:
    """Class scores as an affine map of an expansion's values, and their way to classes and probabilities.

    There is one score for two classes (positive: the second), or one per class. The largest score decides. Every
    classifier predicts through this value, and an exporter writes it down in another language.

    Parameters
    ----------
    weights : array of shape (q, s) or None
        From ``q`` values to ``s`` scores; None where the values are the scores.
    offset : array of shape (s,) or None
        Added to the scores.
    factor : float
        Probabilities are the softmax of ``factor`` times the scores. Ignored if ``shares`` is given.
    shares : (float, float) or None
        If given, probabilities are the positive parts of the scores over their sum. One score ``s`` for two classes
        then stands for ``(t - s, t + s) / 2`` with ``t = shares[0] * s + shares[1]``.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.scores import ClassScores
    >>> link = ClassScores(factor=2.0)
    >>> values = np.array([[0.3], [-0.1]])
    >>> link.codes(values), link.probabilities(values).round(3)
    (array([1, 0]), array([[0.354, 0.646],
           [0.55 , 0.45 ]]))
    """

    weights: Array | None = None
    offset: Array | None = None
    factor: float = 1.0
    shares: tuple[float, float] | None = None

    def scores(self, values: Array) -> Array:
        """Scores ``(n, 1)`` for two classes, ``(n, n_classes)`` otherwise, where ``values`` are."""
        own = move_fields(self, values)
        if own.weights is not None:
            values = values @ own.weights
        return values if own.offset is None else values + own.offset

    def of(self, function: Any) -> Any:
        """The scores themselves as one function: those of the values of an expansion."""
        if self.weights is not None:
            return function.then(self.weights, self.offset)
        return function if self.offset is None else replace(function, offset=function.offset + self.offset)

    def with_priors(self, ratio: Array) -> ClassScores:
        """Scores for priors that are ``ratio`` times as large: probabilities are proportional to ``ratio`` times these.

        Only for probabilities that are a softmax.
        """
        shift = namespace(ratio).log(ratio) / self.factor
        if shift.shape[0] == 2:
            shift = shift[1:] - shift[:1]
        return replace(self, offset=shift if self.offset is None else self.offset + shift)

    def codes(self, values: Array) -> Array:
        """Number of the class of every row."""
        columns = class_values(self.scores(values))
        return namespace(columns).argmax(columns, axis=1)

    def probabilities(self, values: Array) -> Array:
        """Probability of every class, shape ``(n, n_classes)``; the largest belongs to the largest score."""
        scores = self.scores(values)
        if self.shares is None:
            return softmax(self.factor * class_values(scores))
        xp = namespace(scores)
        if scores.shape[1] == 1:
            total = self.shares[0] * scores + self.shares[1]
            scores = xp.concat([total - scores, total + scores], axis=1) / 2
        positive = xp.maximum(scores, xp.zeros_like(scores))
        return positive / xp.sum(positive, axis=1, keepdims=True)

    def log_probabilities(self, values: Array) -> Array:
        """Logarithm of the probabilities, finite wherever a softmax is."""
        if self.shares is not None:
            probabilities = self.probabilities(values)
            return namespace(probabilities).log(probabilities)
        columns = self.factor * class_values(self.scores(values))
        return columns - logsumexp(columns, axis=1)[:, None]
