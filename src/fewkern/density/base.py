"""What every density shares: scaling, the Parzen width, and all that a fitted mixture can do."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import Array, asarray_like, device, float_dtype, namespace, take_rows, to_numpy
from fewkern.backend.validation import Interval, StrOptions, random_generator, validate_samples, validate_weights
from fewkern.density.bandwidth import (
    WidthSearch,
    effective_size,
    least_squares_width,
    likelihood_width,
    scott_width,
    silverman_width,
)
from fewkern.density.mixture import KernelMixture
from fewkern.density.scaling import Scaling, fit_scaling

__all__ = ["DENSITY_CONSTRAINTS", "DensityEstimator", "ScaledSamples"]

WIDTH_RULES = {"lscv", "lscv-approximate", "likelihood", "silverman", "scott"}
DENSITY_CONSTRAINTS: dict[str, list[Any]] = {
    "width": [StrOptions(WIDTH_RULES), Interval(Real, 0, None, closed="neither")],
    "scale": [StrOptions({"none", "std", "whiten"})],
    "search_rows": [Interval(Integral, 2, None, closed="left")],
    "random_state": [None, Integral, object],
}


@dataclass(frozen=True)
class ScaledSamples:
    """Samples of positive weight as an algorithm wants them: scaled, double precision, weights of sum one."""

    Z: Array
    w: Array
    rows: Array
    """Their rows among all samples."""
    scaling: Scaling
    rng: Any

    @property
    def n(self) -> int:
        return int(self.Z.shape[0])

    def every_row(self) -> Array:
        return namespace(self.rows).arange(self.n, dtype=self.rows.dtype, device=device(self.rows))

    def subset(self, count: int) -> Array:
        """At most ``count`` rows of ``Z``, drawn without replacement, ascending; all where that is enough."""
        return self.among(self.n, count)

    def among(self, n: int, count: int) -> Array:
        """At most ``count`` of the first ``n`` row numbers, ascending."""
        drawn = np.arange(n) if n <= count else np.sort(self.rng.choice(n, count, replace=False))
        return asarray_like(drawn, self.rows, dtype=self.rows.dtype)

    def folds(self, count: int) -> Array:
        """The fold of every row, at random; fewer folds where they would be left with a single sample."""
        drawn = self.rng.permutation(np.arange(self.n) % max(min(count, self.n // 2), 1))
        return asarray_like(drawn, self.rows, dtype=self.rows.dtype)

    def take(self, rows: Array) -> tuple[Array, Array]:
        """Some of the samples, with weights of sum one."""
        w = take_rows(self.w, rows)
        return take_rows(self.Z, rows), w / namespace(w).sum(w)


class DensityEstimator(DensityMixin, BaseEstimator):
    """Base of the densities. ``expansion_`` holds all of the fitted density."""

    scale: str
    width: Any
    search_rows: int
    random_state: Any
    expansion_: KernelMixture

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _scaled(self, X: Any, sample_weight: Any) -> tuple[Array, ScaledSamples]:
        """The checked samples, and those of positive weight scaled for the algorithm."""
        name = type(self).__name__
        X = validate_samples(self, X, reset=True, accept_sparse=False, minimum=2)
        weights = validate_weights(self, X, sample_weight)
        xp = namespace(X)
        Z = xp.astype(X, xp.float64)
        rows = xp.arange(X.shape[0], dtype=xp.int64, device=device(X))
        w = xp.ones((X.shape[0],), dtype=xp.float64, device=device(X))
        if weights is not None:
            rows = rows[weights > 0]
            w = xp.astype(weights[weights > 0], xp.float64)
            Z = take_rows(Z, rows)
        w = w / xp.sum(w)
        scaling = fit_scaling(Z, w, self.scale)  # type: ignore[arg-type]
        if scaling.constant == X.shape[1]:
            raise ValueError(
                f"{name}: all samples of positive weight are equal (n_samples = {X.shape[0]}, one distinct); a density "
                "needs at least two different samples."
            )
        if scaling.constant:
            warnings.warn(
                f"{name}: {scaling.constant} of {X.shape[1]} features (or directions) are constant; their kernels take "
                "the mean width of the others. Drop these features if the density along them means nothing.",
                UserWarning,
                stacklevel=4,
            )
        return X, ScaledSamples(scaling.apply(Z), w, rows, scaling, random_generator(self.random_state))

    def _parzen_width(self, samples: ScaledSamples, rule: Any, grid: Any = None) -> WidthSearch:
        """The width of Parzen's estimate by ``rule``; cross-validation looks at ``search_rows`` samples at most."""
        Z, w = samples.Z, samples.w
        if not isinstance(rule, str):
            return _given(float(rule), Z)
        if rule in {"silverman", "scott"}:
            return _given((silverman_width if rule == "silverman" else scott_width)(Z, w), Z)
        size = effective_size(w)
        if samples.n > self.search_rows:
            Z, w = samples.take(samples.subset(self.search_rows))
        # the best width falls with the number of samples like N^(-1/(m+4))
        factor = (effective_size(w) / size) ** (1.0 / (Z.shape[1] + 4))
        widths = None if grid is None else [float(value) / factor for value in to_numpy(grid)]
        if rule == "likelihood":
            found = likelihood_width(Z, w, widths)
        else:
            found = least_squares_width(Z, w, widths, "exact" if rule == "lscv" else "approximate")
        self._warn_about_width(found)
        return WidthSearch(found.width * factor, found.widths * factor, found.scores, found.status, found.tied_pairs)

    def _warn_about_width(self, found: WidthSearch) -> None:
        name = type(self).__name__
        if found.status == "duplicates":
            warnings.warn(
                f"{name}: cross-validation ran to the least width of the grid because {found.tied_pairs} pairs of "
                "samples are equal; remove duplicated or rounded samples, or give the width as a number.",
                UserWarning,
                stacklevel=5,
            )
        elif found.status == "edge":
            warnings.warn(
                f"{name}: the width {found.width:.3g} of cross-validation lies at an end of the widths tried; the data "
                "may be discrete or have gross outliers. Give the width as a number, or a wider grid.",
                UserWarning,
                stacklevel=5,
            )

    def _keep(
        self,
        X: Array,
        samples: ScaledSamples,
        widths: Array,
        weights: Array,
        *,
        chosen: Array | None = None,
        centres: Array | None = None,
    ) -> None:
        """Set ``expansion_`` and the attributes that are views of it; centres are rows ``chosen``, or given."""
        xp, dtype = namespace(X), float_dtype(X)
        if chosen is not None:
            indices = take_rows(samples.rows, chosen)
            vectors = take_rows(X, indices)
        else:
            indices, vectors = None, xp.astype(samples.scaling.invert(centres), dtype)
        weights = weights / xp.sum(weights)
        self.expansion_ = KernelMixture(
            vectors,
            xp.astype(weights, dtype),
            xp.astype(widths, dtype),
            xp.astype(samples.scaling.transform, dtype),
            indices,
        )
        self.vectors_, self.weights_, self.widths_ = vectors, self.expansion_.weights, self.expansion_.widths
        self.indices_, self.n_vectors_ = indices, self.expansion_.n_vectors

    def _query(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_samples(self, X, reset=False, accept_sparse=False)

    def score_samples(self, X: Any) -> Array:
        """Logarithm of the density at every sample, finite also far out in the tails."""
        X = self._query(X)
        return self.expansion_.log_density(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Total log-likelihood of the samples."""
        log_density = self.score_samples(X)
        return float(namespace(log_density).sum(log_density))

    def pdf(self, X: Any) -> Array:
        """Density at every sample."""
        log_density = self.score_samples(X)
        return namespace(log_density).exp(log_density)

    def cdf(self, X: Any) -> Array:
        """Distribution function at every sample; not with ``scale="whiten"``, whose kernels are no products."""
        X = self._query(X)
        return self.expansion_.cdf(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw samples: a kernel by its weight, then from the kernel.

        Parameters
        ----------
        n_samples : int, default 1
        random_state : int, Generator, RandomState or None, default None

        Returns
        -------
        X : array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rng = random_generator(random_state)
        mixture = self.expansion_
        weights = to_numpy(mixture.weights).astype(float)
        component = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        noise = rng.standard_normal((n_samples, mixture.vectors.shape[1]))
        noise *= to_numpy(mixture.widths).astype(float)[component][:, None]
        transform = to_numpy(mixture.transform).astype(float)
        noise = noise / transform if transform.ndim == 1 else np.linalg.solve(transform, noise.T).T
        drawn = to_numpy(mixture.vectors).astype(float)[component] + noise
        return asarray_like(drawn, mixture.vectors, dtype=mixture.vectors.dtype)

    def l2_distance(self, other: Any) -> float:
        r"""Closed form of :math:`(\int (p - q)^2)^{1/2}` between this density and another fitted one.

        Parameters
        ----------
        other : fitted density of fewkern, or KernelMixture
        """
        check_is_fitted(self)
        mixture = getattr(other, "expansion_", other)
        if not isinstance(mixture, KernelMixture):
            raise TypeError(
                f"{type(self).__name__}.l2_distance: expected a fitted density of fewkern, got "
                f"{type(other).__name__}; fit it first, or pass its expansion_."
            )
        if mixture.vectors.shape[1] != self.expansion_.vectors.shape[1]:
            raise ValueError(
                f"{type(self).__name__}.l2_distance: both densities must have the same number of features, got "
                f"{self.expansion_.vectors.shape[1]} and {mixture.vectors.shape[1]}."
            )
        return self.expansion_.l2_distance(mixture)


def _given(width: float, Z: Array) -> WidthSearch:
    xp = namespace(Z)
    return WidthSearch(
        width, asarray_like([width], Z, dtype=xp.float64), asarray_like([0.0], Z, dtype=xp.float64), "given"
    )
