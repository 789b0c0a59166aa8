r"""Fisher's discriminant as least squares: targets, posteriors, and the choice of settings by cross-validation.

With :math:`\pi_c = N_c / N`, the class points :math:`\theta_c` satisfy :math:`\sum_c \pi_c \theta_c = 0` and
:math:`\sum_c \pi_c \theta_c \theta_c^T = I`; a sample of class ``c`` has the target :math:`s\,\theta_c`,
:math:`s = \prod_c \pi_c^{-1/C}`. For two classes these are the :math:`+N/N_1, -N/N_2` of the KFD paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fewkern.backend.linalg import class_sums, solve_shifted
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows, to_numpy
from fewkern.backend.storable import floats, storable
from fewkern.vectors.calibration import softmax

__all__ = [
    "CrossValidation",
    "FisherTargets",
    "Fold",
    "LinearModel",
    "Link",
    "PosteriorRule",
    "cross_validate",
    "fisher_link",
    "fisher_targets",
    "gaussian_scores",
    "least_squares_scores",
    "logistic_scores",
]

PosteriorRule = Literal["gaussian", "logistic", "least_squares"]
# Rows to train on, and rows held out.
Fold = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class FisherTargets:
    """Class points of the discriminant regression."""

    priors: Array
    """Weighted class shares, ``(C,)``."""
    theta: Array
    """``(C, C - 1)``."""
    scale: float

    def rows(self, codes: Array) -> Array:
        """Targets ``(n, C - 1)`` of samples with class numbers ``codes``."""
        return self.scale * take_rows(self.theta, codes)


def fisher_targets(codes: Array, n_classes: int, weights: Array) -> FisherTargets:
    """Targets for class numbers ``codes`` with positive sample ``weights``; every class must occur.

    Column ``j`` of ``theta`` sets class ``j + 1`` against all earlier ones (any rotation gives the same machine), so
    for two classes the second is the positive one.
    """
    xp = namespace(weights)
    mass = class_sums(weights[:, None], codes, n_classes)[:, 0]
    share = [float(v) for v in to_numpy(mass / xp.sum(mass))]
    theta = [[0.0] * (n_classes - 1) for _ in range(n_classes)]
    for j in range(1, n_classes):
        before = sum(share[:j])
        for c in range(j):
            theta[c][j - 1] = -math.sqrt(share[j] / (before * (before + share[j])))
        theta[j][j - 1] = math.sqrt(before / (share[j] * (before + share[j])))
    scale = math.exp(-sum(math.log(p) for p in share) / n_classes)
    return FisherTargets(
        asarray_like(share, weights, dtype=weights.dtype), asarray_like(theta, weights, dtype=weights.dtype), scale
    )


def least_squares_scores(targets: FisherTargets) -> tuple[Array, Array]:
    r"""``(M, c)`` with ``F M + c`` the posteriors :math:`\pi_c (1 + \theta_c^T f / s)`, which sum to one.

    For two classes the larger one is that on its side of the paper's threshold :math:`\tfrac N2 (1/N_1 - 1/N_2)`.
    """
    return (targets.priors[:, None] * targets.theta / targets.scale).T, targets.priors


def gaussian_scores(F: Array, codes: Array, targets: FisherTargets, weights: Array) -> tuple[Array, Array]:
    """``(M, c)`` with ``softmax(F M + c)`` the posteriors of Gaussian classes of common covariance, fitted to ``F``."""
    xp = namespace(F)
    C = int(targets.priors.shape[0])
    mass = class_sums(weights[:, None], codes, C)
    means = class_sums(F * weights[:, None], codes, C) / mass
    D = F - take_rows(means, codes)
    # Paper: none. We: every class counts alike in the covariance, because a heavy class, whose scores the fit has
    # pressed together, would otherwise make the scores of all classes look certain.
    share = weights / take_rows(mass, codes)[:, 0] / C
    S = (D * share[:, None]).T @ D
    # A class that the machine fits exactly has no spread; a millionth of the targets' own scale keeps S invertible.
    k = int(S.shape[0])
    floor = 1e-6 * (float(xp.linalg.trace(S)) / k + targets.scale**2)
    M = solve_shifted(S, means.T, floor)
    return M, xp.log(targets.priors) - xp.sum(means * M.T, axis=1) / 2


def logistic_scores(
    F: Array, codes: Array, targets: FisherTargets, weights: Array, *, ridge: float = 1e-3, max_iter: int = 100
) -> tuple[Array, Array]:
    """``(M, c)`` of a multinomial logistic regression on ``F``, by damped Newton steps with a small ridge on ``M``."""
    xp = namespace(F)
    n, k = int(F.shape[0]), int(F.shape[1])
    C = int(targets.priors.shape[0])
    # in units of the targets the ridge means the same for every problem
    Z = xp.concat([F / targets.scale, xp.ones((n, 1), dtype=F.dtype, device=device(F))], axis=1)
    w = weights / xp.sum(weights)
    own = xp.astype(codes[:, None] == xp.arange(C, device=device(codes))[None, :], F.dtype)
    penalty = xp.concat([xp.full((k,), ridge, dtype=F.dtype, device=device(F)), xp.zeros_like(F[0, :1])])
    # The scores of all classes may be shifted together: a trace of a ridge on everything fixes the shift.
    every = penalty[:, None] + 1e-9
    V = xp.zeros((k + 1, C), dtype=F.dtype, device=device(F))

    def loss(V: Array) -> float:
        P = softmax(Z @ V)
        tiny = xp.full_like(P[:, 0], 1e-300 if str(F.dtype).endswith("64") else 1e-30)
        likely = xp.log(xp.maximum(xp.sum(own * P, axis=1), tiny))
        return float(-(w @ likely) + xp.sum(every * V * V) / 2)

    now = loss(V)
    for _ in range(max_iter):
        P = softmax(Z @ V)
        gradient = Z.T @ (w[:, None] * (P - own)) + every * V
        H = _logistic_hessian(Z, P, w)
        diagonal = xp.reshape((xp.zeros_like(V) + every).T, (-1,))
        H = H + xp.eye(C * (k + 1), dtype=F.dtype, device=device(F)) * diagonal[None, :]
        step = xp.reshape(solve_shifted(H, xp.reshape(gradient.T, (-1, 1)))[:, 0], (C, k + 1)).T
        length = 1.0
        while length > 1e-6 and loss(V - length * step) > now:
            length /= 2
        V = V - length * step
        new = loss(V)
        if now - new <= 1e-10 * abs(now) + 1e-14:
            break
        now = new
    return V[:k, :] / targets.scale, V[k, :]


@storable(weights=floats("k", "s"), offset=floats("s"))
@dataclass(frozen=True)
class Link:
    """Class scores as an affine map of the discriminant ``F``, and their way to probabilities.

    One score for two classes (positive: the second class), one per class otherwise, so that a machine that
    returns scores needs nothing else to predict.
    """

    weights: Array
    """``(C - 1, 1)`` for two classes, ``(C - 1, C)`` otherwise."""
    offset: Array
    rule: PosteriorRule
    total: tuple[float, float] = (0.0, 1.0)
    """"least_squares", two classes: their values add up to ``total[0] * score + total[1]``, which priors may change."""

    def probabilities(self, scores: Array) -> Array:
        """Posterior probabilities ``(n, C)``; the largest belongs to the largest score."""
        xp = namespace(scores)
        if self.rule != "least_squares":
            return softmax(scores if scores.shape[1] > 1 else xp.concat([-scores, scores], axis=1) / 2)
        if scores.shape[1] == 1:
            total = self.total[0] * scores + self.total[1]
            scores = xp.concat([total - scores, total + scores], axis=1) / 2
        shares = xp.maximum(scores, xp.zeros_like(scores))
        return shares / xp.sum(shares, axis=1, keepdims=True)


def fisher_link(
    rule: PosteriorRule,
    held_out: Array,
    codes: Array,
    targets: FisherTargets,
    weights: Array,
    priors: Array | None = None,
) -> Link:
    r"""Decision scores and probabilities from the leave-one-out discriminant ``held_out``.

    ================ =====================================================================================
    rule             posterior
    ================ =====================================================================================
    "least_squares"  :math:`\pi_c (1 + \theta_c^T f / s)`; the paper's midpoint threshold, shrunk probabilities
    "gaussian"       Gaussian classes with a common covariance: the threshold that is best for such scores
    "logistic"       multinomial logistic regression on the scores
    ================ =====================================================================================

    With other ``priors`` :math:`\pi'` the posteriors are proportional to :math:`\pi'_c p_c / \pi_c`.
    """
    xp = namespace(held_out)
    if rule == "least_squares":
        M, c = least_squares_scores(targets)
    else:
        M, c = (gaussian_scores if rule == "gaussian" else logistic_scores)(held_out, codes, targets, weights)
    if priors is not None:
        ratio = priors / targets.priors
        M, c = (M * ratio[None, :], c * ratio) if rule == "least_squares" else (M, c + xp.log(ratio))
    if int(c.shape[0]) > 2:
        return Link(M, c, rule)
    slope, level = float(M[0, 1] - M[0, 0]), float(c[1] - c[0])
    share = float(M[0, 1] + M[0, 0]) / slope if slope else 0.0
    total = (share, float(c[0] + c[1]) - share * level)
    return Link(M[:, 1:] - M[:, :1], c[1:] - c[:1], rule, total)


def _logistic_hessian(Z: Array, P: Array, w: Array) -> Array:
    """Second derivatives, classes outermost: blocks ``Z' diag(w p_a (1[a = b] - p_b)) Z``."""
    xp = namespace(Z)
    C = int(P.shape[1])
    rows = []
    for a in range(C):
        blocks = [Z.T @ ((w * P[:, a] * ((1.0 if a == b else 0.0) - P[:, b]))[:, None] * Z) for b in range(C)]
        rows.append(xp.concat(blocks, axis=1))
    return xp.concat(rows, axis=0)


