"""A density as a short sum of normal kernels, each with a bandwidth of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import generalized_eigh, logsumexp
from fewkern.arrays.namespace import Array, asarray_like, device, move_fields, namespace, same_place, to_numpy
from fewkern.arrays.numerics import normal_cdf, quiet
from fewkern.arrays.sampling import random_generator
from fewkern.arrays.storable import floats, indices, storable
from fewkern.density.edges import (
    Edge,
    check_ranges,
    edge_mean,
    edges_of,
    exponents,
    into_range,
    kernel_cdf,
    most_images,
)


def square_limit(dim: int, largest: float) -> float:
    """How large each of ``dim`` features may be, so that no squared distance exceeds the ``largest`` number."""
    return 1e-3 * math.sqrt(largest / dim)


def product_bound(transform: Array, largest: float) -> Array:
    """How large each feature may be, so that no sum in a product with ``transform`` exceeds the ``largest``."""
    xp = namespace(transform)
    gain = xp.abs(transform) if transform.ndim == 1 else xp.max(xp.abs(transform), axis=0)
    return 0.25 * largest / xp.maximum(gain * gain.shape[0], xp.ones_like(gain))


def _check_positions(caller: str, columns: Sequence[int], dim: int) -> list[int]:
    """Positions of features as they were given: at least one, different, none out of range."""
    given = list(columns)
    valid = {column for column in given if type(column) is int and 0 <= column < dim}
    if not given or len(valid) < len(given):
        raise ValueError(
            f"{caller}: expected different positions of features, 0 to {dim - 1}, at least one, got {given!r}."
        )
    return given


def _check_mixture(mixture: KernelMixture) -> None:
    # 1e-3: rounding in single precision
    if not mixture.n_vectors or abs(float(to_numpy(mixture.weights).sum()) - 1.0) > 1e-3:
        raise ValueError("the weights of a KernelMixture do not add up to one")
    check_ranges(mixture.bounds, mixture.periods, mixture.transform)


@storable(
    vectors=floats("s", "m"),
    weights=floats("s", least=0.0),
    bandwidths=floats("s", above=0.0),
    transform=(floats("m"), floats("m", "m")),
    indices=indices("s"),
    bounds=floats("2", "m", finite=False),
    periods=floats("m", finite=False, above=0.0),
    check=_check_mixture,
)
@dataclass(frozen=True)
class KernelMixture:
    r"""The density :math:`\hat p(x) = |\det A| \sum_j g_j\, (2\pi\sigma_j^2)^{-m/2} e^{-\|A(x - v_j)\|^2/2\sigma_j^2}`.

    An immutable value that can be used like a :class:`~fewkern.KernelExpansion`: called with samples, it returns one
    column of densities. A fitted density evaluates, samples and saves this object.

    Parameters
    ----------
    vectors : array of shape (s, m)
        Centers, in the units of the data.
    weights : array of shape (s,)
        On the simplex: not negative, sum one.
    bandwidths : array of shape (s,)
        Standard deviations, in the units of ``A x``.
    transform : array of shape (m,) or (m, m)
        The matrix ``A``; one number per feature stands for a diagonal matrix.
    indices : array of shape (s,) or None
        Rows of the training samples that the centers are, where they are samples.
    bounds : array of shape (2, m) or None
        Least and largest value of every feature, infinite where there is none. What kernels have beyond a bound is
        reflected at it. ``A`` must be diagonal.
    periods : array of shape (m,) or None
        Period of every feature, infinite where it has none; kernels are wrapped round it. With ``bounds`` only.

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
    bandwidths: Array
    transform: Array
    indices: Array | None = None
    bounds: Array | None = None
    periods: Array | None = None

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
        return sum(to_numpy(a).nbytes for a in (self.vectors, self.weights, self.bandwidths, self.transform))

    def __call__(self, X: Array) -> Array:
        """Density ``(n, 1)`` at the rows of ``X``."""
        return namespace(X).exp(self.log_density(X))[:, None]

    def log_density(self, X: Array) -> Array:
        """Logarithm of the density at the rows of ``X``, in row blocks; finite wherever ``X`` is inside the bounds."""
        if not same_place(self.weights, X):
            return self.like(X).log_density(X)
        xp = namespace(self.weights)
        out = xp.empty((X.shape[0],), dtype=self.weights.dtype, device=device(self.weights))
        for rows in row_blocks(X.shape[0], self.n_vectors * most_images(self._edges(), self.bandwidths), like=X):
            out[rows] = logsumexp(self._log_terms(X[rows, :]), axis=1)
        if self.bounds is None:
            return out
        inside = xp.all((X >= self.bounds[0, :]) & (X <= self.bounds[1, :]), axis=1)
        return xp.where(inside, out, xp.full_like(out, -math.inf))

    def _edges(self) -> tuple[Edge, ...]:
        """Features with bounds or a period, in the coordinates of :meth:`_scaled`."""
        return edges_of(self.bounds, self.periods, self._middle(), self.transform)

    def _log_terms(self, X: Array) -> Array:
        """Logarithm of every kernel times its weight, shape ``(n, s)``; finite wherever ``X`` is."""
        xp = namespace(self.weights)
        dim = X.shape[1]
        # A sample (or a center) so far out that its squared distance overflows is moved to where it just does not.
        huge = float(xp.finfo(self.bandwidths.dtype).max)
        limit = square_limit(dim, huge)
        centers = xp.clip(self._scaled(self.vectors), -limit, limit)
        log_weights = xp.log(xp.where(self.weights > 0, self.weights, xp.ones_like(self.weights)))
        log_weights = xp.where(self.weights > 0, log_weights, xp.full_like(self.weights, -0.5 * huge))
        level = log_weights - dim * xp.log(self.bandwidths) + self._log_factor()
        Z = xp.clip(self._scaled(X), -limit, limit)
        with quiet():  # a squared distance over a narrow bandwidth may overflow
            exponent = exponents(Z, centers, self.bandwidths, self._edges())
            exponent = xp.maximum(exponent, xp.full_like(level, -0.4 * huge))
        return xp.maximum(exponent + level, xp.full_like(level, -0.9 * huge))

    def cdf(self, X: Array) -> Array:
        """Distribution function at the rows of ``X``: a product over the features, so ``A`` must be diagonal."""
        edges = {edge.column: edge for edge in self._edges()}
        if any(edge.period is not None for edge in edges.values()):
            raise ValueError(
                "KernelMixture.cdf: a feature with a period has no least value, so there is no distribution function; "
                "leave it out by marginal, or fit without periodic."
            )
        if self.transform.ndim != 1:
            if self.vectors.shape[1] == 1:
                return self.marginal([0]).cdf(X)
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
            P = 1.0
            for d in range(X.shape[1]):
                if d in edges:
                    P = P * kernel_cdf(edges[d], Z[rows, d], centers[:, d], self.bandwidths)
                    continue
                with quiet():  # infinite is right for a narrow bandwidth
                    gap = (Z[rows, d][:, None] - centers[:, d][None, :]) / self.bandwidths
                P = P * normal_cdf(gap)
            out[rows] = P @ self.weights
        return out

    def pdf(self, X: Array) -> Array:
        """Density ``(n,)`` at the rows of ``X``; :meth:`log_density` is its logarithm."""
        return self(X)[:, 0]

    def mean(self) -> Array:
        """Mean of the distribution, shape ``(m,)``; round a period, its direction."""
        found, shift = self.weights @ self.vectors, self._middle()
        for edge in self._edges():
            d, centers = edge.column, self._scaled(self.vectors)[:, edge.column]
            found[d] = edge_mean(edge, centers, self.bandwidths, self.weights) / self.transform[d] + shift[d]
        return found

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw samples, shape ``(n_samples, m)``: a kernel by its weight, then from the kernel."""
        rng = random_generator(random_state)
        xp = namespace(to_numpy(self.weights))
        vectors, weights, bandwidths, transform = (
            to_numpy(a).astype(float) for a in (self.vectors, self.weights, self.bandwidths, self.transform)
        )
        component = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        noise = rng.standard_normal((n_samples, vectors.shape[1])) * bandwidths[component][:, None]
        for edge in self._edges():
            noise[:, edge.column] *= edge.bandwidths(bandwidths)[component] / bandwidths[component]
        noise = noise / transform if transform.ndim == 1 else xp.linalg.solve(transform, noise.T).T
        drawn = asarray_like(vectors[component] + noise, self.vectors, dtype=self.vectors.dtype)
        if self.bounds is None:
            return drawn
        return into_range(drawn, self.bounds, self.periods)

    def marginal(self, columns: Sequence[int]) -> KernelMixture:
        """The density of some of the features, in the order of ``columns`` (positions), whatever the others are.

        Examples
        --------
        >>> import numpy as np
        >>> from fewkern import KernelMixture
        >>> density = KernelMixture(np.array([[0.0, 5.0], [2.0, 7.0]]), np.array([0.5, 0.5]), np.ones(2), np.ones(2))
        >>> density.marginal([1]).mean()
        array([6.])
        """
        kept = _check_positions("KernelMixture.marginal", columns, int(self.vectors.shape[1]))
        host = self.like(to_numpy(self.weights))
        if host.transform.ndim == 1:
            return host._part(kept, host.transform[kept]).like(self.weights)
        xp = namespace(host.transform)
        inverse = xp.linalg.inv(host.transform)
        covariance = (inverse @ inverse.T)[kept][:, kept]
        return host._part(kept, xp.linalg.inv(xp.linalg.cholesky(covariance))).like(self.weights)

    def conditional(self, given: Mapping[int, float]) -> KernelMixture:
        r"""The density of the other features where some are known: ``given`` maps their positions to their values.

        A mixture of the same kernels: each gets the weight :math:`g_j\, k_j(x_{\text{given}})`, and, where the
        transform is not diagonal, moves by its regression on what is given. The other features stay in their order.

        Examples
        --------
        >>> import numpy as np
        >>> from fewkern import KernelMixture
        >>> density = KernelMixture(np.array([[0.0, 5.0], [9.0, 7.0]]), np.array([0.5, 0.5]), np.ones(2), np.ones(2))
        >>> density.conditional({0: 9.0}).mean().round(3)
        array([7.])
        """
        dim = int(self.vectors.shape[1])
        known = _check_positions("KernelMixture.conditional", list(given), dim)
        values = [float(given[column]) for column in given]
        if len(known) == dim or not all(map(math.isfinite, values)):
            raise ValueError(
                f"KernelMixture.conditional: expected finite values of fewer than all {dim} features, got {given!r}."
            )
        host = self.like(to_numpy(self.weights))
        ends = () if host.bounds is None else host.bounds[:, known].T
        if any(not low <= value <= high for value, (low, high) in zip(values, ends)):
            raise ValueError(f"KernelMixture.conditional: {given!r} is outside the bounds: the density is zero.")
        xp = namespace(host.weights)
        rest = [d for d in range(dim) if d not in known]
        x = asarray_like([values], host.vectors, dtype=host.vectors.dtype)
        # log g_j k_j(x), from the marginal with one kernel after the other
        level = host.marginal(known)._log_terms(x)[0, :]
        weights = xp.exp(level - xp.max(level))
        host = replace(host, weights=weights / xp.sum(weights))
        if host.transform.ndim == 1:
            return host._part(rest, host.transform[rest]).like(self.weights)
        precision = host.transform.T @ host.transform
        own = precision[rest][:, rest]
        slopes = -xp.linalg.solve(own, precision[rest][:, known]).T
        part = host._part(rest, xp.linalg.cholesky(own).T)
        moved = part.vectors + (x - host.vectors[:, known]) @ slopes
        return replace(part, vectors=moved, indices=None).like(self.weights)

    def _part(self, kept: list[int], transform: Array) -> KernelMixture:
        """Some features of every kernel of a mixture in NumPy arrays."""
        every = (self.vectors, self.bounds, self.periods)
        vectors, bounds, periods = (None if A is None else namespace(A).take(A, kept, axis=-1) for A in every)
        transform = transform if len(kept) > 1 or transform.ndim == 1 else transform[0, :]
        return replace(self, vectors=vectors, transform=transform, bounds=bounds, periods=periods)

    def inner(self, other: KernelMixture) -> float:
        r"""Closed form of :math:`\int p\,q`, in row blocks.

        A product of two normal kernels integrates to a normal kernel whose covariance is the sum. The covariances
        :math:`\sigma^2 (A'A)^{-1}` and :math:`\sigma'^2 (A_q'A_q)^{-1}` are diagonal in the same
        coordinates for all pairs.
        """
        xp = namespace(self.weights)
        A, B = self._matrix(), other._matrix()
        # V'(A'A)^{-1}V = diag(t), V'(B'B)^{-1}V = 1; then |det V| = |det B|
        inverse_a, inverse_b = xp.linalg.inv(A), xp.linalg.inv(B)
        t, V = generalized_eigh(inverse_a @ inverse_a.T, inverse_b @ inverse_b.T)
        log_factor = float(xp.linalg.slogdet(B)[1]) - 0.5 * A.shape[0] * math.log(2 * math.pi)
        X, Y = self.vectors @ V, other.vectors @ V
        total = 0.0
        for rows in row_blocks(self.n_vectors, other.n_vectors):
            exponent = log_factor
            for d in range(A.shape[0]):
                variance = (t[d] * self.bandwidths[rows] ** 2)[:, None] + (other.bandwidths**2)[None, :]
                gap = X[rows, d][:, None] - Y[:, d][None, :]
                exponent = exponent - 0.5 * (gap * gap / variance + xp.log(variance))
            total += float(self.weights[rows] @ (xp.exp(exponent) @ other.weights))
        return total

    def l2_distance(self, other: KernelMixture) -> float:
        r"""Closed form of :math:`(\int (p - q)^2)^{1/2}`; not with bounds or periods."""
        if self.bounds is not None or other.bounds is not None:
            raise ValueError(
                "KernelMixture.l2_distance: the closed form does not know bounds or periods of features; fit both "
                "densities without them."
            )
        other = other.like(self.vectors)
        return math.sqrt(max(self.inner(self) - 2.0 * self.inner(other) + other.inner(other), 0.0))

    def like(self, X: Array) -> KernelMixture:
        """The same density with its arrays in the library and on the device of ``X``."""
        return move_fields(self, X)

    def _scaled(self, X: Array) -> Array:
        """``A x`` of every row, the centers' mean first taken out so that no digits cancel."""
        xp = namespace(self.weights)
        bound = product_bound(self.transform, float(xp.finfo(self.transform.dtype).max))
        X = xp.maximum(xp.minimum(X - self._middle(), bound), -bound)
        return X * self.transform if self.transform.ndim == 1 else X @ self.transform.T

    def _middle(self) -> Array:
        """Mean of the centers; no sum of large numbers overflows."""
        return namespace(self.vectors).sum(self.vectors / self.n_vectors, axis=0)

    def _matrix(self) -> Array:
        A = self.transform
        return A if A.ndim == 2 else A[:, None] * namespace(A).eye(A.shape[0], dtype=A.dtype, device=device(A))

    def _log_factor(self) -> float:
        xp, A = namespace(self.transform), self.transform
        log_det = xp.sum(xp.log(xp.abs(A))) if A.ndim == 1 else xp.linalg.slogdet(A)[1]
        return float(log_det) - 0.5 * A.shape[0] * math.log(2 * math.pi)


def _check_classes(classes: ClassMixtures) -> None:
    if not classes.mixtures or len({int(one.vectors.shape[1]) for one in classes.mixtures}) > 1:
        raise ValueError("the mixtures of ClassMixtures do not have the same features")


@storable(check=_check_classes)
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
