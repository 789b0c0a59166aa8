"""The subject of a report: a fitted model, and rows of a table with their targets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.base import is_pairwise, vectors_moved
from fewkern.core.components import check_sees_columns
from fewkern.core.gaussians import GaussianExpansion
from fewkern.plotting.fitted import FittedModel, as_numbers, ask, fitted_model, steps_of
from fewkern.reporting.formatting import is_missing
from fewkern.reporting.rows import TableRows

# Rows whose cells are shuffled to see which features a column becomes, and columns for which that is done.
_FEW_ROWS, _MOST_SHUFFLED = 200, 300


@dataclass(frozen=True)
class Subject:
    """A fitted model and its rows, as every part of the report sees them."""

    model: Any
    """The model as it was given: it predicts from rows of the table."""
    core: Any
    """The estimator of fewkern inside."""
    task: str
    """"classify", "regress", "reduce" or "density"."""
    target: str | None
    """Name of what is predicted."""
    rows: TableRows
    """All columns but the target; those that the model does not use may name the rows."""
    inputs: tuple[int, ...]
    """Columns of ``rows`` that the model is given, in its order."""
    truth: Array
    """Values of the target; None where there is none."""
    places: Array
    """Positions of the rows in the table that was given; rows without a target are left out."""
    notes: tuple[str, ...] = ()
    """Sentences of the model, and of this report, about the table."""

    @property
    def encoder(self) -> Any:
        """The encoder of a table model, which finds its columns in the whole table; None of other models."""
        return getattr(self.model, "encoder_", None)

    @property
    def classes(self) -> Array:
        """Labels of the classes, in the order of the probabilities."""
        return to_numpy(self.core.classes_)

    def given(self, rows: TableRows) -> Any:
        """The part of ``rows`` that the model takes, without names where it was fitted without."""
        if self.encoder is not None:
            return rows.data
        data = rows.select(self.inputs)
        has_names = hasattr(_first_step(self.model), "feature_names_in_")
        return data if has_names or not rows.is_frame else data.to_numpy()

    def encode(self, rows: TableRows) -> Array:
        """Features of ``rows`` as the estimator inside sees them, shape ``(n, d)``."""
        data = self.given(rows)
        for step in steps_of(self.model)[0]:
            data = step.transform(data)
        return as_numbers(data)

    @cached_property
    def _encoded(self) -> tuple[FittedModel, tuple[str, ...]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            found = fitted_model(self.model, self.given(self.rows))
        return found, tuple(dict.fromkeys(str(warning.message) for warning in caught))

    @property
    def fitted(self) -> FittedModel:
        """The estimator inside, all rows as it sees them, and the names and units of their features."""
        return self._encoded[0]

    @property
    def warned(self) -> tuple[str, ...]:
        """What the encoder warns of."""
        return self._encoded[1]

    @cached_property
    def samples(self) -> Array:
        """All rows as the estimator inside sees them."""
        return as_numbers(self.fitted.X)

    @cached_property
    def features(self) -> dict[int, Array]:
        """The features that every used column becomes.

        A column is not used if the model left it out, or if its features are the same in all rows.
        """
        if self.core is self.model or len(self.inputs) == self.samples.shape[1] > _MOST_SHUFFLED:
            return {j: np.array([k]) for k, j in enumerate(self.inputs)}  # the columns themselves, or scaled ones
        if self.encoder is None:
            found = self._shuffled_features()
        else:
            every = np.arange(self.samples.shape[1])
            found = {j: every[self.encoder.features_of(self.rows.names[j])] for j in self.inputs}
        varies = np.ptp(self.samples, axis=0) > 0
        return {j: features for j, features in found.items() if varies[features].any()}

    def _shuffled_features(self) -> dict[int, Array]:
        """The features that change when the cells of a column are shuffled."""
        rng = np.random.default_rng(0)
        few = rng.permutation(np.arange(len(self.rows)))[:_FEW_ROWS]
        rows, before = self.rows.take(few), self.samples[few]
        found = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the same cells
            for j in self.inputs:
                after = self.encode(rows.replaced(j, rows.cells(j, rng.permutation(len(rows)))))
                found[j] = np.flatnonzero(np.any(after != before, axis=0))
        return found

    def with_cells(self, positions: Array, j: int, others: Array) -> Array:
        """Features of the rows at ``positions``, with the cells of column ``j`` from the rows at ``others``.

        Where no feature of the column depends on another column, its features are those of the other rows, and nothing
        is encoded.
        """
        own = self.features[j]
        shared = any(np.isin(own, features).any() for k, features in self.features.items() if k != j)
        if not shared:
            samples = self.samples[positions]
            samples[:, own] = self.samples[np.ix_(others, own)]
            return samples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the same cells
            return self.encode(self.rows.take(positions).replaced(j, self.rows.cells(j, others)))

    def read(self, j: int) -> Array:
        """Column ``j`` as numbers, dates (NaN or NaT where a cell is missing), or cells of any kind.

        Numbers and dates may be written as text, if the encoder can read them.
        """
        found, name = self.rows.numbers(j), self.rows.names[j]
        if found is not None:
            return found
        if hasattr(self.encoder, "cells") and j in self.features:
            is_date = any(column.name == name and hasattr(column, "parts") for column in self.encoder.columns_)
            found = np.array(self.encoder.cells(self.samples)[name], dtype="datetime64[us]" if is_date else None)
        else:
            found = np.array(self.rows.cells(j))
        if found.dtype.kind in "iufM":
            missing = np.array([is_missing(value) for value in self.rows.values(j)])
            found = np.where(missing, np.datetime64("NaT") if found.dtype.kind == "M" else np.nan, found)
        return found

    @property
    def used(self) -> tuple[int, ...]:
        """Columns of ``rows`` that the model uses."""
        return tuple(self.features)

    @cached_property
    def vectors(self) -> Array:
        """The samples that the model keeps, as the estimator inside sees them; a linear map keeps none."""
        kept = self.core.expansion_.vectors
        if getattr(self.core, "n_vectors_", None) == 0:
            kept = kept[:0]  # the directions of a linear map
        return as_numbers(kept)

    @property
    def moved(self) -> bool:
        """Whether the vectors were moved, so that they are no longer samples."""
        return vectors_moved(self.core)

    @cached_property
    def held_rows(self) -> list[int | None]:
        """The row of every sample of the fit that the model holds; None where it is none of them.

        The samples are the vectors, or if these were moved, those of the novelty. They are compared as they are
        prepared, if the model does that.
        """
        expansion, novelty = self.core.expansion_, getattr(self.core, "novelty_", None)
        preparation, held, samples = None, self.vectors, self.samples
        if self.moved:
            preparation, held = (None, held[:0]) if novelty is None else (novelty.preparation, novelty.basis.vectors)
        elif isinstance(expansion, GaussianExpansion):
            preparation, held = expansion.basis.preparation, expansion.basis.vectors
        if preparation is not None:
            held = to_numpy(held)  # the rows in the same precision
            samples = preparation.like(held)(samples.astype(held.dtype))
        known: dict[bytes, int] = {}
        for place, row in enumerate(as_numbers(samples) + 0.0):  # no negative zeros
            known.setdefault(row.tobytes(), place)
        return [known.get(row.tobytes()) for row in as_numbers(held) + 0.0]

    def ask(self, method: str, samples: Array, **given: Any) -> Array:
        """What a method of the estimator inside returns for features of rows."""
        return ask(getattr(self.core, method), samples, **given)

    def predict(self, samples: Array) -> Array:
        """Predictions of the model, one per row."""
        return self.ask("predict", samples)

    def probabilities(self, samples: Array) -> Array | None:
        """Probability of every class, where the model states any."""
        return self.ask("predict_proba", samples) if hasattr(self.core, "predict_proba") else None

    def refitted(self, positions: Array) -> Subject:
        """A copy of the model that was fitted to the rows at ``positions`` only."""
        copy = clone(self.model)
        copy.set_params(**{name: False for name in copy.get_params() if name.split("__")[-1] == "verbose"})
        part = self.rows.take(positions)
        y = None if self.truth is None else self.truth[positions]
        if self.encoder is not None:
            copy.set_params(holdout=0, task=self.task)
        copy.fit(self.given(part), *(() if y is None else (y,)))
        return replace(self, model=copy, core=steps_of(copy)[1], notes=())


def _first_step(model: Any) -> Any:
    """What sees the columns of the table first."""
    return model.steps[0][1] if isinstance(model, Pipeline) else model


def subject_of(model: Any, X: Any, y: Any = None) -> Subject:
    """Check a model and its rows."""
    model = getattr(model, "best_estimator_", model)
    core = _checked_core(model)
    task = getattr(model, "task_", None) or _task(core)
    target, y, X = _target(model, task, X.to_pandas() if hasattr(X, "to_pandas") else X, y)
    rows = TableRows.of(X)
    if not len(rows):
        raise ValueError("report: X has no row; give the rows that the model was fitted to, or new ones.")
    inputs = _inputs(model, core, rows)
    truth = None if y is None else _truth(y, task, len(rows))
    notes = tuple(getattr(model, "notes_", ()))
    return _complete(Subject(model, core, task, target, rows, inputs, truth, np.arange(len(rows)), notes))


def _complete(subject: Subject) -> Subject:
    """The rows that a report can be about: those with a target, and for a density those with a density."""
    known, truth = np.ones(len(subject.rows), dtype=bool), subject.truth
    if truth is not None:
        known = np.array([not is_missing(v) for v in truth])
    elif subject.task == "density" and subject.encoder is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the same rows
            known = np.isfinite(to_numpy(subject.model.score_samples(subject.rows.data)))
    if known.all():
        return subject
    if not known.any() or subject.encoder is None:
        raise ValueError("report: y has missing values; leave these rows out of X and y.")
    lacking = "with a missing value" if truth is None else "without a target"
    notes = (*subject.notes, f"{int((~known).sum()):,} rows {lacking} were left out of this report")
    places = np.flatnonzero(known)
    truth = None if truth is None else truth[places]
    return replace(subject, rows=subject.rows.take(places), truth=truth, places=places, notes=notes)


def _checked_core(model: Any) -> Any:
    """The estimator of fewkern in ``model``, which must be fitted."""
    name, core = type(model).__name__, None
    if hasattr(model, "fit") and not isinstance(model, type):
        core = steps_of(model)[1]
        try:
            check_is_fitted(core)
        except NotFittedError as error:
            raise NotFittedError(f"report: this {name} is not fitted; call fit first.") from error
    if not hasattr(core, "expansion_"):
        inside = "" if core is None or core is model else f", which ends in {type(core).__name__}"
        raise TypeError(
            f"report: expected a fitted model of fewkern, or a pipeline that ends in one, got {name}{inside}."
        )
    if hasattr(core, "kernel") and is_pairwise(core):
        raise ValueError("report: this model was fitted to kernel values; a report needs a model of samples.")
    check_sees_columns(getattr(core, "expansion_", None), "report")
    return core


def _task(core: Any) -> str:
    if is_classifier(core):
        return "classify"
    if is_regressor(core):
        return "regress"
    return "density" if hasattr(core, "score_samples") else "reduce"


def _target(model: Any, task: str, X: Any, y: Any) -> tuple[str | None, Any, Any]:
    """Name and values of the target, and the table without it."""
    name = getattr(model, "target_", None)
    predicts = task in ("classify", "regress")
    if y is None and name is not None and hasattr(X, "columns") and (predicts or name in X.columns):
        if name not in X.columns:
            raise ValueError(
                f"report: X has no column {name!r}, which the model predicts; give a table with it, or its values as y."
            )
        # as the model itself would predict them: a class may be text in one table and a number in another
        y = model.truth(X) if predicts and hasattr(model, "truth") else X[name]
        X = X.drop(columns=[name])
    if y is None and predicts:
        raise ValueError(
            "report: y is None, but this model predicts a target, and a report compares its predictions with the "
            "truth; give y."
        )
    if name is None and y is not None:
        name = None if getattr(y, "name", None) is None else str(y.name)
    return name, y, X


def _inputs(model: Any, core: Any, rows: TableRows) -> tuple[int, ...]:
    """Positions of the columns that the model is given, in its order."""
    first, is_table = _first_step(model), hasattr(model, "encoder_")
    names = model.encoder_.columns if is_table else getattr(first, "feature_names_in_", None)
    if names is None or not (rows.is_frame or is_table):
        n, count = len(rows.names), getattr(first, "n_features_in_", getattr(core, "n_features_in_", None))
        if count not in (None, n):
            raise ValueError(f"report: X has {n} columns, but the model was fitted to {count}; give the same columns.")
        return tuple(range(n))
    absent = [str(name) for name in names if str(name) not in rows.names]
    if absent:
        shown = ", ".join(map(repr, absent[:5])) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        raise ValueError(f"report: X lacks the column(s) {shown}, which the model was fitted to; give the same table.")
    return tuple(rows.names.index(str(name)) for name in names)


def _truth(y: Any, task: str, n: int) -> Array:
    values = np.asarray(y) if hasattr(y, "to_numpy") else to_numpy(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"report: a report is about one target, got y of shape {values.shape}; make one report per column."
        )
    if len(values) != n:
        raise ValueError(f"report: X has {n:,} rows and y {len(values):,} values; give one value per row.")
    if task == "regress":
        try:
            return np.array([np.nan if is_missing(v) else v for v in values], dtype=float)
        except (TypeError, ValueError):
            raise ValueError("report: the model predicts numbers, but y holds something else; give numbers.") from None
    return values
