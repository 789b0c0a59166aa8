"""ParzenDensity: one kernel at every sample."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from fewkern.arrays.namespace import namespace
from fewkern.arrays.validation import Interval, fit_context, random_generator
from fewkern.core.path import Path, Stop
from fewkern.density.base import DensityEstimator, density_constraints

__all__ = ["ParzenDensity"]


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
        Bandwidths to try; by default 30 from 0.15 to 1.5 times Silverman's. At an end of it the search goes on.
    max_candidates : int, default 2000
        Maximum number of samples used to select the bandwidth, which is then scaled to all of them.
    scale : {"std", "whiten", "none"}, default "std"
        The features are first divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples for the search where there are more than ``max_candidates``.

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
    ) -> None:
        self.bandwidth = bandwidth
        self.grid = grid
        self.max_candidates = max_candidates
        self.scale = scale
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ParzenDensity:
        """Find the bandwidth.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, scaling = self._check(X, sample_weight)
        problem = scaling.problem(samples)
        rng = random_generator(self.random_state)
        search = self._parzen_width(problem, self.bandwidth, rng, grid=self.grid, limit=self.max_candidates)
        self.bandwidth_, self.path_, self.stop_ = search.width, search.trace, search.stop
        widths = namespace(problem.w).full_like(problem.w, search.width)
        self._keep(problem.mixture(problem.candidates, widths, problem.w), scaling, samples)
        return self
