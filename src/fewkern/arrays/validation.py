"""Samples, labels, weights and parameters, checked once, and what surrounds a ``fit``; scikit-learn's private names."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils._param_validation import validate_parameter_constraints as validate_parameter_constraints
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from fewkern.arrays.columns import as_matrix, takes_tables
from fewkern.arrays.namespace import (
    Array,
    asarray_like,
    float_dtype,
    is_foreign,
    is_sparse,
    namespace,
    take_rows,
    to_numpy,
)
from fewkern.arrays.numerics import all_finite, quiet, squarable
from fewkern.arrays.partitions import NeedsMemoryError, is_collection

# Columns of a sparse matrix: every fit has arrays of this length, of half a gigabyte each.
_MOST_COLUMNS = 2**26
_FILL = "fill or drop them first, for example with SimpleImputer."
# What NumPy raises for what cannot be made a number, and how its messages begin.
_NO_NUMBERS = (ValueError, TypeError, OverflowError)
_NO_NUMBER = ("could not convert", "setting an array element", "float() argument must be", "int too large")


def validate_samples(
    estimator: Any, X: Any, *, reset: bool, accept_sparse: bool = True, minimum: int = 1, pairwise: bool = False
) -> Array:
    """``X`` as a checked float array of shape ``(n, d)``: NumPy, CSR, or whatever array library it came in.

    Sets ``n_features_in_`` (and ``feature_names_in_``) when ``reset``, compares with them otherwise.
    """
    accept_sparse = accept_sparse and not pairwise
    if not takes_tables(estimator) or is_collection(X):
        return _validated(estimator, X, reset=reset, accept_sparse=accept_sparse, minimum=minimum, gaps=False)

    def numbers(table: Any) -> Array:
        gaps = not is_sparse(table)
        return _validated(estimator, table, reset=reset, accept_sparse=accept_sparse, minimum=minimum, gaps=gaps)

    return as_matrix(estimator, X, numbers, reset=reset, minimum=minimum)


def _validated(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool, minimum: int, gaps: bool) -> Array:
    """``X`` as a checked array of numbers, with ``gaps`` or without."""
    name = type(estimator).__name__
    if is_collection(X):
        raise NeedsMemoryError(
            f"{name}: X is a Dask collection, and {name} needs all samples in memory; pass X.compute(), or some of the "
            "rows. KernelClassifier, KernelRegressor, FeatureVectorRegressor, -Discriminant, -PCA and -Selector, "
            "SparseKernelFisher, ForwardKernelFisher, RecursiveSVM, GraphEmbedding and ForwardDensity take Dask "
            "collections."
        )
    if not is_foreign(X):
        if is_sparse(X) and X.shape[1] > _MOST_COLUMNS:
            raise ValueError(
                f"{name}: X has {X.shape[1]:,} columns, and a fit keeps several numbers for each; at most "
                f"{_MOST_COLUMNS:,} are possible. Leave out columns, or hash them, for example with "
                "FeatureHasher(n_features=2**20)."
            )
        sparse = "csr" if accept_sparse else False
        X = _as_numbers(estimator, X, reset=reset, accept_sparse=sparse, ensure_min_samples=minimum)
        return _finite(name, X, gaps)
    xp = namespace(X)
    if X.ndim != 2:
        raise ValueError(f"{name}: expected a 2-D array of samples, got shape {tuple(X.shape)}.")
    if X.shape[0] < minimum or X.shape[1] < 1:
        raise ValueError(f"{name}: expected at least {minimum} sample(s) and one feature, got shape {tuple(X.shape)}.")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"{name}: complex data is not supported.")
    X = xp.astype(X, float_dtype(X), copy=False)
    _finite(name, X, gaps)
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"{name}: X has {X.shape[1]} features, but {name} was fitted with {estimator.n_features_in_}.")
    return X


def _finite(name: str, X: Array, gaps: bool) -> Array:
    """``X``, without infinity, and without NaN unless ``gaps`` are fine."""
    if not all_finite(X):
        if not gaps:
            raise ValueError(f"{name}: the samples contain NaN or infinity; {_FILL}")
        xp = namespace(X)
        if bool(xp.any(xp.isinf(X))):
            raise ValueError(f"{name}: the samples contain infinity; replace it, or leave a gap (NaN).")
    return X


def _as_numbers(estimator: Any, X: Any, **checks: Any) -> Array:
    """``X`` through scikit-learn's checks, with our own messages for values that are not finite or not numbers."""
    try:
        return validate_data(
            estimator,
            X,
            dtype=[np.float64, np.float32],
            order="C",  # sums over rows in another order would give other last digits, and at times another model
            ensure_all_finite=False,
            **checks,
        )
    except _NO_NUMBERS as error:
        if not str(error).startswith(_NO_NUMBER):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{type(estimator).__name__}: X must hold numbers, the same number of them in every row ({_said(error)}); "
            "encode categories as numbers first, for example with OneHotEncoder."
        ) from error


