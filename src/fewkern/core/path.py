"""How a choice was made, the loop that takes things out one after the other, and why it ended: for every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any, Generic, TypeVar

from fewkern.arrays.namespace import Array, asarray_like, namespace, to_numpy
from fewkern.arrays.storable import storable

Record = TypeVar("Record")

# What the parameter ``prefer`` means. Estimators of the papers: how many standard errors a smaller model may lose
# against the best one. The learner: how many times ``Policy.judge.tolerance`` half the size may cost. It has no
# "accurate": with twice the steps and 900 samples as vectors the error was the same (12.05 for 11.98%, 20.5 for 20.2),
# with two to three times the vectors.
TOLERANCE = {"accurate": 0.0, "balanced": 0.5, "sparse": 1.0}
LENIENCY = {"balanced": 1.0, "sparse": 3.0}
# A size beyond this share of its axis counts as the end of the axis.
_NEAR_END = 0.9
# An error has stopped falling when it falls by a smaller share than this of its decrease so far.
_LEAST_FALL = 0.01


@storable
class Stop(StrEnum):
    """Why a loop ended: the values of every ``stop_``.

    Examples
    --------
    >>> from fewkern.core.path import Stop
    >>> Stop.RANK, Stop.RANK == "rank"
    ('rank', True)
    """

    LIMIT = "limit"
    """The budget (vectors or components) is used up."""
    RANK = "rank"
    """Nothing is left that is linearly independent of what was taken."""
    FITNESS = "fitness"
    """The fitness that was asked for is reached."""
    SIZE = "size"
    """A smaller model than the largest one that was compared is good enough."""
    FLAT = "flat"
    """No direction with a margin is left."""
    FADED = "faded"
    """What is left of the samples is too short to matter."""
    PENALTY = "penalty"
    """A penalty leaves nothing of the next direction."""
    ERROR = "error"
    """The error stopped falling."""
    CONVERGED = "converged"
    """The criterion fell below the tolerance."""
    MAX_ITER = "max_iter"
    """The number of iterations is used up; the criterion did not fall below the tolerance."""
    PRECISION = "precision"
    """No further progress is possible in this floating-point precision."""
    GIVEN = "given"
    """There was nothing to choose."""
    INSIDE = "inside"
    """The best setting lies inside those that were compared."""
    EDGE = "edge"
    """The best setting is the first or the last one that was compared."""
    EXHAUSTED = "exhausted"
    """No candidate is left that may enter."""

    def __repr__(self) -> str:
        return repr(self.value)


@storable(check=lambda path: path.check())
@dataclass(frozen=True)
class Path:
    """Error of every setting that was compared, and which one was taken.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.path import Path
    >>> error = np.array([[0.5, 0.2, 0.25], [0.5, 0.3, 0.1]])
    >>> path = Path({"length_scale": (1.0, 2.0), "n_vectors": (0, 1, 2)}, error, 0.1 * error, chosen=(1, 2))
    >>> path.setting
    {'length_scale': 2.0, 'n_vectors': 2}
    >>> path.open_end
    True
    """

    axes: dict[str, tuple[float, ...]]
    """Name and values of every axis of ``error``, in order."""
    error: Array
    """One entry per combination of settings; infinite where a path was not followed."""
    spread: Array
    """Standard error of ``error``."""
    chosen: tuple[int, ...]
    """Position that was taken."""
    size: Array | None = None
    """Number of vectors of every setting, where no axis is ``n_vectors``."""
    measure: str = "mean squared leave-one-out error"
    """What ``error`` is, in words: the label of a picture."""
    objectives: tuple[float, ...] = field(default=())
    """What the final fit minimized, after every step."""

    def check(self) -> None:
        """Raise a ValueError if the axes do not belong to the errors, or the chosen place is not on them."""
        shape = tuple(len(values) for values in self.axes.values())
        arrays = [self.error, self.spread, *([] if self.size is None else [self.size])]
        if any(tuple(array.shape) != shape for array in arrays) or len(self.chosen) != len(shape):
            raise ValueError(f"a path has axes of lengths {shape}, but arrays of other shapes.")
        if not all(0 <= at < length for at, length in zip(self.chosen, shape)):
            raise ValueError(f"a path has axes of lengths {shape}, but the chosen place is {self.chosen}.")

    @property
    def setting(self) -> dict[str, float]:
        """The value that was taken on every axis."""
        return {name: values[at] for (name, values), at in zip(self.axes.items(), self.chosen)}

    @property
    def curve(self) -> tuple[Array, Array, Array]:
        """Sizes, errors and their standard errors along the last axis, at the chosen place of all others."""
        xp = namespace(self.error)
        at = (*self.chosen[:-1], slice(None))
        last = list(self.axes)[-1]
        if self.size is not None:
            sizes = self.size[at]
        else:
            sizes = asarray_like(list(self.axes[last]), self.error, dtype=xp.float64)
        return sizes, self.error[at], self.spread[at]

    @property
    def open_end(self) -> bool:
        """Whether the error was still falling where the budget of vectors ended: a larger budget would pay.

        The least error and the model that was taken lie at the end of the path, and the last quarter of the path has
        lowered the error by more than a standard error, and by more than a hundredth of what the whole path has.
        """
        if "n_vectors" not in self.axes or len(self.axes["n_vectors"]) < (2 if "origin" in self.axes else 3):
            return False
        every, spread = (to_numpy(values).tolist() for values in self.curve[1:])
        tried = [at for at, error in enumerate(every) if isfinite(error)]
        if len(tried) < 2 or self.chosen[-1] not in tried:
            return False
        errors, last, chosen = [every[at] for at in tried], len(tried) - 1, tried.index(self.chosen[-1])
        best = errors.index(min(errors))
        if best < _NEAR_END * last or chosen < _NEAR_END * best:
            return False
        fall = errors[last - max(1, last // 4)] - errors[best]
        return bool(fall > max(spread[tried[best]], _LEAST_FALL * (errors[0] - errors[best])))


def smallest_within(error: Array, size: Array, allowance: Array | float) -> tuple[int, ...]:
    """Position of the smallest model whose error is at most ``allowance`` above the least one.

    Ties go to the smaller error, then to the earlier position. This is the rule "within a number of standard errors" of
    every automatic choice; ``allowance`` may be an array where the standard error is that of a difference.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.path import smallest_within
    >>> smallest_within(np.array([0.30, 0.21, 0.20]), np.array([1, 5, 50]), 0.02)
    (1,)
    """
    xp = namespace(error)
    flat, sizes = to_numpy(xp.reshape(error, (-1,))), to_numpy(xp.reshape(size, (-1,)))
    bound = to_numpy(xp.reshape(xp.zeros_like(error) + allowance, (-1,))) + flat.min()
    inside = (flat <= bound).nonzero()[0]
    if not inside.shape[0]:  # every error is NaN
        inside = asarray_like([int(flat.argmin())], flat)
    smallest = inside[sizes[inside] == sizes[inside].min()]
    at = int(smallest[flat[smallest].argmin()])
    position = []
    for length in reversed(error.shape):
        at, here = divmod(at, int(length))
        position.append(here)
    return tuple(reversed(position))


@dataclass(frozen=True)
class Peeled(Generic[Record]):
    """All records, one per step, and why the loop ended."""

    records: tuple[Record, ...]
    stop: Stop


def peel(state: Any, limit: int, step: Callable[[int], None] = lambda _: None) -> Peeled[Any]:
    """Repeat ``state.remove(state.find())`` until ``find`` returns a :class:`Stop` or there are ``limit`` records.

    Hyperplanes (recursive SVM), directions (graph embedding) and regressors (forward selection) are taken out by this
    loop: in all of them, what was taken changes what is left. ``remove`` returns one record per step (a block of
    directions gives several); ``step`` is called with their number.

    Examples
    --------
    >>> from fewkern.core.path import Stop, peel
    >>> class Numbers:
    ...     def __init__(self, values): self.left = list(values)
    ...     def find(self): return max(self.left) if self.left else Stop.RANK
    ...     def remove(self, value): self.left.remove(value); return [value]
    ...
    >>> peel(Numbers([3, 1, 2]), limit=2).records
    (3, 2)
    """
    records: list[Any] = []
    while len(records) < limit:
        found = state.find()
        if isinstance(found, Stop):
            return Peeled(tuple(records), found)
        records.extend(state.remove(found))
        step(len(records))
    return Peeled(tuple(records), Stop.LIMIT)
