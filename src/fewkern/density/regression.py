r"""Densities by orthogonal forward regression with leave-one-out score and local regularisation: SKD and SDC.

SKD regresses Parzen's estimate on kernels, SDC the empirical distribution function on integrated kernels. Both are
reconstructions: the FCR paper quotes them without the details, so every assumption is marked below.

============================ ==============================================
symbol                       name
============================ ==============================================
:math:`\phi_j`               column of ``F``
:math:`w_j`                  column of ``W``: ``F`` orthogonal to those taken
:math:`\theta_j, \lambda_j`  ``theta``, ``penalties``
:math:`e, \eta`              ``e``, ``eta``: residual and leave-one-out factor
============================ ==============================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fewkern.backend.blocks import row_blocks
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.special import normal_cdf
from fewkern.backend.storable import storable
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.density.mixture import normal_kernel, squared_distances
from fewkern.density.simplex import active_set, mnqp

__all__ = [
    "ForwardRegression",
    "OrthogonalDensity",
    "RegressionStep",
    "distribution_target",
    "orthogonal_forward",
    "sparse_density_construction",
    "sparse_kernel_density",
]


@storable
@dataclass(frozen=True)
class RegressionStep:
    """One column of the forward regression."""

    column: int
    theta: float
    square: float
    """:math:`w_j'w_j`"""
    loo: float
    """Leave-one-out score with this column in the model."""


@dataclass(frozen=True)
class ForwardRegression:
    """Columns in order of entry and their least-squares weights."""

    columns: tuple[int, ...]
    weights: Array
    trace: tuple[RegressionStep, ...]
    residual: float
    """Squared length of what the model leaves."""
    stop: str


@dataclass(frozen=True)
class OrthogonalDensity:
    """Chosen rows and weights on the simplex."""

    indices: Array
    weights: Array
    trace: tuple[RegressionStep, ...]
    """Of the last pass."""
    total: float
    """Sum of the regression weights before it was made one."""
    stop: str


def orthogonal_forward(
    F: Array, target: Array, penalties: Array, *, skip: float, nonnegative: bool = False, limit: int | None = None
) -> ForwardRegression:
    r"""Orthogonal forward regression: the column of least leave-one-out score enters until the score rises.

    .. math:: \theta_j = \frac{w_j'y}{w_j'w_j + \lambda_j}, \quad e \leftarrow e - \theta_j w_j, \quad
              \eta \leftarrow \eta - \frac{w_j \circ w_j}{w_j'w_j + \lambda_j}, \quad
              J = \frac1N \sum_i (e_i/\eta_i)^2

    Parameters
    ----------
    F : array of shape (n, c)
    target : array of shape (n,)
    penalties : array of shape (c,)
    skip : float
        A column is passed over once what is left of it is below this part of its squared length.
    nonnegative : bool
        Whether a column is refused when any weight of the enlarged model would be negative.

    Notes
    -----
    ``O(n c)`` per step and a copy of ``F``.
    """
    xp = namespace(F)
    n, c = int(F.shape[0]), int(F.shape[1])
    W = F
    lengths = xp.sum(F * F, axis=0)
    e, eta = target, xp.ones_like(target)
    score = float(xp.mean(target * target))
    taken = xp.zeros((c,), dtype=xp.bool, device=device(F))
    numbers = xp.arange(c, device=device(F))
    # weights of the model, and the coefficients R of every column on those taken: phi_j = F_S R_j + w_j
    beta = xp.zeros((0,), dtype=F.dtype, device=device(F))
    R = xp.zeros((0, c), dtype=F.dtype, device=device(F))

    def find(count: int) -> RegressionStep | Stop:
        squares = xp.sum(W * W, axis=0)
        usable = ~taken & (squares > skip * lengths)
        denominator = xp.where(usable, squares + penalties, xp.ones_like(squares))
        theta = (e @ W) / denominator
        if nonnegative:
            usable = usable & (theta >= 0) & xp.all(beta[:, None] - theta * R >= 0, axis=0)
        E = e[:, None] - theta * W
        rest = eta[:, None] - W * W / denominator
        sound = rest > 0
        usable = usable & xp.all(sound, axis=0)
        ratio = E / xp.where(sound, rest, xp.ones_like(rest))
        loo = xp.where(usable, xp.mean(ratio * ratio, axis=0), xp.full_like(squares, math.inf))
        j = int(xp.argmin(loo))
        if not math.isfinite(float(loo[j])):
            if count:
                return Stop("no admissible column")
            # a model needs one column: without a leave-one-out score, the one that explains most
            j = int(xp.argmax((e @ W) ** 2 / denominator))
        elif count and float(loo[j]) >= score:
            return Stop("leave-one-out score no longer falls")
        return RegressionStep(j, float(theta[j]), float(squares[j]), float(loo[j]))

    def remove(step: RegressionStep) -> list[RegressionStep]:
        nonlocal W, e, eta, taken, beta, R, score
        j = step.column
        column = W[:, j]
        penalty = float(penalties[j])
        e = e - step.theta * column
        eta = eta - column * column / (step.square + penalty)
        beta = xp.concat([beta - step.theta * R[:, j], asarray_like([step.theta], F, dtype=F.dtype)])
        alpha = (column @ W) / step.square
        taken = taken | (numbers == j)
        alpha = xp.where(taken, xp.zeros_like(alpha), alpha)
        R = xp.concat([R - R[:, j][:, None] * alpha, alpha[None, :]], axis=0)
        W = W - column[:, None] * alpha
        score = step.loo
        return [step]

    peeled = peel(find, remove, min(c, n - 1) if limit is None else min(c, n - 1, limit))
    return ForwardRegression(
        tuple(step.column for step in peeled.records), beta, peeled.records, float(e @ e), peeled.stop
    )


def _with_local_penalties(
    F: Array, target: Array, *, skip: float, nonnegative: bool, passes: int, limit: int | None
) -> tuple[ForwardRegression, Array]:
    """First pass over all columns, then ``passes`` over its subset with a penalty of its own for every column.

    Returns the last regression and the column numbers its ``columns`` refer to.
    """
    xp = namespace(F)
    n = int(F.shape[0])
    # relative to the length of a column, so that units do not matter (an assumption: the paper gives no start)
    initial = 1e-6 * float(xp.mean(xp.sum(F * F, axis=0)))
    penalties = xp.full((F.shape[1],), initial, dtype=F.dtype, device=device(F))
    result = orthogonal_forward(F, target, penalties, skip=skip, nonnegative=nonnegative, limit=limit)
    subset = asarray_like(result.columns, F, dtype=xp.int64)
    F = xp.take(F, subset, axis=1)
    # the subset in order of entry, so the columns of the first pass are 0, 1, 2, ... in it
    steps = [RegressionStep(k, s.theta, s.square, s.loo) for k, s in enumerate(result.trace)]
    local = [initial] * len(steps)
    # ten passes: an assumption, from the factor ten in the cost table of the paper
    for _ in range(passes):
        gammas = {s.column: s.square / (local[s.column] + s.square) for s in steps}
        free = max(n - sum(gammas.values()), 1e-6 * n)
        for s in steps:
            local[s.column] = min(gammas[s.column] / free * result.residual / max(s.theta**2, 1e-300), 1e200)
        penalties = asarray_like(local, F, dtype=F.dtype)
        result = orthogonal_forward(F, target, penalties, skip=skip, nonnegative=nonnegative, limit=limit)
        steps = list(result.trace)
    return replace(result, columns=tuple(s.column for s in steps), trace=tuple(steps)), subset


def sparse_kernel_density(
    X: Array,
    w: Array,
    target: Array,
    unit: float,
    candidates: Array,
    width: float,
    *,
    passes: int = 10,
    limit: int | None = None,
    exact: bool = True,
) -> OrthogonalDensity:
    """SKD: Parzen's estimate ``target`` (in the unit of ``unit``) regressed on kernels of one ``width``.

    The weights come from the simplex programme on the same least squares, on the selected columns only: exactly, or by
    the multiplicative updates of the literature, which leave a small weight on columns that should have none.
    """
    xp = namespace(X)
    n, m = int(X.shape[0]), int(X.shape[1])
    F = normal_kernel(squared_distances(X, take_rows(X, candidates)), width, m, unit)
    # weighted least squares: rows times the root of n w
    root = xp.sqrt(n * w)
    F, y = root[:, None] * F, root * target
    # skip at 1e-2: an assumption. The target has no noise, and leave-one-out alone goes on to more than 100 columns.
    result, subset = _with_local_penalties(F, y, skip=1e-2, nonnegative=False, passes=passes, limit=limit)
    columns = take_rows(subset, asarray_like(result.columns, X, dtype=xp.int64))
    F = xp.take(F, columns, axis=1)
    g = (active_set if exact else mnqp)(F.T @ F, F.T @ y).weights
    keep = g >= 1e-6
    total = float(xp.sum(result.weights))
    g = g[keep] / xp.sum(g[keep])
    return OrthogonalDensity(take_rows(candidates, columns)[keep], g, result.trace, total, result.stop)


def distribution_target(X: Array, samples: Array, w: Array) -> Array:
    r"""Empirical distribution function :math:`F(x) = \sum_j w_j \prod_d 1[x_{jd} \le x_d]` at the rows of ``X``."""
    xp = namespace(X)
    out = xp.empty((X.shape[0],), dtype=X.dtype, device=device(X))
    for rows in row_blocks(int(X.shape[0]), int(samples.shape[0])):
        below = samples[:, 0][None, :] <= X[rows, 0][:, None]
        for d in range(1, int(X.shape[1])):
            below = below & (samples[:, d][None, :] <= X[rows, d][:, None])
        out[rows] = xp.astype(below, X.dtype) @ w
    return out


def sparse_density_construction(
    X: Array,
    w: Array,
    target: Array,
    candidates: Array,
    width: float,
    *,
    passes: int = 10,
    limit: int | None = None,
) -> OrthogonalDensity:
    """SDC: the empirical distribution function ``target`` regressed on integrated kernels of one ``width``.

    A column enters only while every weight stays at zero or above; the sum is made one at the end.
    """
    xp = namespace(X)
    n = int(X.shape[0])
    centres = take_rows(X, candidates)
    F = normal_cdf((X[:, 0][:, None] - centres[:, 0][None, :]) / width)
    for d in range(1, int(X.shape[1])):
        F = F * normal_cdf((X[:, d][:, None] - centres[:, d][None, :]) / width)
    root = xp.sqrt(n * w)
    result, subset = _with_local_penalties(
        root[:, None] * F, root * target, skip=1e-12, nonnegative=True, passes=passes, limit=limit
    )
    columns = take_rows(subset, asarray_like(result.columns, X, dtype=xp.int64))
    total = float(xp.sum(result.weights))
    keep = result.weights > 0
    g = result.weights[keep]
    return OrthogonalDensity(take_rows(candidates, columns)[keep], g / xp.sum(g), result.trace, total, result.stop)
