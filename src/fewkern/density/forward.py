"""ForwardDensity and ForwardConstrainedDensity: a density from a few kernels, one at a time (FCR)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import Fold
from fewkern.arrays.validation import Interval, StrOptions
from fewkern.base import CONSTRAINTS
from fewkern.core.path import TOLERANCE, Stop
from fewkern.core.population import InMemory
from fewkern.core.samples import Samples
from fewkern.density.base import MAX_CANDIDATES, POSITIVE, DensityEstimator, density_constraints
from fewkern.density.constrained import ConstrainedRules, default_gamma, forward_constrained, refit_jointly
from fewkern.density.integrated import FLOORS_IN_PARZEN_BANDWIDTHS, choose_floor, choose_step, forward_integrated
from fewkern.density.likelihood import choose_size, expectation_maximization, forward_likelihood, grown
from fewkern.density.problem import AllRows, DensityProblem, RoundMixture
from fewkern.populations import weighted_population

__all__ = ["ForwardConstrainedDensity", "ForwardDensity"]

# EM at the end: the largest number of iterations, and (by likelihood) the least rise of the mean log density.
_ITERATIONS, _LEAST_RISE = 500, 1e-5
_SQUARED_ERROR_ITERATIONS = 50
# Where the kernels come from a sample, EM iterations on all rows: one pass over a table that may be large for each.
_MAX_PASSES = 5
# Of the folds, as many are used as hold out this many samples.
_HELD_OUT_ROWS = 4000
# Samples at which ForwardConstrainedDensity matches Parzen's estimate, which itself comes from all samples.
_MAX_REGRESSION_ROWS = 10_000


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

    With ``n`` samples (20,000 at most) and ``c`` candidates, the samples at which kernels may enter (1,000 at most,
    drawn where there are more), "likelihood" costs ``O(300 c)`` per step and ``O(n s m)`` per EM iteration, in every
    fold; "squared_error" ``O(14 n c m)`` once and ``O(n s + 14 c s^2)`` per step, memory ``O(n s + 14 c s)``. Above
    20,000 rows there are two to six passes over all of them: one for their moments, then one per EM iteration,
    ``O(s m)`` per row. Evaluation ``O(s m)`` per sample.

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

    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "prefer",
        "max_vectors",
        criterion=[StrOptions({"likelihood", "squared_error"})],
        cv=[None, StrOptions({"auto"}), *CONSTRAINTS["cv"]],
    )

    def __init__(
        self,
        *,
        criterion: str = "likelihood",
        bandwidth: Any = "lscv",
        max_vectors: int | None = None,
        prefer: str = "balanced",
        cv: Any = "auto",
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.bandwidth = bandwidth
        self.max_vectors = max_vectors
        self.prefer = prefer
        self.cv = cv
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def _check(self, X: Any, sample_weight: Any) -> tuple[Samples, AllRows]:
        population = weighted_population(self, X, sample_weight, minimum=2)
        if isinstance(population, InMemory):
            population = InMemory(population.samples.on_host())
        samples = population.sample
        # a collection of few rows is in memory now
        return samples, AllRows.of(population if population.n > samples.n else InMemory(samples), self.scale)

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        problem = problem.with_candidates(MAX_CANDIDATES, rng)
        by_likelihood = self.criterion == "likelihood"
        folds = self._size_folds(samples, 5 if by_likelihood else None)
        mixture, floor = (self._by_likelihood if by_likelihood else self._by_squared_error)(problem, folds)
        self.least_bandwidth_ = floor * problem.unit
        return mixture

    def _fit_all_rows(self, mixture: RoundMixture, problem: DensityProblem, rows: AllRows) -> RoundMixture:
        if isinstance(self.bandwidth, str):  # one that was given stays
            narrowing = rows.narrowing(problem)
            self.bandwidth_, self.least_bandwidth_ = self.bandwidth_ * narrowing, self.least_bandwidth_ * narrowing
        return expectation_maximization(rows, mixture, self.least_bandwidth_, _MAX_PASSES, _LEAST_RISE).mixture

    def _by_likelihood(self, problem: DensityProblem, folds: list[Fold]) -> tuple[RoundMixture, float]:
        """A mixture and its least bandwidth, in units of the problem's."""
        floor, limit = problem.least_bandwidth, self.max_vectors or 20
        with progress(self, "comparing numbers of kernels", limit) as step:
            if folds:
                self.path_, self.stop_ = choose_size(
                    problem, folds, floor=floor, max_vectors=limit, tolerance=TOLERANCE[self.prefer], step=step
                )
                start = grown(problem, floor, int(self.path_.setting["n_vectors"]))
            else:
                start, self.path_, self.stop_ = forward_likelihood(problem, floor, limit, step)
        found = expectation_maximization(problem, start, floor * problem.unit, _ITERATIONS, _LEAST_RISE)
        if found.stop is Stop.MAX_ITER:
            warnings.warn(
                f"ForwardDensity did not converge in {found.n_iter} EM iterations: the mean log density still rose by "
                f"{found.rise:.2g} in the last one, tolerance {_LEAST_RISE:g}; use fewer kernels (max_vectors).",
                ConvergenceWarning,
                stacklevel=5,
            )
        return found.mixture, floor

    def _by_squared_error(self, problem: DensityProblem, folds: list[Fold]) -> tuple[RoundMixture, float]:
        tolerance, floor, limit = TOLERANCE[self.prefer], problem.least_bandwidth, self.max_vectors or 20
        if folds:
            with progress(self, "comparing least bandwidths", len(FLOORS_IN_PARZEN_BANDWIDTHS) * len(folds)) as step:
                self.path_ = choose_floor(problem, folds, max_vectors=limit, tolerance=tolerance, step=step)
            floor, limit = self.path_.setting["floor"], int(self.path_.setting["n_vectors"])
            steps, self.stop_ = forward_integrated(problem, floor=floor, max_vectors=limit, patience=None)
            mixture = steps[-1].mixture
        else:
            with progress(self, "adding kernels", limit) as step:
                steps, self.stop_ = forward_integrated(problem, floor=floor, max_vectors=limit, step=step)
            chosen, self.path_ = choose_step(steps, problem.w, tolerance)
            mixture = chosen.mixture
        if _is_collapsed(problem, mixture, floor):
            warnings.warn(
                f'ForwardDensity: criterion="squared_error" ended with one kernel in {problem.dim} dimensions, where '
                "the likelihood asks for more; the squared error can be trusted in at most ten. Use "
                'criterion="likelihood", or fewer features.',
                UserWarning,
                stacklevel=5,
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
                stacklevel=5,
            )
        if self.criterion == "likelihood":  # the first that hold out enough samples; all of them for small data
            held = np.cumsum([len(test) for _, test in folds])
            folds = folds[: 1 + int(np.searchsorted(held, _HELD_OUT_ROWS))]
        return folds


