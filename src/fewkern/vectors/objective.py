r"""Refined vectors: move them, and learn the widths, by the gradient of the leave-one-out error (methods F13).

For given vectors ``V``, kernel scales ``s`` and ridge the best coefficients are known in closed form, so only
``V``, ``s`` and ``log ridge`` are searched (variable projection). With ``K = k(X, V)``, ``Kv = k(V, V) + jitter I``,
``P = [1 K]`` and weights ``w`` that sum to ``n``::

    A = P'WP + blockdiag(0, ridge Kv)    beta = A^-1 P'WY    R = Y - P beta    h_i = w_i p_i' A^-1 p_i

    leave-one-out   J = 1/n sum_i w_i |R_i / (1 - h_i)|^2                 targets with noise: labels, measurements
    least squares   J = 1/n (sum_i w_i |R_i|^2 + ridge beta' Kv beta)     the values of another model: no noise

both over the variance of ``Y``, plus ``tau (1 - fitness)``, the share of the samples' images that the vectors do not
explain, eq. (7a) of FVS, so that ``tau`` holds the vectors near a good selection.

Every term is a sum over the rows. A value with its gradient is two or three passes over row blocks (least squares,
leave-one-out), each a few matrix products: ``n m (d + m + q)`` flops. Blocks are float64 whatever ``X`` is, because the
line search compares values that differ in the seventh digit.

The leave-one-out error is *optimistic* for vectors that have seen the labels. What a refined model is worth is said by
:mod:`fewkern.vectors.refine_choice`, never by ``objective``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fewkern.backend.blocks import row_blocks
from fewkern.backend.linalg import inverse_psd
from fewkern.backend.namespace import Array, device, is_sparse, namespace, on_host
from fewkern.core.expansion import KernelExpansion
from fewkern.core.facing import Columns
from fewkern.core.kernel import Kernel
from fewkern.core.widths import feature_units

__all__ = ["Evaluation", "Objective", "Placement", "Point", "RefineProblem", "evaluate", "expand", "refine_problem"]

Aim = Literal["leave-one-out", "least squares"]
# The row blocks at a point, as often as they are asked for.
Blocks: TypeAlias = "Callable[[], Iterable[_Block]]"

# Added to the diagonal of k(V, V), in units of k(x, x): two vectors may meet.
JITTER = 1e-6
# A sample that decides its own value has 1 - h = 0. Below this share it is held there, and h has no gradient.
LEAST_LEFT = 1e-3
# So many row blocks are kept from one pass to the next, 4 MiB each on the host; more are computed anew in every pass.
KEPT_BLOCKS = 16


@dataclass(frozen=True)
class Placement:
    """What the search moves: vectors, kernel and ridge."""

    vectors: Array
    kernel: Kernel
    ridge: float


@dataclass(frozen=True)
class Evaluation:
    """The objective at a placement, its gradient, and the coefficients that belong to it."""

    value: float
    vectors: Array
    """Gradient with respect to the vectors, shape ``(m, d)``."""
    scales: Array
    """Gradient with respect to the logarithms of the kernel's scales."""
    log_ridge: float
    coef: Array
    offset: Array


@dataclass(frozen=True)
class RefineProblem:
    """Samples and targets, and what is to be minimized; built by :func:`refine_problem`."""

    X: Array
    Y: Array
    weights: Array
    """Sum to ``n``."""
    objective: Aim
    tau: float
    variance: float
    """Weighted variance of the targets, summed over the outputs."""
    spread: Array
    """Standard deviation of every feature: the unit in which vectors move where the kernel has no length."""
    block: int | None = None
    """Elements of a row block; None is the budget of the device."""


def refine_problem(
    X: Array, Y: Array, weights: Array | None = None, *, objective: Aim = "leave-one-out", tau: float = 0.0
) -> RefineProblem:
    """Collect what a search needs, with the weights scaled to sum to ``n``.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (n, q)
        Labels or measurements for "leave-one-out", the values of a teacher for "least squares".
    weights : array of shape (n,) or None
    objective : {"leave-one-out", "least squares"}
    tau : float
        How much the vectors must go on explaining the samples: 0 is free, 1 holds them near a good selection.
    """
    if is_sparse(X):
        raise ValueError(
            "refinement: vectors of sparse samples cannot be moved, because they would not stay sparse; "
            "pass a dense array, or leave the vectors where they are (refine=False)."
        )
    xp = namespace(X)
    n = int(X.shape[0])
    w = xp.ones((n,), dtype=xp.float64, device=device(X))
    if weights is not None:
        w = xp.astype(weights, xp.float64)
        w = w * (n / float(xp.sum(w)))
    values = xp.astype(Y, xp.float64)
    centered = values - (w @ values) / n
    variance = float(w @ xp.sum(centered * centered, axis=1)) / n
    return RefineProblem(X, Y, w, objective, tau, variance or 1.0, feature_units(X, "spread", w))


def evaluate(problem: RefineProblem, at: Placement) -> Evaluation:
    """Objective, gradient and coefficients at a placement, in two or three passes over the row blocks."""
    return Objective(problem, at)(Point.at(at))


