"""Predictions of a fitted model of a table (lazy for Dask data frames), its vectors, and the check of a loaded one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.frames import map_frame
from fewkern.arrays.namespace import Array
from fewkern.arrays.partitions import is_collection
from fewkern.base import vectors_moved
from fewkern.core.explanation import Explanation
from fewkern.io.fields import fits
from fewkern.io.trial import check_answer, try_methods
from fewkern.reporting.judgement import Judgement
from fewkern.tables import TASKS
from fewkern.tables.cells import is_mark, numbers, numbers_as_written, pandas, spelling_key, texts
from fewkern.tables.columns import Encoded
from fewkern.tables.encoder import TableEncoder, TableWarning
from fewkern.tables.facts import FitFacts, HeldOutRows
from fewkern.tables.parts import as_dask_frame
from fewkern.tables.reading import as_column, as_frame, nearest

_TASKS_WITH = {
    "predict": ("classify", "regress"),
    "cdf": ("regress",),  # that of a density is another one
    "transform": ("reduce",),
    "score_samples": ("density",),
}


def if_model_has(method: str) -> Any:
    """Decorator: a fitted model has the method if its task and its estimator have it."""

    def check(model: Any) -> bool:
        if not hasattr(model, "estimator_"):
            return True  # the method itself says that the model is not fitted
        if model.task_ not in _TASKS_WITH.get(method, TASKS) or not hasattr(model.estimator_, method):
            raise AttributeError(
                f"TableModel: this model (task {model.task_!r}, {type(model.estimator_).__name__}) has no {method}."
            )
        return True

    return available_if(check)


class Predicting:
    """The methods of a :class:`TableModel` that take new rows, and its vectors as rows."""

    task_: str
    model_: str
    target_: str | tuple[str, ...] | None
    encoder_: TableEncoder
    estimator_: Any
    facts_: FitFacts
    notes_: tuple[str, ...]
    held_out_: HeldOutRows | None
    judgement_: Judgement | None
    merge_spellings: bool

    def _encode(self, frame: Any) -> Encoded:
        """Features of new rows; warns of what is unusual about them, unless they are encoded already."""
        check_is_fitted(self)
        if isinstance(frame, Encoded):
            return frame
        found = self.encoder_.encode(frame)
        for remark in found.remarks:
            warnings.warn(remark, TableWarning, stacklevel=3)
        return found

    def _predict(self, method: str, frame: Any, **given: Any) -> Any:
        """Call a method of the estimator with the features of new rows, of which there may be none."""
        if is_collection(frame):
            return self._predict_lazily(method, frame, given)
        X = self._encode(frame).values
        if len(X):
            return getattr(self.estimator_, method)(X, **given)
        one = getattr(self.estimator_, method)(np.zeros((1, X.shape[1])), **given)
        return one[:0]

    def _predict_lazily(self, method: str, frame: Any, given: dict[str, Any]) -> Any:
        """Call a method for every partition of a Dask data frame, when its values are asked for."""
        check_is_fitted(self)
        table = as_dask_frame(frame, type(self).__name__)

        def predict(part: Any) -> Any:
            return getattr(self, method)(self.encoder_.encode(part), **given)

        return map_frame(predict, table, partial(_column_names, self))

    @if_model_has("predict")
    def predict(self, frame: Any) -> Any:
        """Class or number of every row."""
        return self._predict("predict", frame)

    @if_model_has("predict_proba")
    def predict_proba(self, frame: Any) -> Any:
        """Probability of every class, shape ``(n_rows, n_classes)``, in the order of ``classes_``."""
        return self._predict("predict_proba", frame)

    @if_model_has("predict_interval")
    def predict_interval(self, frame: Any, coverage: float = 0.9) -> Any:
        """Ends of intervals, shape ``(n_rows, 2)``, that hold the share ``coverage`` of the true numbers."""
        return self._predict("predict_interval", frame, coverage=coverage)

    @if_model_has("predict_quantile")
    def predict_quantile(self, frame: Any, q: float) -> Any:
        """The number below which the true number of every row lies with probability ``q``."""
        return self._predict("predict_quantile", frame, q=q)

    @if_model_has("predict_std")
    def predict_std(self, frame: Any) -> Any:
        """Standard deviation of the true numbers about the predictions."""
        return self._predict("predict_std", frame)

    @if_model_has("cdf")
    def cdf(self, frame: Any, y: Any) -> Any:
        """Probability that the true number of every row is at most ``y``: one number for all rows, or one for each."""
        return self._predict("cdf", frame, y=y)

    @if_model_has("predict_set")
    def predict_set(self, frame: Any, coverage: float = 0.9) -> Any:
        """Sets of classes that hold the true one with probability ``coverage``: booleans, ``(n_rows, n_classes)``."""
        return self._predict("predict_set", frame, coverage=coverage)

    @if_model_has("novelty")
    def novelty(self, frame: Any) -> Any:
        """How unlike the kept vectors every row is, from 0 to 1."""
        return self._predict("novelty", frame)

    @if_model_has("novelty_pvalue")
    def novelty_pvalue(self, frame: Any) -> Any:
        """Probability that a row of the same kind is as novel as this one, or more."""
        return self._predict("novelty_pvalue", frame)

    @if_model_has("novelty_threshold")
    def novelty_threshold(self, false_alarms: float = 0.05) -> float:
        """The novelty that a new row of the same kind exceeds with probability ``false_alarms`` at most."""
        return self.estimator_.novelty_threshold(false_alarms)

    @if_model_has("explain")
    def explain(self, frame: Any, background: Any = None) -> Explanation:
        """What every column contributes to the predictions for some rows; see :meth:`KernelRegressor.explain`.

        Shares are in units of the target (of a classifier, of its scores), and those of the features of one column,
        such as the categories of a text, are added up.

        Parameters
        ----------
        frame : table
        background : table or None, default None
            Rows to compare with; None takes what the model keeps.

        Returns
        -------
        Explanation
            One share per used column, in the order of ``feature_names``.
        """
        points = None if background is None else self._encode(background).values
        found = self.estimator_.explain(self._encode(frame).values, points)
        values, columns = self.encoder_.by_column(found.values, axis=1), tuple(self.encoder_.columns)
        outputs = self.targets if self.task_ == "regress" and found.output_names is not None else found.output_names
        return replace(found, values=values, feature_names=columns, output_names=outputs)

    @if_model_has("transform")
    def transform(self, frame: Any) -> Any:
        """Components of every row, shape ``(n_rows, n_components)``."""
        return self._predict("transform", frame)

    @if_model_has("score_samples")
    def score_samples(self, frame: Any) -> Any:
        """Log density of every row, per unit of the columns of the table; NaN where a value is missing."""
        if is_collection(frame):
            return self._predict_lazily("score_samples", frame, {})
        found = self._encode(frame)
        gaps = found.gaps
        values = np.full(len(gaps), np.nan)
        if not gaps.all():
            values[~gaps] = np.asarray(self.estimator_.score_samples(found.values[~gaps])) + self.encoder_.log_unit
        for note in () if found is frame else note_on_gaps(found):
            warnings.warn(note, TableWarning, stacklevel=2)
        return values

    def score(self, frame: Any, y: Any = None) -> float:
        """Accuracy, R², or mean log density of the rows of a table.

        Parameters
        ----------
        frame : table
        y : array or None, default None
            The true targets; None takes them from the column ``target_`` of the table.
        """
        check_is_fitted(self)
        if self.task_ == "reduce":
            raise AttributeError("TableModel: a model that reduces has no score.")
        if self.task_ == "density":
            return float(np.nanmean(self.score_samples(frame)))
        frame = self.encoder_.frame(frame)
        truth, predicted = known_targets(self.truth(frame, y), self.predict(frame))
        if not len(truth):
            raise ValueError(f"TableModel: no row of the table has a target {self.target_!r}.")
        if self.task_ == "classify":
            return float(np.mean(truth == predicted))
        return float(r2_score(truth, predicted)) if len(truth) > 1 else float("nan")

    def kept(self) -> Any:
        """The vectors that the model keeps, as rows of a table: where they come from, cells, target, coefficient.

        Where vectors were moved, the cells are those nearest to them, and ``row`` is the row they started from.
        """
        check_is_fitted(self)
        estimator, facts = self.estimator_, self.facts_
        if not estimator.n_vectors_:
            return pandas().DataFrame()
        vectors = np.asarray(estimator.vectors_)
        cells = self.encoder_.cells(vectors)
        missing = facts.kept_missing
        if missing is not None and not vectors_moved(estimator) and missing.shape == cells.shape:
            cells = cells.astype(object).mask(missing, None)
        back: dict[str, Any] = {}
        if facts.kept_target is not None and len(facts.kept_target) == len(vectors):
            back |= dict(zip(self.targets, np.reshape(facts.kept_target, (len(vectors), -1)).T))
        if self.task_ == "density":
            back |= {"weight": np.asarray(estimator.weights_), "bandwidth": np.asarray(estimator.bandwidths_)}
        else:
            back |= _coefficients(self, np.asarray(estimator.expansion_.coef))
        columns: dict[str, Any] = {}
        if facts.kept_rows is not None and len(facts.kept_rows) == len(vectors):
            columns[_free("row", cells)] = facts.kept_rows
        columns |= {name: cells[name].to_numpy() for name in cells}
        for name, values in back.items():
            columns[_free(name, columns)] = values
        return pandas().DataFrame(columns)

    def truth(self, frame: Any, y: Any = None) -> Array:
        """The true targets of the rows of a table, as the model predicts them; None or NaN where one is missing."""
        if y is None:
            absent = [name for name in self.targets if name not in frame.columns]
            if absent or not self.targets:
                name = absent[0] if absent else None
                raise ValueError(
                    f"TableModel: the table has no column {name!r} to compare with; {nearest(str(name), frame.columns)}"
                )
            y = frame[list(self.targets)] if len(self.targets) > 1 else frame[self.targets[0]]
        if getattr(y, "ndim", 1) == 2:
            table = as_frame(y, "TableModel")
            return np.column_stack([self.truth(frame, table[name]) for name in table])
        column = as_column(y, len(frame), "TableModel")
        return target_values(column, self.task_, getattr(self.estimator_, "classes_", None), self.merge_spellings)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that are predicted."""
        return () if self.target_ is None else (self.target_,) if isinstance(self.target_, str) else self.target_

    @property
    def classes_(self) -> Any:
        """Classes in the order of ``predict_proba``."""
        return self.estimator_.classes_


