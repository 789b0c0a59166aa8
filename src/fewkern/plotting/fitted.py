"""The model inside a Pipeline, a search or a table model, and its samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import is_sparse, to_numpy

# Error allowed in a change of unit, as a fraction of the range of the feature.
_ROUNDING = 1e-6
# Steps of a Pipeline that do nothing.
_NOTHING = (None, "passthrough")


@dataclass(frozen=True)
class FittedModel:
    """A fitted model without the steps before it, and its samples."""

    model: Any
    """The estimator itself, without what comes before it."""
    X: Any
    """The samples as it sees them, None if none were given."""
    names: list[str]
    """Names of the features that it sees."""
    labels: list[str]
    """What the axes of a picture show: the names, and, where a step has changed more than the unit, that step."""
    shift: np.ndarray
    factor: np.ndarray
    """A feature that the model sees is shift + factor times what was given, unless the label names a step."""

    def given_units(self, points: np.ndarray) -> np.ndarray:
        """Points that the model sees, in the units of the samples that were given."""
        return (points - self.shift) / self.factor


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
    >>> from fewkern.plotting.fitted import fitted_model
    >>> X = load_iris(as_frame=True).data
    >>> found = fitted_model(make_pipeline(StandardScaler(), FeatureVectorSelector(max_vectors=5)).fit(X), X)
    >>> found.model, found.labels[0]
    (FeatureVectorSelector(max_vectors=5), 'sepal length (cm)')
    >>> bool((found.given_units(found.X).round(6) == X).all(axis=None))
    True
    """
    before, model = steps_of(estimator)
    given = names = _names((*before, model)[0], X)
    table = seen = X
    for step in before:
        check_is_fitted(step)
        seen = None if X is None else step.transform(seen)
        if X is not None and hasattr(step, "cells"):  # what the encoder of a table reads in its cells
            table = step.cells(seen)
        names = _names_after(step, names)
    check_is_fitted(model)
    if before and (len(names) != model.n_features_in_ or names == [f"x{j}" for j in range(len(names))]):
        names = _names(model, seen)
    labels, shift, factor = list(names), np.zeros(len(names)), np.ones(len(names))
    if before and X is not None:
        points = as_numbers(seen)
        table = table if hasattr(table, "columns") else table.toarray() if is_sparse(table) else to_numpy(table)
        places = {str(name): i for i, name in enumerate(getattr(table, "columns", given))}
    for j, name in enumerate(names) if before else ():
        # a ColumnTransformer writes the name of its step before that of the column
        column = name if name in given else name.rpartition("__")[2]
        if column not in given:
            continue
        unit = None if X is None else _change_of_unit(_column(table, places[column]), points[:, j])
        if unit is None:
            labels[j] = f"{column} (after {type(before[-1]).__name__})"
        else:
            labels[j], (shift[j], factor[j]) = column, unit
    return FittedModel(model, seen, names, labels, shift, factor)


def steps_of(estimator: Any) -> tuple[list[Any], Any]:
    """The transformers before a model, and the model."""
    if hasattr(estimator, "best_estimator_"):
        return steps_of(estimator.best_estimator_)
    if hasattr(estimator, "encoder_") and hasattr(estimator, "estimator_"):
        inner, model = steps_of(estimator.estimator_)
        return [estimator.encoder_, *inner], model
    if not isinstance(estimator, Pipeline):
        return [], estimator
    *before, last = (step for _, step in estimator.steps)
    if last in _NOTHING:
        raise ValueError("the last step of this Pipeline is 'passthrough': there is no model to draw.")
    inner, model = steps_of(last)
    return [*(step for step in before if step not in _NOTHING), *inner], model


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


def _names_after(step: Any, names: list[str]) -> list[str]:
    """Names of the features of a transformer; those of its input if it has none."""
    for given in ([names], []):  # not every step takes names, and some take only those that they were fitted to
        try:
            return [str(name) for name in step.get_feature_names_out(*given)]
        except (AttributeError, TypeError, ValueError):
            pass
    return names


def _column(X: Any, i: int) -> np.ndarray | None:
    """Column ``i`` of a table, if it holds numbers."""
    try:
        return as_numbers(getattr(X, "iloc", X)[:, [i]])[:, 0]
    except (TypeError, ValueError):  # texts
        return None


def _change_of_unit(before: np.ndarray | None, after: np.ndarray) -> tuple[float, float] | None:
    """Shift and factor with which a column becomes a feature, missing values aside; None if it is no change of unit."""
    if before is None:
        return None
    there = np.isfinite(before)
    before, after = before[there], after[there]
    if not len(before):
        return None
    low, high = before.argmin(), before.argmax()
    factor = (after[high] - after[low]) / (before[high] - before[low]) if before[high] > before[low] else 1.0
    shift = after[low] - factor * before[low]
    if factor <= 0 or not np.allclose(after, shift + factor * before, atol=_ROUNDING * np.ptp(after)):
        return None
    return float(shift), float(factor)


def as_numbers(X: Any) -> np.ndarray:
    """Samples as an array of numbers."""
    return np.asarray(X.toarray() if is_sparse(X) else to_numpy(X), dtype=float)


def ask(method: Callable[..., Any], X: np.ndarray, **given: Any) -> np.ndarray:
    """The result of a method for points whose columns have no names, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return to_numpy(method(X, **given))


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array, a sparse matrix or a data frame."""
    if hasattr(X, "columns"):  # pandas has an attribute for positions, polars takes them as they are
        return getattr(X, "iloc", X)[rows]
    return (X.tocsr() if is_sparse(X) else to_numpy(X))[rows]
