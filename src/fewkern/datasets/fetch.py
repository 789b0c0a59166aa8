"""Benchmark sets: from a local folder that FEWKERN_DATA names, or downloaded once from their public source.

A folder has one ``.npz`` per set: ``ida/banana.npz``, ``faces/yale_32x32.npz``, ``uci/sonar.npz``, ``large/adult.npz``,
with arrays ``X``, ``y`` and, for the IDA sets, ``train_idx``, ``test_idx`` and ``split_no``.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

__all__ = ["DataNotFoundError", "data_file", "fetch_faces", "fetch_ida", "fetch_large", "fetch_uci"]

# kind -> the names of its sets, and how to get them where the folder has none
_SETS: dict[str, tuple[tuple[str, ...], str]] = {
    "ida": (
        (
            "banana",
            "breast-cancer",
            "diabetis",
            "flare-solar",
            "german",
            "heart",
            "image",
            "ringnorm",
            "splice",
            "thyroid",
            "titanic",
            "twonorm",
            "waveform",
        ),
        "install pooch (pip install 'fewkern[data]') to download it, or",
    ),
    "faces": (
        ("orl_32x32", "yale_32x32"),
        "the 32 x 32 versions of the ORL and Yale faces are not distributed freely;",
    ),
    "uci": (
        ("chess_krvskp", "credit_crx", "ionosphere", "liver_bupa", "sonar", "wbc", "wdbc"),
        "get it from the UCI Machine Learning Repository, and",
    ),
    "large": (
        ("adult", "letter", "mnist"),
        "get it from the UCI Machine Learning Repository (MNIST: from its authors), and",
    ),
}
_IDA_SOURCE = "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat"
_IDA_SHA256 = "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"


class DataNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


def data_file(need: str) -> Path | None:
    """The local file of a set named ``kind/name``, or None."""
    folder = os.environ.get("FEWKERN_DATA")
    path = Path(folder, f"{need}.npz") if folder else None
    return path if path is not None and path.is_file() else None


def _read(kind: str, name: str) -> dict[str, Any]:
    known, how = _SETS[kind]
    if name not in known:
        raise ValueError(f"fetch_{kind}: expected one of {list(known)}, got {name!r}.")
    path = data_file(f"{kind}/{name}")
    if path is None:
        raise DataNotFoundError(
            f"fetch_{kind}: {name} is not on this machine: {how} put {kind}/{name}.npz in a folder and name that "
            "folder in the environment variable FEWKERN_DATA."
        )
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def fetch_ida(name: str) -> Bunch:
    """One set of the IDA benchmark with its splits.

    From the folder FEWKERN_DATA, else (with pooch installed) downloaded once, checked by its SHA-256 and kept in the
    user's cache.

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1), ``train_idx`` and ``test_idx`` (a row per split), ``split_no`` (number of the original
        split; zero or less for others).
    """
    if name in _SETS["ida"][0] and data_file(f"ida/{name}") is None:
        try:
            archive = _download_ida()
        except ImportError:
            archive = None
        if archive is not None:
            return _from_archive(archive, name)
    z = _read("ida", name)
    return Bunch(
        X=z["X"].astype(float),
        y=z["y"].astype(int),
        train_idx=z["train_idx"].astype(int),
        test_idx=z["test_idx"].astype(int),
        split_no=z["split_no"],
    )


@cache
def _download_ida() -> dict[str, Any] | None:
    """All sets as MATLAB structures; None where they cannot be downloaded."""
    import pooch
    from scipy.io import loadmat

    try:
        path = pooch.retrieve(_IDA_SOURCE, known_hash=f"sha256:{_IDA_SHA256}", progressbar=False)
    except (OSError, ValueError):  # no network, or not the file we know
        return None
    return dict(loadmat(path))


def _from_archive(archive: dict[str, Any], name: str) -> Bunch:
    # Breast-cancer is breast_cancer there, and MATLAB counts from one.
    z = archive[name.replace("-", "_")][0, 0]
    train, test = z["train"].astype(int) - 1, z["test"].astype(int) - 1
    return Bunch(
        X=z["x"].astype(float),
        y=z["t"].ravel().astype(int),
        train_idx=train,
        test_idx=test,
        split_no=np.arange(1, len(train) + 1),
    )


def fetch_faces(name: str) -> Bunch:
    """ "orl_32x32" or "yale_32x32": ``X`` (one image of raw grey values per row), ``y`` (person)."""
    z = _read("faces", name)
    return Bunch(X=z["X"].astype(float), y=z["y"].astype(int))


def fetch_uci(name: str) -> Bunch:
    """A small two-class set: ``X``, ``y`` (-1, +1). "wdbc" is scikit-learn's own copy where there is no file."""
    if name == "wdbc" and data_file("uci/wdbc") is None:
        from sklearn.datasets import load_breast_cancer

        bundled = load_breast_cancer()
        return Bunch(X=bundled.data, y=np.where(bundled.target == 0, 1, -1))
    z = _read("uci", name)
    return Bunch(X=z["X"].astype(float), y=z["y"].astype(int))


def fetch_large(name: str) -> Bunch:
    """One of "adult", "letter", "mnist": ``X``, ``y``, and the further arrays of the file."""
    z = _read("large", name)
    return Bunch(**{**z, "y": z["y"].astype(int)})
