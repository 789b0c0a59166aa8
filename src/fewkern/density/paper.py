"""The estimators of the FCR paper: its own (FCR-SDC), and Parzen's window, reduced sets (RSDE), SKD and SDC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.arrays.progress import progress
from fewkern.arrays.validation import StrOptions
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.density.bandwidth import RULES
from fewkern.density.base import MAX_CANDIDATES, POSITIVE, DensityEstimator, density_constraints
from fewkern.density.constrained import ConstrainedRules, default_gamma, forward_constrained
from fewkern.density.orthogonal import PASSES, distribution_target, sparse_density_construction, sparse_kernel_density
from fewkern.density.problem import DensityProblem, RoundMixture
from fewkern.density.simplex import CV_PARZEN_BANDWIDTHS, reduced_set, reduced_set_bandwidths

# Samples that SKD and SDC use, and that may become centers: the cost of the regression is their square.
_MAX_ORTHOGONAL_ROWS = 2000
# Samples at which ForwardConstrainedDensity matches Parzen's estimate, which itself comes from all samples.
_MAX_REGRESSION_ROWS = 10_000


class ParzenDensity(DensityEstimator):
    r"""Parzen window: one normal kernel at every sample, the bandwidth by cross-validation in closed form.

    .. math:: \hat p(x) = \sum_j w_j K(x, x_j, \sigma), \qquad
              \sigma = \arg\min \sum_{i,j} w_i w_j K(x_i, x_j, \sqrt2\sigma)
              - 2 \sum_i \frac{w_i}{1-w_i} \sum_{j\ne i} w_j K(x_i, x_j, \sigma) \qquad (5)

    Parameters
    ----------
    bandwidth : {"lscv", "lscv-approximate", "likelihood", "silverman", "scott"} or float, default "lscv"
        Least-squares cross-validation (exact, or the paper's approximation), likelihood cross-validation, a rule of
        thumb, or a number, in units of the scaled data. Cross-validation compares 30 bandwidths from 0.15 to 1.5 times
        Silverman's, more where the best one is at an end. It looks at 2,000 samples at most, and the bandwidth is then
        scaled to all of them.
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples of the cross-validation where there are more.

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
    kernels. Duplicated samples drive cross-validation to a bandwidth of zero, with a warning.

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

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        return problem.mixture(problem.candidates, problem.unit, problem.w)


class ForwardConstrainedDensity(DensityEstimator):
    r"""The density of the FCR paper: a few kernels that imitate Parzen's estimate (FCR-SDC).

    Use :class:`ForwardDensity` unless you want the paper's method: it is fitted to the true density and not to Parzen's
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
    bandwidth_rule : {"safe", "abs"}, default "safe"
        Bandwidth steps that never raise the error, or those of the paper (22), taken literally.
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples for the search of the bandwidth, the regression and the candidates where there are more.

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

    Examples
    --------
    >>> from fewkern import ForwardConstrainedDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(500, random_state=0)
    >>> ForwardConstrainedDensity().fit(X).n_vectors_ < 100
    True
    """

    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "max_vectors",
        gamma=[None, POSITIVE],
        bandwidth_rule=[StrOptions({"safe", "abs"})],
    )

    def __init__(
        self,
        *,
        bandwidth: Any = "lscv",
        gamma: float | None = None,
        max_vectors: int | None = None,
        bandwidth_rule: str = "safe",
        scale: str = "std",
        random_state: Any = 0,
    ) -> None:
        super().__init__(bandwidth=bandwidth, scale=scale, random_state=random_state)
        self.gamma = gamma
        self.max_vectors = max_vectors
        self.bandwidth_rule = bandwidth_rule

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        self.gamma_ = default_gamma(problem.dim) if self.gamma is None else float(self.gamma)
        self._check_bandwidth(problem, samples, "gamma times Parzen's bandwidth", self.gamma_ * self.bandwidth_)
        rows = problem.draw(_MAX_REGRESSION_ROWS, rng)
        part = problem.part(rows).with_candidates(MAX_CANDIDATES, rng)
        target = problem.parzen(part.Z)
        limit = self.max_vectors or 100
        rules = ConstrainedRules(self.gamma_, limit, self.bandwidth_rule)
        with progress(self, "adding kernels", limit) as step:
            found = forward_constrained(part, target, rules, step)
        self.path_, self.stop_ = found.path, found.stop
        return replace(found.mixture, rows=rows[found.mixture.rows])


