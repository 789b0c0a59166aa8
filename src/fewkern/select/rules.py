"""How the next vectors are found: the residual matrix, and one class per rule that looks at it.

A rule is made once per selection from the residual matrix and a generator; :meth:`PivotRule.block` returns the next
samples in order, with the Cholesky factor of their residual matrix, which :class:`Pool` works out.

To add a rule, write the class and name it in ``RULES``; stops, weights, blocks and continuation follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import divide_where, solve_triangular, subtract_product
from fewkern.arrays.namespace import Array, asarray_like, device, eps, namespace, put, take_rows, to_numpy
from fewkern.core.kernel import Gram

# Pivots that are eliminated together, and by "gain" where it looks at all samples.
_BLOCK, _GAIN_BLOCK = 64, 8
# Means over the samples are exact up to this many, above over this many random ones: those of "gain" (methods F6), and
# that of the images, at which they may be centered.
MEAN_ROWS = 2000
# Candidates that "gain" draws for every pivot of a block; each choice compares all that are left of them.
_GAIN_DRAWS = 5
# "gain" and "uniform" take no candidate whose score is below this share of the best one's: a pivot far below the
# others would multiply their rounding errors by the ratio.
_FLOOR_IN_BEST_SCORES = 1e-2
# The first vector of "greedy" is searched exactly up to this many samples, else among _FIRST_DRAWS random ones,
# which with probability 0.95 include one of the best 5%.
_FIRST_EXACT, _FIRST_DRAWS = 5000, 59
# Samples with k(x, x) below this share of the largest are zero vectors: no candidates, and not in the mean fitness.
_ZERO_DIAGONAL_SHARE = 1e-14
# Relative residual at which a sample depends on the chosen ones, in double and in single precision.
_BASIS_TOL, _BASIS_TOL_SINGLE = 1e-10, 1e-5
# A residual may fall this far below zero, as a share of k(x, x), before the kernel counts as indefinite.
_INDEFINITE_SHARE = 1e-8


@dataclass(frozen=True)
class Pivots:
    """A block of samples to remove, in order, and the Cholesky factor of their residual matrix."""

    samples: list[int]
    factor: Array
    panel: Array | None = None
    """Columns of ``G`` of the pivots, where the search for them has computed these already."""

    def head(self, count: int) -> Pivots:
        """The first ``count`` of them."""
        if count >= len(self.samples):
            return self
        return Pivots(self.samples[:count], self.factor[:count, :count])


class Residual:
    """The kernel matrix with the chosen vectors taken out: ``R = K - G G'``, kept as its diagonal and ``G``."""

    def __init__(self, gram: Gram, weights: Array | None, capacity: int) -> None:
        d, xp = gram.diag, namespace(gram.diag)
        self.gram, self.xp, self.d = gram, xp, d
        self.basis_tol = _BASIS_TOL_SINGLE if eps(d) > _BASIS_TOL else _BASIS_TOL
        self._refuse(d, float(xp.min(d)), _INDEFINITE_SHARE * float(xp.max(xp.abs(d))), "a negative k(x, x)")
        w = xp.ones_like(d) if weights is None else weights
        self.valid = (d > _ZERO_DIAGONAL_SHARE * xp.max(d)) & (w > 0)
        w = xp.where(self.valid, w, 0.0)
        if not bool(xp.any(self.valid)):
            raise ValueError(
                "feature vector selection: every sample is a zero vector of the kernel (k(x, x) = 0), so there is "
                "nothing to select; use another kernel, or center=False."
            )
        self.weight = w / xp.sum(w)
        # divided by the diagonal once, so that scores and fitness are products
        self.inverse = divide_where(self.valid, xp.ones_like(d), d, 0.0)
        self.G = xp.empty((gram.n, capacity), dtype=d.dtype, device=device(d))
        self.chosen: list[int] = []
        self.r, self.J = xp.where(self.valid, d, xp.zeros_like(d)), 0.0
        # smallest relative residual that a pivot had: rounding errors of later residuals are divided by it
        self.least = 1.0

    def _reserve(self, count: int) -> None:
        if count > self.G.shape[1]:
            xp = self.xp
            wider = xp.empty((self.gram.n, max(count, 2 * self.G.shape[1])), dtype=self.d.dtype, device=device(self.d))
            wider[:, : len(self.chosen)] = self.G[:, : len(self.chosen)]
            self.G = wider

    @property
    def score(self) -> Array:
        """``r_i / k_ii``, one minus the local fitness (7b); zero where the sample depends on the chosen ones."""
        score = self.r * self.inverse
        return self.xp.where(score > self.basis_tol, score, 0.0)

    def index(self, values: list[int]) -> Array:
        """Row numbers as an array beside the samples."""
        return asarray_like(values, self.d, dtype=self.xp.int64)

    def among(self, rows: Array, S: Array) -> Array:
        """``R[rows, S]``, with the exact diagonal where ``rows`` and ``S`` name the same sample."""
        xp, L = self.xp, len(self.chosen)
        R = self.gram.block(rows, S)
        if L:
            R = R - take_rows(self.G, rows)[:, :L] @ take_rows(self.G, S)[:, :L].T
        return xp.where(rows[:, None] == S[None, :], take_rows(self.r, rows)[:, None], R)

    def columns(self, S: Array, at_pivots: Array, rows: slice) -> Array:
        """``R[rows, S]``, given the rows ``S`` of ``G``."""
        R = self.gram.columns(S, rows)
        if self.chosen:
            subtract_product(R, self.G[rows, : len(self.chosen)], at_pivots)
        return R

    def remove(self, found: Pivots) -> list[float]:
        """Take a block of pivots out of every row; returns the fitness after every one of them."""
        xp, L, b = self.xp, len(self.chosen), len(found.samples)
        self._reserve(L + b)
        S = self.index(found.samples)
        at_pivots = take_rows(self.G, S)[:, :L]  # to take from a part of G would copy all of it
        gains = xp.zeros((b,), dtype=self.d.dtype, device=device(self.d))
        share = self.weight * self.inverse
        r = xp.empty_like(self.r)
        if found.panel is None:
            # A small triangle whose columns fall below their heads inverts accurately, and a product is all that
            # is left for the many rows.
            inverse = solve_triangular(found.factor, xp.eye(b, dtype=self.d.dtype, device=device(self.d)))
        for rows in row_blocks(self.gram.n, b, like=self.d):
            g = self.columns(S, at_pivots, rows) @ inverse.T if found.panel is None else found.panel[rows, :]
            self.G[rows, L : L + b] = g
            g = g * g
            gains = gains + share[rows] @ g
            r[rows] = self.r[rows] - xp.sum(g, axis=1)
        pivots = xp.linalg.diagonal(found.factor) ** 2 * take_rows(self.inverse, S)
        self.least = min(self.least, float(xp.min(pivots)))
        slack = max(_INDEFINITE_SHARE, 1e3 * eps(r) / max(self.least, self.basis_tol))
        worst = float(xp.min(r * self.inverse))
        self._refuse(r, worst, slack, f"a residual fell to {worst:.2g} of k(x, x)")
        self.chosen += found.samples
        r = xp.maximum(r, xp.zeros_like(r))
        put(r, (S,), xp.zeros_like(gains))
        self.r = xp.where(self.valid, r, 0.0)
        fitness = []
        for gain in to_numpy(gains):
            self.J = min(self.J + float(gain), 1.0)
            fitness.append(self.J)
        return fitness

    def _refuse(self, values: Array, smallest: float, slack: float, what: str) -> None:
        """Errors for a kernel with these values on the diagonal of its (residual) matrix."""
        if not bool(self.xp.all(self.xp.isfinite(values))):
            raise ValueError("feature vector selection: the kernel returned values that are not finite.")
        if smallest < -slack:
            raise ValueError(
                f"feature vector selection: the kernel is not positive semi-definite ({what}); use a kernel that is."
            )


