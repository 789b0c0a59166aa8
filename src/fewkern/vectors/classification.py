"""FVS-LR on class indicators: predict classes from a few chosen samples, with nothing to tune."""

from __future__ import annotations

from typing import Any

from fewkern.backend.validation import fit_context
from fewkern.base import (
    CONSTRAINTS,
    KernelEstimator,
    ScoringClassifier,
    keep_class_scores,
    keep_importances,
    kept_importances,
)
from fewkern.core.basis import KernelBasis
from fewkern.core.population import InMemory
from fewkern.core.scores import ClassScores
from fewkern.populations import labelled_batch, labelled_population
from fewkern.vectors.automatic import fit_classification
from fewkern.vectors.calibration import calibrate
from fewkern.vectors.incremental import (
    begin_on,
    continue_with,
    keep_learned,
    keep_sums,
    learned_before,
    learned_from,
    merged,
)
from fewkern.vectors.leave_one_out import class_targets
from fewkern.vectors.parameters import AUTOMATIC, REFINE
from fewkern.vectors.trust import novelty, novelty_threshold

__all__ = ["FeatureVectorClassifier"]


class FeatureVectorClassifier(ScoringClassifier, KernelEstimator):
    r"""Predict classes from a few vectors, with nothing to tune (FVS-LR on class indicators).

    Every class has a column that is one for its own samples and zero for all others. :class:`FeatureVectorRegressor`'s
    method predicts these columns, and a sample goes to the class of largest value. It becomes logistic regression on
    the same vectors as far as held-out samples ask for it. ``predict_proba`` is the softmax of the values times one
    number, fitted to the values of held-out samples.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times its
        value, searched by leave-one-out. It is one width per feature, in units of that feature, so that the units of
        the data do not matter (``unit`` of :class:`~fewkern.kernels.Gaussian`). A width given as a number is kept.
    n_vectors : int or "auto", default "auto"
        Number of vectors; "auto" is chosen by leave-one-out.
    max_vectors : int or "auto", default "auto"
        Budget for ``n_vectors="auto"``. "auto" looks at up to 100 vectors (at most half of the samples) and goes on
        while that pays: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at most. A
        BudgetWarning says so where the error was still falling there.
    ridge : float or "auto", default "auto"
        Penalty on the squared length of the solution in feature space. "auto" compares six values in units of the
        mean of ``k(x, x)``.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        The model of least leave-one-out error, the smallest one within half a standard error of it, or within one.
        Vectors that are moved are few already: "sparse" then saves little, and is for devices without room for more.
    refine : "auto" or bool, default "auto"
        Move the vectors, and learn one width per feature, by the gradient of the leave-one-out error. "auto" does so
        where folds say that it pays, with a width that is a rule; True always; False keeps samples as vectors. A moved
        vector is not a sample any more.
    rule : str, default "gain"
        How vectors are chosen, see :class:`FeatureVectorSelector`.
    center : "auto", bool or int, default "auto"
        See :class:`FeatureVectorSelector`.
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class.
    basis_tol : float or None, default None
        Relative residual at which a sample depends on the chosen ones (1e-10, in float32 1e-5).
    random_state : int, Generator, RandomState or None, default 0
        As in :class:`FeatureVectorRegressor`.
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    expansion_ : KernelExpansion
        One output for two classes (positive: the second class), one per class otherwise.
    feature_importances_
        As in :class:`FeatureVectorRegressor`.
    vectors_, indices_, n_vectors_
        The vectors that are kept, the rows of ``X`` that they are (or started from, if ``refined_``), their number.
    refined_ : bool
        Whether the vectors were moved.
    kernel_ : Kernel
        The kernel, with every parameter a number.
    ridge_ : float
        The ridge that was given or chosen.
    fitness_ : array of shape (n,)
        Share of the samples, in feature space, that the first vector explains, the first two, and so on up to one.
    stop_ : Stop
        "size" if leave-one-out preferred a smaller model than the selection had to offer; else why the selection ended:
        "limit" (the budget) or "rank".
    trace_ : Trace
        Leave-one-out error for every width that was looked at, every ridge and number of vectors.
    held_out_error_ : float
        Share of held-out samples that are misclassified (weighted): from folds where these decided on refinement, else
        by leave-one-out at settings that other samples chose.
    held_out_scores_ : HeldOutScores
        What :meth:`predict_set` reads.
    novelty_ : Novelty
        What :meth:`novelty` reads.
    loss_ : {"squared", "logistic"}
        What the coefficients minimize: the squared error, or the logistic loss where held-out samples are more likely
        by it and no more of them are misclassified. Two classes with a ridge that is given have the squared error.
    class_scores_ : ClassScores
        How values become classes and probabilities.
    basis_ : KernelBasis
        The vectors that were chosen, and how they turn a sample into features.
    held_out_scores_ : HeldOutScores or None
        Of the classes of held-out samples, which ``predict_set`` needs.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.

    Notes
    -----
    See :class:`FeatureVectorRegressor` for the cost. The settings are chosen by the squared leave-one-out error, not by
    the leave-one-out error rate, whose minimum is far too optimistic.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003), sec. 4.

    Examples
    --------
    >>> from fewkern import FeatureVectorClassifier
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400)
    >>> model = FeatureVectorClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 40
    (True, True)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    feature_importances_ = kept_importances
    _transient = ("_fitted_to",)  # sums for partial_fit are not part of the model
    novelty, novelty_threshold = novelty, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **AUTOMATIC,
        "refine": REFINE,
        "class_weight": CONSTRAINTS["class_weight"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_vectors: Any = "auto",
        max_vectors: Any = "auto",
        ridge: Any = "auto",
        prefer: str = "balanced",
        refine: Any = "auto",
        rule: str = "gain",
        center: Any = "auto",
        class_weight: Any = None,
        basis_tol: float | None = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.ridge = ridge
        self.prefer = prefer
        self.refine = refine
        self.rule = rule
        self.center = center
        self.class_weight = class_weight
        self.basis_tol = basis_tol
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> FeatureVectorClassifier:
        """Choose the vectors and fit.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        groups : array of shape (n_samples,) or None
            Labels, equal for samples that belong together, such as the measurements of one person. Whole groups are
            then held out, by every choice and in all that is said of new samples.

        Returns
        -------
        self
        """
        population = labelled_population(self, X, y, sample_weight, groups)
        self.refined_ = False
        fitted = fit_classification(self, population)
        self.class_scores_ = calibrate(ClassScores(), fitted.held_out)
        self.held_out_error_ = fitted.judged.error_rate()
        keep_sums(self, fitted, self.held_out_error_, self.class_scores_.factor)
        keep_class_scores(self, fitted.left_out.values, fitted.left_out.samples)
        keep_importances(self, population.sample)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, basis: KernelBasis | None = None
    ) -> FeatureVectorClassifier:
        """Learn from one of several batches of samples; see :meth:`FeatureVectorRegressor.partial_fit`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array or None
            All classes, where the first batch does not hold samples of every one; then give a ``basis``, too.
        sample_weight : array of shape (n_samples,) or None
        basis : KernelBasis or None
            Vectors to use instead of those that the first batch would choose: ``basis_`` of a fitted model.

        Returns
        -------
        self
        """
        before = learned_before(self)
        samples = class_targets(labelled_batch(self, X, y, classes, sample_weight))
        if before is not None:
            learned = continue_with(self, before, basis, samples)
        elif basis is not None:
            self.refined_, self.novelty_ = False, None
            learned = begin_on(self, basis, samples)
        else:
            self.refined_ = False
            learned = learned_from(self, fit_classification(self, InMemory(samples)))
        self.loss_ = "squared"  # the sums know of no other
        held_out = learned.left_out(samples)
        factor = calibrate(ClassScores(), held_out).factor
        learned = learned.judged(held_out.weight, held_out.error_rate(), factor)
        keep_learned(self, learned)
        self.class_scores_ = ClassScores(factor=learned.factor)
        keep_class_scores(self, held_out.values, samples)
        keep_importances(self, samples)
        return self

    def merge(self, other: FeatureVectorClassifier) -> FeatureVectorClassifier:
        """A model that has learned from the batches of both; they must have the same vectors, ridge and classes."""
        model = merged(self, other)
        model.class_scores_ = ClassScores(factor=model._learned.factor)
        return model
