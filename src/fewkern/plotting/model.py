"""The model inside a Pipeline, a search or a table model, with the samples as it sees them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import is_sparse, to_numpy

__all__ = ["FittedModel", "ask", "fitted_model", "numbers"]


@dataclass(frozen=True)
class FittedModel:
    """A fitted model, and what reaches it."""

    model: Any
    """The estimator itself, without what comes before it."""
    X: Any
    """The samples as it sees them, None if none were given."""
    names: list[str]
    """Of the features that it sees."""
    after: str = ""
    """The step that changed the units of the features, if there is one."""

    @property
    def labels(self) -> list[str]:
        """What the axes of a picture show: names of features, and what was done to them."""
        return [f"{name} (after {self.after})" for name in self.names] if self.after else self.names


def fitted_model(estimator: Any, X: Any = None) -> FittedModel:
    """The last step of a fitted Pipeline, of the best model of a search, or of a table model; else the model itself.

    Parameters
    ----------
    estimator : fitted estimator, Pipeline, search such as GridSearchCV, or TableModel
    X : array or data frame or None, default None
        Samples as ``estimator`` takes them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fewkern import FeatureVectorSelector
    >>> from fewkern.plotting.model import fitted_model
    >>> X = load_iris(as_frame=True).data
    >>> found = fitted_model(make_pipeline(StandardScaler(), FeatureVectorSelector(max_vectors=5)).fit(X), X)
    >>> found.model, found.labels[0]
    (FeatureVectorSelector(max_vectors=5), 'sepal length (cm) (after StandardScaler)')
    """
    if hasattr(estimator, "best_estimator_"):
        return fitted_model(estimator.best_estimator_, X)
    if hasattr(estimator, "encoder_") and hasattr(estimator, "estimator_"):
        return _behind(estimator.encoder_, estimator.estimator_, X, list(_names(estimator, X)))
    if isinstance(estimator, Pipeline):
        last = estimator.steps[-1][1]
        if last is None or last == "passthrough":
            raise ValueError("the last step of this Pipeline is 'passthrough': there is no model to draw.")
        steps = [step for _, step in estimator.steps[:-1] if step is not None and step != "passthrough"]
        if steps:
            return _behind(estimator[:-1], last, X, list(_names(estimator, X)), type(steps[-1]).__name__)
        return fitted_model(last, X)
    check_is_fitted(estimator)
    return FittedModel(estimator, X, list(_names(estimator, X)))


def _behind(before: Any, last: Any, X: Any, given: list[str], step: str = "") -> FittedModel:
    """The model ``last`` behind the transformer ``before``, whose columns are called ``given``."""
    check_is_fitted(before)
    seen = None if X is None else before.transform(X)
    inner = fitted_model(last, seen)
    names = inner.names
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):  # a step without names, or one fitted to an array
        if len(given) == len(names):
            names = given
    if all(name == f"x{j}" for j, name in enumerate(names)):  # what scikit-learn calls the columns of an array
        names = inner.names
    same = len(given) == len(names) and (names == given or names == inner.names)
    return FittedModel(inner.model, inner.X, names, inner.after or (step if same else ""))


def _names(estimator: Any, X: Any) -> list[str]:
    """Names of the columns that an estimator was fitted to, or those of ``X``; numbers where there are none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is not None:
        return [str(name) for name in names]
    count = getattr(estimator, "n_features_in_", None)
    if count is None:
        count = X.shape[1] if getattr(X, "ndim", 0) == 2 else 0
    return [f"feature {j}" for j in range(count)]


def numbers(X: Any) -> np.ndarray:
    """Samples as an array of numbers."""
    return np.asarray(X.toarray() if is_sparse(X) else to_numpy(X), dtype=float)


def ask(method: Callable[[Any], Any], X: np.ndarray) -> np.ndarray:
    """What a model says of the points of a grid, which have no names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return to_numpy(method(X))
