"""Candidates on rows that they have not seen, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewkern.learn.climb import Candidate, Kind, Sizes, climb
from fewkern.learn.objective import Geometry, Rows, coefficients, values
from fewkern.learn.policy import Policy
from fewkern.learn.start import Start

Host = np.ndarray[Any, Any]
Key = tuple[Kind, int]
# Parts into which the rows held out are cut where there is one fold: each is judged at settings that others chose.
_PARTS = 2
# An error of this share of the variance is none: the tolerance is relative to it at least.
_NEGLIGIBLE = 1e-3


@dataclass
class Comparison:
    """Predictions and errors of every candidate on the rows held out, fold by fold."""

    policy: Policy
    sizes: Sizes
    rows: list[Host] = field(default_factory=list)
    """Positions of the rows held out."""
    predicted: list[dict[Key, Host]] = field(default_factory=list)
    """Values of every candidate there, shape ``(n, q)``."""
    errors: list[dict[Key, Host]] = field(default_factory=list)
    """Squared errors of every candidate there, summed over the targets, shape ``(n,)``."""
    candidates: list[dict[Key, Candidate]] = field(default_factory=list)
    weights: list[Host] = field(default_factory=list)
    variance: float = 1.0
    """Weighted mean squared error of a constant."""

    @property
    def keys(self) -> list[Key]:
        """Candidates that every fold has."""
        return [key for key in self.errors[0] if all(key in fold for fold in self.errors)]

    def table(self, keep: Host | None = None) -> tuple[dict[Key, Host], Host]:
        """Errors of every candidate and weights, over all folds or the rows ``keep`` of all."""
        weights = np.concatenate(self.weights)
        every = {key: np.concatenate([fold[key] for fold in self.errors]) for key in self.keys}
        if keep is None:
            return every, weights
        return {key: errors[keep] for key, errors in every.items()}, weights[keep]

    def choose(self, leniency: float, keep: Host | None = None) -> Key:
        """The smallest candidate that the best one does not beat clearly.

        Clearly is by ``policy.proof`` standard errors of the paired difference, and by more than every halving may
        cost: the share ``policy.tolerance`` of the best one's gain times its error, both times ``leniency``. Vectors
        that the labels have moved must beat all others by ``policy.proof``; else they are not compared at all.
        """
        errors, weights = self.table(keep)
        share = weights / weights.sum()
        means = {key: float(share @ error) for key, error in errors.items()}

        def proven(other: Key, best: Key) -> float:
            """What the other one may lose before that is proven."""
            gap = errors[other] - errors[best]
            return self.policy.proof * math.sqrt(float(share**2 @ (gap - share @ gap) ** 2))

        best = min(means, key=lambda key: means[key])
        calm = {key: mean for key, mean in means.items() if key[0] is not Kind.MOVED}
        if best not in calm and calm:
            rival = min(calm, key=lambda key: calm[key])
            if calm[rival] - means[best] <= proven(rival, best):
                means, best = calm, rival
        least = means[best]
        unit = max(1.0 - least / self.variance, 0.0) * least + _NEGLIGIBLE * self.variance

        def allowed(key: Key) -> float:
            halvings = math.log2(best[1] / key[1])
            cost = max(self.policy.tolerance * unit * halvings, proven(key, best))
            return leniency * cost if halvings > 0 else 0.0

        inside = [key for key in means if means[key] - least <= allowed(key)]
        return min(inside, key=lambda key: (key[1], means[key]))

    def held_out(self, leniency: float) -> tuple[Host, Host]:
        """Positions of the rows held out, and the values there of candidates that the other parts chose."""
        parts = np.concatenate([np.full(len(part), k) for k, part in enumerate(self.rows)])
        if len(self.rows) == 1:
            parts = np.arange(len(parts)) % _PARTS
        every = {key: np.concatenate([fold[key] for fold in self.predicted]) for key in self.keys}
        found = np.empty_like(next(iter(every.values())))
        for part in np.unique(parts):
            own = parts == part
            found[own] = every[self.choose(leniency, ~own)][own]
        return np.concatenate(self.rows), found


def compare(
    rows: Rows,
    folds: list[tuple[Any, Any]],
    start: Start,
    sizes: Sizes,
    policy: Policy,
    step: Callable[[int], None],
) -> Comparison:
    """All candidates on all folds."""
    variance = float(np.sum(rows.mean((rows.Y - rows.mean(rows.Y)) ** 2)))
    found = Comparison(policy, sizes, variance=variance or 1.0)  # all targets are equal
    for number, (fitted, held) in enumerate(folds):
        _compare_fold(found, rows.take(fitted), rows.take(held), start)
        found.rows.append(np.asarray(held))
        step(number + 1)
    return found


def _compare_fold(found: Comparison, fitted: Rows, held: Rows, start: Start) -> None:
    policy = found.policy
    low, high = fitted.Y.min(axis=0), fitted.Y.max(axis=0)
    seen: dict[int, tuple[Geometry, Host, Host]] = {}  # with the geometry, so that no other one gets its id

    def judged(geometry: Geometry) -> tuple[Host, Host]:
        """Values on the rows held out, and their squared errors within the range of the targets."""
        if id(geometry) not in seen:
            predicted = values(held, geometry, *coefficients(fitted, geometry, policy))
            errors = np.sum((np.clip(predicted, low, high) - held.Y) ** 2, axis=1)
            seen[id(geometry)] = geometry, predicted, errors
        return seen[id(geometry)][1:]

    def error(geometry: Geometry) -> float:
        return float(held.mean(judged(geometry)[1]))

    predicted, errors, candidates = {}, {}, {}
    for candidate in climb(fitted, start, found.sizes, policy, error):
        if not found.sizes.asked(candidate.size):
            continue
        predicted[candidate.key], errors[candidate.key] = judged(candidate.geometry)
        candidates[candidate.key] = candidate
    found.predicted.append(predicted)
    found.errors.append(errors)
    found.candidates.append(candidates)
    found.weights.append(held.weights)