def target_values(column: Any, task: str, classes: Any, merge: bool = False) -> Array:
    """Targets of new rows in the form that a fitted model predicts them; missing ones are NaN or None."""
    if task == "regress":
        return numbers_as_written(column)[0].values
    known, values = np.asarray(classes), numbers(column).values
    if known.dtype.kind in "iuf":
        return values
    if known.dtype.kind == "b":
        return np.array([None if np.isnan(v) else bool(v) for v in values], dtype=object)
    as_numbers = numbers(pandas().Series(known, dtype=object)).values
    words = texts(column)
    if np.isnan(as_numbers).any() or len(set(as_numbers)) < len(known):
        if not merge:
            return words
        key = spelling_key(known)
        spelled = {key(label): label for label in known}
        return np.array([None if word is None else spelled.get(key(word), word) for word in words], dtype=object)
    names = dict(zip(as_numbers.tolist(), known.tolist()))  # the same number may be written otherwise here
    words = [None if word is not None and is_mark(word) else word for word in words]
    return np.array([names.get(value, word) for value, word in zip(values.tolist(), words)], dtype=object)


def known_targets(truth: Array, predicted: Any) -> tuple[Array, Array]:
    """Targets and predictions of the rows whose target is not missing."""
    known: Any = pandas().notna(truth)
    known = known.all(axis=1) if truth.ndim == 2 else known
    return truth[known], np.asarray(predicted)[known]


