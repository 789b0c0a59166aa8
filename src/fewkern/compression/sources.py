"""From a fitted model, ours or scikit-learn's, to the function that is imitated: one small function per kind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_outlier_detector, is_regressor
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import Array, asarray_like, float_dtype, is_sparse, namespace, to_numpy
from fewkern.compression.distillation import Teacher
from fewkern.core.components import check_sees_columns
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.kernels import Gaussian
from fewkern.core.scores import ClassScores

# Smaller probabilities count as this one: their logarithms would outweigh all others, and decide nothing.
LEAST_PROBABILITY = 1e-4


def teacher(model: Any) -> Teacher:
    """The function of a fitted model, and its known properties."""
    name = type(model).__name__
    read = next((read for cls, read in _SOURCES.items() if isinstance(model, cls)), None)
    if read is None and isinstance(model, BaseEstimator):
        own = type(model).__module__.startswith("fewkern.")
        read = _own if own else next((read for test, read in _BY_VALUES if test(model)), None)
    if read is None:
        raise TypeError(
            f"compress: cannot read a {name}; expected a fitted classifier, regressor or outlier detector with "
            "scikit-learn's interface, an estimator of fewkern, KernelPCA, or a pipeline that ends in one of these."
        )
    check_fitted(model)
    if getattr(model, "kernel", None) == "precomputed":
        raise ValueError(f"compress: this {name} was fitted to kernel values; fit it to samples.")
    found = read(model)
    if found.vectors is not None and is_sparse(found.vectors):
        raise ValueError(
            f"compress: this {name} was fitted to sparse samples, and moved vectors would not be sparse; fit it to a "
            "dense array."
        )
    return found


def check_fitted(model: Any, attribute: str | None = None) -> None:
    """Raise a NotFittedError, in the name of ``compress``, unless the model is fitted."""
    try:
        check_is_fitted(model, attribute)
    except NotFittedError:
        raise NotFittedError(f"compress: this {type(model).__name__} is not fitted; call fit first.") from None


def ask(method: Callable[[Any], Any], X: Array) -> Any:
    """Call a method of a model on checked samples, whose names were checked with them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(X)


