"""What the steps of a pipeline do before and after the model, in a form that can be written in another language.

Before the model, every feature is an input, with something in place of a missing number, or an entry of a row that is
looked up by a category. Scalers after that become one shift and one factor per feature, which the sums of the model
take up. After a transformer, a linear model of scikit-learn is another sum over the same vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias, cast

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.storable import stored_classes
from fewkern.core.expansion import Standardization
from fewkern.core.scores import ClassScores
from fewkern.io.plan import Classes, Copy, Inputs, Lookup, Vector
from fewkern.io.steps import LINEAR_CLASSIFIERS, LINEAR_MODELS, SCALERS, column_positions, is_no_step, merges_rare

# An input, or a column of the rows that are looked up by one.
_Origin: TypeAlias = Copy | tuple[Lookup, int]


def identity(count: int) -> Standardization:
    """The scaling of ``count`` features that does nothing."""
    return Standardization(np.zeros(count), np.ones(count))


def _copies(count: int) -> tuple[_Origin, ...]:
    return tuple(Copy(i, None) for i in range(count))


@dataclass(frozen=True)
class StepFeatures:
    """The features after some steps: where each comes from, and how it is scaled since."""

    origins: tuple[_Origin, ...]
    scaling: Standardization
    texts: dict[int, tuple[str, ...]]
    """Categories of the inputs that are texts."""
    fill: dict[int, str]
    """What is meant by a text that is missing."""

    def select(self, columns: Any) -> StepFeatures:
        """Only these features, in this order."""
        kept = [int(i) for i in columns]
        scaling = Standardization(self.scaling.shift[kept], self.scaling.factor[kept])
        return replace(self, origins=tuple(self.origins[i] for i in kept), scaling=scaling)

    def beside(self, other: StepFeatures) -> StepFeatures:
        """These features, then those of ``other``."""
        shift = np.concatenate([self.scaling.shift, other.scaling.shift])
        factor = np.concatenate([self.scaling.factor, other.scaling.factor])
        texts, fill = {**self.texts, **other.texts}, {**self.fill, **other.fill}
        return StepFeatures(self.origins + other.origins, Standardization(shift, factor), texts, fill)

    def inputs(self, count: int) -> Inputs | None:
        """How ``count`` inputs become the features, or None if they are the features."""
        if self.origins == _copies(count):
            return None
        parts: list[Any] = []
        for table, run in groupby(self.origins, lambda one: None if isinstance(one, Copy) else id(one[0])):
            own: list[Any] = list(run)
            if table is not None:  # neighbours that come from the same rows are looked up together
                rows, columns = own[0][0], [column for _, column in own]
                own = [replace(rows, values=rows.values[:, columns], unknown=rows.unknown[columns])]
            parts += own
        return Inputs(count, tuple(parts), self.texts)

    def notes(self) -> tuple[str, ...]:
        """What to do about missing texts."""
        if not self.fill:
            return ()
        texts = ", ".join(f"{text!r} (input {i})" for i, text in sorted(self.fill.items()))
        return (f"Missing texts are not handled here: put {texts} in their place.",)


def prepare(steps: list[Any], count: int, caller: str) -> StepFeatures:
    """The features that steps of a pipeline make of ``count`` inputs; ``caller`` begins the error messages."""
    found = StepFeatures(_copies(count), identity(count), {}, {})
    for step in steps:
        found = _after(found, step, caller)
    return found


def _after(features: StepFeatures, step: Any, caller: str) -> StepFeatures:
    if is_no_step(step):
        return features
    if isinstance(step, Pipeline):
        return functools.reduce(lambda found, inner: _after(found, inner[1], caller), step.steps, features)
    if isinstance(step, SelectorMixin):
        return features.select(step.get_support(indices=True))
    if type(step) in _SCALERS:
        _refuse(getattr(step, "clip", False), step, "clip=True", caller)
        own = identity(len(features.origins))
        given = zip(("shift", "factor"), _SCALERS[type(step)](step))
        own = replace(own, **{name: np.asarray(value) for name, value in given if value is not None})
        return replace(features, scaling=features.scaling.then(own))
    if type(step) in _STEPS:
        return _STEPS[type(step)](features, step, caller)
    known = [cls.__name__ for cls in (*_SCALERS, *_STEPS)]
    raise TypeError(
        f"{caller}: before the model a pipeline may have {', '.join(known)}, Pipeline and feature selection, got "
        f"{type(step).__name__}; export the last step alone, and do the steps before it yourself."
    )


def _refuse(wrong: bool, step: Any, setting: str, caller: str) -> None:
    if wrong:
        name = type(step).__name__
        raise TypeError(
            f"{caller}: {name} with {setting} has no form outside of Python; fit the pipeline without it, or export "
            "the last step alone, and do the steps before it yourself."
        )


def _over(scale: Any) -> Any:
    return None if scale is None else 1.0 / np.asarray(scale)


_SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (step.mean_ if step.with_mean else None, _over(step.scale_)),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, step.scale_),
    MaxAbsScaler: lambda step: (None, _over(step.scale_)),
    RobustScaler: lambda step: (step.center_, _over(step.scale_)),
}


def _imputed(features: StepFeatures, step: SimpleImputer, caller: str) -> StepFeatures:
    """A number in place of NaN, in the units that the input has before the scalers so far."""
    _refuse(step.add_indicator, step, "add_indicator=True", caller)
    marks = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    _refuse(not marks and step.missing_values is not None, step, f"missing_values={step.missing_values!r}", caller)
    origins, fill, kept = list(features.origins), dict(features.fill), []
    for i, (origin, value) in enumerate(zip(features.origins, step.statistics_)):
        if isinstance(value, str):
            if isinstance(origin, Copy):
                fill.setdefault(origin.column, value)
        elif np.isnan(value):
            continue  # a column without a number is dropped
        elif isinstance(origin, Copy) and origin.missing is None:
            own = features.scaling.shift[i] + float(value) / features.scaling.factor[i]
            origins[i] = replace(origin, missing=float(own))
        kept.append(i)
    return replace(features, origins=tuple(origins), fill=fill).select(kept)


def _encoded(features: StepFeatures, step: Any, tables: list[tuple[Vector, Vector]], caller: str) -> StepFeatures:
    """Tables (values by category, values of an unknown category) in place of the features."""
    _refuse(merges_rare(step), step, "min_frequency or max_categories", caller)
    scaled = features.scaling.shift.any() or np.any(features.scaling.factor != 1)
    encoded = not all(isinstance(origin, Copy) for origin in features.origins)
    _refuse(bool(scaled or encoded), step, "a scaler or an encoder before it", caller)
    origins: list[_Origin] = []
    texts, sources = dict(features.texts), cast(tuple[Copy, ...], features.origins)
    for origin, categories, (values, unknown) in zip(sources, step.categories_, tables):
        labels = list(categories)
        if all(isinstance(label, str) for label in labels):
            texts[origin.column] = tuple(labels)
            keys = np.arange(len(labels), dtype=float)
        else:
            numbers = all(isinstance(label, int | float | np.number | np.bool_) for label in labels)
            keys = np.asarray(labels, dtype=float) if numbers else np.array([np.nan])
            _refuse(not np.all(np.isfinite(keys)), step, "categories other than texts and finite numbers", caller)
        rows = Lookup(origin, keys, values, unknown)
        origins += [(rows, k) for k in range(values.shape[1])]
    return StepFeatures(tuple(origins), identity(len(origins)), texts, features.fill)


def _one_hot(features: StepFeatures, step: OneHotEncoder, caller: str) -> StepFeatures:
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else list(step.drop_idx_)
    tables = []
    for categories, drop in zip(step.categories_, dropped):
        values = np.eye(len(categories))
        values = values if drop is None else np.delete(values, int(drop), axis=1)
        # where Python raises an error, other languages get NaN
        unknown = np.full(values.shape[1], np.nan if step.handle_unknown == "error" else 0.0)
        tables.append((values, unknown))
    return _encoded(features, step, tables, caller)


def _ordinal(features: StepFeatures, step: OrdinalEncoder, caller: str) -> StepFeatures:
    unknown = np.array([step.unknown_value if step.handle_unknown == "use_encoded_value" else np.nan], dtype=float)
    return _encoded(
        features, step, [(np.arange(len(c), dtype=float)[:, None], unknown) for c in step.categories_], caller
    )


def _columns(features: StepFeatures, step: ColumnTransformer, caller: str) -> StepFeatures:
    """The parts of a ColumnTransformer side by side, in the order of its output."""
    _refuse(step.transformer_weights is not None, step, "transformer_weights", caller)
    found = features.select([])
    for _, part, columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        own = features.select(column_positions(step, columns))
        found = found.beside(_after(own, part, caller) if own.origins else own)
    return found


def _identity(features: StepFeatures, step: FunctionTransformer, caller: str) -> StepFeatures:
    _refuse(step.func is not None, step, "a function", caller)
    return features


_STEPS: dict[type, Callable[[StepFeatures, Any, str], StepFeatures]] = {
    SimpleImputer: _imputed,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    ColumnTransformer: _columns,
    FunctionTransformer: _identity,
}


# The end of a pipeline


@dataclass(frozen=True)
class LinearEnd:
    """A transformer, steps that scale or select its features, and a linear model."""

    transformer: Any
    between: tuple[Any, ...]
    last: Any

    def affine(self, count: int, caller: str) -> tuple[Vector, Vector]:
        """Weights ``(count, n_outputs)`` and offset of the whole, as a function of ``count`` features."""
        features = prepare(list(self.between), count, caller)
        if not all(isinstance(origin, Copy) for origin in features.origins):
            raise TypeError(
                f"{caller}: between {type(self.transformer).__name__} and the linear model only scalers and "
                "feature selection have a form outside of Python; fit the pipeline without an encoder."
            )
        scaling, sources = features.scaling, cast(tuple[Copy, ...], features.origins)
        coef = self.last.coef_.toarray() if is_sparse(self.last.coef_) else self.last.coef_
        weights = np.atleast_2d(np.asarray(coef, dtype=float)).T
        offset = np.broadcast_to(np.asarray(self.last.intercept_, dtype=float), weights.shape[1:])
        whole = np.zeros((count, weights.shape[1]))
        scaled = scaling.factor[:, None] * weights
        for row, origin in zip(scaled, sources):
            whole[origin.column] += row
        return whole, offset - scaling.shift @ scaled

    def classes(self) -> tuple[Classes | None, tuple[str, ...]]:
        """How values become classes, None for a regression; and notes for the user of the file."""
        if type(self.last) not in LINEAR_CLASSIFIERS:
            return None, ()
        has, known = hasattr(self.last, "predict_proba"), _is_logistic(self.last)
        notes = (f"The probabilities of this {type(self.last).__name__} are not written.",) if has and not known else ()
        return Classes(np.asarray(self.last.classes_), ClassScores(), known), notes


def _is_logistic(model: Any) -> bool:
    """Whether probabilities are the logistic function of one score, or the softmax function of several."""
    two = len(model.classes_) == 2
    if isinstance(model, SGDClassifier):
        return two and model.loss == "log_loss"
    if not isinstance(model, (LogisticRegression, LogisticRegressionCV)):
        return False
    # older versions of scikit-learn can be told to do it otherwise
    how = getattr(model, "multi_class", "auto")
    return how != "multinomial" if two else how != "ovr" and model.solver != "liblinear"


def split_end(pipeline: Pipeline) -> tuple[list[Any], Any]:
    """The steps before the model, and the model: the last step, or a linear one with the transformer before it."""
    *before, last = _steps_of(pipeline)
    if type(last) not in LINEAR_MODELS:
        return before, last
    for i in reversed(range(len(before))):
        if type(before[i]).__name__ in stored_classes() and type(before[i]) not in SCALERS:
            return before[:i], LinearEnd(before[i], tuple(before[i + 1 :]), last)
    return before, last


def _steps_of(pipeline: Pipeline) -> list[Any]:
    """The steps of a pipeline, those of pipelines inside it in their place."""
    found: list[Any] = []
    for _, step in pipeline.steps:
        found += _steps_of(step) if isinstance(step, Pipeline) else [step]
    return found
