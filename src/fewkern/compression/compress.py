"""``fewkern.compress``: a short model that does what a fitted one does, and the classes of such models.

Compressed models predict like any estimator, and are saved and exported like one, but they have no parameters and are
not fitted to samples.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
    is_classifier,
    is_outlier_detector,
    is_regressor,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from fewkern.arrays.namespace import Array, asarray_like, to_numpy
from fewkern.arrays.progress import shown
from fewkern.arrays.sampling import seed_from
from fewkern.arrays.storable import storable
from fewkern.arrays.validation import (
    Interval,
    labels_from_codes,
    unwrapped,
    validate_parameter_constraints,
    validate_samples,
)
from fewkern.base import (
    CONSTRAINTS,
    ScoringClassifier,
    check_samples,
    constraints,
    explain,
    importances_of,
    kept_importances,
)
from fewkern.compression.distillation import IMITATION, Agreement, Function, Goal, Teacher, distill, ladder
from fewkern.compression.sources import ask, check_fitted, teacher
from fewkern.core.explanation import fit_background
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, class_values
from fewkern.learn.policy import POLICY
from fewkern.select.uncertainty import match_temperature

_CONSTRAINTS = constraints(
    *("random_state", "verbose"), n_vectors=CONSTRAINTS["max_vectors"], tolerance=[Interval(Real, 0, 1, closed="left")]
)


class CompressedModel(BaseEstimator):
    """Base of the compressed models: a short expansion, and how far it agrees with the model that it came from.

    Attributes
    ----------
    expansion_ : GaussianExpansion or KernelExpansion
        The fitted function; the second where it is the source's own.
    vectors_, n_vectors_
        Its vectors, which are no longer samples, and their number.
    agreement_ : Agreement
        Agreement with the source, on new samples.
    feature_importances_ : array of shape (n_features,)
        Share of every feature in the variation of the short function, as in :class:`KernelRegressor`; a
        transformer has none.
    background_ : Background or None
        What ``explain`` compares with, as in :class:`FeatureVectorRegressor`; a transformer has none.
    source_ : str
        Class of the model that this one came from.
    n_features_in_, feature_names_in_
        As in the source.
    """

    expansion_: Function
    agreement_: Agreement
    source_: str
    methods_: list[str]

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Refuse: a compressed model is made from a fitted one."""
        raise TypeError(
            f"{type(self).__name__}: a compressed model cannot be fitted; fit the model that it came from, and call "
            "fewkern.compress on that."
        )


def _has(method: str) -> Any:
    """Make a method available only where the source has it."""
    return available_if(lambda model: method in model.methods_)


@storable
class CompressedClassifier(ScoringClassifier, CompressedModel):
    """A short classifier that decides like another one; made by :func:`fewkern.compress`.

    ``predict_proba`` and ``transform`` exist where the source has them.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_scores_ : ClassScores
        How values become classes and probabilities.
    expansion_, vectors_, n_vectors_, agreement_, source_
        As in every compressed model: the short function, its vectors, and how far it agrees with the source.
    """

    feature_importances_ = kept_importances
    explain = explain

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``, in the order of ``classes_``."""
        return super().predict_proba(X)

    @_has("predict_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of every class."""
        return super().predict_log_proba(X)

    @_has("transform")
    def transform(self, X: Any) -> Array:
        """Components of the samples, as the source gives them."""
        return self._values(X)


@storable
class CompressedRegressor(RegressorMixin, CompressedModel):
    """A short function with the predictions of a regression; made by :func:`fewkern.compress`."""

    single_: bool
    feature_importances_ = kept_importances
    explain = explain

    def predict(self, X: Any) -> Array:
        """Values of shape ``(n_samples,)`` or ``(n_samples, n_outputs)``, as the source gives them."""
        values = self.expansion_(check_samples(self, X))
        return values[:, 0] if self.single_ else values


@storable
class CompressedTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CompressedModel):
    """Short functions with the components of a transformer; made by :func:`fewkern.compress`."""

    def transform(self, X: Any) -> Array:
        """Components of the samples, shape ``(n_samples, n_components)``."""
        return self.expansion_(check_samples(self, X))


