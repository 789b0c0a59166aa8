"""Benchmark sets read from a local folder, which the environment variable FEWKERN_DATA names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

__all__ = ["DataNotFoundError", "data_folder", "fetch_ida", "fetch_large"]

_IDA = (
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
)
_LARGE = ("adult", "letter", "mnist")


class DataNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


def data_folder() -> Path:
    """The folder named by FEWKERN_DATA."""
    folder = os.environ.get("FEWKERN_DATA")
    if not folder:
        raise DataNotFoundError(
            "The benchmark sets are not part of fewkern: put them in a folder (ida/, faces/, uci/, large/ with one "
            ".npz per set) and name it in the environment variable FEWKERN_DATA."
        )
    return Path(folder)


def _read(kind: str, name: str, known: tuple[str, ...]) -> dict[str, Any]:
    if name not in known:
        raise ValueError(f"fetch_{kind}: expected one of {list(known)}, got {name!r}.")
    path = data_folder() / kind / f"{name}.npz"
    if not path.is_file():
        raise DataNotFoundError(f"fetch_{kind}: {path.name} is not in the folder {kind}/ under FEWKERN_DATA.")
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def fetch_ida(name: str) -> Bunch:
    """One IDA benchmark set with its splits: ``X``, ``y`` (-1, +1), ``train_idx``, ``test_idx``, ``split_no``."""
    z = _read("ida", name, _IDA)
    return Bunch(
        X=z["X"].astype(float),
        y=z["y"].astype(int),
        train_idx=z["train_idx"].astype(int),
        test_idx=z["test_idx"].astype(int),
        split_no=z["split_no"],
    )


def fetch_large(name: str) -> Bunch:
    """One of adult, letter, mnist: ``X``, ``y``, and the further keys of the file."""
    z = _read("large", name, _LARGE)
    return Bunch(**{**z, "X": z["X"], "y": z["y"].astype(int)})
