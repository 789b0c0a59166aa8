"""Kernel functions as small objects.

A kernel is a value with named parameters. Some may be *rules* (``width="median"``); :meth:`Kernel.resolve`
turns every rule into a number by looking at the training samples once, and returns a new kernel, so that
what a user passed in never changes. Parameters follow scikit-learn's protocol (:mod:`fewkern.core.parameters`), which
makes ``kernel__width`` work in a grid search.

To add a kernel: subclass :class:`Kernel` as a dataclass, write ``_block`` and ``diag`` (and ``resolve`` if a
parameter may be a rule), add it to ``__all__``, and give it a name in ``NAMES``.

A kernel whose vectors can be moved (:mod:`fewkern.vectors.refinement`) also sets ``refinable = True`` and writes
``pullback``. If scales of its own are to be learned along with the vectors (inverse widths, say), it gives their number
by ``n_scales``, changes them by ``rescaled``, and, unless ``k(x, x)`` is constant, writes ``diag_pullback``. A kernel
with a length tells it by ``reach``; one that can prepare for many calls writes ``facing``.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from fewkern.backend.blocks import row_blocks
from fewkern.backend.columns import divide_columns
from fewkern.backend.finite import all_finite, largest_power, quiet
from fewkern.backend.linalg import (
    HeldRows,
    manhattan,
    neg_squared_differences,
    neg_squared_distances,
    product_transposed,
    squared_norms,
)
from fewkern.backend.namespace import (
    Array,
    asarray_like,
    device,
    float_dtype,
    is_sparse,
    namespace,
    on_host,
    take_rows,
    to_numpy,
)
from fewkern.backend.storable import storable
from fewkern.core.facing import Facing, FacingGaussian
from fewkern.core.parameters import Parameters
from fewkern.core.widths import (
    Unit,
    city_block,
    euclidean,
    positive,
    resolve_width,
    total_variance,
)

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

# Sums of so many values k(x, x) must still be numbers.
_MANY = 1e6
# Squared distance, in units of the width, beyond which the rounding error of a product is seen in the exponential.
_FAR = 1e12


class Kernel(Parameters, ABC):
    """A positive semi-definite function of two samples, evaluated in matrices.

    ``kernel(X, Y)`` is the dense ``(n, m)`` matrix, ``kernel.diag(X)`` its diagonal without the matrix.
    """

    #: Whether one row of ``X`` holds kernel values instead of features.
    pairwise = False
    #: Whether the kernel has the derivatives that moving its vectors needs: ``pullback`` and its companions.
    refinable = False

    def resolve(self, X: Array) -> Kernel:  # noqa: ARG002
        """The same kernel with every rule replaced by the number that ``X`` gives."""
        return self

    @property
    def rules(self) -> dict[str, str]:
        """Parameters that are still rules, by name; a resolved kernel has none."""
        return {name: value for name, value in self.get_params().items() if isinstance(value, str)}

    def pick(self, X: Array, rows: Array) -> Array:
        """The training samples ``rows`` in the form in which they serve as second argument."""
        return take_rows(X, rows)

    def hold(self, X: Array) -> Callable[[slice, Array], Array]:
        """The function ``(rows, Y) -> kernel(X[rows, :], Y)``, for many calls."""
        return lambda rows, Y: self(X[rows, :], Y)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Kernel matrix between the rows of ``X`` and those of ``Y``, computed in row blocks."""
        n, m = int(X.shape[0]), int(Y.shape[0])
        out = None
        for rows in row_blocks(n, m, like=X):
            if rows == slice(0, n):
                return self._finite_block(X, Y)
            block = self._finite_block(X[rows, :], Y)
            if out is None:
                out = namespace(block).empty((n, m), dtype=block.dtype, device=device(block))
            out[rows, :] = block
        return out

    def _finite_block(self, X: Array, Y: Array) -> Array:
        """The matrix for a block of rows of ``X``, or an error where it is not one of numbers."""
        with quiet():
            K = self._block(X, Y)
        if not all_finite(K):
            raise _not_finite(self)
        return K

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """``k(x, x)`` of every row."""

    @abstractmethod
    def _block(self, X: Array, Y: Array) -> Array:
        """The matrix for a block of rows of ``X``."""

    def reach(self) -> Any:
        """Length over which the kernel changes, one or one per feature: searches scale their steps by it."""
        return None

    def rank(self, dim: int) -> int | None:  # noqa: ARG002
        """Dimension of the feature space for samples of ``dim`` features, None where it has no bound."""
        return None

    @property
    def n_scales(self) -> int:
        """Number of scales that can be learned (inverse widths, say); none here."""
        return 0

    def rescaled(self, s: Array) -> Kernel:  # noqa: ARG002
        """The same kernel with its scales multiplied by ``exp(s)``, ``s`` of shape ``(n_scales,)``."""
        return self

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Gradients of ``sum(D * K)``, ``K = kernel(X, V)``, with respect to ``V`` and to ``s`` (see ``rescaled``).

        Both are sums over the rows of ``X``, so row blocks can be added. ``X`` is held. Since ``k`` is symmetric, the
        gradient of ``sum(D * k(V, V))`` with respect to ``V`` is that of ``pullback(V, V, K, D + D.T)``, and with
        respect to ``s`` half of it.
        """
        raise ValueError(
            f"{type(self).__name__}: this kernel has no derivative with respect to its vectors, so they cannot be "
            "refined; use Gaussian, Polynomial or Linear, or leave the vectors where they are (refine=False)."
        )

    def diag_pullback(self, X: Array, D: Array) -> Array:  # noqa: ARG002
        """Gradient of ``sum(D * kernel.diag(X))`` with respect to ``s``; zero where ``k(x, x)`` is constant."""
        xp = namespace(X)
        return xp.zeros((self.n_scales,), dtype=xp.float64, device=device(X))

    def facing(self, X: Array, near: Array) -> Facing:  # noqa: ARG002
        """The float64 samples ``X`` in front of vectors that move from ``near``, for many calls."""
        return Facing(self, X)


def resolve_kernel(kernel: Any, X: Array) -> Kernel:
    """A kernel, a name or a callable as a kernel of numbers for the samples ``X``, all of which have a finite image."""
    resolved = as_kernel(kernel).resolve(X)
    with quiet():
        finite = all_finite(_MANY * resolved.diag(X))
    if not finite:
        raise _not_finite(resolved)
    return resolved


class NotFiniteError(ValueError):
    """A kernel has values that are no numbers."""


def _not_finite(kernel: Kernel) -> NotFiniteError:
    name = f"Function: {kernel._name}" if isinstance(kernel, Function) else repr(kernel)
    return NotFiniteError(
        f"{name}: the kernel returned values that are not finite, or whose sums are not; scale the samples (for "
        "example with StandardScaler), or use another kernel."
    )


def _ones(X: Array) -> Array:
    xp = namespace(X)
    return xp.ones((X.shape[0],), dtype=float_dtype(X), device=device(X))


@dataclass(eq=False, repr=False)
class _WidthKernel(Kernel):
    """A kernel whose width may be a rule: what :class:`Gaussian` and :class:`Laplacian` share."""

    width: Any = "median"
    unit: Unit = "auto"

    @staticmethod
    @abstractmethod
    def _distances(X: Array) -> Array:
        """Distances between all pairs of rows, in one row: what a width is measured in."""

    def resolve(self, X: Array) -> Self:
        width = resolve_width(type(self).__name__, self.width, self.unit, X, self._distances)
        unit: Unit = "spread" if self.rules and self.unit == "auto" else self.unit
        return dataclasses.replace(self, width=width, unit=unit)

    @property
    def rules(self) -> dict[str, str]:
        return {"width": self.width} if isinstance(self.width, str) else {}

    def __repr__(self) -> str:
        # a unit says how a rule was read: to a width that was given it means nothing
        unit = "" if self.unit == "auto" else f", unit={self.unit!r}"
        return f"{type(self).__name__}(width={self.width!r}{unit})"

    def _in_widths(self, X: Array, factor: float = 1.0) -> Array:
        """``X`` divided by ``factor`` times the width, or every feature by its own."""
        if isinstance(self.width, (int, float)):
            by = factor * self.width
            return X.multiply(1.0 / by).tocsr().astype(X.dtype) if is_sparse(X) else X / by
        return divide_columns(X, factor * asarray_like(self.width, X, dtype=float_dtype(X)))

    def diag(self, X: Array) -> Array:
        return _ones(X)


@storable
@dataclass(eq=False, repr=False)
class Gaussian(_WidthKernel):
    r"""Gaussian kernel :math:`k(x, y) = \exp(-\|x - y\|^2 / (2 \text{width}^2))`.

    Parameters
    ----------
    width : float, array of shape (n_features,), "median" or "scale", default "median"
        One standard deviation. "median" is the median distance between samples (of at most 1000 rows), "scale" is
        scikit-learn's ``gamma="scale"`` for centered features. An array gives every feature a width of its own.
    unit : {"auto", "spread", "range", "common"}, default "auto"
        What a rule measures every feature in: its standard deviation ("spread"), or its largest minus its smallest
        value ("range"). The rule then gives one width per feature, and the units of the data do not matter. "auto"
        takes the better of the two where an estimator compares widths, and "spread" elsewhere. "common" measures all
        features alike, as the papers do, and gives one width. A width that is not a rule is taken as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Gaussian(width=1.0)(X, X).round(3)
    array([[1.   , 0.607, 0.011],
           [0.607, 1.   , 0.135],
           [0.011, 0.135, 1.   ]])
    >>> Gaussian(unit="common").resolve(X)
    Gaussian(width=2.0, unit='common')
    >>> Gaussian().resolve(X * [1.0, 10.0])
    Gaussian(width=array([ 2.82842712, 28.28427125]), unit='spread')
    """

    refinable = True

    @staticmethod
    def _distances(X: Array) -> Array:
        return euclidean(X)

    def _block(self, X: Array, Y: Array) -> Array:
        # Squares cancel in a distance: in float32 a narrow kernel would keep five figures. The exponential is float32.
        xp, dtype = namespace(X), float_dtype(X)
        if not is_sparse(X) and dtype == xp.float32:
            X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
        X, Y = self._in_widths(X, math.sqrt(2.0)), self._in_widths(Y, math.sqrt(2.0))
        D = neg_squared_distances(X, Y)
        if not is_sparse(X) and 0 not in D.shape and not float(xp.min(D)) > -_FAR:
            D = neg_squared_differences(X, Y)
        return xp.exp(xp.astype(D, dtype, copy=False))

    def hold(self, X: Array) -> Callable[[slice, Array], Array]:
        # On an accelerator, dividing and squaring X anew for every block of columns takes as long as the columns.
        if on_host(X):
            return super().hold(X)
        xp, dtype = namespace(X), float_dtype(X)
        scaled = self._in_widths(xp.astype(X, xp.float64, copy=False), math.sqrt(2.0))
        held = HeldRows(scaled, xp.mean(scaled, axis=0))

        def columns(rows: slice, Y: Array) -> Array:
            D = held(rows, self._in_widths(xp.astype(Y, xp.float64, copy=False), math.sqrt(2.0)))
            return xp.exp(xp.astype(D, dtype, copy=False))

        return columns

    def reach(self) -> Any:
        """The width."""
        return self.width

    @property
    def n_scales(self) -> int:
        """The inverse widths: one, or one per feature."""
        return 1 if isinstance(self.width, (int, float)) else int(self.width.shape[0])

    def rescaled(self, s: Array) -> Gaussian:
        if isinstance(self.width, (int, float)):
            return dataclasses.replace(self, width=self.width * math.exp(-float(s[0])))
        xp = namespace(s)
        return dataclasses.replace(self, width=asarray_like(self.width, s, dtype=xp.float64) * xp.exp(-s))

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> tuple[Array, Array]:
        facing = self.facing(X, V)
        return facing.pulled(D * K, facing.in_widths(V))

    def facing(self, X: Array, near: Array) -> FacingGaussian:
        return FacingGaussian(self, X, self.width, near)


@storable
@dataclass(eq=False, repr=False)
class Laplacian(_WidthKernel):
    r"""Laplacian kernel :math:`k(x, y) = \exp(-\|x - y\|_1 / \text{width})`.

    Parameters
    ----------
    width : float, array of shape (n_features,), "median" or "scale", default "median"
        Distance (sum of absolute differences) at which the kernel falls to :math:`1/e`. Rules and arrays are those of
        :class:`Gaussian`.
    unit : {"auto", "spread", "range", "common"}, default "auto"
        What a rule measures the features in, as in :class:`Gaussian`.

    Notes
    -----
    Its vectors cannot be refined. The kernel has a kink wherever a vector and a sample agree in a feature, which at the
    start, where the vectors are samples, is everywhere: a smoothed kernel would move them and another one predict.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Laplacian
    >>> Laplacian(width=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    @staticmethod
    def _distances(X: Array) -> Array:
        return city_block(X)

    def _block(self, X: Array, Y: Array) -> Array:
        if isinstance(self.width, (int, float)):
            D = manhattan(X, Y) / self.width
        else:
            D = manhattan(self._in_widths(X), self._in_widths(Y))
        return namespace(D).exp(-D)


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
    gamma: Any = "scale"
    coef0: float = 1.0

    refinable = True

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
                    f"Polynomial: one over the variance of the samples is {gamma:.3g}, which is no factor for a "
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

    @property
    def n_scales(self) -> int:
        """``gamma``."""
        return 1

    def rescaled(self, s: Array) -> Polynomial:
        return dataclasses.replace(self, gamma=self.gamma * math.exp(float(s[0])))

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> tuple[Array, Array]:  # noqa: ARG002
        xp = namespace(V)
        inner = product_transposed(X, V)
        N = (self.degree * self.gamma) * D * (self.gamma * inner + self.coef0) ** (self.degree - 1)
        return product_transposed(N.T, X.T), xp.reshape(xp.sum(N * inner), (1,))

    def diag_pullback(self, X: Array, D: Array) -> Array:
        xp = namespace(X)
        square = self.gamma * squared_norms(X)
        return xp.reshape(xp.sum(self.degree * D * square * (square + self.coef0) ** (self.degree - 1)), (1,))


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

    refinable = True

    def _block(self, X: Array, Y: Array) -> Array:
        return product_transposed(X, Y)

    def diag(self, X: Array) -> Array:
        return squared_norms(X)

    def rank(self, dim: int) -> int:
        """The samples themselves."""
        return dim

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> tuple[Array, Array]:  # noqa: ARG002
        # a common scale would only be another ridge
        return product_transposed(D.T, X.T), self.diag_pullback(V, D)


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
        K = self._values(X, Y)
        xp = namespace(K)
        if tuple(K.shape) != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"Function: the kernel must return shape {(X.shape[0], Y.shape[0])}, got {tuple(K.shape)} from "
                f"{self._name}."
            )
        if not xp.isdtype(K.dtype, ("real floating", "integral", "bool")):
            raise ValueError(f"Function: the kernel must return real numbers, got {K.dtype} from {self._name}.")
        K = asarray_like(K, X if not is_sparse(X) else K, dtype=float_dtype(X))
        # what the user's function returned may be read-only, or kept by it
        return namespace(K).asarray(K, copy=True)

    @property
    def _name(self) -> str:
        """The function as an error names it."""
        return str(getattr(self.function, "__qualname__", repr(self.function)))

    def _values(self, X: Array, Y: Array) -> Array:
        """What the function returns, as an array; an error inside of it says where it was called."""
        shapes = f"samples of shapes {tuple(X.shape)} and {tuple(Y.shape)}"
        try:
            K = self.function(X, Y, **(self.params or {}))
            return K if hasattr(K, "shape") and hasattr(K, "dtype") else to_numpy(K)
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(
                f"Function: the kernel function {self._name} failed on {shapes}: {type(error).__name__}: {error}"
            ) from error

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
    Gaussian(width='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        try:
            return NAMES[kernel]()
        except KeyError:
            raise ValueError(
                f"kernel: expected one of {sorted(NAMES)}, a kernel object or a callable, got {kernel!r}."
            ) from None
    if callable(kernel):
        return Function(kernel)
    raise TypeError(
        f"kernel: expected a name ({', '.join(sorted(NAMES))}), a kernel object or a callable, "
        f"got {type(kernel).__name__}."
    )
