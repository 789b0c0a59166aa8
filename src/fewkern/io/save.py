"""Save and load fitted models: one ``.npz`` file, a JSON header and plain arrays.

Nothing is pickled. A file can only create objects of registered classes (:mod:`fewkern.arrays.storable`), and every
object is tried before it is returned: a model that was loaded can do everything that its class can.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fewkern._version import __version__
from fewkern.arrays.numerics import quiet
from fewkern.arrays.progress import printable
from fewkern.arrays.storable import stored_classes
from fewkern.arrays.validation import unwrapped
from fewkern.io.archive import Budget, FileLimitError, ModelFileError, pack, unpack
from fewkern.io.records import Reader, Writer
from fewkern.io.trial import FUNCTIONS, is_fitted, try_function


def save(model: Any, path: str | os.PathLike[str], *, with_sums: bool = False) -> Path:
    """Write a fitted model to ``path`` (``.npz`` is added if it has no suffix).

    The old file at ``path``, if there is one, is replaced only when the new one is complete, on the disk, and was
    read back without an error.

    Parameters
    ----------
    model : a fitted fewkern estimator
        Or a pipeline of scikit-learn with one in it: scalers, SimpleImputer, OneHotEncoder, OrdinalEncoder,
        ColumnTransformer and feature selection may come before, and a linear model after. Of a search over parameters
        (GridSearchCV) the best model is written. Or the ``expansion_`` of an estimator.
    path : str or path
    with_sums : bool, default False
        Also write the sums over the samples that ``fit`` of KernelClassifier and KernelRegressor keeps, so that
        ``partial_fit``, ``merge`` and ``forget`` work after ``load``: the square of the number of vectors, at least.
        Those of ``partial_fit`` are always written.

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
    if stored is None or stored.cls is not type(model) or not isinstance(model, (BaseEstimator, *FUNCTIONS)):
        raise TypeError(
            f"save: expected a fitted estimator of fewkern, a pipeline with one, or an expansion, got {name}."
        )
    if isinstance(model, BaseEstimator) and not is_fitted(model):
        raise NotFittedError(f"save: this {name} is not fitted; call fit first.")
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".npz")
    writer = Writer(with_sums)
    header = {"fewkern": __version__, "scikit-learn": sklearn.__version__, "model": writer.write(model, name)}
    if with_sums and "Sums" not in writer.classes:
        raise ValueError(
            f"save: this {name} has no sums over its samples, so with_sums=True cannot be done; KernelClassifier and "
            "KernelRegressor have them, unless they came from a file without. Leave with_sums out."
        )
    try:
        try:
            content = _read_back(pack(header, writer.arrays))
        except FileLimitError:  # compressed too well for what load accepts
            content = _read_back(pack(header, writer.arrays, compressed=False))
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
    that was loaded was also tried: it can do everything that its class can.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is damaged, was made by hand, or is of another program or another format. It is a ValueError.

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
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file {path}.")
    with path.open("rb") as handle:
        try:
            return _read(handle, os.fstat(handle.fileno()).st_size)
        except Exception as error:
            raise _refusal(path, error) from error


def _read_back(content: bytes) -> bytes:
    """The same bytes, after a check that they can be loaded."""
    _read(io.BytesIO(content), len(content))
    return content


def _read(handle: IO[bytes], file_bytes: int) -> Any:
    budget = Budget(file_bytes)
    header, arrays = unpack(handle, budget)
    with quiet():  # answers that are not finite are refused
        model = Reader(arrays, budget).read(header["model"])
        if isinstance(model, FUNCTIONS):
            try_function(model, budget)
            return model
    if not isinstance(model, BaseEstimator) or type(model).__name__ not in stored_classes():
        raise ModelFileError("it holds no model")
    if not is_fitted(model):
        raise ModelFileError(f"its {type(model).__name__} is not fitted")
    return model


def _refusal(path: Path, error: Exception) -> ModelFileError:
    """One error for every failure: zip, zlib, NumPy, JSON and inconsistent models raise exceptions of their own."""
    reason = str(error) if isinstance(error, ValueError) and str(error) else repr(error)
    reason = printable(reason[:200]).rstrip(".")  # what a file says may be of any length
    return ModelFileError(
        f"load: {printable(path.name)} is not an intact fewkern model file: {reason}. Fit the model again, or find an "
        "intact copy."
    )


def write_atomically(path: str | os.PathLike[str], write: Callable[..., object]) -> None:
    """Call ``write(handle)`` on a temporary file beside ``path``, then put it in place of ``path``.

    The content is on the disk before it takes the place of the old file. If anything fails, the old file stays as it
    was, and the temporary one is removed (after a kill it stays behind, named ``.fewkern-*.part``). Several writers do
    not disturb each other; the last one to finish wins. A link stays a link, and its target is replaced; a
    device or a pipe is written to directly. An existing file keeps its permissions.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            write(file)
        return
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path.name}: the folder {path.parent} does not exist; make it first.")
    part = path.with_name(f".fewkern-{secrets.token_hex(8)}.part")
    try:
        # 0o666 less the umask: the permissions of any new file
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except PermissionError as error:
        raise PermissionError(
            f"cannot write {path.name}: you may not make files in the folder {path.parent}; choose another one."
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            if path.exists() and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, where the system can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        pass  # some network file systems cannot; the file itself is safe
    finally:
        os.close(handle)
