r"""Penalised least squares on kernel columns: the problem that kFDA_q, its starts and its checks share.

The objective is (5) of the KFD paper, with a penalty per *row* of coefficients, so that several targets share one
support:

.. math:: J(\Omega) = \tfrac12 \|Y - \tilde K \Omega\|_F^2 + \lambda \sum_i \|\Omega_i\|_2^q, \qquad \lambda = \rho N
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.linalg import solve_shifted
from fewkern.backend.namespace import Array, asarray_like, device, namespace

__all__ = ["PenalizedProblem", "objective", "penalized_problem", "ridge_rows", "row_norms"]


@dataclass(frozen=True)
class PenalizedProblem:
    """Columns and targets with the sample weights multiplied in and a free bias projected out.

    A free bias is the least-squares constant of whatever the rest leaves, so taking the weighted means out of the
    columns and of the targets gives the same problem without it. A penalised bias is one more column, the first.
    """

    columns: Array
    """``(n, m)``; rows times the root of their weight."""
    target: Array
    """``(n, p)``; likewise."""
    correlations: Array
    """``columns' target``, ``(m, p)``."""
    square: float
    """Squared norm of the target."""
    gram: Array | None
    """``columns' columns`` where it was worth forming once; otherwise it is formed on the live columns only."""
    column_means: Array
    target_means: Array
    bias_column: bool

    @property
    def n(self) -> int:
        """Number of samples; the weights add up to it."""
        return int(self.columns.shape[0])

    @property
    def m(self) -> int:
        """Number of penalised components, a penalised bias included."""
        return int(self.columns.shape[1])

    def take(self, S: Array) -> Array:
        """The columns ``S``."""
        return namespace(self.columns).take(self.columns, S, axis=1)

    def gram_of(self, S: Array) -> Array:
        """``columns_S' columns_S``."""
        xp = namespace(self.columns)
        if self.gram is not None:
            return xp.take(xp.take(self.gram, S, axis=0), S, axis=1)
        A = self.take(S)
        return A.T @ A

    def norms_of(self, S: Array) -> Array:
        """Squared norms of the columns ``S``."""
        xp = namespace(self.columns)
        if self.gram is not None:
            return xp.take(xp.linalg.diagonal(self.gram), S)
        A = self.take(S)
        return xp.sum(A * A, axis=0)

    def gradient(self, S: Array, W: Array) -> Array:
        """``columns' (target - columns_S W)``: every component's pull, ``(m, p)``."""
        xp = namespace(self.columns)
        if S.shape[0] == 0:
            return self.correlations
        if self.gram is not None:
            return self.correlations - xp.take(self.gram, S, axis=1) @ W
        return self.columns.T @ (self.target - self.take(S) @ W)

    def split(self, S: Array, W: Array) -> tuple[Array, Array, Array]:
        """Support among the candidates, their coefficients, and the bias ``(p,)``, of the solution ``W`` on ``S``."""
        xp = namespace(self.columns)
        if not self.bias_column:
            return S, W, self.target_means - xp.take(self.column_means, S) @ W
        is_bias = S == 0
        bias = xp.sum(xp.where(is_bias[:, None], W, xp.zeros_like(W)), axis=0)
        kept = xp.nonzero(~is_bias)[0]
        return xp.take(S, kept) - 1, xp.take(W, kept, axis=0), bias


def penalized_problem(
    K: Array, Y: Array, *, weights: Array | None = None, penalize_bias: bool = False, gram: bool | None = None
) -> PenalizedProblem:
    """The problem on the kernel columns ``K`` (n, m) with targets ``Y`` (n, p).

    Parameters
    ----------
    K, Y : arrays
    weights : array of shape (n,) or None
        Positive sample weights; they are scaled to add up to ``n``.
    penalize_bias : bool
        The paper penalises the bias like a sample.
    gram : bool or None
        Whether to form ``K'K``, at a cost of ``n m^2``. None does so when there are at least twice as many
        samples as columns: every later step then is independent of ``n``.
    """
    xp = namespace(K)
    n, m = int(K.shape[0]), int(K.shape[1])
    if weights is not None and bool(xp.all(weights == weights[0])):
        weights = None
    one = xp.ones((n,), dtype=K.dtype, device=device(K))
    root = one if weights is None else xp.sqrt(weights * (n / xp.sum(weights)))
    if penalize_bias:
        A = xp.concat([one[:, None], K], axis=1)
        B = Y
        column_means = xp.zeros((m,), dtype=K.dtype, device=device(K))
        target_means = xp.zeros((int(Y.shape[1]),), dtype=K.dtype, device=device(K))
    else:
        share = root * root / n
        column_means, target_means = share @ K, share @ Y
        A, B = K - column_means[None, :], Y - target_means[None, :]
    if weights is not None:
        A, B = A * root[:, None], B * root[:, None]
    if gram is None:
        gram = n >= 2 * m
    return PenalizedProblem(
        columns=A,
        target=B,
        correlations=A.T @ B,
        square=float(xp.sum(B * B)),
        gram=A.T @ A if gram else None,
        column_means=column_means,
        target_means=target_means,
        bias_column=penalize_bias,
    )


def row_norms(W: Array) -> Array:
    """Euclidean norm of every row."""
    xp = namespace(W)
    return xp.abs(W[:, 0]) if W.shape[1] == 1 else xp.sqrt(xp.sum(W * W, axis=1))


def objective(problem: PenalizedProblem, W: Array, G: Array, B: Array, lam: float, q: float) -> float:
    """``J`` of (5) at the rows ``W``, given their Gram matrix ``G`` and correlations ``B``."""
    xp = namespace(W)
    fit = problem.square + float(xp.sum(W * (G @ W - 2.0 * B)))
    norms = row_norms(W)
    # the square root and the absolute value are much cheaper than a general power
    powers = norms if q == 1 else xp.sqrt(norms) if q == 0.5 else norms**q
    return max(fit, 0.0) / 2 + lam * float(xp.sum(powers))


def ridge_rows(problem: PenalizedProblem, lam: float) -> Array:
    """``(A'A + lam I)^{-1} A'Y`` on all columns, from the smaller of the two sides."""
    A = problem.columns
    if problem.m <= problem.n:
        G = A.T @ A if problem.gram is None else problem.gram
        return solve_shifted(G, problem.correlations, lam)
    return A.T @ solve_shifted(A @ A.T, problem.target, lam)


def indices_like(values: list[int], like: Array) -> Array:
    """Integer positions as an array of the library of ``like``."""
    xp = namespace(like)
    return asarray_like(values, like, dtype=xp.int64)
