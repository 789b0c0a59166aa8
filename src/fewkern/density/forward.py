"""ForwardDensity: a density from a few kernels, one at a time (FCR)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

from fewkern.backend.folds import Fold
from fewkern.backend.progress import progress
from fewkern.backend.validation import Interval, StrOptions, fit_context, random_generator
from fewkern.base import CONSTRAINTS
from fewkern.core.samples import Samples
from fewkern.core.trace import TOLERANCE, Stop, Trace
from fewkern.density.base import DensityEstimator, density_constraints
from fewkern.density.integrated import FLOORS, choose_floor, forward_integrated
from fewkern.density.likelihood import expectation_maximization, forward_likelihood
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["ForwardDensity"]

# Least width of a kernel, in units of Parzen's width: the smoothing that a few kernels need.
_FLOOR = 1.5
_POLISH_ITERATIONS = 50
# The entry of a kernel by likelihood is scored on this many samples at most: it costs their square.
_LIKELIHOOD_CANDIDATES = 2000


class ForwardDensity(DensityEstimator):
    r"""A density from a few normal kernels with widths of their own, found one at a time (FCR).

    .. math:: \hat p(x) = \sum_{j=1}^s g_j K(x, v_j, \sigma_j), \qquad g_j \ge 0, \quad \sum_j g_j = 1

    Every step mixes one more kernel in, :math:`\hat p \leftarrow (1-a) \hat p + a K(\cdot, v, \sigma)`,
    and a score on samples left out says when to end.

    Parameters
    ----------
    criterion : {"squared_error", "likelihood"}, default "squared_error"
        What the construction lowers: an unbiased estimate of the integrated squared error to the true density
        (FCR-ISE), the size by leave-one-out in closed form; or minus the likelihood (FCR-ML), the size by BIC. The
        latter is the sparsest, for densities of a few smooth lumps.
    width : a rule of :class:`ParzenDensity` or float, default "lscv"
        Parzen's width, a number in units of the scaled data. No kernel is narrower than 1.5 times this width, so a
        larger one gives a smoother density.
    max_vectors : int, default 20
        Maximum number of kernels.
    prefer : {"accurate", "balanced", "sparse"}, default "accurate"
        Size for "squared_error": that of the least leave-one-out error, or the smallest within half a standard error
        of it, or within one.
    cv : int, cross-validation splitter or None, default None
        If given, the least width (1.25 to 2.25 Parzen widths) and the size for "squared_error" are chosen by
        cross-validation, at 25 times the cost with 5 folds.
    polish : bool, default True
        For "squared_error": 50 EM iterations on weights, centers and widths at the end. The centers then are no longer
        samples.
    max_candidates : int, default 1000
        Samples that may become centers; drawn where there are more.
    scale : {"std", "whiten", "none"}, default "std"
        The features are first divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates, and the samples on which Parzen's width is selected, where there are more.
    verbose : bool, default False
        Whether to draw a progress bar.

    Attributes
    ----------
    expansion_ : KernelMixture
    vectors_, weights_, widths_ : arrays
        Centers (in the units of the data), weights and widths (in those of the scaled data) of the kernels.
    indices_ : array or None
        Rows of the samples that are the centers; None where they are not samples ("likelihood", or after the polish).
    n_vectors_ : int
    width_ : float
        Parzen's width.
    least_width_ : float
        Width that no kernel is below, in the same units.
    trace_ : Trace
        Error of every number of kernels.
    stop_ : Stop
        Why the construction ended.

    Notes
    -----
    ============================ =====================================
    symbol                       name
    ============================ =====================================
    :math:`s`                    ``n_vectors_``
    :math:`g, v_j, \sigma_j`     ``weights_``, ``vectors_``, ``widths_``
    :math:`\sigma^{\rm Par}`     ``width_``
    ============================ =====================================

    With ``n`` samples, ``c`` candidates and 14 widths: ``O(14 n c m)`` once and ``O(n s + 14 c s^2)`` per step,
    memory ``O(n s + 14 c s)``. Evaluation ``O(s m)`` per sample.

    A density of few kernels has thin tails: errors weighted by the density do not see it, the log-likelihood does.
    An ordinary mixture of round Gaussians does as well as "likelihood", which adds a deterministic start and a floor on
    the widths. The system of the paper is :class:`ForwardConstrainedDensity`.

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

    trace_: Trace
    stop_: Stop
    _parameter_constraints: dict[str, list[Any]] = density_constraints(
        "prefer",
        "verbose",
        criterion=[StrOptions({"squared_error", "likelihood"})],
        max_vectors=[Interval(Integral, 1, None, closed="left")],
        cv=[None, *CONSTRAINTS["cv"]],
        polish=["boolean"],
        max_candidates=[Interval(Integral, 1, None, closed="left")],
    )

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        width: Any = "lscv",
        max_vectors: int = 20,
        prefer: str = "accurate",
        cv: Any = None,
        polish: bool = True,
        max_candidates: int = 1000,
        scale: str = "std",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.width = width
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
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        samples, scaling = self._check(X, sample_weight)
        rng = random_generator(self.random_state)
        problem = scaling.problem(samples)
        self.width_ = self._parzen_width(problem, self.width, rng).width
        problem = replace(problem, unit=self.width_)
        if self.criterion == "likelihood":
            limit = min(self.max_candidates, _LIKELIHOOD_CANDIDATES)
            mixture = self._by_likelihood(problem.with_candidates(limit, rng))
        else:
            problem = problem.with_candidates(self.max_candidates, rng)
            mixture = self._by_squared_error(problem, self._folds(samples))
            if self.polish:
                mixture = expectation_maximization(problem, mixture, self.least_width_, _POLISH_ITERATIONS)
        self._keep(mixture, scaling, samples)
        return self

    def _by_likelihood(self, problem: DensityProblem) -> RoundMixture:
        with progress("kernels", self.max_vectors, bool(self.verbose)) as step:
            found = forward_likelihood(problem, floor=_FLOOR, max_vectors=self.max_vectors, step=step)
        self.least_width_, self.trace_, self.stop_ = _FLOOR * problem.unit, found.trace, found.stop
        return found.mixture

    def _by_squared_error(self, problem: DensityProblem, folds: list[Fold]) -> RoundMixture:
        tolerance, floor = TOLERANCE[self.prefer], _FLOOR
        limit = self.max_vectors
        if folds:
            with progress("cross-validation", len(FLOORS) * len(folds), bool(self.verbose)) as step:
                choice = choose_floor(problem, folds, max_vectors=limit, tolerance=tolerance, step=step)
            floor, limit = choice.setting["floor"], int(choice.setting["n_vectors"])
            path = forward_integrated(problem, floor=floor, max_vectors=limit, patience=None)
            at, self.trace_ = len(path.steps) - 1, choice
        else:
            with progress("kernels", limit, bool(self.verbose)) as step:
                path = forward_integrated(problem, floor=floor, max_vectors=limit, step=step)
            at, self.trace_ = path.choose(tolerance)
        self.least_width_, self.stop_ = floor * problem.unit, path.stop
        return path.mixture(at)

    def _folds(self, samples: Samples) -> list[Fold]:
        if self.cv is None:
            return []
        folds = samples.folds(self.cv)
        if not folds:
            warnings.warn(
                f"ForwardDensity: {samples.n} samples of positive weight are too few for folds; the size is chosen by "
                "leave-one-out. Give more samples, or cv=None.",
                UserWarning,
                stacklevel=4,
            )
        return folds
