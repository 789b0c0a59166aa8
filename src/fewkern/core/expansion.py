"""The fitted truth of every model, a short sum of kernels, and what surrounds a model that is exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array, device, is_sparse, move_fields, namespace, same_place, to_numpy
from fewkern.arrays.storable import floats, indices, samples, storable
from fewkern.core.kernel import Kernel


class Expansion(Protocol):
    """What predict, save, export, compress and pictures ask of a fitted function.

    There are three kinds: :class:`KernelExpansion`, :class:`~fewkern.core.gaussians.GaussianExpansion` and
    :class:`~fewkern.KernelMixture`.
    """

    @property
    def vectors(self) -> Array:
        """Vectors that are kept, one per row."""

    @property
    def indices(self) -> Array | None:
        """Rows of the training samples that the vectors are, where they are samples."""

    @property
    def n_vectors(self) -> int:
        """Number of vectors."""

    @property
    def n_outputs(self) -> int:
        """Number of values per sample."""

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that an evaluation needs."""

    def __call__(self, X: Array) -> Array:
        """Values ``(n, n_outputs)`` at the rows of ``X``, where ``X`` is."""

    def like(self, X: Array) -> Expansion:
        """The same function with its arrays in the library and on the device of ``X``."""


@storable(vectors=samples("m", "d"), coef=floats("m", "q"), offset=floats("q"), indices=indices("m"))
@dataclass(frozen=True)
class KernelExpansion:
    r"""The function :math:`f(x) = \sum_j c_j k(x, v_j) + b`, with :math:`c_j` a row of ``q`` numbers.

    An immutable value. All that a fitted model does with new samples (predict, transform, save, export, plot)
    reads this object and nothing else.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    vectors : array of shape (m, d)
        The samples that were kept.
    coef : array of shape (m, q)
    offset : array of shape (q,)
    indices : array of shape (m,) or None
        Rows of the training samples that ``vectors`` are, where they are samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern import KernelExpansion
    >>> from fewkern.kernels import Gaussian
    >>> f = KernelExpansion(Gaussian(1.0), np.array([[0.0], [1.0]]), np.array([[1.0], [-1.0]]), np.zeros(1))
    >>> f(np.array([[0.5]])).round(3)
    array([[0.]])
    >>> f.n_vectors
    2
    """

    kernel: Kernel
    vectors: Array
    coef: Array
    offset: Array
    indices: Array | None = None

    @property
    def n_vectors(self) -> int:
        """Number of samples kept."""
        return int(self.vectors.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of values per sample."""
        return int(self.coef.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that a prediction needs."""
        vectors = self.vectors.data if is_sparse(self.vectors) else self.vectors
        return sum(to_numpy(a).nbytes for a in (vectors, self.coef, self.offset))

    def __call__(self, X: Array) -> Array:
        """Values ``(n, q)`` at the rows of ``X``, computed in row blocks, where ``X`` is: the model comes along."""
        if not same_place(self.coef, X):
            return self.like(X)(X)
        xp = namespace(self.coef)
        n = X.shape[0]
        out = xp.empty((n, self.n_outputs), dtype=self.coef.dtype, device=device(self.coef))
        for rows in row_blocks(n, max(self.n_vectors, 1), like=X):
            if self.n_vectors:
                K = self.kernel(X[rows, :], self.vectors)
                out[rows, :] = xp.astype(K, self.coef.dtype, copy=False) @ self.coef + self.offset
            else:
                out[rows, :] = self.offset
        return out

    def then(self, weights: Array, offset: Array | None = None) -> KernelExpansion:
        """The affine map ``values @ weights + offset`` of this function's values, as one function."""
        moved = self.offset @ weights
        return replace(self, coef=self.coef @ weights, offset=moved if offset is None else moved + offset)

    def like(self, X: Array) -> KernelExpansion:
        """The same expansion with its arrays in the library and on the device of ``X``."""
        return move_fields(self, X)


@dataclass(frozen=True)
class Standardization:
    """``u = (x - shift) * factor``, one number per feature in both."""

    shift: Array
    factor: Array

    def then(self, after: Standardization) -> Standardization:
        """This scaling, then another one, as one."""
        return Standardization(self.shift + after.shift / self.factor, self.factor * after.factor)


@dataclass(frozen=True)
class Prepared:
    """A model, and what surrounds it."""

    model: Any
    scaling: Standardization | None = None
    feature_names: tuple[str, ...] | None = None
    log_unit: float = 0.0
    """Added to a log density: its unit of volume."""
    notes: tuple[str, ...] = ()
    """Notes for users of the exported model."""
    inputs: Any = None
    """How the inputs become features (``fewkern.io.plan.Inputs``); None: they are the features."""
    rows: Callable[[Any], Any] | None = None
    """From rows as the model takes them to a data frame of the inputs; None: they are the same."""


@runtime_checkable
class Preparing(Protocol):
    """Anything that holds a model and its preparation: it can be exported as one."""

    def prepared(self) -> Prepared:
        """The model inside, and what happens to a sample before the model sees it."""
