"""What estimators share with scikit-learn: a kernel parameter, checked samples, and predictions from class scores."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.linalg import one_hot
from fewkern.arrays.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.arrays.numerics import all_finite, quiet
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.validation import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    encode_labels,
    labels_from_codes,
    validate_class_weights,
    validate_groups,
    validate_samples,
    validate_targets,
    validate_weights,
)
from fewkern.core.components import check_sees_columns
from fewkern.core.conformal import HeldOutScores
from fewkern.core.explanation import (
    Background,
    Explanation,
    background_of,
    differentiable,
    explainable,
    feature_importances,
    shares,
    vectors_of,
)
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.kernels import Kernel, as_kernel
from fewkern.core.path import TOLERANCE, Path
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores


class BudgetWarning(UserWarning):
    """The error was still falling where the budget of vectors ended."""


_COUNT = Interval(Integral, 1, None, closed="left")
# What every parameter of that name accepts, wherever it occurs.
CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [str, Kernel, callable],
    "prefer": [StrOptions(set(TOLERANCE))],
    "max_vectors": [None, _COUNT],
    "n_components": [None, _COUNT],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "priors": [None, "array-like"],
    "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
    "tol": [None, Interval(Real, 0, 1, closed="neither")],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}


def constraints(*names: str, **own: list[Any]) -> dict[str, list[Any]]:
    """The shared constraints of the parameters ``names``, and those of an estimator's own."""
    return {**{name: CONSTRAINTS[name] for name in names}, **own}


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators with a ``kernel`` parameter."""

    kernel: Any

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters; ``kernel__length_scale=...`` works also while ``kernel`` is a name or a function."""
        if any(key.startswith("kernel__") for key in params):
            kernel = params.pop("kernel", self.kernel)
            self.kernel = as_kernel(kernel)
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed" or bool(getattr(self.kernel, "pairwise", False))
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        tags.array_api_support = True
        return tags


def check_samples(estimator: BaseEstimator, X: Any, *, reset: bool = False, minimum: int = 1) -> Array:
    """``X`` as a checked array; new samples (``reset=False``) must have the features of the fitted ones."""
    if not reset:
        check_is_fitted(estimator)
    sparse = get_tags(estimator).input_tags.sparse
    return validate_samples(
        estimator, X, reset=reset, accept_sparse=sparse, minimum=minimum, pairwise=is_pairwise(estimator)
    )


def is_pairwise(estimator: Any) -> bool:
    """Whether the rows of ``X`` are kernel values."""
    return hasattr(estimator, "kernel") and as_kernel(estimator.kernel).pairwise


def check_weighted(estimator: KernelEstimator, X: Any, sample_weight: Any, *, minimum: int = 1) -> Samples:
    """Checked samples without labels."""
    X = check_samples(estimator, X, reset=True, minimum=minimum)
    weights = validate_weights(estimator, X, sample_weight)
    return Samples.of(X, weights, pairwise=is_pairwise(estimator))


