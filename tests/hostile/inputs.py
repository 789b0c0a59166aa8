"""Inputs that a user never means and always has: the columns of the table that ``python -m tests.hostile`` runs.

Those of scikit-learn's own checks are not here: no samples, one dimension, too few labels, complex numbers, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Polynomial

__all__ = ["CASES", "KERNEL_CASES", "Case"]

N = 24


@dataclass(frozen=True)
class Case:
    """What ``fit`` gets, and what the fitted model is then asked about."""

    X: Any
    y: Any
    weights: Any = None
    new: Any = None
    """Samples to predict; the training samples where there are none."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Parameters that all estimators get which have them."""


def plain(n: int = N) -> Case:
    """Two bananas: nothing is wrong with them."""
    X, y = make_banana(n, random_state=1)
    return Case(X, y)


def wide(rank: int | None = None) -> Case:
    """More features than samples; of low rank, if asked."""
    rng = np.random.default_rng(3)
    y = np.arange(N) % 2
    if rank is None:
        return Case(rng.standard_normal((N, 60)) + y[:, None], y)
    return Case(rng.standard_normal((N, rank)) @ rng.standard_normal((rank, 60)), y)


def scaled(factor: float | np.ndarray) -> Case:
    """The bananas in other units."""
    case = plain()
    return replace(case, X=case.X * factor)


def weighted(**changes: float) -> Case:
    """The bananas with some weights changed: ``w3=0.0`` is that of row 3, ``rest=...`` that of all others."""
    case, weights = plain(), np.full(N, changes.pop("rest", 1.0))
    for key, value in changes.items():
        weights[int(key[1:])] = value
    return replace(case, weights=weights)


def conditioned(condition: float) -> Case:
    """Features whose singular values fall from one to ``1 / condition``."""
    rng = np.random.default_rng(5)
    U, V = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((N, 6), (6, 6)))
    return Case((U * np.geomspace(1.0, 1.0 / condition, 6)) @ V, (U[:, 0] + U[:, 3] > 0).astype(int))


def labels(values: Any) -> Case:
    return replace(plain(), y=np.asarray(values))


def asked(factor: float) -> Case:
    """Fitted on the bananas, asked far away from them."""
    case = plain()
    return replace(case, new=case.X * factor)


def target(factor: float) -> Case:
    """Numbers to predict of any size; classes stay classes."""
    case = plain()
    return replace(case, y=case.y * factor)


def repeated(column: np.ndarray) -> Case:
    case = plain()
    return replace(case, X=np.column_stack([case.X, column]))


