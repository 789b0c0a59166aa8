"""Steps of scikit-learn as a file holds them: their settings, and what they learned.

A form turns a fitted step into plain data and back. The installed scikit-learn makes the step again: it is fitted on
one row that has the right shape and types, which also checks its settings, and then gets the numbers of the file. So
attributes that scikit-learn keeps for itself need not be known here, and may differ between its versions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from fewkern.arrays.namespace import is_sparse
from fewkern.io.steps import LINEAR_CLASSIFIERS, LINEAR_MODELS, column_positions, columns_by_name

__all__ = ["FORMS", "form_of"]

Content: TypeAlias = dict[str, Any]

# Settings that say how to compute, not what: they stay with the machine. A file that names processes or folders could
# start and read what its author likes.
_NOT_WRITTEN = frozenset({"n_jobs", "memory", "verbose", "copy"})
# Types that a step may turn its numbers into.
_NUMBERS = "fiu"
# scikit-learn makes Python objects of categories, a list and a set of them.
_BYTES_PER_CATEGORY = 160


@dataclass(frozen=True)
class Form:
    """How one class is written, and made again from what was written."""

    write: Callable[[Any], Content]
    make: Callable[[Content], Any]
    bytes_per_entry: int = 0
    """Memory that ``make`` takes for every entry of an array in the content, beside the array."""


def form_of(step: Any) -> tuple[str, Content] | None:
    """The name and the content under which a step is written; None if it has no form of its own."""
    if isinstance(step, SelectorMixin):
        # the function or the model that chose the features is not part of the result
        return "ColumnTransformer", _write_selected(step)
    name = type(step).__name__
    if name in FORMS and type(step) in _CLASSES:
        return name, FORMS[name].write(step)
    return None


def _refuse(wrong: bool, step: Any, setting: str) -> None:
    if wrong:
        raise TypeError(
            f"save: a {type(step).__name__} with {setting} cannot be saved; fit the pipeline without it, or save its "
            "last step alone, and do the steps before it yourself."
        )


def _defaults(cls: type) -> Content:
    return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}


def _head(step: Any, *own: str) -> Content:
    """What every form has: settings other than the defaults, the names of the features, the type of the output."""
    defaults = _defaults(type(step))
    settings = {
        name: _dtype_name(step, value) if name == "dtype" else value
        for name, value in step.get_params(deep=False).items()
        if name not in (*own, *_NOT_WRITTEN) and not _same(value, defaults[name])
    }
    for name, value in settings.items():
        _refuse(not _is_plain(value), step, f"{name}={value!r}")
    return {
        "settings": settings,
        "n_features": getattr(step, "n_features_in_", None),
        "names": getattr(step, "feature_names_in_", None),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
    }


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, float) and isinstance(default, float):
        return value == default or (np.isnan(value) and np.isnan(default))
    return type(value) is type(default) and np.ndim(value) == 0 and bool(value == default)


def _dtype_name(step: Any, value: Any) -> str:
    dtype = np.dtype(value)
    _refuse(dtype.kind not in _NUMBERS, step, f"dtype={value!r}")
    return dtype.name


def _is_plain(value: Any) -> bool:
    """Numbers, texts, and lists of them."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(part) for pair in value.items() for part in pair)
    return value is None or isinstance(value, (bool, int, float, str, np.generic, np.ndarray))


def _made(cls: Any, content: Content, **own: Any) -> Any:
    """An unfitted step with the settings of a file."""
    settings = content["settings"]
    known = set(_defaults(cls)) - _NOT_WRITTEN - set(own)
    if not isinstance(settings, dict) or not set(settings) <= known or not all(map(_is_plain, settings.values())):
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
        _expect(isinstance(names, np.ndarray) and names.shape == (made.n_features_in_,), made, "feature_names_in_")
        _expect(_is_texts(names) and len(set(names)) == len(names), made, "feature_names_in_")
        made.feature_names_in_ = names
    return made


def _expect(right: bool, made: Any, what: str) -> None:
    if not right:
        raise ValueError(f"{type(made).__name__}.{what} is none that scikit-learn could have learned")


def _is_texts(array: Any) -> bool:
    return array.dtype == object and all(isinstance(item, str) for item in array)


# SimpleImputer


def _write_imputer(step: SimpleImputer) -> Content:
    _refuse(step.add_indicator, step, "add_indicator=True")
    statistics = _numbers_if_any(step.statistics_)
    mixed = statistics.dtype == object and not _is_texts(statistics)
    _refuse(mixed, step, "numbers and texts in one table, or a column without any")
    return {**_head(step), "statistics": statistics}


