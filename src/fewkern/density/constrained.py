r"""Forward-constrained regression (FCR-SDC): one kernel at a time, convex combination, closed-form leave-one-out.

The target is the Parzen estimate at the samples, :math:`p_i`; the model after ``k`` kernels is
:math:`y \leftarrow \lambda y + (1-\lambda)\tilde K(\cdot, x', \sigma)`, so that the weights stay on the simplex.

============================ =============================
symbol                       name
============================ =============================
:math:`w_i`                  ``w``: row weights, sum one
:math:`p`                    ``target``
:math:`y`                    ``y``: current model at the rows
:math:`\psi`                 column of ``Psi``, a candidate
:math:`u = y - \psi`         ``U`` (the paper's ``w``)
:math:`\lambda`              ``mixing``
:math:`\sigma^{\rm Par}`     ``unit``
============================ =============================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fewkern.backend.blocks import row_blocks
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.storable import storable
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.density.mixture import normal_kernel, squared_distances
from fewkern.density.simplex import active_set

__all__ = [
    "ConstrainedFit",
    "ConstrainedStep",
    "Mixing",
    "StopRule",
    "WidthMode",
    "default_gamma",
    "forward_constrained",
    "mixture_weights",
    "parzen_target",
    "refit_jointly",
    "score_candidates",
    "tune_width",
]

WidthMode = Literal["safe", "abs", "bracket"]
Mixing = Literal["jackknife", "ls"]
StopRule = Literal["loo", "distance", "size"]

_HALVINGS = 7
_EVALUATE_TOGETHER = 32


@storable
@dataclass(frozen=True)
class ConstrainedStep:
    """One kernel of the path."""

    index: int
    width: float
    mixing: float
    """:math:`\\lambda` of the step; zero for the first kernel."""
    loo: float
    """Leave-one-out score (20) of the candidate before its width was tuned (training error for the first kernel)."""
    distance: float
    """Distance to the target after the step, relative to the target."""
    evaluated: int
    """Candidates whose score was computed in full."""


@dataclass(frozen=True)
class ConstrainedFit:
    """Chosen rows with widths and weights; ``trace`` holds one record per kernel."""

    indices: Array
    widths: Array
    weights: Array
    trace: tuple[ConstrainedStep, ...]
    stop: str


def default_gamma(m: int) -> float:
    r"""Candidate width in Parzen widths, :math:`\max(1.25,\, 3 m^{-0.3})`."""
    return max(1.25, 3.0 / math.pow(m, 0.3))


def parzen_target(X: Array, samples: Array, w: Array, width: float) -> Array:
    r"""Parzen estimate of ``samples`` at the rows of ``X``, times :math:`(2\pi\sigma^2)^{m/2}`, in row blocks."""
    xp = namespace(X)
    out = xp.empty((X.shape[0],), dtype=X.dtype, device=device(X))
    for rows in row_blocks(X.shape[0], samples.shape[0]):
        out[rows] = normal_kernel(squared_distances(X[rows, :], samples), width, X.shape[1], width) @ w
    return out


@dataclass(frozen=True)
class _Scores:
    """Closed forms (18)-(21) for a block of candidates."""

    loo: Array
    mixing: Array
    admissible: Array


def score_candidates(Psi: Array, y: Array, target: Array, w: Array, mixing: Mixing = "jackknife") -> _Scores:
    r"""Leave-one-out score and mixing number of every column of ``Psi``.

    .. math::

        \lambda^{LS} = \frac1a \sum_i w_i u_i t_i, \quad a = \sum_i w_i u_i^2 \quad (18) \qquad
        J = \sum_i w_i \Big(\frac{e_i}{1-h_i}\Big)^2, \quad h_i = w_i u_i^2 / a \quad (20)

        \lambda = \lambda^{LS} + \sum_i (1-w_i) \frac{w_i u_i e_i}{a (1-h_i)} \quad (21)
    """
    xp = namespace(Psi)
    U = y[:, None] - Psi
    T = target[:, None] - Psi
    wU = w[:, None] * U
    a = xp.sum(wU * U, axis=0)
    usable = a > 0
    a = xp.where(usable, a, xp.ones_like(a))
    least_squares = xp.sum(wU * T, axis=0) / a
    E = T - least_squares * U
    H = wU * U / a
    # a row that alone determines lambda (h = 1) has no leave-one-out residual: its candidate is not admissible
    rest = xp.where(H < 1, 1.0 - H, xp.zeros_like(H))
    usable = usable & xp.all(rest > 0, axis=0)
    rest = xp.where(rest > 0, rest, xp.ones_like(rest))
    loo = xp.sum(w[:, None] * (E / rest) ** 2, axis=0)
    # Paper: (21) lacks the factor N on lambda^LS. We: the jackknife N lambda - (N-1) mean of lambda^(-i), because as
    # printed it is negative for every N > 2 and no candidate would be admissible.
    jackknife = least_squares + xp.sum((1.0 - w)[:, None] * wU * E / rest, axis=0) / a
    chosen = jackknife if mixing == "jackknife" else least_squares
    usable = usable & xp.isfinite(loo)
    for value in (least_squares, chosen):
        usable = usable & (value >= 0) & (value <= 1)
    return _Scores(loo, chosen, usable)


def tune_width(
    D: Array,
    y: Array,
    target: Array,
    w: Array,
    mixing: float,
    width: float,
    *,
    unit: float,
    dim: int,
    eta: float = 0.5,
    steps: int = 5,
    mode: WidthMode = "safe",
    floor: float = 0.02,
    cap: float = 1e3,
) -> float:
    r"""Gauss-Newton on the width of one kernel, the mixing number fixed: (11), (12), (22).

    .. math:: \Delta = \frac{\eta}{1-\lambda}
              \frac{\sum_i w_i \varepsilon_i\, \partial_\sigma \tilde K_i}{\sum_i w_i (\partial_\sigma \tilde K_i)^2},
              \qquad \varepsilon = p - \lambda y - (1-\lambda)\tilde K(\sigma)

    ``mode`` "bracket" is the paper's (11), "abs" its (22), "safe" halves the step until the error does not rise.
    ``floor`` and ``cap`` are multiples of ``unit``; ``D`` holds squared distances to the centre.
    """
    xp = namespace(D)
    share = 1.0 - mixing
    # Paper: the width is kept above 0.01. We: a floor relative to the Parzen width, because an absolute one breaks
    # equivariance under a change of units.
    low, high = floor * unit, cap * unit

    def residual(trial: float) -> tuple[Array, Array, float]:
        K = normal_kernel(D, trial, dim, unit)
        # Paper: the residual of (14). We: that of (15), the model with the new kernel in it.
        e = target - mixing * y - share * K
        return K, e, float(xp.sum(w * e * e))

    K, e, loss = residual(width)
    for _ in range(steps):
        slope = K * (D / width**3 - dim / width)  # (13)
        curvature = float(xp.sum(w * slope * slope))
        if not (math.isfinite(curvature) and curvature > 0):
            break
        move = eta / share * float(xp.sum(w * e * slope)) / curvature
        if not math.isfinite(move):
            break
        if mode == "safe":
            for _ in range(_HALVINGS):
                trial = min(max(width + move, low), high)
                K_new, e_new, loss_new = residual(trial)
                if loss_new <= loss:
                    break
                move *= 0.5
            else:
                break
            width, K, e, loss = trial, K_new, e_new, loss_new
        else:
            width = max(abs(width + move) if mode == "abs" else width + move, low)
            # these rules know no upper bound; out here the kernel is flat and its slope no longer a number
            if width > 1e30 * unit:
                break
            K, e, loss = residual(width)
    return width


def mixture_weights(mixings: list[float]) -> list[float]:
    r"""Weights from the mixing numbers: :math:`g \leftarrow (\lambda g,\, 1-\lambda)`, FCR (23)."""
    g = [1.0]
    for mixing in mixings:
        g = [mixing * value for value in g] + [1.0 - mixing]
    return g


def forward_constrained(
    X: Array,
    w: Array,
    target: Array,
    unit: float,
    candidates: Array,
    *,
    gamma: float,
    eta: float = 0.5,
    width_steps: int = 5,
    width_mode: WidthMode = "safe",
    floor: float = 0.02,
    cap: float = 1e3,
    mixing: Mixing = "jackknife",
    stop: StopRule = "loo",
    tol: float = 0.0,
    max_vectors: int = 100,
    prune: bool = True,
) -> ConstrainedFit:
    r"""FCR-SDC (the paper's algorithm): a convex combination of a few kernels that is close to Parzen's estimate.

    Parameters
    ----------
    X : array of shape (n, m)
        Rows at which the target is matched.
    w : array of shape (n,)
        Positive, sum one.
    target : array of shape (n,)
        :func:`parzen_target` at ``X`` with width ``unit``.
    unit : float
        The Parzen width :math:`\sigma^{\rm Par}`.
    candidates : integer array of shape (c,)
        Rows of ``X`` that may become centres.
    gamma : float
        Width of a candidate, in Parzen widths.
    eta, width_steps, width_mode, floor, cap
        See :func:`tune_width`.
    mixing : "jackknife" or "ls"
    stop : "loo", "distance" or "size"
        "loo" refuses a kernel whose score is not below ``1 - tol`` times the last one; "distance" ends once the model
        is within ``tol`` of the target (relative); "size" goes on to ``max_vectors``.
    prune : bool
        Whether candidates are skipped that cannot win (methods D6); the result is the same.

    Notes
    -----
    ``O(n c)`` per step (one matrix-vector product with pruning) and ``n c`` numbers for the candidate columns.
    """
    xp = namespace(X)
    dim = int(X.shape[1])
    centres = take_rows(X, candidates)
    Psi = normal_kernel(squared_distances(X, centres), gamma * unit, dim, unit)
    c = int(candidates.shape[0])
    # everything that pruning (methods D6) needs, once
    wp = w * target
    pp = float(wp @ target)
    p_psi = wp @ Psi
    psi_psi = xp.sum(w[:, None] * Psi * Psi, axis=0)
    tt = pp - 2.0 * p_psi + psi_psi
    y = xp.zeros_like(target)
    taken: list[int] = []
    score = math.inf

    def distances(j: int) -> Array:
        return squared_distances(X, centres[j : j + 1, :])[:, 0]

    def tuned(j: int, lam: float) -> tuple[float, Array]:
        D = distances(j)
        width = tune_width(
            D, y, target, w, lam, gamma * unit,
            unit=unit, dim=dim, eta=eta, steps=width_steps, mode=width_mode, floor=floor, cap=cap,
        )  # fmt: skip
        return width, normal_kernel(D, width, dim, unit)

    def best_candidate() -> tuple[int, float, float, int] | None:
        """Admissible candidate of least J, its mixing number and score, and how many were evaluated in full."""
        free = xp.ones((c,), dtype=xp.bool, device=device(X))
        for j in taken:
            free = free & (xp.arange(c, device=device(X)) != j)
        yy, yp = float((w * y) @ y), float((w * y) @ target)
        y_psi = (w * y) @ Psi
        a = yy - 2.0 * y_psi + psi_psi
        positive = a > 1e-14 * psi_psi
        a = xp.where(positive, a, xp.ones_like(a))
        lam = (yp - y_psi - p_psi + psi_psi) / a
        bound = tt - lam * lam * a  # J >= SSE, because 0 <= h <= 1
        slack = 1e-9
        maybe = free & positive & (lam >= -slack) & (lam <= 1 + slack) if prune else free
        bound = xp.where(maybe, bound, xp.full_like(bound, math.inf))
        order = xp.argsort(bound)
        winner: tuple[float, int, float] | None = None
        evaluated, total = 0, int(xp.sum(xp.astype(maybe, xp.int64)))
        while evaluated < total:
            block = order[evaluated : min(evaluated + _EVALUATE_TOGETHER, total)]
            # rounding of the O(1) forms must not hide the winner
            if prune and winner is not None and float(bound[int(block[0])]) > winner[0] + 1e-10 * pp:
                break
            scores = score_candidates(xp.take(Psi, block, axis=1), y, target, w, mixing)
            for q in range(int(block.shape[0])):
                if bool(scores.admissible[q]):
                    found = (float(scores.loo[q]), int(block[q]), float(scores.mixing[q]))
                    if winner is None or found[:2] < winner[:2]:
                        winner = found
            evaluated += int(block.shape[0])
        return None if winner is None else (winner[1], winner[2], winner[0], evaluated)

    def find(count: int) -> tuple[int, float, float, int] | Stop:
        if count == 0:
            return int(xp.argmin(tt)), 0.0, math.nan, c  # (10): the candidate nearest to the target
        if stop == "distance" and _distance(y, target, w) <= tol:
            return Stop("close to the target")
        found = best_candidate()
        if found is None:
            return Stop("no admissible candidate")
        _, lam, loo, _ = found
        if stop == "loo" and loo >= (1.0 - tol) * score:
            return Stop("leave-one-out score no longer falls")
        if 1.0 - lam < 1e-12:
            return Stop("a further kernel would have no weight")
        return found

    def remove(found: tuple[int, float, float, int]) -> list[ConstrainedStep]:
        nonlocal y, score
        j, lam, loo, evaluated = found
        width, column = tuned(j, lam)
        y = lam * y + (1.0 - lam) * column
        taken.append(j)
        score = loo if len(taken) > 1 else float(xp.sum(w * (target - y) ** 2))
        return [ConstrainedStep(int(candidates[j]), width, lam, score, _distance(y, target, w), evaluated)]

    peeled = peel(find, remove, min(max_vectors, c))
    trace = peeled.records
    return ConstrainedFit(
        asarray_like([step.index for step in trace], candidates, dtype=candidates.dtype),
        asarray_like([step.width for step in trace], X, dtype=X.dtype),
        asarray_like(mixture_weights([step.mixing for step in trace[1:]]), X, dtype=X.dtype),
        trace,
        peeled.stop,
    )


def _distance(y: Array, target: Array, w: Array) -> float:
    xp = namespace(y)
    return math.sqrt(float(xp.sum(w * (target - y) ** 2)) / float(xp.sum(w * target * target)))


def refit_jointly(
    X: Array, w: Array, target: Array, unit: float, fit: ConstrainedFit, *, sweeps: int = 5, floor: float = 0.02
) -> ConstrainedFit:
    """All weights by the simplex programme on the same least squares, then sweeps of width steps, each with a refit."""
    # Paper: the mixing number of a step is never looked at again. We: weights and widths of all kernels together,
    # because the selection is kept and the error falls.
    xp = namespace(X)
    dim = int(X.shape[1])
    indices, widths = fit.indices, [float(s) for s in fit.widths]
    D = squared_distances(X, take_rows(X, indices))

    def columns() -> Array:
        return normal_kernel(D, asarray_like(widths, X, dtype=X.dtype), dim, unit)

    def weights_of(F: Array) -> Array:
        return active_set(F.T @ (w[:, None] * F), F.T @ (w * target)).weights

    F = columns()
    g = weights_of(F)
    for _ in range(sweeps):
        keep = g > 1e-8
        indices, D, g = indices[keep], xp.take(D, xp.nonzero(keep)[0], axis=1), g[keep]
        widths = [s for s, stays in zip(widths, keep) if bool(stays)]
        g = g / xp.sum(g)
        F = columns()
        for j in range(len(widths)):
            share = float(g[j])
            if 1e-12 < share < 1 - 1e-12:
                # the rest of the model as the y of (15): lambda y = F g without column j
                rest = (F @ g - share * F[:, j]) / (1.0 - share)
                widths[j] = tune_width(
                    D[:, j], rest, target, w, 1.0 - share, widths[j], unit=unit, dim=dim, steps=1, floor=floor
                )
                F = columns()
        g = weights_of(F)
    keep = g > 1e-8
    g = g[keep] / xp.sum(g[keep])
    kept = asarray_like([s for s, stays in zip(widths, keep) if bool(stays)], X, dtype=X.dtype)
    return ConstrainedFit(indices[keep], kept, g, fit.trace, fit.stop)
