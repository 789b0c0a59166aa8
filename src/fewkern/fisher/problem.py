r"""The least-squares problem of a fit: targets (methods K8), samples that may be kept (K2), and a penalty (5).

With :math:`\pi_c = N_c / N`, the class points :math:`\theta_c` satisfy :math:`\sum_c \pi_c \theta_c = 0` and
:math:`\sum_c \pi_c \theta_c \theta_c^T = I`; a sample of class ``c`` has the target :math:`s\,\theta_c`,
:math:`s = \prod_c \pi_c^{-1/C}`. For two classes these are the :math:`+N/N_1, -N/N_2` of the KFD paper.

The objective is (5) of the paper, with a penalty per *row* of coefficients, so that several targets share one support:

.. math:: J(\Omega) = \tfrac12 \|Y - \tilde K \Omega\|_F^2 + \lambda \sum_i \|\Omega_i\|_2^q, \qquad \lambda = \rho N
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fewkern.arrays.linalg import solve_shifted
from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import distinct_rows
from fewkern.arrays.numerics import squarable
from fewkern.core.kernel import Kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.core.statistics import Statistics
from fewkern.select.selection import SelectionRule, choose_basis

# All distinct samples are candidates up to this number; beyond it, this number of them, chosen by the gain rule of FVS
# (methods K6).
# With several classes (8) starts with all candidates alive, and a step costs their number cubed.
_MAX_CANDIDATES, _MAX_CANDIDATES_MULTICLASS = 1000, 400


@dataclass(frozen=True)
class FisherTargets:
    """Class points of the discriminant regression."""

    priors: Array
    """Weighted class shares, ``(C,)``."""
    theta: Array
    """``(C, C - 1)``."""
    scale: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.priors.shape[0])

    def rows(self, codes: Array) -> Array:
        """Targets ``(n, C - 1)`` of samples with class numbers ``codes``."""
        return self.scale * self.theta[codes]

    def posteriors(self, F: Array) -> Array:
        r"""The least-squares posteriors :math:`\pi_c (1 + \theta_c^T f / s)` of discriminants; they add up to one.

        For two classes the larger one is that on its side of the paper's threshold :math:`\tfrac N2 (1/N_1 - 1/N_2)`.
        """
        return self.priors * (1.0 + F @ self.theta.T / self.scale)

    def values(self, posteriors: Array) -> Array:
        """The discriminant ``f`` whose :meth:`posteriors` are given."""
        return self.scale * (posteriors @ self.theta)

    def midpoint_rule(self) -> ClassScores:
        """Scores whose probabilities are the :meth:`posteriors`."""
        M, c = (self.priors[:, None] * self.theta / self.scale).T, self.priors
        if self.n_classes == 2:  # the difference of the two posteriors, which add up to one
            M, c = M[:, 1:] - M[:, :1], c[1:] - c[:1]
        return ClassScores(M, c, shares=(0.0, 1.0))


def fisher_targets(codes: Array, n_classes: int, weights: Array) -> FisherTargets:
    """Targets for class numbers ``codes`` with positive sample ``weights``; every class must occur.

    Column ``j`` of ``theta`` sets class ``j + 1`` against all earlier ones (any rotation gives the same model), so
    for two classes the second is the positive one.
    """
    mass = np.bincount(codes, weights=weights, minlength=n_classes)
    share = (mass / np.sum(mass)).tolist()
    if min(share) <= 0:
        raise ValueError(f"fisher_targets: class number {share.index(min(share))} has no sample.")
    theta = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        before = sum(share[:j])
        for c in range(j):
            theta[c, j - 1] = -math.sqrt(share[j] / (before * (before + share[j])))
        theta[j, j - 1] = math.sqrt(before / (share[j] * (before + share[j])))
    scale = math.exp(-sum(math.log(p) for p in share) / n_classes)
    return FisherTargets(np.array(share, dtype=weights.dtype), theta.astype(weights.dtype), scale)


@dataclass(frozen=True)
class Candidates:
    """Samples that a model may keep, and their kernel columns."""

    kernel: Kernel
    rows: Array
    """Positions among the samples, ``(m,)``."""
    row_to_candidate: Array | None
    """Candidate that equals each sample, ``(n,)``. None if the candidates were chosen without the labels: every fold
    may then use all of them."""
    K: Array
    """``(n, m)``."""

    @classmethod
    def of(cls, samples: Samples, kernel: Kernel, limit: int | None, seed: int) -> Candidates:
        """Every distinct sample, or ``limit`` vectors that span the samples (None: 1,000, with several classes 400)."""
        # Paper: one column per sample. We: one per distinct sample, because equal columns leave q = 1 undetermined.
        rows, row_to_candidate = distinct_rows(samples.X)
        if limit is None:
            limit = _MAX_CANDIDATES if samples.n_classes == 2 else _MAX_CANDIDATES_MULTICLASS
        if len(rows) > limit:
            rows = np.sort(choose_basis(samples, kernel, SelectionRule(seed=seed), limit).indices)
            row_to_candidate = None
        return cls(kernel, rows, row_to_candidate, kernel(samples.X, kernel.pick(samples.X, rows)))

    def columns_for(self, rows: Array) -> Array | None:
        """Candidates that a fold with the training samples ``rows`` may use; None: all."""
        return None if self.row_to_candidate is None else np.unique(self.row_to_candidate[rows])


def kernel_scale(samples: Samples, kernel: Kernel) -> float:
    """Mean of ``k(x, x)``."""
    diag = kernel.diag(samples.X)
    largest, limit = float(np.max(diag)), squarable(diag)
    if not 1 / limit < largest < limit:
        raise ValueError(
            f"kernel Fisher: the largest k(x, x) is {largest:.3g}, but must lie between {1 / limit:.0e} and "
            f"{limit:.0e}, so that its square is a number; scale the samples, for example with StandardScaler, or use "
            "another kernel."
        )
    return float(np.mean(diag))


@dataclass(frozen=True)
class Ending:
    """How an iteration ended."""

    stop: Stop
    n_iter: int
    criterion: str = ""
    """What is compared with the tolerance, in words."""
    reached: float = 0.0
    """Last value of the criterion."""
    tol: float = 0.0


@dataclass(frozen=True)
class Discriminant:
    """A discriminant, coefficients on the columns ``support`` and a bias, and how it was found."""

    support: Array
    """Candidate columns with a coefficient."""
    coef: Array
    """``(k, p)``, one row per column of the support."""
    offset: Array
    """Bias, ``(p,)``."""
    setting: float
    """Penalty, or number of vectors."""
    objectives: tuple[float, ...]
    """What was minimized, after every step; it never rises."""
    ending: Ending
    lasso: ActiveSet | None = None
    """The exact solution for ``q = 1`` that was computed on the way: a start for the next smaller penalty."""

    @property
    def size(self) -> int:
        """Number of columns kept."""
        return int(self.support.shape[0])

    @property
    def objective(self) -> float:
        """What was minimized, at the solution."""
        return self.objectives[-1]

    def values(self, K: Array) -> Array:
        """Discriminant ``(n, p)`` of samples whose candidate columns are ``K``."""
        return np.take(K, self.support, axis=1) @ self.coef + self.offset[None, :]


@dataclass(frozen=True)
class PenalizedProblem:
    """Products of the kernel columns and targets, the sample weights multiplied in and a free bias projected out.

    A free bias is the least-squares constant of whatever the rest leaves, so taking the weighted means out of the
    columns and of the targets gives the same problem without it.
    """

    n: int
    """Number of samples; the weights add up to it."""
    gram: Array
    """``K'K``, ``(m, m)``."""
    correlations: Array
    """``K'Y``, ``(m, p)``."""
    square: float
    """Squared norm of the targets."""
    column_means: Array
    target_means: Array

    def solution(self, active: ActiveSet) -> tuple[Array, Array, Array]:
        """Support among the candidates, coefficients and bias."""
        S, W = active.S, active.W
        return S, W, self.target_means - self.column_means[S] @ W