def _make_imputer(content: Content) -> SimpleImputer:
    made, statistics = _made(SimpleImputer, content), content["statistics"]
    _expect(not made.add_indicator, made, "add_indicator")
    _expect(isinstance(statistics, np.ndarray) and statistics.ndim == 1 and len(statistics) > 0, made, "statistics_")
    _expect(statistics.dtype.kind in _NUMBERS or _is_texts(statistics), made, "statistics_")
    _expect(statistics.dtype.kind != "f" or not np.isinf(statistics).any(), made, "statistics_")
    made.fit(statistics[None, :])
    made.statistics_ = statistics
    return _named(made, content)


# OneHotEncoder and OrdinalEncoder


def _write_encoder(step: Any) -> Content:
    _refuse(step.min_frequency is not None or step.max_categories is not None, step, "min_frequency or max_categories")
    given = not isinstance(step.categories, str)
    categories = tuple(map(_numbers_if_any, step.categories_))
    mixed = [values for values in categories if values.dtype == object and not _is_texts(values)]
    _refuse(bool(mixed), step, "categories other than texts and numbers")
    return {**_head(step, "categories"), "categories": categories, "given": given}


def _numbers_if_any(values: Any) -> Any:
    """Numbers that came as Python objects, as an array of numbers."""
    numbers = values.dtype == object and all(isinstance(value, (bool, int, float, np.number)) for value in values)
    return np.array(list(values)) if numbers else values


def _make_encoder(cls: Any) -> Callable[[Content], Any]:
    def make(content: Content) -> Any:
        categories = content["categories"]
        if not isinstance(categories, tuple) or not categories or not all(map(_is_categories, categories)):
            raise ValueError(f"{cls.__name__}.categories_ are not lists of different values")
        made = _made(cls, content, categories=[list(values) for values in categories])
        rare = made.min_frequency is not None or made.max_categories is not None
        _expect(not rare, made, "min_frequency")
        row = np.empty((1, len(categories)), dtype=object)
        row[0, :] = [values[0] for values in categories]
        made.fit(row)
        made.categories_ = list(categories)
        if not content["given"]:
            made.categories = "auto"
        return _named(made, content)

    return make


