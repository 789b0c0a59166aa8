"""The columns of a table as people have them: which are categories, their levels, and one matrix of numbers.

In the matrix a level is its position among the sorted levels of the fit, another level is their number, and a gap (NaN,
None, NA) is NaN. This module reads data frames of pandas, and of any library whose columns NumPy understands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from fewkern.arrays.namespace import Array, asarray_like, is_foreign, is_sparse, namespace, to_numpy

Host = np.ndarray[Any, Any]
# The levels of every column, None for a column of numbers; None where all are numbers.
Categories = list[Host | None] | None
# How the names of types begin that are categories in pandas, polars and pyarrow.
_CATEGORIES = ("category", "categorical", "enum", "dictionary")
_ENCODE = "make numbers of it first, for example with skrub.TableVectorizer"


def takes_tables(estimator: Any) -> bool:
    """Whether an estimator takes categories and gaps."""
    return hasattr(estimator, "categorical_features")


def counts_of(estimator: Any) -> tuple[int | None, ...] | None:
    """Number of levels of every column, None for numbers; None where all are numbers."""
    categories: Categories = getattr(estimator, "categories_", None)
    return None if categories is None else tuple(None if one is None else len(one) for one in categories)


def as_matrix(estimator: Any, X: Any, numbers: Callable[[Any], Array], *, reset: bool, minimum: int) -> Array:
    """The columns of ``X`` as one matrix of at least ``minimum`` rows; ``numbers`` checks a table of numbers alone.

    Sets ``categories_`` when ``reset``.
    """
    framed, name = is_frame(X), type(estimator).__name__
    if not framed and not hasattr(X, "dtype"):
        X = _from_lists(X)
    if is_sparse(X) or not hasattr(X, "shape"):
        if reset:
            _none_given(estimator)
            estimator.categories_ = None
        return numbers(X)
    own = given_columns(estimator, X) if reset else _known(estimator, X)
    mixed = framed or X.dtype.kind not in "fiub" if not is_foreign(X) else False
    if not own or not mixed:
        if framed:
            _refuse_others(name, X)
        found = numbers(X)
        if reset:
            estimator.categories_ = _levels_of_numbers(found, own)
        return _coded(found, estimator.categories_) if own else found
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    if X.shape[0] < minimum:
        raise ValueError(f"{name}: expected at least {minimum} sample(s), got shape {tuple(X.shape)}.")
    if reset:
        estimator.categories_ = levels_in(name, X, own)
    return coded_table(name, X, estimator.categories_)


def levels_in(name: str, X: Any, own: Sequence[int]) -> list[Host | None]:
    """The levels of the columns ``own`` of a table, None for the others; ``name`` begins messages."""
    kept, labels = set(own), _labels(X)
    return [_levels(name, label, _column(X, j)) if j in kept else None for j, label in enumerate(labels)]


def all_levels(name: str, parts: Sequence[list[Host | None]]) -> list[Host | None]:
    """The levels of all parts of a table."""
    found: list[Host | None] = []
    for j, column in enumerate(zip(*parts)):
        known = [levels for levels in column if levels is not None and len(levels)]
        if len({levels.dtype == object for levels in known}) > 1:
            raise ValueError(
                f"{name}: the levels of column {j} are texts in some parts of the table, and numbers in others; make "
                "them one, for example with astype(str)."
            )
        found.append(None if column[0] is None else np.unique(np.concatenate(known)) if known else column[0])
    return found


def coded_table(name: str, X: Any, categories: list[Host | None]) -> Host:
    """A table as one matrix, with codes in place of levels."""
    columns, labels = [_column(X, j) for j in range(X.shape[1])], _labels(X)
    made = [
        _numbers(name, label, column) if levels is None else _codes(name, label, column, levels)
        for label, column, levels in zip(labels, columns, categories)
    ]
    return np.ascontiguousarray(np.stack(made, axis=1))


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame."""
    return hasattr(X, "columns") and hasattr(X, "shape") and not isinstance(X, np.ndarray)


def _from_lists(X: Any) -> Any:
    """A table of lists as an array, of objects where it holds texts; rows of different lengths stay as they are."""
    try:
        found = np.asarray(X)
    except ValueError:
        return X
    return np.asarray(X, dtype=object) if found.dtype.kind in "US" and found.ndim == 2 else found


def _labels(X: Any) -> list[str]:
    """What messages call the columns."""
    return [repr(str(c)) for c in _names(X)] if is_frame(X) else [str(j) for j in range(X.shape[1])]


def _names(X: Any) -> list[Any]:
    return list(getattr(X, "column_names", X.columns))


def _column(X: Any, j: int) -> Any:
    """A column of a data frame or of an array."""
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    if is_frame(X):
        return X[_names(X)[j]]
    return X[:, j]


