"""A transformer from raw tables to numeric features, and how exported models apply it."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays import sampling
from fewkern.arrays.frames import map_frame
from fewkern.arrays.namespace import Array
from fewkern.arrays.partitions import is_collection
from fewkern.arrays.storable import storable
from fewkern.core.expansion import Prepared, Standardization
from fewkern.io.plan import Cell, Inputs, Lookup
from fewkern.tables.cells import pandas, texts
from fewkern.tables.columns import CategoryColumn, Column, DateColumn, Encoded, NumberColumn, text_of_day
from fewkern.tables.parts import as_dask_frame, as_parts, draw_rows
from fewkern.tables.reading import as_frame, cut_short, listed, nearest
from fewkern.tables.schema import Schema, infer_schema


class TableWarning(UserWarning):
    """Something unusual about the cells of a table."""


def _learn_columns(frame: Any, schema: Schema) -> tuple[Column, ...]:
    """The used columns as the rows of ``frame`` show them; those without a single cell are not learned."""
    made = [found.learn(frame[found.name]) for found in schema.used if frame[found.name].notna().any()]
    made = [column for column in made if column.features]
    if not made:
        left = listed(finding.name for finding in schema.columns)
        raise ValueError(f"the table has no usable column besides the target (left out: {left}).")
    return tuple(made)


def encode(columns: tuple[Column, ...], frame: Any) -> Encoded:
    """Features of the rows of a data frame, not scaled, with remarks on its cells."""
    absent = [column.name for column in columns if column.name not in frame.columns]
    if absent:
        raise ValueError(
            f"the table lacks the column{'s' if len(absent) > 1 else ''} {listed(absent)} that the model was fitted "
            f"with; {nearest(absent[0], frame.columns)}"
        )
    values = np.empty((len(frame), sum(len(column.features) for column in columns)))
    missing = np.empty((len(frame), len(columns)), dtype=bool)
    remarks: list[str] = []
    at = 0
    for k, column in enumerate(columns):
        found = column.encode(frame[column.name])
        values[:, at : at + len(column.features)], missing[:, k] = found.values, found.missing
        remarks += found.remarks
        at += len(column.features)
    return Encoded(values, missing, cut_short(remarks, "remarks on the columns"))


def _check(encoder: TableEncoder) -> None:
    """Raise a ValueError if the parts of an encoder from a file are inconsistent."""
    if not any(name.endswith("_") for name in vars(encoder)):
        return  # not fitted
    columns = vars(encoder).get("columns_")
    if not isinstance(columns, tuple) or not all(isinstance(column, Column) for column in columns):
        raise ValueError("TableEncoder.columns_ are not columns")
    if len({column.name for column in columns}) < len(columns):
        raise ValueError("TableEncoder: two columns of the same name")
    count, mean, scale = sum(len(column.features) for column in columns), encoder.mean_, encoder.scale_
    if not mean.shape == scale.shape == (count,) or not np.all(np.isfinite(mean) & np.isfinite(scale) & (scale > 0)):
        raise ValueError(
            f"TableEncoder: mean_ and scale_ must be {count} finite numbers each, those of scale_ positive"
        )
    names: Any = vars(encoder).get("feature_names_in_")
    if not isinstance(names, np.ndarray) or names.dtype != object or names.shape != (encoder.n_features_in_,):
        raise ValueError("TableEncoder: feature_names_in_ does not name the columns")
    notes = encoder.notes_
    if not set(encoder.columns) <= set(names) or not (isinstance(notes, tuple) and all(type(n) is str for n in notes)):
        raise ValueError("TableEncoder: columns_ or notes_ are not those of the table")
    if not np.all(np.isfinite(encoder.encode(encoder.example()).values)):
        raise ValueError("TableEncoder: the features of a row of means are not finite")


@storable(check=_check)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn raw tables into features: numbers standardized, categories as 0 and 1, dates as days and cycles.

    Columns that are empty, constant, an index, a key or free text are left out, and ``notes_`` says so. A missing
    number or date becomes the median of its column; a missing or unknown category is all zeros. Cells of a column of
    numbers that are something else (``?``, ``n/k``) count as missing. A category is its text: ``1``, ``1.0`` and
    ``"1"`` are one.

    Parameters
    ----------
    drop : sequence of str, default ()
        Columns to leave out.
    keep : sequence of str, default ()
        Columns to use although they look like an index, a key or names.
    merge_spellings : bool, default False
        Take spellings of a category that differ in case, spaces or hyphens as one, and ``Y``, ``yes``, ``true`` too.

    Attributes
    ----------
    columns_ : tuple
        The columns that are used, as they were learned.
    notes_ : tuple of str
        What was done to the table, in sentences.
    mean_, scale_ : array of shape (n_features_out,)
        What is subtracted from the features, and what they are divided by.
    feature_names_in_ : array of str
        Names of the columns of the table that was fitted.
    n_features_in_ : int

    Notes
    -----
    Dates become days since 1970-01-01 (standardized, as all numbers are), and where they vary enough two features each
    for season, weekday and time of day (sine and cosine, so that December is next to January).

    ``transform`` warns (:class:`~fewkern.tables.encoder.TableWarning`) of categories that it does not know, of
    columns that are empty, and of numbers far outside of those that were fitted. For a Dask data frame the features are
    a Dask array, and there are no warnings.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern import TableEncoder
    >>> table = pd.DataFrame({"id": range(100, 112), "size": [1, 2, None, 4] * 3, "color": ["red", "blue", "red"] * 4})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'color=blue', 'color=red']
    >>> print(encoder.notes_[0])
    column 'id' holds a different whole number in every row, like a key, and was left out (name it in keep to use it)
    >>> encoder.transform(table).shape
    (12, 3)
    """

    def __init__(self, *, drop: Any = (), keep: Any = (), merge_spellings: bool = False) -> None:
        self.drop = drop
        self.keep = keep
        self.merge_spellings = merge_spellings

    def fit(self, X: Any, y: Any = None) -> TableEncoder:  # noqa: ARG002 - scikit-learn's signature
        """Learn the columns of a table.

        Parameters
        ----------
        X : data frame of pandas, polars or Dask, dict of columns, or array
            Of a larger Dask data frame 20,000 rows are used, drawn by their numbers.
        y : ignored
        """
        parts = as_parts(X, "TableEncoder")
        frame = as_frame(X, "TableEncoder") if parts is None else draw_rows(parts, sampling.SAMPLE_ROWS).frame
        schema = infer_schema(frame, named(self.drop), named(self.keep), merge=self.merge_spellings)
        return self.learn(schema.typed(frame), schema, tuple(frame.columns))

    def learn(self, frame: Any, schema: Schema, names: tuple[str, ...]) -> TableEncoder:
        """Fit to the used columns of some rows; ``names`` are all columns of the table."""
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.columns_ = _learn_columns(frame, schema)
        found = encode(self.columns_, frame)
        self.notes_ = schema.notes + _notes_on_missing(self.columns_, found.missing)
        self.mean_, spread = found.values.mean(axis=0), found.values.std(axis=0)
        # an almost constant column: rounding is not a spread
        self.scale_ = np.where(spread > 1e-12 * np.abs(found.values).max(axis=0, initial=0.0), spread, 1.0)
        return self

    def encode(self, X: Any) -> Encoded:
        """Scaled features of the rows of a table, with which cells are missing, and remarks, without warnings."""
        check_is_fitted(self)
        found = encode(self.columns_, self.frame(X))
        values = found.values  # ours alone: scaled in place
        values -= self.mean_
        values /= self.scale_
        return found

    def transform(self, X: Any) -> Array:
        """Features of the rows of a table, shape ``(n, n_features_out)``; of a Dask data frame a Dask array."""
        if is_collection(X):
            check_is_fitted(self)
            frame = as_dask_frame(X, "TableEncoder")
            return map_frame(lambda part: self.encode(part).values, frame, lambda _: self.names).to_dask_array()
        found = self.encode(X)
        for remark in found.remarks:
            warnings.warn(remark, TableWarning, stacklevel=2)
        return found.values

    def frame(self, X: Any) -> Any:
        """A table as a data frame; the columns of an array are those that were fitted, in their order."""
        return as_frame(X, "TableEncoder", tuple(self.feature_names_in_))

    def cells(self, values: Any) -> Any:
        """A data frame with the cells that have these (scaled) features; the inverse of ``transform``."""
        raw = np.asarray(values) * self.scale_ + self.mean_
        parts = np.split(np.round(raw, 12), self._ends[:-1], axis=1)
        return pandas().DataFrame({c.name: c.cells(part) for c, part in zip(self.columns_, parts)})

    def example(self) -> Any:
        """A data frame of one row, whose features are the means."""
        return self.cells(np.zeros((1, len(self.mean_))))

    def by_column(self, values: Any, axis: int = 0) -> Array:
        """Numbers per feature, along an axis, added up to one per column."""
        parts = np.split(np.asarray(values), self._ends[:-1], axis=axis)
        return np.stack([part.sum(axis=axis) for part in parts], axis=axis)

    def features_of(self, name: str) -> slice:
        """The slice of the features of a column."""
        k = self.columns.index(name)
        return slice(self._ends[k] - len(self.columns_[k].features), self._ends[k])

    @property
    def _ends(self) -> Array:
        """Cumulative number of features of the columns."""
        return np.cumsum([len(column.features) for column in self.columns_])

    @property
    def log_unit(self) -> float:
        """What makes a log density one per unit of the columns of the table, not of the standardized ones."""
        return -float(np.log(self.scale_).sum())

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are used."""
        return [column.name for column in self.columns_]

    @property
    def names(self) -> list[str]:
        """Name of every feature."""
        return [feature for column in self.columns_ for feature in column.features]

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Name of every feature; that of a category is ``column=level``."""
        check_is_fitted(self)
        return np.array(self.names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        return of_tables(super().__sklearn_tags__())


def of_tables(tags: Any) -> Any:
    """Tags of scikit-learn, changed to those of an estimator of tables."""
    tags.input_tags.two_d_array = False
    tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
    return tags


def named(names: Any) -> tuple[str, ...]:
    """Names of columns as a tuple; a single name is one column."""
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def _notes_on_missing(columns: tuple[Column, ...], missing: Array) -> tuple[str, ...]:
    notes = []
    for column, lacking in zip(columns, missing.T):
        count = int(lacking.sum())
        if not count:
            continue
        what = "count as no category" if count > 1 else "counts as no category"
        if isinstance(column, NumberColumn):
            what = f"replaced by the median {column.median:g}"
        elif isinstance(column, DateColumn):
            what = f"replaced by the median {column.cells(column.split(np.array([column.median])))[0]}"
        notes.append(f"column {column.name!r}: {count:,} missing value{'s' if count > 1 else ''} {what}")
    return cut_short(notes, "columns with missing values")


def prepared(encoder: TableEncoder, estimator: Any, fill: bool = True) -> Prepared:
    """The estimator with the inputs of its table: one per column, of a date one per feature.

    ``fill``: missing numbers get the median of their column; a density leaves them missing.
    """
    names: list[str] = []
    parts: list[Cell] = []
    texts: dict[int, tuple[str, ...]] = {}
    notes: list[str] = []
    for column in encoder.columns_:
        place = len(names)
        if isinstance(column, NumberColumn):
            names.append(column.name)
            parts.append(Cell(place, float(column.median) if fill else None))
        elif isinstance(column, CategoryColumn):
            names.append(column.name)
            texts[place] = (*column.levels, *column.spellings)
            size, rows = len(column.levels), column.places(texts[place])
            keys = np.arange(len(rows), dtype=float)
            parts.append(Lookup(place, None, keys, np.eye(size)[rows], np.zeros(size)))
        else:
            filled = column.split(np.array([column.median]))[0]
            parts += [Cell(place + k, float(value) if fill else None) for k, value in enumerate(filled)]
            names += column.features
            notes.append(_about_dates(column))
    if fill:
        notes.append("A missing number (NaN; null in JavaScript, NULL in SQL) is replaced by the median of its column.")
    if texts:
        notes.append(
            "A missing category is a text that is none of the categories. Blanks around a text count in C and ONNX."
        )
    if any(isinstance(column, NumberColumn) for column in encoder.columns_):
        notes.append("Numbers are numbers here: a text such as '12,34 EUR' is read by the model in Python only.")
    standard = Standardization(np.asarray(encoder.mean_, float), 1.0 / np.asarray(encoder.scale_, float))
    inputs = Inputs(len(names), tuple(parts), texts, trimmed=True) if fill else None
    return Prepared(
        estimator, standard, tuple(names), encoder.log_unit, tuple(notes), inputs, partial(_inputs_of, encoder)
    )


def _inputs_of(encoder: TableEncoder, X: Any) -> Any:
    """A data frame with the inputs of an exported model: texts as they are compared, and numbers, NaN where missing."""
    frame = encoder.frame(X)
    found, cells = encode(encoder.columns_, frame), {}
    for k, column in enumerate(encoder.columns_):
        if isinstance(column, CategoryColumn):
            cells[column.name] = texts(frame[column.name])
        else:
            values = found.values[:, encoder.features_of(column.name)]
            cells |= zip(column.features, np.where(found.missing[:, k], np.nan, values.T))
    return pandas().DataFrame(cells)


def _about_dates(column: DateColumn) -> str:
    what = {
        "day": f"days since 1970-01-01 (fitted: {text_of_day(column.low)} to {text_of_day(column.high)})",
        "season": "sine and cosine of 2 pi days / 365.2425",
        "week": "sine and cosine of 2 pi (floor(days) + 3) / 7",
        "hour": "sine and cosine of 2 pi days",
    }
    return f"Inputs of the date {column.name!r}: " + "; ".join(what[part] for part in column.parts) + "."
