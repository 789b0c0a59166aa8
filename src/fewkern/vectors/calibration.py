"""Probabilities from values: one number, fitted to what the model says of samples it has not seen."""

from __future__ import annotations

from fewkern.backend.linalg import one_hot
from fewkern.backend.namespace import Array, device, namespace
from fewkern.core.scores import softmax

__all__ = ["fit_temperature", "match_temperature", "softmax"]


def fit_temperature(values: Array, codes: Array, weights: Array | None = None) -> float:
    r"""The factor :math:`a \ge 0` that makes ``softmax(a * values)`` most likely.

    Maximises the concave :math:`\sum_i w_i [a \sum_c t_{ic} v_{ic} - \log \sum_c e^{a v_{ic}}]` by
    :func:`match_temperature`. The targets are Platt's, :math:`t = (n_c + 1) / (n_c + q)` for the own class of
    :math:`n_c` samples and an equal share of the rest for the others: with 0 and 1 a separable set would ask for an
    infinite factor. One factor for all classes never changes which one is largest, so probabilities and predictions
    agree.
    """
    xp = namespace(values)
    n, q = values.shape
    own = one_hot(codes, q, values.dtype)
    w = xp.ones((n,), dtype=values.dtype, device=device(values)) if weights is None else weights
    counts = xp.sum(own * (w @ own)[None, :], axis=1)
    rest = 1.0 / (counts + q)
    targets = own * ((counts + 1.0) * rest)[:, None] + (1.0 - own) * rest[:, None]
    return match_temperature(values, targets, w)


def match_temperature(values: Array, targets: Array, weights: Array | None = None) -> float:
    r"""The factor :math:`a \ge 0` that brings ``softmax(a * values)`` nearest to the probabilities ``targets``.

    In cross-entropy, which is convex in :math:`a`: safeguarded Newton steps find the minimum.
    """
    xp = namespace(values)
    w = xp.ones((values.shape[0],), dtype=values.dtype, device=device(values)) if weights is None else weights
    truth = float(w @ xp.sum(targets * values, axis=1))
    # in units of the values, so that their size does not matter
    spread = float(xp.max(xp.abs(values - xp.mean(values, axis=1)[:, None])))
    if spread == 0:
        return 1.0
    unit = 1.0 / spread
    low, high, a = 0.0, 1e4 * unit, unit
    for _ in range(100):
        p = softmax(a * values)
        mean = xp.sum(p * values, axis=1)
        slope = truth - float(w @ mean)
        curvature = float(w @ (xp.sum(p * values * values, axis=1) - mean * mean))
        low, high = (a, high) if slope > 0 else (low, a)
        step = slope / curvature if curvature > 0 else 0.0
        new = a + step
        # Newton inside the bracket, else its (geometric) middle
        if not low < new < high:
            new = (max(low, 1e-3 * unit) * high) ** 0.5
        if abs(new - a) <= 1e-8 * a or high - low <= 1e-8 * high:
            return new
        a = new
    return a