def _need(estimator: Any, y: Any, what: str, n: int) -> None:
    name = type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None: give one {what} per sample.")
    if is_sparse(y):
        raise TypeError(f"{name}: expected y as an array, got a sparse one; pass y.toarray().ravel().")
    length = len(y) if hasattr(y, "__len__") else to_numpy(y).shape[0]
    if length != n:
        raise ValueError(
            f"{name}: X has {n} samples but y has {length}: found input variables with inconsistent numbers of samples."
        )


def validate_targets(estimator: Any, X: Array, y: Any) -> tuple[Array, bool]:
    """Regression targets as a float array ``(n, q)`` beside ``X``, and whether they came as one column."""
    _need(estimator, y, "number", X.shape[0])
    if is_foreign(y):
        values = to_numpy(y)
    else:
        try:
            values = check_array(y, ensure_2d=False, dtype="numeric", input_name="y", estimator=estimator)
        except _NO_NUMBERS as error:
            if not str(error).startswith(_NO_NUMBER):
                raise
            raise ValueError(f"{type(estimator).__name__}: y must hold numbers ({_said(error)}).") from error
    if values.ndim > 2 or not np.issubdtype(values.dtype, np.number):
        raise ValueError(
            f"{type(estimator).__name__}: y must be one number or one row of numbers per sample, got "
            f"shape {values.shape} and dtype {values.dtype}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{type(estimator).__name__}: y contains NaN or infinity; drop those samples first.")
    limit = squarable(X)
    largest = float(np.max(np.abs(values)))
    if largest and not 1 / limit < largest < limit:
        raise ValueError(
            f"{type(estimator).__name__}: the largest of y must lie between {1 / limit:.0e} and {limit:.0e}, got "
            f"{largest:.3g}, so that squared errors are numbers; multiply y by one number."
        )
    single = values.ndim == 1
    return asarray_like(values[:, None] if single else values, X, dtype=float_dtype(X)), single


