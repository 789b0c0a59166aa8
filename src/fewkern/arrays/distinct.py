"""Which samples are equal, and whether all of them are."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array, asarray_like, is_sparse, to_numpy

__all__ = ["distinct_rows", "fingerprint"]


def distinct_rows(X: Array, like: Array) -> tuple[Array, Array]:
    """First row of every distinct sample, ascending, and for every sample the position of its own in that list.

    Both are integer arrays of the library of ``like``. Equal means equal in every bit, but for the sign of zero.
    """
    keys = _sparse_keys(X) if is_sparse(X) else _dense_keys(to_numpy(X))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return asarray_like(first[order].astype(np.int64), like), asarray_like(rank[inverse].astype(np.int64), like)


def fingerprint(*arrays: Array) -> str:
    """A checksum of arrays, dense or sparse: other values, other text."""
    digest = hashlib.sha256()
    for array in arrays:
        parts = (array.tocsr().data, array.tocsr().indices, array.tocsr().indptr) if is_sparse(array) else (array,)
        for part in parts:
            host = np.ascontiguousarray(to_numpy(part))
            digest.update(f"{host.shape} {host.dtype}".encode())
            digest.update(host.tobytes())
    return digest.hexdigest()


def _dense_keys(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # adding zero turns -0.0 into 0.0
    rows = np.ascontiguousarray(X + 0.0)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def _sparse_keys(X: Any) -> np.ndarray[Any, Any]:
    csr = X.tocsr().copy()
    csr.sum_duplicates()
    csr.eliminate_zeros()
    known: dict[tuple[bytes, bytes], int] = {}
    keys = np.empty(csr.shape[0], dtype=np.int64)
    for i, (start, stop) in enumerate(zip(csr.indptr[:-1], csr.indptr[1:])):
        key = (csr.indices[start:stop].tobytes(), csr.data[start:stop].tobytes())
        keys[i] = known.setdefault(key, len(known))
    return keys