class PivotRule(ABC):
    """Finds the next block of pivots of the residual matrix ``state``; ``rng`` is a generator of NumPy."""

    def __init__(self, state: Residual, rng: Any) -> None:
        self.state, self.rng = state, rng

    @abstractmethod
    def block(self) -> Pivots:
        """The next pivots; asked only while a sample is left that does not depend on the chosen ones."""


class Pool:
    """Elimination inside a small set of candidates, whose residual matrix is at hand.

    The matrix is divided by ``sqrt(k_ii k_jj)``, so that its diagonal is the scores. Only the diagonal follows every
    pivot; a column is brought up to date when it is taken. Pivots come one after the other, with a choice between them:
    all of it is done on the host, so that an accelerator is used once per block.

    Parameters
    ----------
    state : Residual
    candidates : array of shape (c,)
    most : int
        Largest number of pivots that will be taken.
    R : array of shape (c, c) or None
        The residual matrix of the candidates, where it is at hand.

    Attributes
    ----------
    score : array of shape (c,)
        ``r_i / k_ii`` of the candidates; not above ``least`` where a candidate is used up.
    """

    def __init__(self, state: Residual, candidates: Array, most: int, R: Array | None = None) -> None:
        R = state.among(candidates, candidates) if R is None else R
        self.state, self.least = state, state.basis_tol
        self.names = to_numpy(candidates)
        self.xp = namespace(self.names)
        inverse = to_numpy(take_rows(state.inverse, candidates)).astype(self.xp.float64)
        self.unit = self.xp.sqrt(inverse)
        self.R = self.normalized(R)
        self.score = inverse * to_numpy(take_rows(state.r, candidates))
        self.taken: list[int] = []
        self.columns = self.xp.empty((most, self.names.shape[0]), dtype=self.R.dtype)

    def normalized(self, A: Array) -> Array:
        """``A_ij / sqrt(k_ii k_jj)`` for a matrix of the candidates, on the host, in double precision."""
        B = to_numpy(A) * self.unit
        B *= self.unit[:, None]
        return B

    def take(self, j: int) -> Array:
        """Make candidate ``j`` the next pivot; returns its column of the (normalized) factor."""
        done, t = self.columns[: len(self.taken), :], len(self.taken)
        column = self.columns[t, :]
        column[:] = self.R[j, :] - done[:, j] @ done
        column[j] = self.score[j]
        column /= self.score[j] ** 0.5
        self.score -= column * column
        self.taken.append(j)
        return column

    def pivots(self) -> Pivots:
        """What was taken."""
        order = self.taken
        factor = self.xp.tril(self.columns[: len(order), order].T) / self.unit[order, None]
        return Pivots([int(i) for i in self.names[order]], asarray_like(factor, self.state.d, dtype=self.state.d.dtype))


