"""The two densities of the FCR paper, with samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewkern.arrays.validation import random_generator

__all__ = ["gaussian_laplacian_density", "make_gaussian_laplacian", "make_three_gaussians", "three_gaussians_density"]

_RATES = np.array([0.7, 0.5])
_CENTRES = np.array([[1.0] * 6, [-1.0] * 6, [0.0] * 6])
_VARIANCES = np.array([[1.0, 2.0] * 3, [2.0, 1.0] * 3, [2.0, 1.0] * 3])


def make_gaussian_laplacian(n_samples: int = 500, *, random_state: Any = 0) -> np.ndarray:
    """Samples in the plane from a normal and a Laplace law (example 1 of the FCR paper).

    A fair coin decides between a normal law at (2, 2) and independent Laplace laws at (-2, -2), (25) of the paper.

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
    """Samples in six dimensions from three normal laws, mixed equally (example 2 of the FCR paper, (26)).

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
