r"""Sparse soft margin directions: an l1 penalty in the original coordinates (methods B8)."""

from __future__ import annotations

from fewkern.backend.linalg import generalized_eigh
from fewkern.backend.namespace import Array, device, namespace
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.margins.embedding import ridged, seen_directions
from fewkern.margins.graphs import Edges, GraphPair, PairSet
from fewkern.margins.ranking import OrderedPairs
from fewkern.margins.soft import (
    SoftMargin,
    SoftMarginStep,
    Solver,
    plain_solver,
    signed_pairs,
    soft_margin_direction,
)

__all__ = ["sparse_soft_margin"]

# Widths of the smoothed hinge in units of the margin: a proximal step needs no second derivative, but a bounded one.
WIDTHS = (0.3, 0.05)
# Proximal steps per width.
STEPS = 300


def sparse_soft_margin(
    Z: Array,
    pair: GraphPair,
    *,
    sparsity: float,
    n_components: int | None = None,
    rho: float = 1e-2,
    delta: float | None = None,
    delta_rel: float = 5.0,
    max_iter: int = 50,
    tol: float = 1e-7,
) -> SoftMargin:
    r"""Directions of :math:`J(w) + \lambda \|w\|_1` with few nonzero entries, one by one.

    :math:`\lambda` is ``sparsity`` times the value at which ``w`` would vanish, :math:`D \max_k |\sum_e s_e v_e (x_i
    - x_j)_k|`.

    Parameters
    ----------
    Z : array of shape (n, d)
        Centred samples in their own coordinates: a rotation would spoil what is sparse.
    pair : GraphPair
    sparsity : float
        Between 0 and 1.
    n_components, rho, delta, delta_rel, max_iter, tol
        As in :func:`~fewkern.margins.soft.recursive_soft_margin`.

    Returns
    -------
    SoftMargin
        With unit columns, which are not orthogonal: the samples are deflated on an orthonormal basis of those before.

    Notes
    -----
    Concave-convex steps outside, accelerated proximal gradients on the smoothed sorted loss inside: :math:`O(nd + n
    \log n)` each, and one :math:`d \times d` scatter.
    """
    xp = namespace(Z)
    d = int(Z.shape[1])
    S, B = ridged(pair, Z, rho), pair.penalty.scatter(Z)
    identity = xp.eye(d, dtype=Z.dtype, device=device(Z))
    tau = rho * float(xp.linalg.trace(S)) / d / (1.0 + rho)
    core = S - tau * identity
    wanted = min(seen_directions(B, S) if n_components is None else n_components, d, int(Z.shape[0]))
    pairs = pair.pairs()
    state = {"Z": Z, "S": S, "B": B, "W": identity[:, :0]}

    def find(count: int) -> tuple[Array, SoftMarginStep] | Stop:  # noqa: ARG001
        if float(xp.linalg.trace(state["B"])) <= 1e-12 * float(xp.linalg.trace(B)):
            return Stop("rank")
        vectors = generalized_eigh(state["B"], state["S"])[1]
        left, S = state["Z"], state["S"]

        def penalized(w_s: Array, D: float) -> Solver:
            return _Penalized(left, S, pairs, D, sparsity * D * float(xp.max(xp.abs(S @ w_s))))

        w, step = soft_margin_direction(
            left,
            S,
            pairs,
            vectors[:, 0],
            delta=delta,
            delta_rel=delta_rel,
            max_iter=max_iter,
            tol=tol,
            make_solver=penalized,
        )
        length = float(xp.linalg.vector_norm(w))
        return Stop("penalty") if length == 0.0 else (w / length, step)

    def remove(found: tuple[Array, SoftMarginStep]) -> list[tuple[Array, SoftMarginStep]]:
        w, step = found
        state["W"] = xp.concat([state["W"], w[:, None]], axis=1)
        Q = xp.linalg.qr(state["W"])[0]
        P = identity - Q @ Q.T
        state["Z"], state["S"], state["B"] = Z @ P, P @ core @ P + tau * identity, P @ B @ P
        return [(w, step)]

    peeled = peel(find, remove, wanted)
    W = xp.stack([w for w, _ in peeled.records], axis=1) if peeled.records else identity[:, :0]
    return SoftMargin(W, tuple(s for _, s in peeled.records), d, peeled.stop)


class _Penalized:
    """The convex step with the penalty, by proximal gradients on the smoothed loss."""

    noise = 0.0

    def __init__(self, Z: Array, S: Array, pairs: PairSet | Edges, D: float, lam: float) -> None:
        self.Z, self.S, self.pairs, self.D, self.lam = Z, S, pairs, D, lam
        self.plain = plain_solver(Z, S, pairs, D)

    def value(self, w: Array) -> float:
        xp = namespace(w)
        return self.plain.value(w) + self.lam * float(xp.sum(xp.abs(w)))

    def improve(self, w: Array, order: Array) -> Array:
        return _proximal(self.Z, self.S, self.pairs, order, self.D, self.lam, w)


def _proximal(Z: Array, S: Array, pairs: PairSet | Edges, order: Array, D: float, lam: float, w: Array) -> Array:
    """The convex step by accelerated proximal gradients with backtracking and restarts."""
    xp = namespace(Z)
    if isinstance(pairs, PairSet):
        ordered, X = OrderedPairs.arranged(pairs, order), xp.take(Z, order, axis=0)
        margin, weight = 1.0 / pairs.v, D * pairs.v

        def loss(w: Array, mu: float) -> tuple[float, Array]:
            value, g = ordered.huber(X @ w, margin, mu * margin)
            return weight * value, weight * (X.T @ g)
    else:
        G, count = signed_pairs(Z, pairs, order), D * pairs.count

        def loss(w: Array, mu: float) -> tuple[float, Array]:
            zero = xp.zeros_like(count)
            outer, inner = xp.maximum(1.0 + mu - G @ w, zero), xp.maximum(1.0 - mu - G @ w, zero)
            slope = -count * (outer - inner) / (2 * mu)
            return float(count @ (outer * outer - inner * inner)) / (4 * mu), G.T @ slope

    def smooth(w: Array, mu: float) -> tuple[float, Array]:
        value, g = loss(w, mu)
        Sw = S @ w
        return 0.5 * float(w @ Sw) + value, Sw + g

    for mu in WIDTHS:
        curvature = float(xp.linalg.trace(S)) / int(S.shape[0])
        ahead, momentum = w, 1.0
        value, _ = smooth(w, mu)
        last = value + lam * float(xp.sum(xp.abs(w)))
        for _ in range(STEPS):
            at, g = smooth(ahead, mu)
            while True:
                step = ahead - g / curvature
                new = xp.sign(step) * xp.maximum(xp.abs(step) - lam / curvature, xp.zeros_like(step))
                move = new - ahead
                value, _ = smooth(new, mu)
                if value <= at + float(g @ move) + 0.5 * curvature * float(move @ move) + 1e-12 * abs(at):
                    break
                curvature *= 2.0
            total = value + lam * float(xp.sum(xp.abs(new)))
            if total > last:
                if momentum == 1.0:
                    break
                ahead, momentum = w, 1.0  # the extrapolation overshot: start it anew
                continue
            gain, last = last - total, total
            longer = (1.0 + (1.0 + 4.0 * momentum * momentum) ** 0.5) / 2.0
            ahead = new + ((momentum - 1.0) / longer) * (new - w)
            w, momentum = new, longer
            curvature *= 0.9
            if gain <= 1e-8 * abs(total):
                break
    return w