class _Gains:
    """``M = R' diag(w / k) R`` of the candidates while pivots are taken: its diagonal is what the next one may gain.

    With ``c`` the column of the factor, ``c_j^2 = R_jj``, and ``u = (M_j - M_jj c / (2 c_j)) / c_j``, a pivot ``j``
    subtracts ``c u' + u c'``.
    """

    def __init__(self, pool: Pool, M: Array, most: int) -> None:
        self.pool, self.M = pool, pool.normalized(M)
        self.diag = pool.xp.linalg.diagonal(self.M).copy()
        self.u = pool.xp.empty((most, self.M.shape[0]), dtype=self.M.dtype)

    def take(self, j: int) -> None:
        """Make candidate ``j`` the next pivot, in the pool too."""
        t = len(self.pool.taken)
        columns, done = self.pool.columns[:t, :], self.u[:t, :]
        u = self.u[t, :]
        u[:] = self.M[j, :] - done[:, j] @ columns - columns[:, j] @ done
        column = self.pool.take(j)
        root = column[j]
        u -= (0.5 * u[j] / root) * column
        u /= root
        self.diag -= 2.0 * column * u


class Greedy(PivotRule):
    """The paper's rule, lowest local fitness first, in exact blocks (methods F7).

    A block holds the samples of highest score. Pivots are taken inside it while they beat the best sample outside:
    scores outside can only fall, so the order is that of one pivot at a time.
    """

    def block(self) -> Pivots:
        state, xp = self.state, self.state.xp
        if not state.chosen:
            pool = Pool(state, state.index([self._first()]), 1)
            pool.take(0)
            return pool.pivots()
        score = state.score
        order = xp.argsort(-score, stable=True)
        size = min(_BLOCK, int(order.shape[0]))
        outside = float(score[order[size]]) if order.shape[0] > size else -1.0
        pool = Pool(state, xp.sort(order[:size]), size)
        while True:
            best = int(pool.score.argmax())
            height = float(pool.score[best])
            if height <= pool.least or (pool.taken and height <= outside):
                return pool.pivots()
            pool.take(best)

    def _first(self) -> int:
        """The sample of highest global fitness on its own, ``argmax_i mean_j k_ij^2 / (k_ii k_jj)`` (methods F3)."""
        state, xp, gram = self.state, self.state.xp, self.state.gram
        candidates = xp.arange(gram.n, device=device(state.d))[state.valid]
        if gram.n > _FIRST_EXACT:
            count = int(candidates.shape[0])
            picked = self.rng.choice(count, min(_FIRST_DRAWS, count), replace=False)
            candidates = xp.sort(take_rows(candidates, state.index([int(i) for i in picked])))
        share = state.weight * state.inverse
        fitness = []
        for part in row_blocks(int(candidates.shape[0]), gram.n, like=state.d):
            K = gram.columns(candidates[part])
            fitness.append(share @ (K * K))
        J = xp.concat(fitness) * take_rows(state.inverse, candidates)
        return int(candidates[int(xp.argmax(J))])


