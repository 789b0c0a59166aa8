"""What estimators that serve any number of rows do with ``X``, ``y`` and weights: check them, wherever they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.arrays.namespace import asarray_like, float_dtype, to_numpy
from fewkern.arrays.partitions import Partitions, as_collection, is_collection
from fewkern.arrays.survey import Layout, class_codes
from fewkern.arrays.validation import class_factors, plain_label, validate_targets, validate_weights
from fewkern.base import check_groups, check_labelled, check_measured, check_samples, check_weighted, is_pairwise
from fewkern.core.population import InMemory, Population, Streamed
from fewkern.core.samples import Samples

__all__ = [
    "labelled_batch",
    "labelled_population",
    "measured_batch",
    "measured_population",
    "weighted_population",
    "weighted_samples",
]


def labelled_population(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Population:
    """Checked rows with classes; sets ``classes_``. A ``class_weight`` is part of the weights."""
    X = _where_it_is(estimator, X, groups)
    if not is_collection(X):
        return InMemory(check_groups(estimator, check_labelled(estimator, X, y, sample_weight), groups))
    name = type(estimator).__name__
    _no_groups(name, groups)
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


def measured_population(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None
) -> tuple[Population, bool]:
    """Checked rows with numbers as targets, and whether these came as one column."""
    X = _where_it_is(estimator, X, groups)
    if not is_collection(X):
        samples, single = check_measured(estimator, X, y, sample_weight)
        return InMemory(check_groups(estimator, samples, groups)), single
    _no_groups(type(estimator).__name__, groups)
    return _streamed(estimator, X, y, sample_weight, "numbers"), getattr(y, "ndim", 1) == 1


def weighted_population(estimator: Any, X: Any, sample_weight: Any, minimum: int = 1) -> Population:
    """Checked rows without labels, ``minimum`` of them at least."""
    X = _where_it_is(estimator, X)
    if not is_collection(X):
        return InMemory(check_weighted(estimator, X, sample_weight, minimum=minimum))
    return _streamed(estimator, X, None, sample_weight, None)


def labelled_batch(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Samples:
    """One of several batches with classes; the first one says which features and classes there are."""
    name = type(estimator).__name__
    first = not hasattr(estimator, "classes_")
    if estimator.class_weight == "balanced":
        raise ValueError(
            f'{name}: class_weight="balanced" needs all samples at once; in partial_fit give the weight of every class.'
        )
    X = check_samples(estimator, X, reset=first)
    labels = to_numpy(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(f"{name}: y must be one label per sample, shape ({X.shape[0]},), got {labels.shape}.")
    if first:
        estimator.classes_ = np.unique(labels if classes is None else to_numpy(classes))
        if len(estimator.classes_) < 2:
            del estimator.classes_
            raise ValueError(
                f"{name}: the first batch has only one class; name all of them with classes=, and pass basis=, or let "
                "the first batch hold samples of every class."
            )
    known = to_numpy(estimator.classes_)
    unknown = sorted({plain_label(label) for label in labels} - {plain_label(c) for c in known}, key=str)
    if unknown:
        raise ValueError(
            f"{name}: {unknown[0]!r} is not one of the classes of the first batch, {known.tolist()}; name "
            "all classes there with classes=, or fit a new model."
        )
    codes = asarray_like(class_codes(known, labels), X)
    weights = validate_weights(estimator, X, sample_weight)
    factors = class_factors(estimator, known, np.ones(len(known)))
    if factors is not None:
        of_class = asarray_like(factors, X, dtype=float_dtype(X))[codes]
        weights = of_class if weights is None else weights * of_class
    return Samples.of(X, weights, pairwise=is_pairwise(estimator), codes=codes, n_classes=len(known))


def measured_batch(estimator: Any, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Samples, bool]:
    """One of several batches with numbers as targets."""
    X = check_samples(estimator, X, reset=first)
    targets, single = validate_targets(estimator, X, y)
    weights = validate_weights(estimator, X, sample_weight)
    return Samples.of(X, weights, pairwise=is_pairwise(estimator), targets=targets), single


def weighted_samples(estimator: Any, X: Any, sample_weight: Any) -> Samples:
    """Checked rows without labels: all that are in memory, a sample of a collection."""
    X = _where_it_is(estimator, X)
    if not is_collection(X):
        return check_weighted(estimator, X, sample_weight)
    return _streamed(estimator, X, None, sample_weight, None).sample


def _where_it_is(estimator: Any, X: Any, groups: Any = None) -> Any:
    """Samples in a file that would have to be copied as a whole become a collection; others are what they are."""
    return X if groups is not None or is_pairwise(estimator) else as_collection(X)


def _no_groups(name: str, groups: Any) -> None:
    if groups is not None:
        raise ValueError(
            f"{name}: groups cannot be held out of a Dask collection, of which only a sample is looked at as a whole; "
            "leave groups out, or fit to X.compute()."
        )


def _streamed(estimator: Any, X: Any, y: Any, sample_weight: Any, kind: Any) -> Streamed:
    name = type(estimator).__name__
    if kind is not None and y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    columns = [column for column in (y if kind else None, sample_weight) if column is not None]
    partitions = Partitions.of(name, X, *columns)
    layout = Layout(name, kind, sample_weight is not None)
    streamed = Streamed.of(partitions, layout, bool(getattr(estimator, "verbose", False)))
    if streamed.n < 2:
        raise ValueError(f"{name}: expected at least 2 samples of positive weight, got {streamed.n}.")
    estimator.n_features_in_ = partitions.n_features
    if partitions.names is not None:
        estimator.feature_names_in_ = np.array(partitions.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return streamed
