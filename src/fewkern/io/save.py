"""Save and load fitted models: one ``.npz`` file, a JSON header and plain arrays.

Nothing is pickled. A file can only create objects of registered classes (:mod:`fewkern.arrays.storable`), and every
object is tried before it is returned: a model that was loaded can do everything that its class can.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import os
from enum import Enum
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fewkern._version import __version__
from fewkern.arrays.namespace import is_foreign, is_sparse, to_numpy
from fewkern.arrays.numerics import quiet
from fewkern.arrays.progress import printable
from fewkern.arrays.storable import Stored, stored_classes
from fewkern.arrays.validation import unwrapped
from fewkern.io.archive import Arrays, Budget, FileLimitError, ModelFileError, pack, unpack, write_atomically
from fewkern.io.steps import CONTAINERS, SCALERS, STEPS, written
from fewkern.io.trial import FUNCTIONS, check_object, is_fitted, try_function

State: TypeAlias = dict[str, Any]

# Limits on nested objects, and on nested pipelines and column transformers; models stay below them. Every level of the
# second kind makes scikit-learn three times slower, because it asks each step three times for its tags.
_DEEPEST_OBJECT, _DEEPEST_CONTAINER = 16, 5
# scikit-learn makes Python objects of the entries of some arrays, a list and a set of them.
_BYTES_PER_ENTRY = 160
# The attribute with what a model has learned from, of those that are not part of it.
_SUMS = ("_fitted_to",)


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


class Writer:
    """Turns values into JSON and collects their arrays, each once."""

    def __init__(self, with_sums: bool = False) -> None:
        self.arrays: Arrays = {}
        self.classes: set[str] = set()
        self._also = _SUMS if with_sums else ()
        # by identity; the arrays are kept alive, so that no other one gets the same number
        self._seen: dict[int, tuple[Any, str]] = {}

    def write(self, value: Any, where: str) -> Any:
        """JSON for ``value``; ``where`` says in errors which part of the model it is."""
        if isinstance(value, Enum):
            return {"enum": self._name(value, where), "value": value.value}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if is_sparse(value):
            csr = sp.csr_array(value)
            parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
            return {"sparse": {k: self.write(v, where) for k, v in parts.items()}, "shape": list(csr.shape)}
        if is_foreign(value) or isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.write(v, f"{where}[{i}]") for i, v in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.write(k, where), self.write(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        name, state = written(value) or (self._name(value, where), _state(value, self._also))
        self.classes.add(name)
        return {"object": name, "state": {k: self.write(v, f"{where}.{k}") for k, v in state.items()}}

    def _name(self, value: Any, where: str) -> str:
        name = type(value).__name__
        stored = stored_classes().get(name)
        if stored is None or stored.cls is not type(value):
            raise TypeError(
                f"save: {where} is a {name}, which cannot be saved. A file may hold estimators and kernels of fewkern, "
                f"Pipeline, {', '.join([*(cls.__name__ for cls in SCALERS), *STEPS])}, feature selection, numbers and "
                "texts; a function of your own as kernel, or a generator as random_state, exists only in your program. "
                "Of a pipeline you can save the last step alone, and do the steps before it yourself."
            )
        return name

    def _array(self, value: Any, where: str) -> Any:
        if id(value) not in self._seen:
            array = to_numpy(value)
            if array.dtype == object:
                if array.ndim != 1 or not all(isinstance(item, str) for item in array):
                    raise TypeError(f"save: {where} holds Python objects; only numbers and strings can be saved.")
                return {"strings": [str(item) for item in array]}
            if array.dtype.kind not in "biufU":
                raise TypeError(f"save: {where} has the type {array.dtype}; only numbers and strings can be saved.")
            name = f"a{len(self.arrays)}"
            self.arrays[name] = array
            self._seen[id(value)] = (value, name)
        return {"array": self._seen[id(value)][1]}


def _state(value: Any, also: tuple[str, ...] = ()) -> State:
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    # callbacks follow a fit; the model does not need them
    transient = ("_skl_callbacks", *getattr(type(value), "_transient", ()))
    return {k: v for k, v in vars(value).items() if k not in transient or k in also}


class Reader:
    """Turns JSON and arrays into objects of registered classes, each checked against its class.

    Every use of an array is charged to the ``budget``, however often the same one is named.
    """

    def __init__(self, arrays: Arrays, budget: Budget) -> None:
        self._arrays, self._budget = arrays, budget
        self._objects, self._containers = 0, 0

    def read(self, node: Any) -> Any:
        """The value that a piece of JSON stands for."""
        match node:
            case str():
                self._budget.charge_text(node)
                return node
            case None | bool() | int() | float():
                return node
            case {"array": name}:
                self._budget.charge_array(self._arrays[name])
                return self._arrays[name]
            case {"list": items}:
                return [self.read(item) for item in items]
            case {"tuple": items}:
                return tuple(self.read(item) for item in items)
            case {"dict": pairs}:
                return {self.read(key): self.read(value) for key, value in pairs}
            case {"strings": items}:
                array = np.empty(len(items), dtype=object)
                array[:] = [self.read(str(item)) for item in items]
                return array
            case {"sparse": parts, "shape": shape}:
                return self._sparse({name: self.read(part) for name, part in parts.items()}, shape)
            case {"enum": name, "value": value}:
                return self.make(name, {"value": value})
            case {"object": name, "state": state}:
                return self._object(name, state)
        raise ValueError("an unknown entry in its header")

    def _sparse(self, parts: State, shape: Any) -> Any:
        self._budget.check_columns(shape[1], sparse=True)
        made = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(shape))
        # the compiled code of SciPy trusts its row and column numbers: a wrong one reads memory that is not its own
        made.check_format(full_check=True)
        return made

    def _object(self, name: Any, state: Any) -> Any:
        container = name in CONTAINERS
        self._objects += 1
        self._containers += container
        # on the way down, before there is an object that could be asked anything
        if self._objects > _DEEPEST_OBJECT or self._containers > _DEEPEST_CONTAINER:
            raise ValueError(
                f"it nests objects deeper than {_DEEPEST_OBJECT}, or pipelines deeper than {_DEEPEST_CONTAINER}"
            )
        fields = {key: self.read(value) for key, value in state.items()}
        self._objects -= 1
        self._containers -= container
        return self.make(name, fields)

    def make(self, name: str, state: State) -> Any:
        """An object of the class ``name`` with these fields."""
        made: Any
        if name in STEPS:
            cls, _, make = STEPS[name]
            self._budget.charge(_BYTES_PER_ENTRY * _n_entries(tuple(state.values())))
            made, stored = make(cls, state), Stored(cls, {})
        else:
            found = stored_classes().get(name)
            if found is None:
                raise ValueError(f"there is no class {name}")
            cls, stored = found.cls, found
            if issubclass(cls, Enum):
                made = cls(state["value"])
            elif dataclasses.is_dataclass(cls):
                made = cls(**state)
            else:
                # parameters first: one that the file does not know gets its default
                names = inspect.signature(cls).parameters
                made = cls(**{key: value for key, value in state.items() if key in names})
                made.__dict__.update(state)
        check_object(made, stored, self._budget)
        return made


def _n_entries(value: Any) -> int:
    """Number of entries of all arrays in tuples of arrays."""
    if isinstance(value, tuple):
        return sum(map(_n_entries, value))
    return value.size if isinstance(value, np.ndarray) else 0
