"""Feature vector selection (FVS paper, sec. 2) as pivoted Cholesky factorisation.

The paper's rule "add the sample of lowest local fitness" is complete pivoting with score ``r_i / k_ii``, ``r`` the
residual diagonal, so the recursion of its Appendix C, which loses its figures after a hundred vectors, is not needed.
The rules differ only in how they find the next block of pivots; removing them is one product and one
triangular solve for all samples, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from fewkern.backend.blocks import row_blocks
from fewkern.backend.linalg import solve_triangular
from fewkern.backend.namespace import Array, asarray_like, device, eps, namespace, take_rows, to_numpy
from fewkern.core.gram import Gram
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.vectors.residual import Pivots, Residual, Selection

__all__ = ["Rule", "Selection", "select_vectors"]

Rule = Literal["gain", "greedy", "random", "uniform"]

# Up to this many samples "gain" looks at all, and in smaller blocks; above, at so many random ones (methods F6).
_GAIN_ROWS, _GAIN_BLOCK = 2000, 8
# "gain" takes no candidate whose score is below this share of the best one's.
_GAIN_FLOOR = 1e-2
# The first vector of "greedy" is searched exactly up to this many samples, else among _FIRST_DRAWS random ones,
# which with probability 0.95 holds one of the best 5 %.
_FIRST_EXACT = 5000
_FIRST_DRAWS = 59


class _Pool:
    """Elimination inside a small set of candidates, whose residual matrix is at hand."""

    def __init__(self, state: Residual, candidates: Array, R: Array | None = None) -> None:
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

    def pivots(self) -> Pivots:
        xp = self.xp
        order = asarray_like(self.taken, self.R, dtype=xp.int64)
        factor = take_rows(xp.stack(self.columns, axis=1), order)
        return Pivots([self.names[j] for j in self.taken], xp.tril(factor))


def _draw(share: Array, count: int, rng: Any) -> Array:
    """``count`` independent draws with probability proportional to ``share``."""
    xp = namespace(share)
    ladder = xp.cumulative_sum(share)
    # strictly below the top, and side="right": a sample of share zero is never drawn
    heights = asarray_like(rng.random(count), share, dtype=share.dtype) * ((1.0 - 4 * eps(share)) * ladder[-1])
    return xp.searchsorted(ladder, heights, side="right")


def _greedy(state: Residual, block: int, eta: float, rng: Any) -> Pivots:
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


def _first_by_fitness(state: Residual, rng: Any) -> int:
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


def _gain(state: Residual, block: int, rows: Array | None, n_candidates: int, rng: Any) -> Pivots:
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
    return Pivots(found.samples, found.factor, solve_triangular(found.factor, taken.T).T)


def _random(state: Residual, block: int, rng: Any) -> Pivots:
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


def _uniform(state: Residual, block: int, order: list[int]) -> Pivots | Stop:
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
    state = Residual(gram, weights, tol, min(limit, 256) if limit == gram.n else limit, start)
    xp = state.xp
    if not bool(xp.any(state.valid)):
        raise ValueError(
            "feature vector selection: every sample is a zero vector of the kernel (k(x, x) = 0), so there is nothing "
            "to select; use another kernel, or centre=False."
        )
    next_block = _finder(state, rule, block, eta, n_candidates, rng)

    def find(_: int) -> Pivots | Stop:
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
        return Pivots(found.samples[:keep], found.factor[:keep, :keep])

    def remove(found: Pivots) -> list[tuple[int, float]]:
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
    state: Residual, rule: Rule, block: int, eta: float, n_candidates: int, rng: Any
) -> Callable[[], Pivots | Stop]:
    """What finds the next block, for every rule."""
    if rule == "greedy":
        return lambda: _greedy(state, block, eta, rng)
    if rule == "random":
        return lambda: _random(state, block, rng)
    if rule == "gain":
        return _gain_finder(state, block, n_candidates, rng)
    return _uniform_finder(state, block, rng)


def _gain_finder(state: Residual, block: int, n_candidates: int, rng: Any) -> Callable[[], Pivots]:
    n = state.gram.n
    rows = None
    if n <= _GAIN_ROWS:
        block = min(block, _GAIN_BLOCK)
    else:
        rows = state.index(sorted(int(i) for i in rng.choice(n, _GAIN_ROWS, replace=False)))
    # Half of what n_candidates asks for: a pool is used for many vectors, and compares all that are left each time.
    return lambda: _gain(state, block, rows, max(1, -(-n_candidates * block // 2)), rng)


def _uniform_finder(state: Residual, block: int, rng: Any) -> Callable[[], Pivots | Stop]:
    valid = to_numpy(state.valid)
    order = [int(i) for i in rng.permutation(state.gram.n) if valid[i]]
    return lambda: _uniform(state, block, order)
