"""The sums over vectors that expansions and densities are, for numbers of a given type.

Widths of kernels, the scaling of a density and the scalers of a pipeline all become one first step of a sum.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.kernels import Function, Gaussian, Laplacian, Linear, LinearSpline, Polynomial, Precomputed
from fewkern.core.preparation import Preparation, Scaling
from fewkern.density.mixture import KernelMixture
from fewkern.io.plan import DTYPES, ROUNDING, Bends, LogSum, Sum, Vector

__all__ = ["as_double", "as_log_sum", "as_sum", "preparation_bends"]

# Number of vectors at which the rounding error is estimated, at most.
_ROUNDING_ROWS = 1000


def as_double(x: Any) -> Vector:
    """An array of any library, dense or sparse, in double precision."""
    return np.asarray(x.toarray() if is_sparse(x) else to_numpy(x), dtype=np.float64)


def _prepared(V: Vector, centre: Vector, gain: Vector, scaler: Scaling, dtype: str) -> tuple[Vector, Vector, Vector]:
    """Shift and factor of ``z = gain (u - centre)`` seen from the samples, and the vectors after it.

    The shift is first rounded to a number of the file, and the vectors are moved with what it then is: far from the
    origin nothing is lost but what a sample itself loses when it is stored.
    """
    shift = (scaler.shift + centre / scaler.factor).astype(DTYPES[dtype]).astype(np.float64)
    moved = V - (shift - scaler.shift) * scaler.factor
    if gain.ndim == 1:
        return shift, scaler.factor * gain, moved * gain
    return shift, gain * scaler.factor[None, :], moved @ gain.T


def preparation_bends(preparation: Preparation, scaler: Scaling) -> Bends:
    """The preparation seen from the samples: the scaler before it moves the knots."""
    knots, values = as_double(preparation.knots), as_double(preparation.values).copy()
    # a knot at the place of the one before it adds nothing
    new = np.diff(knots, axis=0) > 0
    kept = np.concatenate([np.ones_like(knots[:1], dtype=bool), new])
    values[1:] -= np.cumsum(np.where(new, 0.0, np.diff(values, axis=0)), axis=0)
    knots = scaler.shift + knots / scaler.factor
    columns = range(preparation.n_columns)
    return Bends(*(tuple(table[kept[:, a], a] for a in columns) for table in (knots, values)))


def _gaussians(expansion: GaussianExpansion, scaler: Scaling, dtype: str, caller: str, owner: str) -> Sum:
    """Gaussians around vectors in the coordinates of the metric, and the linear part."""
    basis, bends = expansion.basis, preparation_bends(expansion.basis.preparation, scaler)
    coef, offset, slopes = (as_double(a) for a in (expansion.coef, expansion.offset, expansion.slopes.T))
    if not len(coef):
        return Sum("linear", slopes, offset, bends=bends)
    if dtype == "float":
        _warn_about_rounding(expansion, caller, owner)
    widths = as_double(basis.inverse_widths)
    # widths that are all the same belong to the metric
    common = float(widths[0]) if np.all(widths == widths[0]) else 1.0
    scales, directions = (common * np.sqrt(0.5) * as_double(a) for a in (basis.scales, basis.directions.T))
    V = as_double(basis.vectors)
    return Sum(
        "gaussian",
        np.concatenate([V * scales, V @ directions.T], axis=1),
        offset,
        coef,
        factor=scales,
        bends=bends,
        directions=directions if len(directions) else None,
        narrow=None if common == widths[0] else widths**2,
        slopes=slopes if slopes.any() else None,
    )


def as_sum(expansion: Any, scaler: Scaling, dtype: str, caller: str, owner: str) -> Sum:
    """An expansion at samples that a scaler changes first; ``owner`` is the model in errors of ``caller``."""
    if isinstance(expansion, GaussianExpansion):
        return _gaussians(expansion, scaler, dtype, caller, owner)
    kernel = expansion.kernel
    if type(kernel) not in _KERNELS:
        raise ValueError(
            f"{caller}: this {owner} has the kernel {type(kernel).__name__}, "
            + _REASONS.get(type(kernel), "which this writer does not know")
            + f"; fit with one of {', '.join(cls.__name__ for cls in _KERNELS)} to export a model."
        )
    rules = [f"{key}={value!r}" for key, value in kernel.rules.items()]
    if rules:
        raise ValueError(
            f"{caller}: the kernel of this {owner} has {', '.join(rules)}, a rule in place of a number; use "
            "kernel.resolve(X) with the training samples X, as an estimator does."
        )
    V, coef, offset = (as_double(a) for a in (expansion.vectors, expansion.coef, expansion.offset))
    if not len(V):
        # a constant: no vector was kept
        return Sum("linear", np.zeros((len(offset), len(scaler.shift))), offset)
    found = _KERNELS[type(kernel)](kernel, V, coef, offset, scaler, dtype)
    if dtype == "float" and found.kind != "linear":
        _warn_about_rounding(expansion, caller, owner)
    return found


def _radial(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    squared = isinstance(kernel, Gaussian)
    gain = np.broadcast_to(1.0 / ((np.sqrt(2.0) if squared else 1.0) * as_double(kernel.length_scale)), V.shape[1:])
    # the median: one far vector does not carry it away from the others
    shift, factor, vectors = _prepared(V, np.median(V, axis=0), gain, scaler, dtype)
    return Sum("gaussian" if squared else "laplacian", vectors, offset, coef, shift, factor)


def _spline(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    origin = np.broadcast_to(as_double(kernel.origin), V.shape[1:])
    shift, factor, vectors = _prepared(V, origin, np.ones(V.shape[1]), scaler, dtype)
    return Sum("spline", vectors, offset, coef, shift, factor)


def _polynomial(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    vectors = V * float(kernel.gamma)
    shift, factor, rest = _scaled(scaler, dtype)
    constant = float(kernel.coef0) + vectors @ rest
    return Sum("polynomial", vectors, offset, coef, shift, factor, int(kernel.degree), constant)


def _linear(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:  # noqa: ARG001
    # sum_j c_j <z, v_j> is one vector per output, however many samples were kept
    vectors = coef.T @ V
    shift, factor, rest = _scaled(scaler, dtype)
    return Sum("linear", vectors, offset + vectors @ rest, shift=shift, factor=factor)


def _scaled(scaler: Scaling, dtype: str) -> tuple[Vector | None, Vector | None, Vector]:
    """Shift and factor of a scaler, none if it does nothing, and what ``z`` lacks since the shift is rounded."""
    if not scaler.shift.any() and np.all(scaler.factor == 1):
        return None, None, np.zeros_like(scaler.shift)
    shift = scaler.shift.astype(DTYPES[dtype]).astype(np.float64)
    return shift, scaler.factor, (shift - scaler.shift) * scaler.factor


_KERNELS: dict[type, Callable[[Any, Vector, Vector, Vector, Scaling, str], Sum]] = {
    Gaussian: _radial,
    Laplacian: _radial,
    Polynomial: _polynomial,
    Linear: _linear,
    LinearSpline: _spline,
}
_REASONS: dict[type, str] = {
    Precomputed: "whose values you compute, so the model does not hold the vectors",
    Function: "a Python function, which cannot be written in another language",
}


def as_log_sum(mixture: KernelMixture, scaler: Scaling, dtype: str, log_unit: float) -> LogSum:
    """A density at samples that a scaler changes first; ``log_unit`` is added to its logarithm."""
    weights, widths = as_double(mixture.weights), as_double(mixture.bandwidths)
    V, transform = as_double(mixture.vectors), as_double(mixture.transform)
    kept = weights > 0
    shift, factor, vectors = _prepared(V[kept], np.median(V, axis=0), transform, scaler, dtype)
    determinant = np.log(np.abs(transform)).sum() if transform.ndim == 1 else np.linalg.slogdet(transform)[1]
    dim = V.shape[1]
    level = np.log(weights[kept]) - dim * np.log(widths[kept])
    level += determinant - 0.5 * dim * np.log(2 * np.pi) + log_unit
    return LogSum(vectors, level, 0.5 / widths[kept] ** 2, shift, factor)


def _warn_about_rounding(expansion: Any, caller: str, owner: str) -> None:
    """Warn if coefficients of both signs cancel so far that seven digits leave little of the sum."""
    step = max(1, -(-expansion.n_vectors // _ROUNDING_ROWS))
    if isinstance(expansion, GaussianExpansion):
        T = expansion.basis.vectors[::step, :]
        K = np.concatenate([as_double(expansion.basis.columns(T)), as_double(T)], axis=1)
        coef = np.concatenate([as_double(expansion.coef), as_double(expansion.slopes)])
    else:
        V = expansion.vectors
        K, coef = as_double(expansion.kernel(V[::step, :], V)), as_double(expansion.coef)
    noise = float(np.finfo(np.float32).eps) * (np.abs(K) @ np.abs(coef)).max()
    size = float(np.abs(K @ coef + as_double(expansion.offset)).max())
    if noise > ROUNDING * size:
        warnings.warn(
            f'{caller}: with dtype="float" rounding may change the outputs of this {owner} by about {noise:.1g} (the '
            f'largest is about {size:.1g}), because its coefficients cancel; use dtype="double", or fit with a ridge '
            "or fewer vectors.",
            UserWarning,
            stacklevel=5,
        )
