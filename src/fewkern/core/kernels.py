"""All kernels, their names, and how to get from what a user passes to a kernel of numbers.

The base class is in :mod:`fewkern.core.kernel`. To add a kernel: subclass ``Kernel`` as a dataclass, write ``_block``
and ``diag`` (and ``resolve`` if a parameter may be a rule), add it to ``__all__``, and give it a name in ``NAMES``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fewkern.arrays.linalg import product_transposed, squared_norms
from fewkern.arrays.namespace import Array, asarray_like, device, float_dtype, is_sparse, namespace, to_numpy
from fewkern.arrays.numerics import all_finite, largest_power, quiet
from fewkern.arrays.storable import storable
from fewkern.core.kernel import Kernel
from fewkern.core.radial import Gaussian, Laplacian, positive, total_variance

__all__ = [
    "Function",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "LinearSpline",
    "Polynomial",
    "Precomputed",
    "as_kernel",
]

# Number of values k(x, x) whose sum must be finite.
_MANY = 1e6


@storable
@dataclass(eq=False)
class Polynomial(Kernel):
    r"""Polynomial kernel :math:`k(x, y) = (\gamma\, x^T y + c_0)^{\text{degree}}`.

    Parameters
    ----------
    degree : int, default 3
    gamma : float or "scale", default "scale"
        "scale" is one over the total variance of the samples.
    coef0 : float, default 1.0
        Must not be negative, or the kernel is not positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=0.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[25.]])
    """

    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 1.0

    differentiable = True

    def resolve(self, X: Array) -> Polynomial:
        if int(self.degree) != self.degree or self.degree < 1:
            raise ValueError(f"Polynomial: degree must be a whole number of at least 1, got {self.degree!r}.")
        if self.coef0 < 0:
            raise ValueError(f"Polynomial: coef0 must not be negative, got {self.coef0!r}.")
        if self.gamma == "scale":
            unit = largest_power(X)
            variance = total_variance(X / unit)
            gamma = 1.0 / variance / unit / unit if variance > 0 else 1.0
            if not 0 < gamma < math.inf:
                raise ValueError(
                    f"Polynomial: one over the variance of the samples is {gamma:.3g}, which cannot scale a "
                    "kernel; scale the samples, for example with StandardScaler."
                )
        elif isinstance(self.gamma, str):
            raise ValueError(f'Polynomial: gamma must be a positive number or "scale", got {self.gamma!r}.')
        else:
            gamma = positive("Polynomial", "gamma", self.gamma)
        return dataclasses.replace(self, degree=int(self.degree), gamma=gamma, coef0=float(self.coef0))

    def _block(self, X: Array, Y: Array) -> Array:
        return (self.gamma * product_transposed(X, Y) + self.coef0) ** self.degree

    def diag(self, X: Array) -> Array:
        return (self.gamma * squared_norms(X) + self.coef0) ** self.degree

    def rank(self, dim: int) -> int:
        """Number of monomials: of all degrees up to ``degree``, or of that one without a constant."""
        return math.comb(dim + self.degree - (self.coef0 == 0), self.degree)

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> Array:  # noqa: ARG002
        inner = self.gamma * product_transposed(X, V) + self.coef0
        N = (self.degree * self.gamma) * D * inner ** (self.degree - 1)
        return product_transposed(N.T, X.T)


@storable
@dataclass(eq=False)
class Linear(Kernel):
    """Inner product of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[5.]])
    """

    differentiable = True

    def _block(self, X: Array, Y: Array) -> Array:
        return product_transposed(X, Y)

    def diag(self, X: Array) -> Array:
        return squared_norms(X)

    def rank(self, dim: int) -> int:
        """The number of features."""
        return dim

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> Array:  # noqa: ARG002
        return product_transposed(D.T, X.T)


@storable
@dataclass(eq=False)
class LinearSpline(Kernel):
    r"""Linear spline kernel (section 5.2 of the FVS paper), a product over the features.

    .. math:: k(x, y) = 1 + xy + xy \min(x, y) - \tfrac{x + y}{2} \min(x, y)^2 + \tfrac13 \min(x, y)^3

    Parameters
    ----------
    origin : float, array of shape (n_features,) or "min", default "min"
        Where the spline starts; "min" is the smallest value of every feature among the training samples.

    Notes
    -----
    The formula is positive semi-definite only to the right of the origin, so training samples left of it are an error.
    A new sample there is extrapolated along a straight line: the kernel is
    :math:`1 + xy + \int_0^\infty (x-t)_+ (y-t)_+ dt`, whose integral vanishes when one argument is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import LinearSpline
    >>> LinearSpline(origin=0.0)(np.array([[1.0]]), np.array([[2.0]])).round(4)
    array([[3.8333]])
    """

    origin: Any = "min"

    def resolve(self, X: Array) -> LinearSpline:
        if is_sparse(X):
            raise ValueError("LinearSpline: sparse samples are not supported; pass a dense array.")
        xp = namespace(X)
        smallest = xp.min(X, axis=0)
        if isinstance(self.origin, str):
            if self.origin != "min":
                raise ValueError(f'LinearSpline: origin must be a number or "min", got {self.origin!r}.')
            return dataclasses.replace(self, origin=smallest)
        origin = asarray_like(self.origin, X, dtype=float_dtype(X)) + xp.zeros_like(smallest)
        if bool(xp.any(smallest < origin)):
            raise ValueError(
                f"LinearSpline: every sample must lie right of origin={self.origin!r}, but the smallest value is "
                f'{float(xp.min(smallest))!r}; shift the samples, or use origin="min".'
            )
        return dataclasses.replace(self, origin=origin)

    def _shifted(self, X: Array) -> Array:
        return X - asarray_like(self.origin, X, dtype=X.dtype)

    def _block(self, X: Array, Y: Array) -> Array:
        xp = namespace(X, Y)
        X, Y = self._shifted(X), self._shifted(Y)
        K = xp.ones((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
        zero = xp.zeros((), dtype=X.dtype, device=device(X))
        for j in range(X.shape[1]):
            x, y = X[:, j][:, None], Y[:, j][None, :]
            m = xp.maximum(xp.minimum(x, y), zero)
            xy = x * y
            K *= 1.0 + xy + m * (xy - m * ((x + y) / 2 - m / 3))
        return K

    def diag(self, X: Array) -> Array:
        xp = namespace(X)
        X = self._shifted(X)
        m = xp.maximum(X, xp.zeros_like(X))
        return xp.prod(1.0 + X * X + m**3 / 3, axis=1)


@storable
@dataclass(eq=False)
class Precomputed(Kernel):
    """Kernel values given by the user: a row of ``X`` holds ``k(x, x_j)`` for all training samples ``x_j``.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Precomputed
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> Precomputed()(K, Precomputed().pick(K, np.array([1])))
    array([[0.5],
           [1. ]])
    """

    pairwise = True

    def resolve(self, X: Array) -> Precomputed:
        if is_sparse(X):
            raise ValueError("Precomputed: the kernel matrix must be dense.")
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed: fit needs the square kernel matrix of the training samples, got {tuple(X.shape)}."
            )
        xp = namespace(X)
        gap = float(xp.max(xp.abs(X - X.T)))
        if gap > 1e-6 * max(float(xp.max(xp.abs(X))), 1e-300):
            raise ValueError(
                f"Precomputed: the kernel matrix must be symmetric, but entries differ by up to {gap:.3g}."
            )
        return self

    def pick(self, X: Array, rows: Array) -> Array:  # noqa: ARG002
        return rows[:, None]

    def _block(self, X: Array, Y: Array) -> Array:
        xp = namespace(X)
        return xp.take(X, xp.astype(asarray_like(Y, X)[:, 0], xp.int64), axis=1)

    def diag(self, X: Array) -> Array:
        return namespace(X).linalg.diagonal(X)


@storable
@dataclass(eq=False)
class Function(Kernel):
    """Any function of two sample matrices, ``function(X, Y) -> (n, m)``, as SVC takes them.

    Parameters
    ----------
    function : callable
        Must be symmetric and positive semi-definite; an indefinite one is detected during selection.
    params : dict or None
        Further keyword arguments of ``function``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import cosine_similarity
    >>> from fewkern.kernels import Function
    >>> Function(cosine_similarity)(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])).round(3)
    array([[0.707]])
    """

    function: Any = None
    params: Any = None

    def resolve(self, X: Array) -> Function:  # noqa: ARG002
        if not callable(self.function):
            raise ValueError(f"Function: function must be callable, got {self.function!r}.")
        return self

    def _block(self, X: Array, Y: Array) -> Array:
        try:
            K = self.function(X, Y, **(self.params or {}))
            K = K.toarray() if is_sparse(K) else K if hasattr(K, "dtype") else to_numpy(K)
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(
                f"{self._label()}: the kernel failed on samples of shapes {tuple(X.shape)} and {tuple(Y.shape)}: "
                f"{type(error).__name__}: {error}"
            ) from error
        xp = namespace(K)
        if tuple(K.shape) != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"{self._label()}: the kernel must return shape {(X.shape[0], Y.shape[0])}, got {tuple(K.shape)}."
            )
        if not xp.isdtype(K.dtype, ("real floating", "integral", "bool")):
            raise ValueError(f"{self._label()}: the kernel must return real numbers, got {K.dtype}.")
        K = asarray_like(K, X.data if is_sparse(X) else X, dtype=float_dtype(X))
        # what the user's function returned may be read-only, or kept by it
        return namespace(K).asarray(K, copy=True)

    def _label(self) -> str:
        return f"Function: {getattr(self.function, '__qualname__', repr(self.function))}"

    def diag(self, X: Array) -> Array:
        # Blocks of 32 rows: a matrix per block, of which the diagonal is kept.
        xp = namespace(X)
        parts = [xp.linalg.diagonal(self._block(X[i : i + 32, :], X[i : i + 32, :])) for i in range(0, X.shape[0], 32)]
        return xp.concat(parts)


NAMES: dict[str, Callable[[], Kernel]] = {
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "linear": Linear,
    "linear_spline": LinearSpline,
    "precomputed": Precomputed,
}


def as_kernel(kernel: Any) -> Kernel:
    """A kernel object from a kernel object, a name (scikit-learn's names work too) or a callable.

    Examples
    --------
    >>> from fewkern.kernels import as_kernel
    >>> as_kernel("rbf")
    Gaussian(length_scale='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in NAMES:
        return NAMES[kernel]()
    if callable(kernel):
        return Function(kernel)
    kind = ValueError if isinstance(kernel, str) else TypeError
    raise kind(f"kernel: expected one of {sorted(NAMES)}, a kernel object or a callable, got {kernel!r}.")


def resolve_kernel(kernel: Any, X: Array) -> Kernel:
    """A kernel, a name or a callable as a kernel of numbers for the samples ``X``, all of which have a finite image."""
    resolved = as_kernel(kernel).resolve(X)
    with quiet():
        finite = all_finite(_MANY * resolved.diag(X))
    if not finite:
        raise resolved.not_finite()
    return resolved