def encode_labels(estimator: Any, X: Array, y: Any) -> tuple[Array, Array]:
    """Classes, in the library of ``y``, and the class number of every sample, in that of ``X``."""
    _need(estimator, y, "class label", X.shape[0])
    labels = to_numpy(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; use y.ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
        labels = labels[:, 0]
    name = type(estimator).__name__
    if labels.ndim != 1:
        raise ValueError(f"{name}: y must be one label per sample, got shape {labels.shape}.")
    if some_missing(labels):
        raise ValueError(f"{name}: y has missing labels (None, NaN or infinity); drop those samples first.")
    classes, codes = _distinct(name, "y", labels)
    with quiet():  # it compares numbers with whole numbers, also those that are none
        check_classification_targets(labels)
    if len(classes) < 2:
        raise ValueError(
            f"{name}: y has only one class ({plain_label(classes[0])!r}); a classifier needs samples of at least two "
            "classes."
        )
    kept = asarray_like(classes, y) if is_foreign(y) else classes
    return kept, asarray_like(codes, X)


def some_missing(labels: np.ndarray[Any, Any]) -> bool:
    """Whether a label is None, NaN or infinite."""
    if labels.dtype == object:
        return any(label is None or label != label for label in labels)
    return labels.dtype.kind == "f" and not np.all(np.isfinite(labels))


def _distinct(name: str, what: str, labels: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The different labels, sorted, and the position of every label among them."""
    try:
        found, places = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name}: {what} must hold labels of one kind, all text or all numbers ({error}).") from error
    return found, places.astype(np.int64)


def _said(error: Exception) -> str:
    """NumPy's message without NumPy's types."""
    return re.sub(r"np\.\w+\(('.*?')\)", r"\1", str(error))


def plain_label(label: Any) -> Any:
    """A class as the user wrote it: without NumPy's type."""
    return label.item() if isinstance(label, np.generic) else label


def labels_from_codes(classes: Array, codes: Array) -> Array:
    """The label of every class number."""
    return take_rows(classes, asarray_like(codes, classes))


def validate_weights(estimator: Any, X: Array, sample_weight: Any) -> Array | None:
    """Sample weights beside ``X``: non-negative, finite, not all zero; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    name = type(estimator).__name__
    try:
        values = to_numpy(sample_weight).astype(np.float64)
    except _NO_NUMBERS as error:
        raise ValueError(f"{name}: sample_weight must hold one number per sample ({_said(error)}).") from error
    if values.ndim == 0:
        values = np.full(X.shape[0], float(values))
    if values.shape != (X.shape[0],):
        raise ValueError(
            f"{name}: sample_weight must have one number per sample, shape ({X.shape[0]},), got {values.shape}; "
            "expected 1D sample weights."
        )
    if not np.all(np.isfinite(values)) or np.any(values < 0) or not np.any(values > 0):
        raise ValueError(f"{name}: sample_weight must be finite, not negative and not all zero.")
    return _in_range(name, values, X)


def _in_range(name: str, values: np.ndarray[Any, Any], X: Array) -> Array:
    """Weights beside ``X`` whose squares, cubes and ratios are finite; those too small to matter become zero."""
    limit = float(namespace(X).finfo(float_dtype(X)).max) ** (1 / 3)
    largest = float(values.max())
    if not 1 / limit <= largest <= limit:
        raise ValueError(
            f"{name}: the largest of sample_weight must lie between {1 / limit:.1g} and {limit:.1g}, got "
            f"{largest:.1g}; multiply all weights by one number."
        )
    return asarray_like(np.where(values < largest / limit, 0.0, values), X, dtype=float_dtype(X))


def class_factors(estimator: Any, classes: Array, masses: Array) -> Array | None:
    """What ``class_weight`` multiplies the weights of every class by; ``masses`` are the sums of these."""
    choice = getattr(estimator, "class_weight", None)
    if choice is None:
        return None
    if choice == "balanced":
        return masses.sum() / (len(masses) * masses)
    return compute_sample_weight(choice, classes)


def validate_class_weights(estimator: Any, X: Array, codes: Array, sample_weight: Any) -> Array | None:
    """Sample weights times ``class_weight``, if the estimator has one; every class must keep some weight."""
    weights = validate_weights(estimator, X, sample_weight)
    if getattr(estimator, "class_weight", None) is None and weights is None:
        return None
    classes, own = to_numpy(estimator.classes_), to_numpy(codes)
    values = np.ones(len(own)) if weights is None else to_numpy(weights)
    factors = class_factors(estimator, classes, np.maximum(np.bincount(own, values, len(classes)), 1e-300))
    if factors is not None:
        values = values * factors[own]
    for c, mass in zip(classes, np.bincount(own, values, len(classes))):
        if not mass > 0:
            raise ValueError(
                f"{type(estimator).__name__}: class {plain_label(c)!r} has no sample of positive weight (or "
                "only weights that are negligible beside the others); leave its samples out, or give them weight."
            )
    return _in_range(type(estimator).__name__, values, X)


def validate_groups(estimator: Any, n: int, groups: Any) -> np.ndarray[Any, Any]:
    """Groups as whole numbers 0, 1, ...: one label per sample, of any kind, none missing."""
    name = type(estimator).__name__
    labels = to_numpy(groups)
    if labels.shape != (n,):
        raise ValueError(f"{name}: groups must have one label per sample, shape ({n},), got {labels.shape}.")
    if some_missing(labels):
        raise ValueError(
            f"{name}: groups has missing labels (None, NaN or infinity); drop those samples, or give each a group of "
            "its own."
        )
    return _distinct(name, "groups", labels)[1]


def unwrapped(model: Any, caller: str) -> Any:
    """The best model that a search over parameters found, also one at the end of a pipeline; else ``model`` itself.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fewkern.arrays.validation import unwrapped
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=2).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3])
    >>> unwrapped(search, "save")
    Ridge(alpha=0.1)
    """
    if isinstance(model, Pipeline) and model.steps:
        name, last = model.steps[-1]
        best = unwrapped(last, caller)
        if best is last:
            return model
        found = Pipeline([*model.steps[:-1], (name, best)])
        return found.set_params(**{key: getattr(model, key) for key in vars(found) if key != "steps"})
    if not (hasattr(model, "param_distributions") or hasattr(model, "param_grid")):
        return model
    who = type(model).__name__
    if not hasattr(model, "best_estimator_"):
        reason = (
            "was not told to fit the best model (refit=False)" if hasattr(model, "cv_results_") else "is not fitted"
        )
        raise NotFittedError(f"{caller}: this {who} {reason}; call fit first, with refit=True.")
    return unwrapped(model.best_estimator_, caller)


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks: estimators have no set_callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Any], Any]:
    """Decorate a method ``fit``: check the parameters, call the callbacks, and leave no model that is half fitted.

    A fit that ends with an error, or is interrupted, leaves the estimator as it was before: unfitted, or with the
    model of the fit before. ``prefer_skip_nested_validation`` is that of scikit-learn.
    """

    def decorate(fit: Any) -> Any:
        signature = inspect.signature(fit)

        @wraps(fit)
        def whole_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            skip = get_config()["skip_parameter_validation"]
            if not skip:
                estimator._validate_params()
            given = signature.bind(estimator, *args, **kwargs).arguments if hasattr(estimator, "_skl_callbacks") else {}
            with (
                _all_or_nothing(estimator),
                config_context(skip_parameter_validation=skip or prefer_skip_nested_validation),
                _task(estimator, given),
            ):
                return fit(estimator, *args, **kwargs)

        return whole_fit

    return decorate


@contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Give the estimator its attributes back if what is done inside does not come to its end."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def _task(estimator: Any, given: dict[str, Any]) -> Iterator[None]:
    """The whole fit as a task of scikit-learn's callbacks, if the estimator has any; ``given`` are its arguments."""
    if not given:
        yield
        return
    weights = given.get("sample_weight")
    data = {"X": given["X"], "y": given.get("y"), "metadata": None if weights is None else {"sample_weight": weights}}
    try:
        # how many loops there will be depends on the samples
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, **data)
        yield
        # the estimator itself is what was fitted
        context.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes=dict)
    finally:
        _tear_down(estimator)


@with_callbacks
def _tear_down(estimator: Any) -> None:
    """Let scikit-learn end the callbacks of a fit, which its decorator does after a method; this one does nothing."""
