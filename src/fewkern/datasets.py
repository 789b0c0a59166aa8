"""Generators of the papers' toy data, and the two densities of the FCR paper with samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewkern.arrays.sampling import random_generator

__all__ = [
    "gaussian_laplacian_density",
    "make_banana",
    "make_crossing_circles",
    "make_gaussian_laplacian",
    "make_ringnorm",
    "make_rings",
    "make_sinc",
    "make_three_gaussians",
    "make_two_gaussians",
    "make_twonorm",
    "make_waveform",
    "three_gaussians_density",
]

# Example 1 of the FCR paper: rates of the Laplace distributions; example 2: means and variances of the normal ones.
_RATES = np.array([0.7, 0.5])
_CENTRES = np.array([[1.0] * 6, [-1.0] * 6, [0.0] * 6])
_VARIANCES = np.array([[1.0, 2.0] * 3, [2.0, 1.0] * 3, [2.0, 1.0] * 3])

Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def make_banana(n_samples: int = 400, *, noise: float = 0.35, random_state: Any = 0) -> Pair:
    """Two interlocked crescents of points, classes 0 and 1, about one in ten on the wrong side.

    Examples
    --------
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(100)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 2), [0, 1])
    """
    rng = random_generator(random_state)
    first = n_samples // 2
    t = np.pi * rng.random(n_samples)
    y = (np.arange(n_samples) >= first).astype(np.int64)
    X = np.where(
        (y == 0)[:, None],
        np.column_stack([np.cos(t), np.sin(t)]),
        np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)]),
    )
    X = X + noise * rng.standard_normal(X.shape)
    order = rng.permutation(n_samples)
    return X[order], y[order]


def make_two_gaussians(n_samples: int = 200, *, random_state: Any = 0) -> Pair:
    """Two overlapping normal clusters (section 5.1 of the FVS paper): N((-1, 0), I) and N((1, 0), diag(1, 0.1)).

    Examples
    --------
    >>> from fewkern.datasets import make_two_gaussians
    >>> make_two_gaussians(200)[0].shape
    (200, 2)
    """
    rng = random_generator(random_state)
    first = n_samples // 2
    X = rng.standard_normal((n_samples, 2))
    X[first:, 1] *= np.sqrt(0.1)
    X[:first, 0] -= 1.0
    X[first:, 0] += 1.0
    return X, (np.arange(n_samples) >= first).astype(np.int64)


def make_sinc(n_samples: int = 100, *, noise: float = 0.5, extent: float = 3.0, random_state: Any = 0) -> Pair:
    """The function sin(pi x) / (pi x) at equal steps on [-extent, extent] with noise (section 5.2 of the FVS paper).

    Examples
    --------
    >>> from fewkern.datasets import make_sinc
    >>> make_sinc(100)[0].shape
    (100, 1)
    """
    rng = random_generator(random_state)
    x = np.linspace(-extent, extent, n_samples)
    return x[:, None], np.sinc(x) + noise * rng.standard_normal(n_samples)


def make_rings(
    n_samples: int = 200, *, radii: tuple[float, ...] = (1.0, 0.5), noise: float = 0.0, random_state: Any = 0
) -> Pair:
    """Points on concentric circles, one class per radius (section 5.3 of the FVS paper).

    Examples
    --------
    >>> from fewkern.datasets import make_rings
    >>> X, y = make_rings(100)
    >>> sorted(set((X ** 2).sum(1).round(6).tolist()))
    [0.25, 1.0]
    """
    rng = random_generator(random_state)
    y = np.arange(n_samples) * len(radii) // n_samples
    t = 2 * np.pi * rng.random(n_samples)
    X = np.asarray(radii)[y][:, None] * np.column_stack([np.cos(t), np.sin(t)])
    return X + noise * rng.standard_normal(X.shape), y


def make_crossing_circles(
    n_samples: int = 200, *, distance: float = 1.0, noise: float = 0.1, random_state: Any = 0
) -> Pair:
    """Two overlapping unit circles with noise, ``distance`` between their centers (section 5.3 of FVS).

    The paper prints neither radius, distance nor noise; these are our reading of its Fig. 5.

    Examples
    --------
    >>> from fewkern.datasets import make_crossing_circles
    >>> make_crossing_circles(200)[0].shape
    (200, 2)
    """
    rng = random_generator(random_state)
    y = (np.arange(n_samples) >= n_samples // 2).astype(np.int64)
    t = 2 * np.pi * rng.random(n_samples)
    X = np.column_stack([np.cos(t) + distance * y, np.sin(t)])
    return X + noise * rng.standard_normal(X.shape), y


def make_twonorm(n_samples: int = 400, *, n_features: int = 20, random_state: Any = 0) -> Pair:
    """Breiman's twonorm: unit normals around (a, ..., a) and (-a, ..., -a), a = 2 / sqrt(n_features); classes -1, +1.

    Examples
    --------
    >>> from fewkern.datasets import make_twonorm
    >>> make_twonorm(100)[0].shape
    (100, 20)
    """
    rng = random_generator(random_state)
    y = np.where(rng.random(n_samples) < 0.5, -1, 1)
    return y[:, None] * (2 / np.sqrt(n_features)) + rng.standard_normal((n_samples, n_features)), y


def make_ringnorm(n_samples: int = 400, *, n_features: int = 20, random_state: Any = 0) -> Pair:
    """Breiman's ringnorm: a normal of variance 4 at the origin (+1), and a unit normal inside it (-1).

    The mean of the second is (a, ..., a) with a = 2 / sqrt(n_features), as in the IDA benchmark.

    Examples
    --------
    >>> from fewkern.datasets import make_ringnorm
    >>> make_ringnorm(100)[0].shape
    (100, 20)
    """
    rng = random_generator(random_state)
    y = np.where(rng.random(n_samples) < 0.5, -1, 1)
    X = rng.standard_normal((n_samples, n_features))
    return np.where((y == -1)[:, None], X + 2 / np.sqrt(n_features), 2 * X), y


def make_waveform(n_samples: int = 400, *, random_state: Any = 0) -> Pair:
    """Breiman's waveform: random mixtures of two of three triangular waves with noise; one class (+1) against two (-1).

    Examples
    --------
    >>> from fewkern.datasets import make_waveform
    >>> make_waveform(100)[0].shape
    (100, 21)
    """
    rng = random_generator(random_state)
    t = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(t[None, :] - np.array([11, 15, 7])[:, None]), 0)
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    which = rng.integers(0, 3, n_samples)
    u = rng.random(n_samples)[:, None]
    first, second = waves[pairs[which, 0]], waves[pairs[which, 1]]
    return u * first + (1 - u) * second + rng.standard_normal((n_samples, 21)), np.where(which == 0, 1, -1)


def make_gaussian_laplacian(n_samples: int = 500, *, random_state: Any = 0) -> np.ndarray:
    """Samples in the plane from a normal and a Laplace distribution (example 1 of the FCR paper).

    A fair coin decides between a normal distribution at (2, 2) and a product of Laplace ones at (-2, -2), FCR (25).

    Parameters
    ----------
    n_samples : int, default 500
    random_state : int, Generator, RandomState or None, default 0

    Returns
    -------
    X : array of shape (n_samples, 2)

    Examples
    --------
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> make_gaussian_laplacian(500, random_state=0).shape
    (500, 2)
    """
    rng = random_generator(random_state)
    coin = rng.random(n_samples) < 0.5
    normal = 2.0 + rng.standard_normal((n_samples, 2))
    laplace = -2.0 + rng.laplace(size=(n_samples, 2)) / _RATES
    return np.asarray(np.where(coin[:, None], normal, laplace))


def gaussian_laplacian_density(X: Any) -> np.ndarray:
    r"""The true density of :func:`~fewkern.datasets.make_gaussian_laplacian`.

    It is (25) of the FCR paper: :math:`\frac{1}{4\pi} e^{-\|x-2\|^2/2} + \frac{0.35}{8} e^{-0.7|x_1+2|}
    e^{-0.5|x_2+2|}`.

    Examples
    --------
    >>> from fewkern.datasets import gaussian_laplacian_density
    >>> gaussian_laplacian_density([[2.0, 2.0]]).round(4)
    array([0.0799])
    """
    X = np.asarray(X, dtype=float)
    normal = np.exp(-0.5 * np.sum((X - 2.0) ** 2, axis=1)) / (4 * math.pi)
    return np.asarray(normal + 0.35 / 8 * np.exp(-np.abs(X + 2.0) @ _RATES))


def make_three_gaussians(n_samples: int = 600, *, random_state: Any = 0) -> np.ndarray:
    """Samples in six dimensions from three normal distributions, mixed equally (example 2 of the FCR paper, (26)).

    Parameters
    ----------
    n_samples : int, default 600
    random_state : int, Generator, RandomState or None, default 0

    Returns
    -------
    X : array of shape (n_samples, 6)

    Examples
    --------
    >>> from fewkern.datasets import make_three_gaussians
    >>> make_three_gaussians(600, random_state=0).shape
    (600, 6)
    """
    rng = random_generator(random_state)
    component = rng.integers(3, size=n_samples)
    spread = np.sqrt(_VARIANCES[component])
    return np.asarray(_CENTRES[component] + spread * rng.standard_normal((n_samples, 6)))


def three_gaussians_density(X: Any) -> np.ndarray:
    """The true density of :func:`~fewkern.datasets.make_three_gaussians`, (26) of the FCR paper.

    Examples
    --------
    >>> from fewkern.datasets import three_gaussians_density
    >>> three_gaussians_density([[0.0] * 6]).round(6)
    array([0.000575])
    """
    X = np.asarray(X, dtype=float)
    total = np.zeros(X.shape[0])
    for centre, variance in zip(_CENTRES, _VARIANCES):
        size = (2 * math.pi) ** 3 * math.sqrt(np.prod(variance))
        total += np.exp(-0.5 * np.sum((X - centre) ** 2 / variance, axis=1)) / (3 * size)
    return total