@dataclass(frozen=True)
class ActiveSet:
    """Components that may differ from zero, and what every step needs of them. All others are exactly zero."""

    problem: PenalizedProblem
    S: Array
    """Numbers of the components."""
    W: Array
    """Coefficients of the components, ``(k, p)``."""
    B: Array
    """Correlations of their columns with the target, ``(k, p)``."""
    G: Array
    """Gram matrix of their columns."""

    @classmethod
    def of(cls, problem: PenalizedProblem, S: Array, W: Array) -> ActiveSet:
        """The components ``S`` at ``W``."""
        return cls(problem, S, W, problem.correlations[S], _submatrix(problem.gram, S))

    @classmethod
    def empty(cls, problem: PenalizedProblem) -> ActiveSet:
        """No component."""
        return cls.of(problem, np.zeros(0, dtype=np.int64), problem.correlations[:0])

    @property
    def size(self) -> int:
        """Number of components."""
        return int(self.S.shape[0])

    @property
    def norms(self) -> Array:
        """Squared norms of their columns."""
        return np.diagonal(self.G)

    def at(self, W: Array) -> ActiveSet:
        """The same components at other coefficients."""
        return replace(self, W=W)

    def take(self, kept: Array) -> ActiveSet:
        """The components at the positions ``kept``."""
        return ActiveSet(self.problem, self.S[kept], self.W[kept], self.B[kept], _submatrix(self.G, kept))

    def where(self, mask: Array) -> ActiveSet:
        """The components at which ``mask`` is true."""
        return self.take(np.flatnonzero(mask))

    def join(self, N: Array, W: Array) -> ActiveSet:
        """The active set with the components ``N`` at ``W`` appended."""
        return ActiveSet.of(self.problem, np.concatenate([self.S, N]), np.concatenate([self.W, W]))

    def sorted(self) -> ActiveSet:
        """The components that differ from zero, ascending."""
        alive = self.where(row_norms(self.W) > 0)
        return alive.take(np.argsort(alive.S))

    def gradient(self) -> Array:
        """``K'(Y - K_S W)``: correlations of all columns with the residual, ``(m, p)``."""
        return self.problem.correlations - np.take(self.problem.gram, self.S, axis=1) @ self.W

    def objective(self, lam: float, q: float) -> float:
        """``J`` of (5)."""
        W = self.W
        fit = self.problem.square + float(np.sum(W * (self.G @ W - 2.0 * self.B)))
        return max(fit, 0.0) / 2 + lam * float(np.sum(row_norms(W) ** q))


