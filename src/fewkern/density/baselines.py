"""The estimators that the FCR paper compares with: Parzen's window, reduced sets (RSDE), and SKD and SDC."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.progress import progress
from fewkern.arrays.validation import Interval, StrOptions, fit_context, random_generator
from fewkern.core.path import Path, Stop
from fewkern.density.bandwidth import RULES
from fewkern.density.base import POSITIVE, DensityEstimator, density_constraints
from fewkern.density.constrained import default_gamma
from fewkern.density.orthogonal import (
    Passes,
    distribution_target,
    sparse_density_construction,
    sparse_kernel_density,
)
from fewkern.density.simplex import CV_PARZEN_BANDWIDTHS, reduced_set, reduced_set_width

__all__ = ["OrthogonalForwardDensity", "ParzenDensity", "ReducedSetDensity"]


class ParzenDensity(DensityEstimator):
    r"""Parzen window: one normal kernel at every sample, the bandwidth by cross-validation in closed form.

    .. math:: \hat p(x) = \sum_j w_j K(x, x_j, \sigma), \qquad
              \sigma = \arg\min \sum_{i,j} w_i w_j K(x_i, x_j, \sqrt2\sigma)
              - 2 \sum_i \frac{w_i}{1-w_i} \sum_{j\ne i} w_j K(x_i, x_j, \sigma) \qquad (5)

    Parameters
    ----------
    bandwidth : {"lscv", "lscv-approximate", "likelihood", "silverman", "scott"} or float, default "lscv"
        Least-squares cross-validation (exact, or the paper's approximation), likelihood cross-validation, a rule of
        thumb, or a number, in units of the scaled data.
    grid : array-like or None, default None
        Bandwidths to try; by default 30 from 0.15 to 1.5 times Silverman's. A minimum at an end extends the grid.
    max_candidates : int, default 2000
        Maximum number of samples used to select the bandwidth, which is then scaled to all of them.
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples for the search where there are more than ``max_candidates``.
    verbose : bool or int, default False
        Show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelMixture
        The fitted density.
    vectors_, weights_, bandwidths_ : arrays
        Centers, weights and bandwidths of the kernels.
    indices_ : array
        Rows of the samples with positive weight.
    n_vectors_ : int
        Number of kernels.
    bandwidth_ : float
        The bandwidth of the kernels.
    path_ : Path
        Score of every bandwidth tried.
    stop_ : Stop
        "inside" the bandwidths tried, at their "edge", or "given".

    Notes
    -----
    Search ``O(G n^2 m)`` in row blocks, evaluation ``O(n m)`` per sample: see :class:`ForwardDensity` for a few
    kernels. Duplicated samples drive cross-validation to a bandwidth of zero; a warning says so.

    References
    ----------
    X. Hong, S. Chen and C. J. Harris, "A forward-constrained regression algorithm for sparse kernel density
    estimation", IEEE Transactions on Neural Networks 19 (2008), sec. II.

    Examples
    --------
    >>> from fewkern import ParzenDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> density = ParzenDensity().fit(X)
    >>> density.n_vectors_, density.score_samples(X[:2]).shape
    (300, (2,))
    """

    path_: Path
    stop_: Stop
    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        grid=["array-like", None], max_candidates=[Interval(Integral, 2, None, closed="left")]
    )

    def __init__(
        self,
        *,
        bandwidth: Any = "lscv",
        grid: Any = None,
        max_candidates: int = 2000,
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.grid = grid
        self.max_candidates = max_candidates
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ParzenDensity:
        """Select the bandwidth.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, scaling = self._check(X, sample_weight)
        problem = scaling.problem(samples)
        self._check_bandwidths(problem, samples, bandwidth=self.bandwidth, grid=self.grid)
        rng = random_generator(self.random_state)
        search = self._parzen_width(problem, self.bandwidth, rng, grid=self.grid, limit=self.max_candidates)
        self.bandwidth_, self.path_, self.stop_ = search.width, search.path, search.stop
        self._keep_fit(problem.mixture(problem.candidates, search.width, problem.w), scaling, samples, X)
        return self


class ReducedSetDensity(DensityEstimator):
    r"""Reduced set density estimator (RSDE): all weights at once by a quadratic programme on the simplex.

    .. math:: \min_g\; \tfrac12 g'Bg - v'g, \quad g \ge 0,\; 1'g = 1, \qquad
              B_{ij} = K(x_i, x_j, \sqrt2\sigma), \quad v_j = \sum_i w_i K(x_i, x_j, \sigma)

    Parameters
    ----------
    bandwidth : "cv", a rule of :class:`ParzenDensity`, or float, default "cv"
        "cv" chooses among multiples of Parzen's bandwidth by the cross-validated integrated squared error of the
        candidates. At Parzen's own bandwidth the method over-fits. A number is in units of the scaled data.
    cv : int or cross-validation splitter, default 5
        Folds for ``bandwidth="cv"``.
    max_candidates : int, default 1000
        Samples that may become centers; drawn where there are more. All samples enter ``v``.
    tol : float, default 1e-10
        A reduced gradient above minus this number, relative to the size of ``B`` and ``v``, counts as zero.
    max_iter : int, default 100000
        Largest number of linear systems that the solver may solve.
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
    vectors_, weights_, bandwidths_, indices_, n_vectors_
        As in :class:`ParzenDensity`; the kernels share one bandwidth.
    bandwidth_ : float
        The bandwidth of the kernels.
    path_ : Path
        Cross-validated error of every bandwidth tried, or the search of Parzen's bandwidth where that was taken.
    gap_ : float
        Largest violation of the optimality conditions, relative to the size of ``B`` and ``v``.
    n_iter_ : int
        Number of linear systems solved.
    stop_ : Stop
        "converged", "precision" (rounding ended the descent at a larger ``gap_`` than ``tol``), or "max_iter".

    Notes
    -----
    ``c^2`` numbers for ``c`` candidates; the active set costs ``O(s^3 + c s)`` per system with ``s`` kernels, and is
    solved in every fold for ten bandwidths. Where there are more samples than candidates, the bandwidths are compared
    on the candidates alone, and of all samples only ``v`` is computed: the time is ``O(n c)`` more.

    Examples
    --------
    >>> from fewkern import ReducedSetDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> density = ReducedSetDensity().fit(X)
    >>> density.n_vectors_ < 100, str(density.stop_)
    (True, 'converged')
    """

    path_: Path
    stop_: Stop
    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "cv",
        "max_iter",
        bandwidth=[StrOptions({"cv", *RULES}), POSITIVE],
        max_candidates=[Interval(Integral, 2, None, closed="left")],
        tol=[Interval(Real, 0, 1, closed="neither")],
    )

    def __init__(
        self,
        *,
        bandwidth: Any = "cv",
        cv: Any = 5,
        max_candidates: int = 1000,
        tol: float = 1e-10,
        max_iter: int = 100_000,
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.cv = cv
        self.max_candidates = max_candidates
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ReducedSetDensity:
        """Fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, scaling = self._check(X, sample_weight)
        rng = random_generator(self.random_state)
        problem = scaling.problem(samples)
        self._check_bandwidths(problem, samples, bandwidth=self.bandwidth)
        search = self._parzen_width(problem, "lscv" if self.bandwidth == "cv" else self.bandwidth, rng)
        problem = replace(problem, unit=search.width).with_candidates(self.max_candidates, rng)
        self.bandwidth_, self.path_ = search.width, search.path
        some = samples if samples.n <= self.max_candidates else samples.take(problem.candidates)
        folds = self._folds(some, self.cv) if self.bandwidth == "cv" else []
        if folds:
            with progress(self, "comparing bandwidths", len(CV_PARZEN_BANDWIDTHS)) as step:
                self.path_ = reduced_set_width(problem, folds, step)
            self.bandwidth_ = self.path_.setting["bandwidth"]
        elif self.bandwidth == "cv":
            warnings.warn(
                f"ReducedSetDensity: {samples.n} samples of positive weight are too few for folds; the bandwidth is "
                "that of Parzen's estimate. Give the bandwidth as a number, or more samples.",
                UserWarning,
                stacklevel=3,
            )
        found = reduced_set(problem, self.bandwidth_, tol=self.tol, max_iter=self.max_iter)
        self.gap_, self.n_iter_, self.stop_ = found.solution.gap, found.solution.n_iter, found.solution.stop
        if self.stop_ is Stop.MAX_ITER:
            warnings.warn(
                f"ReducedSetDensity did not converge in max_iter = {self.max_iter} systems: the largest violation of "
                f"the optimality conditions is {self.gap_:.2g}, tol = {self.tol:g}; increase max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._keep_fit(found.mixture, scaling, samples, X)
        return self


class OrthogonalForwardDensity(DensityEstimator):
    r"""Densities by orthogonal forward regression with a leave-one-out score: SKD and SDC.

    ``target="parzen"`` (SKD) regresses Parzen's estimate on kernels of a common bandwidth :math:`\rho` and then solves
    the simplex programme on the chosen ones; ``target="distribution"`` (SDC) regresses the empirical distribution
    function on integrated kernels, under non-negative weights.

    .. math:: J_n = \frac1N \sum_i (e_i / \eta_i)^2, \qquad e \leftarrow e - \theta_j w_j, \qquad
              \eta \leftarrow \eta - \frac{w_j \circ w_j}{w_j'w_j + \lambda_j}

    Parameters
    ----------
    target : {"parzen", "distribution"}, default "parzen"
    kernel_bandwidth : float or "auto", default "auto"
        The common bandwidth :math:`\rho`, in units of the scaled data; "auto" is :math:`\max(1.25, 3m^{-0.3})` Parzen
        bandwidths.
    bandwidth : a rule of :class:`ParzenDensity` or float, default "lscv"
        Bandwidth of Parzen's estimate.
    n_passes : int, default 10
        Passes with a penalty of its own for every column, after the first one.
    max_vectors : int or None, default None
        Maximum number of kernels; None for no limit.
    max_candidates : int, default 2000
        Samples that the regression sees and that may become centers; drawn where there are more. The target always
        comes from all samples.
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
    vectors_, weights_, bandwidths_, indices_, n_vectors_
        As in :class:`ParzenDensity`; the kernels share one bandwidth.
    bandwidth_ : float
        Bandwidth of Parzen's estimate.
    total_ : float
        Sum of the regression weights before it was made one: far from one, the regression has found little.
    path_ : Path
        Leave-one-out score after every column of the last pass.
    stop_ : Stop
        Why the last pass ended.

    Notes
    -----
    ``O(s c^2)`` time and ``c^2`` numbers for ``c`` candidates. The target "distribution" is tied to the axes and
    carries little information in more than a few dimensions. Both are reconstructions: the paper quotes them without
    their details.

    Examples
    --------
    >>> from fewkern import OrthogonalForwardDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> OrthogonalForwardDensity().fit(X).n_vectors_ < 50
    True
    """

    path_: Path
    stop_: Stop
    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "max_vectors",
        target=[StrOptions({"parzen", "distribution"})],
        kernel_bandwidth=[StrOptions({"auto"}), POSITIVE],
        n_passes=[Interval(Integral, 0, None, closed="left")],
        max_candidates=[Interval(Integral, 2, None, closed="left")],
    )

    def __init__(
        self,
        *,
        target: str = "parzen",
        kernel_bandwidth: Any = "auto",
        bandwidth: Any = "lscv",
        n_passes: int = 10,
        max_vectors: int | None = None,
        max_candidates: int = 2000,
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.target = target
        self.kernel_bandwidth = kernel_bandwidth
        self.bandwidth = bandwidth
        self.n_passes = n_passes
        self.max_vectors = max_vectors
        self.max_candidates = max_candidates
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OrthogonalForwardDensity:
        """Fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, scaling = self._check(X, sample_weight)
        rng = random_generator(self.random_state)
        problem = scaling.problem(samples)
        self._check_bandwidths(problem, samples, bandwidth=self.bandwidth, kernel_bandwidth=self.kernel_bandwidth)
        self.bandwidth_ = self._parzen_width(problem, self.bandwidth, rng).width
        problem = replace(problem, unit=self.bandwidth_)
        automatic = isinstance(self.kernel_bandwidth, str)
        rho = default_gamma(problem.dim) * self.bandwidth_ if automatic else float(self.kernel_bandwidth)
        rows = problem.draw(self.max_candidates, rng)
        part = problem.part(rows)
        with progress(self, "selecting kernels, by passes", self.n_passes) as step:
            passes = Passes(self.n_passes, self.max_vectors, step)
            if self.target == "parzen":
                found = sparse_kernel_density(part, problem.parzen(part.Z), rho, passes)
            else:
                found = sparse_density_construction(part, distribution_target(part.Z, problem), rho, passes)
        if found.regression.stop is Stop.PRECISION:
            raise ValueError(
                f"OrthogonalForwardDensity: with bandwidth {rho:.3g} in {problem.dim} dimensions, all columns for "
                f'target="{self.target}" underflow to zero; use target="parzen", or a kernel_bandwidth near Parzen\'s.'
            )
        self.total_, self.path_, self.stop_ = found.total, found.path, found.regression.stop
        self._keep_fit(replace(found.mixture, rows=rows[found.mixture.rows]), scaling, samples, X)
        return self
