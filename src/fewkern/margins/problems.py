"""Which hyperplanes a recursion looks for: between classes, or a tube around targets (RSVM; methods A1, A7)."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.namespace import Array, namespace, take_rows
from fewkern.core.samples import Samples
from fewkern.margins.hinge import HingeProblem, hinge_at_zero
from fewkern.margins.spaces import Points

__all__ = ["MarginProblem", "MarginTask", "class_problems", "tube_problem"]


@dataclass(frozen=True)
class MarginProblem:
    r"""One hyperplane: :math:`\min \frac12 |w|^2 + \sum_k C_k (h_k - s_k (\langle w, x_{r_k} \rangle + b))_+`.

    ``rows`` names the samples of the terms; a sample may occur twice (regression) or not at all (one class against
    one).
    """

    rows: Array
    signs: Array
    targets: Array
    C: Array

    def cap(self) -> float:
        """Value at ``w = 0``, which no step exceeds (methods A3.3)."""
        return hinge_at_zero(self.signs, self.targets, self.C)

    def on(self, space: Points) -> HingeProblem:
        """The problem on the samples as they are in ``space``."""
        return HingeProblem(space.subset(self.rows), self.signs, self.targets, self.C)


def class_problems(codes: Array, n_classes: int, C: Array, strategy: str = "ovr") -> list[MarginProblem]:
    """Two classes against each other (one problem), each against the rest ("ovr"), or all pairs ("ovo").

    Parameters
    ----------
    codes : integer array of shape (n,)
        Classes as 0, 1, ...
    n_classes : int
    C : array of shape (n,)
        Box constants; samples with 0 are left out.
    strategy : {"ovr", "ovo"}
        Read only with three classes or more.
    """
    xp = namespace(C)
    if n_classes == 2:
        pairs: list[tuple[int, int | None]] = [(1, 0)]
    elif strategy == "ovr":
        pairs = [(k, None) for k in range(n_classes)]
    else:
        pairs = [(k, j) for k in range(n_classes) for j in range(k)]
    problems = []
    for up, down in pairs:
        taking_part = C > 0 if down is None else (C > 0) & ((codes == up) | (codes == down))
        rows = xp.nonzero(taking_part)[0]
        box = take_rows(C, rows)
        signs = xp.where(take_rows(codes, rows) == up, xp.ones_like(box), -xp.ones_like(box))
        problems.append(MarginProblem(rows, signs, xp.ones_like(box), box))
    return problems


def tube_problem(y: Array, C: Array, epsilon: float) -> MarginProblem:
    """Epsilon-insensitive regression as hinges: every sample pushes from above and from below (methods A7)."""
    xp = namespace(C)
    rows = xp.nonzero(C > 0)[0]
    y, C = take_rows(y, rows), take_rows(C, rows)
    one = xp.ones_like(C)
    return MarginProblem(
        xp.concat([rows, rows]),
        xp.concat([one, -one]),
        xp.concat([y - epsilon, -y - epsilon]),
        xp.concat([C, C]),
    )


@dataclass(frozen=True)
class MarginTask:
    """Hyperplanes between classes, or a tube around targets, for any samples."""

    C: float
    """Weight of the hinges; those of the samples multiply it."""
    strategy: str = "ovr"
    """Of three classes or more: each against the rest, or "ovo", all pairs."""
    epsilon: float | None = None
    """Half-width of the tube around targets; None where there are classes."""

    def problems(self, samples: Samples) -> list[MarginProblem]:
        """The hyperplanes to find."""
        C = self.C * samples.weights
        if self.epsilon is None:
            return class_problems(samples.codes, samples.n_classes, C, self.strategy)
        targets = samples.targets
        assert targets is not None
        return [tube_problem(namespace(C).astype(targets[:, 0], C.dtype), C, self.epsilon)]