CASES: dict[str, Callable[[], Case]] = {
    "plain": plain,
    # few samples
    "one sample": lambda: Case(plain().X[:1], np.array([0])),
    "two samples": lambda: Case(plain().X[[0, -1]], np.array([0, 1])),
    "three samples of three classes": lambda: Case(plain().X[[0, 1, -1]], np.array([0, 1, 2])),
    # rows and columns that say nothing
    "all rows equal": lambda: Case(np.full((N, 2), 0.3), np.arange(N) % 2),
    "all zero": lambda: Case(np.zeros((N, 2)), np.arange(N) % 2),
    "every row twice": lambda: Case(np.repeat(plain().X, 2, axis=0), np.repeat(plain().y, 2)),
    "two distinct rows": lambda: Case(np.repeat(np.eye(2), N // 2, axis=0), np.arange(N) % 2),
    "constant column": lambda: repeated(np.full(N, 7.0)),
    "column twice": lambda: repeated(plain().X[:, 0]),
    "column of one outlier": lambda: repeated(np.eye(N)[0] * 1e9),
    "one feature": lambda: Case(plain().X[:, :1], plain().y),
    "far from the origin": lambda: replace(plain(), X=plain().X + 1e8),
    # scales
    "scale 1e-300": lambda: scaled(1e-300),
    "scale 1e-30": lambda: scaled(1e-30),
    "scale 1e150": lambda: scaled(1e150),
    "scale 1e200": lambda: scaled(1e200),
    "mixed scales": lambda: scaled(np.array([1e-150, 1e150])),
    "rows of mixed scales": lambda: scaled(np.geomspace(1e-100, 1e100, N)[:, None]),
    "denormal numbers": lambda: scaled(1e-310),
    "float32 of scale 1e30": lambda: replace(plain(), X=(plain().X * 1e30).astype(np.float32)),
    "float16": lambda: replace(plain(), X=plain().X.astype(np.float16)),
    "asked 1e160 times as far": lambda: asked(1e160),
    "target 1e-200": lambda: target(1e-200),
    "target 1e150": lambda: target(1e150),
    "target 1e300": lambda: target(1e300),
    # classes
    "one class": lambda: labels(np.zeros(N, dtype=int)),
    "a class of one": lambda: labels((np.arange(N) == 5).astype(int)),
    "every sample a class": lambda: labels(np.arange(N)),
    "one class without weight": lambda: replace(plain(), weights=plain().y.astype(float)),
    "labels as objects": lambda: replace(labels(np.array(["no", "yes"], dtype=object)[plain().y])),
    "labels of both kinds": lambda: labels(np.array(["no", 1], dtype=object)[plain().y]),
    "labels of NaN": lambda: labels(np.where(plain().y == 1, np.nan, 0.0)),
    # weights
    "one weight zero": lambda: weighted(w3=0.0),
    "all but two weights zero": lambda: weighted(rest=0.0, w0=1.0, w23=1.0),
    "all weights zero": lambda: weighted(rest=0.0),
    "one weight 1e300": lambda: weighted(w3=1e300),
    "one weight 1e-300": lambda: weighted(w3=1e-300),
    "all weights 1e-300": lambda: weighted(rest=1e-300),
    "all weights 1e300": lambda: weighted(rest=1e300),
    "weights from 1e-300 to 1e300": lambda: replace(plain(), weights=np.geomspace(1e-300, 1e300, N)),
    "a negative weight": lambda: weighted(w3=-1.0),
    "weights of text": lambda: replace(plain(), weights=np.full(N, "a")),
    # condition and rank
    "condition 1e16": lambda: conditioned(1e16),
    "wide": wide,
    "wide, rank one": lambda: wide(1),
    "on a line": lambda: Case(np.linspace(0, 1, N)[:, None] * np.array([1.0, 2.0]), np.arange(N) % 2),
    # how arrays come
    "objects": lambda: replace(plain(), X=plain().X.astype(object)),
    "numbers as text": lambda: replace(plain(), X=plain().X.astype(str)),
    "text": lambda: replace(plain(), X=np.full((N, 2), "a")),
    "objects with None": lambda: replace(plain(), X=np.full((N, 2), None, dtype=object)),
    "NaN": lambda: replace(plain(), X=np.where(np.arange(2 * N).reshape(N, 2) == 7, np.nan, plain().X)),
    "asked about NaN": lambda: replace(plain(), new=np.full((1, 2), np.nan)),
    "no features": lambda: Case(plain().X[:, :0], plain().y),
    "sparse": lambda: Case(sp.csr_array(plain().X), plain().y),
    "sparse, 2^31 columns": lambda: Case(sp.csr_matrix((N, 2**31)), plain().y),
    "sparse labels": lambda: replace(plain(), y=sp.csr_matrix(plain().y[:, None])),
    "empty sparse": lambda: Case(sp.csr_array((N, 2)), plain().y),
}


def with_kernel(kernel: Any, case: Case | None = None) -> Case:
    return replace(plain() if case is None else case, settings={"kernel": kernel})


def given(K: np.ndarray) -> Case:
    return Case(K, plain().y, settings={"kernel": "precomputed"})


def _gram() -> np.ndarray:
    return Gaussian(1.0)(plain().X, plain().X)


def _indefinite() -> np.ndarray:
    A = np.random.default_rng(0).standard_normal((N, N))
    return A + A.T


def _read_only(K: np.ndarray) -> np.ndarray:
    K.flags.writeable = False
    return K


# Kernel functions by what is wrong with them, or odd.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "as_lists": lambda X, Y: Gaussian(1.0)(X, Y).tolist(),
    "as_scalar": lambda X, Y: 1.0,
    "as_none": lambda X, Y: None,
    "as_text": lambda X, Y: np.full((X.shape[0], Y.shape[0]), "a"),
    "as_ragged": lambda X, Y: [[1.0]] + [[1.0, 2.0]] * (X.shape[0] - 1),
    "flat": lambda X, Y: Gaussian(1.0)(X, Y).ravel(),
    "transposed": lambda X, Y: np.ones((Y.shape[0] + 1, X.shape[0])),
    "dividing": lambda X, Y: 1 / 0,
    "looking_up": lambda X, Y: {}["width"],
    "needing_three": lambda X, Y, Z: Gaussian(1.0)(X, Y),
    "of_nan": lambda X, Y: np.full((X.shape[0], Y.shape[0]), np.nan),
    "nan_off_the_diagonal": lambda X, Y: np.where((K := Gaussian(1.0)(X, Y)) < 0.5, np.nan, K),
    "of_infinity": lambda X, Y: np.full((X.shape[0], Y.shape[0]), np.inf),
    "of_zeros": lambda X, Y: np.zeros((X.shape[0], Y.shape[0])),
    "negative": lambda X, Y: -Gaussian(1.0)(X, Y),
    "indefinite": lambda X, Y: np.tanh(3.0 * X @ Y.T - 1.0),
    "lopsided": lambda X, Y: X[:, :1] - Y[:, 0],
    "of_complex": lambda X, Y: Gaussian(1.0)(X, Y) + 1j,
    "of_integers": lambda X, Y: (X @ Y.T).round().astype(int),
    "read_only_values": lambda X, Y: _read_only(Gaussian(1.0)(X, Y)),
}

#: For estimators with a kernel.
KERNEL_CASES: dict[str, Callable[[], Case]] = {
    **{f"kernel function {name}": lambda f=f: with_kernel(f) for name, f in FUNCTIONS.items()},  # type: ignore[misc]
    "degree 10": lambda: with_kernel(Polynomial(degree=10)),
    "degree 10, wide": lambda: with_kernel(Polynomial(degree=10), wide()),
    "degree 10, scale 1e150": lambda: with_kernel(Polynomial(degree=10), scaled(1e150)),
    "degree 10, gamma 1e40": lambda: with_kernel(Polynomial(degree=10, gamma=1e40)),
    "degree 10, gamma 1e-40": lambda: with_kernel(Polynomial(degree=10, gamma=1e-40)),
    "degree 10, far away": lambda: with_kernel(Polynomial(degree=10), replace(plain(), X=plain().X + 1e8)),
    "degree 10, asked 1e40 times as far": lambda: with_kernel(Polynomial(degree=10), asked(1e40)),
    "Gaussian of width 1e-300": lambda: with_kernel(Gaussian(1e-300)),
    "Gaussian of width 1e300": lambda: with_kernel(Gaussian(1e300)),
    "Gaussian of width 0": lambda: with_kernel(Gaussian(0.0)),
    "Gaussian of width NaN": lambda: with_kernel(Gaussian(np.nan)),
    "Gaussian of width text": lambda: with_kernel(Gaussian("wide")),
    "Gaussian of three widths": lambda: with_kernel(Gaussian([1.0, 1.0, 1.0])),
    "Gaussian of widths 1e-150 and 1e150": lambda: with_kernel(Gaussian(np.array([1e-150, 1e150]))),
    "linear": lambda: with_kernel("linear"),
    "linear, scale 1e-150": lambda: with_kernel("linear", scaled(1e-150)),
    "linear, scale 1e150": lambda: with_kernel("linear", scaled(1e150)),
    "linear, mixed scales": lambda: with_kernel("linear", scaled(np.array([1e-150, 1e150]))),
    "linear, all zero": lambda: with_kernel("linear", CASES["all zero"]()),
    "linear, condition 1e16": lambda: with_kernel("linear", conditioned(1e16)),
    "linear, asked 1e300 times as far": lambda: with_kernel("linear", asked(1e300)),
    "linear, sparse, empty": lambda: with_kernel("linear", CASES["empty sparse"]()),
    "laplacian": lambda: with_kernel("laplacian"),
    "laplacian, scale 1e300": lambda: with_kernel("laplacian", scaled(1e300)),
    "linear_spline": lambda: with_kernel("linear_spline"),
    "linear_spline, scale 1e150": lambda: with_kernel("linear_spline", scaled(1e150)),
    "given kernel": lambda: given(_gram()),
    "given kernel, not square": lambda: given(_gram()[:, :5]),
    "given kernel, not symmetric": lambda: given(np.triu(_gram())),
    "given kernel, indefinite": lambda: given(_indefinite()),
    "given kernel, zero": lambda: given(np.zeros((N, N))),
    "given kernel, NaN": lambda: given(np.where(np.eye(N) > 0, np.nan, _gram())),
    "given kernel, 1e300": lambda: given(_gram() * 1e300),
    "given kernel, read-only": lambda: given(np.broadcast_to(_gram(), (N, N))),
    "no kernel": lambda: with_kernel(None),
    "a number as kernel": lambda: with_kernel(3),
    "unknown kernel": lambda: with_kernel("cosine"),
}