def expand(problem: RefineProblem, at: Placement) -> KernelExpansion:
    """The ridge solution at a placement: one pass over the row blocks."""
    objective, point = Objective(problem, at), Point.at(at)
    beta = objective.solve(objective.blocks(point), point).beta
    xp, dtype = namespace(problem.X), problem.X.dtype
    coef, offset = xp.astype(beta[1:, :], dtype), xp.astype(beta[0, :], dtype)
    return KernelExpansion(at.kernel, xp.astype(at.vectors, dtype), coef, offset)


@dataclass(frozen=True)
class Point:
    """A placement as a search sees it: how far the kernel is from that of the start."""

    V: Array
    s: Array
    """Logarithms of the scales, over those of the start."""
    ridge: float

    @classmethod
    def at(cls, start: Placement) -> Point:
        xp, V = namespace(start.vectors), start.vectors
        s = xp.zeros((start.kernel.n_scales,), dtype=xp.float64, device=device(V))
        return cls(xp.astype(V, xp.float64, copy=False), s, start.ridge)


@dataclass(frozen=True)
class _Model:
    """The ridge solution at one point."""

    among: Columns
    """``k(V, V)``."""
    Kv: Array
    """With its jitter."""
    ridge: float
    inverse: Array
    """``A^-1``."""
    beta: Array
    unit: float
    """``1 / (n variance)``: what a squared residual counts."""
    KWK: Array
    trace: float
    """``sum_i w_i k_ii``."""
    by_scale: Array
    """Its gradient with respect to the logarithms of the scales."""


@dataclass(frozen=True)
class _Pull:
    """Gradient with respect to ``K``, ``W (R B + P C)`` and what a row adds, and to ``ridge Kv``, ``L``."""

    B: Array
    L: Array
    C: Array | None = None
    """None is zero."""


@dataclass(frozen=True)
class _LeftOut:
    """What leave-one-out says of a block of rows."""

    squares: Array
    """``|E_i|^2`` with ``E = R / (1 - h)``."""
    T: Array
    """``P A^-1``."""
    U: Array
    """Gradient with respect to ``R``: ``2/n W E / (1 - h)``."""
    g: Array
    """Gradient with respect to ``h``, times ``w``: ``2/n w^2 |E|^2 / (1 - h)``."""


class _Rows:
    """Some rows of a problem in float64, in front of the vectors."""

    def __init__(self, problem: RefineProblem, kernel: Kernel, near: Array, rows: slice) -> None:
        xp = namespace(near)
        X = xp.astype(problem.X[rows, :], near.dtype, copy=False)
        self.Y = xp.astype(problem.Y[rows, :], near.dtype, copy=False)
        self.w, self.facing = problem.weights[rows], kernel.facing(X, near)
        self.one = xp.ones((X.shape[0], 1), dtype=near.dtype, device=device(near))


class _Block:
    """Rows with the kernel values to the vectors of a point."""

    def __init__(self, rows: _Rows, point: Point) -> None:
        xp = namespace(point.V)
        self.rows, self.s = rows, point.s
        self.columns = rows.facing.columns(point.V, point.s)
        self.P = xp.concat([rows.one, self.columns.K], axis=1)
        self.WP = rows.w[:, None] * self.P
        self._residual: Array | None = None
        self._left_out: _LeftOut | None = None

    def moments(self) -> tuple[Array, ...]:
        """``P'WP``, ``P'WY``, and ``sum_i w_i k_ii`` with its gradient."""
        return self.WP.T @ self.P, self.WP.T @ self.rows.Y, *self.rows.facing.trace(self.rows.w, self.s)

    def residual(self, model: _Model) -> Array:
        """``R``."""
        if self._residual is None:
            self._residual = self.rows.Y - self.P @ model.beta
        return self._residual

    def left_out(self, model: _Model) -> _LeftOut:
        """Errors of the model fitted without each row, and what they pass back."""
        if self._left_out is None:
            xp, w = namespace(self.P), self.rows.w
            T = self.P @ model.inverse
            left = 1.0 - w * xp.vecdot(T, self.P)
            free = left > LEAST_LEFT
            left = xp.where(free, left, LEAST_LEFT)
            E = self.residual(model) / left[:, None]
            weight, squares = (2.0 * model.unit) * w / left, xp.vecdot(E, E)
            self._left_out = _LeftOut(squares, T, weight[:, None] * E, xp.where(free, weight * w * squares, 0.0))
        return self._left_out

    def loss(self, model: _Model) -> tuple[Array, ...]:
        """Squared error of the residuals, weighted."""
        R = self.residual(model)
        return (model.unit * (self.rows.w @ namespace(R).vecdot(R, R)),)

    def left_out_loss(self, model: _Model) -> tuple[Array, ...]:
        """Squared leave-one-out error, weighted, ``P'U`` and ``P' diag(g w) P``."""
        out = self.left_out(model)
        return model.unit * (self.rows.w @ out.squares), self.P.T @ out.U, (out.g[:, None] * self.P).T @ self.P

    def pulled(self, model: _Model, pull: _Pull, objective: Aim) -> tuple[Array, ...]:
        """Gradients with respect to vectors and scales."""
        D = (self.rows.w[:, None] * self.residual(model)) @ pull.B
        if pull.C is not None:
            D += self.WP @ pull.C
        if objective == "leave-one-out":
            out = self.left_out(model)
            D += (2.0 * out.g)[:, None] * out.T[:, 1:]
            D -= out.U @ model.beta[1:, :].T
        return self.columns.pull(D)


