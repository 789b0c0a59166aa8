"""From the bytes of a source's files to the arrays of a set: pure functions, one per format.

Any other format raises an exception, or gives arrays with another checksum. Columns are stored in the
smallest type that keeps the source's values.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = [
    "Arrays",
    "parse_adult",
    "parse_chess",
    "parse_credit",
    "parse_faces",
    "parse_ida",
    "parse_ionosphere",
    "parse_letter",
    "parse_liver",
    "parse_mnist",
    "parse_sonar",
    "parse_wbc",
]

Arrays = dict[str, np.ndarray[Any, Any]]

_MISSING = "?"
_CHESS = (
    "bkblk bknwy bkon8 bkona bkspr bkxbq bkxcr bkxwp blxwp bxqsq cntxt dsopp dwipd hdchk katri mulch qxmsq r2ar8 "
    "reskd reskr rimmx rkxwp rxmsq simpl skach skewr skrxp spcop stlmt thrsk wkcti wkna8 wknck wkovl wkpos wtoeg"
)
_CREDIT = [f"A{i}" for i in range(1, 16)]
_CREDIT_NUMBERS = {"A2", "A3", "A8", "A11", "A14", "A15"}
# Rows of bupa.data that its copy in KEEL, which the local folder follows, has at its end.
_LIVER_ROWS = 345
_LIVER_LAST = [4, 12, 22, 23, 24, 31, 37, 49, 84, 89, 92, 99, 114, 118, 125, 148, 149, 152, 156, 157, 159, 188, 194]
_LIVER_LAST += [207, 215, 226, 234, 251, 256, 276, 278, 281, 296, 319, 337]
_ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country"
)
_ADULT_NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def parse_chess(content: bytes) -> Arrays:
    """kr-vs-kp.data: 36 attributes, then "won" or "nowin"."""
    table = _table(content, 37)
    X, names, _ = _columns(table[:, :-1], _CHESS.split(), numbers=set())
    return {"X": X.astype(np.uint8), "y": _signs(table[:, -1], "won", "nowin"), "feature_names": names}


def parse_credit(content: bytes) -> Arrays:
    """crx.data: 15 attributes, then "+" or "-"; rows with a missing value are left out."""
    table = _complete(_table(content, 16))
    X, names, coded = _columns(table[:, :-1], _CREDIT, _CREDIT_NUMBERS)
    return {"X": X, "y": _signs(table[:, -1], "+", "-"), "X_coded": coded, "feature_names": names}


def parse_ionosphere(content: bytes) -> Arrays:
    """ionosphere.data: 34 numbers, then "g" (good) or "b" (bad)."""
    table = _table(content, 35)
    return {"X": table[:, :-1].astype(float), "y": _signs(table[:, -1], "g", "b")}


def parse_liver(content: bytes) -> Arrays:
    """bupa.data: six numbers, then the selector, 1 or 2; in the order of KEEL's copy."""
    table = _table(content, 7)
    if len(table) != _LIVER_ROWS:
        raise ValueError(f"expected {_LIVER_ROWS} rows, got {len(table)}")
    table = np.concatenate([np.delete(table, _LIVER_LAST, axis=0), table[_LIVER_LAST]])
    return {"X": table[:, :-1].astype(np.float32), "y": _signs(table[:, -1], "2", "1")}


def parse_sonar(content: bytes) -> Arrays:
    """sonar.all-data: 60 numbers, then "M" (mine) or "R" (rock)."""
    table = _table(content, 61)
    return {"X": table[:, :-1].astype(float), "y": _signs(table[:, -1], "M", "R")}


def parse_wbc(content: bytes) -> Arrays:
    """breast-cancer-wisconsin.data: a number of the case, nine marks, then 2 (benign) or 4 (malignant).

    Rows with a missing value are left out.
    """
    table = _complete(_table(content, 11))
    return {"X": table[:, 1:-1].astype(np.uint8), "y": _signs(table[:, -1], "4", "2")}


def parse_letter(content: bytes) -> Arrays:
    """letter-recognition.data: the letter, then 16 numbers."""
    table = _table(content, 17)
    letters = table[:, 0].tolist()
    if any(len(letter) != 1 or not "A" <= letter <= "Z" for letter in letters):
        raise ValueError("expected letters from A to Z in the first column")
    y = np.array([ord(letter) - ord("A") for letter in letters], dtype=np.uint8)
    return {"X": table[:, 1:].astype(np.uint8), "y": y}


