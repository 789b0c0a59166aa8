"""ForwardDensity: a density from a few kernels, one at a time (FCR)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from fewkern.backend.namespace import Array, take_rows
from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.density.base import DENSITY_CONSTRAINTS, DensityEstimator, ScaledSamples
from fewkern.density.constrained import default_gamma, forward_constrained, parzen_target, refit_jointly
from fewkern.density.integrated import forward_integrated
from fewkern.density.integrated_cv import GAMMAS, cross_validate
from fewkern.density.likelihood import RoundMixture, expectation_maximization, forward_likelihood

__all__ = ["ForwardDensity"]

# Regression rows of the paper's algorithm, and samples that score the entry of a kernel by likelihood.
_PAPER_ROWS = 10_000
_LIKELIHOOD_ROWS = 2000
_POLISH_ITERATIONS = 50


class ForwardDensity(DensityEstimator):
    r"""A density from a few normal kernels with widths of their own, found one at a time (FCR).

    .. math:: \hat p(x) = \sum_{j=1}^s g_j K(x, v_j, \sigma_j), \qquad g_j \ge 0, \quad \sum_j g_j = 1

    Every step mixes one more kernel in, :math:`\hat p \leftarrow \lambda \hat p + (1-\lambda) K(\cdot, v, \sigma)`,
    and a closed-form leave-one-out score says when to end. As accurate as Parzen's window at a small part of its
    kernels.

    Parameters
    ----------
    variant : {"ise", "cv", "ml", "paper", "refit"}, default "ise"
        "ise" minimises an unbiased estimate of the integrated squared error to the true density (FCR-ISE); "cv" also
        chooses ``gamma`` and the size by cross-validation (25 times the cost); "ml" is the same construction on the
        likelihood, the size by BIC (sparsest, for densities of a few smooth lumps); "paper" is FCR-SDC,
        the regression on Parzen's estimate; "refit" is "paper" with all weights and widths fitted again together.
    width : a rule of :class:`ParzenDensity` or float, default "lscv"
        Reference width :math:`\sigma^{\rm Par}`, a number in units of the scaled data.
    gamma : float or None, default None
        For "paper" and "refit" the width of a candidate, in reference widths (default
        :math:`\max(1.25, 3m^{-0.3})`). For the others the least width, in the same unit (default 1.5):
        more is smoother.
    max_vectors : int or None, default None
        Largest number of kernels: 100 for "paper" and "refit", otherwise 20.
    size : {"loo", "loo-1se", "max"}, default "loo"
        For "ise": least leave-one-out score, the smallest model within one standard error of it, or ``max_vectors``.
    polish : bool, default True
        For "ise" and "cv": 50 EM iterations on weights, centres and widths at the end. Centres then are no longer
        samples.
    max_candidates : int, default 1000
        Samples that may become centres; drawn where there are more.
    stop : {"loo", "distance", "size"}, default "loo"
        For "paper" and "refit": end when the leave-one-out score rises, when the distance to Parzen's estimate falls
        below ``tol`` (relative), or at ``max_vectors``.
    tol : float, default 0.0
        See ``stop``; with "loo" the least relative gain of a step.
    width_mode : {"safe", "abs", "bracket"}, default "safe"
        For "paper" and "refit": width steps that never raise the error, or the paper's two rules taken literally.
    eta : float, default 0.5
        Length of these steps.
    n_width_steps : int, default 5
        Their number.
    mixing : {"jackknife", "ls"}, default "jackknife"
        Estimate of the mixing number.
    n_folds : int, default 5
        For "cv".
    scale : {"std", "whiten", "none"}, default "std"
        Inside, the features are divided by their standard deviations, or made uncorrelated, or left alone (the paper).
    search_rows : int, default 2000
        Samples that the search of the reference width looks at, at most.
    random_state : int, Generator, RandomState or None, default 0
        Draws candidates and folds.

    Attributes
    ----------
    expansion_ : KernelMixture
    vectors_, weights_, widths_ : arrays
        Centres (in the units of the data), weights and widths (in those of the scaled data) of the kernels.
    indices_ : array or None
        Rows of the samples that are the centres; None where they are not samples ("ml", or after the polish).
    n_vectors_ : int
    width_ : float
        Reference width.
    trace_ : tuple
        One record per step: ``IntegratedStep``, ``LikelihoodStep`` or ``ConstrainedStep``.
    selected_ : int
        The step that was taken.
    gamma_ : float
    stop_ : str
        Why the path ended.

    Notes
    -----
    ============================ =====================================
    symbol                       name
    ============================ =====================================
    :math:`s`                    ``n_vectors_``
    :math:`g, v_j, \sigma_j`     ``weights_``, ``vectors_``, ``widths_``
    :math:`\sigma^{\rm Par}`     ``width_``
    :math:`\gamma`               ``gamma_``
    ============================ =====================================

    With ``n`` samples, ``c`` candidates and 14 widths: "ise" ``O(14 n c m)`` once and ``O(n s + 14 c s^2)`` per step,
    memory ``O(n s + 14 c s)``; "paper" ``O(n c)`` time per step and memory. Evaluation ``O(s m)`` per sample.

    A density of few kernels has thin tails: errors weighted by the density do not see it, the log-likelihood does.
    An ordinary mixture of round Gaussians does as well as "ml", which adds a deterministic start and a floor on the
    widths.

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

    trace_: tuple[Any, ...]
    _parameter_constraints: dict[str, list[Any]] = {
        **DENSITY_CONSTRAINTS,
        "variant": [StrOptions({"ise", "cv", "ml", "paper", "refit"})],
        "gamma": [None, Interval(Real, 0, None, closed="neither")],
        "max_vectors": [None, Interval(Integral, 1, None, closed="left")],
        "size": [StrOptions({"loo", "loo-1se", "max"})],
        "polish": ["boolean"],
        "max_candidates": [Interval(Integral, 1, None, closed="left")],
        "stop": [StrOptions({"loo", "distance", "size"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "width_mode": [StrOptions({"safe", "abs", "bracket"})],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "n_width_steps": [Interval(Integral, 0, None, closed="left")],
        "mixing": [StrOptions({"jackknife", "ls"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        *,
        variant: str = "ise",
        width: Any = "lscv",
        gamma: float | None = None,
        max_vectors: int | None = None,
        size: str = "loo",
        polish: bool = True,
        max_candidates: int = 1000,
        stop: str = "loo",
        tol: float = 0.0,
        width_mode: str = "safe",
        eta: float = 0.5,
        n_width_steps: int = 5,
        mixing: str = "jackknife",
        n_folds: int = 5,
        scale: str = "std",
        search_rows: int = 2000,
        random_state: Any = 0,
    ) -> None:
        self.variant = variant
        self.width = width
        self.gamma = gamma
        self.max_vectors = max_vectors
        self.size = size
        self.polish = polish
        self.max_candidates = max_candidates
        self.stop = stop
        self.tol = tol
        self.width_mode = width_mode
        self.eta = eta
        self.n_width_steps = n_width_steps
        self.mixing = mixing
        self.n_folds = n_folds
        self.scale = scale
        self.search_rows = search_rows
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ForwardDensity:
        """Fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        X, samples = self._scaled(X, sample_weight)
        self.width_ = self._parzen_width(samples, self.width).width
        if self.variant in {"paper", "refit"}:
            self._fit_constrained(X, samples)
        elif self.variant == "ml":
            self._fit_likelihood(X, samples)
        else:
            self._fit_integrated(X, samples)
        return self

    def _fit_constrained(self, X: Array, samples: ScaledSamples) -> None:
        rows = samples.subset(_PAPER_ROWS)
        Z, w = samples.take(rows)
        target = parzen_target(Z, samples.Z, samples.w, self.width_)
        candidates = samples.among(int(rows.shape[0]), self.max_candidates)
        self.gamma_ = default_gamma(Z.shape[1]) if self.gamma is None else float(self.gamma)
        found = forward_constrained(
            Z,
            w,
            target,
            self.width_,
            candidates,
            gamma=self.gamma_,
            eta=self.eta,
            width_steps=self.n_width_steps,
            width_mode=self.width_mode,  # type: ignore[arg-type]
            mixing=self.mixing,  # type: ignore[arg-type]
            stop=self.stop,  # type: ignore[arg-type]
            tol=self.tol,
            max_vectors=100 if self.max_vectors is None else self.max_vectors,
        )
        if self.variant == "refit":
            found = refit_jointly(Z, w, target, self.width_, found)
        self.trace_, self.selected_, self.stop_ = found.trace, len(found.trace) - 1, found.stop
        self._keep(X, samples, found.widths, found.weights, chosen=take_rows(rows, found.indices))

    def _fit_integrated(self, X: Array, samples: ScaledSamples) -> None:
        Z, w = samples.Z, samples.w
        candidates = samples.subset(self.max_candidates)
        limit = 20 if self.max_vectors is None else self.max_vectors
        self.gamma_ = 1.5 if self.gamma is None else float(self.gamma)
        if self.variant == "cv":
            gammas = GAMMAS if self.gamma is None else (self.gamma_,)
            folds = samples.folds(self.n_folds)
            choice = cross_validate(Z, w, self.width_, candidates, folds, gammas=gammas, max_vectors=limit)
            self.gamma_ = choice.gamma
            found = forward_integrated(
                Z, w, self.width_, candidates, gamma=self.gamma_, max_vectors=limit, steps=choice.steps, size="max"
            )
        else:
            found = forward_integrated(
                Z, w, self.width_, candidates,
                gamma=self.gamma_, max_vectors=limit, size=self.size,  # type: ignore[arg-type]
            )  # fmt: skip
        self.trace_, self.selected_, self.stop_ = found.trace, found.selected, found.stop
        if not self.polish:
            self._keep(X, samples, found.widths, found.weights, chosen=found.indices)
            return
        start = RoundMixture(take_rows(Z, found.indices), found.widths, found.weights, 0.0)
        floor = self.gamma_ * self.width_
        better = expectation_maximization(Z, w, start, floor, _POLISH_ITERATIONS)
        self._keep(X, samples, better.widths, better.weights, centres=better.centres)

    def _fit_likelihood(self, X: Array, samples: ScaledSamples) -> None:
        self.gamma_ = 1.5 if self.gamma is None else float(self.gamma)
        found = forward_likelihood(
            samples.Z,
            samples.w,
            self.width_,
            samples.subset(min(self.max_candidates, _LIKELIHOOD_ROWS)),
            gamma=self.gamma_,
            max_vectors=20 if self.max_vectors is None else self.max_vectors,
        )
        self.trace_, self.selected_, self.stop_ = found.trace, found.selected, found.stop
        self._keep(X, samples, found.mixture.widths, found.mixture.weights, centres=found.mixture.centres)