class Objective:
    """What a search minimizes, as a function of points; the samples are held for all of them."""

    def __init__(self, problem: RefineProblem, start: Placement) -> None:
        xp = namespace(problem.X)
        self.problem, self.n = problem, int(problem.X.shape[0])
        near = xp.astype(start.vectors, xp.float64, copy=False)
        width = int(near.shape[0]) + int(problem.X.shape[1])
        self._slices = list(row_blocks(self.n, width, problem.block, like=problem.X))
        self._rows = lambda rows: _Rows(problem, start.kernel, near, rows)
        self.facing = start.kernel.facing(near, near)
        self.identity = xp.eye(near.shape[0], dtype=near.dtype, device=device(near))
        self._few = len(self._slices) <= (KEPT_BLOCKS if on_host(problem.X) else 1)
        self._held = [self._rows(rows) for rows in self._slices] if self._few else []

    def __call__(self, point: Point) -> Evaluation:
        """Value and gradient."""
        problem, blocks = self.problem, self.blocks(point)
        xp, model = namespace(problem.X), self.solve(blocks, point)
        value, pull = (_leave_one_out if problem.objective == "leave-one-out" else _least_squares)(blocks, model)
        D_Kv, by_trace = point.ridge * pull.L, 0.0
        if problem.tau:
            # fitness = sum_i w_i k_i' Kv^-1 k_i / sum_i w_i k_ii
            inverse, share = inverse_psd(model.Kv), problem.tau / model.trace
            explained = inverse @ model.KWK
            fitness = float(xp.linalg.trace(explained)) / model.trace
            value += problem.tau * (1.0 - fitness)
            C = xp.zeros_like(model.inverse)[:, 1:] if pull.C is None else pull.C
            C[1:, :] -= (2.0 * share) * inverse
            pull = replace(pull, C=C)
            D_Kv = D_Kv + share * (explained @ inverse)
            by_trace = share * fitness
        by_trace += JITTER * float(xp.linalg.trace(D_Kv)) / self.n
        dV, ds = _total(blocks, lambda block: block.pulled(model, pull, problem.objective))
        dV_own, ds_own = model.among.pull(D_Kv)
        log_ridge = point.ridge * float(xp.sum(pull.L * model.Kv))
        ds = ds + ds_own + by_trace * model.by_scale
        return Evaluation(value, dV + dV_own, ds, log_ridge, model.beta[1:, :], model.beta[0, :])

    def blocks(self, point: Point) -> Blocks:
        """The row blocks at a point, kept for all passes unless they are many."""
        if self._few:
            kept = [_Block(rows, point) for rows in self._held]
            return lambda: kept
        return lambda: (_Block(self._rows(rows), point) for rows in self._slices)

    def solve(self, blocks: Blocks, point: Point) -> _Model:
        """The ridge solution."""
        PWP, PWY, trace, by_scale = _total(blocks, _Block.moments)
        among = self.facing.among(point.V, point.s)
        Kv = among.K + (JITTER * trace / self.n) * self.identity
        A = namespace(PWP).asarray(PWP, copy=True)
        A[1:, 1:] += point.ridge * Kv
        inverse = inverse_psd(A)
        unit = 1.0 / (self.n * self.problem.variance)
        return _Model(among, Kv, point.ridge, inverse, inverse @ PWY, unit, PWP[1:, 1:], trace, by_scale)


def _total(blocks: Blocks, statistics: Callable[[_Block], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Statistics of all rows: those of the blocks, added."""
    found = (statistics(block) for block in blocks())
    total = next(found)
    for more in found:
        total = tuple(a + b for a, b in zip(total, more))
    return total


def _least_squares(blocks: Blocks, model: _Model) -> tuple[float, _Pull]:
    """Value and gradient of the least-squares objective; ``beta`` is its minimum, so nothing passes through it."""
    xp = namespace(model.beta)
    (loss,) = _total(blocks, lambda block: block.loss(model))
    coef = model.beta[1:, :]
    L = model.unit * (coef @ coef.T)
    value = float(loss) + model.ridge * float(xp.sum(L * model.Kv))
    return value, _Pull((-2.0 * model.unit) * coef.T, L)


def _leave_one_out(blocks: Blocks, model: _Model) -> tuple[float, _Pull]:
    """Value and gradient of the leave-one-out objective."""
    loss, PU, PgP = _total(blocks, lambda block: block.left_out_loss(model))
    Q = model.inverse @ PU
    M = model.inverse @ PgP @ model.inverse
    Qb = Q @ model.beta.T
    L = 0.5 * (Qb + Qb.T) - M
    return float(loss), _Pull(-Q[1:, :].T, L[1:, 1:], (Qb - 2.0 * M)[:, 1:])
