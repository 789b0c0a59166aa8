"""Where the benchmark sets come from, and the checksums of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.data import parsers
from experiments.data.parsers import Arrays

__all__ = ["CONTENT", "SOURCES", "File", "Source", "content_sha256"]


@dataclass(frozen=True)
class File:
    """One file to download."""

    url: str
    sha256: str | None = None
    """Where it is known."""
    members: tuple[str, ...] = ()
    """What to take out of it, if it is a zip archive."""


@dataclass(frozen=True)
class Source:
    """One or more sets that come together."""

    mirrors: tuple[tuple[File, ...], ...]
    """Mirrors, in order of preference."""
    parsers: dict[str, Callable[..., Arrays]]
    """From the contents of the files, in their order, to the arrays of each set, by ``kind/name``."""


def content_sha256(arrays: Arrays) -> str:
    """SHA-256 of the content of a set; how it is stored does not matter.

    For every array, in the order of their names: a line ``name type shape`` in ASCII, then the values: numbers in C
    order and little-endian, strings in UTF-8 with a line feed between them. The type is NumPy's short name, as
    ``<f8``, or ``text``; the shape is a Python tuple.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.kind == "U":
            kind, values = "text", "\n".join(array.ravel().tolist()).encode()
        else:
            little = array.dtype.newbyteorder("<")
            kind, values = little.str, array.astype(little).tobytes()
        digest.update(f"{name} {kind} {array.shape}\n".encode())
        digest.update(values)
    return digest.hexdigest()


def _uci(folder: str, number: int, archive: str, files: dict[str, str | None]) -> tuple[tuple[File, ...], ...]:
    """The two places where the UCI Machine Learning Repository keeps the files of a set: plain, and in one archive."""
    host = "https://archive.ics.uci.edu"
    plain = tuple(File(f"{host}/ml/machine-learning-databases/{folder}/{name}", sha) for name, sha in files.items())
    zipped = File(f"{host}/static/public/{number}/{archive}.zip", members=tuple(files))
    return plain, (zipped,)


def _cai(path: str) -> tuple[tuple[File, ...], ...]:
    """The page of Deng Cai."""
    return ((File(f"http://www.cad.zju.edu.cn/home/dengcai/Data/{path}"),),)


_IDA = "banana breast-cancer diabetis flare-solar german heart image ringnorm splice thyroid titanic twonorm waveform"

_ALL = [
    Source(
        (
            (
                File(
                    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat",
                    "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75",
                ),
            ),
        ),
        {f"ida/{name}": partial(parsers.parse_ida, name=name) for name in _IDA.split()},
    ),
    Source(_cai("ORL/ORL_32x32.mat"), {"faces/orl_32x32": parsers.parse_faces}),
    Source(_cai("Yale/Yale_32x32.mat"), {"faces/yale_32x32": parsers.parse_faces}),
    Source(
        _uci(
            "chess/king-rook-vs-king-pawn",
            22,
            "chess+king+rook+vs+king+pawn",
            {"kr-vs-kp.data": "70a5540902b4063d3977d3e820ac5b9fe5624eb5d93709eee5d50d7a94fca205"},
        ),
        {"uci/chess_krvskp": parsers.parse_chess},
    ),
    Source(
        _uci(
            "credit-screening",
            27,
            "credit+approval",
            {"crx.data": "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d"},
        ),
        {"uci/credit_crx": parsers.parse_credit},
    ),
    Source(
        _uci(
            "ionosphere",
            52,
            "ionosphere",
            {"ionosphere.data": "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd"},
        ),
        {"uci/ionosphere": parsers.parse_ionosphere},
    ),
    Source(
        _uci("liver-disorders", 60, "liver+disorders", {"bupa.data": None}),
        {"uci/liver_bupa": parsers.parse_liver},
    ),
    Source(
        _uci(
            "undocumented/connectionist-bench/sonar",
            151,
            "connectionist+bench+sonar+mines+vs+rocks",
            {"sonar.all-data": "e90434cdbf00fcf93ffa911fe447ae25606979658e60f1d32e155c3b5240234d"},
        ),
        {"uci/sonar": parsers.parse_sonar},
    ),
    Source(
        _uci(
            "breast-cancer-wisconsin",
            15,
            "breast+cancer+wisconsin+original",
            {"breast-cancer-wisconsin.data": "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"},
        ),
        {"uci/wbc": parsers.parse_wbc},
    ),
    Source(
        _uci(
            "adult",
            2,
            "adult",
            {
                "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            },
        ),
        {"large/adult": parsers.parse_adult},
    ),
    Source(
        _uci(
            "letter-recognition",
            59,
            "letter+recognition",
            {"letter-recognition.data": "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"},
        ),
        {"large/letter": parsers.parse_letter},
    ),
    Source(
        (
            (
                File(
                    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
                    "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
                ),
            ),
        ),
        {"large/mnist": parsers.parse_mnist},
    ),
]

SOURCES: dict[str, Source] = {need: source for source in _ALL for need in source.parsers}
"""By ``kind/name``."""

CONTENT: dict[str, str] = {
    "faces/orl_32x32": "9b5884f795b206d0ca5d9c157f991365fb44fb2065fd88e2c4364e128de2e09f",
    "faces/yale_32x32": "2f3a9a0fa7e1233ba2a89036b0968ae2e78a1e389ce042c407677d826f96156a",
    "uci/chess_krvskp": "b8de90c7907b4a0e289f8149aa58ff23fd450c8e488a6aeb59500de67dba78e5",
    "uci/credit_crx": "5eb6bd29fc1630227aeba8377d40b3f1d94313b351203f956e95c71f409c2793",
    "uci/ionosphere": "14b3789f7fba517e3763e29cb068f7d546ae3c3802cfa275f37d23d2a81b35b2",
    "uci/liver_bupa": "500f107fb84763f1cbce079ed7d15b07055f319350e931d4e7f0bbc6ba439c73",
    "uci/sonar": "a61833ce62b6ff8a9b7625d947fcf0b150585923c313989dfd0335115031477d",
    "uci/wbc": "26e6dffed81cafc405e9309e5345a631774a88ad2ea3280b6d5f49181c62811a",
    "large/adult": "ba6cb14478d0520904075a685f04254d7be37bcf508b512d612163e1ea850e7f",
    "large/letter": "2d44c24fa05178d47630270558845f68e20ad67c6d22bbecb67d51435e4e5de1",
    "large/mnist": "0c8aa2fd0fbf6fa562894ce009a8622c15d3587e74b2bbac041bd6a30a3a0778",
}
"""The content of each set. The IDA sets have none: their one file has its own checksum."""
