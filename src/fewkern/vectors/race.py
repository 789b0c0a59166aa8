"""Which of several candidates is best on samples that they have not seen: a race over the folds (methods F14).

Clearly worse candidates are dropped on the way, and those that a smaller one is ahead of, so that most folds fit only a
few. In the end the smallest candidate within some standard errors *of the paired difference* from the best is taken;
vectors that saw the labels must be better by more than that (``PROOF``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewkern.backend.namespace import Array, namespace
from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples

__all__ = ["Candidate", "FoldModel", "Race", "Score"]

# Standard errors by which vectors that saw the labels must be better than those that did not.
PROOF = 1.0
# ... unless those are more than this many times the largest number that was moved: they then win only by being better,
# or a larger budget, which adds nothing but unrefined vectors, could make a model larger and worse.
OUT_OF_REACH = 2.0
# A difference of this share of the error is none, however certain: two models that nearly agree have a paired
# difference of nearly no spread.
NEGLIGIBLE = 0.02


@dataclass(frozen=True)
class Candidate:
    """One way to a model."""

    n_vectors: int
    moved: bool = False
    """Whether the vectors are distilled from those of the unrefined model, rather than samples."""
    n_iter: int = 0
    """Steps that the labels then move them."""

    @property
    def path(self) -> tuple[int, bool]:
        """What candidates have in common that one search passes through."""
        return self.n_vectors, self.moved


@dataclass(frozen=True)
class Score:
    """What the folds say of a candidate."""

    candidate: Candidate
    error: float
    """Mean squared held-out error, summed over the outputs."""
    excess: float
    """Mean difference to the best candidate."""
    spread: float
    """Standard error of that difference."""

    def within(self, limit: float) -> bool:
        """Whether the candidate is as good as the best, give or take ``limit`` standard errors."""
        return self.excess <= max(limit * self.spread, NEGLIGIBLE * (self.error - self.excess))


@dataclass(frozen=True)
class FoldModel:
    """A model, the samples that it was fitted to, and the positions of those that judge it."""

    expansion: KernelExpansion
    fitted: Samples
    judged: Array


class Race:
    """Held-out errors of the candidates that are still running."""

    def __init__(self, candidates: list[Candidate], forced: bool = False) -> None:
        self.running, self.forced = list(candidates), forced
        self._models: dict[Candidate, list[FoldModel]] = {c: [] for c in candidates}
        self._values: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self._errors: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self._targets: list[Array] = []
        self._weights: list[Array] = []

    def paths(self) -> list[list[Candidate]]:
        """Candidates that one search passes through, in their order."""
        names = dict.fromkeys(c.path for c in self.running)
        return [[c for c in self.running if c.path == name] for name in names]

    def begin(self, targets: Array, weights: Array) -> None:
        """The next held-out samples."""
        self._targets.append(targets)
        self._weights.append(weights)

    def judge(self, candidate: Candidate, model: FoldModel, values: Array) -> None:
        """Note what a candidate says of the held-out samples."""
        self._models[candidate].append(model)
        self._values[candidate].append(values)
        self._errors[candidate].append(namespace(values).sum((values - self._targets[-1]) ** 2, axis=1))

    def scores(self, among: list[Candidate] | None = None) -> tuple[Score, ...]:
        """Candidates against the best of them, best first."""
        among = self.running if among is None else among
        xp, share = namespace(self._targets[0]), self._share(self._weights)
        errors = {c: xp.concat(self._errors[c]) for c in among}
        best = min(errors.values(), key=lambda error: float(share @ error))
        found = [Score(c, float(share @ error), *_paired(error, best, share)) for c, error in errors.items()]
        return tuple(sorted(found, key=lambda s: s.error))

    def drop(self, hopeless: float, ahead: float) -> None:
        """Candidates leave that are clearly worse than the best, or than one that would be taken before them.

        The unrefined one never leaves. Where the vectors must move, they are compared among themselves.

        Parameters
        ----------
        hopeless : float
            Standard errors behind the best.
        ahead : float
            Standard errors behind one that is no larger, and saw no more of the labels: it would have to be overtaken.
        """
        scores = self.scores(self._eligible())
        kept = {s.candidate for s in scores if s.within(hopeless) and not self._outrun(s, scores, ahead)}
        self.running = [c for c in self.running if c in kept or not c.moved]

    def _outrun(self, score: Score, scores: tuple[Score, ...], ahead: float) -> bool:
        own, xp = score.candidate, namespace(self._targets[0])
        better = (s for s in scores if s.error < score.error and _preferred(s.candidate, own))
        rival = next(better, None)  # the best of them
        if rival is None:
            return False
        error, least = (xp.concat(self._errors[c]) for c in (own, rival.candidate))
        excess, spread = _paired(error, least, self._share(self._weights))
        return excess > ahead * spread

    def _eligible(self) -> list[Candidate]:
        return [c for c in self.running if not self.forced or c.moved]

    def choose(self, tolerance: float) -> Candidate:
        """The candidate with the fewest vectors that is as good as the best.

        Candidates whose vectors saw the labels only count where all others of about their size are clearly worse.
        """
        eligible = self._eligible()
        reach = OUT_OF_REACH * max((c.n_vectors for c in self._values if c.n_iter > 0), default=math.inf)
        quiet = [
            s.candidate
            for s in self.scores(eligible)
            if s.candidate.n_iter == 0 and s.candidate.n_vectors <= reach and s.within(PROOF)
        ]
        good = [s for s in self.scores(quiet or eligible) if s.within(tolerance)]
        return min(good, key=lambda s: (s.candidate.n_vectors, s.error)).candidate

    def cross_chosen(self, tolerance: float) -> Array:
        """Values for the held-out samples of every part, by the candidate that the other parts choose."""
        count = len(self._targets)
        if count == 1:
            return self.values(self.choose(tolerance))
        parts = [self._values[self._without(k).choose(tolerance)][k] for k in range(count)]
        return namespace(parts[0]).concat(parts, axis=0)

    def _without(self, part: int) -> Race:
        """The race of those still running as if one part had not been judged."""
        rest = Race(self.running, self.forced)
        for k in (k for k in range(len(self._targets)) if k != part):
            rest.begin(self._targets[k], self._weights[k])
            for candidate in self.running:
                rest.judge(candidate, self._models[candidate][k], self._values[candidate][k])
        return rest

    def values(self, candidate: Candidate) -> Array:
        """What a candidate said of the held-out samples of all parts."""
        parts = self._values[candidate]
        return namespace(parts[0]).concat(parts, axis=0)

    def models(self, candidate: Candidate) -> tuple[FoldModel, ...]:
        """A candidate in every fold."""
        return tuple(self._models[candidate])

    def _share(self, weights: list[Array]) -> Array:
        """Weights of held-out samples, summing to one."""
        xp = namespace(weights[0])
        w = xp.concat(weights)
        return w / xp.sum(w)


def _preferred(one: Candidate, other: Candidate) -> bool:
    """Whether, with the same error, the first is taken: it is no larger, and saw no more of the labels."""
    return one.n_vectors <= other.n_vectors and (one.n_iter == 0 or other.n_iter > 0)


def _paired(error: Array, best: Array, share: Array) -> tuple[float, float]:
    """Mean of the differences and its standard error."""
    difference = error - best
    mean = float(share @ difference)
    return mean, math.sqrt(float((share * share) @ ((difference - mean) ** 2)))
