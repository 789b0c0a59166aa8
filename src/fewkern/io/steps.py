"""Steps of scikit-learn: which ones a file may hold, how they are written, and how their columns are addressed.

The attributes of pipelines and scalers are plain numbers, and are written as they are. Any other step is written by its
settings and by what it learned, as plain data. The installed scikit-learn makes it again: it is fitted on one row that
has the right shape and types, which also checks its settings, and then gets the numbers of the file. So attributes
that scikit-learn keeps for itself need not be known here, and may differ between its versions. A step that was read is
tried before it is returned: a file of another version is refused, not misread.
"""

from __future__ import annotations

import inspect
from collections import UserList
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeCV,
    SGDClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.storable import storable

Content: TypeAlias = dict[str, Any]

SCALERS: tuple[type, ...] = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
# Models that are ``X @ coef_.T + intercept_``, and classes by its sign or its largest column.
LINEAR_CLASSIFIERS: tuple[type, ...] = (LogisticRegression, LogisticRegressionCV, LinearSVC, SGDClassifier)
LINEAR_MODELS = (LinearRegression, Ridge, RidgeCV, Lasso, ElasticNet, LinearSVR, *LINEAR_CLASSIFIERS)
# Steps that contain steps.
CONTAINERS = ("Pipeline", "ColumnTransformer")
# Settings that say how to compute, not what: they stay with the machine. A file that names processes or folders could
# start and read what its author likes.
_NOT_WRITTEN = frozenset({"n_jobs", "memory", "verbose", "copy"})
# Kinds of numbers that a step may turn its own into.
_NUMBERS = "fiu"


def is_no_step(step: object) -> bool:
    """Whether a place in a pipeline is empty: None or "passthrough"."""
    return step in (None, "passthrough")


def merges_rare(encoder: Any) -> bool:
    """Whether an encoder takes rare categories for one."""
    return encoder.min_frequency is not None or encoder.max_categories is not None


def _listed(columns: Any) -> list[Any]:
    """Columns as a list: the ends of a slice, or one name, number or truth value after the other."""
    if isinstance(columns, slice):
        return [columns.start, columns.stop]
    # the columns of a remainder are a list that warns of changes to come, in some versions of scikit-learn
    return list(np.atleast_1d(columns.data if isinstance(columns, UserList) else columns))


def _by_name(columns: Any) -> bool:
    """Whether a ColumnTransformer names these columns by texts."""
    return any(isinstance(column, str) for column in _listed(columns))


def column_positions(step: ColumnTransformer, columns: Any) -> Sequence[int]:
    """Positions of columns that are given as a list or a slice of names or numbers, a mask, one name or one number."""
    names, places = list(getattr(step, "feature_names_in_", ())), range(step.n_features_in_)
    if isinstance(columns, slice):
        start = names.index(columns.start) if isinstance(columns.start, str) else columns.start
        # a slice of names includes the last one
        stop = names.index(columns.stop) + 1 if isinstance(columns.stop, str) else columns.stop
        return places[start : stop : columns.step]
    if _by_name(columns):
        return [names.index(column) for column in _listed(columns)]
    return [int(i) for i in np.array(places)[_listed(columns)]]


def _refuse(wrong: bool, step: Any, setting: str) -> None:
    if wrong:
        raise TypeError(
            f"save: a {type(step).__name__} with {setting} cannot be saved; fit the pipeline without it, or save its "
            "last step alone, and do the steps before it yourself."
        )


def _defaults(cls: type) -> Content:
    return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}


def _head(step: Any, *own: str) -> Content:
    """The common part of every step: settings other than the defaults, names of the features, type of the output."""
    defaults = _defaults(type(step))
    return {
        "settings": {
            name: _dtype_name(step, value) if name == "dtype" else value
            for name, value in step.get_params(deep=False).items()
            if name not in (*own, *_NOT_WRITTEN) and repr(value) != repr(defaults[name])
        },
        "names": getattr(step, "feature_names_in_", None),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
    }


def _dtype_name(step: Any, value: Any) -> str:
    dtype = np.dtype(value)
    _refuse(dtype.kind not in _NUMBERS, step, f"dtype={value!r}")
    return dtype.name


