"""The benchmark sets, one after the other: where each comes from, its checksum, and how its files become arrays.

A set is a pure function from the bytes of its files to arrays, under a decorator that says its name ``kind/name``, its
mirrors, and the :func:`~experiments.data.sources.content_sha256` of its arrays. Another format raises an exception, or
gives arrays with another checksum. Columns are stored in the smallest type that keeps the source's values.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.data.formats import Arrays, columns_of, complete, matlab, narrow, signs, table_of
from experiments.data.sources import File, Mirrors, Source, cai, uci

__all__ = ["CONTENT", "SOURCES"]

SOURCES: dict[str, Source] = {}
"""By ``kind/name``."""
CONTENT: dict[str, str] = {}
"""Checksum of the content of each set. The IDA sets have none: their one file has its own."""

Parser = Callable[..., Arrays]


def _set(need: str, mirrors: Mirrors, content: str) -> Callable[[Parser], Parser]:
    """Decorator of the function that reads the set ``need``."""

    def declare(parse: Parser) -> Parser:
        SOURCES[need], CONTENT[need] = Source(mirrors, {need: parse}), content
        return parse

    return declare


def parse_ida(content: bytes, *, name: str) -> Arrays:
    """benchmarks.mat: one structure per set, with x, t, train and test."""
    # breast-cancer is breast_cancer there
    key = name.replace("-", "_")
    z = matlab(content, key)[key][0, 0]
    # MATLAB counts from one
    train, test = ((z[part].astype(int) - 1).astype(np.uint16) for part in ("train", "test"))
    return {
        "X": z["x"].astype(float),
        "y": z["t"].ravel().astype(np.int8),
        "train_idx": train,
        "test_idx": test,
        "split_no": np.arange(1, len(train) + 1, dtype=np.int16),
    }


_IDA = "banana breast-cancer diabetis flare-solar german heart image ringnorm splice thyroid titanic twonorm waveform"
_IDA_SOURCE = Source(
    (
        (
            File(
                "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat",
                "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75",
            ),
        ),
    ),
    {f"ida/{name}": partial(parse_ida, name=name) for name in _IDA.split()},
)
SOURCES.update(dict.fromkeys(_IDA_SOURCE.parsers, _IDA_SOURCE))


@_set("faces/orl_32x32", cai("ORL/ORL_32x32.mat"), "9b5884f795b206d0ca5d9c157f991365fb44fb2065fd88e2c4364e128de2e09f")
@_set(
    "faces/yale_32x32", cai("Yale/Yale_32x32.mat"), "2f3a9a0fa7e1233ba2a89036b0968ae2e78a1e389ce042c407677d826f96156a"
)
def parse_faces(content: bytes) -> Arrays:
    """ORL_32x32.mat, Yale_32x32.mat: fea (one image per row), gnd (person)."""
    archive = matlab(content, "fea", "gnd")
    # MATLAB writes an image column by column; turned, X[i].reshape(32, 32) is upright
    images = archive["fea"].reshape(-1, 32, 32).transpose(0, 2, 1)
    return {"X": images.reshape(len(images), -1).astype(np.uint8), "y": archive["gnd"].ravel().astype(np.uint8)}


_CHESS = (
    "bkblk bknwy bkon8 bkona bkspr bkxbq bkxcr bkxwp blxwp bxqsq cntxt dsopp dwipd hdchk katri mulch qxmsq r2ar8 "
    "reskd reskr rimmx rkxwp rxmsq simpl skach skewr skrxp spcop stlmt thrsk wkcti wkna8 wknck wkovl wkpos wtoeg"
)


@_set(
    "uci/chess_krvskp",
    uci(
        "chess/king-rook-vs-king-pawn",
        22,
        "chess+king+rook+vs+king+pawn",
        {"kr-vs-kp.data": "70a5540902b4063d3977d3e820ac5b9fe5624eb5d93709eee5d50d7a94fca205"},
    ),
    "b8de90c7907b4a0e289f8149aa58ff23fd450c8e488a6aeb59500de67dba78e5",
)
def parse_chess(content: bytes) -> Arrays:
    """kr-vs-kp.data: 36 attributes, then "won" or "nowin"."""
    table = table_of(content, 37)
    X, names, _ = columns_of(table[:, :-1], _CHESS.split(), numbers=set())
    return {"X": X.astype(np.uint8), "y": signs(table[:, -1], "won", "nowin"), "feature_names": names}


_CREDIT = [f"A{i}" for i in range(1, 16)]
_CREDIT_NUMBERS = {"A2", "A3", "A8", "A11", "A14", "A15"}


@_set(
    "uci/credit_crx",
    uci(
        "credit-screening",
        27,
        "credit+approval",
        {"crx.data": "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d"},
    ),
    "5eb6bd29fc1630227aeba8377d40b3f1d94313b351203f956e95c71f409c2793",
)
def parse_credit(content: bytes) -> Arrays:
    """crx.data: 15 attributes, then "+" or "-"; rows with a missing value are left out."""
    table = complete(table_of(content, 16))
    X, names, coded = columns_of(table[:, :-1], _CREDIT, _CREDIT_NUMBERS)
    return {"X": X, "y": signs(table[:, -1], "+", "-"), "X_coded": coded, "feature_names": names}


@_set(
    "uci/ionosphere",
    uci(
        "ionosphere",
        52,
        "ionosphere",
        {"ionosphere.data": "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd"},
    ),
    "14b3789f7fba517e3763e29cb068f7d546ae3c3802cfa275f37d23d2a81b35b2",
)
def parse_ionosphere(content: bytes) -> Arrays:
    """ionosphere.data: 34 numbers, then "g" (good) or "b" (bad)."""
    table = table_of(content, 35)
    return {"X": table[:, :-1].astype(float), "y": signs(table[:, -1], "g", "b")}


# Rows of bupa.data that its copy in KEEL, which the local folder follows, has at its end.
_LIVER_ROWS = 345
_LIVER_LAST = [4, 12, 22, 23, 24, 31, 37, 49, 84, 89, 92, 99, 114, 118, 125, 148, 149, 152, 156, 157, 159, 188, 194]
_LIVER_LAST += [207, 215, 226, 234, 251, 256, 276, 278, 281, 296, 319, 337]


@_set(
    "uci/liver_bupa",
    uci("liver-disorders", 60, "liver+disorders", {"bupa.data": None}),
    "500f107fb84763f1cbce079ed7d15b07055f319350e931d4e7f0bbc6ba439c73",
)
def parse_liver(content: bytes) -> Arrays:
    """bupa.data: six numbers, then the selector, 1 or 2; in the order of KEEL's copy."""
    table = table_of(content, 7)
    if len(table) != _LIVER_ROWS:
        raise ValueError(f"expected {_LIVER_ROWS} rows, got {len(table)}")
    table = np.concatenate([np.delete(table, _LIVER_LAST, axis=0), table[_LIVER_LAST]])
    return {"X": table[:, :-1].astype(np.float32), "y": signs(table[:, -1], "2", "1")}