def _is_categories(values: Any) -> bool:
    """Texts or numbers in one dimension, none of them twice, numbers in order."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or not len(values):
        return False
    if values.dtype.kind == "U" or _is_texts(values):
        return len(set(values)) == len(values)
    # a missing value is a category too, the last one
    numbers = values[:-1] if values.dtype.kind == "f" and np.isnan(values[-1]) else values
    return values.dtype.kind in "biuf" and bool(np.all(np.isfinite(numbers)) and np.all(numbers[1:] > numbers[:-1]))


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
        parts.append((name, kind or (fitted if places else "drop"), places, columns_by_name(columns)))
    rest = step.remainder if isinstance(step.remainder, str) else "passthrough"
    return {
        **_head(step, "transformers", "remainder", "force_int_remainder_cols"),
        "parts": tuple(parts),
        "rest": rest,
        "sparse": bool(step.sparse_output_),
        "places": {name: (part.start, part.stop) for name, part in step.output_indices_.items()},
    }


def _write_selected(step: Any) -> Content:
    kept = [int(i) for i in step.get_support(indices=True)]
    rest = [i for i in range(step.n_features_in_) if i not in set(kept)]
    return {
        "settings": {"verbose_feature_names_out": False},
        "n_features": step.n_features_in_,
        "names": getattr(step, "feature_names_in_", None),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
        "parts": (("kept", "passthrough", kept, False), *([("remainder", "drop", rest, False)] if rest else [])),
        "rest": "drop",
        "sparse": False,
        "places": {"kept": (0, len(kept)), "remainder": (0, 0)},
    }


def _make_columns(content: Content) -> ColumnTransformer:
    parts, d = content["parts"], content["n_features"]
    if not isinstance(parts, tuple) or type(d) is not int or not all(_is_part(part, d) for part in parts):
        raise ValueError("ColumnTransformer.transformers_ are not names, steps and columns")
    # every column is in one of the parts, so a short file cannot name a huge number of columns
    if d < 1 or len({place for _, _, places, _ in parts for place in places}) != d:
        raise ValueError(f"ColumnTransformer.n_features_in_ is {d}")
    rest = [part for part in parts if part[0] == "remainder"]
    shown = [part for part in parts if part[0] != "remainder"]
    if content["rest"] not in ("drop", "passthrough"):
        raise ValueError("ColumnTransformer.remainder is neither dropped nor passed")
    # every step is put in its place after the fit
    stubs = [(name, step if isinstance(step, str) else "passthrough", places) for name, step, places, _ in shown]
    made = _made(ColumnTransformer, content, transformers=stubs, remainder=content["rest"])
    # a text would be a format, and a format can ask for names of any length
    _expect(type(made.verbose_feature_names_out) is bool, made, "verbose_feature_names_out")
    made.fit(np.zeros((1, d)))
    _named(made, content)
    fitted = {name: step for name, step, _ in made.transformers_}
    _expect(set(fitted) == {name for name, *_ in parts}, made, "transformers_")
    steps = [
        (name, fitted[name] if isinstance(step, str) else step, _columns(made, places, named))
        for name, step, places, named in parts
    ]
    made.transformers_ = steps
    made.transformers = [
        (name, step, columns) for (name, step, _, _), (_, _, columns) in zip(parts, steps) if name != "remainder"
    ]
    if rest and not isinstance(rest[0][1], str):
        made.remainder = rest[0][1]
    _expect(type(content["sparse"]) is bool, made, "sparse_output_")
    made.sparse_output_ = content["sparse"]
    made.output_indices_ = {name: slice(*_range(made, ends)) for name, ends in content["places"].items()}
    return made


def _is_part(part: Any, d: Any) -> bool:
    if not (isinstance(part, tuple) and len(part) == 4):
        return False
    name, step, places, named = part
    right = isinstance(name, str) and type(named) is bool and isinstance(places, list)
    right = right and (step in ("drop", "passthrough") if isinstance(step, str) else hasattr(step, "transform"))
    return right and all(type(place) is int and 0 <= place < d for place in places)


def _columns(made: ColumnTransformer, places: list[int], named: bool) -> list[Any]:
    _expect(not named or hasattr(made, "feature_names_in_"), made, "transformers_")
    return [made.feature_names_in_[place] for place in places] if named else places


def _range(made: Any, ends: Any) -> tuple[int, int]:
    right = isinstance(ends, tuple) and len(ends) == 2 and all(type(end) is int and end >= 0 for end in ends)
    _expect(right, made, "output_indices_")
    return ends


# Linear models

_FOUND = ("alpha_", "l1_ratio_", "n_iter_")


def _write_linear(step: Any) -> Content:
    found = {name: getattr(step, name) for name in _FOUND if isinstance(getattr(step, name, None), (int, float))}
    coef = step.coef_.toarray() if is_sparse(step.coef_) else step.coef_
    return {
        **_head(step),
        "coef": coef,
        "intercept": step.intercept_,
        "classes": getattr(step, "classes_", None),
        "found": found,
    }


def _make_linear(cls: Any) -> Callable[[Content], Any]:
    def make(content: Content) -> Any:
        made, coef, intercept = _made(cls, content), content["coef"], np.asarray(content["intercept"])
        _expect(isinstance(coef, np.ndarray) and coef.dtype.kind == "f" and coef.ndim in (1, 2), made, "coef_")
        _expect(coef.shape[-1] > 0 and bool(np.all(np.isfinite(coef))), made, "coef_")
        _expect(intercept.dtype.kind in _NUMBERS and bool(np.all(np.isfinite(intercept))), made, "intercept_")
        _expect(intercept.ndim == 0 or intercept.shape in (coef.shape[:-1], (1,)), made, "intercept_")
        made.coef_, made.intercept_, made.n_features_in_ = coef, content["intercept"], coef.shape[-1]
        if cls in LINEAR_CLASSIFIERS:
            made.classes_ = content["classes"]
            _expect(isinstance(made.classes_, np.ndarray) and made.classes_.ndim == 1, made, "classes_")
            _expect(
                coef.ndim == 2 and len(coef) == (len(made.classes_) if len(made.classes_) > 2 else 1), made, "coef_"
            )
        found = content["found"]
        _expect(isinstance(found, dict) and set(found) <= set(_FOUND) and all(map(_is_plain, found.values())), made, "")
        vars(made).update(found)
        return _named(made, content)

    return make


FORMS: dict[str, Form] = {
    "SimpleImputer": Form(_write_imputer, _make_imputer),
    "OneHotEncoder": Form(_write_encoder, _make_encoder(OneHotEncoder), _BYTES_PER_CATEGORY),
    "OrdinalEncoder": Form(_write_encoder, _make_encoder(OrdinalEncoder), _BYTES_PER_CATEGORY),
    "ColumnTransformer": Form(_write_columns, _make_columns),
    **{cls.__name__: Form(_write_linear, _make_linear(cls)) for cls in LINEAR_MODELS},
}
_CLASSES = {SimpleImputer, OneHotEncoder, OrdinalEncoder, ColumnTransformer, *LINEAR_MODELS}
