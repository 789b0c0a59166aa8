"""ParzenDensity, which keeps every sample, and the sparse densities that the FCR paper compares itself with."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from fewkern.backend.namespace import namespace, take_rows
from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.density.base import DENSITY_CONSTRAINTS, WIDTH_RULES, DensityEstimator
from fewkern.density.constrained import default_gamma, parzen_target
from fewkern.density.reduction import reduced_set, reduced_set_width
from fewkern.density.regression import (
    distribution_target,
    sparse_density_construction,
    sparse_kernel_density,
)

__all__ = ["OrthogonalForwardDensity", "ParzenDensity", "ReducedSetDensity"]


class ParzenDensity(DensityEstimator):
    r"""Parzen window: one normal kernel at every sample, the width by cross-validation in closed form.

    .. math:: \hat p(x) = \sum_j w_j K(x, x_j, \sigma), \qquad
              \sigma = \arg\min \sum_{i,j} w_i w_j K(x_i, x_j, \sqrt2\sigma)
              - 2 \sum_i \frac{w_i}{1-w_i} \sum_{j\ne i} w_j K(x_i, x_j, \sigma) \qquad (5)

    Parameters
    ----------
    width : {"lscv", "lscv-approximate", "likelihood", "silverman", "scott"} or float, default "lscv"
        Least-squares cross-validation (exact, or the paper's approximation), likelihood cross-validation, a rule of
        thumb, or a number, in units of the scaled data.
    grid : array-like or None, default None
        Widths to try; by default 30 from 0.15 to 1.5 times Silverman's. At an end of it the search goes on.
    scale : {"std", "whiten", "none"}, default "std"
        Inside, the features are divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    search_rows : int, default 2000
        Cross-validation looks at this many samples at most, and then scales the width to all of them.
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples for the search where there are more than ``search_rows``.

    Attributes
    ----------
    expansion_ : KernelMixture
    vectors_, weights_, widths_ : arrays
        Centres, weights and widths of the kernels.
    indices_ : array
        Rows of the samples with positive weight.
    n_vectors_ : int
    width_ : float
    trace_ : WidthSearch
        Every width tried, with its score.
    stop_ : str
        "inside" the grid, "edge", "duplicates", or "given".

    Notes
    -----
    Search ``O(G n^2 m)`` in row blocks, evaluation ``O(n m)`` per sample: see :class:`ForwardDensity` for a few
    kernels. Duplicated samples drive cross-validation to a width of zero; a warning says so.

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

    _parameter_constraints: dict[str, list[Any]] = {**DENSITY_CONSTRAINTS, "grid": ["array-like", None]}

    def __init__(
        self,
        *,
        width: Any = "lscv",
        grid: Any = None,
        scale: str = "std",
        search_rows: int = 2000,
        random_state: Any = 0,
    ) -> None:
        self.width = width
        self.grid = grid
        self.scale = scale
        self.search_rows = search_rows
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ParzenDensity:
        """Find the width.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        X, samples = self._scaled(X, sample_weight)
        self.trace_ = self._parzen_width(samples, self.width, self.grid)
        self.width_, self.stop_ = self.trace_.width, self.trace_.status
        widths = namespace(X).full_like(samples.w, self.width_)
        self._keep(X, samples, widths, samples.w, chosen=samples.every_row())
        return self


class ReducedSetDensity(DensityEstimator):
    r"""Reduced set density estimator (RSDE): all weights at once by a quadratic programme on the simplex.

    .. math:: \min_g\; \tfrac12 g'Bg - v'g, \quad g \ge 0,\; 1'g = 1, \qquad
              B_{ij} = K(x_i, x_j, \sqrt2\sigma), \quad v_j = \sum_i w_i K(x_i, x_j, \sigma)

    Parameters
    ----------
    width : "cv", a rule of :class:`ParzenDensity`, or float, default "cv"
        "cv" chooses among multiples of Parzen's width by the cross-validated integrated squared error. At Parzen's own
        width the method over-fits. A number is in units of the scaled data.
    solver : {"active-set", "mnqp"}, default "active-set"
        Exact, or the multiplicative updates of the literature, which only come close.
    threshold : float, default 1e-4
        With "mnqp", weights at or below it are dropped.
    max_iter : int, default 3000
        Iterations of "mnqp".
    max_candidates : int, default 2000
        Samples that may become centres; drawn where there are more. All samples enter ``v``.
    n_folds : int, default 5
        For ``width="cv"``.
    scale : {"std", "whiten", "none"}, default "std"
        Inside, the features are divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    search_rows : int, default 2000
        Samples that the search of Parzen's width looks at, at most.
    random_state : int, Generator, RandomState or None, default 0
        For every draw of samples.

    Attributes
    ----------
    expansion_ : KernelMixture
    vectors_, weights_, widths_, indices_, n_vectors_
        As in :class:`ParzenDensity`; the kernels share one width.
    width_ : float
    trace_ : dict
        Cross-validated error of every width tried (empty for a given width).
    gap_ : float
        Largest violation of the optimality conditions.
    stop_ : str
        "optimal", or "limit".

    Notes
    -----
    ``c^2`` numbers for ``c`` candidates; the active set costs ``O(s^3 + c s)`` per pivot with ``s`` kernels.

    Examples
    --------
    >>> from fewkern import ReducedSetDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> density = ReducedSetDensity().fit(X)
    >>> density.n_vectors_ < 100, density.stop_
    (True, 'optimal')
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **DENSITY_CONSTRAINTS,
        "width": [StrOptions({"cv"} | WIDTH_RULES), Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"active-set", "mnqp"})],
        "threshold": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_candidates": [Interval(Integral, 2, None, closed="left")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        *,
        width: Any = "cv",
        solver: str = "active-set",
        threshold: float = 1e-4,
        max_iter: int = 3000,
        max_candidates: int = 2000,
        n_folds: int = 5,
        scale: str = "std",
        search_rows: int = 2000,
        random_state: Any = 0,
    ) -> None:
        self.width = width
        self.solver = solver
        self.threshold = threshold
        self.max_iter = max_iter
        self.max_candidates = max_candidates
        self.n_folds = n_folds
        self.scale = scale
        self.search_rows = search_rows
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ReducedSetDensity:
        """Fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        X, samples = self._scaled(X, sample_weight)
        unit = self._parzen_width(samples, "lscv" if self.width == "cv" else self.width).width
        candidates = samples.subset(self.max_candidates)
        self.trace_: dict[float, float] = {}
        if self.width == "cv":
            folds = samples.folds(self.n_folds)
            self.trace_ = reduced_set_width(samples.Z, samples.w, unit, candidates, folds)
            unit = min(self.trace_, key=self.trace_.__getitem__)
        found = reduced_set(
            samples.Z, samples.w, unit, candidates,
            exact=self.solver == "active-set", threshold=self.threshold, iterations=self.max_iter,
        )  # fmt: skip
        self.width_, self.gap_, self.stop_ = unit, found.gap, found.stop
        widths = namespace(X).full_like(found.weights, unit)
        self._keep(X, samples, widths, found.weights, chosen=found.indices)
        return self


class OrthogonalForwardDensity(DensityEstimator):
    r"""Densities by orthogonal forward regression with a leave-one-out score: SKD and SDC.

    ``target="parzen"`` (SKD) regresses Parzen's estimate on kernels of a common width :math:`\rho` and then solves the
    simplex programme on the chosen ones; ``target="distribution"`` (SDC) regresses the empirical distribution function
    on integrated kernels, under non-negative weights.

    .. math:: J_n = \frac1N \sum_i (e_i / \eta_i)^2, \qquad e \leftarrow e - \theta_j w_j, \qquad
              \eta \leftarrow \eta - \frac{w_j \circ w_j}{w_j'w_j + \lambda_j}

    Parameters
    ----------
    target : {"parzen", "distribution"}, default "parzen"
    kernel_width : float or "auto", default "auto"
        The common width :math:`\rho`, in units of the scaled data; "auto" is :math:`\max(1.25, 3m^{-0.3})` Parzen
        widths.
    width : a rule of :class:`ParzenDensity` or float, default "lscv"
        Width of Parzen's estimate.
    n_passes : int, default 10
        Passes with a penalty of its own for every column, after the first one.
    max_vectors : int or None, default None
    solver : {"active-set", "mnqp"}, default "active-set"
        With target "parzen", the weights exactly, or by the multiplicative updates of the literature.
    max_rows : int, default 2000
        Samples that the regression sees; drawn where there are more. The target always comes from all of them.
    scale : {"std", "whiten", "none"}, default "std"
        Inside, the features are divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    search_rows : int, default 2000
        Samples that the search of Parzen's width looks at, at most.
    random_state : int, Generator, RandomState or None, default 0
        For every draw of samples.

    Attributes
    ----------
    expansion_ : KernelMixture
    vectors_, weights_, widths_, indices_, n_vectors_
        As in :class:`ParzenDensity`; the kernels share one width.
    width_ : float
        Of Parzen's estimate.
    total_ : float
        Sum of the regression weights before it was made one: far from one, the regression has found little.
    trace_ : tuple of RegressionStep
        The last pass.
    stop_ : str

    Notes
    -----
    ``O(s r^2)`` time and ``r^2`` numbers for ``r`` rows. The target "distribution" is tied to the axes and carries
    little information in more than a few dimensions. Both are reconstructions: the paper quotes them without
    their details.

    Examples
    --------
    >>> from fewkern import OrthogonalForwardDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> OrthogonalForwardDensity().fit(X).n_vectors_ < 50
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **DENSITY_CONSTRAINTS,
        "target": [StrOptions({"parzen", "distribution"})],
        "kernel_width": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_passes": [Interval(Integral, 0, None, closed="left")],
        "solver": [StrOptions({"active-set", "mnqp"})],
        "max_vectors": [None, Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        *,
        target: str = "parzen",
        kernel_width: Any = "auto",
        width: Any = "lscv",
        n_passes: int = 10,
        max_vectors: int | None = None,
        solver: str = "active-set",
        max_rows: int = 2000,
        scale: str = "std",
        search_rows: int = 2000,
        random_state: Any = 0,
    ) -> None:
        self.target = target
        self.kernel_width = kernel_width
        self.width = width
        self.n_passes = n_passes
        self.max_vectors = max_vectors
        self.solver = solver
        self.max_rows = max_rows
        self.scale = scale
        self.search_rows = search_rows
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OrthogonalForwardDensity:
        """Fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        X, samples = self._scaled(X, sample_weight)
        unit = self._parzen_width(samples, self.width).width
        rho = default_gamma(X.shape[1]) * unit if self.kernel_width == "auto" else float(self.kernel_width)
        rows = samples.subset(self.max_rows)
        Z, w = samples.take(rows)
        everyone = samples.every_row()[: rows.shape[0]]
        settings: dict[str, Any] = {"passes": self.n_passes, "limit": self.max_vectors}
        if self.target == "parzen":
            target = parzen_target(Z, samples.Z, samples.w, unit)
            exact = self.solver == "active-set"
            found = sparse_kernel_density(Z, w, target, unit, everyone, rho, exact=exact, **settings)
        else:
            target = distribution_target(Z, samples.Z, samples.w)
            found = sparse_density_construction(Z, w, target, everyone, rho, **settings)
        self.width_, self.total_, self.trace_, self.stop_ = unit, found.total, found.trace, found.stop
        widths = namespace(X).full_like(found.weights, rho)
        self._keep(X, samples, widths, found.weights, chosen=take_rows(rows, found.indices))
        return self
