"""The models that are compared on rows that they have not seen, and the choice among them.

Vectors are samples, move to imitate a model of samples, or are moved by the labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from fewkern.core.path import smallest_within
from fewkern.learn.geometry import Geometry, Rows, coefficients, divided, values
from fewkern.learn.moves import Search, move
from fewkern.learn.policy import Policy
from fewkern.learn.start import ROUNDING, Start, choose_ridge

Host = np.ndarray[Any, Any]


class Kind(StrEnum):
    """Where the vectors of a model come from."""

    STILL = "samples"
    """Vectors are samples."""
    DISTILLED = "distilled"
    """Vectors were moved to imitate a model whose vectors are samples; no label was looked at."""
    MOVED = "moved"
    """Vectors were moved by the labels."""


Key = tuple[Kind, int]


@dataclass(frozen=True)
class Candidate:
    """A model that is compared with others."""

    kind: Kind
    size: int
    geometry: Geometry
    samples: Host | None = None
    """Positions of the samples that the vectors are."""

    @property
    def key(self) -> Key:
        """What names the same candidate in every fold."""
        return self.kind, self.size


@dataclass(frozen=True)
class Sizes:
    """Numbers of vectors that are compared; the same in every fold."""

    still: tuple[int, ...]
    ladder: tuple[int, ...]
    least: int
    """Smallest model that may be taken; smaller ones are steps towards it."""
    most_still: int
    """Largest model of samples that may be taken; larger ones only teach."""

    @classmethod
    def of(cls, n: int, n_outputs: int, policy: Policy, fixed: int | None, most: int | None) -> Sizes:
        """The sizes for ``n`` rows; ``fixed`` and ``most`` are the parameters n_vectors and max_vectors."""
        cap = max(1, min(n, int(policy.candidates.still_share * policy.candidates.share * n)))
        still = {min(m, cap) for m in (*policy.candidates.still, policy.candidates.teacher)}
        if fixed is not None:
            own = (*(m for m in policy.candidates.ladder if m < fixed), fixed)
            return cls(tuple(sorted({fixed, *(m for m in still if m > fixed)})), own, fixed, fixed)
        paid = max(policy.candidates.ladder[-1], int(n / policy.candidates.rows_per_vector))
        bound = min(paid, policy.candidates.most_vectors) if most is None else most
        still |= {min(bound, cap)} if most is not None else set()
        top = max(1, min(int(policy.candidates.share * n), bound))
        ladder = [m for m in policy.candidates.ladder if min(n_outputs, top) <= m <= top]
        while ladder and 2 * ladder[-1] <= top:
            ladder.append(2 * ladder[-1])
        if most is not None and top == most and (not ladder or ladder[-1] < top):
            ladder.append(top)
        if len(ladder) < 2:  # half as many say whether the error is still falling
            ladder = sorted({max(1, top // 2), top})
        return cls(tuple(sorted(still)), tuple(ladder), 1, policy.candidates.still[-1] if most is None else most)

    def up_to(self, size: int) -> Sizes:
        """The same with a ladder that ends at this size: what one fold lacks is not compared."""
        return replace(self, ladder=tuple(m for m in self.ladder if m <= size) or self.ladder[:1])

    def asked(self, kind: Kind, size: int) -> bool:
        """Whether a model of this kind and size may be taken."""
        return self.least <= size and (kind is not Kind.STILL or size <= self.most_still)


def still(rows: Rows, start: Start, size: int, policy: Policy) -> tuple[float, Candidate]:
    """A model whose vectors are samples, with the ridge of least leave-one-out error, and that error."""
    rows = rows.first(policy.rows.still)
    geometry, place = start.geometry(rows, size)
    error, ridge = choose_ridge(rows, geometry, policy)
    return error, Candidate(Kind.STILL, size, replace(geometry, log_ridge=math.log(ridge)), place)


def teacher_of(rows: Rows, start: Start, sizes: Sizes, policy: Policy) -> tuple[Candidate, list[Candidate]]:
    """The candidate of least leave-one-out error among those whose vectors are samples, and all of them.

    A larger size is tried as long as every doubling lowers the error by more than the share ``tolerance`` of it.
    """
    found: list[tuple[float, Candidate]] = []
    for size in sizes.still:
        found.append(still(rows, start, size, policy))
        if len(found) > 1:
            (before, smaller), (after, larger) = found[-2:]
            if after > (1.0 - policy.judge.tolerance * math.log2(larger.size / smaller.size)) * before:
                break
    return min(found, key=lambda pair: pair[0])[1], [candidate for _, candidate in found]


def distilled(rows: Rows, taught: Rows, geometry: Geometry, steps: int, policy: Policy) -> Candidate:
    """Vectors moved to imitate the values of a teacher, the targets of ``taught``; the ridge is that of the labels."""
    geometry = replace(geometry, log_ridge=math.log(policy.start.ridges[2]))
    few = policy.moves.imitation_rows_per_feature
    free = replace(policy, model=replace(policy.model, rows_per_feature=few))  # a teacher has no noise
    geometry = move(taught, geometry, Search(steps, policy.moves.imitation_gain), free)
    _, ridge = choose_ridge(rows.first(policy.rows.still), geometry, policy)
    return Candidate(Kind.DISTILLED, geometry.size, replace(geometry, log_ridge=math.log(ridge)))


def taught_rows(rows: Rows, teacher: Candidate, policy: Policy) -> Rows:
    """The rows with the values of a teacher as targets."""
    W, b = coefficients(rows, teacher.geometry, policy)
    rows = rows.first(policy.rows.still)
    return rows.with_targets(values(rows, teacher.geometry, W, b))


def climb(
    rows: Rows, start: Start, sizes: Sizes, policy: Policy, judge: Callable[[Geometry], float]
) -> Iterator[Candidate]:
    """All candidates on some rows, small ones first; ``judge`` is the error of a geometry on rows held out.

    A rung begins with the better of two geometries, the grown one of the rung before and the distilled one of its own
    size, which is then moved by the labels; half way it is abandoned if it has not reached the least error so far. The
    ladder ends ``patience`` rungs after the least error, but not before it has more vectors than the smallest model of
    samples: a plateau of a few vectors says little.
    """
    rng = np.random.default_rng(start.seed)
    teacher, every = teacher_of(rows, start, sizes, policy)
    yield from every
    taught = taught_rows(rows, teacher, policy)
    to_beat, found = judge(teacher.geometry), list[tuple[float, Geometry]]()
    for size in sizes.ladder:
        least = min((error for error, _ in found), default=math.inf)
        begun: list[Geometry] = []
        # what imitates the teacher cannot be better than models that are better than the teacher
        if size < teacher.size and least > to_beat:
            short = distilled(rows, taught, start.geometry(rows, size)[0], policy.moves.steps, policy)
            yield short
            begun.append(short.geometry)
        if found:
            begun.append(grow(rows, found[-1][1], size, policy, rng))
        if not begun:
            begun.append(start.geometry(rows, size)[0])
        geometry = min(begun, key=judge) if len(begun) > 1 else begun[0]
        enough = size > max(sizes.least - 1, min(policy.candidates.still))
        geometry = _with_all_that_moves(rows, geometry, start, policy, rng)
        geometry = _moved(rows, geometry, least if enough else math.inf, policy, judge)
        yield Candidate(Kind.MOVED, size, geometry)
        found.append((judge(geometry), geometry))
        if enough and len(found) - 1 - int(np.argmin([error for error, _ in found])) >= policy.candidates.patience:
            break
    yield from _with_finer_maps(rows, found, policy, judge)


def _with_all_that_moves(
    rows: Rows, geometry: Geometry, start: Start, policy: Policy, rng: np.random.Generator
) -> Geometry:
    """The geometry with a warp, and with directions where it has enough vectors for them."""
    enough = geometry.size >= policy.candidates.least_for_directions
    if enough and not geometry.directions.shape[1] and rows.T.shape[1] > 1:
        geometry = with_directions(rows, geometry, policy, rng)
    return replace(geometry, warp=geometry.warp or start.warp)


def _moved(
    rows: Rows, geometry: Geometry, to_reach: float, policy: Policy, judge: Callable[[Geometry], float]
) -> Geometry:
    """The geometry moved by the labels; it is left half way if its error on rows held out is above ``to_reach``."""
    search = Search(policy.moves.steps, promising=lambda half_way: judge(half_way) <= to_reach)
    return move(rows.every, geometry, search, policy)


def _with_finer_maps(
    rows: Rows, found: list[tuple[float, Geometry]], policy: Policy, judge: Callable[[Geometry], float]
) -> Iterator[Candidate]:
    """The best moved geometry, moved again with finer maps, if rows are many and its error falls clearly."""
    least, best = min(reversed(found), key=lambda pair: pair[0])
    if best.warp is None:
        return
    parts, rows_per_knot = policy.candidates.pieces, policy.candidates.rows_per_vector
    if 0 < rows_per_knot * parts * len(best.warp.knots) <= rows.every.n:
        finer = replace(best, warp=best.warp.finer(parts))
        finer = _moved(rows, finer, math.nextafter(least, 0.0), policy, judge)
        if judge(finer) < (1.0 - policy.judge.tolerance) * least:
            yield Candidate(Kind.MOVED, finer.size, finer)


def grow(rows: Rows, geometry: Geometry, size: int, policy: Policy, rng: np.random.Generator) -> Geometry:
    """The geometry with new vectors, up to ``size``: rows of large residual, spread out in the current metric."""
    gap = rows.Y - values(rows, geometry, *coefficients(rows, geometry, policy))
    residual = np.einsum("ij,ij->i", gap, gap) * rows.weights
    chance = residual + policy.candidates.residual_floor * residual.mean() + 1e-300
    count, own = size - geometry.size, policy.candidates
    some = rng.choice(
        rows.n, min(max(own.rows_per_new_vector * count, own.least_new_rows), rows.n), False, chance / chance.sum()
    )
    part = rows.take(some)
    T = part.warped(geometry.warp)
    V = part.as_vectors(geometry.warp)
    K = replace(geometry, vectors=V, log_widths=np.zeros(len(some))).columns(T)
    left = 1.0 - np.clip(geometry.columns(T).max(axis=1) ** 2, 0.0, own.most_explained)
    factor, chosen = np.zeros((len(some), count)), []
    for j in range(min(count, len(some))):
        k = int(np.argmax(left * residual[some]))
        chosen.append(k)
        column = K[:, k] - factor[:, :j] @ factor[k, :j]
        factor[:, j] = column / math.sqrt(max(float(1.0 - factor[k, :j] @ factor[k, :j]), 1e-6))
        unexplained = 1.0 - np.einsum("ij,ij->i", factor[:, : j + 1], factor[:, : j + 1])
        left = np.maximum(np.minimum(left, unexplained), ROUNDING)
        left[chosen] = -1.0
    widths = np.concatenate([geometry.log_widths, np.full(len(chosen), np.median(geometry.log_widths))])
    return replace(geometry, vectors=np.concatenate([geometry.vectors, V[chosen]]), log_widths=widths)


def with_directions(rows: Rows, geometry: Geometry, policy: Policy, rng: np.random.Generator) -> Geometry:
    """The geometry with the leading eigenvectors of the mean outer product of the function's gradients."""
    W, _ = coefficients(rows, geometry, policy)
    part = rows.take(np.sort(rng.choice(rows.n, min(rows.n, policy.candidates.gradient_rows), replace=False)))
    T, V = part.warped(geometry.warp), geometry.warped_vectors
    K = geometry.columns(T) * np.exp(2.0 * geometry.log_widths)
    squares = np.exp(2.0 * geometry.log_scales)
    slopes = []
    # those that vary most: which outputs these are must not depend on the names of classes
    for output in np.argsort(-np.linalg.norm(W[: geometry.size], axis=0), kind="stable")[
        : policy.candidates.gradient_outputs
    ]:
        A = K * W[: geometry.size, output]
        slopes.append((A @ V - A.sum(axis=1)[:, None] * T) * squares)
    strengths, axes = leading_axes(np.concatenate(slopes), policy.candidates.directions)
    if not len(strengths) or not strengths[-1] > 0:
        return geometry
    real = strengths > ROUNDING * strengths[-1]
    strengths, axes = strengths[real], axes[:, real]
    unit = policy.candidates.direction_length * float(np.mean(np.exp(geometry.log_scales)))
    return replace(geometry, directions=axes * (unit * np.sqrt(strengths / strengths[-1])))


