"""A kernel, which is a small object with named parameters, and its matrix, which is never formed as a whole.

Some parameters may be *rules* (``length_scale="median"``); :meth:`Kernel.resolve` turns every rule into a number by
looking at the training samples once, and returns a new kernel, so that what a user passed in never changes.
:class:`Parameters` follow scikit-learn's protocol, so that ``kernel__length_scale`` and ``graph__neighbors`` work in a
grid search.

A kernel with a derivative sets ``differentiable = True`` and writes ``pullback``.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from fewkern.arrays.blocks import in_blocks, row_blocks
from fewkern.arrays.namespace import Array, device, namespace, put, take_rows, to_numpy
from fewkern.arrays.numerics import all_finite, quiet


class Parameters:
    """Base of dataclasses whose fields are parameters in scikit-learn's protocol: kernels and graph rules.

    Subclasses are declared with ``@dataclass(eq=False)``: equality is defined here.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's protocol
        """Parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place and return the object."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known) or 'none'}.")
            setattr(self, name, value)
        return self

    def __eq__(self, other: object) -> bool:
        """Objects of one class with equal parameters are equal; an array is compared entry by entry."""
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs = self.get_params(), other.get_params()
        return all(_same(ours[name], theirs[name]) for name in ours)

    __hash__ = None  # type: ignore[assignment]  # parameters may change


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "shape") or hasattr(other, "shape"):
        one, other = to_numpy(one), to_numpy(other)
        return bool(one.shape == other.shape and (one == other).all())
    return bool(one == other)


class Kernel(Parameters, ABC):
    """A positive semi-definite function of two samples, evaluated in matrices.

    ``kernel(X, Y)`` is the dense ``(n, m)`` matrix, ``kernel.diag(X)`` its diagonal without the matrix.
    """

    #: Whether one row of ``X`` holds kernel values instead of features.
    pairwise = False
    #: Whether the kernel has a derivative with respect to its arguments: ``pullback``.
    differentiable = False

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
        return in_blocks(lambda rows: self._finite_block(rows, Y), X, int(Y.shape[0]))

    def _finite_block(self, X: Array, Y: Array) -> Array:
        """The matrix for a block of rows of ``X``, or an error where it is not finite."""
        with quiet():
            K = self._block(X, Y)
        if not all_finite(K):
            raise self.not_finite()
        return K

    def not_finite(self) -> ValueError:
        """The error for kernel values that are not finite."""
        return ValueError(
            f"{self._label()}: the kernel returned values that are not finite, or whose sums are not; scale the "
            "samples (for example with StandardScaler), or use another kernel."
        )

    def _label(self) -> str:
        """Name of the kernel in messages."""
        return repr(self)

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """``k(x, x)`` of every row."""

    @abstractmethod
    def _block(self, X: Array, Y: Array) -> Array:
        """The matrix for a block of rows of ``X``."""

    def rank(self, dim: int) -> int | None:  # noqa: ARG002
        """Dimension of the feature space for samples of ``dim`` features, None where it has no bound."""
        return None

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> Array:  # noqa: ARG002
        """Gradient of ``sum(D * K)``, ``K = kernel(X, V)``, with respect to ``V``: a sum over the rows of ``X``."""
        raise ValueError(f"{type(self).__name__}: this kernel has no derivatives; use Gaussian, Polynomial or Linear.")


@dataclasses.dataclass(frozen=True)
class Center:
    """An approximate center of the images, ``phi_0 = sum_j b_j phi(x_j)`` over a few samples (FVS, Appendix A)."""

    indices: Array
    weights: Array
    row: Array
    """Inner products of the center with every image: ``K b``."""
    square: float
    """Squared length of the center: ``b' K b``."""


class Gram:
    """Kernel matrix ``K`` of the samples ``X``, seen through its diagonal and its columns.

    With a :class:`Center` it is the matrix of the centered kernel
    ``k(x, y) - k(x, c) - k(c, y) + k(c, c)``; nothing downstream knows the difference.

    Parameters
    ----------
    kernel : Kernel
        Resolved: every parameter a number.
    X : array of shape (n, d)
    center : Center or None

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.kernel import Gram
    >>> from fewkern.kernels import Gaussian
    >>> gram = Gram(Gaussian(length_scale=1.0), np.array([[0.0], [1.0], [2.0]]))
    >>> gram.columns(np.array([1])).round(3)
    array([[0.607],
           [1.   ],
           [0.607]])
    """

    def __init__(self, kernel: Kernel, X: Array, center: Center | None = None) -> None:
        self.kernel = kernel
        self.X = X
        self.center = center
        self._held = kernel.hold(X)
        diag = kernel.diag(X)
        if center is not None:
            xp = namespace(diag)
            diag = diag - 2.0 * center.row + center.square
            # A sample that is the center is the zero vector, whatever rounding says.
            if center.indices.shape[0] == 1:
                own = xp.arange(diag.shape[0], device=device(center.row)) == center.indices[0]
                diag = xp.where(own, xp.zeros_like(diag), diag)
        self.diag = diag

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    def columns(self, S: Array, rows: slice | None = None) -> Array:
        """``K[rows, S]`` (all rows by default); entries on the diagonal are those of ``diag``, exactly.

        A distance that comes from a matrix product is not exactly zero, and the choice of a pivot
        depends on exact ties.
        """
        rows = slice(0, self.n) if rows is None else rows
        K = self._held(rows, self.kernel.pick(self.X, S))
        if self.center is not None:
            row = self.center.row
            K = K - row[rows][:, None] - take_rows(row, S)[None, :] + self.center.square
        inside = (rows.start <= S) & (rows.stop > S)
        order = namespace(self.diag).arange(S.shape[0], device=device(self.diag))
        S, order = S[inside], order[inside]
        put(K, (S - rows.start, order), take_rows(self.diag, S))
        return K

    def block(self, rows: Array, S: Array) -> Array:
        """``K[rows, S]`` for integer ``rows``; where both name the same sample the entry is that of ``diag``."""
        xp = namespace(self.diag)
        X = self.X
        Y = take_rows(X, rows)
        K = self.kernel(Y, self.kernel.pick(X, S))
        if self.center is not None:
            row = self.center.row
            K = K - take_rows(row, rows)[:, None] - take_rows(row, S)[None, :] + self.center.square
        same = rows[:, None] == S[None, :]
        return xp.where(same, take_rows(self.diag, rows)[:, None], K)

    def mean_columns(self, rows: Array | None = None) -> Array:
        """Mean of every column of ``K`` over ``rows`` (all by default), in blocks; ``K`` is symmetric."""
        xp = namespace(self.diag)
        n = self.n
        every = xp.arange(n, device=device(self.diag)) if rows is None else rows
        count = int(every.shape[0])
        parts = [xp.mean(self.columns(every, rows=part), axis=1) for part in row_blocks(n, count, like=self.diag)]
        return xp.concat(parts)
