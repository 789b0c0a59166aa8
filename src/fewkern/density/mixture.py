"""A density as a short sum of normal kernels, each with a width of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewkern.backend.blocks import row_blocks
from fewkern.backend.linalg import generalized_eigh, logsumexp, neg_squared_distances
from fewkern.backend.namespace import Array, device, move_fields, namespace, same_place, to_numpy
from fewkern.backend.special import normal_cdf
from fewkern.backend.storable import floats, indices, storable

__all__ = ["ClassMixtures", "KernelMixture", "normal_kernel", "product_bound", "square_limit", "squared_distances"]

_LOG_2PI = math.log(2 * math.pi)
# Logarithm of the largest kernel value, whose square still is a number.
_HIGHEST = 350.0


def squared_distances(X: Array, Y: Array) -> Array:
    """Squared Euclidean distances between the rows of ``X`` and those of ``Y``, never below zero."""
    return -neg_squared_distances(X, Y)


def normal_kernel(D: Array, width: Array | float, dim: int, unit: float) -> Array:
    r"""Normal density times a constant: :math:`(u/\sigma)^m \exp(-D / 2\sigma^2)`, FCR (2).

    With ``unit`` :math:`u = (2\pi)^{-1/2}` it is the density itself. Algorithms take the Parzen width instead: all
    that they compare is invariant to the factor, and nothing overflows in many dimensions.

    Parameters
    ----------
    D : array
        Squared distances.
    width : array or float
        One standard deviation; broadcasts against ``D``.
    dim : int
        Number of features ``m``.
    unit : float
    """
    xp = namespace(D)
    # one exponential of a sum: a power on its own overflows in many dimensions
    if isinstance(width, float):
        level: Array | float = min(dim * math.log(unit / width), _HIGHEST)
    else:
        level = xp.clip(dim * xp.log(unit / width), None, _HIGHEST)
    return xp.exp(D * (-0.5 / width**2) + level)


def square_limit(dim: int, largest: float) -> float:
    """How large each of ``dim`` features may be, so that no squared distance exceeds the ``largest`` number."""
    return 1e-3 * math.sqrt(largest / dim)


def product_bound(transform: Array, largest: float) -> Array:
    """How large each feature may be, so that no sum in a product with ``transform`` exceeds the ``largest``."""
    xp = namespace(transform)
    gain = xp.abs(transform) if transform.ndim == 1 else xp.max(xp.abs(transform), axis=0)
    return 0.25 * largest / xp.maximum(gain * gain.shape[0], xp.ones_like(gain))


@storable(
    vectors=floats("s", "m"),
    weights=floats("s", least=0.0),
    widths=floats("s", above=0.0),
    transform=(floats("m"), floats("m", "m")),
    indices=indices("s"),
)
@dataclass(frozen=True)
class KernelMixture:
    r"""The density :math:`\hat p(x) = |\det A| \sum_j g_j\, (2\pi\sigma_j^2)^{-m/2} e^{-\|A(x - v_j)\|^2/2\sigma_j^2}`.

    An immutable value that can be used like a :class:`~fewkern.KernelExpansion`: called with samples, it returns one
    column of densities. Everything that a fitted density does reads this object and nothing else.

    Parameters
    ----------
    vectors : array of shape (s, m)
        Centers, in the units of the data.
    weights : array of shape (s,)
        On the simplex: not negative, sum one.
    widths : array of shape (s,)
        Standard deviations, in the units of ``A x``.
    transform : array of shape (m,) or (m, m)
        The matrix ``A``; one number per feature stands for a diagonal matrix.
    indices : array of shape (s,) or None
        Rows of the training samples that the centers are, where they are samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern import KernelMixture
    >>> density = KernelMixture(np.array([[0.0], [2.0]]), np.array([0.5, 0.5]), np.ones(2), np.ones(1))
    >>> density(np.array([[1.0]])).round(4)
    array([[0.242]])
    >>> density.cdf(np.array([[1.0]]))
    array([0.5])
    """

    vectors: Array
    weights: Array
    widths: Array
    transform: Array
    indices: Array | None = None

    @property
    def n_vectors(self) -> int:
        """Number of kernels."""
        return int(self.vectors.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of values per sample."""
        return 1

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that an evaluation needs."""
        return sum(to_numpy(a).nbytes for a in (self.vectors, self.weights, self.widths, self.transform))

    def __call__(self, X: Array) -> Array:
        """Density ``(n, 1)`` at the rows of ``X``."""
        return namespace(X).exp(self.log_density(X))[:, None]

    def log_density(self, X: Array) -> Array:
        """Logarithm of the density at the rows of ``X``, in row blocks; finite wherever ``X`` is."""
        if not same_place(self.weights, X):
            return self.like(X).log_density(X)
        xp = namespace(self.weights)
        dim = X.shape[1]
        # A sample so far out that its squared distance overflows is moved to where it just does not.
        huge = float(xp.finfo(self.widths.dtype).max)
        limit = square_limit(dim, huge)
        centers = self._scaled(self.vectors)
        narrow = -0.5 / self.widths**2
        log_weights = xp.log(xp.where(self.weights > 0, self.weights, xp.ones_like(self.weights)))
        log_weights = xp.where(self.weights > 0, log_weights, xp.full_like(self.weights, -0.5 * huge))
        level = log_weights - dim * xp.log(self.widths) + self._log_factor(dim)
        out = xp.empty((X.shape[0],), dtype=self.weights.dtype, device=device(self.weights))
        for rows in row_blocks(X.shape[0], self.n_vectors, like=X):
            Z = xp.clip(self._scaled(X[rows, :]), -limit, limit)
            exponent = xp.maximum(squared_distances(Z, centers) * narrow, xp.full_like(narrow, -0.4 * huge))
            out[rows] = logsumexp(xp.maximum(exponent + level, xp.full_like(level, -0.9 * huge)), axis=1)
        return out

    def cdf(self, X: Array) -> Array:
        """Distribution function at the rows of ``X``: a product over the features, so ``A`` must be diagonal."""
        if self.transform.ndim != 1:
            raise ValueError(
                "KernelMixture.cdf: the distribution function needs kernels that are products over the features, but "
                'the data were whitened; fit with scale="std" or scale="none".'
            )
        if not same_place(self.weights, X):
            return self.like(X).cdf(X)
        xp = namespace(self.weights)
        Z, centers = self._scaled(X), self._scaled(self.vectors)
        out = xp.empty((X.shape[0],), dtype=self.weights.dtype, device=device(self.weights))
        for rows in row_blocks(X.shape[0], self.n_vectors, like=X):
            P = normal_cdf((Z[rows, 0][:, None] - centers[:, 0][None, :]) / self.widths)
            for d in range(1, X.shape[1]):
                P = P * normal_cdf((Z[rows, d][:, None] - centers[:, d][None, :]) / self.widths)
            out[rows] = P @ self.weights
        return out

    def inner(self, other: KernelMixture) -> float:
        r"""Closed form of :math:`\int p\,q`, in row blocks.

        A product of two normal kernels integrates to a normal kernel whose covariance is the sum. The covariances
        :math:`\sigma^2 (A'A)^{-1}` and :math:`\sigma'^2 (A_q'A_q)^{-1}` are diagonal in the same
        coordinates for all pairs.
        """
        xp = namespace(self.weights)
        A, B = self._matrix(), other._matrix()
        dim = A.shape[0]
        # V'(A'A)^{-1}V = diag(t), V'(B'B)^{-1}V = 1; then |det V| = |det B|
        inverse_a, inverse_b = xp.linalg.inv(A), xp.linalg.inv(B)
        t, V = generalized_eigh(inverse_a @ inverse_a.T, inverse_b @ inverse_b.T)
        log_factor = float(xp.linalg.slogdet(B)[1]) - 0.5 * dim * _LOG_2PI
        X, Y = self.vectors @ V, other.vectors @ V
        total = 0.0
        for rows in row_blocks(self.n_vectors, other.n_vectors):
            exponent = xp.full((X[rows, :].shape[0], Y.shape[0]), log_factor, dtype=X.dtype, device=device(X))
            for d in range(dim):
                variance = (t[d] * self.widths[rows] ** 2)[:, None] + (other.widths**2)[None, :]
                gap = X[rows, d][:, None] - Y[:, d][None, :]
                exponent = exponent - 0.5 * (gap * gap / variance + xp.log(variance))
            total += float(self.weights[rows] @ (xp.exp(exponent) @ other.weights))
        return total

    def l2_distance(self, other: KernelMixture) -> float:
        r"""Closed form of :math:`(\int (p - q)^2)^{1/2}`."""
        other = other.like(self.vectors)
        return math.sqrt(max(self.inner(self) - 2.0 * self.inner(other) + other.inner(other), 0.0))

    def like(self, X: Array) -> KernelMixture:
        """The same density with its arrays in the library and on the device of ``X``."""
        return move_fields(self, X)

    def _scaled(self, X: Array) -> Array:
        """``A x`` of every row, the centers' mean first taken out so that no digits cancel."""
        xp = namespace(self.weights)
        X = X - xp.mean(self.vectors, axis=0)
        bound = product_bound(self.transform, float(xp.finfo(self.transform.dtype).max))
        X = xp.maximum(xp.minimum(X, bound), -bound)
        return X * self.transform if self.transform.ndim == 1 else X @ self.transform.T

    def _matrix(self) -> Array:
        xp = namespace(self.transform)
        if self.transform.ndim == 2:
            return self.transform
        return self.transform[:, None] * xp.eye(
            self.transform.shape[0], dtype=self.transform.dtype, device=device(self.transform)
        )

    def _log_factor(self, dim: int) -> float:
        xp = namespace(self.transform)
        if self.transform.ndim == 1:
            log_det = float(xp.sum(xp.log(xp.abs(self.transform))))
        else:
            log_det = float(xp.linalg.slogdet(self.transform)[1])
        return log_det - 0.5 * dim * _LOG_2PI


@storable
@dataclass(frozen=True)
class ClassMixtures:
    """One density per class; its values are their logarithms. What a :class:`~fewkern.DensityClassifier` evaluates."""

    mixtures: tuple[KernelMixture, ...]

    @property
    def vectors(self) -> Array:
        """Centers of all classes, one after the other."""
        parts = [mixture.vectors for mixture in self.mixtures]
        return namespace(parts[0]).concat(parts, axis=0)

    @property
    def indices(self) -> None:
        """None: every class counts its samples for itself."""
        return None

    @property
    def n_vectors(self) -> int:
        """Number of kernels of all classes."""
        return sum(mixture.n_vectors for mixture in self.mixtures)

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.mixtures)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that an evaluation needs."""
        return sum(mixture.nbytes for mixture in self.mixtures)

    def __call__(self, X: Array) -> Array:
        """Logarithm of the density of every class, shape ``(n, n_classes)``."""
        return namespace(X).stack([mixture.log_density(X) for mixture in self.mixtures], axis=1)

    def like(self, X: Array) -> ClassMixtures:
        """The same densities with their arrays in the library and on the device of ``X``."""
        return ClassMixtures(tuple(mixture.like(X) for mixture in self.mixtures))
