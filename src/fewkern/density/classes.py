"""One density per class, as a function with an output for each."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.namespace import Array, namespace
from fewkern.arrays.storable import storable
from fewkern.density.mixture import KernelMixture


def _check_classes(classes: ClassMixtures) -> None:
    if not classes.mixtures or len({int(one.vectors.shape[1]) for one in classes.mixtures}) > 1:
        raise ValueError("the mixtures of ClassMixtures do not have the same features")


@storable(check=_check_classes)
@dataclass(frozen=True)
class ClassMixtures:
    """One density per class; its values are their logarithms. What a :class:`~fewkern.DensityClassifier` evaluates."""

    mixtures: tuple[KernelMixture, ...]

    @property
    def vectors(self) -> Array:
        """Centers of all classes, one after the other."""
        parts = [mixture.vectors for mixture in self.mixtures]
        return namespace(parts[0]).concat(parts, axis=0)

    @property
    def indices(self) -> None:
        """None: every class counts its samples for itself."""
        return None

    @property
    def n_vectors(self) -> int:
        """Number of kernels of all classes."""
        return sum(mixture.n_vectors for mixture in self.mixtures)

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.mixtures)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that an evaluation needs."""
        return sum(mixture.nbytes for mixture in self.mixtures)

    def __call__(self, X: Array) -> Array:
        """Logarithm of the density of every class, shape ``(n, n_classes)``."""
        return namespace(X).stack([mixture.log_density(X) for mixture in self.mixtures], axis=1)

    def like(self, X: Array) -> ClassMixtures:
        """The same densities with their arrays in the library and on the device of ``X``."""
        return ClassMixtures(tuple(mixture.like(X) for mixture in self.mixtures))
