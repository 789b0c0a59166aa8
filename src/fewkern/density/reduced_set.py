"""ReducedSetDensity: all weights at once (RSDE)."""

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
from fewkern.density.reduction import CV_FACTORS, reduced_set, reduced_set_width

__all__ = ["ReducedSetDensity"]


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
        "verbose",
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
        search = self._parzen_width(problem, "lscv" if self.bandwidth == "cv" else self.bandwidth, rng)
        problem = replace(problem, unit=search.width).with_candidates(self.max_candidates, rng)
        self.bandwidth_, self.path_ = search.width, search.trace
        some = samples if samples.n <= self.max_candidates else samples.take(problem.candidates)
        folds = some.folds(self.cv) if self.bandwidth == "cv" else []
        if folds:
            with progress(self, "comparing bandwidths", len(CV_FACTORS)) as step:
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
        self._keep(found.mixture, scaling, samples)
        return self