def note_on_gaps(encoded: Encoded) -> tuple[str, ...]:
    """A note on rows that have no density, if there are any."""
    count, rows = int(encoded.gaps.sum()), len(encoded.gaps)
    return (f"{count:,} of {rows:,} rows have a missing value and so no log density",) if count else ()


def _column_names(model: Predicting, count: int) -> list[Any]:
    """Names of the columns of predictions: components, classes, or the ends of an interval."""
    if model.task_ == "reduce":
        return list(model.estimator_.get_feature_names_out())
    if model.task_ == "classify":
        return list(model.classes_)
    return list(model.targets) if len(model.targets) > 1 else ["low", "high"][:count]


def check_loaded(model: Any) -> None:
    """Raise a ValueError if the parts of a model from a file are inconsistent."""
    if not any(name.endswith("_") for name in vars(model)):
        return  # not fitted
    for name, hint in get_type_hints(Predicting).items():
        if name not in vars(model) or not fits(vars(model)[name], hint):
            raise ValueError(f"TableModel: its {name} are missing.")
    if not isinstance(model.estimator_, BaseEstimator):
        raise ValueError("TableModel: its estimator_ is missing.")
    if not np.array_equal(model.feature_names_in_, model.encoder_.feature_names_in_):
        raise ValueError("TableModel: its columns are not those of its encoder_.")
    features = len(model.encoder_.mean_)
    if getattr(model.estimator_, "n_features_in_", None) != features:
        raise ValueError(f"TableModel: the estimator was not fitted with the {features} features of the encoder.")
    if model.task_ not in TASKS:
        raise ValueError(f"TableModel: there is no task {model.task_!r}.")
    row = model.encoder_.example()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        try_methods(model, row)
        if hasattr(model, "transform"):
            check_answer(model.transform(row), 1, "TableModel.transform")
    model.summary()
    model.kept()


def _coefficients(model: Any, coef: Array) -> dict[str, Any]:
    """One column per output of the expansion."""
    if coef.shape[1] == 1:
        return {"coefficient": coef[:, 0]}
    labels = list(map(str, getattr(model.estimator_, "classes_", model.targets)))
    if len(labels) != coef.shape[1]:
        labels = [str(k) for k in range(coef.shape[1])]
    return {f"coefficient of {label}": coef[:, k] for k, label in enumerate(labels)}


def _free(name: str, columns: Any) -> str:
    """A name that no column has yet."""
    while name in columns:
        name += "_"
    return name