def _made(cls: Any, content: Content, **own: Any) -> Any:
    """An unfitted step with the settings of a file."""
    settings = content["settings"]
    known = set(_defaults(cls)) - _NOT_WRITTEN - set(own)
    if not set(settings) <= known:
        raise ValueError(f"this scikit-learn has no {cls.__name__} with the settings {settings!r}"[:150])
    if "dtype" in settings:
        dtype = np.dtype(str(settings["dtype"]))
        if dtype.kind not in _NUMBERS:
            raise ValueError(f"{cls.__name__}.dtype is {dtype}")
        settings = {**settings, "dtype": dtype.type}
    made = cls(**settings, **own)
    if content["output"] is not None:
        made.set_output(transform=content["output"])
    return made


def _named(made: Any, content: Content) -> Any:
    """A step that knows the names of its features, if the file has some."""
    names = content["names"]
    if names is not None:
        right = names.shape == (made.n_features_in_,) and names.dtype == object and len(set(names)) == len(names)
        _expect(right, made, "feature_names_in_")
        made.feature_names_in_ = names
    return made


def _expect(right: bool, made: Any, what: str) -> None:
    if not right:
        raise ValueError(f"{type(made).__name__}.{what} is none that scikit-learn could have learned")


def _texts_or_numbers(values: Any, step: Any, otherwise: str) -> Any:
    """The same array; numbers that came as Python objects become an array of numbers."""
    if values.dtype != object or all(isinstance(value, str) for value in values):
        return values
    _refuse(not all(isinstance(value, (bool, int, float, np.number)) for value in values), step, otherwise)
    return np.array(list(values))


# SimpleImputer


def _write_imputer(step: SimpleImputer) -> Content:
    _refuse(step.add_indicator, step, "add_indicator=True")
    mixed = "numbers and texts in one table, or a column without any"
    return {**_head(step), "statistics": _texts_or_numbers(step.statistics_, step, mixed)}


def _make_imputer(cls: Any, content: Content) -> Any:
    made = _made(cls, content).fit(content["statistics"][None, :])
    _expect(not made.add_indicator, made, "add_indicator")
    made.statistics_ = content["statistics"]  # what equals the mark of missing values is NaN after that fit
    return _named(made, content)


# OneHotEncoder and OrdinalEncoder


def _write_encoder(step: Any) -> Content:
    _refuse(merges_rare(step), step, "min_frequency or max_categories")
    mixed = "categories other than texts and numbers"
    categories = tuple(_texts_or_numbers(values, step, mixed) for values in step.categories_)
    return {**_head(step, "categories"), "categories": categories, "given": not isinstance(step.categories, str)}


def _make_encoder(cls: Any, content: Content) -> Any:
    categories = content["categories"]
    for values in categories:  # the order of numbers is only checked in a column of numbers
        OrdinalEncoder(categories=[values]).fit(values[:, None])
    made = _made(cls, content, categories=[list(values) for values in categories])
    _expect(not merges_rare(made), made, "min_frequency")
    row = np.empty((1, len(categories)), dtype=object)
    row[0, :] = [values[0] for values in categories]
    made.fit(row)
    made.categories_ = list(categories)
    if not content["given"]:
        made.categories = "auto"
    return _named(made, content)


# ColumnTransformer and feature selection


def _write_columns(step: ColumnTransformer) -> Content:
    given = {name: part for name, part, _ in step.transformers}
    _refuse("remainder" in given, step, "a transformer of the name 'remainder'")
    _refuse(not isinstance(step.verbose_feature_names_out, bool), step, "a format of names (verbose_feature_names_out)")
    given["remainder"] = step.remainder
    parts = []
    for name, fitted, columns in step.transformers_:
        places = [int(i) for i in column_positions(step, columns)]
        kind = given[name] if isinstance(given[name], str) else ""
        # a part without columns was never fitted
        parts.append((name, kind or (fitted if places else "drop"), places, _by_name(columns)))
    return {
        **_head(step, "transformers", "remainder", "force_int_remainder_cols"),
        "n_features": step.n_features_in_,
        "parts": tuple(parts),
        "rest": step.remainder if isinstance(step.remainder, str) else "passthrough",
        "sparse": bool(step.sparse_output_),
        "places": {name: (part.start, part.stop) for name, part in step.output_indices_.items()},
    }


def _write_selected(step: Any) -> Content:
    """A feature selection, as the ColumnTransformer that keeps the same columns."""
    kept = [int(i) for i in step.get_support(indices=True)]
    made = ColumnTransformer([("kept", "passthrough", kept)], verbose_feature_names_out=False)
    made.fit(np.zeros((1, step.n_features_in_)))
    names = ("feature_names_in_", "_sklearn_output_config")
    vars(made).update({name: vars(step)[name] for name in names if name in vars(step)})
    return _write_columns(made)


