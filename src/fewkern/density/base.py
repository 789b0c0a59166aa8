"""The base of all density estimators: checked and scaled samples, Parzen's bandwidth, and the methods of a mixture."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import Array, float_dtype, is_foreign, move_fields, namespace, to_numpy
from fewkern.arrays.numerics import squarable
from fewkern.arrays.partitions import is_collection, rowwise
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import Fold
from fewkern.arrays.validation import CallbackSupportMixin, Interval, StrOptions, validate_samples, validate_weights
from fewkern.base import constraints
from fewkern.core.path import Stop
from fewkern.core.population import InMemory
from fewkern.core.samples import Samples
from fewkern.density.bandwidth import RULES, SEARCH_ROWS, WidthSearch, parzen_width
from fewkern.density.mixture import KernelMixture
from fewkern.density.problem import DensityProblem, RoundMixture
from fewkern.density.scaling import AllRows, Scale, Scaling, scaling_of
from fewkern.populations import weighted_population

__all__ = ["POSITIVE", "DensityEstimator", "density_constraints", "in_numpy"]

POSITIVE = Interval(Real, 0, None, closed="neither")
# Exponent of the largest number: a spread within one over the result has an inverse.
_INVERTIBLE_EXPONENT = 0.99
# Bandwidths up to this many times wider or narrower than the spread of the samples have cubes in double precision.
_MAX_BANDWIDTH_RATIO = 1e40


def density_constraints(*names: str, **own: list[Any]) -> dict[str, list[Any]]:
    """The constraints of the parameters that all densities have, of the shared ones ``names``, and of their own."""
    bandwidth: list[Any] = [StrOptions(set(RULES)), POSITIVE]
    scale: list[Any] = [StrOptions({"none", "std", "whiten"})]
    return constraints("random_state", "verbose", *names, **{"bandwidth": bandwidth, "scale": scale, **own})


def in_numpy(samples: Samples) -> Samples:
    """The samples as NumPy arrays: the fits are NumPy, whatever array library the samples came in."""
    return move_fields(samples, np.empty(0))


def _refuse_out_of_range(name: str, scaling: Scaling, scale: str, X: Array) -> None:
    if scale == "none":
        limit, advice = squarable(X), 'use scale="std"'
    else:
        limit = float(np.finfo(float_dtype(X)).max) ** _INVERTIBLE_EXPONENT
        advice = "multiply the samples by one number"
    if not 1 / limit < scaling.reach < limit:
        raise ValueError(
            f'{name}: with scale="{scale}" the samples must differ by numbers between {1 / limit:.0e} and {limit:.0e}, '
            f"got {scaling.reach:.3g}; {advice}."
        )
    if not np.all(np.isfinite(scaling.transform)):
        raise ValueError(
            f'{name}: with scale="{scale}" the samples must differ by more than {1 / limit:.0e} in every feature that '
            "is not constant; multiply the features of smaller spread by a number."
        )


class DensityEstimator(CallbackSupportMixin, DensityMixin, BaseEstimator):
    """Base of the densities. ``expansion_`` holds all of the fitted density."""

    scale: str
    expansion_: KernelMixture

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _check(self, X: Any, sample_weight: Any) -> tuple[Samples, Scaling]:
        """Checked samples of positive weight, and their scaling."""
        X = validate_samples(self, X, reset=True, accept_sparse=False, minimum=2)
        samples = in_numpy(Samples.of(X, validate_weights(self, X, sample_weight)))
        return samples, self._checked(scaling_of(samples, cast(Scale, self.scale)), samples)

    def _check_all(self, X: Any, sample_weight: Any) -> tuple[Samples, Scaling, AllRows | None]:
        """Checked samples to make choices on, the scaling of all rows, and all rows where the samples are a part."""
        population = weighted_population(self, X, sample_weight, minimum=2)
        if isinstance(population, InMemory):
            population = InMemory(in_numpy(population.samples))
        samples, scale = population.sample, cast(Scale, self.scale)
        rows = None if population.n == samples.n else AllRows.of(population, scale)
        return samples, self._checked(scaling_of(samples, scale) if rows is None else rows.scaling, samples), rows

    def _checked(self, scaling: Scaling, samples: Samples) -> Scaling:
        """The scaling, if a density makes sense in it; ``samples`` are some of those that it was fitted to."""
        name, d = type(self).__name__, samples.X.shape[1]
        if scaling.constant == d:
            raise ValueError(
                f"{name}: all samples of positive weight are equal (n_samples = {samples.n_all}, one distinct); a "
                "density needs at least two different samples."
            )
        _refuse_out_of_range(name, scaling, self.scale, samples.X)
        if scaling.constant:
            warnings.warn(
                f"{name}: {scaling.constant} of {d} features (or directions) are constant; their kernels take "
                "the mean bandwidth of the others. Drop these features if their density is of no interest.",
                UserWarning,
                stacklevel=5,
            )
        return scaling

    def _check_bandwidths(self, problem: DensityProblem, samples: Samples, **given: Any) -> None:
        """Refuse numbers for parameters, in units of the scaled data, whose squares would over- or underflow."""
        spread, limit = problem.spread, squarable(samples.X)
        low, high = max(spread / _MAX_BANDWIDTH_RATIO, 1 / limit), min(spread * _MAX_BANDWIDTH_RATIO, limit)
        for parameter, value in given.items():
            numbers = np.ravel(to_numpy(spread if value is None or isinstance(value, str) else value))
            if not numbers.size or not np.all((numbers > low) & (numbers < high)):
                raise ValueError(
                    f"{type(self).__name__}: {parameter} must lie between {low:.0e} and {high:.0e} in units of the "
                    f"scaled data (whose spread is {spread:.3g}), got {value}."
                )

    def _parzen_width(
        self, problem: DensityProblem, rule: Any, rng: Any, *, grid: Any = None, limit: int = SEARCH_ROWS
    ) -> WidthSearch:
        """Parzen's bandwidth, with a warning where the search cannot be trusted."""
        with progress(self, "selecting Parzen's bandwidth", None) as step:
            found = parzen_width(problem, rule, None if grid is None else to_numpy(grid), limit, rng, step)
        name = type(self).__name__
        if found.tied_pairs:
            warnings.warn(
                f"{name}: cross-validation ran to the least bandwidth of the grid because {found.tied_pairs} pairs of "
                "samples are equal; remove duplicated or rounded samples, or give the bandwidth as a number.",
                UserWarning,
                stacklevel=4,
            )
        elif found.stop is Stop.EDGE:
            warnings.warn(
                f"{name}: the bandwidth {found.width:.3g} of cross-validation lies at an end of the bandwidths tried; "
                "the data may be discrete or have gross outliers. Give the bandwidth as a number, or a wider grid.",
                UserWarning,
                stacklevel=4,
            )
        return found

    def _folds(self, samples: Samples, cv: Any) -> list[Fold]:
        """The folds; none where there are too few samples for a number of folds."""
        folds = samples.folds(cv)
        for k, (train, test) in enumerate(folds):
            if len(train) < 2 or not len(test):
                raise ValueError(
                    f"{type(self).__name__}: every split of cv must train on at least two samples of positive weight "
                    f"and hold out at least one, but split {k} has {len(train)} and {len(test)}; give other splits, "
                    "or a number of folds."
                )
        return folds

    def _keep_fit(self, found: RoundMixture, scaling: Scaling, samples: Samples, X: Any) -> None:
        """Keep the mixture in the units of the data, in the array library of ``X``."""
        expansion = scaling.mixture(found, samples)
        self._keep(expansion.like(X) if is_foreign(X) else expansion)

    def _keep(self, expansion: KernelMixture) -> None:
        """Set ``expansion_`` and the attributes that are views of it."""
        self.expansion_ = expansion
        self.vectors_, self.weights_ = self.expansion_.vectors, self.expansion_.weights
        self.bandwidths_, self.indices_ = self.expansion_.widths, self.expansion_.indices
        self.n_vectors_ = self.expansion_.n_vectors

    def _query(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_samples(self, X, reset=False, accept_sparse=False)

    @rowwise
    def score_samples(self, X: Any) -> Array:
        """Logarithm of the density at every sample, finite also far out in the tails."""
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
        """Distribution function at every sample; not with ``scale="whiten"``: its kernels are not products."""
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
