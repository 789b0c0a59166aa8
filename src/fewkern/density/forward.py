"""ForwardDensity: a density from a few kernels, one at a time (FCR), where features may have bounds or periods."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import progress
from fewkern.arrays.validation import StrOptions
from fewkern.base import CONSTRAINTS
from fewkern.core.path import TOLERANCE, Stop
from fewkern.core.samples import Samples
from fewkern.density.base import MAX_CANDIDATES, DensityEstimator, density_constraints
from fewkern.density.likelihood import SHAPE_ROWS, choose_shape, choose_size, expectation_maximization, grown
from fewkern.density.problem import AllRows, DensityProblem, RoundMixture
from fewkern.populations import weighted_population

# EM at the end: the largest number of iterations, and the least rise of the mean log density.
_ITERATIONS, _LEAST_RISE = 500, 1e-5
# Where the kernels come from a sample, EM iterations on all rows: one pass over a table that may be large for each.
_MAX_PASSES = 5
# Fewer samples are too few to learn a shape from.
_LEAST_SHAPE_ROWS = 20
# Above this number of features a shape takes minutes: every EM iteration decomposes a matrix of them.
_MOST_SHAPE_FEATURES = 100


def _bounds(column: Any, value: Any, x: Array) -> tuple[float, float]:
    """The bounds of a feature with the samples ``x``; None stands for infinity."""
    low, high = value if isinstance(value, (tuple, list)) and len(value) == 2 else (None, None)
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    numbers = isinstance(low, Real) and isinstance(high, Real)
    if not numbers or not low < high or not (math.isfinite(low) or math.isfinite(high)):
        raise ValueError(
            f"ForwardDensity: bounds of feature {column!r} must be two numbers (low, high), the first the smaller one, "
            f"or None for no bound, got {value!r}."
        )
    outside = np.flatnonzero((x < x.dtype.type(low)) | (x > x.dtype.type(high)))
    if len(outside):
        raise ValueError(
            f"ForwardDensity: feature {column!r} has bounds ({low:g}, {high:g}), but {len(outside)} of {len(x)} "
            f"samples lie outside, the first with {x[outside[0]]:g}; widen the bounds, or remove these samples."
        )
    return low, high


def cut_opposite(samples: Samples, periods: Array) -> Samples:
    """Samples with periodic features cut opposite their circular mean, so that no cluster lies on the cut."""
    X = samples.X.copy()
    w = samples.weights.astype(float)
    for d in np.flatnonzero(np.isfinite(periods)):
        period, x = periods[d], X[:, d].astype(float)
        turn = np.exp(2j * np.pi * np.remainder(x, period) / period)
        middle = period * np.angle(w @ turn) / (2 * np.pi)
        X[:, d] = middle + np.remainder(x - middle + 0.5 * period, period) - 0.5 * period
    return replace(samples, X=X)


class ForwardDensity(DensityEstimator):
    r"""A density from a few normal kernels with bandwidths of their own, found one at a time (FCR).

    A mixture of a few normal kernels, each with its own center, bandwidth and weight:

    .. math:: \hat p(x) = \sum_{j=1}^s g_j K(x, v_j, \sigma_j), \qquad g_j \ge 0, \quad \sum_j g_j = 1

    Every step mixes one more kernel in, :math:`\hat p \leftarrow (1-a) \hat p + a K(\cdot, v, \sigma)`, EM then
    improves all of them, and the likelihood of samples left out decides how many are needed.

    It takes any number of rows, in memory or as a Dask collection. Above 20,000 rows, the number of kernels and their
    start come from a sample of 20,000; the scale of the features comes from all rows, and up to five EM iterations fit
    weights, centers and bandwidths to all rows.

    Parameters
    ----------
    bandwidth : a rule of :class:`ParzenDensity` or float, default "lscv"
        Parzen's bandwidth, a number in units of the scaled data. No kernel is narrower than 1.5 times this bandwidth
        (less in many dimensions), so a larger one gives a smoother density.
    max_vectors : int or None, default None
        Largest number of kernels; None: at most 20.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        Number of kernels: that of the least error on samples left out, or the smallest within half a standard error of
        it, or within one.
    cv : int, cross-validation splitter, None or "auto", default "auto"
        Samples left out to choose the number of kernels: folds ("auto": 5), of which only as many are used as hold out
        4,000 samples; or None for BIC in their place.
    scale : {"auto", "std", "whiten", "none"}, default "auto"
        Divide the features by their standard deviations ("std"), decorrelate them ("whiten"), or leave them as they are
        ("none", the paper). "auto" is "std", and gives all kernels one common shape, learned by EM, where that raises
        the likelihood of samples left out; see ``scale_``. Bounds and periods go with "std".
    bounds : dict or None, default None
        Features (positions, or names of columns) that have a least or a largest value, such as ``{0: (0, None)}``. What
        kernels have beyond a bound is reflected at it: the density integrates to one inside and is zero outside.
    periodic : dict or None, default None
        Features that repeat and their periods, such as ``{"hour": 24}``. Kernels are wrapped: the density is periodic,
        and integrates to one over a period. Samples are drawn from 0 to the period.
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples for the shape and for Parzen's bandwidth, where there are more.
    verbose : bool or int, default False
        Show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelMixture
        The fitted density.
    vectors_, weights_, bandwidths_ : arrays
        Centers (in the units of the data), weights and bandwidths (in those of the scaled data) of the kernels.
    indices_ : None
        The centers are not samples.
    n_vectors_ : int
        Number of kernels.
    bandwidth_ : float
        Parzen's bandwidth.
    least_bandwidth_ : float
        Lower bound of the bandwidths of the kernels, in the same units.
    scale_ : {"std", "shape", "whiten", "none"}
        What was done to the features; "shape" is "std" and then the common shape of the kernels.
    path_ : Path
        Error of every number of kernels.
    stop_ : Stop
        Why the construction ended.

    Notes
    -----
    ============================ =====================================
    symbol                       name
    ============================ =====================================
    :math:`s`                    ``n_vectors_``
    :math:`g, v_j, \sigma_j`     ``weights_``, ``vectors_``, ``bandwidths_``
    :math:`\sigma^{\rm Par}`     ``bandwidth_``
    ============================ =====================================

    With ``n`` samples (20,000 at most) and ``c`` candidates, the samples at which kernels may enter (1,000 at most,
    drawn where there are more), a step costs ``O(300 c)`` and an EM iteration ``O(n s m)``, in every fold. Above
    20,000 rows there are two to six passes over all of them: one for their moments, then one per EM iteration,
    ``O(s m)`` per row. Evaluation ``O(s m)`` per sample.

    It is a mixture of Gaussians, round or of one common shape, with a deterministic start, a floor on the bandwidths,
    and a size chosen on samples left out (FCR-ML). A density of few kernels has thin tails: errors weighted by the
    density do not see it, the log-likelihood does. The paper's own method is :class:`ForwardConstrainedDensity`.

    References
    ----------
    X. Hong, S. Chen and C. J. Harris, "A forward-constrained regression algorithm for sparse kernel density
    estimation", IEEE Transactions on Neural Networks 19 (2008).

    Examples
    --------
    >>> from fewkern import ForwardDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(500, random_state=0)
    >>> density = ForwardDensity().fit(X)
    >>> density.n_vectors_ < 20
    True
    >>> density.sample(3, random_state=0).shape
    (3, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        *("prefer", "max_vectors", "verbose"),
        cv=[None, StrOptions({"auto"}), *CONSTRAINTS["cv"]],
        scale=[StrOptions({"auto", "std", "whiten", "none"})],
        bounds=[None, dict],
        periodic=[None, dict],
    )

    def __init__(
        self,
        *,
        bandwidth: Any = "lscv",
        max_vectors: int | None = None,
        prefer: str = "balanced",
        cv: Any = "auto",
        scale: str = "auto",
        bounds: dict[Any, Any] | None = None,
        periodic: dict[Any, Any] | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(bandwidth=bandwidth, scale=scale, random_state=random_state)
        self.max_vectors = max_vectors
        self.prefer = prefer
        self.cv = cv
        self.bounds = bounds
        self.periodic = periodic
        self.verbose = verbose

    def _check(self, X: Any, sample_weight: Any) -> tuple[Samples, AllRows]:
        population, bounds, periods = weighted_population(self, X, sample_weight, minimum=2), None, None
        if isinstance(population, Samples):
            samples = population.on_host()
            if self.bounds or self.periodic:
                bounds, periods = self._read_supports(samples.X)
                samples = cut_opposite(samples, periods)
            population = samples
        elif self.bounds or self.periodic:
            raise ValueError(
                "ForwardDensity: bounds and periodic need samples in memory, got a collection; compute() it first, or "
                "fit to some of its rows."
            )
        samples = population.sample
        # a collection of few rows is in memory now
        rows = AllRows.of(population if population.n > samples.n else samples, self.scale)
        return samples, replace(rows, scaling=replace(rows.scaling, bounds=bounds, periods=periods))

    def _read_supports(self, X: Array) -> tuple[Array, Array]:
        """``bounds`` (2, m) and ``periodic`` (m,), infinite where there are none, compared with samples."""
        m = X.shape[1]
        ends, periods = np.array([[-math.inf], [math.inf]]) * np.ones(m), np.full(m, math.inf)
        for word, given in (("bounds", self.bounds or {}), ("periodic", self.periodic or {})):
            for column, value in given.items():
                d = self._position(column)
                if not isinstance(d, int) or not 0 <= d < m:
                    raise ValueError(
                        f"ForwardDensity: {word} names the feature {column!r}, but there are features 0 to {m - 1}."
                    )
                if word == "bounds":
                    ends[:, d] = _bounds(column, value, X[:, d])
                elif not isinstance(value, Real) or not 0 < float(value) < math.inf:
                    raise ValueError(
                        f"ForwardDensity: the period of feature {column!r} must be a positive number, got {value!r}."
                    )
                elif np.any(np.isfinite(ends[:, d])):
                    raise ValueError(f"ForwardDensity: feature {column!r} has bounds and a period; give one of them.")
                else:
                    periods[d] = float(value)
        if self.scale == "whiten":
            raise ValueError(
                "ForwardDensity: bounds and periodic need kernels that are products over the features, got "
                'scale="whiten"; use scale="std".'
            )
        return ends, periods

    def _shaped(self, rows: AllRows, samples: Samples, rng: Any) -> AllRows:
        self.scale_ = "std" if self.scale == "auto" else self.scale
        m, scaling = samples.X.shape[1], rows.scaling
        plain = scaling.bounds is not None or scaling.constant or rows.effective_size < _LEAST_SHAPE_ROWS
        if self.scale != "auto" or plain or not 1 < m <= _MOST_SHAPE_FEATURES:
            return rows
        problem = scaling.problem(samples)
        problem = problem.part(problem.draw(SHAPE_ROWS, rng)).with_candidates(MAX_CANDIDATES, rng)
        with progress(self, "learning a shape of the kernels", None):
            shape = choose_shape(problem, self.max_vectors or 20)
        if shape is None:
            return rows
        self.scale_ = "shape"
        return replace(rows, scaling=scaling.then(shape))

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        problem = problem.with_candidates(MAX_CANDIDATES, rng)
        floor, limit, folds = problem.least_bandwidth, self.max_vectors or 20, []
        self.least_bandwidth_ = floor * problem.unit
        if isinstance(self.cv, str):
            folds = self._folds(samples, 5)
        elif self.cv is not None:
            folds = self._folds(samples, self.cv, "the size is chosen without folds. Give more samples, or cv=None.")
        tolerance = TOLERANCE[self.prefer]
        with progress(self, "comparing numbers of kernels", limit) as step:
            self.path_, self.stop_ = choose_size(
                problem, folds, floor=floor, max_vectors=limit, tolerance=tolerance, step=step
            )
            start = grown(problem, floor, int(self.path_.setting["n_vectors"]))
        found = expectation_maximization(problem, start, self.least_bandwidth_, _ITERATIONS, _LEAST_RISE)
        if found.stop is Stop.MAX_ITER:
            warnings.warn(
                f"ForwardDensity did not converge in {found.n_iter} EM iterations: the mean log density still rose by "
                f"{found.rise:.2g} in the last one, tolerance {_LEAST_RISE:g}; use fewer kernels (max_vectors).",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found.mixture

    def _fit_all_rows(self, mixture: RoundMixture, problem: DensityProblem, rows: AllRows) -> RoundMixture:
        if isinstance(self.bandwidth, str):  # one that was given stays
            narrowing = problem.narrowing(rows.effective_size)
            self.bandwidth_, self.least_bandwidth_ = self.bandwidth_ * narrowing, self.least_bandwidth_ * narrowing
        return expectation_maximization(rows, mixture, self.least_bandwidth_, _MAX_PASSES, _LEAST_RISE).mixture