def _asked(method: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """A method of scikit-learn's as a function from samples, wherever they are, to a matrix."""

    def answer(X: Array) -> Array:
        said = np.asarray(ask(method, to_numpy(X)), dtype=np.float64)
        return asarray_like(said[:, None] if said.ndim == 1 else said, X, dtype=float_dtype(X))

    return answer


def _width(model: Any, gamma: Any) -> float | None:
    """Width of the Gaussian ``exp(-gamma |x - y|^2)``; None for another kernel."""
    return 1.0 / math.sqrt(2.0 * float(gamma)) if model.kernel == "rbf" else None


def _machine(model: Any) -> Teacher:
    """A support vector machine with one output."""
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    scores = ClassScores() if hasattr(model, "decision_function") else None
    width = _width(model, getattr(model, "_gamma", 1.0))
    vectors, function = model.support_vectors_, None
    if width is not None and not is_sparse(vectors):
        function = KernelExpansion(Gaussian(width), vectors, model.dual_coef_.T, np.asarray(model.intercept_))
    return Teacher(_asked(ask), vectors, scores, widths=width, function=function)


def _classifier(model: Any) -> Teacher:
    """One value for two classes. For more, one for every pair, which vote: the sum of these votes is taught.

    Votes jump from -1 to 1, which no short sum of kernels does. A value inside the margin is part of a vote, so these
    sums are continuous, and their largest is the elected class but for near ties. There is one per class.
    """
    k = len(model.classes_)
    if k == 2:
        return _machine(model)
    one_by_one = copy(model)
    one_by_one.decision_function_shape = "ovo"
    pairs = _asked(one_by_one.decision_function)
    ballot = np.array([[(c == i) - (c == j) for c in range(k)] for i in range(k) for j in range(i + 1, k)], dtype=float)

    def votes(X: Array) -> Array:
        return asarray_like(np.clip(to_numpy(pairs(X)), -1.0, 1.0) @ ballot, X, dtype=float_dtype(X))

    return Teacher(votes, model.support_vectors_, ClassScores(), _predicted(model), _width(model, model._gamma))


def _predicted(model: Any) -> Callable[[Array], Array]:
    """The numbers of the classes that a model predicts."""

    def decide(X: Array) -> Array:
        return asarray_like(np.searchsorted(model.classes_, ask(model.predict, to_numpy(X))), X)

    return decide


def _kernel_ridge(model: KernelRidge) -> Teacher:
    width = _width(model, 1.0 / model.n_features_in_ if model.gamma is None else model.gamma)
    function = None
    if width is not None:
        coef = model.dual_coef_.reshape(len(model.dual_coef_), -1)
        function = KernelExpansion(Gaussian(width), model.X_fit_, coef, np.zeros(coef.shape[1]))
    return Teacher(_asked(model.predict), model.X_fit_, widths=width, function=function)


def _gaussian_process(model: GaussianProcessRegressor) -> Teacher:
    """The mean of the process."""
    check_fitted(model, "alpha_")  # a process gives predictions before it is fitted
    return Teacher(_asked(model.predict), model.X_train_, widths=_length_scale(model.kernel_))


def _process_classifier(model: GaussianProcessClassifier) -> Teacher:
    """The log odds of the probabilities."""
    check_fitted(model, "base_estimator_")
    several = model.n_classes_ > 2
    if several and model.multi_class != "one_vs_rest":
        raise ValueError(
            f"compress: this GaussianProcessClassifier has multi_class={model.multi_class!r}, whose pairs of classes "
            'give no probabilities; fit with "one_vs_rest".'
        )
    first = model.base_estimator_.estimators_[0] if several else model.base_estimator_

    def log_odds(X: Any) -> Any:
        scores = np.log(np.clip(model.predict_proba(X), LEAST_PROBABILITY, 1.0))
        return scores - scores.mean(axis=1, keepdims=True) if several else scores[:, 1] - scores[:, 0]

    return Teacher(_asked(log_odds), first.X_train_, ClassScores(), widths=_length_scale(first.kernel_))


def _length_scale(kernel: Any) -> Any:
    """Widths of the only Gaussian in a kernel; None where there is another one."""
    parts = [part for part in _parts(kernel) if hasattr(part, "length_scale")]
    return np.asarray(parts[0].length_scale) if len(parts) == 1 and type(parts[0]) is RBF else None


def _parts(kernel: Any) -> list[Any]:
    """The kernels of which one is a sum or product."""
    return _parts(kernel.k1) + _parts(kernel.k2) if hasattr(kernel, "k1") else [kernel]


def _own(model: Any) -> Teacher:
    function, scores = getattr(model, "expansion_", None), getattr(model, "class_scores_", None)
    check_sees_columns(function, "compress")
    if isinstance(function, GaussianExpansion):
        widths = 1.0 / to_numpy(function.basis.scales)
        return Teacher(function, function.vectors, scores, widths=widths, function=function)
    if not isinstance(function, KernelExpansion):
        raise TypeError(
            f"compress: a {type(model).__name__} does not compute a sum of kernels with free coefficients, which is "
            "what can be compressed; a density takes fewer kernels by max_vectors, a selector by n_vectors."
        )
    width = to_numpy(function.kernel.length_scale) if isinstance(function.kernel, Gaussian) else None
    return Teacher(function, function.vectors, scores, widths=width, function=function)


def _any_classifier(model: Any) -> Teacher:
    """A classifier of unknown form: its decision function, else its probabilities, else its decisions."""
    name = type(model).__name__
    if not hasattr(model.classes_, "shape") or _n_values(model, "predict") > 1:
        raise TypeError(f"compress: this {name} has several outputs; compress one model per output.")
    if isinstance(model, (FixedThresholdClassifier, TunedThresholdClassifierCV)):
        raise TypeError(
            f"compress: this {name} moves the threshold of another classifier; compress that (estimator_), and give "
            "the result to FixedThresholdClassifier(FrozenEstimator(...))."
        )
    k = len(model.classes_)
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name) and (name == "predict_proba" or k == 2 or _n_values(model, name) == k):
            return Teacher(_centred_scores(getattr(model, name)), None, ClassScores(), _predicted(model))
    decide = _predicted(model)

    def indicators(X: Any) -> Any:
        return np.eye(k)[to_numpy(decide(X))]

    return Teacher(_centred_scores(indicators), None, ClassScores(), decide)


def _detector(model: Any) -> Teacher:
    if not hasattr(model, "decision_function"):
        raise TypeError(f"compress: this {type(model).__name__} cannot score new samples; fit it with novelty=True.")
    return Teacher(_asked(model.decision_function), None, ClassScores())


def _n_values(model: Any, name: str) -> int:
    """Number of values in the answer of a method to one row."""
    return int(np.size(ask(getattr(model, name), np.zeros((1, model.n_features_in_)))))


def _centred_scores(method: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """One value for two classes, else one per class about their mean: only differences between classes matter."""
    asked = _asked(method)

    def scores(X: Array) -> Array:
        found = asked(X)
        if found.shape[1] == 2:
            return found[:, 1:] - found[:, :1]
        return found if found.shape[1] == 1 else found - namespace(found).mean(found, axis=1)[:, None]

    return scores


# Estimators of unknown form are imitated by their values alone.
_BY_VALUES: tuple[tuple[Callable[[Any], bool], Callable[[Any], Teacher]], ...] = (
    (is_classifier, _any_classifier),
    (is_regressor, lambda model: Teacher(_asked(model.predict), None)),
    (is_outlier_detector, _detector),
)
_SOURCES: dict[type, Callable[[Any], Teacher]] = {
    SVC: _classifier,
    NuSVC: _classifier,
    SVR: _machine,
    NuSVR: _machine,
    OneClassSVM: _machine,
    KernelRidge: _kernel_ridge,
    KernelPCA: lambda model: Teacher(_asked(model.transform), model.X_fit_, widths=_width(model, model.gamma_)),
    GaussianProcessRegressor: _gaussian_process,
    GaussianProcessClassifier: _process_classifier,
}
