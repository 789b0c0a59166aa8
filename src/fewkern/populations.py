"""What estimators that serve any number of rows do with ``X``, ``y`` and weights: check them, wherever they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.backend.partitions import Partitions, is_collection
from fewkern.backend.survey import Layout
from fewkern.backend.validation import class_factors, plain_label
from fewkern.base import check_labelled, check_measured, check_weighted
from fewkern.core.population import InMemory, Population, Streamed
from fewkern.core.samples import Samples

__all__ = ["labelled_population", "measured_population", "weighted_population", "weighted_samples"]


def labelled_population(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Population:
    """Checked rows with classes; sets ``classes_``. A ``class_weight`` is part of the weights."""
    if not is_collection(X):
        return InMemory(check_labelled(estimator, X, y, sample_weight))
    name = type(estimator).__name__
    streamed = _streamed(estimator, X, y, sample_weight, "labels")
    masses = streamed.survey.masses
    try:
        labels = np.array(sorted(masses))
    except TypeError as error:
        raise ValueError(f"{name}: y must hold labels of one kind, all text or all numbers ({error}).") from error
    if len(labels) < 2:
        only = f" ({plain_label(labels[0])!r})" if len(labels) else ""
        raise ValueError(f"{name}: y has only one class{only}; a classifier needs samples of at least two classes.")
    estimator.classes_ = labels
    return streamed.with_classes(
        labels, class_factors(estimator, labels, np.array([masses[c] for c in labels.tolist()]))
    )


def measured_population(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Population, bool]:
    """Checked rows with numbers as targets, and whether these came as one column."""
    if not is_collection(X):
        samples, single = check_measured(estimator, X, y, sample_weight)
        return InMemory(samples), single
    return _streamed(estimator, X, y, sample_weight, "numbers"), getattr(y, "ndim", 1) == 1


def weighted_population(estimator: Any, X: Any, sample_weight: Any) -> Population:
    """Checked rows without labels."""
    if not is_collection(X):
        return InMemory(check_weighted(estimator, X, sample_weight))
    return _streamed(estimator, X, None, sample_weight, None)


def weighted_samples(estimator: Any, X: Any, sample_weight: Any) -> Samples:
    """Checked rows without labels: all that are in memory, a sample of a collection."""
    if not is_collection(X):
        return check_weighted(estimator, X, sample_weight)
    return _streamed(estimator, X, None, sample_weight, None).sample


def _streamed(estimator: Any, X: Any, y: Any, sample_weight: Any, kind: Any) -> Streamed:
    name = type(estimator).__name__
    if kind is not None and y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    columns = [column for column in (y if kind else None, sample_weight) if column is not None]
    partitions = Partitions.of(name, X, *columns)
    layout = Layout(name, kind, sample_weight is not None)
    streamed = Streamed.of(partitions, layout, bool(estimator.verbose))
    if streamed.n < 2:
        raise ValueError(f"{name}: expected at least 2 samples of positive weight, got {streamed.n}.")
    estimator.n_features_in_ = partitions.n_features
    if partitions.names is not None:
        estimator.feature_names_in_ = np.array(partitions.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return streamed
