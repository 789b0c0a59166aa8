"""What a kernel is: a small object with named parameters.

Some may be *rules* (``width="median"``); :meth:`Kernel.resolve` turns every rule into a number by looking at the
training samples once, and returns a new kernel, so that what a user passed in never changes. Parameters follow
scikit-learn's protocol (:mod:`fewkern.core.parameters`), which makes ``kernel__width`` work in a grid search.

A kernel whose vectors can be moved (:mod:`fewkern.vectors.refinement`) also sets ``refinable = True`` and writes
``pullback``. If scales of its own are to be learned along with the vectors (inverse widths, say), it gives their number
by ``n_scales``, changes them by ``rescaled``, and, unless ``k(x, x)`` is constant, writes ``diag_pullback``. A kernel
with a length tells it by ``reach``; one that can prepare for many calls writes ``facing``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from fewkern.backend.blocks import row_blocks
from fewkern.backend.finite import all_finite, quiet
from fewkern.backend.namespace import Array, device, float_dtype, namespace, take_rows
from fewkern.core.facing import Facing
from fewkern.core.parameters import Parameters

__all__ = ["Kernel", "NotFiniteError", "ones_of"]


class NotFiniteError(ValueError):
    """A kernel has values that are no numbers."""


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
            raise self.not_finite()
        return K

    def not_finite(self) -> NotFiniteError:
        """The error that says that the kernel has values that are no numbers."""
        return NotFiniteError(
            f"{self._label()}: the kernel returned values that are not finite, or whose sums are not; scale the "
            "samples (for example with StandardScaler), or use another kernel."
        )

    def _label(self) -> str:
        """What messages call it."""
        return repr(self)

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


def ones_of(X: Array) -> Array:
    """One for every row: the diagonal of a kernel with ``k(x, x) = 1``."""
    xp = namespace(X)
    return xp.ones((X.shape[0],), dtype=float_dtype(X), device=device(X))
