"""Which of several machines of different sizes is as good as the best one, by samples that they have not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fewkern.backend.namespace import Array, namespace, to_numpy
from fewkern.core.trace import TOLERANCE, Trace
from fewkern.vectors.grid import KernelGrid

__all__ = ["MOVED_SEVERAL", "SEVERAL", "TWO", "Allowance", "Sizes", "means_of", "spread_of"]


class Allowance(NamedTuple):
    """What a smaller machine may lose against the best one, in units of the tolerance of ``prefer``."""

    slight: float
    """Part of the logarithmic loss."""
    misses: float
    """Share of the samples."""
    many: int = 2000
    """More samples than this can tell smaller differences: both shares fall with the root of their number."""


# For two classes the exchange that follows gives back a part of the loss. Moved vectors of several classes are judged
# by the sharp losses, which are a fifth of the others and differ by more; four samples in 1,000, with "balanced", are
# about a standard error of the difference where one in 80 is wrong.
TWO, SEVERAL, MOVED_SEVERAL = Allowance(0.2, 0.015, 800), Allowance(0.05, 0.004), Allowance(0.5, 0.008)
# The share of the samples is at least so many of them: with "balanced", one sample more or less is no difference.
_SAMPLES = 2
# Shares of samples are sums, and one sample more must be one sample more whatever their rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Sizes:
    """Held-out errors of the machines of every size, as the share of every sample in their mean, ``(n,)``."""

    losses: dict[Any, Array]
    """Logarithmic losses by size, or by size and way."""
    wrong: dict[Any, Array]
    """Samples that are put into another class."""
    sharp: dict[int, Array] = field(default_factory=dict)
    """Logarithmic losses of scores times a factor, by size."""
    columns: dict[int, Array] = field(default_factory=dict)
    """Candidates that every fold is left with, ``(F, k)``, by size; of two classes the last fold is all samples."""

    def choose(self, prefer: str, allowed: Allowance) -> Any:
        """The smallest size that is as good as the best one."""
        losses, misses = means_of(self.losses), means_of(self.wrong)
        best = min(losses, key=lambda size: (losses[size], size))
        tolerance, least = TOLERANCE[prefer], min(misses.values())
        n = int(self.losses[best].shape[0])
        keen = min(1.0, math.sqrt(allowed.many / n))
        few = max(keen * allowed.misses, _SAMPLES / n) * (1 + _ROUNDING)

        def as_good(size: int) -> bool:
            spread = max(spread_of(self.losses[size] - self.losses[best]), keen * allowed.slight * losses[best])
            return losses[size] - losses[best] <= tolerance * spread and misses[size] - least <= tolerance * few

        return next((size for size in sorted(losses) if as_good(size)), best)

    def without(self, size: Any) -> Sizes:
        """All but one of them."""
        return Sizes(*({key: found[key] for key in found if key != size} for found in (self.losses, self.wrong)))

    def trace(self, grid: KernelGrid, at: int, size: int) -> Trace:
        """The errors at the width that was taken, infinite elsewhere."""
        sizes = sorted(self.losses)
        error, spread = ([[math.inf] * len(sizes) for _ in grid.kernels] for _ in range(2))
        means = means_of(self.losses)
        error[at] = [means[s] for s in sizes]
        spread[at] = [spread_of(self.losses[s]) for s in sizes]
        axes: dict[str, tuple[float, ...]] = {"width": grid.widths, "n_vectors": tuple(sizes)}
        chosen = (at, sizes.index(size))
        return Trace(axes, to_numpy(error), to_numpy(spread), chosen, measure="held-out logarithmic loss")


def means_of(shares: dict[Any, Array]) -> dict[Any, float]:
    """Means by size, from the shares of all samples in them."""
    every = namespace(*shares.values()).stack(list(shares.values()))
    return dict(zip(shares, to_numpy(namespace(every).sum(every, axis=1)).tolist()))


def spread_of(shares: Array) -> float:
    """Standard error of a mean, from the shares of all samples in it."""
    xp = namespace(shares)
    centered = shares - xp.sum(shares) / int(shares.shape[0])
    return math.sqrt(float(xp.vecdot(centered, centered)))
