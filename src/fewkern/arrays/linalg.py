"""What the Array API standard lacks, or what NumPy does faster through SciPy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import array_api_compat
import array_api_extra
import numpy as np
import scipy.linalg

from fewkern.arrays.namespace import Array, device, is_sparse, namespace, on_host

# Right-hand sides per unknown above which an accelerator inverts the triangle and multiplies.
_MANY_SIDES_PER_UNKNOWN = 4


def _singular_errors() -> tuple[type[Exception], ...]:
    """What the array libraries raise for a singular or indefinite matrix, and for nothing else.

    torch's class is a RuntimeError like many others; catching all of those would hide that memory ran out.
    """
    torch = sys.modules.get("torch")
    return (np.linalg.LinAlgError,) if torch is None else (np.linalg.LinAlgError, torch.linalg.LinAlgError)


def product_transposed(X: Array, Y: Array) -> Array:
    """``X @ Y.T`` as a dense array, either factor dense or sparse."""
    if is_sparse(X) or is_sparse(Y):
        product = X @ Y.T
        return product.toarray() if is_sparse(product) else np.asarray(product)
    if X.dtype != Y.dtype:  # torch does not promote in a product
        xp = namespace(X, Y)
        dtype = xp.result_type(X, Y)
        X, Y = xp.astype(X, dtype), xp.astype(Y, dtype)
    return X @ Y.T


def weighted_gram(X: Array, weights: Array) -> Array:
    """``X' diag(weights) X`` as a dense NumPy array, ``X`` dense or sparse; no weight may be negative."""
    # with roots it is a matrix times its own transpose, which costs half of a general product
    root = np.sqrt(weights)[:, None]
    half = X.multiply(root).tocsr() if is_sparse(X) else root * X
    product = half.T @ half
    return np.asarray(product.toarray()) if is_sparse(product) else product


def sum_by_index(values: Array, index: Array, n: int) -> Array:
    """``out[k]`` is the sum of the ``values`` whose ``index`` is ``k``, for ``k`` below ``n``; NumPy only."""
    return np.bincount(index, weights=values, minlength=n)


def kth_smallest(values: Array, k: int) -> float:
    """The number at position ``k`` of a vector, from zero, when it is sorted; NumPy does not sort all of it."""
    if array_api_compat.is_numpy_array(values):
        return float(np.partition(values, k)[k])
    return float(namespace(values).sort(values)[k])


