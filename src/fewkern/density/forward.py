"""ForwardDensity: a density from a few kernels, one at a time (FCR)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import Fold
from fewkern.arrays.validation import Interval, StrOptions, fit_context, random_generator
from fewkern.base import CONSTRAINTS
from fewkern.core.path import TOLERANCE, Path, Stop
from fewkern.core.samples import Samples
from fewkern.density.base import DensityEstimator, density_constraints
from fewkern.density.choice import FLOORS_IN_PARZEN_BANDWIDTHS, choose_floor, choose_size, choose_step
from fewkern.density.integrated import forward_integrated
from fewkern.density.likelihood import EMFit, expectation_maximization, forward_likelihood
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["ForwardDensity"]

# Largest number of kernels where max_vectors is None.
_MAX_VECTORS = 20
# EM at the end: the largest number of iterations, and (by likelihood) the least rise of the mean log density.
_ITERATIONS, _LEAST_RISE = 500, 1e-5
_SQUARED_ERROR_ITERATIONS = 50
# Where the kernels come from a sample, EM iterations on all rows: one pass over a table that may be large for each.
_MAX_PASSES = 5
# Default number of folds, of which as many are used as hold out this many samples.
_FOLDS, _HELD_OUT_ROWS = 5, 4000
# The squared error is reliable up to this dimension; beyond it, the densest samples dominate.
_MAX_SQUARED_ERROR_DIMENSIONS = 10


class ForwardDensity(DensityEstimator):
    r"""A density from a few normal kernels with bandwidths of their own, found one at a time (FCR).

    A mixture of a few normal kernels, each with its own center, bandwidth and weight:

    .. math:: \hat p(x) = \sum_{j=1}^s g_j K(x, v_j, \sigma_j), \qquad g_j \ge 0, \quad \sum_j g_j = 1

    Every step mixes one more kernel in, :math:`\hat p \leftarrow (1-a) \hat p + a K(\cdot, v, \sigma)`,
    and the error on samples left out decides how many are needed.

    It takes any number of rows, in memory or as a Dask collection. Above 20,000 rows, the number of kernels and their
    start come from a sample of 20,000; the scale of the features comes from all rows, and up to five EM iterations fit
    weights, centers and bandwidths to all rows.

    Parameters
    ----------
    criterion : {"likelihood", "squared_error"}, default "likelihood"
        Objective of the construction: the likelihood, with EM on all kernels after every step (FCR-ML); or an
        unbiased estimate of the integrated squared error to the true density (FCR-ISE), with 50 EM iterations at the
        end. In more than ten dimensions the latter may find too few kernels; a warning says when only one is left.
    bandwidth : a rule of :class:`ParzenDensity` or float, default "lscv"
        Parzen's bandwidth, a number in units of the scaled data. No kernel is narrower than 1.5 times this bandwidth
        (less in many dimensions), so a larger one gives a smoother density.
    max_vectors : int or None, default None
        Largest number of kernels; None: at most 20.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        Number of kernels: that of the least error on samples left out, or the smallest within half a standard error of
        it, or within one.
    cv : int, cross-validation splitter, None or "auto", default "auto"
        Samples left out to choose the number of kernels. With "likelihood": folds ("auto": 5; only as many of them are
        used as hold out 4,000 samples), or None for BIC in their place. With "squared_error": None and "auto" leave out
        one sample at a time, in closed form; with folds, the least bandwidth (1.25 to 2.25 Parzen bandwidths) is chosen
        too, at 25 times the cost.
    max_candidates : int, default 1000
        Samples that may become centers; drawn where there are more.
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples on which Parzen's bandwidth is selected, where there are more.
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

    With ``n`` samples (20,000 at most) and ``c`` candidates, "likelihood" costs ``O(300 c)`` per step and ``O(n s m)``
    per EM iteration, in every fold; "squared_error" ``O(14 n c m)`` once and ``O(n s + 14 c s^2)`` per step, memory
    ``O(n s + 14 c s)``. Above 20,000 rows there are two to six passes over all of them: one for their moments, then one
    per EM iteration, ``O(s m)`` per row. Evaluation ``O(s m)`` per sample.

    A density of few kernels has thin tails: errors weighted by the density do not see it, the log-likelihood does.
    "likelihood" is a mixture of round Gaussians with a deterministic start, a floor on the bandwidths, and a size
    chosen on samples left out. The system of the paper is :class:`ForwardConstrainedDensity`.

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

    path_: Path
    stop_: Stop
    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "prefer",
        "max_vectors",
        criterion=[StrOptions({"likelihood", "squared_error"})],
        cv=[None, StrOptions({"auto"}), *CONSTRAINTS["cv"]],
        max_candidates=[Interval(Integral, 1, None, closed="left")],
    )

    def __init__(
        self,
        *,
        criterion: str = "likelihood",
        bandwidth: Any = "lscv",
        max_vectors: int | None = None,
        prefer: str = "balanced",
        cv: Any = "auto",
        max_candidates: int = 1000,
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.bandwidth = bandwidth
        self.max_vectors = max_vectors
        self.prefer = prefer
        self.cv = cv
        self.max_candidates = max_candidates
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ForwardDensity:
        """Fit.

        Parameters
        ----------
        X : array, data frame or Dask collection of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, scaling, rows = self._check_all(X, sample_weight)
        rng = random_generator(self.random_state)
        problem = scaling.problem(samples)
        self._check_bandwidths(problem, samples, bandwidth=self.bandwidth)
        problem = replace(problem, unit=self._parzen_width(problem, self.bandwidth, rng).width)
        problem = problem.with_candidates(self.max_candidates, rng)
        if self.criterion == "likelihood":
            mixture, floor = self._by_likelihood(problem, self._size_folds(samples, _FOLDS))
        else:
            mixture, floor = self._by_squared_error(problem, self._size_folds(samples, None))
        narrowing = rows.narrowing(problem) if rows is not None and isinstance(self.bandwidth, str) else 1.0
        self.bandwidth_ = problem.unit * narrowing
        self.least_bandwidth_ = floor * self.bandwidth_
        if rows is not None:
            mixture = expectation_maximization(rows, mixture, self.least_bandwidth_, _MAX_PASSES, _LEAST_RISE).mixture
        self._keep_fit(mixture, scaling, samples, X)
        return self

    def _by_likelihood(self, problem: DensityProblem, folds: list[Fold]) -> tuple[RoundMixture, float]:
        """A mixture and its least bandwidth, in units of the problem's."""
        floor = problem.least_width
        start = self._grown(problem, folds, floor)
        found = expectation_maximization(problem, start, floor * problem.unit, _ITERATIONS, _LEAST_RISE)
        _warn_unless_converged(found)
        return found.mixture, floor

    def _grown(self, problem: DensityProblem, folds: list[Fold], floor: float) -> RoundMixture:
        limit = self.max_vectors or _MAX_VECTORS
        with progress(self, "comparing numbers of kernels", limit) as step:
            if not folds:
                path = forward_likelihood(problem, floor=floor, max_vectors=limit, step=step)
                self.path_, self.stop_ = path.path, path.stop
                return path.models[path.selected]
            tolerance = TOLERANCE[self.prefer]
            choice = choose_size(
                problem, _enough(folds), floor=floor, max_vectors=limit, tolerance=tolerance, step=step
            )
        self.path_, self.stop_ = choice.path, choice.stop
        return forward_likelihood(problem, floor=floor, max_vectors=choice.size, patience=None).models[-1]

    def _by_squared_error(self, problem: DensityProblem, folds: list[Fold]) -> tuple[RoundMixture, float]:
        tolerance, floor, limit = TOLERANCE[self.prefer], problem.least_width, self.max_vectors or _MAX_VECTORS
        if folds:
            with progress(self, "comparing least bandwidths", len(FLOORS_IN_PARZEN_BANDWIDTHS) * len(folds)) as step:
                choice = choose_floor(problem, folds, max_vectors=limit, tolerance=tolerance, step=step)
            floor, limit = choice.setting["floor"], int(choice.setting["n_vectors"])
            path = forward_integrated(problem, floor=floor, max_vectors=limit, patience=None)
            at, self.path_ = len(path.steps) - 1, choice
        else:
            with progress(self, "adding kernels", limit) as step:
                path = forward_integrated(problem, floor=floor, max_vectors=limit, step=step)
            at, self.path_ = choose_step(path, tolerance)
        self.stop_ = path.stop
        mixture = path.mixture(at)
        if _is_collapsed(problem, mixture, floor):
            warnings.warn(
                f'ForwardDensity: criterion="squared_error" ended with one kernel in {problem.dim} dimensions, where '
                "the likelihood asks for more; the squared error can be trusted in at most ten. Use "
                'criterion="likelihood", or fewer features.',
                UserWarning,
                stacklevel=4,
            )
        found = expectation_maximization(problem, mixture, floor * problem.unit, _SQUARED_ERROR_ITERATIONS)
        return found.mixture, floor

    def _size_folds(self, samples: Samples, default: int | None) -> list[Fold]:
        automatic = isinstance(self.cv, str)
        cv = default if automatic else self.cv
        folds = [] if cv is None else self._folds(samples, cv)
        if not folds and not automatic and cv is not None:
            warnings.warn(
                f"ForwardDensity: {samples.n} samples of positive weight are too few for folds; the size is chosen "
                "without folds. Give more samples, or cv=None.",
                UserWarning,
                stacklevel=4,
            )
        return folds


def _is_collapsed(problem: DensityProblem, mixture: RoundMixture, floor: float) -> bool:
    """Whether there is one kernel in many dimensions though two are better by BIC: no normal law, but a failure."""
    if problem.dim <= _MAX_SQUARED_ERROR_DIMENSIONS or mixture.weights.shape[0] > 1:
        return False
    return forward_likelihood(problem, floor=floor, max_vectors=2, patience=None).selected > 0


def _warn_unless_converged(found: EMFit) -> None:
    if found.stop is Stop.MAX_ITER:
        warnings.warn(
            f"ForwardDensity did not converge in {found.n_iter} EM iterations: the mean log density still rose by "
            f"{found.rise:.2g} in the last one, tolerance {_LEAST_RISE:g}; use fewer kernels (max_vectors).",
            ConvergenceWarning,
            stacklevel=5,
        )


def _enough(folds: list[Fold]) -> list[Fold]:
    """The first of the folds that together hold out enough samples; all of them for small data."""
    held = 0
    for k, (_, test) in enumerate(folds):
        held += len(test)
        if held >= _HELD_OUT_ROWS:
            return folds[: k + 1]
    return folds
