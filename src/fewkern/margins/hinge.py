r"""Primal-dual interior point for sums of hinges over explicit features: the quadratic programs of RSVM and RSM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fewkern.backend.linalg import cholesky_psd, least_squares, solve_or_none, solve_triangular, sum_by_index
from fewkern.backend.namespace import Array, device, namespace, take_rows
from fewkern.margins.spaces import Space

__all__ = ["HingeSolution", "hinge_at_zero", "minimize_hinge"]

# Solves the Newton equations for a right hand side in (w, b).
Solver: TypeAlias = Callable[[Array, float], tuple[Array, float]]

# Above this dimension the normal matrix is not formed: its products go to conjugate gradients instead.
DENSE_DIMENSION = 6000
# Most multipliers inside their box that are put right by one linear system at the end.
CROSSOVER = 1000
# The same where that system is singular.
SMALL_CROSSOVER = 200
# How near to a bound, as a part of the box, a multiplier counts as on it; less where that costs too much.
CLEANING, CLEANING_SINGLE = (1e-7, 1e-9, 1e-11, 0.0), (1e-4, 1e-6, 0.0)
# Given multipliers are moved inside by this part of their box, and slacks have at least this part of a margin: measured
# on 27 problems; less than that and the first steps are short.
WARM_BOX, WARM_SLACK = 0.3, 0.5


@dataclass(frozen=True)
class HingeSolution:
    """Minimiser of a sum of hinges and its certificate."""

    w: Array
    bias: float
    alpha: Array
    primal: float
    dual: float
    error: float
    """Relative duality gap or infeasibility, the larger one."""
    n_iter: int
    status: str
    """ "optimal", "stalled" (no further progress in this precision) or "limit"."""


def minimize_hinge(
    space: Space,
    signs: Array,
    targets: Array,
    C: Array,
    *,
    bias: bool = True,
    linear: Array | None = None,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
) -> HingeSolution:
    r"""Minimise a weighted sum of hinges plus half the squared length of ``w`` (methods A1, B2).

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 - g^T w + \sum_i C_i (h_i - s_i (\langle w, x_i \rangle + b))_+

    with the dual :math:`\max_\alpha h^T \alpha - \tfrac12 \|g + \sum_i \alpha_i s_i x_i\|^2` over
    :math:`0 \le \alpha_i \le C_i`, :math:`\sum_i s_i \alpha_i = 0` (only with a bias).

    Parameters
    ----------
    space : Space
        The ``x_i``, dense or sparse.
    signs, targets, C : arrays of shape (n,)
        ``s`` (one or minus one), ``h`` and the positive box constants.
    bias : bool
    linear : array of shape (q,) or None
        ``g``.
    start : array of shape (n,) or None
        Multipliers to start from, feasible in the dual.
    tol : float
        Relative duality gap, and residuals relative to the size of their terms.
    max_iter : int

    Returns
    -------
    HingeSolution

    Notes
    -----
    Mehrotra's predictor-corrector steps. The slacks are eliminated, so that an iteration costs one weighted normal
    matrix and one Cholesky factor in the primal variables ``(w, b)``: time :math:`O(n q^2 + q^3)`, memory
    :math:`O(nq)`, any ``C``.
    """
    xp = namespace(space.like)
    h, n, q = targets, int(targets.shape[0]), int(space.like.shape[-1])
    g = xp.zeros((q,), dtype=h.dtype, device=device(h)) if linear is None else linear
    size = 1.0 + float(xp.max(xp.abs(h)))
    # t: surplus over the margin, with multiplier a; xi: shortfall below it, with multiplier u
    if start is None or not bool(xp.any(start > 0)):
        w, b, a, u, t, xi = _cold_start(space, signs, h, C, g, size)
    else:
        w, b, a, u, t, xi = _warm_start(space, signs, h, C, g, size, start, bias)

    best, since, status, iteration = float("inf"), 0, "limit", 0
    kept = (w, b, a, float("nan"), float("nan"))
    while iteration < max_iter:
        iteration += 1
        Ga = space.transposed_times(signs * a)
        margin = signs * (space.times(w) + b)
        r_w = w - g - Ga
        r_b = float(xp.sum(signs * a)) if bias else 0.0
        r_p = margin + xi - t - h
        mu = (float(a @ t) + float(u @ xi)) / (2 * n)
        # Quality of the point as it would be handed back: the primal value of w (slacks recomputed) less the dual
        # value.
        primal = 0.5 * float(w @ w) - float(g @ w) + float(C @ xp.maximum(h - margin, xp.zeros_like(h)))
        dual = float(h @ a) - 0.5 * float((g + Ga) @ (g + Ga))
        gap = abs(primal - dual) / (1e-300 + abs(primal) + abs(dual))
        infeasible = max(
            float(xp.linalg.vector_norm(r_w)) / (1e-300 + float(xp.linalg.vector_norm(w - g))),
            abs(r_b) / max(float(xp.sum(a)), 1e-300),
        )
        # w = 0 is a legitimate solution (the flat stop): lengths are then compared with the sum of the terms instead
        infeasible = min(infeasible, float(xp.linalg.vector_norm(r_w)) + abs(r_b))
        error = max(gap, infeasible)
        if error < best:
            best, since, kept = error, 0, (w, b, a, primal, dual)
        else:
            since += 1
        if error <= tol:
            status = "optimal"
            break
        # Near the end rounding in w = X'a sets a floor; far from it a few steps without progress mean nothing.
        if since >= (3 if best < 1e-6 else 20) or mu <= 0.0:
            status = "stalled"
            break

        theta = 1.0 / (xi / u + t / a)
        try:
            solve = _normal_solver(space, theta, bias)
        except ValueError:  # rounding has made the normal matrix indefinite
            status = "stalled"
            break

        def newton(c1: Array, c2: Array) -> tuple[Array, ...]:
            """Newton step for the complementarity targets ``a t -> c1``, ``u xi -> c2`` (increments)."""
            r = -r_p - c2 / u + c1 / a  # noqa: B023 - called only inside this iteration
            dw, db = solve(-r_w + space.transposed_times(signs * theta * r), r_b + float(xp.sum(signs * theta * r)))  # noqa: B023
            da = theta * (r - signs * (space.times(dw) + db))  # noqa: B023
            return dw, db, da, (c1 - t * da) / a, (c2 + xi * da) / u  # noqa: B023

        # Predictor: straight at the solution; it says how far the corrector may aim.
        _, _, da, dt, dxi = newton(-a * t, -u * xi)
        step = min(1.0, _longest(a, da), _longest(t, dt), _longest(u, -da), _longest(xi, dxi))
        mu_affine = (float((a + step * da) @ (t + step * dt)) + float((u - step * da) @ (xi + step * dxi))) / (2 * n)
        sigma = (mu_affine / mu) ** 3
        dw, db, da, dt, dxi = newton(sigma * mu - a * t - da * dt, sigma * mu - u * xi + da * dxi)
        step = min(_longest(a, da), _longest(t, dt), _longest(u, -da), _longest(xi, dxi))
        step = min(1.0, 0.99 * step)
        w, b, a, t, xi = w + step * dw, b + step * db, a + step * da, t + step * dt, xi + step * dxi
        u = u - step * da
    w, b, a, primal, dual = kept
    # Handed back is the pair (alpha, w(alpha)) with its own values, multipliers at their bounds set on them, so that w
    # is exactly a combination of the support vectors.
    margin = signs * (space.times(g + space.transposed_times(signs * a)) + b)
    exact = _crossover(space, signs, h, C, g, _partition(a, C, (margin - h) / size), bias)
    if exact is not None and abs(exact.primal - exact.dual) <= abs(primal - dual) + 1e-12 * abs(primal):
        return replace(exact, n_iter=iteration)
    # With long samples or a large box even a small change of a multiplier moves w far: then less is cleaned, or
    # nothing, and w is that of the iterate.
    for edge in CLEANING if a.dtype == xp.float64 else CLEANING_SINGLE:
        found = _evaluate(space, signs, h, C, g, _clean(a, C, signs, bias, edge), bias)
        if found.error <= max(10.0 * best, 1e-8):
            return replace(found, n_iter=iteration, status=status)
    return HingeSolution(w, b, a, primal, dual, best, iteration, status)


def _cold_start(space: Space, signs: Array, h: Array, C: Array, g: Array, size: float) -> tuple[Any, ...]:
    """Equal multipliers, times what makes the dual value largest, give ``w``; the rest is central for it."""
    xp = namespace(h)
    # A huge box is not entered at its middle: multipliers of the size of the targets are a better guess.
    a = xp.minimum(0.5 * C, xp.full_like(C, 5.0 * size))
    w = space.transposed_times(signs * a)
    length = float(w @ w)
    if length > 0.0:
        w = w * min(1.0, max(float(h @ a) - float(g @ w), 0.0) / length)
    w = g + w
    # Every term starts on a central path of its own: a t = u xi = mu, a + u = C, t - xi the surplus over the margin.
    mu = size * float(xp.mean(C))
    surplus = signs * space.times(w) - h
    root = xp.sqrt(surplus * surplus * C * C + 4.0 * mu * mu)
    a = 2.0 * mu * C / (2.0 * mu + root + surplus * C)
    u = 2.0 * mu * C / (2.0 * mu + root - surplus * C)
    return w, 0.0, a, u, mu / a, mu / u


def _warm_start(
    space: Space, signs: Array, h: Array, C: Array, g: Array, size: float, start: Array, bias: bool
) -> tuple[Any, ...]:
    """The ``w`` of given multipliers and its best bias; the multipliers moved off the bounds of their box."""
    xp = namespace(h)
    room = WARM_BOX * xp.minimum(C, xp.full_like(C, float(xp.max(start))))
    a = xp.minimum(xp.maximum(start, room), C - room)
    # not the w of the moved ones: what is moved adds up to something long where the box is large
    w = g + space.transposed_times(signs * start)
    short = h - signs * space.times(w)
    b = _best_bias(signs, short, C) if bias else 0.0
    surplus = signs * b - short
    t = xp.maximum(surplus, xp.zeros_like(surplus)) + WARM_SLACK * size
    return w, b, a, C - a, t, t - surplus


def _crossover(space: Space, signs: Array, h: Array, C: Array, g: Array, a: Array, bias: bool) -> HingeSolution | None:
    """The exact solution, if the multipliers strictly inside their box are the right ones.

    Their hinges are at the kink, which is a linear system in them and the bias. ``None`` where it has no unique
    solution, or one that leaves the box.
    """
    xp = namespace(a)
    free = xp.nonzero((a > 0) & (a < C))[0]
    count, q = int(free.shape[0]), int(g.shape[0])
    if count == 0 or count > CROSSOVER or q > DENSE_DIMENSION:
        return None
    own = space.subset(free)
    s = take_rows(signs, free)
    identity = xp.eye(count, dtype=a.dtype, device=device(a))
    fixed = xp.where((a > 0) & (a < C), xp.zeros_like(a), a)
    w = g + space.transposed_times(signs * fixed)
    K = s[:, None] * own.times(own.transposed_times(identity)) * s[None, :]
    right = take_rows(h, free) - s * own.times(w)
    if bias:
        K = xp.concat([K, s[:, None]], axis=1)
        K = xp.concat([K, xp.concat([s, xp.zeros_like(s[:1])])[None, :]], axis=0)
        right = xp.concat([right, xp.reshape(-xp.sum(signs * fixed), (1,))])
    solved = solve_or_none(K, right) if count <= q + 1 else None
    if solved is None and count <= SMALL_CROSSOVER:
        # repeated samples share a multiplier in any way; the shortest solution shares it equally
        solved = least_squares(K, right[:, None])[:, 0]
    if solved is None:
        return None
    inside, b = solved[:count], float(solved[count]) if bias else 0.0
    if bool(xp.any((inside < 0) | (inside > take_rows(C, free)))):
        return None
    a = fixed + sum_by_index(inside, free, int(a.shape[0]))
    return _evaluate(space, signs, h, C, g, a, bias, b)


def _evaluate(
    space: Space, signs: Array, h: Array, C: Array, g: Array, a: Array, bias: bool, b: float | None = None
) -> HingeSolution:
    """The pair ``(w(a), b)`` of feasible multipliers and its duality gap; the best bias where none is given."""
    xp = namespace(a)
    w = g + space.transposed_times(signs * a)
    short = h - signs * space.times(w)
    if b is None:
        b = _best_bias(signs, short, C) if bias else 0.0
    primal = 0.5 * float(w @ w) - float(g @ w) + float(C @ xp.maximum(short - signs * b, xp.zeros_like(h)))
    dual = float(h @ a) - 0.5 * float(w @ w)
    error = abs(primal - dual) / (1e-300 + abs(primal) + abs(dual))
    return HingeSolution(w, b, a, primal, dual, error, 0, "optimal")


def hinge_at_zero(signs: Array, targets: Array, C: Array) -> float:
    r""":math:`\min_b \sum_i C_i (h_i - s_i b)_+`: the value at ``w = 0``, the cap of all steps (methods A3.3)."""
    xp = namespace(targets)
    b = _best_bias(signs, targets, C)
    return float(C @ xp.maximum(targets - signs * b, xp.zeros_like(targets)))


def _best_bias(signs: Array, targets: Array, C: Array) -> float:
    """The minimiser: the slope in ``b`` rises by ``C_i`` at every ``s_i h_i``, so it is a weighted quantile."""
    xp = namespace(targets)
    breaks = signs * targets
    order = xp.argsort(breaks, stable=True)
    rising = xp.cumulative_sum(xp.take(C, order))
    below = float(xp.sum(xp.where(signs > 0, C, xp.zeros_like(C))))
    place = int(xp.sum(xp.astype(rising < below * (1 - 1e-12), xp.int64)))
    return float(breaks[order[min(place, int(order.shape[0]) - 1)]])


def _longest(x: Array, dx: Array) -> float:
    """Longest step in [0, 1/0.99] that keeps ``x`` from going below zero."""
    xp = namespace(x)
    ratio = float(xp.max(-dx / x))
    return 1.0 / max(ratio, 0.99)


def _partition(a: Array, C: Array, surplus: Array) -> Array:
    """Multipliers set on the bound that they are nearer to than their hinge is to its kink: complementarity decides."""
    xp = namespace(a)
    scale = xp.minimum(C, xp.full_like(C, float(xp.max(a))))
    a = xp.where(a < scale * surplus, xp.zeros_like(a), a)
    return xp.where(C - a < -scale * surplus, C, a)


def _clean(a: Array, C: Array, signs: Array, bias: bool, edge: float) -> Array:
    """Multipliers within ``edge`` of their bounds set on them, and their signed sum made zero."""
    xp = namespace(a)
    # The bound of one-sided size min(C, largest multiplier): with C = 1e9 no multiplier is near the middle of its box.
    scale = xp.minimum(C, xp.full_like(C, float(xp.max(a))))
    a = xp.where(a < edge * scale, xp.zeros_like(a), xp.where(C - a < edge * scale, C, a))
    if not bias:
        return a
    up = float(xp.sum(xp.where(signs > 0, a, xp.zeros_like(a))))
    down = float(xp.sum(xp.where(signs < 0, a, xp.zeros_like(a))))
    low = min(up, down)
    if low <= 0.0:
        return xp.zeros_like(a)
    return xp.where(signs > 0, a * (low / up), a * (low / down))


def _normal_solver(space: Space, theta: Array, bias: bool) -> Solver:
    """Solver of ``[I + X'ΘX, X'Θ1; 1'ΘX, 1'Θ1] (dw, db) = (rhs, rhs_b)``; signs cancel in squares."""
    xp = namespace(theta)
    total = float(xp.sum(theta))
    x_theta = space.transposed_times(theta)
    if x_theta.shape[0] > DENSE_DIMENSION:
        return _conjugate_gradients(space, theta, bias)
    M = space.normal(theta) + xp.eye(x_theta.shape[0], dtype=theta.dtype, device=device(theta))
    if bias:
        # Schur complement in b: the samples centred with the weights theta
        M = M - x_theta[:, None] * x_theta[None, :] / total
    L = cholesky_psd((M + M.T) / 2)

    def solve(rhs: Array, rhs_b: float) -> tuple[Array, float]:
        right = rhs - x_theta * (rhs_b / total) if bias else rhs
        dw = solve_triangular(L, solve_triangular(L, right), transposed=True)
        return dw, (rhs_b - float(x_theta @ dw)) / total if bias else 0.0

    return solve


def _conjugate_gradients(space: Space, theta: Array, bias: bool) -> Solver:
    """The same solver without the matrix, for samples with very many features."""
    xp = namespace(theta)
    total = float(xp.sum(theta))
    x_theta = space.transposed_times(theta)

    def product(v: Array) -> Array:
        out = v + space.transposed_times(theta * space.times(v))
        return out - x_theta * (float(x_theta @ v) / total) if bias else out

    def solve(rhs: Array, rhs_b: float) -> tuple[Array, float]:
        right = rhs - x_theta * (rhs_b / total) if bias else rhs
        x = xp.zeros_like(right)
        r = p = right
        rr = first = float(r @ r)
        for _ in range(2000):
            if rr <= 1e-24 * first or first == 0.0:
                break
            Mp = product(p)
            step = rr / float(p @ Mp)
            x, r = x + step * p, r - step * Mp
            rr, before = float(r @ r), rr
            p = r + (rr / before) * p
        return x, (rhs_b - float(x_theta @ x)) / total if bias else 0.0

    return solve
