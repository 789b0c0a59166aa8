"""ForwardDensity: a density from a few kernels, one at a time (FCR)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.folds import Fold
from fewkern.arrays.progress import progress
from fewkern.arrays.validation import Interval, StrOptions, fit_context, random_generator
from fewkern.base import CONSTRAINTS
from fewkern.core.path import TOLERANCE, Path, Stop
from fewkern.core.samples import Samples
from fewkern.density.all_rows import AllRows, weights_from_all
from fewkern.density.base import DensityEstimator, density_constraints
from fewkern.density.integrated import FLOORS, choose_floor, forward_integrated
from fewkern.density.likelihood import EMFit, choose_size, expectation_maximization, forward_likelihood
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["ForwardDensity"]

# Largest number of kernels where max_vectors is None.
_MOST_KERNELS = 20
# EM at the end: iterations at most, and by likelihood the rise of the mean log density below which they end.
_ITERATIONS, _LEAST_RISE = 500, 1e-5
_POLISH_ITERATIONS = 50
# Where the kernels were found on a sample, so many iterations look at all rows: passes over a table that may be large.
_PASSES = 5
# As many folds are used as are needed to hold out this many samples.
_HELD_OUT_ROWS = 4000
_FOLDS = 5
# In more dimensions than this a density is so uneven that its square sees only the densest samples.
_MANY_DIMENSIONS = 10


class ForwardDensity(DensityEstimator):
    r"""A density from a few normal kernels with bandwidths of their own, found one at a time (FCR).

    A density says where samples lie. This one is a sum of a few bell-shaped kernels, of which each has a place, a
    bandwidth and a weight:

    .. math:: \hat p(x) = \sum_{j=1}^s g_j K(x, v_j, \sigma_j), \qquad g_j \ge 0, \quad \sum_j g_j = 1

    Every step mixes one more kernel in, :math:`\hat p \leftarrow (1-a) \hat p + a K(\cdot, v, \sigma)`,
    and samples that were left out say how many are needed.

    It takes any number of rows, in memory or as a Dask collection. Above 20,000 rows the bandwidth, the number of
    kernels and where they are come from 20,000 of them. The scale of the features, and the weights of the kernels, come
    from all rows, and so do centers and bandwidths, which up to five EM iterations on all rows improve.

    Parameters
    ----------
    criterion : {"likelihood", "squared_error"}, default "likelihood"
        What the construction improves: the likelihood, with EM on all kernels after every step (FCR-ML); or an
        unbiased estimate of the integrated squared error to the true density (FCR-ISE), which keeps its centers at
        samples until the polish. In more than ten dimensions the latter may find too few kernels, down to one, for
        which there is a warning.
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
    polish : bool, default True
        For "squared_error": 50 EM iterations on weights, centers and bandwidths at the end. The centers then are no
        longer samples.
    max_candidates : int, default 1000
        Samples that may become centers; drawn where there are more.
    scale : {"std", "whiten", "none"}, default "std"
        The features are first divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples on which Parzen's bandwidth is selected, where there are more.
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelMixture
        The fitted density.
    vectors_, weights_, bandwidths_ : arrays
        Centers (in the units of the data), weights and bandwidths (in those of the scaled data) of the kernels.
    indices_ : array or None
        Rows of the samples that are the centers; None where they are not samples ("likelihood", or after the polish).
    n_vectors_ : int
        Number of kernels.
    bandwidth_ : float
        Parzen's bandwidth.
    least_bandwidth_ : float
        Bandwidth that no kernel is below, in the same units.
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
    ``O(n s + 14 c s)``. All rows are passed over two to six times: once for their moments, then once per EM iteration,
    ``O(s m)`` per row (once for the weights, with "squared_error" and without polish). Evaluation ``O(s m)`` per
    sample.

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
        "verbose",
        "max_vectors",
        criterion=[StrOptions({"likelihood", "squared_error"})],
        cv=[None, StrOptions({"auto"}), *CONSTRAINTS["cv"]],
        polish=["boolean"],
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
        polish: bool = True,
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
        self.polish = polish
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
        problem = replace(problem, unit=self._parzen_width(problem, self.bandwidth, rng).width)
        problem = problem.with_candidates(self.max_candidates, rng)
        if self.criterion == "likelihood":
            mixture, floor = self._by_likelihood(problem, self._folds(samples, _FOLDS))
        else:
            mixture, floor = self._by_squared_error(problem, self._folds(samples, None))
        narrowing = rows.narrowing(problem) if rows is not None and isinstance(self.bandwidth, str) else 1.0
        self.bandwidth_ = problem.unit * narrowing
        self.least_bandwidth_ = floor * self.bandwidth_
        if rows is not None:
            mixture = self._from_all_rows(rows, problem, mixture)
        self._keep(mixture, scaling, samples)
        return self

    def _from_all_rows(self, rows: AllRows, problem: DensityProblem, mixture: RoundMixture) -> RoundMixture:
        if mixture.rows is not None:
            return weights_from_all(rows, problem, mixture)
        return expectation_maximization(rows, mixture, self.least_bandwidth_, _PASSES, _LEAST_RISE).mixture

    def _by_likelihood(self, problem: DensityProblem, folds: list[Fold]) -> tuple[RoundMixture, float]:
        """A mixture and its least bandwidth, in units of the problem's."""
        floor = problem.least_width
        start = self._grown(problem, folds, floor)
        found = expectation_maximization(problem, start, floor * problem.unit, _ITERATIONS, _LEAST_RISE)
        _warn_unless_converged(found)
        return found.mixture, floor

    def _grown(self, problem: DensityProblem, folds: list[Fold], floor: float) -> RoundMixture:
        limit = self.max_vectors or _MOST_KERNELS
        with progress(self, "comparing numbers of kernels", limit) as step:
            if not folds:
                path = forward_likelihood(problem, floor=floor, max_vectors=limit, step=step)
                self.path_, self.stop_ = path.trace, path.stop
                return path.models[path.selected]
            tolerance = TOLERANCE[self.prefer]
            choice = choose_size(
                problem, _enough(folds), floor=floor, max_vectors=limit, tolerance=tolerance, step=step
            )
        self.path_, self.stop_ = choice.trace, choice.stop
        return forward_likelihood(problem, floor=floor, max_vectors=choice.size, patience=None).models[-1]

    def _by_squared_error(self, problem: DensityProblem, folds: list[Fold]) -> tuple[RoundMixture, float]:
        tolerance, floor, limit = TOLERANCE[self.prefer], problem.least_width, self.max_vectors or _MOST_KERNELS
        if folds:
            with progress(self, "comparing least bandwidths", len(FLOORS) * len(folds)) as step:
                choice = choose_floor(problem, folds, max_vectors=limit, tolerance=tolerance, step=step)
            floor, limit = choice.setting["floor"], int(choice.setting["n_vectors"])
            path = forward_integrated(problem, floor=floor, max_vectors=limit, patience=None)
            at, self.path_ = len(path.steps) - 1, choice
        else:
            with progress(self, "adding kernels", limit) as step:
                path = forward_integrated(problem, floor=floor, max_vectors=limit, step=step)
            at, self.path_ = path.choose(tolerance)
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
        if self.polish:
            mixture = expectation_maximization(problem, mixture, floor * problem.unit, _POLISH_ITERATIONS).mixture
        return mixture, floor

    def _folds(self, samples: Samples, default: int | None) -> list[Fold]:
        cv = default if self.cv == "auto" else self.cv
        if cv is None:
            return []
        folds = samples.folds(cv)
        if not folds and self.cv != "auto":
            warnings.warn(
                f"ForwardDensity: {samples.n} samples of positive weight are too few for folds; the size is chosen "
                "without them. Give more samples, or cv=None.",
                UserWarning,
                stacklevel=4,
            )
        return folds


def _is_collapsed(problem: DensityProblem, mixture: RoundMixture, floor: float) -> bool:
    """Whether there is one kernel in many dimensions though two are better by BIC: no normal law, but a failure."""
    if problem.dim <= _MANY_DIMENSIONS or mixture.weights.shape[0] > 1:
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