def leading_axes(A: Host, count: int) -> tuple[Host, Host]:
    """The ``count`` largest eigenvalues of ``A'A``, ascending, and their eigenvectors, from the smaller Gram matrix."""
    rows, columns = A.shape
    count = min(count, rows, columns)
    if columns <= rows:
        squares, axes = np.linalg.eigh(A.T @ A)
        return np.maximum(squares[columns - count :], 0.0), axes[:, columns - count :]
    squares, left = np.linalg.eigh(A @ A.T)
    squares = np.maximum(squares[rows - count :], 0.0)
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
    return squares, (A.T @ left[:, rows - count :]) / lengths


@dataclass(frozen=True)
class Comparison:
    """The rows held out, fold after fold, and the candidates that every fold has there."""

    policy: Policy
    rows: Host
    """Positions of the rows."""
    weights: Host
    parts: Host
    """The fold of every row, from zero."""
    candidates: dict[Key, list[Candidate]]
    """Of every fold."""
    predicted: dict[Key, Host]
    """Values, shape ``(n, q)``."""
    errors: dict[Key, Host]
    """Squared errors, summed over the targets, shape ``(n,)``."""
    variance: float
    """Weighted mean squared error of a constant."""

    def choose(self, leniency: float, keep: Host | slice = slice(None)) -> Key:
        """The smallest candidate that the best one does not beat clearly.

        Clearly is by ``proof`` standard errors of the paired difference, and by more than every halving may cost: the
        share ``tolerance`` of the best one's gain times its error, both times ``leniency``, and times ``samples_price``
        where the best one is a model of samples. Vectors that the labels have moved must beat all others by ``proof``;
        else the best of the others counts as the best. Only the rows ``keep`` of those held out are looked at.
        """
        errors = {key: error[keep] for key, error in self.errors.items()}
        share = self.weights[keep] / self.weights[keep].sum()
        means = {key: float(share @ error) for key, error in errors.items()}

        def proven(other: Key, best: Key) -> float:
            """What the other one may lose before that is proven."""
            gap = errors[other] - errors[best]
            return self.policy.judge.proof * math.sqrt(float(share**2 @ (gap - share @ gap) ** 2))

        best = min(means, key=lambda key: means[key])
        calm = {key: mean for key, mean in means.items() if key[0] is not Kind.MOVED}
        if best not in calm and calm:
            rival = min(calm, key=lambda key: calm[key])
            if calm[rival] - means[best] <= proven(rival, best):
                best = rival  # smaller ones may still be taken in its place
        least = means[best]
        unit = max(1.0 - least / self.variance, 0.0) * least + self.policy.judge.negligible * self.variance

        def allowed(key: Key) -> float:
            halvings = math.log2(best[1] / key[1])
            cost = max(self.policy.judge.tolerance * unit * halvings, proven(key, best))
            if best[0] is Kind.STILL:
                cost *= self.policy.judge.samples_price
            return leniency * cost if halvings > 0 else 0.0

        keys = [key for key in means if key == best or key[1] < best[1]]
        sizes, allowance = np.array([size for _, size in keys]), np.array([allowed(key) for key in keys])
        return keys[smallest_within(np.array([max(means[key], least) for key in keys]), sizes, allowance)[0]]

    def held_out(self, leniency: float) -> tuple[Host, Host]:
        """Positions of the rows held out, and the values there of candidates that the other parts chose."""
        parts = self.parts if self.parts.any() else np.arange(len(self.parts)) % 2  # of one fold two halves
        found = np.empty_like(next(iter(self.predicted.values())))
        for part in np.unique(parts):
            own = parts == part
            found[own] = self.predicted[self.choose(leniency, ~own)][own]
        return self.rows, found


