r"""Densities by orthogonal forward regression with leave-one-out score and local regularization: SKD and SDC.

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
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array
from fewkern.arrays.numerics import normal_cdf, quiet
from fewkern.arrays.progress import Step
from fewkern.core.path import Path, Stop, peel
from fewkern.density.problem import DensityProblem, RoundMixture, size_path, squared_distances
from fewkern.density.simplex import SimplexSolution, active_set

# Assumption: SKD skips a column once less than this fraction of its squared length is new. The target has no noise, and
# leave-one-out alone goes on to more than 100 columns. SDC only skips columns that are in the model up to rounding.
_SKIP_KERNEL, _SKIP_DISTRIBUTION = 1e-2, 1e-12
# Assumption, from the factor ten in the cost table of the paper: passes with a penalty of its own for every column,
# after the first one.
PASSES = 10


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

    weights: Array
    steps: tuple[RegressionStep, ...]
    residual: float
    """Squared length of what the model leaves."""
    stop: Stop

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns in order of entry."""
        return tuple(step.column for step in self.steps)

    @property
    def path(self) -> Path:
        """Leave-one-out score after every column."""
        error = np.array([step.loo for step in self.steps])
        return size_path(error, len(error) - 1, "mean squared leave-one-out error")


class _Regression:
    """What forward regression has left of the columns and of the target."""

    def __init__(self, F: Array, target: Array, penalties: Array, skip: float, nonnegative: bool) -> None:
        self.W, self.penalties = F, penalties
        self.least = skip * np.sum(F * F, axis=0)
        self.nonnegative = nonnegative
        self.e, self.eta = target, np.ones_like(target)
        self.score = math.inf
        self.free = np.ones(len(penalties), dtype=bool)
        # weights of the model, and the coefficients R of every column on those taken: phi_j = F_S R_j + w_j
        self.beta = np.zeros(0)
        self.R = np.zeros((0, F.shape[1]))

    def find(self) -> RegressionStep | Stop:
        """The column of least leave-one-out score."""
        W = self.W
        squares = np.sum(W * W, axis=0)
        first = len(self.beta) == 0
        if first and not float(np.max(squares)) > 0:
            return Stop.PRECISION
        usable = self.free & (squares > self.least)
        denominator = np.where(usable, squares + self.penalties, 1.0)
        theta = (self.e @ W) / denominator
        if self.nonnegative:
            usable = usable & (theta >= 0) & np.all(self.beta[:, None] - theta * self.R >= 0, axis=0)
        E = self.e[:, None] - theta * W
        rest = self.eta[:, None] - W * W / denominator
        sound = rest > 0
        usable = usable & np.all(sound, axis=0)
        ratio = E / np.where(sound, rest, 1.0)
        loo = np.where(usable, np.mean(ratio * ratio, axis=0), math.inf)
        j = int(np.argmin(loo))
        if not math.isfinite(float(loo[j])):
            if not first:
                return Stop.EXHAUSTED
            # a model needs one column: without a leave-one-out score, the one that explains most
            j = int(np.argmax((self.e @ W) ** 2 / denominator))
        elif not first and float(loo[j]) >= self.score:
            return Stop.ERROR
        return RegressionStep(j, float(theta[j]), float(squares[j]), float(loo[j]))

    def remove(self, step: RegressionStep) -> list[RegressionStep]:
        """Take the column out of the target and out of all other columns."""
        j = step.column
        column = self.W[:, j]
        self.e = self.e - step.theta * column
        self.eta = self.eta - column * column / (step.square + float(self.penalties[j]))
        self.beta = np.append(self.beta - step.theta * self.R[:, j], step.theta)
        self.free[j] = False
        alpha = np.where(self.free, (column @ self.W) / step.square, 0.0)
        self.R = np.vstack([self.R - self.R[:, j][:, None] * alpha, alpha])
        self.W = self.W - column[:, None] * alpha
        self.score = step.loo
        return [step]


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
        A column is passed over once what is left of it is below this fraction of its squared length.
    nonnegative : bool
        Whether a column is refused when any weight of the enlarged model would be negative.
    limit : int or None
        Largest number of columns.

    Notes
    -----
    ``O(n c)`` per step and a copy of ``F``.
    """
    state = _Regression(F, target, penalties, skip, nonnegative)
    most = min(F.shape[1], F.shape[0] - 1)
    peeled = peel(state, most if limit is None else min(most, limit))
    return ForwardRegression(state.beta, peeled.records, float(state.e @ state.e), peeled.stop)


def _regress(
    F: Array, target: Array, *, skip: float, nonnegative: bool, limit: int | None, step: Step
) -> tuple[ForwardRegression, Array]:
    """A first pass over all columns, the others over its subset; the last regression, and its columns of ``F``."""
    # Assumption: the penalties start at this fraction of the mean squared length of a column: units do not matter.
    initial = 1e-6 * float(np.mean(np.sum(F * F, axis=0)))
    penalties = np.full(F.shape[1], initial)
    result = orthogonal_forward(F, target, penalties, skip=skip, nonnegative=nonnegative, limit=limit)
    subset = np.array(result.columns, dtype=np.int64)
    F = F[:, subset]
    # in the subset, the columns of the first pass are 0, 1, 2, ...
    columns: tuple[int, ...] = tuple(range(len(subset)))
    penalties = penalties[subset]
    for count in range(PASSES if columns else 0):
        step(count + 1)
        _local_penalties(penalties, columns, result, len(F))
        result = orthogonal_forward(F, target, penalties, skip=skip, nonnegative=nonnegative, limit=limit)
        columns = result.columns
    return result, subset[list(columns)]


def _local_penalties(penalties: Array, columns: tuple[int, ...], result: ForwardRegression, n: int) -> None:
    r""":math:`\lambda_i \leftarrow \frac{\gamma_i}{N-\gamma}\frac{e'e}{\theta_i^2}` of the columns that were taken.

    Here :math:`\gamma_i = w_i'w_i / (\lambda_i + w_i'w_i)`, and :math:`\gamma` is their sum.
    """
    taken = list(columns)
    squares, thetas = np.array([[s.square, s.theta] for s in result.steps]).T
    gammas = squares / (penalties[taken] + squares)
    # bounds on the degrees of freedom and on theta keep a penalty finite
    freedom = max(n - sum(gammas.tolist()), 1e-6 * n)
    with quiet():
        fresh = gammas / freedom * result.residual / np.maximum(thetas**2, sys.float_info.min)
    penalties[taken] = np.minimum(fresh, 1e200)


def sparse_kernel_density(
    problem: DensityProblem,
    target: Array,
    bandwidth: float,
    *,
    limit: int | None = None,
    solve: Callable[[Array, Array], SimplexSolution] = active_set,
    step: Step = lambda _: None,
) -> tuple[RoundMixture, ForwardRegression]:
    """SKD: Parzen's estimate ``target`` (in the unit of the problem) regressed on at most ``limit`` kernels.

    The weights come from the simplex programme on the same least squares, on the selected columns only. ``step`` is
    called with the number of passes; the last regression is returned, too.
    """
    # weighted least squares: rows times the root of n w
    root = np.sqrt(problem.n * problem.w)
    F = root[:, None] * problem.kernel(squared_distances(problem.Z, problem.centers), bandwidth)
    y = root * target
    regression, columns = _regress(F, y, skip=_SKIP_KERNEL, nonnegative=False, limit=limit, step=step)
    F = F[:, columns]
    g = solve(F.T @ F, F.T @ y).weights
    keep = g >= 1e-6
    return problem.mixture(problem.candidates[columns][keep], bandwidth, g[keep]), regression


def distribution_target(Z: Array, problem: DensityProblem) -> Array:
    r"""Empirical distribution function :math:`F(x) = \sum_j w_j \prod_d 1[x_{jd} \le x_d]` at the rows of ``Z``."""
    blocks = row_blocks(len(Z), problem.n * problem.dim)
    return np.concatenate([np.all(problem.Z <= Z[rows, None, :], axis=2) @ problem.w for rows in blocks])


def sparse_density_construction(
    problem: DensityProblem, target: Array, bandwidth: float, *, limit: int | None = None, step: Step = lambda _: None
) -> tuple[RoundMixture, ForwardRegression]:
    """SDC: the empirical distribution function ``target`` regressed on at most ``limit`` integrated kernels.

    A column enters only while every weight stays at zero or above; the sum is made one at the end.
    """
    Z, centers = problem.Z, problem.centers
    F = normal_cdf((Z[:, 0][:, None] - centers[:, 0][None, :]) / bandwidth)
    for d in range(1, problem.dim):
        F = F * normal_cdf((Z[:, d][:, None] - centers[:, d][None, :]) / bandwidth)
    root = np.sqrt(problem.n * problem.w)
    regression, columns = _regress(
        root[:, None] * F, root * target, skip=_SKIP_DISTRIBUTION, nonnegative=True, limit=limit, step=step
    )
    g = regression.weights
    return problem.mixture(problem.candidates[columns][g > 0], bandwidth, g[g > 0]), regression