def check_labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Checked samples with classes; sets ``classes_``. A ``class_weight`` is part of the weights."""
    X = check_samples(estimator, X, reset=True, minimum=2)
    estimator.classes_, codes = encode_labels(estimator, X, y)
    weights = validate_class_weights(estimator, X, codes, sample_weight)
    return Samples.of(
        X,
        weights,
        pairwise=is_pairwise(estimator),
        codes=codes,
        n_classes=int(estimator.classes_.shape[0]),
    )


def check_measured(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, minimum: int = 2
) -> tuple[Samples, bool]:
    """Checked samples with numbers as targets, and whether these came as one column."""
    X = check_samples(estimator, X, reset=reset, minimum=minimum)
    targets, single = validate_targets(estimator, X, y)
    weights = validate_weights(estimator, X, sample_weight)
    return Samples.of(X, weights, pairwise=is_pairwise(estimator), targets=targets), single


def check_priors(estimator: Any, samples: Samples) -> Array | None:
    """The parameter ``priors`` beside the weights: positive numbers, one per class, that add up to one."""
    if estimator.priors is None:
        return None
    values = to_numpy(estimator.priors).astype(float)
    if values.shape != (samples.n_classes,) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
        raise ValueError(
            f"{type(estimator).__name__}: priors must be {samples.n_classes} positive numbers that add up to 1, one "
            f"per class in the order of classes_, got {estimator.priors!r}."
        )
    return asarray_like(values / values.sum(), samples.weights, dtype=samples.weights.dtype)


def _importances(estimator: Any) -> Array:
    """Share of every feature in the variation of the fitted function, shape ``(n_features,)``; they add up to one.

    The mean squared derivative along the feature over the training samples, in units of the feature's spread. A
    feature that the model ignores has zero. Needs dense samples and a kernel with derivatives.
    """
    check_is_fitted(estimator)
    found = getattr(estimator, "_importances", None)
    if found is None:
        raise AttributeError(
            f"{type(estimator).__name__}: feature_importances_ needs the derivatives of the fitted function in the "
            "columns; fit to dense samples, with the kernel Gaussian, Polynomial or Linear."
        )
    return found


# The attribute feature_importances_ of the models that predict from a sum of kernels.
kept_importances = property(_importances)


def importances_of(expansion: Any, scores: ClassScores | None, samples: Samples) -> Array | None:
    """Importances of the features to a function or its class scores; None where it has no derivatives."""
    if not differentiable(expansion):
        return None
    with quiet():  # a kernel may be so narrow that its derivatives overflow
        found = feature_importances(expansion if scores is None else scores.of(expansion), samples)
    return found if all_finite(found) else None


def path_of(estimator: Any) -> Path | None:
    """The errors of all settings that a fit compared, ``path_``; None where it compared none."""
    found = getattr(estimator, "path_", None)
    return found if isinstance(found, Path) else None


def vectors_moved(estimator: Any) -> bool:
    """Whether the vectors of a fitted estimator were moved, and are no longer samples."""
    expansion = getattr(estimator, "expansion_", None)
    return isinstance(expansion, GaussianExpansion) and expansion.indices is None


def warn_of_fewer_components(estimator: Any) -> None:
    """Warn where there are fewer components than were asked for; their number is known only after the fit."""
    asked, found = estimator.n_components, estimator.n_components_
    if asked is not None and 0 < found < asked:
        warnings.warn(
            f"{type(estimator).__name__}: n_components={asked} was asked for, but these samples give only {found}; the "
            "others do not exist. Use a smaller n_components, or None for all of them.",
            UserWarning,
            stacklevel=4,
        )


def check_groups(estimator: Any, samples: Samples, groups: Any) -> Samples:
    """The samples with their groups; ``groups`` are labels of the rows of the whole table, or None."""
    if groups is None:
        return samples
    codes = validate_groups(estimator, samples.n_all, groups)
    found = take_rows(asarray_like(codes, samples.rows, dtype=samples.rows.dtype), samples.rows)
    count = len(set(to_numpy(found).tolist()))
    if count == samples.n and count > 1:
        return samples  # every sample by itself: nothing belongs together
    if count < 2:
        raise ValueError(
            f"{type(estimator).__name__}: groups has only one group of positive weight; whole groups are held out, so "
            "there must be two or more. Leave groups out if all samples belong together."
        )
    return replace(samples, groups=found)


def check_probability(estimator: Any, name: str, value: Any) -> float:
    """A parameter of a method that must lie between 0 and 1."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1:
        raise ValueError(
            f"{type(estimator).__name__}: {name} must be a number between 0 and 1 (both excluded), got {value!r}."
        )
    return float(value)


def need_held_out(estimator: Any, name: str, method: str) -> Any:
    """The attribute ``name``, the held-out values that ``method`` needs."""
    check_is_fitted(estimator)
    found = getattr(estimator, name, None)
    if found is None:
        raise AttributeError(
            f"{type(estimator).__name__}.{method}: this model has no values of held-out samples (a class of very few "
            "samples has none); fit it to more samples."
        )
    return found


def _absent(name: str, what: str, instead: str) -> Any:
    """A method of another kind of estimator: accessing it raises an error that names the alternative."""

    def refuse(estimator: Any) -> None:
        raise AttributeError(f"{type(estimator).__name__} {what}, so it has no {name}; use {instead}.")

    return property(refuse, doc=f"Absent; use {instead}.")


# Methods of classifiers on regressors, and the other way round.
no_interval = _absent("predict_interval", "predicts classes", "predict_set(X, coverage) or predict_proba(X)")
no_set = _absent("predict_set", "predicts numbers", "predict_interval(X, coverage)")


def held_out_scores(
    class_scores: ClassScores, values: Array, samples: Samples, ratio: Array | None = None
) -> HeldOutScores:
    """What ``predict_set`` needs: one minus the probability of the true class, of held-out samples.

    ``values`` are those of the fitted function before ``class_scores``; ``ratio`` are given priors over the shares of
    the classes.
    """
    probabilities = class_scores.probabilities(values)
    xp = namespace(probabilities)
    own = one_hot(samples.codes, samples.n_classes, probabilities.dtype)
    weights = samples.weights if ratio is None else samples.weights * take_rows(ratio, samples.codes)
    scores = 1.0 - xp.sum(own * probabilities, axis=1)
    return HeldOutScores.of(scores, weights, samples.groups)