@dataclass(frozen=True)
class LinearModel:
    """One machine of a path: coefficients on the columns ``support``, and a bias."""

    support: Array
    coef: Array
    offset: Array


@dataclass(frozen=True)
class CrossValidation:
    """Errors and sizes of every setting (kernel, then penalty or size), by cross-validation."""

    errors: tuple[tuple[float, ...], ...]
    """Share of the held-out weight that is misclassified, one row per kernel."""
    sizes: tuple[tuple[float, ...], ...]
    """Mean number of vectors."""
    n: int

    def best(self, prefer: str = "accurate") -> tuple[int, int]:
        """(kernel, setting) of least error, ties to the fewest vectors; "sparse": fewest within one standard error.

        The standard error is that of the difference of the two errors, each a share of ``n`` samples.
        """
        cells = [
            (error, size, i, j)
            for i, (row, sizes) in enumerate(zip(self.errors, self.sizes))
            for j, (error, size) in enumerate(zip(row, sizes))
        ]
        least = min(cells)
        if prefer == "sparse":
            lowest = least[0]

            def near(error: float) -> bool:
                spread = lowest * (1 - lowest) + error * (1 - error)
                return error <= lowest + math.sqrt(spread / self.n) + 1e-12

            least = min((size, error, i, j) for error, size, i, j in cells if near(error))
        return least[2], least[3]


