"""ForwardConstrainedDensity: the density of the paper (FCR-SDC)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fewkern.arrays.progress import progress
from fewkern.arrays.validation import StrOptions
from fewkern.core.samples import Samples
from fewkern.density.base import MAX_CANDIDATES, POSITIVE, DensityEstimator, density_constraints
from fewkern.density.constrained import ConstrainedRules, default_gamma, forward_constrained, refit_jointly
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["ForwardConstrainedDensity"]

# Samples at which ForwardConstrainedDensity matches Parzen's estimate, which itself comes from all samples.
_MAX_REGRESSION_ROWS = 10_000


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
    bandwidth_rule : {"safe", "abs"}, default "safe"
        Bandwidth steps that never raise the error, or those of the paper (22), taken literally.
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
        bandwidth_rule=[StrOptions({"safe", "abs"})],
    )

    def __init__(
        self,
        *,
        bandwidth: Any = "lscv",
        gamma: float | None = None,
        max_vectors: int | None = None,
        refit: bool = False,
        bandwidth_rule: str = "safe",
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.gamma = gamma
        self.max_vectors = max_vectors
        self.refit = refit
        self.bandwidth_rule = bandwidth_rule
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
        rules = ConstrainedRules(self.gamma_, limit, self.bandwidth_rule)
        with progress(self, "adding kernels", limit) as step:
            found = forward_constrained(part, target, rules, step)
        self.path_, self.stop_ = found.path, found.stop
        mixture = refit_jointly(part, target, found.mixture) if self.refit else found.mixture
        return replace(mixture, rows=rows[mixture.rows])