def _is_collapsed(problem: DensityProblem, mixture: RoundMixture, floor: float) -> bool:
    """Whether there is one kernel in many dimensions though two are better by BIC: no normal law, but a failure.

    The squared error is reliable up to ten dimensions; beyond them, the densest samples dominate.
    """
    if problem.dim <= 10 or len(mixture.weights) > 1:
        return False
    _, path, _ = forward_likelihood(problem, floor, 2)
    return path.setting["n_vectors"] > 1


class ForwardConstrainedDensity(DensityEstimator):
    r"""The density of the FCR paper: a few kernels that imitate Parzen's estimate (FCR-SDC).

    Use :class:`ForwardDensity` unless you want the paper's system: it is fitted to the true density and not to Parzen's
    estimate of it, and is more accurate with fewer kernels.

    .. math:: \hat p \leftarrow \lambda \hat p + (1-\lambda) K(\cdot, v, \sigma), \qquad
              J = \sum_i w_i \Big(\frac{e_i}{1-h_i}\Big)^2 \quad (20)

    One kernel at a time is mixed in, the one of least leave-one-out score :math:`J`; its bandwidth is tuned by a few
    Gauss-Newton steps.

    Parameters
    ----------
    bandwidth : a rule of :class:`ParzenDensity` or float, default "lscv"
        Parzen's bandwidth :math:`\sigma^{\rm Par}`, a number in units of the scaled data.
    gamma : float or None, default None
        Bandwidth of a candidate, in Parzen bandwidths; :math:`\max(1.25, 3m^{-0.3})` by default. A larger one gives
        fewer kernels and a larger error.
    max_vectors : int or None, default None
        Largest number of kernels; None: at most 100.
    refit : bool, default False
        Whether all weights and bandwidths of the chosen kernels are fitted again together at the end.
    stop : {"loo", "distance", "size"}, default "loo"
        Stop when the leave-one-out score rises, when the distance to Parzen's estimate falls below ``tol`` (relative),
        or at ``max_vectors``.
    tol : float, default 0.0
        See ``stop``; with "loo" the least relative gain of a step.
    bandwidth_rule : {"safe", "abs", "bracket"}, default "safe"
        Bandwidth steps that never raise the error, or the paper's two rules (22) and (11), taken literally.
    eta : float, default 0.5
        Length of these steps.
    n_bandwidth_steps : int, default 5
        Their number.
    mixing : {"jackknife", "ls"}, default "jackknife"
        Estimate of the mixing number :math:`\lambda`: (21), or least squares (18).
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples for the search of the bandwidth, the regression and the candidates where there are more.
    verbose : bool or int, default False
        Show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelMixture
        The fitted density.
    vectors_, weights_, bandwidths_ : arrays
        Centers (in the units of the data), weights and bandwidths (in those of the scaled data) of the kernels.
    indices_ : array
        Rows of the samples that are the centers.
    n_vectors_ : int
        Number of kernels.
    bandwidth_ : float
        Parzen's bandwidth.
    gamma_ : float
        Bandwidth of a new kernel, in units of Parzen's bandwidth.
    path_ : Path
        Leave-one-out score after every kernel.
    stop_ : Stop
        Why the construction ended.

    Notes
    -----
    ``O(n c)`` time per kernel and ``n c`` numbers for ``n`` samples (10,000 at most) and ``c`` candidates (1,000 at
    most, the samples that may become centers). Both are drawn where there are more; Parzen's estimate is that of all.

    References
    ----------
    X. Hong, S. Chen and C. J. Harris, "A forward-constrained regression algorithm for sparse kernel density
    estimation", IEEE Transactions on Neural Networks 19 (2008).

    Examples
    --------
    >>> from fewkern import ForwardConstrainedDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(500, random_state=0)
    >>> ForwardConstrainedDensity(refit=True).fit(X).n_vectors_ < 50
    True
    """

    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "max_vectors",
        gamma=[None, POSITIVE],
        refit=["boolean"],
        stop=[StrOptions({"loo", "distance", "size"})],
        tol=[Interval(Real, 0, None, closed="left")],
        bandwidth_rule=[StrOptions({"safe", "abs", "bracket"})],
        eta=[POSITIVE],
        n_bandwidth_steps=[Interval(Integral, 0, None, closed="left")],
        mixing=[StrOptions({"jackknife", "ls"})],
    )

    def __init__(
        self,
        *,
        bandwidth: Any = "lscv",
        gamma: float | None = None,
        max_vectors: int | None = None,
        refit: bool = False,
        stop: str = "loo",
        tol: float = 0.0,
        bandwidth_rule: str = "safe",
        eta: float = 0.5,
        n_bandwidth_steps: int = 5,
        mixing: str = "jackknife",
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.gamma = gamma
        self.max_vectors = max_vectors
        self.refit = refit
        self.stop = stop
        self.tol = tol
        self.bandwidth_rule = bandwidth_rule
        self.eta = eta
        self.n_bandwidth_steps = n_bandwidth_steps
        self.mixing = mixing
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        self.gamma_ = default_gamma(problem.dim) if self.gamma is None else float(self.gamma)
        self._check_bandwidths(problem, samples, **{"gamma times Parzen's bandwidth": self.gamma_ * self.bandwidth_})
        rows = problem.draw(_MAX_REGRESSION_ROWS, rng)
        part = problem.part(rows).with_candidates(MAX_CANDIDATES, rng)
        target = problem.parzen(part.Z)
        limit = self.max_vectors or 100
        rules = ConstrainedRules(
            self.gamma_, limit, self.stop, self.tol, self.bandwidth_rule, self.eta, self.n_bandwidth_steps, self.mixing
        )
        with progress(self, "adding kernels", limit) as step:
            found = forward_constrained(part, target, rules, step)
        self.path_, self.stop_ = found.path, found.stop
        mixture = refit_jointly(part, target, found.mixture) if self.refit else found.mixture
        return replace(mixture, rows=rows[mixture.rows])