def _make_columns(cls: Any, content: Content) -> Any:
    parts, d = content["parts"], content["n_features"]
    # every column is in one of the parts, so a short file cannot name a huge number of columns
    found = sorted({place for _, _, places, _ in parts for place in places})
    if len(found) != d or found != list(range(len(found))):
        raise ValueError(f"ColumnTransformer.n_features_in_ is {d}")
    # every step is put in its place after the fit
    stubs = [(name, step if isinstance(step, str) else "passthrough", places) for name, step, places, _ in parts]
    shown = [stub for stub in stubs if stub[0] != "remainder"]
    made = _made(cls, content, transformers=shown, remainder=content["rest"])
    _expect(made.remainder in ("drop", "passthrough"), made, "remainder")
    # a text would be a format, and a format can ask for names of any length
    _expect(type(made.verbose_feature_names_out) is bool, made, "verbose_feature_names_out")
    made.fit(np.zeros((1, d)))
    _named(made, content)
    fitted = {name: step for name, step, _ in made.transformers_}
    columns = [list(made.feature_names_in_[places]) if named else places for _, _, places, named in parts]
    given = [(name, step, own) for (name, step, _, _), own in zip(parts, columns)]
    made.transformers_ = [(name, fitted[name] if isinstance(step, str) else step, own) for name, step, own in given]
    made.transformers = [part for part in given if part[0] != "remainder"]
    rest = [step for name, step, _ in given if name == "remainder" and not isinstance(step, str)]
    made.remainder = rest[0] if rest else content["rest"]
    made.sparse_output_ = bool(content["sparse"])
    made.output_indices_ = {name: slice(*ends) for name, ends in content["places"].items()}
    return made


# Linear models


def _write_linear(step: Any) -> Content:
    coef = step.coef_.toarray() if is_sparse(step.coef_) else step.coef_
    return {**_head(step), "coef": coef, "intercept": step.intercept_, "classes": getattr(step, "classes_", None)}


def _make_linear(cls: Any, content: Content) -> Any:
    made, coef, classes = _made(cls, content), content["coef"], content["classes"]
    _expect(np.shape(content["intercept"]) in ((), (1,), coef.shape[:-1]), made, "intercept_")
    made.coef_, made.intercept_, made.n_features_in_ = coef, content["intercept"], coef.shape[-1]
    if cls in LINEAR_CLASSIFIERS:
        made.classes_ = classes
        _expect(coef.shape[:-1] == (len(classes) if len(classes) > 2 else 1,), made, "coef_")
    return _named(made, content)


_LEARNED: tuple[tuple[type, Callable[[Any], Content], Callable[[Any, Content], Any]], ...] = (
    (SimpleImputer, _write_imputer, _make_imputer),
    (OneHotEncoder, _write_encoder, _make_encoder),
    (OrdinalEncoder, _write_encoder, _make_encoder),
    (ColumnTransformer, _write_columns, _make_columns),
    *((cls, _write_linear, _make_linear) for cls in LINEAR_MODELS),
)
# Class, writer and maker of every step that is written by what it learned, by its name.
STEPS = {step[0].__name__: step for step in _LEARNED}


def written(step: Any) -> tuple[str, Content] | None:
    """The name and the content under which a step is written; None if its attributes are written as they are."""
    if isinstance(step, SelectorMixin):
        # the function or the model that chose the features is not part of the result
        return "ColumnTransformer", _write_selected(step)
    return next(((cls.__name__, write(step)) for cls, write, _ in _LEARNED if cls is type(step)), None)


def _check_pipeline(pipeline: Pipeline) -> None:
    # a folder named here would be unpickled from by the next fit
    if pipeline.memory is not None:
        raise ValueError("Pipeline.memory must be None in a file; set it again after loading")


def _check_scaler(scaler: Any) -> None:
    for name, value in vars(scaler).items():
        if isinstance(value, np.ndarray) and name != "feature_names_in_":
            _expect(value.dtype.kind in _NUMBERS, scaler, name)


for _scaler in SCALERS:
    storable(check=_check_scaler)(_scaler)
storable(check=_check_pipeline)(Pipeline)
