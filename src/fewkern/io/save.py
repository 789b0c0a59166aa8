"""Save and load fitted models: one ``.npz`` file, a JSON header and plain arrays.

Nothing is pickled. Loading builds objects only from the classes listed in :func:`_known`, so a file cannot run code.
Writing goes to a temporary file in the same folder, which then takes the place of the old one: a crash leaves either
the old file or the new one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from fewkern._version import __version__
from fewkern.backend.namespace import is_foreign, is_sparse, to_numpy
from fewkern.base import ScoringClassifier

__all__ = ["load", "read_header", "save", "write_atomically"]

_FORMAT = "fewkern model"
_FORMAT_VERSION = 1
_HEADER = "header"


@cache
def _known() -> dict[str, type]:
    """Classes that may appear in a file, by name."""
    import fewkern
    from fewkern import kernels
    from fewkern.core import trace
    from fewkern.core.scores import ClassScores
    from fewkern.fisher.base import FisherTrace
    from fewkern.fisher.targets import Link
    from fewkern.margins import graphs as weights
    from fewkern.margins.recursion import MarginBlock
    from fewkern.margins.rules import GraphRule
    from fewkern.margins.soft import SoftMarginStep
    from fewkern.table import TableEncoder, TableModel
    from fewkern.vectors.search import Trace

    values: list[type] = [fewkern.KernelBasis, fewkern.KernelExpansion, fewkern.KernelMixture, TableEncoder, TableModel]
    values += [ClassScores, FisherTrace, Link, Trace]
    values += [GraphRule, MarginBlock, SoftMarginStep]
    values += [getattr(weights, name) for name in weights.__all__ if name != "Weights"]
    values += [getattr(kernels, name) for name in kernels.__all__ if isinstance(getattr(kernels, name), type)]
    for name in fewkern.__all__:
        value = getattr(fewkern, name)
        if isinstance(value, type) and issubclass(value, BaseEstimator):
            values.append(value)
    return {value.__name__: value for value in values} | {"core.Trace": trace.Trace}


@cache
def _names() -> dict[type, str]:
    """The name of every class that may appear in a file."""
    return {value: name for name, value in _known().items()}


# Records of the steps of a density that older files have in their ``trace_``: nothing reads them any more.
_RETIRED = ("ConstrainedStep", "IntegratedStep", "LikelihoodStep", "RegressionStep", "RoundMixture", "WidthSearch")


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to ``path`` (``.npz`` is added if it has no suffix).

    Parameters
    ----------
    model : a fitted fewkern estimator
    path : str or path

    Returns
    -------
    Path
        Where the file is.

    Examples
    --------
    >>> import tempfile, os
    >>> from fewkern import FeatureVectorClassifier, load, save
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(200)
    >>> model = FeatureVectorClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, os.path.join(folder, "banana")))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    if type(model).__name__ not in _known():
        raise TypeError(f"save: expected a fewkern model, got {type(model).__name__}.")
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".npz")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    encoded = _encode(model, arrays, type(model).__name__)
    header = {"format": _FORMAT, "format_version": _FORMAT_VERSION, "fewkern": __version__, "model": encoded}
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

    def write(handle: Any) -> None:
        content: dict[str, Any] = {_HEADER: text, **arrays}
        np.savez_compressed(handle, **content)

    write_atomically(path, write)
    return path


def write_atomically(path: str | os.PathLike[str], write: Any) -> None:
    """Call ``write(handle)`` on a temporary file beside ``path``, then put it in place of ``path``.

    A link stays one, and what it points to is replaced; a device or a pipe is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            write(file)
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path.name}: the folder {path.parent} does not exist; make it first.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        # mkstemp makes files private; give this one the permissions any new file would have
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote. Its arrays are NumPy's, whatever they were when it was saved.

    Examples
    --------
    >>> import tempfile, os
    >>> from fewkern import FeatureVectorSelector, load, save
    >>> from fewkern.datasets import make_banana
    >>> model = FeatureVectorSelector(max_vectors=5).fit(make_banana(50)[0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(model, os.path.join(folder, "vectors"))).n_vectors_
    5
    """
    path = Path(path)
    header, arrays = _read(path)
    try:
        return _decode(header["model"], arrays)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(
            f"load: {path.name} is damaged, or was written by another version ({header.get('fewkern')}; this is "
            f"{__version__}): {error!r}."
        ) from error


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON header of a model file."""
    return _read(Path(path))[0]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file {path}.")
    try:
        # opened here: np.load leaves a damaged file open
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        header = json.loads(arrays.pop(_HEADER).tobytes().decode())
        if header["format"] != _FORMAT:
            raise KeyError("format")
        newer = header["format_version"] > _FORMAT_VERSION
    except Exception as error:  # zip, zlib, numpy and json have exceptions of their own for damaged bytes
        raise ValueError(
            f"load: {path.name} is not a whole fewkern model file (damaged, cut short, or of another program); "
            "fit the model again, or find an intact copy."
        ) from error
    if newer:
        raise ValueError(
            f"load: {path.name} was written by fewkern {header.get('fewkern')}, in a newer file format; update fewkern."
        )
    return header, arrays


def _encode(value: Any, arrays: dict[str, np.ndarray[Any, Any]], where: str) -> Any:
    """``value`` as JSON; arrays go to ``arrays`` and are named in their place."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if is_sparse(value):
        csr = sp.csr_array(value)
        parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
        return {"sparse": {k: _encode(v, arrays, where) for k, v in parts.items()}, "shape": list(csr.shape)}
    if is_foreign(value) or isinstance(value, np.ndarray):
        array = to_numpy(value)
        if array.dtype == object:
            if not all(isinstance(item, str) for item in array.ravel()):
                raise TypeError(f"save: {where} holds Python objects; only numbers and strings can be saved.")
            return {"strings": array.tolist()}
        name = f"a{len(arrays)}"
        arrays[name] = array
        return {"array": name}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, arrays, where), _encode(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]}
    if type(value) not in _names():
        raise TypeError(
            f"save: {where} is a {type(value).__name__}, which cannot be saved: a function of your own as kernel, or a "
            "generator as random_state, exists only in your program; use a kernel of fewkern and a number."
        )
    if dataclasses.is_dataclass(value):
        state = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        # what warm_start keeps is no part of the model
        state = {k: v for k, v in vars(value).items() if k not in ("_selection", "_gram", "_gram_key")}
    return {"object": _names()[type(value)], "state": {k: _encode(v, arrays, f"{where}.{k}") for k, v in state.items()}}


def _decode(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "sparse" in value:
        parts = {k: _decode(v, arrays) for k, v in value["sparse"].items()}
        return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(value["shape"]))
    if "strings" in value:
        return np.array(value["strings"], dtype=object)
    if "list" in value:
        return [_decode(v, arrays) for v in value["list"]]
    if "tuple" in value:
        return tuple(_decode(v, arrays) for v in value["tuple"])
    if "dict" in value:
        return {_decode(k, arrays): _decode(v, arrays) for k, v in value["dict"]}
    if value["object"] in _RETIRED:
        return None
    cls = _known()[value["object"]]
    state = {k: _decode(v, arrays) for k, v in value["state"].items()}
    if dataclasses.is_dataclass(cls):
        return cls(**state)
    made: Any = object.__new__(cls)
    made.__dict__.update(state)
    if isinstance(made, ScoringClassifier) and "class_scores_" not in state and hasattr(made, "_class_scores"):
        made.class_scores_ = made._class_scores()  # older files do not have it
    return made
