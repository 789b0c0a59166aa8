"""The learner for numbers and for classes."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from fewkern.arrays.namespace import to_numpy
from fewkern.arrays.validation import fit_context
from fewkern.base import CONSTRAINTS, ScoringClassifier, check_measured, held_out_scores, importances_of
from fewkern.core.samples import Samples, class_targets
from fewkern.core.scores import ClassScores
from fewkern.learn.base import PARAMETERS, LearningEstimator
from fewkern.learn.batches import Basis, sums_before
from fewkern.learn.fitting import fit_population
from fewkern.learn.logistic import as_logistic
from fewkern.populations import labelled_batch, labelled_population, measured_population
from fewkern.select.base import IntervalRegressor
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate, fit_intervals

# Rows of a class in a first batch below which a warning says that the vectors hardly know it.
_LEAST_CLASS_ROWS = 5


class KernelRegressor(IntervalRegressor, RegressorMixin, LearningEstimator):
    r"""Predict numbers from a few vectors that are chosen, moved and sized automatically.

    .. math:: f(x) = b + B^T t(x) + \sum_j a_j \exp\bigl(-\tfrac12 s_j^2 \|A^T (t(x) - v_j)\|^2\bigr)

    with a monotone map :math:`t` of every column, a few vectors :math:`v_j` with widths :math:`1 / s_j` of their own, a
    learned metric :math:`A` and a linear part. Everything is chosen by the error on rows that are held out: whether the
    vectors are samples, imitate a larger model, or are moved by the gradient of a cross-validation error, and how many
    they are. ``X`` may have categories and gaps; nothing has to be encoded, filled or scaled first.

    Parameters
    ----------
    n_vectors : int or None, default None
        Number of vectors; None lets rows held out decide.
    max_vectors : int or None, default None
        Largest number of vectors. None is 300 samples, or as many moved vectors as rows pay for: 256, and where there
        are 20 rows for each, up to 1,024.
    prefer : {"balanced", "sparse"}, default "balanced"
        The smallest model that is not clearly worse than the one of least held-out error: by half a standard error of
        the difference, and by 2% of the gain over a constant, times the relative error, for every halving of the size;
        or by three times as much.
    categorical_features : "from_dtype", array-like of names, positions or a mask of columns, or None
        Which columns are categories: by default those that a data frame says are (of the type ``category`` in pandas,
        ``Categorical`` or ``Enum`` in polars). Their levels are numbers or texts; levels that the fit did not see are
        predicted like the mean of all. Gaps (NaN, None, NA) may be in any column.
    random_state : int, Generator, RandomState or None, default 0
        Rows are put into an order of their own first, so the order of the table does not matter.
    verbose : bool or int, default False
        Whether to show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : GaussianExpansion
        The fitted function.
    vectors_, indices_, n_vectors_
        The vectors that are kept, in the units of the columns (of a category, the nearest level's position in
        ``categories_``); the rows of ``X`` that they are, or None if they were moved; their number.
    origin_ : {"samples", "distilled", "moved", "given"}
        What the vectors are: samples, moved to imitate a model on more samples, moved by the targets, or given.
    categories_ : list or None
        The sorted levels of every column, None for a column of numbers; None if all are numbers.
    alpha_ : float
        Ridge per unit of weight.
    basis_ : GaussianBasis
        The features of a sample; ``partial_fit`` takes it.
    path_ : Path or None
        Held-out error of all that was compared; None with too few rows to hold any out.
    n_copies_ : int
        Rows that are copies of others: equal in all columns and in ``y``, where chance does not explain that. They
        count as one row with the sum of their weights.
    held_out_error_ : float
        Mean squared error, summed over the outputs, of rows held out, at settings that other rows chose.
    intervals_ : Intervals
        What :meth:`predict_interval` reads.
    novelty_ : Novelty or None
        What :meth:`novelty` reads.
    background_ : Background or None
        What :meth:`explain` compares with: at most 16 weighted centers of prepared rows, each the mean of at least
        five rows where there are enough, so that none is a row.
    feature_importances_
        Share of every column in the variation of the function.

    Notes
    -----
    Rows: at most 20,000 move the vectors, in memory; 1,000,000 on a device, where torch tensors are moved in double
    precision. Coefficients come from all rows, in blocks. A fifth of the rows that move vectors is held out to compare
    models, in up to five folds.

    Cost of a fit: some hundred evaluations of the error. With ``m`` vectors and ``p <= 64`` linear features one takes
    ``6 n (m + p)^2`` flops where it leaves out every row, and ``n (m + p)^2`` from ten rows a feature on (generalized
    cross-validation). It grows with at most 20,000 rows; each further row adds its part of the sums.

    Memory: the rows that move vectors, in double precision, a few times; a few matrices of ``n (m + p)`` numbers where
    ``n < 10 (m + p)``; else blocks of rows. No matrix of all rows and all vectors is formed.

    Sparse ``X`` of at most 256 columns, and one more per target, has the model of its dense copy. Of more columns the
    model sees 16 leading components and, per target, a ridge regression on all columns; nothing is made dense,
    ``vectors_`` are in components, and there are neither shares nor importances of columns.

    Kernels other than the Gaussian: :class:`FeatureVectorRegressor`.

    Examples
    --------
    >>> from fewkern import KernelRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(200, noise=0.1)
    >>> model = KernelRegressor().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 30
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = PARAMETERS

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> KernelRegressor:
        """Choose, move and size the vectors.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        groups : array of shape (n_samples,) or None
            Labels, equal for samples that belong together, such as the measurements of one person. Whole groups are
            then held out, in every choice and in every estimate for new samples.

        Returns
        -------
        self
        """
        population, self._single = measured_population(self, X, y, sample_weight, groups)
        fitted = fit_population(self, population)
        self._keep_fit(fitted, fitted.held_out.squared_error())
        # rows held out are on the host
        self._keep_uncertainty(fitted.held_out, fitted.basis.like(fitted.held_out.values), population.sample)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, basis: Basis | None = None) -> KernelRegressor:
        """Learn from one of several batches of samples.

        Vectors, metric and ridge are chosen on the first batch, as :meth:`fit` does, and stay. It should therefore
        hold a few thousand samples of every kind; or give the vectors. The coefficients are those of all batches.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        basis : GaussianBasis, KernelBasis or None
            Vectors to use instead of those that the first batch would choose: ``basis_`` of a fitted model.

        Returns
        -------
        self
        """
        before = sums_before(self)
        samples, single = check_measured(self, X, y, sample_weight, reset=before is None, minimum=1)
        if before is None:
            self._single = single
        sums, samples = self._learn_batch(samples, before, basis)
        held_out = sums.left_out(samples)
        self._keep_batch(sums.judged(held_out.weight, held_out.squared_error()))
        self._keep_uncertainty(held_out, sums.basis, samples)
        return self

    def _keep_uncertainty(self, held_out: HeldOut, basis: Basis, samples: Samples) -> None:
        self.intervals_ = fit_intervals(held_out, basis)
        self._importances = importances_of(self.expansion_, None, samples)

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        return check_measured(self, X, y, sample_weight, reset=False, minimum=1)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


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
        Largest number of vectors. None is 300 samples, or as many moved vectors as rows pay for: 256, and where there
        are 20 rows for each, up to 1,024.
    prefer : {"balanced", "sparse"}, default "balanced"
        As in :class:`KernelRegressor`.
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class.
    categorical_features : "from_dtype", array-like of names, positions or a mask of columns, or None
        As in :class:`KernelRegressor`.
    random_state : int, Generator, RandomState or None, default 0
        As in :class:`KernelRegressor`.
    verbose : bool or int, default False
        Whether to show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    expansion_ : GaussianExpansion
        One output for two classes (positive: the second class), one per class otherwise.
    vectors_, indices_, n_vectors_, origin_, categories_, alpha_, basis_, path_, n_copies_, feature_importances_
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
        categorical_features: Any = "from_dtype",
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        super().__init__(
            n_vectors=n_vectors,
            max_vectors=max_vectors,
            prefer=prefer,
            categorical_features=categorical_features,
            random_state=random_state,
            verbose=verbose,
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
        error = fitted.held_out.error_rate()
        fitted = as_logistic(fitted, population)
        scores = calibrate(ClassScores(), fitted.held_out)
        self._keep_fit(fitted, error, scores.factor)
        self.loss_ = fitted.loss
        self._keep_scores(scores, fitted.held_out, population.sample)
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
            _warn_of_rare_classes(self, samples)
        sums, samples = self._learn_batch(samples, before, basis)
        held_out = sums.left_out(samples)
        sums = sums.judged(held_out.weight, held_out.error_rate(), calibrate(ClassScores(), held_out).factor)
        self._keep_batch(sums)
        self.loss_ = "squared"  # sums give no other
        self._keep_scores(ClassScores(factor=sums.factor), held_out, samples)
        return self

    def _keep_scores(self, scores: ClassScores, held_out: HeldOut, samples: Samples) -> None:
        self.class_scores_ = scores
        self.held_out_scores_ = held_out_scores(scores, held_out.values, held_out.samples)
        self._importances = importances_of(self.expansion_, scores, samples)

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


def _warn_of_rare_classes(model: KernelClassifier, samples: Samples) -> None:
    """Warn where the first batch, which chooses the vectors, has few rows of some class."""
    counts = np.bincount(to_numpy(samples.codes), minlength=len(model.classes_))
    rare = np.flatnonzero(counts < _LEAST_CLASS_ROWS)
    if len(rare):
        labels = ", ".join(repr(label) for label in to_numpy(model.classes_)[rare[:5]].tolist())
        warnings.warn(
            f"{type(model).__name__}.partial_fit: the first batch has fewer than {_LEAST_CLASS_ROWS} rows of "
            f"{len(rare)} of {len(model.classes_)} classes ({labels}{', ...' if len(rare) > 5 else ''}), and chooses "
            "all vectors: later rows of these may be predicted badly. Let a batch with more of them come first, or "
            "pass basis=, the basis_ of a model that was fitted to some rows of every class.",
            UserWarning,
            stacklevel=4,
        )
