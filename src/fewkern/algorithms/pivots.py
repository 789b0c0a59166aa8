"""Feature vector selection (FVS paper, sec. 2) as pivoted Cholesky factorisation.

The paper's rule "add the sample of lowest local fitness" is complete pivoting with score ``r_i / k_ii``, ``r`` the
residual diagonal, so the recursion of its Appendix C, which loses its figures after a hundred vectors, is not needed.
The rules differ only in how they find the next block of pivots; removing them is one product and one
triangular solve for all samples, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from fewkern.backend.blocks import row_blocks
from fewkern.backend.linalg import solve_triangular
from fewkern.backend.namespace import Array, asarray_like, device, eps, namespace, take_rows, to_numpy
from fewkern.core.gram import Gram
from fewkern.core.peel import Stop, peel

__all__ = ["Rule", "Selection", "select_vectors"]

Rule = Literal["gain", "greedy", "random", "uniform"]

# Samples with k(x, x) below this share of the largest are zero vectors: no candidates, and not in the mean fitness.
_ZERO_DIAGONAL = 1e-14
# Up to this many samples "gain" looks at all, and in smaller blocks; above, at so many random ones (methods F6).
_GAIN_ROWS, _GAIN_BLOCK = 2000, 8
# "gain" takes no candidate whose score is below this share of the best one's.
_GAIN_FLOOR = 1e-2
# The first vector of "greedy" is searched exactly up to this many samples, else among _FIRST_DRAWS random ones,
# which with probability 0.95 holds one of the best 5 %.
_FIRST_EXACT = 5000
_FIRST_DRAWS = 59


@dataclass(frozen=True)
class Selection:
    """Chosen samples and the factor that goes with them: ``K ~ G G'``, ``K[S, S] = C C'`` with ``C = G[S]``."""

    indices: Array
    """Chosen samples ``S``, in the order of their choice."""
    G: Array
    """Shape ``(n, L)``: the nested features (10') of all samples."""
    fitness: Array
    """Global fitness ``J_S``, eq. (7a), after every step."""
    residual: Array
    """``r_i = k_ii - |g_i|^2``, the squared distance of every image to the span of the chosen ones."""
    stop: str
    """"limit", "fitness" or "rank"."""

    @property
    def factor(self) -> Array:
        """Lower triangular ``C`` with ``K[S, S] = C C'``."""
        return namespace(self.G).tril(take_rows(self.G, self.indices))


class _Residual:
    """The kernel matrix with the chosen vectors taken out: ``R = K - G G'``, kept as its diagonal and ``G``."""

    def __init__(self, gram: Gram, weights: Array | None, tol: float, capacity: int, start: Selection | None) -> None:
        d = gram.diag
        self.gram, self.xp, self.d, self.tol = gram, namespace(d), d, tol
        xp = self.xp
        if not bool(xp.all(xp.isfinite(d))):
            raise ValueError("feature vector selection: the kernel returned values that are not finite.")
        if bool(xp.any(d < -1e-8 * xp.max(xp.abs(d)))):
            raise ValueError(
                "feature vector selection: the kernel is not positive semi-definite (a negative k(x, x)); "
                "use a kernel that is."
            )
        self.valid = d > _ZERO_DIAGONAL * xp.max(d)
        w = xp.ones_like(d) if weights is None else weights
        w = xp.where(self.valid, w, xp.zeros_like(w))
        self.valid = self.valid & (w > 0)
        total = float(xp.sum(w))
        self.weight = w / total if total > 0 else w
        # divided by the diagonal once, so that scores and fitness are products
        self.inverse = xp.where(self.valid, 1.0 / xp.where(self.valid, d, xp.ones_like(d)), xp.zeros_like(d))
        self.G = xp.empty((gram.n, max(capacity, 1)), dtype=d.dtype, device=device(d))
        self.chosen: list[int] = []
        self.r, self.J = xp.where(self.valid, d, xp.zeros_like(d)), 0.0
        if start is not None:
            count = int(start.indices.shape[0])
            self._reserve(count)
            self.G[:, :count] = start.G
            self.chosen = [int(i) for i in to_numpy(start.indices)]
            self.r, self.J = start.residual, float(start.fitness[-1]) if count else 0.0
        self.added_from = len(self.chosen)
        # smallest relative residual that a pivot had: rounding errors of later residuals are divided by it
        at = self.index(self.chosen)
        pivots = xp.linalg.diagonal(take_rows(self.G, at)) ** 2 * take_rows(self.inverse, at)
        self.least = float(xp.min(pivots)) if self.chosen else 1.0

    def _reserve(self, count: int) -> None:
        if count > self.G.shape[1]:
            xp = self.xp
            wider = xp.empty((self.gram.n, max(count, 2 * self.G.shape[1])), dtype=self.d.dtype, device=device(self.d))
            wider[:, : len(self.chosen)] = self.G[:, : len(self.chosen)]
            self.G = wider

    @property
    def score(self) -> Array:
        """``r_i / k_ii``, one minus the local fitness (7b); zero where the sample depends on the chosen ones."""
        return self.alive(self.r * self.inverse)

    def alive(self, score: Array) -> Array:
        return self.xp.where(score > self.tol, score, self.xp.zeros_like(score))

    def index(self, values: list[int]) -> Array:
        return asarray_like(values, self.d, dtype=self.xp.int64)

    def among(self, rows: Array, S: Array) -> Array:
        """``R[rows, S]``, with the exact diagonal where ``rows`` and ``S`` name the same sample."""
        xp, L = self.xp, len(self.chosen)
        R = self.gram.block(rows, S)
        if L:
            R = R - take_rows(self.G, rows)[:, :L] @ take_rows(self.G, S)[:, :L].T
        return xp.where(rows[:, None] == S[None, :], take_rows(self.r, rows)[:, None], R)

    def remove(self, found: _Pivots) -> list[tuple[int, float]]:
        """Take a block of pivots out of every row; one record (sample, fitness) per pivot."""
        xp, L, b = self.xp, len(self.chosen), len(found.samples)
        self._reserve(L + b)
        S = self.index(found.samples)
        at_pivots = take_rows(self.G, S)[:, :L]
        gains = xp.zeros((b,), dtype=self.d.dtype, device=device(self.d))
        share = self.weight * self.inverse
        r = xp.empty_like(self.r)
        # A small triangle whose columns fall below their heads inverts accurately, and a product is all that
        # is left for the many rows.
        inverse = solve_triangular(found.factor, xp.eye(b, dtype=self.d.dtype, device=device(self.d)))
        for rows in row_blocks(self.gram.n, b):
            g = self.columns(S, at_pivots, rows) @ inverse.T if found.panel is None else found.panel[rows, :]
            self.G[rows, L : L + b] = g
            g = g * g
            gains = gains + share[rows] @ g
            r[rows] = self.r[rows] - xp.sum(g, axis=1)
        pivots = xp.linalg.diagonal(found.factor) ** 2 * take_rows(self.inverse, S)
        self.least = min(self.least, float(xp.min(pivots)))
        self._refuse_indefinite(r)
        self.chosen += found.samples
        r = xp.maximum(r, xp.zeros_like(r))
        for s in found.samples:
            r[s] = 0.0
        self.r = xp.where(self.valid, r, xp.zeros_like(r))
        records = []
        for s, gain in zip(found.samples, to_numpy(gains)):
            self.J = min(self.J + float(gain), 1.0)
            records.append((s, self.J))
        return records

    def columns(self, S: Array, at_pivots: Array, rows: slice) -> Array:
        """``R[rows, S]``, given the rows ``S`` of ``G``."""
        R = self.gram.columns(S, rows)
        if self.chosen:
            R -= self.G[rows, : len(self.chosen)] @ at_pivots.T
        return R

    def _refuse_indefinite(self, r: Array) -> None:
        xp = self.xp
        if not bool(xp.all(xp.isfinite(r))):
            raise ValueError("feature vector selection: the kernel returned values that are not finite.")
        slack = max(1e-8, 1e3 * eps(r) / max(self.least, self.tol))
        worst = float(xp.min(r * self.inverse))
        if worst < -slack:
            raise ValueError(
                "feature vector selection: the kernel is not positive semi-definite (a residual fell to "
                f"{worst:.2g} of k(x, x)); use a kernel that is."
            )


@dataclass(frozen=True)
class _Pivots:
    """A block of samples to remove, in order, and the Cholesky factor of their residual matrix."""

    samples: list[int]
    factor: Array
    panel: Array | None = None
    """Their columns of ``G``, where the search for them has computed these already."""


class _Pool:
    """Elimination inside a small set of candidates, whose residual matrix is at hand."""

    def __init__(self, state: _Residual, candidates: Array, R: Array | None = None) -> None:
        self.xp, self.state = state.xp, state
        self.candidates = candidates
        self.names = [int(i) for i in to_numpy(candidates)]
        R = state.among(candidates, candidates) if R is None else R
        own = state.xp.eye(len(self.names), dtype=state.xp.bool, device=device(R))
        self.R = state.xp.where(own, take_rows(state.r, candidates)[:, None], R)
        self.inverse = take_rows(state.inverse, candidates)
        self.taken: list[int] = []
        self.columns: list[Array] = []

    @property
    def score(self) -> Array:
        """``r_i / k_ii`` of the candidates, zero where a candidate is used up."""
        return self.state.alive(self.xp.linalg.diagonal(self.R) * self.inverse)

    def take(self, j: int) -> Array:
        """Make candidate ``j`` the next pivot; returns its column ``R[:, j] / R[j, j]`` as it was."""
        xp = self.xp
        pivot = self.R[j, j]
        column = self.R[:, j] / xp.sqrt(pivot)
        ratio = self.R[:, j] / pivot
        self.taken.append(j)
        self.columns.append(column)
        self.R -= column[:, None] * column[None, :]
        self.R[j, :] = 0.0
        self.R[:, j] = 0.0
        return ratio

    def pivots(self) -> _Pivots:
        xp = self.xp
        order = asarray_like(self.taken, self.R, dtype=xp.int64)
        factor = take_rows(xp.stack(self.columns, axis=1), order)
        return _Pivots([self.names[j] for j in self.taken], xp.tril(factor))


def _draw(share: Array, count: int, rng: Any) -> Array:
    """``count`` independent draws with probability proportional to ``share``."""
    xp = namespace(share)
    ladder = xp.cumulative_sum(share)
    # strictly below the top, and side="right": a sample of share zero is never drawn
    heights = asarray_like(rng.random(count), share, dtype=share.dtype) * ((1.0 - 4 * eps(share)) * ladder[-1])
    return xp.searchsorted(ladder, heights, side="right")


def _greedy(state: _Residual, block: int, eta: float, rng: Any) -> _Pivots:
    """The paper's rule, lowest local fitness first, in exact blocks (methods F7).

    The block holds the samples of highest score. Pivots are taken inside it while they beat ``eta`` times the best
    sample outside: those can only fall, so with ``eta = 1`` the order is that of one pivot at a time.
    """
    xp = state.xp
    if not state.chosen:
        first = _first_by_fitness(state, rng)
        pool = _Pool(state, state.index([first]))
        pool.take(0)
        return pool.pivots()
    score = state.score
    order = xp.argsort(score, descending=True, stable=True)
    block = min(block, int(order.shape[0]))
    outside = float(score[order[block]]) if order.shape[0] > block else -1.0
    pool = _Pool(state, xp.sort(order[:block]))
    while True:
        best = int(xp.argmax(pool.score))
        height = float(pool.score[best])
        if height <= 0 or (pool.taken and height <= eta * outside):
            return pool.pivots()
        pool.take(best)


def _first_by_fitness(state: _Residual, rng: Any) -> int:
    """The sample of highest global fitness on its own, ``argmax_i mean_j k_ij^2 / (k_ii k_jj)`` (methods F3)."""
    xp, gram = state.xp, state.gram
    candidates = xp.arange(gram.n, device=device(state.d))[state.valid]
    if gram.n > _FIRST_EXACT:
        picked = rng.choice(int(candidates.shape[0]), min(_FIRST_DRAWS, int(candidates.shape[0])), replace=False)
        candidates = xp.sort(take_rows(candidates, state.index([int(i) for i in picked])))
    share = state.weight * state.inverse
    fitness = []
    for part in row_blocks(int(candidates.shape[0]), gram.n):
        K = gram.columns(candidates[part])
        fitness.append(share @ (K * K))
    J = xp.concat(fitness) * take_rows(state.inverse, candidates)
    return int(candidates[int(xp.argmax(J))])


def _gain(state: _Residual, block: int, rows: Array | None, n_candidates: int, rng: Any) -> _Pivots:
    """The samples that raise the global fitness most, among ``n_candidates`` drawn by their residual (methods F6).

    ``gain_j = sum_i w_i R_ij^2 / (R_jj k_ii)`` is the paper's own objective (8), here over all samples or over some
    ``rows``. Its sums of squares are the diagonal of ``M = R' diag(w / k) R``, which a pivot changes by a correction of
    rank two: no pass over the rows per pivot.
    """
    xp = state.xp
    candidates = xp.unique_values(_draw(state.weight * state.score, n_candidates, rng))
    share = state.weight * state.inverse
    if rows is None:
        at = take_rows(state.G, candidates)[:, : len(state.chosen)]
        R = state.columns(candidates, at, slice(0, state.gram.n))
        pool = _Pool(state, candidates, take_rows(R, candidates))
    else:
        R, share = state.among(rows, candidates), take_rows(share, rows)
        pool = _Pool(state, candidates)
    M = R.T @ (share[:, None] * R)
    for _ in range(block):
        score = pool.score
        # a pivot far below the others would multiply their rounding errors by the ratio
        alive = score > _GAIN_FLOOR * xp.max(score)
        if not bool(xp.any(alive)):
            break
        gain = xp.linalg.diagonal(M) / xp.where(alive, xp.linalg.diagonal(pool.R), xp.ones_like(score))
        best = int(xp.argmax(xp.where(alive, gain, xp.full_like(gain, -1.0))))
        a = pool.take(best)
        half = a[:, None] * (M[:, best] - (0.5 * M[best, best]) * a)[None, :]
        M -= half
        M -= half.T
    found = pool.pivots()
    if rows is not None:
        return found
    # all columns are at hand: no second look at the kernel
    taken = xp.take(R, asarray_like(pool.taken, R, dtype=xp.int64), axis=1)
    return _Pivots(found.samples, found.factor, solve_triangular(found.factor, taken.T).T)


def _random(state: _Residual, block: int, rng: Any) -> _Pivots:
    """Randomly pivoted Cholesky: sample ``i`` with probability proportional to ``w_i r_i / k_ii``.

    A whole block is proposed with the residuals at its start; a proposal is then accepted with probability
    (residual now) / (residual then), which makes the accepted sequence that of one draw at a time.
    """
    proposals = [int(i) for i in to_numpy(_draw(state.weight * state.score, block, rng))]
    names = sorted(set(proposals))
    place = {name: j for j, name in enumerate(names)}
    pool = _Pool(state, state.index(names))
    before = pool.score
    for name, coin in zip(proposals, rng.random(block)):
        j = place[name]
        now = float(pool.score[j])
        if now > 0 and (not pool.taken or coin * float(before[j]) < now):
            pool.take(j)
    return pool.pivots()


def _uniform(state: _Residual, block: int, order: list[int]) -> _Pivots | Stop:
    """Samples in a random order, those that depend on earlier ones left out."""
    while order:
        names, order[:] = order[:block], order[block:]
        pool = _Pool(state, state.index(names))
        for j in range(len(names)):
            if float(pool.score[j]) > 0:
                pool.take(j)
        if pool.taken:
            return pool.pivots()
    return Stop("rank")


def select_vectors(
    gram: Gram,
    *,
    rng: Any,
    limit: int,
    rule: Rule = "gain",
    max_fitness: float = 1.0,
    tol: float | None = None,
    weights: Array | None = None,
    block: int = 64,
    eta: float = 1.0,
    n_candidates: int = 10,
    start: Selection | None = None,
    step: Callable[[int], None] | None = None,
) -> Selection:
    r"""Choose samples whose images span the images of all, best first.

    Parameters
    ----------
    gram : Gram
    rng : numpy.random.Generator
        Not used by "greedy" up to 5000 samples.
    limit : int
        Largest number of vectors.
    rule : {"gain", "greedy", "random", "uniform"}
    max_fitness : float
        Stop once the global fitness :math:`J_S` (7a) reaches it.
    tol : float or None
        A sample whose relative residual is not above it depends on the chosen ones; default 1e-10 (float32: 1e-5).
    weights : array of shape (n,) or None
        Weights in the mean fitness and in the draws; a sample of weight zero is never chosen.
    block : int
        Pivots eliminated together.
    eta : float
        "greedy" in blocks accepts pivots within this factor of the best; 1 is the exact order.
    n_candidates : int
        Samples that "gain" compares for every vector.
    start : Selection or None
        Go on from an earlier selection on the same ``gram``.
    step : callable or None
        Called with the number of vectors after every block.

    Returns
    -------
    Selection

    Notes
    -----
    ``n L`` kernel evaluations, ``n L^2`` flops in BLAS-3, memory ``n (L + block)`` numbers. "greedy" needs ``n^2`` more
    kernel evaluations for its first vector up to 5000 samples, "gain" ``n_candidates`` times more up to 2000.
    """
    tol = tol if tol is not None else (1e-5 if eps(gram.diag) > 1e-10 else 1e-10)
    asked, limit = limit, min(limit, gram.n)
    state = _Residual(gram, weights, tol, min(limit, 256) if limit == gram.n else limit, start)
    xp = state.xp
    if not bool(xp.any(state.valid)):
        raise ValueError(
            "feature vector selection: every sample is a zero vector of the kernel (k(x, x) = 0), so there is nothing "
            "to select; use another kernel, or centre=False."
        )
    next_block = _finder(state, rule, block, eta, n_candidates, rng)

    def find(_: int) -> _Pivots | Stop:
        if not bool(xp.any(state.score > 0)):
            return Stop("rank")
        if state.J >= max_fitness and max_fitness < 1:  # a fitness of one is the rank, up to rounding
            return Stop("fitness")
        found = next_block()
        if isinstance(found, Stop):
            return found
        # never more than asked for, whatever the size of the block: the draws do not depend on the limit
        keep = min(len(found.samples), limit - len(state.chosen))
        if keep == len(found.samples):
            return found
        return _Pivots(found.samples[:keep], found.factor[:keep, :keep])

    def remove(found: _Pivots) -> list[tuple[int, float]]:
        records = state.remove(found)
        if step is not None:
            step(len(state.chosen))
        return records

    earlier = state.added_from
    peeled = peel(find, remove, limit - earlier)
    fitness = [] if start is None else [float(v) for v in to_numpy(start.fitness)]
    fitness += [record[1] for record in peeled.records]
    count = len(fitness)
    # Paper: stops at the first fitness that is high enough. We: take a block, then cut it there.
    high = (i + 1 for i, J in enumerate(fitness) if J >= max_fitness)
    reached = next(high, count) if max_fitness < 1 else count
    stop = "fitness" if reached < count else peeled.stop
    if reached > limit:  # a start with more vectors than are asked for
        reached, stop = limit, "limit"
    if stop == "limit" and reached < asked:  # every sample is chosen
        stop = "rank"
    residual = state.r
    if reached < count:
        cut = state.G[:, reached:count]
        residual = xp.where(state.valid, residual + xp.sum(cut * cut, axis=1), residual)
    return Selection(
        state.index(state.chosen[:reached]),
        state.G[:, :reached],
        asarray_like(fitness[:reached], state.d, dtype=state.d.dtype),
        residual,
        stop,
    )


def _finder(
    state: _Residual, rule: Rule, block: int, eta: float, n_candidates: int, rng: Any
) -> Callable[[], _Pivots | Stop]:
    """What finds the next block, for every rule."""
    if rule == "greedy":
        return lambda: _greedy(state, block, eta, rng)
    if rule == "random":
        return lambda: _random(state, block, rng)
    if rule == "gain":
        return _gain_finder(state, block, n_candidates, rng)
    return _uniform_finder(state, block, rng)


def _gain_finder(state: _Residual, block: int, n_candidates: int, rng: Any) -> Callable[[], _Pivots]:
    n = state.gram.n
    rows = None
    if n <= _GAIN_ROWS:
        block = min(block, _GAIN_BLOCK)
    else:
        rows = state.index(sorted(int(i) for i in rng.choice(n, _GAIN_ROWS, replace=False)))
    # Half of what n_candidates asks for: a pool is used for many vectors, and compares all that are left each time.
    return lambda: _gain(state, block, rows, max(1, -(-n_candidates * block // 2)), rng)


def _uniform_finder(state: _Residual, block: int, rng: Any) -> Callable[[], _Pivots | Stop]:
    valid = to_numpy(state.valid)
    order = [int(i) for i in rng.permutation(state.gram.n) if valid[i]]
    return lambda: _uniform(state, block, order)