def set_threshold(estimator: Any, coverage: float) -> float:
    """One minus the least probability of a class in a set; infinite where the held-out samples are too few."""
    scores: HeldOutScores = need_held_out(estimator, "held_out_scores_", "predict_set")
    return scores.quantile(check_probability(estimator, "coverage", coverage))


class ScoringClassifier(ClassifierMixin):
    """Predictions of every classifier: the values of its expansion, through ``class_scores_``."""

    classes_: Array
    class_scores_: ClassScores

    def _values(self, X: Any) -> Array:
        """Values of the fitted function at new samples."""
        X = check_samples(self, X)  # first: a model that is not fitted has no other attribute
        return self.expansion_(X)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Scores of shape ``(n_samples,)`` for two classes (positive: the second), ``(n_samples, n_classes)`` else."""
        values = self._values(X)
        scores = self.class_scores_.scores(values)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @rowwise
    def predict(self, X: Any) -> Array:
        """Class of every sample."""
        values = self._values(X)
        return labels_from_codes(self.classes_, self.class_scores_.codes(values))

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``, in the order of ``classes_``."""
        values = self._values(X)
        return self.class_scores_.probabilities(values)

    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of every class."""
        values = self._values(X)
        return self.class_scores_.log_probabilities(values)

    @rowwise
    def predict_set(self, X: Any, coverage: float = 0.9) -> Array:
        """Classes that a sample may have: for a share ``coverage`` of the held-out samples the true one is among them.

        A class belongs to the set if its probability is at least as large as that of the true class is for a share
        ``coverage`` of the held-out samples. The most probable class always does, so no set is empty. A classifier
        that is right more often than ``coverage`` has sets of one class.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        coverage : float, default 0.9
            Between 0 and 1. If it exceeds what the held-out samples support (``n / (n + 1)``), all classes are in
            the set.

        Returns
        -------
        array of bool of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        threshold = set_threshold(self, coverage)
        probabilities = self.class_scores_.probabilities(self._values(X))
        xp = namespace(probabilities)
        top = probabilities == xp.max(probabilities, axis=1, keepdims=True)
        return (1.0 - probabilities <= threshold) | top

    predict_interval = no_interval


def explain(self: Any, X: Any, background: Any = None) -> Explanation:
    """What every feature contributes to the predictions for some samples, in closed form.

    The shares of a sample add up to its prediction (of a classifier, its ``decision_function``; of
    :class:`~fewkern.FeatureVectorPCA`, its components) minus the baseline, the mean prediction over the background. A
    share is the integral of the derivative along the feature on the straight line from a point of the background to the
    sample (Aumann and Shapley; "integrated gradients"), averaged over the background.
    :class:`~fewkern.KernelRegressor` and :class:`~fewkern.KernelClassifier` integrate in prepared columns.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    background : array, data frame or sparse matrix of shape (n_points, n_features), or None, default None
        Samples to compare with, equally weighted. None takes what the model keeps, ``background_``: at most 16 weighted
        centers of the training samples (means of groups, not samples). Of sparse samples, and where the model was given
        its basis, the vectors, equally weighted.

    Returns
    -------
    Explanation
        Its ``values`` have shape ``(n_samples, n_features)``, or ``(n_samples, n_features, n_outputs)`` for three or
        more classes and for several targets. They are dense, also for sparse samples.
    """
    X = check_samples(self, X)
    function = _function(self)
    kept = getattr(self, "background_", None)
    if background is not None:
        points = background_of(function, check_samples(self, background))
    else:
        points = kept if isinstance(kept, Background) else vectors_of(function)
    found = shares(function, X, points)
    values, baseline = (asarray_like(one, function.coef, dtype=function.coef.dtype) for one in found)
    names = getattr(self, "feature_names_in_", None)
    columns = tuple(f"feature {j}" for j in range(int(X.shape[1]))) if names is None else tuple(map(str, names))
    if function.n_outputs == 1:
        return Explanation(values[:, :, 0], float(baseline[0]), columns)
    classes = getattr(self, "classes_", None)
    outputs: Array = range(function.n_outputs) if classes is None else to_numpy(classes).tolist()
    return Explanation(values, baseline, columns, tuple(outputs))


def _function(estimator: Any) -> Any:
    """What an estimator predicts; of a classifier, the scores of its classes."""
    function, scores = estimator.expansion_, getattr(estimator, "class_scores_", None)
    check_sees_columns(function, f"{type(estimator).__name__}.explain")
    if not explainable(function):
        raise ValueError(
            f"{type(estimator).__name__}.explain: shares have a closed form for Gaussian kernels only, and this model "
            f'has {getattr(function, "kernel", type(function).__name__)}; fit it with kernel="gaussian".'
        )
    return function if scores is None else scores.of(function)
