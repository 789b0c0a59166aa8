"""What the steps of a pipeline do before and after the model, in a form that can be written in another language.

Before the model, every feature is an input, with something in place of a missing number, or an entry of a row that is
looked up by a category. Scalers after that become one shift and one factor per feature, which the sums of the model
take up. After a transformer, a linear model of scikit-learn is another sum over the same vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

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
from fewkern.io.plan import Cell, Classes, Inputs, Lookup, Vector
from fewkern.io.steps import LINEAR_CLASSIFIERS, LINEAR_MODELS, SCALERS, column_positions, is_no_step, merges_rare


def identity(count: int) -> Standardization:
    """The scaling of ``count`` features that does nothing."""
    return Standardization(np.zeros(count), np.ones(count))


@dataclass(frozen=True)
class _Feature:
    """A feature after some steps: an input, or a column of the rows that one looks up, and its scaling since."""

    origin: Cell
    column: int = 0
    """Of the rows, where the origin is a :class:`Lookup`."""
    shift: float = 0.0
    factor: float = 1.0


class StepFeatures:
    """The features that steps of a pipeline make of ``count`` inputs; ``caller`` begins the error messages."""

    def __init__(self, steps: Iterable[Any], count: int, caller: str) -> None:
        self.caller = caller
        self.texts: dict[int, tuple[str, ...]] = {}
        """Categories of the inputs that are texts."""
        self.fill: dict[int, str] = {}
        """What is meant by a text that is missing."""
        self.copies = [_Feature(Cell(i, None)) for i in range(count)]
        self.features = functools.reduce(self._after, steps, self.copies)
        self.origins = [feature.origin for feature in self.features]
        shift, factor = ([getattr(feature, name) for feature in self.features] for name in ("shift", "factor"))
        self.scaling = Standardization(np.array(shift, dtype=float), np.array(factor, dtype=float))

    def inputs(self) -> Inputs | None:
        """How the inputs become the features, or None if they are the features."""
        if self.origins == [feature.origin for feature in self.copies]:
            return None
        parts: list[Cell] = []
        # neighbours that come from the same rows are looked up together
        for _, run in groupby(enumerate(self.features), lambda one: _rows_of(*one)):
            own = [feature for _, feature in run]
            origin, columns = own[0].origin, [feature.column for feature in own]
            if isinstance(origin, Lookup):
                origin = replace(origin, values=origin.values[:, columns], unknown=origin.unknown[columns])
            parts.append(origin)
        return Inputs(len(self.copies), tuple(parts), self.texts)

    def notes(self) -> tuple[str, ...]:
        """What to do about missing texts."""
        if not self.fill:
            return ()
        texts = ", ".join(f"{text!r} (input {i})" for i, text in sorted(self.fill.items()))
        return (f"Missing texts are not handled here: put {texts} in their place.",)

    def _after(self, features: list[_Feature], step: Any) -> list[_Feature]:
        if is_no_step(step):
            return features
        if isinstance(step, Pipeline):
            return functools.reduce(self._after, [inner for _, inner in step.steps], features)
        if isinstance(step, SelectorMixin):
            return [features[i] for i in step.get_support(indices=True)]
        if type(step) in _SCALERS:
            self._refuse(getattr(step, "clip", False), step, "clip=True")
            shift, factor = (np.broadcast_to(one, len(features)) for one in _SCALERS[type(step)](step))
            return [
                replace(feature, shift=feature.shift + a / feature.factor, factor=feature.factor * b)
                for feature, a, b in zip(features, shift, factor)
            ]
        if type(step) in _STEPS:
            return _STEPS[type(step)](self, features, step)
        known = [cls.__name__ for cls in (*_SCALERS, *_STEPS)]
        raise TypeError(
            f"{self.caller}: before the model a pipeline may have {', '.join(known)}, Pipeline and feature selection, "
            f"got {type(step).__name__}; export the last step alone, and do the steps before it yourself."
        )

    def _refuse(self, wrong: bool, step: Any, setting: str) -> None:
        if wrong:
            raise TypeError(
                f"{self.caller}: {type(step).__name__} with {setting} has no form outside of Python; fit the pipeline "
                "without it, or export the last step alone, and do the steps before it yourself."
            )

    def _imputed(self, features: list[_Feature], step: SimpleImputer) -> list[_Feature]:
        """A number in place of NaN, in the units that the input has before the scalers so far."""
        self._refuse(step.add_indicator, step, "add_indicator=True")
        marks = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
        self._refuse(not marks and step.missing_values is not None, step, f"missing_values={step.missing_values!r}")
        found = []
        for feature, value in zip(features, step.statistics_):
            origin = feature.origin
            if isinstance(value, str):
                if not isinstance(origin, Lookup):
                    self.fill.setdefault(origin.column, value)
            elif np.isnan(value):
                continue  # a column without a number is dropped
            elif not isinstance(origin, Lookup) and origin.missing is None:
                origin = replace(origin, missing=float(feature.shift + float(value) / feature.factor))
            found.append(replace(feature, origin=origin))
        return found

    def _encoded(self, features: list[_Feature], step: Any, tables: list[tuple[Vector, Vector]]) -> list[_Feature]:
        """Tables (values by category, values of an unknown category) in place of the features."""
        self._refuse(merges_rare(step), step, "min_frequency or max_categories")
        changed = any(f.shift or f.factor != 1 or isinstance(f.origin, Lookup) for f in features)
        self._refuse(changed, step, "a scaler or an encoder before it")
        found = []
        for feature, categories, (values, unknown) in zip(features, step.categories_, tables):
            origin, labels = feature.origin, list(categories)
            if all(isinstance(label, str) for label in labels):
                self.texts[origin.column] = tuple(labels)
                keys = np.arange(len(labels), dtype=float)
            else:
                numbers = all(isinstance(label, int | float | np.number | np.bool_) for label in labels)
                keys = np.asarray(labels, dtype=float) if numbers else np.array([np.nan])
                self._refuse(not np.all(np.isfinite(keys)), step, "categories other than texts and finite numbers")
            rows = Lookup(origin.column, origin.missing, keys, values, unknown)
            found += [_Feature(rows, k) for k in range(values.shape[1])]
        return found

    def _one_hot(self, features: list[_Feature], step: OneHotEncoder) -> list[_Feature]:
        dropped = [None] * len(step.categories_) if step.drop_idx_ is None else list(step.drop_idx_)
        tables = []
        for categories, drop in zip(step.categories_, dropped):
            values = np.eye(len(categories))
            values = values if drop is None else np.delete(values, int(drop), axis=1)
            # an error in Python is "not a number" elsewhere
            unknown = np.full(values.shape[1], np.nan if step.handle_unknown == "error" else 0.0)
            tables.append((values, unknown))
        return self._encoded(features, step, tables)

    def _ordinal(self, features: list[_Feature], step: OrdinalEncoder) -> list[_Feature]:
        unknown = np.array([step.unknown_value if step.handle_unknown == "use_encoded_value" else np.nan], dtype=float)
        tables = [(np.arange(len(c), dtype=float)[:, None], unknown) for c in step.categories_]
        return self._encoded(features, step, tables)

    def _columns(self, features: list[_Feature], step: ColumnTransformer) -> list[_Feature]:
        """The parts of a ColumnTransformer side by side, in the order of its output."""
        self._refuse(step.transformer_weights is not None, step, "transformer_weights")
        found = []
        for _, part, columns in step.transformers_:
            own = [features[i] for i in column_positions(step, columns)]
            if own and not (isinstance(part, str) and part == "drop"):
                found += self._after(own, part)
        return found

    def _identity(self, features: list[_Feature], step: FunctionTransformer) -> list[_Feature]:
        self._refuse(step.func is not None, step, "a function")
        return features


def _rows_of(place: int, feature: _Feature) -> int:
    """What the features of one table have in common."""
    return id(feature.origin) if isinstance(feature.origin, Lookup) else -place


def _over(scale: Any) -> Any:
    return 1.0 if scale is None else 1.0 / np.asarray(scale)


# Shift and factor of scalers.
_SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (step.mean_ if step.with_mean else 0.0, _over(step.scale_)),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, step.scale_),
    MaxAbsScaler: lambda step: (0.0, _over(step.scale_)),
    RobustScaler: lambda step: (0.0 if step.center_ is None else step.center_, _over(step.scale_)),
}
_STEPS: dict[type, Callable[[StepFeatures, list[_Feature], Any], list[_Feature]]] = {
    SimpleImputer: StepFeatures._imputed,
    OneHotEncoder: StepFeatures._one_hot,
    OrdinalEncoder: StepFeatures._ordinal,
    ColumnTransformer: StepFeatures._columns,
    FunctionTransformer: StepFeatures._identity,
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
        features = StepFeatures(self.between, count, caller)
        if any(isinstance(origin, Lookup) for origin in features.origins):
            raise TypeError(
                f"{caller}: between {type(self.transformer).__name__} and the linear model only scalers and "
                "feature selection have a form outside of Python; fit the pipeline without an encoder."
            )
        scaling = features.scaling
        coef = self.last.coef_.toarray() if is_sparse(self.last.coef_) else self.last.coef_
        weights = np.atleast_2d(np.asarray(coef, dtype=float)).T
        offset = np.broadcast_to(np.asarray(self.last.intercept_, dtype=float), weights.shape[1:])
        whole = np.zeros((count, weights.shape[1]))
        scaled = scaling.factor[:, None] * weights
        for row, origin in zip(scaled, features.origins):
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