def penalized_problem(K: Array, Y: Array, weights: Array | None = None) -> PenalizedProblem:
    """The problem on the kernel columns ``K`` (n, m) with targets ``Y`` (n, p).

    Parameters
    ----------
    K : array of shape (n, m)
        One column per *distinct* candidate: equal columns leave ``q = 1`` undetermined, and put ``q < 1`` on a saddle.
    Y : array of shape (n, p)
    weights : array of shape (n,) or None
        Positive sample weights; they are scaled to add up to ``n``.

    Notes
    -----
    ``n m^2`` for ``K'K``, once: every later step is independent of ``n``.
    """
    n = K.shape[0]
    root = np.ones(n, dtype=K.dtype) if weights is None else np.sqrt(weights * (n / np.sum(weights)))
    share = root * root / n
    # Paper: the bias is penalized like a sample. We: it is free, so that a shift of the targets changes nothing else.
    column_means, target_means = share @ K, share @ Y
    A, B = root[:, None] * (K - column_means), root[:, None] * (Y - target_means)
    return PenalizedProblem(n, A.T @ A, A.T @ B, float(np.sum(B * B)), column_means, target_means)


def summed_problem(sums: Statistics) -> PenalizedProblem:
    """The problem with a free bias whose kernel columns and targets are known by their sums over rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.statistics import Statistics
    >>> from fewkern.fisher.problem import penalized_problem, summed_problem
    >>> K = np.array([[1.0, 0.2], [0.5, 0.1], [0.1, 1.0], [0.3, 0.3]])
    >>> Y = np.array([[1.0], [2.0], [0.0], [1.0]])
    >>> rows, sums = penalized_problem(K, Y), summed_problem(Statistics.of(K, Y, np.ones(4)))
    >>> np.allclose(rows.gram, sums.gram), np.allclose(rows.correlations, sums.correlations)
    (True, True)
    """
    unit = sums.count / sums.weight
    means = sums.cross[0] / sums.weight
    square = max(float(unit * np.sum(sums.square - sums.weight * means * means)), 0.0)
    return PenalizedProblem(sums.count, unit * sums.scatter, unit * sums.centered_cross, square, sums.mean, means)


def row_norms(W: Array) -> Array:
    """Euclidean norm of every row."""
    return np.abs(W[:, 0]) if W.shape[1] == 1 else np.sqrt(np.sum(W * W, axis=1))


def ridge_rows(problem: PenalizedProblem, lam: float) -> Array:
    """``(K'K + lam I)^{-1} K'Y`` on all columns."""
    return solve_shifted(problem.gram, problem.correlations, lam)


def _submatrix(G: Array, S: Array) -> Array:
    """Rows and columns ``S``; four times as fast as ``np.ix_``."""
    return np.take(np.take(G, S, axis=0), S, axis=1)