def _is_category(column: Any) -> bool:
    return str(column.dtype if hasattr(column, "dtype") else column.type).lower().startswith(_CATEGORIES)


def _none_given(estimator: Any) -> None:
    given = estimator.categorical_features
    if given is None or isinstance(given, str) or not len(given):
        return
    raise ValueError(
        f"{type(estimator).__name__}: categorical_features names columns of a table, and X is sparse or none; pass "
        "a data frame or an array, or leave categorical_features out."
    )


def _known(estimator: Any, X: Any) -> list[int]:
    """The columns that were categories in the fit."""
    categories: Categories = getattr(estimator, "categories_", None)
    if categories is None or len(X.shape) != 2 or X.shape[1] != len(categories):
        return []  # what is wrong with X is said by the checks of numbers
    return [j for j, levels in enumerate(categories) if levels is not None]


def given_columns(estimator: Any, X: Any) -> list[int]:
    """The columns that ``categorical_features`` names."""
    given, name, framed = estimator.categorical_features, type(estimator).__name__, is_frame(X)
    if given is None or len(X.shape) != 2:
        return []
    if isinstance(given, str):  # "from_dtype"
        return [j for j in range(X.shape[1]) if _is_category(_column(X, j))] if framed else []
    wanted, d = np.asarray(given), int(X.shape[1])
    if not wanted.size:
        return []
    if wanted.ndim == 1 and wanted.dtype.kind == "b":
        if len(wanted) != d:
            raise ValueError(
                f"{name}: categorical_features is a mask of {len(wanted)} columns, but X has {d}; give one entry per "
                "column."
            )
        return np.flatnonzero(wanted).tolist()
    if wanted.ndim == 1 and wanted.dtype.kind in "iu":
        outside = wanted[(wanted < 0) | (wanted >= d)]
        if len(outside):
            raise ValueError(
                f"{name}: categorical_features names column {outside[0]}, but X has the columns 0 to {d - 1}."
            )
        return sorted(set(wanted.tolist()))
    if wanted.ndim == 1 and all(isinstance(one, str) for one in wanted.tolist()):
        names = [str(c) for c in _names(X)] if framed else []
        for one in wanted.tolist():
            if one not in names:
                has = (
                    f"its columns are {', '.join(names[:10])}" if framed else "it is an array, whose columns have none"
                )
                raise ValueError(f"{name}: categorical_features names {one!r}, but X has no such column; {has}.")
        return sorted({names.index(one) for one in wanted.tolist()})
    raise ValueError(
        f'{name}: categorical_features must be "from_dtype", None, or names, positions or a mask of columns, got '
        f"{given!r}."
    )


def _values(column: Any) -> tuple[Host, Host, str]:
    """The values of a column, which of them are gaps, and their kind: number, text, date, or another."""
    if _is_category(column) and hasattr(column, "astype"):
        column = column.astype(object)  # of pandas; others become objects by themselves
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if values.dtype.kind in "fiub":
        return values, np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool), "numbers"
    if values.dtype.kind in "Mm":
        return values, np.isnat(values), "dates"
    listed = values.tolist()
    gaps = np.fromiter((_is_gap(one) for one in listed), dtype=bool, count=len(listed))
    kinds = {_kind(one) for one, gap in zip(listed, gaps) if not gap}
    return values, gaps, kinds.pop() if len(kinds) == 1 else "several kinds" if kinds else "numbers"


def _is_gap(one: Any) -> bool:
    """Whether a value is None, NaN, NA or NaT."""
    if one is None or type(one).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(one, (float, np.floating)) and one != one


def _kind(one: Any) -> str:
    if isinstance(one, str):
        return "text"
    if isinstance(one, (bool, int, float, np.number, np.bool_)):
        return "numbers"
    return (
        "dates"
        if hasattr(one, "year") or hasattr(one, "total_seconds") or isinstance(one, np.datetime64)
        else "other things"
    )


def _numbers(name: str, label: str, column: Any) -> Host:
    """A column of numbers, with NaN in its gaps."""
    values, gaps, kind = _values(column)
    if kind != "numbers":
        raise ValueError(_refusal(name, label, kind))
    if not gaps.any() or values.dtype.kind == "f":
        found = values.astype(np.float64)
    else:
        found = np.full(len(values), np.nan)
        found[~gaps] = values[~gaps].astype(np.float64)
    if np.isinf(found).any():
        raise ValueError(f"{name}: the column {label} contains infinity; replace it, or leave a gap (NaN).")
    return found


def _refusal(name: str, label: str, kind: str) -> str:
    """What is said of a column that is neither numbers nor a category."""
    if kind == "dates":
        return (
            f"{name}: the column {label} holds dates or times; make numbers of them first, for example with "
            "skrub.DatetimeEncoder or skrub.TableVectorizer."
        )
    return (
        f"{name}: the column {label} holds {'texts' if kind == 'text' else kind}, not numbers; if it is a category, "
        f'give it the type "category", or name it in categorical_features; else {_ENCODE}.'
    )