def squared_norms(X: Array) -> Array:
    """Squared Euclidean norm of every row."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    xp = namespace(X)
    return xp.sum(X * X, axis=1)


def neg_squared_distances(X: Array, Y: Array) -> Array:
    """Minus the squared Euclidean distances between the rows of ``X`` and those of ``Y``, never above zero.

    Dense rows are first shifted by the mean of ``Y``: far from the origin, expanding the square cancels all significant
    digits. The norms are part of one matrix product, which saves two passes over the result.
    """
    if is_sparse(X) or is_sparse(Y):
        D = 2.0 * product_transposed(X, Y)
        D -= squared_norms(X)[:, None]
        D -= squared_norms(Y)[None, :]
        return np.minimum(D, 0.0).astype(X.dtype, copy=False)
    shift = namespace(Y).mean(Y, axis=0)
    return HeldRows(X, shift)(slice(0, X.shape[0]), Y)


class HeldRows:
    """Dense rows, prepared for many calls of :func:`neg_squared_distances`.

    Parameters
    ----------
    X : array of shape (n, d)
    shift : array of shape (d,)
        A point among the rows, or near those that they will be compared with.
    """

    def __init__(self, X: Array, shift: Array) -> None:
        xp = namespace(X)
        X = X - shift
        minus_one = xp.full((X.shape[0], 1), -1.0, dtype=X.dtype, device=device(X))
        self.left = xp.concat([2.0 * X, -squared_norms(X)[:, None], minus_one], axis=1)
        self.shift = shift

    def __call__(self, rows: slice, Y: Array) -> Array:
        """Minus the squared distances between the held ``rows`` and those of ``Y``."""
        xp = namespace(Y)
        Y = Y - self.shift
        one = xp.ones((Y.shape[0], 1), dtype=Y.dtype, device=device(Y))
        D = self.left[rows, :] @ xp.concat([Y, one, squared_norms(Y)[:, None]], axis=1).T
        return xp.minimum(D, xp.zeros((), dtype=D.dtype, device=device(D)))


def subtract_product(C: Array, A: Array, B: Array) -> None:
    """``C -= A @ B.T``, in place; on torch without a copy of the product."""
    if array_api_compat.is_torch_array(C):
        C.addmm_(A, B.T, alpha=-1.0)
    else:
        C -= A @ B.T


def neg_squared_differences(X: Array, Y: Array) -> Array:
    """Like :func:`neg_squared_distances`, from differences: slower, but nothing cancels. Dense rows only."""
    return -_summed_gaps(X, Y, lambda gap: gap * gap)


def manhattan(X: Array, Y: Array) -> Array:
    """Sums of absolute differences between the rows of ``X`` and those of ``Y``."""
    if is_sparse(X) or is_sparse(Y) or array_api_compat.is_numpy_array(X):
        from sklearn.metrics.pairwise import manhattan_distances

        return manhattan_distances(X, Y).astype(X.dtype, copy=False)
    return _summed_gaps(X, Y, namespace(X).abs)


def _summed_gaps(X: Array, Y: Array, size: Callable[[Array], Array]) -> Array:
    """Sums over the features of the sizes of the differences between dense rows."""
    total = namespace(X, Y).zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for j in range(X.shape[1]):
        total += size(X[:, j][:, None] - Y[:, j][None, :])
    return total


def solve_triangular(A: Array, B: Array, *, lower: bool = True, transposed: bool = False) -> Array:
    """Solve ``A X = B`` (``A.T X = B`` if ``transposed``) for a triangular ``A``."""
    if type(A) is np.ndarray and A.dtype == B.dtype == np.float64 and A.shape[0]:
        # what SciPy calls, without its checks: in a search on a few hundred samples they take longer than the solution
        if not A.flags.f_contiguous:
            A, lower, transposed = A.T, not lower, not transposed
        X, info = scipy.linalg.lapack.dtrtrs(A, B, lower=lower, trans=transposed)
        if info == 0:
            return X
        raise np.linalg.LinAlgError(f"the triangular matrix is singular: its diagonal has a zero in row {info - 1}")
    if array_api_compat.is_numpy_array(A):
        return scipy.linalg.solve_triangular(A, B, lower=lower, trans="T" if transposed else "N", check_finite=False)
    if transposed:
        A, lower = A.T, not lower
    if array_api_compat.is_torch_array(A):
        xp = namespace(A)
        flat = B.ndim == 1
        if not flat and not on_host(A) and B.shape[1] > _MANY_SIDES_PER_UNKNOWN * A.shape[0]:
            # an accelerator solves slowly (26 s for a million sides), and multiplies fast
            identity = xp.eye(A.shape[0], dtype=A.dtype, device=device(A))
            return xp.linalg.solve_triangular(A, identity, upper=not lower) @ B
        X = xp.linalg.solve_triangular(A, B[:, None] if flat else B, upper=not lower)
        return X[:, 0] if flat else X
    return namespace(A).linalg.solve(A, B)


def solve_or_none(A: Array, b: Array) -> Array | None:
    """Solution of ``A x = b``, or ``None`` if ``A`` is singular to the working precision; NumPy only."""
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        return None
    residual = float(np.max(np.abs(A @ x - b))) if np.all(np.isfinite(x)) else math.inf
    return x if residual <= 1e-8 * max(float(np.max(np.abs(b))), 1e-300) else None


def cholesky_psd(A: Array) -> Array:
    """Lower Cholesky factor of a positive semi-definite ``A``, with the least jitter that makes it exist.

    For steps of an iteration whose criterion does not see the jitter. Where the factor is the solution, use
    :func:`jittered_cholesky` and hand the jitter on.
    """
    return jittered_cholesky(A)[0]


def jittered_cholesky(A: Array) -> tuple[Array, float]:
    """Lower Cholesky factor of a positive semi-definite ``A``, and what was added to its diagonal to make it exist.

    The jitter starts at zero and then grows tenfold from the unit round-off times the mean diagonal.
    """
    xp, n, jitter = namespace(A), A.shape[0], 0.0
    factor = _finite_cholesky(A)
    if factor is not None:
        return factor, jitter
    unit = float(xp.finfo(A.dtype).eps) * max(float(xp.linalg.trace(A)) / max(n, 1), 1e-300)
    identity = xp.eye(n, dtype=A.dtype, device=device(A))
    for _ in range(8):
        jitter = max(10 * jitter, n * unit)
        factor = _finite_cholesky(A + jitter * identity)
        if factor is not None:
            return factor, jitter
    raise ValueError("the matrix is not positive semi-definite, even with jitter on its diagonal.")


def _finite_cholesky(A: Array) -> Array | None:
    """Lower Cholesky factor, or None where there is none."""
    xp = namespace(A)
    try:
        factor = xp.linalg.cholesky(A)
    except _singular_errors():
        return None
    return factor if bool(xp.all(xp.isfinite(factor))) else None


def inverse_psd(A: Array) -> Array:
    """Inverse of a positive definite ``A``; with the least jitter of :func:`cholesky_psd` where it is singular."""
    if array_api_compat.is_numpy_array(A) and A.dtype == np.float64:
        factor, info = scipy.linalg.lapack.dpotrf(A, lower=1, clean=1)
        if info == 0:
            lower, info = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
            if info == 0 and math.isfinite(lower.sum()):
                inverse = lower + lower.T
                inverse.ravel(order="K")[:: A.shape[0] + 1] *= 0.5  # exact
                return inverse
    xp = namespace(A)
    factor = cholesky_psd(A)
    half = solve_triangular(factor, xp.eye(A.shape[0], dtype=A.dtype, device=device(A)))
    return half.T @ half


def solve_or_least_squares(A: Array, b: Array) -> Array:
    """Solve ``A x = b``; the shortest least-squares solution where ``A`` is singular to rounding; NumPy only."""
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(A) @ b
    size = float(np.max(np.abs(A))) * float(np.max(np.abs(x))) + float(np.max(np.abs(b)))
    # false where x is NaN
    accurate = float(np.max(np.abs(A @ x - b))) <= 1e4 * float(np.finfo(A.dtype).eps) * size < math.inf
    return x if accurate else np.linalg.pinv(A) @ b


def solve_shifted(A: Array, B: Array, shift: float = 0.0) -> Array:
    """Solve ``(A + shift I) X = B`` for a positive semi-definite ``A``, with jitter where nothing else helps.

    One LAPACK call, on NumPy arrays only: solvers with thousands of small systems depend on its speed.
    """
    M = np.array(A, order="F")
    M.ravel(order="K")[:: M.shape[0] + 1] += shift
    X = solve_definite(M, B) if M.shape[0] else B
    if X is not None:
        return X
    factor = cholesky_psd(M)
    return solve_triangular(factor, solve_triangular(factor, B), transposed=True)


def solve_definite(A: Array, B: Array) -> Array | None:
    """Solution of ``A X = B`` if the symmetric ``A`` is positive definite, else None; NumPy only."""
    posv = scipy.linalg.lapack.sposv if A.dtype == np.float32 else scipy.linalg.lapack.dposv
    _, X, info = posv(A, B, lower=1)
    return X if info == 0 and np.isfinite(X).all() else None


def generalized_eigh(A: Array, B: Array) -> tuple[Array, Array]:
    """Eigenvalues, descending, and vectors of ``A v = t B v`` for symmetric ``A`` and positive definite ``B``."""
    xp = namespace(A, B)
    C = cholesky_psd(B)
    half = solve_triangular(C, A)
    M = solve_triangular(C, half.T)
    values, vectors = xp.linalg.eigh((M + M.T) / 2)
    return xp.flip(values), xp.flip(solve_triangular(C, vectors, transposed=True), axis=1)


def one_hot(codes: Array, n_classes: int, dtype: Any) -> Array:
    """Indicators of the classes ``codes``: shape ``(n, n_classes)``, one where the column is the class of the row."""
    return array_api_extra.one_hot(codes, n_classes, dtype=dtype, xp=namespace(codes))


def divide_where(condition: Array, numerator: Array, denominator: Array, otherwise: float) -> Array:
    """``numerator / denominator`` where ``condition`` holds, the number ``otherwise`` elsewhere."""
    xp = namespace(denominator)
    ratio = numerator / xp.where(condition, denominator, xp.ones_like(denominator))
    return xp.where(condition, ratio, xp.full_like(ratio, otherwise))


def class_sums(values: Array, codes: Array, n_classes: int) -> Array:
    """Sum of the rows of ``values`` over every class, shape ``(n_classes, columns)``."""
    return one_hot(codes, n_classes, values.dtype).T @ values


def least_squares(A: Array, B: Array) -> Array:
    """The shortest ``X`` that makes ``|A X - B|`` least, for a wide or rank-deficient ``A``."""
    return namespace(A, B).linalg.pinv(A) @ B


def logsumexp(A: Array, axis: int = -1) -> Array:
    """Logarithm of the sum of exponentials along ``axis``, safe for any size of the entries."""
    xp = namespace(A)
    top = xp.max(A, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return xp.log(xp.sum(xp.exp(A - top), axis=axis)) + xp.squeeze(top, axis=axis)