class Gain(PivotRule):
    """The samples that raise the global fitness most, among candidates drawn by their residual (methods F6).

    ``gain_j = sum_i w_i R_ij^2 / (R_jj k_ii)`` is the paper's own objective (8), here over all samples or over some
    rows. Its sums of squares are the diagonal of ``M = R' diag(w / k) R``, which a pivot changes by a correction of
    rank two: no pass over the rows per pivot.
    """

    def __init__(self, state: Residual, rng: Any) -> None:
        super().__init__(state, rng)
        n, all_rows = state.gram.n, state.gram.n <= MEAN_ROWS
        self.size = _GAIN_BLOCK if all_rows else _BLOCK
        self.rows = None if all_rows else state.index(sorted(rng.choice(n, MEAN_ROWS, replace=False).tolist()))

    def block(self) -> Pivots:
        state, xp = self.state, self.state.xp
        drawn = draw(state.weight * state.score, _GAIN_DRAWS * self.size, self.rng)
        candidates = xp.sort(xp.unique_values(drawn))  # the standard promises no order
        share = state.weight * state.inverse
        if self.rows is not None:
            R, share = state.among(self.rows, candidates), take_rows(share, self.rows)
            return self._best(Pool(state, candidates, self.size), R.T @ (share[:, None] * R))
        at = take_rows(state.G, candidates)[:, : len(state.chosen)]
        R = state.columns(candidates, at, slice(0, state.gram.n))
        pool = Pool(state, candidates, self.size, take_rows(R, candidates))
        found = self._best(pool, R.T @ (share[:, None] * R))
        # all columns are at hand: no second look at the kernel
        taken = xp.take(R, asarray_like(pool.taken, R, dtype=xp.int64), axis=1)
        return Pivots(found.samples, found.factor, solve_triangular(found.factor, taken.T).T)

    def _best(self, pool: Pool, M: Array) -> Pivots:
        xp, gains = pool.xp, _Gains(pool, M, self.size)
        for _ in range(self.size):
            score = pool.score
            floor = max(_FLOOR_IN_BEST_SCORES * score.max(), pool.least)
            gain = xp.where(score > floor, gains.diag / xp.maximum(score, floor), -1.0)
            best = int(gain.argmax())
            if score[best] <= floor:
                break
            gains.take(best)
        return pool.pivots()


class Random(PivotRule):
    """Randomly pivoted Cholesky: sample ``i`` with probability proportional to ``w_i r_i / k_ii``.

    A whole block is proposed with the residuals at its start; a proposal is then accepted with probability
    (residual now) / (residual then), which makes the accepted sequence that of one draw at a time.
    """

    def block(self) -> Pivots:
        state = self.state
        proposals = [int(i) for i in to_numpy(draw(state.weight * state.score, _BLOCK, self.rng))]
        names = sorted(set(proposals))
        place = {name: j for j, name in enumerate(names)}
        pool = Pool(state, state.index(names), len(names))
        before = pool.score.copy()
        for name, coin in zip(proposals, self.rng.random(_BLOCK)):
            j = place[name]
            now = pool.score[j]
            if now > pool.least and (not pool.taken or coin * before[j] < now):
                pool.take(j)
        return pool.pivots()


class Uniform(PivotRule):
    """Samples in a random order; those that depend on earlier ones are skipped, those that nearly do wait a block."""

    def __init__(self, state: Residual, rng: Any) -> None:
        super().__init__(state, rng)
        self.order = rng.permutation(state.gram.n)

    def block(self) -> Pivots:
        left = self.order[to_numpy(self.state.score)[self.order] > 0]
        pool = Pool(self.state, self.state.index(left[:_BLOCK].tolist()), _BLOCK)
        for j in range(len(pool.names)):
            if pool.score[j] > max(_FLOOR_IN_BEST_SCORES * pool.score.max(), pool.least):
                pool.take(j)
        return pool.pivots()


def draw(share: Array, count: int, rng: Any) -> Array:
    """``count`` independent draws with probability proportional to ``share``."""
    xp = namespace(share)
    ladder = xp.cumulative_sum(share)
    # strictly below the top, and side="right": a sample of share zero is never drawn
    heights = asarray_like(rng.random(count), share, dtype=share.dtype) * ((1.0 - 4 * eps(share)) * ladder[-1])
    return xp.searchsorted(ladder, heights, side="right")


RULES: dict[str, type[PivotRule]] = {"gain": Gain, "greedy": Greedy, "random": Random, "uniform": Uniform}
