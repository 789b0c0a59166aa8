"""The learner for classes."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.arrays.validation import fit_context
from fewkern.base import CONSTRAINTS, ScoringClassifier, held_out_scores, importances_of
from fewkern.core.samples import Samples, class_targets
from fewkern.core.scores import ClassScores
from fewkern.learn.batches import Basis, keep_batch, sums_before
from fewkern.learn.fitting import (
    PARAMETERS,
    LearningEstimator,
    as_logistic,
    fit_population,
    keep,
    keep_sums,
    learn_batch,
)
from fewkern.populations import labelled_batch, labelled_population
from fewkern.select.uncertainty import calibrate


class KernelClassifier(ScoringClassifier, LearningEstimator):
    r"""Predict classes from a few vectors that are chosen, moved and sized automatically.

    Two classes are the numbers -1 and 1, several are columns of zeros and ones, which :class:`KernelRegressor`'s method
    predicts; a sample goes to the class of largest value. ``predict_proba`` is the softmax of the values times one
    number, fitted to the values of rows held out.

    Parameters
    ----------
    n_vectors : int or None, default None
        Number of vectors; None lets rows held out decide.
    max_vectors : int or None, default None
        Largest number of vectors; None is 300, with ``prefer="accurate"`` 900, as far as the rows allow.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        As in :class:`KernelRegressor`.
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class.
    random_state : int, Generator, RandomState or None, default 0
        As in :class:`KernelRegressor`.
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    expansion_ : GaussianExpansion
        One output for two classes (positive: the second class), one per class otherwise.
    vectors_, indices_, n_vectors_, origin_, alpha_, basis_, path_, feature_importances_
        As in :class:`KernelRegressor`.
    loss_ : {"squared", "logistic"}
        What the coefficients minimize: logistic loss where rows held out are more likely by it and no more of them are
        misclassified.
    class_scores_ : ClassScores
        How values become classes and probabilities.
    held_out_error_ : float
        Share of the rows held out that are misclassified (weighted), at settings that other rows chose.
    held_out_scores_ : HeldOutScores
        What :meth:`predict_set` reads.
    novelty_ : Novelty or None
        What :meth:`novelty` reads.
    background_ : Background or None
        What :meth:`explain` compares with: at most 16 weighted centers of prepared rows, each the mean of at least
        five rows where there are enough, so that none is a row.

    Notes
    -----
    See :class:`KernelRegressor` for the cost. Settings are chosen by the squared error of rows held out.

    Examples
    --------
    >>> from fewkern import KernelClassifier
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400)
    >>> model = KernelClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 40
    (True, True)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {**PARAMETERS, "class_weight": CONSTRAINTS["class_weight"]}

    def __init__(
        self,
        *,
        n_vectors: Any = None,
        max_vectors: Any = None,
        prefer: str = "balanced",
        class_weight: Any = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        super().__init__(
            n_vectors=n_vectors, max_vectors=max_vectors, prefer=prefer, random_state=random_state, verbose=verbose
        )
        self.class_weight = class_weight

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> KernelClassifier:
        """Choose, move and size the vectors.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        groups : array of shape (n_samples,) or None
            As in :meth:`KernelRegressor.fit`.

        Returns
        -------
        self
        """
        population = labelled_population(self, X, y, sample_weight, groups)
        fitted = fit_population(self, population)
        self.held_out_error_ = fitted.held_out.error_rate()
        fitted = as_logistic(fitted, population)
        keep(self, fitted)
        self.loss_ = fitted.loss
        self.class_scores_ = calibrate(ClassScores(), fitted.held_out)
        keep_sums(self, fitted, self.held_out_error_, self.class_scores_.factor)
        self.held_out_scores_ = held_out_scores(self.class_scores_, fitted.held_out.values, fitted.held_out.samples)
        self._importances = importances_of(self.expansion_, self.class_scores_, population.sample)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, basis: Basis | None = None
    ) -> KernelClassifier:
        """Learn from one of several batches of samples; see :meth:`KernelRegressor.partial_fit`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array or None
            All classes, where the first batch does not hold samples of every one; then give a ``basis``, too. Without
            one, a warning says so: no later batch can bring vectors to where the other classes are.
        sample_weight : array of shape (n_samples,) or None
        basis : GaussianBasis, KernelBasis or None
            Vectors to use instead of those that the first batch would choose: ``basis_`` of a fitted model.

        Returns
        -------
        self
        """
        before = sums_before(self)
        samples = class_targets(labelled_batch(self, X, y, classes, sample_weight))
        if before is None and basis is None:
            _warn_of_absent_classes(self, samples)
        sums = learn_batch(self, samples, before, basis)
        held_out = sums.left_out(samples)
        factor = calibrate(ClassScores(), held_out).factor
        sums = sums.judged(held_out.weight, held_out.error_rate(), factor)
        keep_batch(self, sums)
        self.loss_ = "squared"  # sums give no other
        self.class_scores_ = ClassScores(factor=sums.factor)
        self.held_out_scores_ = held_out_scores(self.class_scores_, held_out.values, samples)
        self._importances = importances_of(self.expansion_, self.class_scores_, samples)
        return self

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        name = type(self).__name__
        if self.loss_ == "logistic":
            raise ValueError(
                f"{name}.forget: the coefficients of this model are those of logistic regression, which do not come "
                "from sums; fit it by partial_fit, in one batch or several, or fit a new model to the other rows."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                f'{name}.forget: with class_weight="balanced" the weight of a row depends on all others; fit with the '
                "weight of every class, or fit a new model to the other rows."
            )
        return class_targets(labelled_batch(self, X, y, None, sample_weight))

    def merge(self, other: Self) -> Self:
        model = super().merge(other)
        model.class_scores_ = ClassScores(factor=model._sums.factor)
        return model


def _warn_of_absent_classes(model: KernelClassifier, samples: Samples) -> None:
    """Warn where the first batch, which chooses the vectors, lacks classes."""
    absent = np.setdiff1d(np.arange(len(model.classes_)), to_numpy(samples.codes))
    if len(absent):
        labels = ", ".join(repr(label) for label in to_numpy(model.classes_)[absent[:5]].tolist())
        warnings.warn(
            f"{type(model).__name__}.partial_fit: the first batch has no rows of {len(absent)} of "
            f"{len(model.classes_)} classes ({labels}{', ...' if len(absent) > 5 else ''}), and chooses all vectors: "
            "later rows of these may be predicted badly. Let a batch with rows of all classes come first, or pass "
            "basis=, the basis_ of a model that was fitted to some rows of every class.",
            UserWarning,
            stacklevel=4,
        )