@_set(
    "uci/sonar",
    uci(
        "undocumented/connectionist-bench/sonar",
        151,
        "connectionist+bench+sonar+mines+vs+rocks",
        {"sonar.all-data": "e90434cdbf00fcf93ffa911fe447ae25606979658e60f1d32e155c3b5240234d"},
    ),
    "a61833ce62b6ff8a9b7625d947fcf0b150585923c313989dfd0335115031477d",
)
def parse_sonar(content: bytes) -> Arrays:
    """sonar.all-data: 60 numbers, then "M" (mine) or "R" (rock)."""
    table = table_of(content, 61)
    return {"X": table[:, :-1].astype(float), "y": signs(table[:, -1], "M", "R")}


@_set(
    "uci/wbc",
    uci(
        "breast-cancer-wisconsin",
        15,
        "breast+cancer+wisconsin+original",
        {"breast-cancer-wisconsin.data": "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"},
    ),
    "26e6dffed81cafc405e9309e5345a631774a88ad2ea3280b6d5f49181c62811a",
)
def parse_wbc(content: bytes) -> Arrays:
    """breast-cancer-wisconsin.data: a number of the case, nine marks, then 2 (benign) or 4 (malignant).

    Rows with a missing value are left out.
    """
    table = complete(table_of(content, 11))
    return {"X": table[:, 1:-1].astype(np.uint8), "y": signs(table[:, -1], "4", "2")}


_ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country"
)
_ADULT_NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


@_set(
    "large/adult",
    uci(
        "adult",
        2,
        "adult",
        {
            "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
    ),
    "ba6cb14478d0520904075a685f04254d7be37bcf508b512d612163e1ea850e7f",
)
def parse_adult(train: bytes, test: bytes) -> Arrays:
    """adult.data and adult.test: 14 attributes, then "<=50K" or ">50K" (with a full stop in the second file).

    The missing value "?" is a level of its own.
    """
    names = _ADULT.split()
    parts = [table_of(content, 15) for content in (train, test)]
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
        "y": signs([label.rstrip(".") for label in table[:, -1].tolist()], ">50K", "<=50K"),
        "n_train": np.array(len(parts[0]), dtype=np.int64),
        "feature_names": np.array(names),
        "is_categorical": np.array([name not in _ADULT_NUMBERS for name in names]),
        **{key: narrow(value) for key, value in levels.items()},
    }


@_set(
    "large/letter",
    uci(
        "letter-recognition",
        59,
        "letter+recognition",
        {"letter-recognition.data": "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"},
    ),
    "2d44c24fa05178d47630270558845f68e20ad67c6d22bbecb67d51435e4e5de1",
)
def parse_letter(content: bytes) -> Arrays:
    """letter-recognition.data: the letter, then 16 numbers."""
    table = table_of(content, 17)
    letters = table[:, 0].tolist()
    if any(len(letter) != 1 or not "A" <= letter <= "Z" for letter in letters):
        raise ValueError("expected letters from A to Z in the first column")
    y = np.array([ord(letter) - ord("A") for letter in letters], dtype=np.uint8)
    return {"X": table[:, 1:].astype(np.uint8), "y": y}


@_set(
    "large/mnist",
    (
        (
            File(
                "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
                "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
            ),
        ),
    ),
    "0c8aa2fd0fbf6fa562894ce009a8622c15d3587e74b2bbac041bd6a30a3a0778",
)
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
