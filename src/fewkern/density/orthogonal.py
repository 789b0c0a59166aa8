"""OrthogonalForwardDensity: densities by orthogonal forward regression (SKD and SDC)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

from fewkern.arrays.namespace import take_rows
from fewkern.arrays.progress import progress
from fewkern.arrays.validation import Interval, StrOptions, fit_context, random_generator
from fewkern.core.path import Path, Stop
from fewkern.density.base import POSITIVE, DensityEstimator, density_constraints
from fewkern.density.constrained import default_gamma
from fewkern.density.orthogonal_regression import (
    Passes,
    distribution_target,
    sparse_density_construction,
    sparse_kernel_density,
)

__all__ = ["OrthogonalForwardDensity"]


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
        The features are first divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples on which Parzen's bandwidth is selected, where there are more.
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

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
        "verbose",
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
        self.bandwidth_ = self._parzen_width(problem, self.bandwidth, rng).width
        problem = replace(problem, unit=self.bandwidth_)
        rho = (
            default_gamma(problem.dim) * self.bandwidth_
            if self.kernel_bandwidth == "auto"
            else float(self.kernel_bandwidth)
        )
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
                f"OrthogonalForwardDensity: in {problem.dim} dimensions the distribution functions of all kernels are "
                'zero in floating-point numbers; use target="parzen".'
            )
        self.total_, self.path_, self.stop_ = found.total, found.trace, found.regression.stop
        mixture = replace(found.mixture, rows=take_rows(rows, found.mixture.rows))
        self._keep(mixture, scaling, samples)
        return self
