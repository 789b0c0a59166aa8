"""Benchmark sets: from a local folder that FEWKERN_DATA names, else downloaded once from their public source.

A folder has one ``.npz`` per set: ``ida/banana.npz``, ``faces/yale_32x32.npz``, ``uci/sonar.npz``, ``large/adult.npz``,
with arrays ``X``, ``y`` and, for the IDA sets, ``train_idx``, ``test_idx`` and ``split_no``. Downloads need pooch; a
downloaded set is checked, and kept in the user's cache folder in the same layout.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from experiments.data.download import DownloadError, cached_file, download_set
from experiments.data.formats import Arrays
from experiments.data.sets import SOURCES

__all__ = ["DataNotFoundError", "data_file", "fetch_faces", "fetch_ida", "fetch_large", "fetch_set", "fetch_uci"]

# scikit-learn has the same data
_BUNDLED = "uci/wdbc"


class DataNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


def data_file(need: str) -> Path | None:
    """The file of a set named ``kind/name`` on this machine, or None.

    In the folder FEWKERN_DATA, else among the sets that were downloaded before, else in scikit-learn.
    """
    folder = os.environ.get("FEWKERN_DATA")
    path = Path(folder, f"{need}.npz") if folder else None
    if path is not None and path.is_file():
        return path
    if need == _BUNDLED:
        return Path(str(resources.files("sklearn.datasets.data") / "breast_cancer.csv"))
    return cached_file(need)


def _read(kind: str, name: str) -> Arrays:
    need = f"{kind}/{name}"
    known = sorted(n.partition("/")[2] for n in (*SOURCES, _BUNDLED) if n.startswith(f"{kind}/"))
    if name not in known:
        raise ValueError(f"fetch_{kind}: expected one of {known}, got {name!r}.")
    path = data_file(need)
    if path is None:
        try:
            return download_set(need)
        except DownloadError as error:
            raise DataNotFoundError(
                f"fetch_{kind}: {name} is not on this machine: {error}, or put {need}.npz in a folder and name that "
                f"folder in the environment variable FEWKERN_DATA ({_folder_now(need)})."
            ) from None
    return _wdbc() if path.suffix == ".csv" else _load(path, f"fetch_{kind}")


def _folder_now(need: str) -> str:
    """What the variable says now, for a message."""
    folder = os.environ.get("FEWKERN_DATA")
    if not folder:
        return "it is not set"
    if not Path(folder).is_dir():
        return f"it is now {folder}, which is not a folder"
    return f"it is now {folder}, which has no file {need}.npz"


def _load(path: Path, who: str) -> Arrays:
    try:
        # opened here: np.load leaves a damaged file open
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except Exception as error:  # zip, zlib and numpy have their own exceptions for damaged bytes
        raise DataNotFoundError(
            f"{who}: expected arrays in {path}, got a file that is damaged or of another kind "
            f"({type(error).__name__}); delete it to have it downloaded, or find an intact copy."
        ) from None
    needed = ["X", "y", "train_idx", "test_idx", "split_no"] if who == "fetch_ida" else ["X", "y"]
    absent = [key for key in needed if key not in arrays]
    if absent or len(arrays["X"]) != len(arrays["y"]) or arrays["X"].dtype.kind not in "biuf":
        came = ", ".join(f"{key} {array.dtype} {array.shape}" for key, array in arrays.items())
        raise DataNotFoundError(
            f"{who}: expected numbers X, as many y, and the arrays {needed} in {path}, got {came or 'none'}; delete it "
            "to have it downloaded, or find an intact copy."
        )
    return arrays


def _wdbc() -> Arrays:
    from sklearn.datasets import load_breast_cancer

    bundled = load_breast_cancer()
    return {"X": bundled.data, "y": np.where(bundled.target == 0, 1, -1)}


def fetch_ida(name: str) -> Bunch:
    """One set of the IDA benchmark with its splits.

    From the folder FEWKERN_DATA, else (with pooch installed) downloaded once with all the others, checked by the
    SHA-256 of their file and kept in the user's cache.

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1), ``train_idx`` and ``test_idx`` (a row per split), ``split_no`` (number of the original
        split; zero or less for others).
    """
    z = _read("ida", name)
    return Bunch(
        X=z["X"].astype(float),
        y=z["y"].astype(int),
        train_idx=z["train_idx"].astype(int),
        test_idx=z["test_idx"].astype(int),
        split_no=z["split_no"],
    )


def fetch_faces(name: str) -> Bunch:
    """Faces of 32 x 32 grey values: "orl_32x32" (40 people) or "yale_32x32" (15 people).

    From the folder FEWKERN_DATA, else (with pooch installed) downloaded once from the page of Deng Cai, who cropped
    the images, checked by the SHA-256 of their content and kept in the user's cache. The ORL faces are free for
    research with acknowledgement of AT&T Laboratories Cambridge, the Yale faces for non-commercial research: neither
    may be passed on without their terms.

    Returns
    -------
    Bunch
        ``X`` (one image of raw grey values per row; ``X[i].reshape(32, 32)`` is upright), ``y`` (person).
    """
    z = _read("faces", name)
    return Bunch(X=z["X"].astype(float), y=z["y"].astype(int))


def fetch_uci(name: str) -> Bunch:
    """A small two-class set of the UCI Machine Learning Repository.

    From the folder FEWKERN_DATA, else (with pooch installed) downloaded once, checked by the SHA-256 of its content
    and kept in the user's cache. "wdbc" is scikit-learn's own copy where the folder has none. Rows with missing
    values are left out; categories are 0/1 columns.

    Returns
    -------
    Bunch
        ``X``, ``y`` (-1, +1).
    """
    z = _read("uci", name)
    return Bunch(X=z["X"].astype(float), y=z["y"].astype(int))


def fetch_large(name: str) -> Bunch:
    """One of "adult", "letter" (UCI Machine Learning Repository) and "mnist" (the copy that Keras uses).

    From the folder FEWKERN_DATA, else (with pooch installed) downloaded once, checked by the SHA-256 of its content
    and kept in the user's cache.

    Returns
    -------
    Bunch
        ``X``, ``y``, and the further arrays of the set: ``n_train`` of "adult" and "mnist" (the rows before it are
        customary for training; of "letter" they are the first 16,000), and for "adult" what its categories mean.
    """
    z = _read("large", name)
    return Bunch(**{**z, "y": z["y"].astype(int)})


def fetch_set(need: str) -> Bunch:
    """The set named ``kind/name``, as ``"ida/banana"``."""
    kind, _, name = need.partition("/")
    fetchers = {"ida": fetch_ida, "faces": fetch_faces, "uci": fetch_uci, "large": fetch_large}
    if kind not in fetchers:
        raise ValueError(f"fetch_set: expected kind/name with a kind of {sorted(fetchers)}, got {need!r}.")
    return fetchers[kind](name)
