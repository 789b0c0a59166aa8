"""What a search by leave-one-out compares, and what it prefers (methods F9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fewkern.arrays.namespace import namespace
from fewkern.core.kernel import Kernel
from fewkern.core.path import TOLERANCE
from fewkern.core.samples import Samples
from fewkern.select.leave_one_out import LARGE
from fewkern.select.selection import Selecting

__all__ = ["FIRST_LENGTHS", "RIDGES", "STEPS_ABOVE", "STEPS_BELOW", "Searching"]

# Ridges that are compared, in units of the mean of k(x, x). Without any ridge coefficients can grow until nothing of
# the sum is left but rounding.
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Without a budget a path has one vector for _SAMPLES_PER_VECTOR samples at first, but not fewer or more than
# FIRST_LENGTHS (and at most half of the samples). It goes on while that pays: to the larger of these lengths, to a
# tenth of the samples, or half of them for "accurate", and _LONGEST at most.
FIRST_LENGTHS, _SAMPLES_PER_VECTOR, _LONGEST = (50, 100), 8, 1000
_SHARE = {"accurate": 0.5, "balanced": 0.1, "sparse": 0.1}
# On many samples only length scales near the best of a few are looked at: one step above it, two below, because more
# samples and longer paths allow narrower kernels.
STEPS_BELOW, STEPS_ABOVE = 2, 1


@dataclass(frozen=True)
class Searching:
    """What a search compares, and what it prefers."""

    how: Selecting
    ridges: tuple[float, ...]
    """In units of the kernel."""
    limit: int
    """Length of every path at first."""
    ceiling: int
    """While the best model lies at the end of its path, the paths that compete with it are continued to twice the
    length, up to this one, as long as that lowers the error by half a standard error."""
    tolerance: float | None
    """Standard errors that a smaller model may lose; None takes the whole of the path with the best end."""

    @classmethod
    def automatic(
        cls, how: Selecting, n: int, *, n_vectors: Any, max_vectors: Any, ridge: Any, prefer: str
    ) -> Searching:
        """The search that the parameters of an estimator describe, for ``n`` samples.

        An automatic ridge is in units of the mean of ``k(x, x)``: :meth:`in_units_of` makes a number of it.
        """
        ridges = RIDGES if ridge == "auto" else (float(ridge),)
        if n_vectors is not None:
            return cls(how, ridges, min(int(n_vectors), n), 0, None)
        if max_vectors is not None:
            return cls(how, ridges, min(int(max_vectors), n), 0, TOLERANCE[prefer])
        half = max(1, n // 2)
        first = max(FIRST_LENGTHS[0], min(n // _SAMPLES_PER_VECTOR, FIRST_LENGTHS[1]))
        ceiling = max(min(FIRST_LENGTHS[1], half), min(_LONGEST, int(_SHARE[prefer] * n)))
        return cls(how, ridges, min(first, half), ceiling, TOLERANCE[prefer])

    def n_paths(self, n_kernels: int, n: int) -> int:
        """How many paths :func:`automatic_model` follows or continues at most, those of all ridges together.

        On many samples, ``n``, the vectors are chosen once more, among all.
        """
        rounds, limit = 1, self.limit
        while limit < self.ceiling:
            rounds, limit = rounds + 1, min(2 * limit, self.ceiling)
        if n <= LARGE:
            return rounds * n_kernels
        return rounds * min(n_kernels, STEPS_BELOW + 1 + STEPS_ABOVE) + 1

    def in_units_of(self, kernel: Kernel, samples: Samples) -> Searching:
        """The same search with the grid of ridges times the mean of ``k(x, x)``: units of the data do not matter."""
        if len(self.ridges) == 1:  # a number that was given
            return self
        diag = kernel.diag(samples.X)
        scale = float(namespace(diag).mean(diag))
        return replace(self, ridges=tuple(ridge * scale for ridge in self.ridges)) if scale > 0 else self
