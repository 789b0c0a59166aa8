"""The background of an explanation: a few weighted centers that stand for the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.arrays.linalg import neg_squared_distances
from fewkern.core.explanation import Background

__all__ = ["fit_background"]

Host = np.ndarray[Any, Any]

# More centers than these hardly change a baseline, and an explanation costs as many times that of one point.
_CENTERS = 16
# A center is the mean of at least this number of rows, so that none is a row.
_LEAST_ROWS = 5
_ITERATIONS = 20
_MOST_ROWS = 2000


def fit_background(T: Host, weights: Host) -> Background:
    """At most 16 centers of prepared rows, by k-means, each the mean of five rows or more (where there are so many).

    Parameters
    ----------
    T : array of shape (n, d)
        Prepared rows, in an order that looks random; of many, the first 2,000 are used.
    weights : array of shape (n,)
    """
    T, weights = T[:_MOST_ROWS].astype(np.float64), weights[:_MOST_ROWS].astype(np.float64)
    centers = T[_far_apart(T, max(1, min(_CENTERS, len(T) // _LEAST_ROWS)))]
    for _ in range(_ITERATIONS):
        near = np.argmin(-neg_squared_distances(T, centers), axis=1)
        centers = _means(T, weights, near)[0]
    near = np.argmin(-neg_squared_distances(T, centers), axis=1)
    while len(centers) > 1 and (counts := np.bincount(near, minlength=len(centers))).min() < _LEAST_ROWS:
        centers = np.delete(centers, np.argmin(counts), axis=0)
        near = np.argmin(-neg_squared_distances(T, centers), axis=1)
    centers, sums = _means(T, weights, near)
    return Background(centers, sums / sums.sum())


def _means(T: Host, weights: Host, near: Host) -> tuple[Host, Host]:
    """Means and weights of the groups that have rows."""
    own = (near[None, :] == np.unique(near)[:, None]) * weights
    sums = own.sum(axis=1)
    return own @ T / sums[:, None], sums


def _far_apart(T: Host, count: int) -> Host:
    """Rows to begin with, each drawn with probability proportional to its squared distance from the others."""
    rng, chosen = np.random.default_rng(0), [0]
    distances = np.full(len(T), np.inf)
    for _ in range(count - 1):
        distances = np.minimum(distances, ((T - T[chosen[-1]]) ** 2).sum(axis=1))
        if not distances.sum() > 0:
            break
        chosen.append(int(rng.choice(len(T), p=distances / distances.sum())))
    return np.array(chosen)