def parse_adult(train: bytes, test: bytes) -> Arrays:
    """adult.data and adult.test: 14 attributes, then "<=50K" or ">50K" (with a full stop in the second file).

    The missing value "?" is a level of its own.
    """
    names = _ADULT.split()
    parts = [_table(content, 15) for content in (train, test)]
    table = np.concatenate(parts)
    columns: list[np.ndarray[Any, Any]] = []
    levels: Arrays = {}
    for name, column in zip(names, table.T):
        if name in _ADULT_NUMBERS:
            columns.append(column.astype(np.int32))
        else:
            levels[f"levels_{name}"], codes = np.unique(column, return_inverse=True)
            columns.append(codes.astype(np.int32))
    return {
        "X": np.column_stack(columns),
        "y": _signs([label.rstrip(".") for label in table[:, -1].tolist()], ">50K", "<=50K"),
        "n_train": np.array(len(parts[0]), dtype=np.int64),
        "feature_names": np.array(names),
        "is_categorical": np.array([name not in _ADULT_NUMBERS for name in names]),
        **{key: _narrow(value) for key, value in levels.items()},
    }


def parse_mnist(content: bytes) -> Arrays:
    """mnist.npz of Keras: x_train, y_train, x_test, y_test."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        parts = {key: archive[key] for key in ("x_train", "x_test", "y_train", "y_test")}
    X = np.concatenate([parts["x_train"], parts["x_test"]])
    return {
        "X": X.reshape(len(X), -1).astype(np.uint8),
        "y": np.concatenate([parts["y_train"], parts["y_test"]]).astype(np.uint8),
        "n_train": np.array(len(parts["x_train"]), dtype=np.int64),
    }


def parse_faces(content: bytes) -> Arrays:
    """ORL_32x32.mat, Yale_32x32.mat: fea (one image per row), gnd (person)."""
    archive = _matlab(content, "fea", "gnd")
    # MATLAB writes an image column by column; turned, X[i].reshape(32, 32) is upright
    images = archive["fea"].reshape(-1, 32, 32).transpose(0, 2, 1)
    return {"X": images.reshape(len(images), -1).astype(np.uint8), "y": archive["gnd"].ravel().astype(np.uint8)}


def parse_ida(content: bytes, *, name: str) -> Arrays:
    """benchmarks.mat: one structure per set, with x, t, train and test."""
    # breast-cancer is breast_cancer there
    key = name.replace("-", "_")
    z = _matlab(content, key)[key][0, 0]
    # MATLAB counts from one
    train, test = ((z[part].astype(int) - 1).astype(np.uint16) for part in ("train", "test"))
    return {
        "X": z["x"].astype(float),
        "y": z["t"].ravel().astype(np.int8),
        "train_idx": train,
        "test_idx": test,
        "split_no": np.arange(1, len(train) + 1, dtype=np.int16),
    }


def _matlab(content: bytes, *names: str) -> dict[str, Any]:
    from scipy.io import loadmat

    handle: Any = io.BytesIO(content)
    return dict(loadmat(handle, variable_names=names))


def _table(content: bytes, width: int) -> np.ndarray[Any, Any]:
    """Cells of a comma-separated text, as strings; empty lines and those that begin with "|" are none of the table."""
    lines = [line for line in content.decode("ascii").splitlines() if line.strip() and not line.startswith("|")]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"expected {width} columns, got {len(row)} in row {number}")
    if not rows:
        raise ValueError("expected rows of text, got none")
    return np.array(rows)


def _complete(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return table[~np.any(table == _MISSING, axis=1)]


def _signs(labels: Iterable[str], positive: str, negative: str) -> np.ndarray[Any, Any]:
    labels = [str(label) for label in labels]
    strange = sorted(set(labels) - {positive, negative})
    if strange:
        raise ValueError(f"expected labels {positive!r} and {negative!r}, got {strange[0]!r}")
    return np.array([1 if label == positive else -1 for label in labels], dtype=np.int8)


def _columns(
    table: np.ndarray[Any, Any], names: list[str], numbers: set[str]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Features, their names, and the attributes with categories as codes.

    A category of two levels becomes one column, which is 1 for the later of the two in the order of the alphabet; one
    of more levels becomes a column for each.
    """
    features, titles, coded = [], [], []
    for name, column in zip(names, table.T):
        if name in numbers:
            values = column.astype(float)
            features.append(values)
            titles.append(name)
            coded.append(values)
            continue
        levels, codes = np.unique(column, return_inverse=True)
        shown = range(len(levels)) if len(levels) > 2 else [len(levels) - 1]
        features += [(codes == k).astype(float) for k in shown]
        titles += [f"{name}={levels[k]}" for k in shown]
        coded.append(codes.astype(float))
    return np.column_stack(features), np.array(titles), np.column_stack(coded)


def _narrow(text: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same strings in the narrowest type: a column of a table has the width of the whole."""
    return np.array(text.tolist())