def compare(
    rows: Rows,
    folds: list[tuple[Any, Any]],
    start: Start,
    sizes: Sizes,
    policy: Policy,
    step: Callable[[int], None],
) -> Comparison:
    """All candidates on all folds."""
    found = []
    for k, (fitted, held) in enumerate(folds):
        (some, others), warp = divided(rows.of_fold(k), start.warp, fitted, held)
        some = replace(some, beyond=rows.beyond)
        found.append(_compare_fold(some, others, replace(start, warp=warp), sizes, policy))
        sizes = sizes.up_to(max(found[-1], key=lambda key: key[1] * (key[0] is Kind.MOVED))[1])
        step(len(found))
    keys = [key for key in found[0] if all(key in fold for fold in found)]
    candidates = {key: [fold[key][0] for fold in found] for key in keys}
    predicted, errors = ({key: np.concatenate([fold[key][i] for fold in found]) for key in keys} for i in (1, 2))
    variance = float(np.sum(rows.mean((rows.Y - rows.mean(rows.Y)) ** 2))) or 1.0  # zero where all targets are equal
    out = np.concatenate([held for _, held in folds])
    parts = np.repeat(np.arange(len(folds)), [len(held) for _, held in folds])
    return Comparison(policy, out, rows.weights[out], parts, candidates, predicted, errors, variance)


def _compare_fold(
    fitted: Rows, held: Rows, start: Start, sizes: Sizes, policy: Policy
) -> dict[Key, tuple[Candidate, Host, Host]]:
    """Every candidate, with its values and errors on the rows held out."""
    low, high = fitted.Y.min(axis=0), fitted.Y.max(axis=0)
    seen: dict[int, tuple[Geometry, Host, Host]] = {}  # with the geometry, so that no other one gets its id

    def judged(geometry: Geometry) -> tuple[Host, Host]:
        """Values on the rows held out, and their squared errors within the range of the targets."""
        if id(geometry) not in seen:
            predicted = values(held, geometry, *coefficients(fitted.every, geometry, policy))
            errors = np.sum((np.clip(predicted, low, high) - held.Y) ** 2, axis=1)
            seen[id(geometry)] = geometry, predicted, errors
        return seen[id(geometry)][1:]

    def error(geometry: Geometry) -> float:
        return float(held.mean(judged(geometry)[1]))

    every = climb(fitted, start, sizes, policy, error)
    return {
        candidate.key: (candidate, *judged(candidate.geometry)) for candidate in every if sizes.asked(*candidate.key)
    }
