"""The kernel matrix of the training samples, never formed as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array, device, namespace, put, take_rows
from fewkern.core.kernel import Kernel

__all__ = ["Center", "Gram"]


@dataclass(frozen=True)
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

    Attributes
    ----------
    evaluations : int
        Kernel evaluations so far, the diagonal not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.gram import Gram
    >>> from fewkern.kernels import Gaussian
    >>> gram = Gram(Gaussian(length_scale=1.0), np.array([[0.0], [1.0], [2.0]]))
    >>> gram.columns(np.array([1])).round(3)
    array([[0.607],
           [1.   ],
           [0.607]])
    >>> gram.evaluations
    3
    """

    def __init__(self, kernel: Kernel, X: Array, center: Center | None = None) -> None:
        self.kernel = kernel
        self.X = X
        self.center = center
        self.evaluations = 0
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
        hangs on exact ties.
        """
        rows = slice(0, self.n) if rows is None else rows
        K = self._held(rows, self.kernel.pick(self.X, S))
        self.evaluations += int(K.shape[0]) * int(K.shape[1])
        if self.center is not None:
            row = self.center.row
            K = K - row[rows][:, None] - take_rows(row, S)[None, :] + self.center.square
        xp, every = namespace(self.diag), slice(0, self.n)
        order = xp.arange(S.shape[0], device=device(self.diag))
        if rows != every:
            inside = (rows.start <= S) & (rows.stop > S)
            S, order = S[inside], order[inside]
        put(K, (S - rows.start, order), take_rows(self.diag, S))
        return K

    def block(self, rows: Array, S: Array) -> Array:
        """``K[rows, S]`` for integer ``rows``; where both name the same sample the entry is that of ``diag``."""
        xp = namespace(self.diag)
        X = self.X
        Y = take_rows(X, rows)
        K = self.kernel(Y, self.kernel.pick(X, S))
        self.evaluations += int(K.shape[0]) * int(K.shape[1])
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
