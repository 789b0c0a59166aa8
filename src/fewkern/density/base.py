"""The base of all density estimators: one fit around the algorithms, and the methods of a mixture."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import Array, float_dtype, is_foreign, namespace
from fewkern.arrays.numerics import squarable
from fewkern.arrays.partitions import is_collection, rowwise
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import Fold, random_generator
from fewkern.arrays.validation import CallbackSupportMixin, Interval, StrOptions, fit_context, validate_samples
from fewkern.base import check_weighted, constraints
from fewkern.core.path import Path, Stop
from fewkern.core.samples import Samples
from fewkern.density.bandwidth import RULES, parzen_bandwidth
from fewkern.density.mixture import KernelMixture
from fewkern.density.problem import AllRows, DensityProblem, RoundMixture, Scaling

POSITIVE = Interval(Real, 0, None, closed="neither")
# Samples that may become centers; drawn where there are more.
MAX_CANDIDATES = 1000


def density_constraints(*names: str, **own: list[Any]) -> dict[str, list[Any]]:
    """The constraints of the parameters that all densities have, of the shared ones ``names``, and of their own."""
    bandwidth: list[Any] = [StrOptions(set(RULES)), POSITIVE]
    scale: list[Any] = [StrOptions({"none", "std", "whiten"})]
    return constraints("random_state", *names, **{"bandwidth": bandwidth, "scale": scale, **own})


class DensityEstimator(CallbackSupportMixin, DensityMixin, BaseEstimator):
    """Base of the densities. ``expansion_`` holds all of the fitted density."""

    expansion_: KernelMixture
    path_: Path
    stop_: Stop

    _parameter_constraints: dict[str, list[Any]] = density_constraints()

    def __init__(self, *, bandwidth: Any = "lscv", scale: str = "std", random_state: Any = 0) -> None:
        self.bandwidth = bandwidth
        self.scale = scale
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            :class:`ForwardDensity` also takes a Dask collection.
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, rows = self._check(X, sample_weight)
        self._check_scaling(rows.scaling, samples)
        rng = random_generator(self.random_state)
        rows = self._shaped(rows, samples, rng)
        scaling = rows.scaling
        problem = scaling.problem(samples)
        self._check_bandwidth(problem, samples, "bandwidth", self.bandwidth)
        self.path_, self.stop_ = self._parzen(problem, rng)
        self.bandwidth_ = self.path_.setting["bandwidth"]
        problem = replace(problem, unit=self.bandwidth_)
        mixture = self._fit(problem, samples, rng)
        if rows.population.n > samples.n:
            mixture = self._fit_all_rows(mixture, problem, rows)
        expansion = scaling.mixture(mixture, samples)
        self._keep(expansion.like(X) if is_foreign(X) else expansion)
        return self

    def _check(self, X: Any, sample_weight: Any) -> tuple[Samples, AllRows]:
        """Checked samples of positive weight to make choices on, as NumPy arrays, and all rows."""
        samples = check_weighted(self, X, sample_weight, minimum=2).on_host()
        return samples, AllRows.of(samples, self.scale)

    def _shaped(self, rows: AllRows, samples: Samples, rng: Any) -> AllRows:
        """The rows with a scaling that also gives the kernels a shape, where a method learns one."""
        return rows

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        """The kernels. ``samples`` are those of the problem, in the units of the data; its unit is Parzen's bandwidth.

        ``path_``, ``stop_`` and ``bandwidth_`` are those of Parzen's bandwidth, unless a method has its own.
        """
        raise NotImplementedError  # every method has its own

    def _fit_all_rows(self, mixture: RoundMixture, problem: DensityProblem, rows: AllRows) -> RoundMixture:
        """The mixture fitted to all rows, where the problem holds a sample of them."""
        raise NotImplementedError  # not asked where the sample is all rows

    def _check_scaling(self, scaling: Scaling, samples: Samples) -> None:
        """Refuse samples for which a density makes no sense; ``samples`` are some of those of the scaling."""
        name, d = type(self).__name__, samples.X.shape[1]
        if scaling.constant == d:
            raise ValueError(
                f"{name}: all samples of positive weight are equal (n_samples = {samples.n_all}, one distinct); a "
                "density needs at least two different samples."
            )
        limit, advice = squarable(samples.X), 'use scale="std"'
        if self.scale != "none":  # a spread within this limit has an inverse
            limit = float(np.finfo(float_dtype(samples.X)).max) ** 0.99
            advice = "multiply the features by numbers"
        least, largest = np.min(scaling.spreads), np.max(scaling.spreads)
        if not 1 / limit < largest < limit or not np.all(np.isfinite(scaling.transform)):
            raise ValueError(
                f'{name}: with scale="{self.scale}" the spreads of the features must lie between {1 / limit:.0e} and '
                f"{limit:.0e}, got {least:.3g} to {largest:.3g}; {advice}."
            )
        if scaling.constant:
            warnings.warn(
                f"{name}: {scaling.constant} of {d} features (or directions) are constant; their kernels take "
                "the mean bandwidth of the others. Drop these features if their density is of no interest.",
                UserWarning,
                stacklevel=4,
            )

    def _check_bandwidth(self, problem: DensityProblem, samples: Samples, parameter: str, value: Any) -> None:
        """Refuse a number for a parameter, in units of the scaled data, whose square would over- or underflow."""
        spread, limit = problem.spread, squarable(samples.X)
        # bandwidths up to 1e40 times wider or narrower than the samples have cubes in double precision
        low, high = max(spread / 1e40, 1 / limit), min(spread * 1e40, limit)
        if not isinstance(value, str) and not low < value < high:
            raise ValueError(
                f"{type(self).__name__}: {parameter} must lie between {low:.0e} and {high:.0e} in units of the scaled "
                f"data (whose spread is {spread:.3g}), got {value}."
            )

    def _parzen(self, problem: DensityProblem, rng: Any) -> tuple[Path, Stop]:
        """The choice of Parzen's bandwidth, with a warning where the search cannot be trusted."""
        with progress(self, "selecting Parzen's bandwidth", None) as step:
            path, stop, tied_pairs = parzen_bandwidth(problem, self.bandwidth, rng, step)
        name = type(self).__name__
        if tied_pairs:
            warnings.warn(
                f"{name}: cross-validation ran to the least bandwidth of the grid because {tied_pairs} pairs of "
                "samples are equal; remove duplicated or rounded samples, or give the bandwidth as a number.",
                UserWarning,
                stacklevel=4,
            )
        elif stop is Stop.EDGE:
            warnings.warn(
                f"{name}: the bandwidth {path.setting['bandwidth']:.3g} of cross-validation lies at an end of the "
                "bandwidths tried; the data may be discrete or have gross outliers. Give the bandwidth as a number.",
                UserWarning,
                stacklevel=4,
            )
        return path, stop

    def _folds(self, samples: Samples, cv: Any, otherwise: str = "") -> list[Fold]:
        """The folds; none where there are too few samples, with a warning that says what is done ``otherwise``."""
        folds = samples.folds(cv)
        if not folds and otherwise:
            warnings.warn(
                f"{type(self).__name__}: {samples.n} samples of positive weight are too few for folds; {otherwise}",
                UserWarning,
                stacklevel=5,
            )
        for k, (train, test) in enumerate(folds):
            if len(train) < 2 or not len(test):
                raise ValueError(
                    f"{type(self).__name__}: every split of cv must train on at least two samples of positive weight "
                    f"and hold out at least one, but split {k} has {len(train)} and {len(test)}; give other splits, "
                    "or a number of folds."
                )
        return folds

    def _keep(self, expansion: KernelMixture) -> None:
        """Set ``expansion_`` and the attributes that are views of it."""
        self.expansion_ = expansion
        self.vectors_, self.weights_, self.bandwidths_ = expansion.vectors, expansion.weights, expansion.bandwidths
        self.indices_, self.n_vectors_ = expansion.indices, expansion.n_vectors

    def _query(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_samples(self, X, reset=False, accept_sparse=False)

    @rowwise
    def score_samples(self, X: Any) -> Array:
        """Logarithm of the density at every sample, finite also far out in the tails; minus infinity beyond bounds."""
        X = self._query(X)
        return self.expansion_.log_density(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Total log-likelihood of the samples."""
        log_density = self.score_samples(X)
        if is_collection(log_density):
            return float(log_density.sum().compute())
        return float(namespace(log_density).sum(log_density))

    @rowwise
    def pdf(self, X: Any) -> Array:
        """Density at every sample."""
        log_density = self.score_samples(X)
        return namespace(log_density).exp(log_density)

    @rowwise
    def cdf(self, X: Any) -> Array:
        """Distribution function at every sample; there is none where kernels have a shape (``scale``)."""
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
        return self.expansion_.sample(n_samples, random_state)

    def marginal(self, columns: Any) -> KernelMixture:
        """The marginal density of some of the features: a mixture that can be evaluated and sampled.

        Parameters
        ----------
        columns : list of int or str
            Positions of the features, or their names where the density was fitted to a data frame.

        Examples
        --------
        >>> from fewkern import ForwardDensity
        >>> from fewkern.datasets import make_banana
        >>> density = ForwardDensity().fit(make_banana(300)[0])
        >>> density.marginal([1]).sample(5, random_state=0).shape
        (5, 1)
        """
        check_is_fitted(self)
        return self.expansion_.marginal([self._position(column) for column in columns])

    def conditional(self, given: Any) -> KernelMixture:
        """The conditional density of the other features, given values of some, in closed form.

        Parameters
        ----------
        given : dict
            From features (positions, or names where the density was fitted to a data frame) to their values.

        Examples
        --------
        >>> from fewkern import ForwardDensity
        >>> from fewkern.datasets import make_banana
        >>> density = ForwardDensity().fit(make_banana(300)[0])
        >>> other = density.conditional({0: 1.0})
        >>> other.mean().shape, other.pdf(other.sample(3, random_state=0)).shape
        ((1,), (3,))
        """
        check_is_fitted(self)
        if not isinstance(given, Mapping):
            raise TypeError(
                f"{type(self).__name__}.conditional: expected a dict from features to values, such as {{0: 1.5}}, got "
                f"{type(given).__name__}."
            )
        return self.expansion_.conditional({self._position(column): value for column, value in given.items()})

    def _position(self, column: Any) -> Any:
        """Position of a feature given by position or name."""
        if not isinstance(column, str):
            return int(column) if isinstance(column, Integral) else column
        names = list(getattr(self, "feature_names_in_", ()))
        if column not in names:
            advice = f"the features are {', '.join(map(str, names))}" if names else "give its position"
            raise ValueError(f"{type(self).__name__}: there is no feature {column!r}; {advice}.")
        return names.index(column)

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