@storable
class CompressedDetector(CompressedModel):
    """A short function that finds the outliers of another one (OneClassSVM); made by :func:`fewkern.compress`.

    Attributes
    ----------
    offset_ : float
        ``score_samples`` at the border, as in the source.
    classes_
        -1 (outlier) and 1, for exports.
    """

    offset_: float
    feature_importances_ = kept_importances
    explain = explain

    def decision_function(self, X: Any) -> Array:
        """Distance from the border, negative for outliers; shape ``(n_samples,)``."""
        return self.expansion_(check_samples(self, X))[:, 0]

    def score_samples(self, X: Any) -> Array:
        """``decision_function`` without the offset."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """-1 for outliers, 1 for other samples."""
        values = self.expansion_(check_samples(self, X))
        return labels_from_codes(self.classes_, self.class_scores_.codes(values))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "outlier_detector"
        return tags


def compress(
    model: Any,
    X: Any = None,
    *,
    X_new: Any = None,
    n_vectors: int | None = None,
    tolerance: float = 0.02,
    verbose: Any = False,
    random_state: Any = 0,
) -> Any:
    """A short model that does what a fitted model does.

    A few Gaussians are moved until their sum has the values of the model, by the optimizer that moves the vectors of
    :class:`KernelRegressor`, with the model in place of labels. No labels are needed.

    Parameters
    ----------
    model : fitted estimator
        An estimator of fewkern that computes a sum of kernels; scikit-learn's SVC, NuSVC, SVR, NuSVR, OneClassSVM,
        KernelRidge, KernelPCA, GaussianProcessRegressor (its mean) or GaussianProcessClassifier (two classes, or
        "one_vs_rest"), with any kernel; any other classifier, regressor or outlier detector with scikit-learn's
        interface, such as a forest; a Pipeline that ends in one of them, a GridSearchCV of one, or a TableModel.
    X : array or data frame of shape (n_samples, n_features) or None, default None
        Samples where the short model has to agree with the long one, such as the training samples. None takes the
        vectors of a kernel model; other models and a TableModel need ``X``.
    X_new : array or data frame of shape (n_new, n_features) or None, default None
        Samples that the model was not fitted to, without labels, to measure ``agreement_`` on. None: one sample of
        ``X`` in ten is held out, and the agreement is measured at new points beside these.
    n_vectors : int or None, default None
        Number of vectors. None takes the first of 4, 8, 16, 32, 64, 128, ... that agrees within ``tolerance``,
        up to half of the model's, or of ``X`` (256 at most) where the model has no vectors; where none does, the
        smallest that loses at most ``tolerance`` against the best. A sum of Gaussians of no more than ``n_vectors`` is
        returned with its own function.
    tolerance : float, default 0.02
        Share of samples that a classifier may decide otherwise, in every class of the model: the class of least
        agreement counts, so that a rare one is kept. For a regression or a transformer, the error of the values over
        their standard deviation. A warning says where it is not reached, and which classes have too few samples to
        tell.
    verbose : bool or int, default False
        Whether to show how many searches for vectors are done: a bar on a terminal, lines on stderr elsewhere.
    random_state : int, Generator, RandomState or None, default 0

    Returns
    -------
    CompressedClassifier, CompressedRegressor, CompressedTransformer, CompressedDetector, Pipeline or TableModel
        With the methods of ``model``, ``n_vectors_``, ``vectors_``, ``expansion_`` and ``agreement_``. A Pipeline keeps
        its first steps as they are, and a TableModel its columns.

    Notes
    -----
    An SVC with three or more classes lets its pairs of classes vote. The short model has one value per class, the sum
    of these votes, each softened inside the margin: votes jump, and sums of kernels do not. Probabilities of
    scikit-learn's support vector machines are matched by one factor on the scores; where there are none, there is no
    ``predict_proba``, neither here nor in an exported file. The values taught are, for a GaussianProcessClassifier,
    the log odds of its probabilities, which include its uncertainty and hold where there are samples; for other
    classifiers the decision function, or else the probabilities.

    A model may have memorised the samples that it was fitted to, so these do not represent new ones. The vectors are
    moved on them and on crossings, which take every feature from one of two neighbouring samples; and ``agreement_``
    is measured on crossings of samples that were held out, or on ``X_new``.

    The search starts in the metric of the model's own Gaussians. A model with another kernel is imitated by Gaussians
    and a linear part.

    Cost: about ``4 n m^2`` flops per step with ``n`` = 3,000 rows, at most 150 steps for each size.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from fewkern import compress
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400)
    >>> svc = SVC(C=10.0).fit(X, y)
    >>> short = compress(svc, X, n_vectors=10)
    >>> len(svc.support_) > 80, short.n_vectors_
    (True, 10)
    >>> bool((short.predict(X) == svc.predict(X)).mean() > 0.97)
    True
    """
    settings = {"n_vectors": n_vectors, "tolerance": tolerance, "verbose": verbose, "random_state": random_state}
    validate_parameter_constraints(_CONSTRAINTS, settings, "compress")
    model, given = unwrapped(model, "compress"), {"X_new": X_new, **settings}
    if isinstance(model, BaseEstimator) and hasattr(model, "compress"):  # a TableModel knows its columns
        if X is None:
            raise ValueError(f"compress: a {type(model).__name__} needs X, the rows of a table to agree on.")
        return model.compress(X, **given)
    if isinstance(model, Pipeline):
        check_fitted(model)
        *before, (name, last) = model.steps
        first = Pipeline(before)
        X, given["X_new"] = (part if part is None or not before else first.transform(part) for part in (X, X_new))
        short = compress(last, X, **given)
        return Pipeline([*before, (name, short)])
    long = teacher(model)
    samples, fresh = _samples(model, long, X), None if X_new is None else _samples(model, long, X_new)
    most = (
        min(2 * POLICY.candidates.ladder[-1], int(samples.shape[0]))
        if long.vectors is None
        else int(long.vectors.shape[0])
    )
    sizes = ladder(max(1, most // 2)) if n_vectors is None else (min(int(n_vectors), most),)
    goal = Goal(sizes, tolerance, int(model.classes_.shape[0]) if is_classifier(model) else 0)
    follow: Any = shown("compress: moving vectors", len(sizes)) if verbose else nullcontext(lambda _: None)
    with follow as step:
        short, agreement, rare = distill(long, samples, fresh, goal, seed_from(random_state), step)
    name = type(model).__name__
    if agreement.loss > tolerance:
        warnings.warn(
            f"compress: {short.n_vectors} vectors do not agree with this {name} to the tolerance {tolerance:g}: "
            f"{agreement} on new samples; raise n_vectors or tolerance, or pass more samples X.",
            UserWarning,
            stacklevel=2,
        )
    if rare and goal.n_classes:
        classes = ", ".join(repr(to_numpy(model.classes_)[c].item()) for c in rare[:5])
        warnings.warn(
            f"compress: this {name} decides for {classes} on fewer than {IMITATION.least_class_rows} samples, too few "
            "to tell whether the short model keeps such decisions; pass more of these samples.",
            UserWarning,
            stacklevel=2,
        )
    made = _estimator(model, long, short, samples)
    made.agreement_ = agreement
    return made


def _samples(model: Any, long: Teacher, X: Any) -> Array:
    """Checked samples; the vectors of a kernel model where none are given."""
    if X is not None:
        return validate_samples(model, X, reset=False, accept_sparse=False)
    if long.vectors is None:
        raise ValueError(f"compress: a {type(model).__name__} has no vectors; pass X, samples to agree on.")
    return long.vectors


def _estimator(model: Any, long: Teacher, short: Function, samples: Array) -> CompressedModel:
    """The short function as an estimator of the same kind as the model."""
    made: Any
    if is_classifier(model):
        made = CompressedClassifier()
        made.classes_, made.class_scores_ = model.classes_, _class_scores(model, long, short, samples)
    elif is_regressor(model):
        made = CompressedRegressor()
        made.single_ = ask(model.predict, samples[:1, :]).ndim == 1
    elif is_outlier_detector(model):
        made = CompressedDetector()
        made.classes_, made.class_scores_ = np.array([-1, 1]), long.scores
        made.offset_ = float(np.ravel(model.offset_)[0])
    else:
        made = CompressedTransformer()
    # only for a sum of kernels are the components the values that were taught
    names = ("predict_proba",) if long.vectors is None else ("predict_proba", "transform")
    made.methods_ = [name for name in names if hasattr(model, name)]
    made.expansion_, made.source_ = short, type(model).__name__
    made.vectors_, made.n_vectors_ = short.vectors, short.n_vectors
    made.n_features_in_ = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        made.feature_names_in_ = model.feature_names_in_
    if "transform" in made.methods_:
        made._n_features_out = short.n_outputs
    if hasattr(type(made), "feature_importances_"):
        made._importances = importances_of(made.expansion_, getattr(made, "class_scores_", None), Samples.of(samples))
        made.background_ = fit_background(made.expansion_, Samples.of(samples))
    return made


def _class_scores(model: Any, long: Teacher, short: Function, samples: Array) -> ClassScores:
    """How the values of the short function become classes and probabilities."""
    scores = long.scores or ClassScores()
    if hasattr(model, "class_scores_") or not hasattr(model, "predict_proba"):
        return scores
    # Paper: Platt's sigmoid has a slope and an offset. We: match its probabilities by the slope alone, because the
    # class of largest probability then is the class that is predicted.
    values = class_values(short(samples))
    targets = asarray_like(ask(model.predict_proba, samples), values, dtype=values.dtype)
    return replace(scores, factor=match_temperature(values, targets))