Path = Callable[[Array, Array, Array], Iterable[LinearModel]]


def cross_validate(
    matrices: Sequence[Callable[[], Array]],
    codes: Array,
    n_classes: int,
    weights: Array,
    folds: Sequence[Fold],
    path: Path,
    owners: Array | None,
    step: Callable[[int], None] | None = None,
) -> CrossValidation:
    """Errors of a whole path of machines for several kernels, on folds of the training samples.

    Parameters
    ----------
    matrices : sequence of callables
        Each returns the kernel columns ``(n, m)`` of one kernel; called once, and forgotten before the next.
    codes, weights : arrays of shape (n,)
    folds : sequence of (training rows, held-out rows)
    path : callable
        ``path(K, Y, weights)`` gives the machines one after another, from the sparsest on. A path is left once it has
        become larger and clearly worse than its best machine.
    owners : array of shape (n,) or None
        Candidate column that belongs to every sample: a fold then uses only columns of samples that it trains
        on. None when the columns were chosen without the labels, and all folds may use them.
    step : callable or None
        Called with the number of kernels done.

    Notes
    -----
    The rule is the midpoint rule of the paper. The closed-form leave-one-out is no substitute here: the support was
    chosen with the labels, and it picks nearly dense machines.
    """
    n = int(weights.shape[0])
    errors, sizes = [], []
    for matrix in matrices:
        K = matrix()
        parts = [_Fold(K, codes, n_classes, weights, fold, path, owners) for fold in folds]
        error: list[float] = []
        size: list[float] = []
        for models in zip(*(part.models for part in parts)):
            error.append(sum(part.wrong(model) for part, model in zip(parts, models)))
            size.append(sum(int(model.support.shape[0]) for model in models) / len(folds))
            if _hopeless(error, size, n):
                break
        errors.append(tuple(error))
        sizes.append(tuple(size))
        if step is not None:
            step(len(errors))
    return CrossValidation(tuple(errors), tuple(sizes), n)


def _hopeless(error: list[float], size: list[float], n: int) -> bool:
    """Whether the last two machines are larger than the best so far and two standard errors worse."""
    least = min(error)
    bound = least + 2 * math.sqrt(least * (1 - least) / n) + 1 / n
    return len(error) > 2 and all(error[-i] > bound and size[-i] > size[error.index(least)] for i in (1, 2))


class _Fold:
    """The machines trained without one fold, made as they are asked for, and their errors on it."""

    def __init__(
        self, K: Array, codes: Array, n_classes: int, weights: Array, fold: Fold, path: Path, owners: Any
    ) -> None:
        xp = namespace(weights)
        train, test = (asarray_like(list(rows), codes, dtype=xp.int64) for rows in fold)
        K_train, self.K = take_rows(K, train), take_rows(K, test)
        if owners is not None:
            columns = asarray_like(sorted({int(j) for j in to_numpy(take_rows(owners, train))}), codes, dtype=xp.int64)
            K_train, self.K = xp.take(K_train, columns, axis=1), xp.take(self.K, columns, axis=1)
        w, own = take_rows(weights, train), take_rows(codes, train)
        targets = fisher_targets(own, n_classes, w)
        self.scores = least_squares_scores(targets)
        self.codes = take_rows(codes, test)
        self.share = take_rows(weights, test) / xp.sum(weights)
        self.models = path(K_train, targets.rows(own), w)

    def wrong(self, model: LinearModel) -> float:
        """Share of all weight that lies in this fold and is misclassified."""
        xp = namespace(self.K)
        M, c = self.scores
        F = xp.take(self.K, model.support, axis=1) @ model.coef + model.offset[None, :]
        miss = xp.argmax(F @ M + c[None, :], axis=1) != self.codes
        return float(xp.sum(xp.astype(miss, self.share.dtype) * self.share))
