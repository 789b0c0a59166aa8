"""Which kernels an automatic choice compares: length scales around that of a rule, in one of two units (methods F9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from fewkern.arrays.columns import column_ranges, column_spreads
from fewkern.arrays.namespace import Array, namespace
from fewkern.core.kernels import Kernel, resolve_kernel
from fewkern.core.widths import feature_units

__all__ = ["WIDTH_FACTORS", "KernelGrid", "units_to_compare"]

WIDTH_FACTORS = (0.14, 0.22, 0.35, 0.55, 0.85, 1.3, 2.0, 3.5, 6.0)
# Units are not compared where their ratio differs by less than this from feature to feature, about the step of the
# length scales: the ranges of normal samples differ so much by chance.
_SAME_UNITS = 1.5


@dataclass(frozen=True)
class KernelGrid:
    """Kernels that are compared, and the length scales by which ``path_`` names them."""

    kernels: tuple[Kernel, ...]
    """Resolved."""
    widths: tuple[float, ...]
    """The length scale, where it is one number. Where every feature has its own: the number of which these are
    multiples, that is the length scale for features in their units; 1 if they were given. Without a length scale: the
    position."""

    @classmethod
    def of(cls, *kernels: Kernel) -> KernelGrid:
        """Kernels as they are."""
        return cls(kernels, tuple(_given_width(kernel, k) for k, kernel in enumerate(kernels)))

    @classmethod
    def around(cls, kernel: Kernel, X: Array) -> KernelGrid:
        """Length scales around the one that a rule gives; a length scale that is no rule is kept."""
        resolved: Any = resolve_kernel(kernel, X)
        if "length_scale" not in kernel.rules:
            return cls.of(resolved)
        width = resolved.length_scale
        number = width if isinstance(width, float) else float(width[0] / feature_units(X, resolved.unit)[0])
        kernels = tuple(replace(resolved, length_scale=factor * width) for factor in WIDTH_FACTORS)
        return cls(kernels, tuple(factor * number for factor in WIDTH_FACTORS))

    def only(self, position: int) -> KernelGrid:
        """The grid of one of the kernels."""
        return self.some([position])

    def some(self, positions: Iterable[int]) -> KernelGrid:
        """The grid of some of the kernels."""
        kept = [(self.kernels[k], self.widths[k]) for k in positions]
        return KernelGrid(*zip(*kept))

    def __len__(self) -> int:
        return len(self.kernels)


def units_to_compare(kernel: Any, X: Array) -> tuple[Kernel, ...]:
    """The kernel with each unit that ``unit="auto"`` leaves open; itself where there is nothing to choose.

    The units are those that follow a change of scale of any feature. Where they are proportional, one is enough.
    """
    if "length_scale" not in kernel.rules or getattr(kernel, "unit", None) != "auto":
        return (kernel,)
    spread = column_spreads(X)
    ratio = column_ranges(X)[spread > 0] / spread[spread > 0]
    xp = namespace(ratio)
    if ratio.shape[0] < 2 or float(xp.max(ratio)) <= _SAME_UNITS * float(xp.min(ratio)):
        return (kernel,)
    return replace(kernel, unit="spread"), replace(kernel, unit="range")


def _given_width(kernel: Kernel, position: int) -> float:
    width = getattr(kernel, "length_scale", None)
    if width is None:
        return float(position)
    return float(width) if isinstance(width, (int, float)) else 1.0