def _refuse_others(name: str, X: Any) -> None:
    """An error for a column of a data frame that cannot be numbers."""
    for j, label in enumerate(_labels(X)):
        column = _column(X, j)
        if _is_category(column) or str(getattr(column, "dtype", "object")).lower().startswith(("int", "uint", "float")):
            continue
        kind = _values(column)[2]
        if kind != "numbers":
            raise ValueError(_refusal(name, label, kind))


def _plain(name: str, label: str, column: Any) -> tuple[Host, Host, str]:
    """The values of a category as numbers or texts, which are gaps, and which of both they are."""
    values, gaps, kind = _values(column)
    if kind == "several kinds":
        kinds = sorted({type(one).__name__ for one, gap in zip(values.tolist(), gaps) if not gap})
        raise ValueError(
            f"{name}: the levels of the column {label} are of several kinds ({', '.join(kinds)}); make them one, for "
            "example with astype(str)."
        )
    if kind == "numbers":
        found = np.full(len(values), np.nan)
        found[~gaps] = values[~gaps].astype(np.float64)
        return found, gaps, kind
    texts = np.empty(len(values), dtype=object)
    texts[:] = [None if gap else str(one) for one, gap in zip(values.tolist(), gaps)]
    return texts, gaps, "text"


def _levels(name: str, label: str, column: Any) -> Host:
    """The sorted levels of a category."""
    values, gaps, _ = _plain(name, label, column)
    return np.unique(values[~gaps]) if len(values) else values


def _codes(name: str, label: str, column: Any, levels: Host) -> Host:
    """The position of every level among those of the fit; their number for another one, NaN for a gap."""
    values, gaps, kind = _plain(name, label, column)
    if len(levels) and not gaps.all() and (levels.dtype == object) != (kind == "text"):
        was = "texts" if levels.dtype == object else "numbers"
        raise ValueError(
            f"{name}: the levels of the column {label} are {'texts' if kind == 'text' else kind}, but they were {was} "
            "in the fit; pass the column with the same type."
        )
    place = {level: float(k) for k, level in enumerate(levels.tolist())}
    other = float(len(levels))
    return np.array([np.nan if gap else place.get(one, other) for one, gap in zip(values.tolist(), gaps)])


def _levels_of_numbers(X: Array, own: Sequence[int]) -> Categories:
    """The levels of the categories of a matrix of numbers."""
    if not own:
        return None
    found: list[Host | None] = [None] * int(X.shape[1])
    for j in own:
        values = to_numpy(X[:, j])
        found[j] = np.unique(values[~np.isnan(values)])
    return found


def _coded(X: Array, categories: Categories) -> Array:
    """A matrix of numbers with codes in place of the levels, where it is."""
    xp = namespace(X)
    out = xp.asarray(X, copy=True)
    for j, levels in enumerate(categories or ()):
        if levels is not None:
            values, count = X[:, j], len(levels)
            if not count:
                out[:, j] = xp.where(xp.isnan(values), values, xp.zeros_like(values))
                continue
            known = asarray_like(levels, X, dtype=X.dtype)
            filled = xp.where(xp.isnan(values), known[0], values)
            place = xp.clip(xp.searchsorted(known, filled), 0, count - 1)
            code = xp.astype(place, X.dtype)
            code = xp.where(xp.take(known, place) == filled, code, xp.full_like(code, float(count)))
            out[:, j] = xp.where(xp.isnan(values), values, code)
    return out


def with_levels(codes: Host, categories: Categories) -> Host:
    """Rows with the levels that their codes stand for; of a category without levels, gaps."""
    if categories is None:
        return codes
    out = codes.astype(object)
    for j, levels in enumerate(categories):
        if levels is not None:
            own = np.clip(np.nan_to_num(codes[:, j]), 0, max(len(levels) - 1, 0)).astype(int)
            out[:, j] = [levels[k] if len(levels) else None for k in own]
    return out


def check_categories(categories: Any, n_features: Any, owner: str) -> None:
    """Raise a ValueError unless what was read from a file can be levels of columns."""
    if categories is None:
        return
    fine = isinstance(categories, list) and len(categories) == n_features
    for levels in categories if fine else ():
        if levels is None:
            continue
        fine = fine and isinstance(levels, np.ndarray) and levels.ndim == 1 and levels.dtype.kind in "bifuO"
        if fine and levels.dtype.kind == "f":
            fine = bool(np.isfinite(levels).all())
        fine = fine and bool((levels[1:] > levels[:-1]).all())
    if not fine:
        raise ValueError(f"{owner}.categories_ does not hold sorted levels of {n_features} columns")
