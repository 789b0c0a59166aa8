"""Probabilities from scores: one number, fitted to what the model says of samples it has not seen."""

from __future__ import annotations

import math
from dataclasses import replace

from fewkern.arrays.linalg import one_hot
from fewkern.arrays.namespace import Array, namespace
from fewkern.core.scores import ClassScores, class_values, softmax
from fewkern.select.leave_one_out import HeldOut

__all__ = ["calibrate", "fit_temperature", "match_confidence", "match_temperature", "softmax"]

# Range of the factor, over the inverse of the largest value: a single value may be far off, and the rest small.
_FLATTEST, _SHARPEST = 1e-3, 1e12
# A step of the search goes at most so many times as far.
_FURTHEST = 100.0


def calibrate(scores: ClassScores, held_out: HeldOut, *, long_tails: bool = False) -> ClassScores:
    """The same scores, with probabilities that are as sure as the scores of held-out samples are right.

    Only the factor of the softmax changes, and it is positive: classes stay as they are, and so does the order of the
    scores. It comes from :func:`fit_temperature`, or, for scores with long tails, from :func:`match_confidence`.
    """
    values, samples = class_values(scores.scores(held_out.values)), held_out.samples
    fit = match_confidence if long_tails else fit_temperature
    return replace(scores, factor=fit(values, samples.codes, samples.weights))


def fit_temperature(values: Array, codes: Array, weights: Array | None = None) -> float:
    r"""The factor :math:`a \ge 0` that makes ``softmax(a * values)`` most likely.

    Maximises the concave :math:`\sum_i w_i [a \sum_c t_{ic} v_{ic} - \log \sum_c e^{a v_{ic}}]` by
    :func:`match_temperature`. The targets follow Laplace's rule of succession: :math:`t = (n + 1) / (n + 2)` for the
    own class, :math:`n` being the weight of all samples, and the rest for the largest of the others. With 0 and 1 a
    separable set would ask for an infinite factor. One factor for all classes never changes which one is largest, so
    probabilities and predictions agree.
    """
    # Paper: Platt counts every class for itself, (n_c + 1) / (n_c + 2). We: all samples together, because there is one
    # factor for all of them; with many small classes his targets make every probability timid. The doubt goes to the
    # runner-up, because classes that are out of the question say nothing about the factor.
    xp = namespace(values)
    q = int(values.shape[1])
    w = xp.ones_like(values[:, 0]) if weights is None else weights
    doubt = 1.0 / (float(xp.sum(w)) + 2.0)
    own = one_hot(codes, q, values.dtype)
    others = xp.where(own > 0, xp.full_like(values, -xp.inf), values)
    targets = own * (1.0 - doubt) + one_hot(xp.argmax(others, axis=1), q, values.dtype) * doubt
    return match_temperature(values, targets, w)


def match_confidence(values: Array, codes: Array, weights: Array | None = None) -> float:
    r"""The factor :math:`a` at which the largest of ``softmax(a * values)`` is, on average, as high as it is right.

    Being right is counted with Laplace's rule of succession. Unlike the likelihood, this is not ruled by the few
    samples for which the value of the own class is far below another one, such as the logarithm of a density.
    """
    xp = namespace(values)
    w = xp.ones_like(values[:, 0]) if weights is None else weights
    total = float(xp.sum(w))
    right = float(w @ xp.astype(xp.argmax(values, axis=1) == codes, w.dtype))
    wanted = (right + 1.0) / (total + 2.0)
    spread = _spread(values)
    if spread == 0:
        return 1.0
    low, high = math.log(_FLATTEST / spread), math.log(_SHARPEST / spread)
    # the mean of the largest probability rises with the factor
    while high - low > 1e-8:
        middle = (low + high) / 2
        stated = float(w @ xp.max(softmax(math.exp(middle) * values), axis=1)) / total
        low, high = (middle, high) if stated < wanted else (low, middle)
    return math.exp((low + high) / 2)


def _spread(values: Array) -> float:
    """Largest distance of a value from the mean of its row."""
    xp = namespace(values)
    return float(xp.max(xp.abs(values - xp.mean(values, axis=1)[:, None])))


def match_temperature(values: Array, targets: Array, weights: Array | None = None) -> float:
    r"""The factor :math:`a \ge 0` that brings ``softmax(a * values)`` nearest to the probabilities ``targets``.

    In cross-entropy, which is convex in :math:`a`: safeguarded Newton steps find the minimum.
    """
    xp = namespace(values)
    w = xp.ones_like(values[:, 0]) if weights is None else weights
    truth = float(w @ xp.sum(targets * values, axis=1))
    # in units of the values, so that their size does not matter
    spread = _spread(values)
    if spread == 0:
        return 1.0
    unit = 1.0 / spread
    low, high, a = 0.0, _SHARPEST * unit, unit
    for _ in range(200):
        p = softmax(a * values)
        mean = xp.sum(p * values, axis=1)
        slope = truth - float(w @ mean)
        curvature = float(w @ (xp.sum(p * values * values, axis=1) - mean * mean))
        low, high = (a, high) if slope > 0 else (low, a)
        step = slope / curvature if curvature > 0 else 0.0
        new = a + step
        # Newton inside the bracket and not too far, else the (geometric) middle of what is near
        top = min(high, _FURTHEST * a)
        if not low < new < top:
            new = (max(low, _FLATTEST * unit) * top) ** 0.5
        if abs(new - a) <= 1e-8 * a or high - low <= 1e-8 * high:
            return new
        a = new
    return a
