"""What estimators that serve any number of rows do with ``X``, ``y`` and weights: check them, wherever they are.

A Dask collection is looked at once, for checks, counts, classes and a sample; sums over all rows are further passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np

from fewkern.arrays import sampling
from fewkern.arrays.columns import takes_tables
from fewkern.arrays.frames import with_codes
from fewkern.arrays.namespace import asarray_like, float_dtype, to_numpy
from fewkern.arrays.partitions import Partitions, as_collection, is_collection
from fewkern.arrays.sampling import row_keys, smallest_keys
from fewkern.arrays.validation import class_factors, plain_label, some_missing, validate_weights
from fewkern.base import check_groups, check_labelled, check_measured, check_samples, check_weighted, is_pairwise
from fewkern.core.samples import Population, Samples

Numbers = np.ndarray[Any, Any]
Sum = TypeVar("Sum")
# A pass samples this many times the rows that are needed, so that rows of weight zero seldom cost another pass.
_SPARE = 1.5


@dataclass(frozen=True)
class Layout:
    """What the columns of a block are, and how its rows become samples."""

    name: str
    """Name of the estimator, for messages."""
    targets: Literal["labels", "numbers"] | None
    weighted: bool
    n_all: int
    """Rows of the whole collection."""
    labels: Any = None
    """The classes, sorted; unknown before the first pass."""
    factors: Any = None
    """What the weights of every class are multiplied by."""
    gaps: bool = False
    """Whether NaN stands for a gap."""

    def read(self, first: int, X: Numbers, *columns: Numbers) -> Samples:
        """Check a block; ``first`` is the number of its first row. Labels are not yet class numbers."""
        where = f"rows {first} to {first + len(X) - 1}"
        X = X.astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)
        if self.gaps and np.isinf(X).any():
            raise ValueError(f"{self.name}: the samples contain infinity ({where}); replace it, or leave a gap (NaN).")
        if not self.gaps and not np.isfinite(X).all():
            raise ValueError(
                f"{self.name}: the samples contain NaN or infinity ({where}); fill or drop them first, for example "
                "with X.fillna or X.dropna."
            )
        targets = self._targets(columns[0], where) if self.targets else None
        weights = columns[-1].astype(X.dtype) if self.weighted else np.ones(len(X), X.dtype)
        if weights.shape != (len(X),) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"{self.name}: sample_weight must be one number per sample, finite and not negative ({where})."
            )
        rows = Samples(X, weights, np.arange(first, first + len(X)), self.n_all, targets=targets)
        return rows if (weights > 0).all() else rows.take(np.flatnonzero(weights > 0))

    def _targets(self, y: Numbers, where: str) -> Numbers:
        if self.targets == "labels":
            if y.ndim == 2 and y.shape[1] == 1:
                y = y[:, 0]
            if y.ndim != 1 or some_missing(y):
                raise ValueError(f"{self.name}: y must hold one label per sample, none of them missing ({where}).")
            return y
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name}: y must hold numbers ({where}: {error}).") from error
        if not np.isfinite(y).all():
            raise ValueError(f"{self.name}: y contains NaN or infinity ({where}); drop those samples first.")
        return y[:, None] if y.ndim == 1 else y

    def samples(self, rows: Samples) -> Samples:
        """Rows that were read, with class numbers in place of labels, and with the weights of the classes."""
        if rows.targets is None:
            return rows
        if self.targets == "numbers":
            return replace(rows, targets=rows.targets.astype(rows.X.dtype))
        codes = _class_codes(self.labels, rows.targets)
        # in the precision of the samples, as in memory: with another one the choices made on them differ
        factors = None if self.factors is None else self.factors.astype(rows.X.dtype)
        weights = rows.weights if factors is None else rows.weights * factors[codes]
        return replace(rows, weights=weights, targets=None, codes=codes, n_classes=len(self.labels))


@dataclass(frozen=True)
class _Survey:
    """Counts, class weights and a sample from a pass over all rows; merged by ``+``."""

    limit: int
    count: int
    """Rows of positive weight."""
    masses: dict[Any, float]
    """Weight of every class."""
    rows: Samples
    """The rows of the smallest keys."""

    def __add__(self, other: _Survey) -> _Survey:
        masses = dict(self.masses)
        for label, mass in other.masses.items():
            masses[label] = masses.get(label, 0.0) + mass
        names = [name for name in ("X", "weights", "rows", "targets") if getattr(self.rows, name) is not None]
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self.rows, name), getattr(other.rows, name)]) for name in names
        }
        return _Survey(self.limit, self.count + other.count, masses, replace(self.rows, **both)).cut()

    def cut(self) -> _Survey:
        """The survey with at most ``limit`` rows, and two of every class."""
        labels = self.rows.targets if self.masses else None
        return replace(self, rows=self.rows.take(smallest_keys(row_keys(self.rows.rows), labels, self.limit)))


def _survey_block(layout: Layout, limit: int, bound: float, first: int, *columns: Numbers) -> _Survey:
    """The survey of a block; rows with a key above ``bound`` are not sampled, except those of rare classes."""
    rows, masses = layout.read(first, *columns), {}
    labels = rows.targets if layout.targets == "labels" else None
    if labels is not None:
        classes, codes = np.unique(labels, return_inverse=True)
        sums = np.bincount(codes, rows.weights, len(classes))
        masses = dict(zip(classes.tolist(), sums.tolist()))
    keys = row_keys(rows.rows)
    part = smallest_keys(keys, labels, min(limit, int((keys < bound).sum())))
    return _Survey(limit, rows.n, masses, rows.take(part))


@dataclass(frozen=True)
class Streamed:
    """The rows of a Dask collection, after one pass over them."""

    partitions: Partitions
    layout: Layout
    survey: _Survey
    verbose: bool = False

    @classmethod
    def of(cls, partitions: Partitions, layout: Layout, verbose: bool) -> Streamed:
        """Check all rows once, and bring a sample of them (all, if they are few), at least two of every class."""
        limit, label = sampling.SAMPLE_ROWS, "looking at the rows"
        bound = _SPARE * limit / max(partitions.n, 1)
        found = partitions.total(partial(_survey_block, layout, limit, bound), label, verbose)
        if found.rows.n < min(limit, found.count):
            found = partitions.total(partial(_survey_block, layout, limit, 1.0), f"{label} again", verbose)
        return cls(partitions, layout, found.cut(), verbose)

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.survey.count

    @cached_property
    def sample(self) -> Samples:
        """Rows to make choices on."""
        return self.layout.samples(self.survey.rows)

    def total(self, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
        """The sum over blocks of rows: one pass over the collection."""
        work = partial(_total_of_part, self.layout, of, row_elements)
        found: Sum = self.partitions.total(work, "sums over rows", self.verbose)
        return found


def _total_of_part(layout: Layout, of: Callable[[Samples], Any], row_elements: int, first: int, *columns: Any) -> Any:
    """A sum over the rows of one part, on whatever worker has it."""
    return layout.samples(layout.read(first, *columns)).total(of, row_elements)


def _class_codes(labels: Numbers, y: Any) -> Numbers:
    """The class number of every label; ``labels`` are sorted and hold every one of ``y``."""
    return np.searchsorted(labels, y).astype(np.int64)


def labelled_population(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Population:
    """Checked rows with classes; sets ``classes_``. A ``class_weight`` is part of the weights."""
    X = _where_it_is(estimator, X, groups)
    if not is_collection(X):
        return check_groups(estimator, check_labelled(estimator, X, y, sample_weight), groups)
    name, streamed = type(estimator).__name__, _streamed(estimator, X, y, sample_weight, "labels", groups)
    masses = streamed.survey.masses
    try:
        labels = np.array(sorted(masses))
    except TypeError as error:
        raise ValueError(f"{name}: y must hold labels of one kind, all text or all numbers ({error}).") from error
    if len(labels) < 2:
        only = f" ({plain_label(labels[0])!r})" if len(labels) else ""
        raise ValueError(f"{name}: y has only one class{only}; a classifier needs samples of at least two classes.")
    estimator.classes_ = labels
    factors = class_factors(estimator, labels, np.array([masses[c] for c in labels.tolist()]))
    return replace(streamed, layout=replace(streamed.layout, labels=labels, factors=factors))


def measured_population(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None
) -> tuple[Population, bool]:
    """Checked rows with numbers as targets, and whether these came as one column."""
    X = _where_it_is(estimator, X, groups)
    if not is_collection(X):
        samples, single = check_measured(estimator, X, y, sample_weight)
        return check_groups(estimator, samples, groups), single
    return _streamed(estimator, X, y, sample_weight, "numbers", groups), getattr(y, "ndim", 1) == 1


def weighted_population(estimator: Any, X: Any, sample_weight: Any, minimum: int = 1) -> Population:
    """Checked rows without labels, ``minimum`` of them at least."""
    X = _where_it_is(estimator, X)
    if not is_collection(X):
        return check_weighted(estimator, X, sample_weight, minimum=minimum)
    return _streamed(estimator, X, None, sample_weight, None)


def labelled_batch(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Samples:
    """One of several batches with classes; the first one fixes the features and the classes."""
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
    codes = asarray_like(_class_codes(known, labels), X)
    weights = validate_weights(estimator, X, sample_weight)
    factors = class_factors(estimator, known, np.ones(len(known)))
    if factors is not None:
        of_class = asarray_like(factors, X, dtype=float_dtype(X))[codes]
        weights = of_class if weights is None else weights * of_class
    return Samples.of(X, weights, pairwise=is_pairwise(estimator), codes=codes, n_classes=len(known))


def _where_it_is(estimator: Any, X: Any, groups: Any = None) -> Any:
    """Samples in a file that would have to be copied as a whole become a collection; others are what they are."""
    return X if groups is not None or is_pairwise(estimator) else as_collection(X)


def _streamed(estimator: Any, X: Any, y: Any, sample_weight: Any, kind: Any, groups: Any = None) -> Streamed:
    """The rows of a collection; ``kind`` is that of the targets."""
    name = type(estimator).__name__
    if groups is not None:
        raise ValueError(
            f"{name}: groups cannot be held out of a Dask collection, of which only a sample is looked at as a whole; "
            "leave groups out, or fit to X.compute()."
        )
    if kind is not None and y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    columns = [column for column in (y if kind else None, sample_weight) if column is not None]
    gaps = takes_tables(estimator)
    if gaps:
        X = with_codes(estimator, X, bool(getattr(estimator, "verbose", False)))
    partitions = Partitions.of(name, X, *columns)
    layout = Layout(name, kind, sample_weight is not None, partitions.n, gaps=gaps)
    streamed = Streamed.of(partitions, layout, bool(getattr(estimator, "verbose", False)))
    if streamed.n < 2:
        raise ValueError(f"{name}: expected at least 2 samples of positive weight, got {streamed.n}.")
    estimator.n_features_in_ = partitions.n_features
    if partitions.names is not None:
        estimator.feature_names_in_ = np.array(partitions.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return streamed
