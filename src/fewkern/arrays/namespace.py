"""Which array library an array belongs to, and moves between them.

The rest of fewkern calls :func:`namespace` and then only names of the Array API standard, so the same code
runs on NumPy, torch and array-api-strict. SciPy sparse matrices travel along as samples: they are
never densified as a whole, and whatever is computed from them is a NumPy array.

These functions are called thousands of times in a fit, so each answers first for a plain NumPy array.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias, TypeVar

import array_api_compat
import array_api_compat.numpy as compatible_numpy
import numpy as np
import scipy.sparse as sp

# An array of any library. The standard defines no static type for one.
Array: TypeAlias = Any
Namespace: TypeAlias = Any
Value = TypeVar("Value")

# NumPy itself follows the standard from 2.1 on; each call through the wrappers would take a few microseconds more.
numpy_namespace = np if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else compatible_numpy


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a SciPy sparse matrix or array."""
    return type(x) is not np.ndarray and bool(sp.issparse(x))


def namespace(*arrays: Any) -> Namespace:
    """Array API namespace shared by ``arrays`` (``None``, sparse matrices and plain numbers are ignored)."""
    for a in arrays:
        if type(a) is not np.ndarray:
            break
    else:
        return numpy_namespace
    dense = [a for a in arrays if array_api_compat.is_array_api_obj(a) and not is_sparse(a)]
    found = array_api_compat.array_namespace(*dense) if dense else compatible_numpy
    return numpy_namespace if found is compatible_numpy else found


def is_foreign(x: Any) -> bool:
    """Whether ``x`` is an array of a library other than NumPy."""
    return (
        type(x) is not np.ndarray
        and array_api_compat.is_array_api_obj(x)
        and not is_sparse(x)
        and not array_api_compat.is_numpy_array(x)
        and not array_api_compat.is_dask_array(x)
    )


def device(x: Array) -> Any:
    """Device of ``x``; ``None`` (the default device) for a sparse matrix."""
    if type(x) is np.ndarray:
        return "cpu"
    return None if is_sparse(x) else array_api_compat.device(x)


def on_host(x: Array) -> bool:
    """Whether the numbers of ``x`` are in the memory of the processor."""
    if type(x) is np.ndarray or is_sparse(x):
        return True
    # a torch device has a type; of the other libraries only cupy keeps its arrays elsewhere
    return getattr(device(x), "type", "cpu") == "cpu" and not array_api_compat.is_cupy_array(x)


def float_dtype(x: Array) -> Any:
    """Dtype to compute with: float32 stays float32, all else becomes float64."""
    xp = namespace(x)
    return xp.float32 if x.dtype == xp.float32 else xp.float64


def eps(x: Array) -> float:
    """Unit round-off of the dtype of ``x``."""
    return float(namespace(x).finfo(x.dtype).eps)


def asarray_like(values: Any, like: Array, dtype: Any = None) -> Array:
    """``values`` (numbers, or a NumPy array) as an array of the library and device of ``like``."""
    if type(like) is np.ndarray and type(values) is np.ndarray:
        return np.asarray(values, dtype=dtype)
    xp = namespace(like)
    if is_foreign(values) and array_api_compat.array_namespace(values) is xp:
        return xp.asarray(values, dtype=dtype, device=device(like))
    return xp.asarray(to_numpy(values), dtype=dtype, device=device(like))


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """``x`` as a NumPy array on the host."""
    if is_foreign(x):
        if array_api_compat.is_torch_array(x):
            return np.asarray(x.detach().cpu())
        if array_api_compat.is_cupy_array(x):
            return np.asarray(x.get())
        xp = array_api_compat.array_namespace(x)
        if array_api_compat.is_array_api_strict_namespace(xp):
            return np.asarray(xp.asarray(x, device=xp.Device("CPU_DEVICE")))
    return np.asarray(x)


def same_place(x: Array, like: Array) -> bool:
    """Whether both arrays are of one library and on one device."""
    return namespace(x) is namespace(like) and (is_sparse(like) or device(x) == device(like))


def move_fields(value: Value, like: Array) -> Value:
    """A dataclass with its arrays moved to the library and device of ``like``; everything else as it is."""
    moved = {}
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if array_api_compat.is_array_api_obj(item) and not is_sparse(item):
            moved[field.name] = asarray_like(item, like)
    return dataclasses.replace(value, **moved)  # type: ignore[type-var]


def take_rows(X: Array, rows: Array) -> Array:
    """``X[rows]`` for integer ``rows``, dense or sparse."""
    if is_sparse(X):
        return X[to_numpy(rows)]
    return namespace(X).take(X, rows, axis=0)


def put(A: Array, index: tuple[Array, ...], values: Array) -> None:
    """``A[index] = values`` for arrays of whole numbers, one per axis: the standard has no such assignment."""
    if type(A) is np.ndarray or array_api_compat.is_torch_array(A) or array_api_compat.is_cupy_array(A):
        A[index] = values
        return
    for k, place in enumerate(zip(*(to_numpy(i) for i in index))):
        A[tuple(int(i) for i in place)] = values[k]


def concat_rows(X: Array, Y: Array) -> Array:
    """The rows of ``X``, then those of ``Y``, dense or sparse."""
    if is_sparse(X):
        return sp.vstack([X, Y], format="csr")
    return namespace(X).concat([X, Y], axis=0)