class ReducedSetDensity(DensityEstimator):
    r"""Reduced set density estimator (RSDE): all weights at once by a quadratic programme on the simplex.

    .. math:: \min_g\; \tfrac12 g'Bg - v'g, \quad g \ge 0,\; 1'g = 1, \qquad
              B_{ij} = K(x_i, x_j, \sqrt2\sigma), \quad v_j = \sum_i w_i K(x_i, x_j, \sigma)

    Parameters
    ----------
    bandwidth : "cv", a rule of :class:`ParzenDensity`, or float, default "cv"
        "cv" chooses among multiples of Parzen's bandwidth by the integrated squared error of the candidates in five
        folds. At Parzen's own bandwidth the method over-fits. A number is in units of the scaled data.
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples on which Parzen's bandwidth is selected, where there are more.

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
        "converged", or "precision": rounding ended the descent at a larger ``gap_`` than 1e-10.

    Notes
    -----
    ``c^2`` numbers for ``c`` candidates, the samples that may become centers: at most 1,000, drawn where there are
    more. The active set costs ``O(s^3 + c s)`` per system with ``s`` kernels, and is solved in every fold for ten
    bandwidths. Where there are more samples than candidates, the bandwidths are compared on the candidates alone, and
    of all samples only ``v`` is computed: the time is ``O(n c)`` more.

    Examples
    --------
    >>> from fewkern import ReducedSetDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> density = ReducedSetDensity().fit(X)
    >>> density.n_vectors_ < 100, str(density.stop_)
    (True, 'converged')
    """

    _parameter_constraints: dict[str, list[Any]] = density_constraints(bandwidth=[StrOptions({"cv", *RULES}), POSITIVE])

    def __init__(self, *, bandwidth: Any = "cv", scale: str = "std", random_state: Any = 0) -> None:
        super().__init__(bandwidth=bandwidth, scale=scale, random_state=random_state)

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        problem = problem.with_candidates(MAX_CANDIDATES, rng)
        if self.bandwidth == "cv":
            otherwise = "the bandwidth is that of Parzen's estimate. Give the bandwidth as a number, or more samples."
            folds = self._folds(samples.take(problem.candidates), 5, otherwise)
            if folds:
                with progress(self, "comparing bandwidths", len(CV_PARZEN_BANDWIDTHS)) as step:
                    self.path_ = reduced_set_bandwidths(problem, folds, step)
                self.bandwidth_ = self.path_.setting["bandwidth"]
        mixture, solution = reduced_set(problem, self.bandwidth_)
        self.gap_, self.n_iter_, self.stop_ = solution.gap, solution.n_iter, solution.stop
        return mixture


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
    max_vectors : int or None, default None
        Maximum number of kernels; None for no limit.
    scale : {"std", "whiten", "none"}, default "std"
        Divide the features by their standard deviations, decorrelate them, or leave them as they are (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples on which Parzen's bandwidth is selected, where there are more.

    Attributes
    ----------
    expansion_ : KernelMixture
        The fitted density.
    vectors_, weights_, bandwidths_, indices_, n_vectors_
        As in :class:`ParzenDensity`; the kernels share one bandwidth.
    bandwidth_ : float
        Bandwidth of Parzen's estimate.
    total_ : float
        Sum of the regression weights before normalization: far from one, the regression has found little.
    path_ : Path
        Leave-one-out score after every column of the last pass.
    stop_ : Stop
        Why the last pass ended.

    Notes
    -----
    ``O(s c^2)`` time and ``c^2`` numbers for ``c`` samples that the regression sees and that may become centers: at
    most 2,000, drawn where there are more. The target always comes from all samples. After a first pass there are ten
    with a penalty of its own for every column. The target "distribution" is tied to the axes and carries little
    information in more than a few dimensions. Both are reconstructions: the paper quotes them without their details.

    Examples
    --------
    >>> from fewkern import OrthogonalForwardDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> OrthogonalForwardDensity().fit(X).n_vectors_ < 50
    True
    """

    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "max_vectors",
        target=[StrOptions({"parzen", "distribution"})],
        kernel_bandwidth=[StrOptions({"auto"}), POSITIVE],
    )

    def __init__(
        self,
        *,
        target: str = "parzen",
        kernel_bandwidth: Any = "auto",
        bandwidth: Any = "lscv",
        max_vectors: int | None = None,
        scale: str = "std",
        random_state: Any = 0,
    ) -> None:
        super().__init__(bandwidth=bandwidth, scale=scale, random_state=random_state)
        self.target = target
        self.kernel_bandwidth = kernel_bandwidth
        self.max_vectors = max_vectors

    def _fit(self, problem: DensityProblem, samples: Samples, rng: Any) -> RoundMixture:
        self._check_bandwidth(problem, samples, "kernel_bandwidth", self.kernel_bandwidth)
        automatic = isinstance(self.kernel_bandwidth, str)
        rho = default_gamma(problem.dim) * problem.unit if automatic else float(self.kernel_bandwidth)
        rows = problem.draw(_MAX_ORTHOGONAL_ROWS, rng)
        part = problem.part(rows)
        with progress(self, "selecting kernels, by passes", PASSES) as step:
            if self.target == "parzen":
                target = problem.parzen(part.Z)
                found, regression = sparse_kernel_density(part, target, rho, limit=self.max_vectors, step=step)
            else:
                target = distribution_target(part.Z, problem)
                found, regression = sparse_density_construction(part, target, rho, limit=self.max_vectors, step=step)
        if regression.stop is Stop.PRECISION:
            raise ValueError(
                f"OrthogonalForwardDensity: with bandwidth {rho:.3g} in {problem.dim} dimensions, all columns for "
                f'target="{self.target}" underflow to zero; use target="parzen", or a kernel_bandwidth near Parzen\'s.'
            )
        self.total_, self.path_, self.stop_ = float(np.sum(regression.weights)), regression.path, regression.stop
        return replace(found, rows=rows[found.rows])
