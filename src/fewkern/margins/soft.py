r"""Recursive soft margin subspace learning (RSM; methods part B): hinges in place of the penalty scatter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from fewkern.backend.linalg import cholesky_psd, generalized_eigh, solve_triangular
from fewkern.backend.namespace import Array, device, namespace, take_rows
from fewkern.backend.storable import storable
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.margins.embedding import principal_space, ridged, seen_directions
from fewkern.margins.graphs import Edges, GraphPair, PairSet
from fewkern.margins.hinge import minimize_hinge
from fewkern.margins.ranking import OrderedPairs
from fewkern.margins.spaces import Reflected, reflect

__all__ = [
    "SoftMargin",
    "SoftMarginStep",
    "Solver",
    "all_violate",
    "ordered_scores",
    "pair_objective",
    "plain_solver",
    "recursive_soft_margin",
    "signed_pairs",
    "soft_margin_direction",
]

# Pairs above which the sorted form takes over from the explicit quadratic program (methods B5: near n = 300).
SORTED_FROM = 40_000
# Widths of the smoothed hinge, in units of the margin, from wide to narrow.
WIDTHS = (0.5, 0.1, 0.02, 0.004, 0.001)


@storable
@dataclass(frozen=True)
class SoftMarginStep:
    """One direction."""

    objectives: tuple[float, ...]
    """``J`` after every concave-convex step, never rising."""
    delta: float
    delta_0: float
    """Below it the direction does not depend on delta at all (methods B4)."""
    at_zero: float
    """``J(0)``."""
    status: str
    """ "order" (the order of the projections stopped changing), "decrease" (it no longer pays) or "limit"."""


@dataclass(frozen=True)
class SoftMargin:
    """Result of :func:`recursive_soft_margin`."""

    directions: Array
    """``W``, one column per component: orthonormal, or orthonormal in the metric ``S``."""
    steps: tuple[SoftMarginStep, ...]
    rank: int
    stop: str
    """ "limit", "rank", or "flat" (no pair should be apart)."""


class Solver(Protocol):
    """What the concave-convex procedure asks for: the objective, and a minimiser with the signs of an order."""

    noise: float
    """Gains below this part of ``J(0) - J`` mean nothing."""

    def value(self, w: Array) -> float: ...
    def improve(self, w: Array, order: Array) -> Array: ...


def ordered_scores(Z: Array, w: Array, order: Array) -> Array:
    """Samples from the lowest projection to the highest; equal ones keep the order they had (never a sign of zero)."""
    xp = namespace(Z)
    return xp.take(order, xp.argsort(xp.take(Z @ w, order), stable=True))


def recursive_soft_margin(
    Z: Array,
    pair: GraphPair,
    *,
    n_components: int | None = None,
    rho: float = 1e-2,
    delta: float | None = None,
    delta_rel: float = 5.0,
    metric: Literal["euclidean", "scatter"] = "euclidean",
    solver: Literal["auto", "explicit", "sorted"] = "auto",
    max_iter: int = 100,
    tol: float = 1e-10,
) -> SoftMargin:
    r"""Directions one by one, each the concave-convex minimiser of the soft margin in the complement of those before.

    .. math::

        J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (f - v_{ij} |w^T (x_i - x_j)|)_+ , \qquad
        S = X^T L X + \rho \tau I, \quad D = 2 \delta, \quad f = 1

    Parameters
    ----------
    Z : array of shape (n, q)
        Centred features.
    pair : GraphPair
    n_components : int or None
        ``None``: as many as the penalty scatter has rank (``c - 1`` for Fisher's graph).
    rho : float
        Ridge; ``tau`` is that of the first step, for all steps.
    delta : float or None
        Weight of the hinges; ``None``: ``delta_rel`` times the ``delta_0`` of every step.
    delta_rel : float
        Below 1 all values give the same direction, that of Fisher with a Gini mean difference.
    metric : {"euclidean", "scatter"}
        Orthonormal directions, or such that ``W' S W = I``, which is better when there are more samples than features.
    solver : {"auto", "explicit", "sorted"}
        The pairs one by one in a quadratic program, exactly, or the sorted form, smoothed; "auto" goes by their number.
    max_iter : int
        Concave-convex steps per direction.
    tol : float
        A step that gains less than this part of ``J(0) - J`` is the last.

    Returns
    -------
    SoftMargin

    Notes
    -----
    Cost of a direction, with ``m`` pairs: explicit :math:`O(m q^2)` per interior point iteration on the pairs near
    the margin; sorted :math:`O(n q^2 + q n \log n)` per Newton step, memory :math:`O(nq)`.
    """
    xp = namespace(Z)
    V = principal_space(Z)
    rank = int(V.shape[1])
    Z = Z @ V
    if rank == 0:
        return SoftMargin(V, (), 0, "rank")
    S, B = ridged(pair, Z, rho), pair.penalty.scatter(Z)
    back = None
    if metric == "scatter":
        # Whitened by S, every step has S = I, and orthonormal there is S-orthonormal here (methods B8).
        L = cholesky_psd(S)
        Z = solve_triangular(L, Z.T).T
        B = solve_triangular(L, solve_triangular(L, B).T)
        S, back = xp.eye(rank, dtype=Z.dtype, device=device(Z)), L
    asked = seen_directions(B, S) if n_components is None else n_components
    wanted = min(asked, rank)

    pairs = pair.pairs()
    sorted_form = isinstance(pairs, PairSet) and (
        solver == "sorted" or (solver == "auto" and Z.shape[0] * (Z.shape[0] - 1) // 2 > SORTED_FROM)
    )
    if not sorted_form:
        pairs = pairs.edges()
    if isinstance(pairs, Edges) and pairs.i.shape[0] == 0:
        return SoftMargin(V[:, :0], (), rank, "flat")
    state = {"Z": Z, "S": S, "B": B, "Q": xp.eye(rank, dtype=Z.dtype, device=device(Z))}
    # what is left of the pairs is compared with what they were
    seen = _squared_gaps(Z, pairs)

    def find(count: int) -> tuple[Array, SoftMarginStep] | Stop:  # noqa: ARG001
        if state["Z"].shape[1] == 0:
            return Stop("rank")
        if _squared_gaps(state["Z"], pairs) <= 1e-20 * seen:
            return Stop("flat")
        # Start: the direction of the ratio (methods B2); w = 0 is stationary and must not be one.
        w0 = generalized_eigh(state["B"], state["S"])[1][:, 0]
        w, step = soft_margin_direction(
            state["Z"], state["S"], pairs, w0, delta=delta, delta_rel=delta_rel, max_iter=max_iter, tol=tol
        )
        return w / xp.linalg.vector_norm(w), step

    def remove(found: tuple[Array, SoftMarginStep]) -> list[tuple[Array, SoftMarginStep]]:
        u, step = found
        state["Z"] = reflect(state["Z"], u)[0]
        for name in ("S", "B"):
            state[name] = reflect(reflect(state[name], u)[0].T, u)[0]
        state["Q"], w = reflect(state["Q"], u)
        return [(w, step)]

    peeled = peel(find, remove, wanted)
    W = xp.stack([w for w, _ in peeled.records], axis=1) if peeled.records else state["Q"][:, :0]
    if back is not None:
        W = solve_triangular(back, W, transposed=True)
    return SoftMargin(V @ W, tuple(s for _, s in peeled.records), rank, "rank" if rank < asked else peeled.stop)


def _squared_gaps(Z: Array, pairs: PairSet | Edges) -> float:
    """Sum of the squared distances of listed pairs; of all samples from their mean where pairs are a rule."""
    xp = namespace(Z)
    gap = Z - xp.mean(Z, axis=0) if isinstance(pairs, PairSet) else take_rows(Z, pairs.i) - take_rows(Z, pairs.j)
    return float(xp.sum(gap * gap))


def soft_margin_direction(
    Z: Array,
    S: Array,
    pairs: PairSet | Edges,
    w0: Array,
    *,
    delta: float | None,
    delta_rel: float,
    max_iter: int = 100,
    tol: float = 1e-10,
    make_solver: Callable[[Array, float], Solver] | None = None,
) -> tuple[Array, SoftMarginStep]:
    """One direction by the concave-convex procedure (methods B2), from the start ``w0``.

    ``make_solver(w_s, D)`` gives the solver of the convex steps; by default the exact or the sorted one.
    """
    xp = namespace(Z)
    order = ordered_scores(Z, w0, xp.arange(Z.shape[0], device=device(Z)))
    w_s, delta_0 = all_violate(Z, S, pairs, order)
    delta = delta_rel * delta_0 if delta is None else delta
    D = 2.0 * delta
    solver = plain_solver(Z, S, pairs, D) if make_solver is None else make_solver(w_s, D)
    at_zero = solver.value(xp.zeros_like(w0))
    w = _best_scale(solver, w0, w_s, D)
    objectives = [solver.value(w)]
    status = "limit"
    tol = max(tol, solver.noise)
    for _ in range(max_iter):
        candidate = solver.improve(w, order)
        value = solver.value(candidate)
        gain = objectives[-1] - value
        if gain > 0:
            w = candidate
            objectives.append(value)
        # J is almost constant when delta is small, so what was gained is measured against J(0) - J.
        if gain <= tol * max(at_zero - objectives[-1], 0.0):
            status = "decrease"
            break
        new = ordered_scores(Z, w, order)
        if bool(xp.all(new == order)):
            status = "order"
            break
        order = new
    return w, SoftMarginStep(tuple(objectives), float(delta), float(delta_0), at_zero, status)


def pair_objective(Z: Array, S: Array, pairs: PairSet | Edges, D: float, w: Array) -> float:
    """``J(w)``."""
    return plain_solver(Z, S, pairs, D).value(w)


def plain_solver(Z: Array, S: Array, pairs: PairSet | Edges, D: float) -> Solver:
    """Of ``J`` itself: sorted for pairs that are a rule, exact for listed ones."""
    return _Sorted(Z, S, pairs, D) if isinstance(pairs, PairSet) else _Explicit(Z, S, pairs, D)


def all_violate(Z: Array, S: Array, pairs: PairSet | Edges, order: Array) -> tuple[Array, float]:
    r"""``w_s = S^-1 sum_e s_e v_e (x_i - x_j)`` and :math:`\delta_0 = f / (2 v\, range(X w_s))` (methods B4).

    While every pair violates, all multipliers are ``D`` and the direction is ``w_s``, whatever delta is.
    """
    xp = namespace(Z)
    if isinstance(pairs, PairSet):
        c = OrderedPairs.arranged(pairs, order).balance()
        w = pairs.v * _solve(S, take_rows(Z, order).T @ c)
        s = Z @ w
        widest = pairs.v * float(xp.max(s) - xp.min(s))
    else:
        difference = signed_pairs(Z, pairs, order)
        w = _solve(S, difference.T @ pairs.count)
        widest = float(xp.max(xp.abs(difference @ w))) if difference.shape[0] else 0.0
    return w, 0.5 / widest if widest > 0 else 1.0


def _solve(S: Array, x: Array) -> Array:
    L = cholesky_psd(S)
    return solve_triangular(L, solve_triangular(L, x), transposed=True)


def signed_pairs(Z: Array, edges: Edges, order: Array) -> Array:
    """Rows ``v_e s_e (x_i - x_j)``, the sign taken from the order."""
    xp = namespace(Z)
    rank = xp.argsort(order, stable=True)
    factor = xp.where(take_rows(rank, edges.i) > take_rows(rank, edges.j), edges.v, -edges.v)
    return factor[:, None] * (take_rows(Z, edges.i) - take_rows(Z, edges.j))


def _best_scale(solver: Solver, w0: Array, w_s: Array, D: float) -> Array:
    """``w0`` with the length, out of a geometric row about that of ``D w_s``, that makes ``J`` least."""
    xp = namespace(w0)
    length = D * float(xp.linalg.vector_norm(w_s)) / float(xp.linalg.vector_norm(w0))
    if length == 0.0:  # the pairs cancel in this order
        length = 1.0
    best = length * 4.0 * w0
    value = solver.value(best)
    # A large delta calls for a much shorter one: down as long as that pays, but sixteen times at least.
    for k in range(1, -200, -1):
        candidate = length * 2.0**k * w0
        new = solver.value(candidate)
        if new < value:
            best, value = candidate, new
        elif k < -16:
            break
    return best


class _Explicit:
    """The convex step as a quadratic program over the pairs near the margin (methods B2)."""

    noise = 0.0

    def __init__(self, Z: Array, S: Array, edges: Edges, D: float) -> None:
        self.Z, self.S, self.edges, self.D, self.width = Z, S, edges, D, 0.3
        self.L = cholesky_psd(S)
        # whitened: half |u|^2 with u = L'w
        self.white = solve_triangular(self.L, Z.T).T

    def value(self, w: Array) -> float:
        xp = namespace(w)
        s, e = self.Z @ w, self.edges
        t = e.v * xp.abs(take_rows(s, e.i) - take_rows(s, e.j))
        return 0.5 * float(w @ (self.S @ w)) + self.D * float(e.count @ xp.maximum(1.0 - t, xp.zeros_like(t)))

    def improve(self, w: Array, order: Array) -> Array:
        xp = namespace(w)
        G = signed_pairs(self.white, self.edges, order)
        box = self.D * self.edges.count
        u = self.L.T @ w
        t = G @ u
        # The band: pairs near the margin. Far below it the multiplier is D, far above it is 0. After the first step w
        # moves little, and so do the pairs.
        inside = xp.abs(t - 1.0) <= self.width
        self.width = 0.05
        for _ in range(50):
            far_below = xp.logical_not(inside) & (t < 1.0)
            linear = G.T @ xp.where(far_below, box, xp.zeros_like(box))
            rows = xp.nonzero(inside)[0]
            if rows.shape[0]:
                ones = xp.ones((rows.shape[0],), dtype=G.dtype, device=device(G))
                u = minimize_hinge(
                    Reflected(take_rows(G, rows), G[:0, :]),
                    ones,
                    ones,
                    take_rows(box, rows),
                    bias=False,
                    linear=linear,
                ).w
            else:
                u = linear
            margins = G @ u
            # pairs that were taken to be on the one side and now lie on the other one
            wrong = xp.logical_not(inside) & (xp.where(far_below, margins - 1.0, 1.0 - margins) > 1e-9)
            if not bool(xp.any(wrong)):
                break
            inside = inside | wrong
        return solve_triangular(self.L, u, transposed=True)


class _Sorted:
    """The convex step on the smoothed hinge, by Newton's method with sums over all pairs in n log n (methods B5)."""

    noise = 1e-7  # smoothing with the last width moves the value by more

    def __init__(self, Z: Array, S: Array, pairs: PairSet, D: float) -> None:
        self.Z, self.S, self.pairs = Z, S, pairs
        self.margin, self.weight = 1.0 / pairs.v, D * pairs.v
        self.first = True
        xp = namespace(Z)
        self.plain = OrderedPairs.arranged(pairs, xp.arange(Z.shape[0], device=device(Z)))
        self.at_zero = self.value(xp.zeros_like(Z[0, :]))

    def value(self, w: Array) -> float:
        return 0.5 * float(w @ (self.S @ w)) + self.weight * self.plain.window_value(self.Z @ w, self.margin)

    def improve(self, w: Array, order: Array) -> Array:
        pairs, X = OrderedPairs.arranged(self.pairs, order), take_rows(self.Z, order)
        # after the first step w is near the solution already: wide smoothing would only lead away from it
        widths = WIDTHS if self.first else WIDTHS[3:]
        self.first = False
        for mu in widths:
            # a wide hinge only leads to the start of the next one
            w = self._newton(w, X, pairs, mu * self.margin, 1e-7 if mu == widths[-1] else 1e-3)
        return w

    def _newton(self, w: Array, X: Array, pairs: OrderedPairs, mu: float, tol: float) -> Array:
        def smooth(w: Array) -> tuple[float, Array]:
            value, g = pairs.huber(X @ w, self.margin, mu)
            return 0.5 * float(w @ (self.S @ w)) + self.weight * value, self.S @ w + self.weight * (X.T @ g)

        value, g = smooth(w)
        for _ in range(20):
            H = self.S + self.weight * pairs.huber_curvature(X @ w, X, self.margin, mu)
            step = -_solve(H, g)
            slope = float(g @ step)
            # J is almost J(0) when delta is small: what matters is how far below it one has come
            if -slope <= tol * abs(self.at_zero - value):
                break
            length = 1.0
            while length > 1e-6:
                new, new_g = smooth(w + length * step)
                if new <= value + 1e-4 * length * slope:
                    break
                length /= 2
            else:
                break
            gain = value - new
            w, value, g = w + length * step, new, new_g
            if gain <= tol * abs(self.at_zero - value):
                break
        return w
