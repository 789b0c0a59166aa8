"""Save and load fitted models: one ``.npz`` file, a JSON header and plain arrays.

Nothing is pickled. A file can only create objects of registered classes (:mod:`fewkern.arrays.storable`), and every
object is checked before it is handed out, so a file that loads also predicts.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fewkern._version import __version__
from fewkern.arrays.storable import stored_classes
from fewkern.arrays.wrapped import unwrapped
from fewkern.io.archive import ModelFileError, pack, unpack
from fewkern.io.files import write_atomically
from fewkern.io.legacy import upgrade
from fewkern.io.records import Writer, build, parse
from fewkern.io.trial import is_fitted

__all__ = ["ModelFileError", "load", "read_header", "save", "write_atomically"]


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to ``path`` (``.npz`` is added if it has no suffix).

    The old file at ``path``, if there is one, is replaced only when the new one is complete, on the disk, and was
    read back without an error.

    Parameters
    ----------
    model : a fitted fewkern estimator
        Or a pipeline of scikit-learn with one in it: scalers, SimpleImputer, OneHotEncoder, OrdinalEncoder,
        ColumnTransformer and feature selection may come before, and a linear model after. Of a search over parameters
        (GridSearchCV) the best model is written.
    path : str or path

    Returns
    -------
    Path
        Where the file is.

    Notes
    -----
    The steps of scikit-learn are written by what they learned, and made again by the scikit-learn that loads the file.
    A feature selection comes back as a ColumnTransformer that keeps the same columns. ``n_jobs`` and ``verbose`` of
    such steps are not written.

    Examples
    --------
    >>> import tempfile, os
    >>> from fewkern import KernelClassifier, load, save
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(200)
    >>> model = KernelClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, os.path.join(folder, "banana")))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    model = unwrapped(model, "save")
    name = type(model).__name__
    stored = stored_classes().get(name)
    if stored is None or stored.cls is not type(model):
        raise TypeError(f"save: expected a fitted estimator of fewkern, or a pipeline with one, got {name}.")
    if isinstance(model, BaseEstimator) and not is_fitted(model):
        raise NotFittedError(f"save: this {name} is not fitted; call fit first.")
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".npz")
    writer = Writer()
    header = {"fewkern": __version__, "scikit-learn": sklearn.__version__, "model": writer.write(model, name)}
    content = pack(header, writer.arrays)
    try:
        _read(io.BytesIO(content), len(content))
    except Exception as error:
        raise ValueError(
            f"save: this {name} could not be read back, so nothing was written ({error}); does it predict finite "
            "values at its own vectors_?"
        ) from error
    write_atomically(path, lambda handle: handle.write(content))
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote. Its arrays are NumPy's, whatever they were when it was saved.

    Loading runs no code from the file, and takes at most 64 MiB of memory plus 100 times the size of the file. A model
    that was loaded was also tried: it predicts. Files of all earlier formats can be read.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is damaged, was made by hand, or is of another program or of a newer fewkern. It is a ValueError.

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
    path = _existing(path)
    with path.open("rb") as handle:
        try:
            return _read(handle, os.fstat(handle.fileno()).st_size)
        except Exception as error:
            raise _refusal(path, error) from error


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON header of a model file."""
    path = _existing(path)
    with path.open("rb") as handle:
        try:
            return unpack(handle, os.fstat(handle.fileno()).st_size)[0]
        except Exception as error:
            raise _refusal(path, error) from error


def _read(handle: Any, size: int) -> Any:
    header, arrays = unpack(handle, size)
    model = build(upgrade(parse(header["model"], arrays), header["format_version"]))
    if type(model).__name__ not in stored_classes():
        raise ModelFileError("it holds no model")
    if isinstance(model, BaseEstimator) and not is_fitted(model):
        raise ModelFileError(f"its {type(model).__name__} is not fitted")
    return model


def _existing(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file {path}.")
    return path


def _refusal(path: Path, error: Exception) -> ModelFileError:
    """What to tell of any error: zip, zlib, NumPy, JSON and a model in disorder all have exceptions of their own."""
    reason = str(error) if isinstance(error, ValueError) and str(error) else repr(error)
    reason = reason[:200].rstrip(".")
    return ModelFileError(
        f"load: {path.name} is not an intact fewkern model file: {reason}. Fit the model again, or find an intact copy."
    )
