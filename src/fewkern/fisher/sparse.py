"""kFDA_q: a kernel Fisher discriminant that keeps few samples, and the plain one that keeps all."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.backend.namespace import Array, namespace
from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.fisher.base import FISHER_CONSTRAINTS, FisherClassifier, Fitted
from fewkern.fisher.lq import leave_one_out_scores, lq_fit, walk_path
from fewkern.fisher.problem import penalized_problem
from fewkern.fisher.targets import LinearModel

__all__ = ["KernelFisher", "SparseKernelFisher"]

# Penalties that cross-validation compares, for a kernel with k(x, x) = 1.
PENALTIES = tuple(10.0 ** (-0.5 * i) for i in range(1, 10))
DEFAULT_PENALTY = 3


class LqFisher(FisherClassifier):
    """Base of the discriminants that minimise (5)."""

    penalty: Any

    @abstractmethod
    def _lq(self) -> dict[str, Any]:
        """Settings of the solver."""

    def _settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        if self.penalty != "auto":
            return (float(self.penalty),)
        # a kernel a times as large gives the same function at a penalty a^q times as large, targets at a^(2 - q)
        q = self._lq()["q"]
        return tuple(p * scale**q * stretch ** (2 - q) for p in PENALTIES)

    def _default_setting(self) -> int:
        return DEFAULT_PENALTY

    def _path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterable[LinearModel]:
        options = self._lq()
        problem = penalized_problem(K, Y, weights=weights, penalize_bias=options.pop("penalize_bias"))
        fits = walk_path(problem, settings, **options)
        return (LinearModel(fit.support, fit.coef, fit.offset) for fit in fits)

    def _machine(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        fit = lq_fit(K, Y, penalty=setting, weights=weights, **self._lq())
        chosen = namespace(K).take(K, fit.support, axis=1)
        held_out = leave_one_out_scores(chosen, Y, fit, weights=weights, penalize_bias=self._lq()["penalize_bias"])
        return Fitted(LinearModel(fit.support, fit.coef, fit.offset), held_out, fit.objectives, fit.status)


class SparseKernelFisher(LqFisher):
    r"""Kernel Fisher discriminant with a penalty that keeps few samples (kFDA_q), for two classes and many.

    .. math:: \min_\Omega \tfrac12 \|Y - [1\; K]\,\Omega\|_F^2 + \rho N \sum_i \|\Omega_i\|_2^q \qquad (5)

    with the targets of Fisher's discriminant (for two classes :math:`+N/N_1` and :math:`-N/N_2`). ``q = 1`` is solved
    exactly by an active set, ``q < 1`` by the majorize-minimize iteration (8) on the components that are still
    alive; a sample without a coefficient is absent, not small. Several classes share one support.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times its
        value, searched as ``width_by`` says; a width given as a number is kept.
    q : float, default 0.5
        In (0, 2]. Smaller keeps fewer samples; from above 1 on none is dropped.
    penalty : float or "auto", default "auto"
        :math:`\rho`. "auto" is cross-validation over nine values from 0.3 to 3e-5.
    prefer : {"accurate", "sparse"}, default "accurate"
        The penalty (and width) of least cross-validated error, or the one of fewest vectors within one standard error.
    max_vectors : int or None, default None
        Budget of samples: only so many candidates, chosen by the gain rule of :class:`FeatureVectorSelector`, are
        looked at, in memory of order ``n * max_vectors``. None: every distinct sample up to 3000 of them, else 500
        candidates.
    width_by : {"leave_one_out", "cross_validation"}, default "leave_one_out"
        How a width is chosen: by the closed-form leave-one-out of :class:`FeatureVectorClassifier` (cheap), or
        together with the penalty.
    posterior : {"logistic", "gaussian", "least_squares"}, default "logistic"
        Decision and probabilities. "logistic" (regression) and "gaussian" (classes of common covariance) are fitted to
        leave-one-out scores; "least_squares" has the paper's threshold, the midpoint of the targets
        :math:`\tfrac N2(1/N_1 - 1/N_2)`, and is used wherever a class has fewer than five samples.
    penalize_bias : bool, default False
        True is the paper: the bias is penalised like a sample.
    start : {"auto", "lasso", "ridge", "best"}, default "auto"
        Where the iteration for ``q < 1`` begins: at the solution for ``q = 1`` ("auto" for two classes) or ``q = 2``.
        "best" is the lowest of three minima, three times the work.
    priors : array of shape (n_classes,) or None, default None
        Class probabilities where the model is used, if they are not those of the training samples.
    class_weight : dict, "balanced" or None, default None
    cv : int, splitter or iterable of splits, default 5
        A number deals the samples of every class in turn to so many folds (at most as many as the smallest
        class has samples), so nothing is random.
    tol : float or None, default None
        Relative change of the objective that ends the iteration (1e-8), for ``q = 1`` the relative duality gap (1e-7).
    max_iter : int, default 1000
    random_state : int, Generator, RandomState or None, default 0
        Only for the choice of candidates and of the samples to search on.
    verbose : bool or int, default False

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    expansion_ : KernelExpansion
        One score for two classes (positive: the second), one per class otherwise.
    vectors_, indices_, n_vectors_
        The samples that were kept, their rows in ``X``, their number.
    kernel_ : Kernel
    penalty_ : float
    objective_ : float
        Value of (5) at the solution.
    link_ : Link
        How the scores become probabilities.
    priors_ : array of shape (n_classes,)
    trace_ : FisherTrace
        Cross-validated errors, and the objective after every step, which never rises.
    n_iter_ : int

    Notes
    -----
    ================== ================ ===================================================
    paper              here             meaning
    ================== ================ ===================================================
    rho                ``penalty_``     weight of the penalty
    omega = (b, alpha) ``expansion_``   bias and coefficients, mapped to scores by ``link_``
    NRS                ``n_vectors_``   samples retained
    ================== ================ ===================================================

    Cost: ``n m`` kernel values for ``m`` candidates, then ``n k^2 + k^3`` per step with ``k`` components alive. Without
    ``max_vectors`` up to 3000 samples have an ``n`` by ``n`` matrix. A choice by cross-validation costs about 45 fits.

    The settings of the paper are ``penalize_bias=True, start="ridge", tol=1e-5, posterior="least_squares"``; it
    counts repeated samples as separate candidates, we never do.

    References
    ----------
    R. F. Harrison and K. Pasupa, "A simple iterative algorithm for parsimonious binary kernel Fisher discrimination",
    Pattern Analysis and Applications 13 (2010).

    Examples
    --------
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(300)
    >>> model = SparseKernelFisher(penalty=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 30
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **FISHER_CONSTRAINTS,
        "q": [Interval(Real, 0, 2, closed="right")],
        "penalty": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "penalize_bias": ["boolean"],
        "start": [StrOptions({"auto", "lasso", "ridge", "best"})],
        "tol": [None, Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        q: float = 0.5,
        penalty: Any = "auto",
        prefer: str = "accurate",
        max_vectors: int | None = None,
        width_by: str = "leave_one_out",
        posterior: str = "logistic",
        penalize_bias: bool = False,
        start: str = "auto",
        priors: Any = None,
        class_weight: Any = None,
        cv: Any = 5,
        tol: float | None = None,
        max_iter: int = 1000,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.q = q
        self.penalty = penalty
        self.prefer = prefer
        self.max_vectors = max_vectors
        self.width_by = width_by
        self.posterior = posterior
        self.penalize_bias = penalize_bias
        self.start = start
        self.priors = priors
        self.class_weight = class_weight
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseKernelFisher:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        """
        self.penalty_ = self._fit(X, y, sample_weight)
        self.objective_ = self.trace_.objectives[-1]
        if self.trace_.status == "max_iter":
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} steps; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _lq(self) -> dict[str, Any]:
        names = ("q", "penalize_bias", "start", "tol", "max_iter")
        return {name: getattr(self, name) for name in names}


class KernelFisher(LqFisher):
    r"""Plain kernel Fisher discriminant: a ridge penalty, every sample kept. A comparator, not a recommendation.

    .. math:: \min_{b, \alpha} \tfrac12 \|Y - b - K\alpha\|_F^2 + \rho N \|\alpha\|_F^2

    which is :class:`SparseKernelFisher` with ``q = 2``: one linear system.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
    penalty : float or "auto", default "auto"
    width_by, posterior, priors, class_weight, cv, random_state, verbose
        As in :class:`SparseKernelFisher`.

    Attributes
    ----------
    classes_, expansion_, vectors_, indices_, n_vectors_, kernel_, penalty_, objective_, link_, priors_, trace_, n_iter_
        As in :class:`SparseKernelFisher`.

    Notes
    -----
    ``n^2`` memory and ``n^3`` time for every penalty, up to 3000 distinct samples; above, 500 candidates.

    Examples
    --------
    >>> from fewkern import KernelFisher
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(200)
    >>> KernelFisher(penalty=0.001).fit(X, y).n_vectors_
    200
    """

    _parameter_constraints: dict[str, list[Any]] = {
        key: SparseKernelFisher._parameter_constraints[key]
        for key in (
            "kernel",
            "penalty",
            "width_by",
            "posterior",
            "priors",
            "class_weight",
            "cv",
            "random_state",
            "verbose",
        )
    }
    # nothing to prefer, and no budget: every sample is kept
    prefer = "accurate"
    max_vectors = None

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        penalty: Any = "auto",
        width_by: str = "leave_one_out",
        posterior: str = "logistic",
        priors: Any = None,
        class_weight: Any = None,
        cv: Any = 5,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.width_by = width_by
        self.posterior = posterior
        self.priors = priors
        self.class_weight = class_weight
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelFisher:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        """
        self.penalty_ = self._fit(X, y, sample_weight)
        self.objective_ = self.trace_.objectives[-1]
        return self

    def _lq(self) -> dict[str, Any]:
        return {"q": 2.0, "penalize_bias": False, "start": "ridge", "tol": None, "max_iter": 1}
