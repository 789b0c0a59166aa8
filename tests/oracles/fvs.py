"""Feature vector selection as its definitions say it: slow, obvious, on a whole kernel matrix."""

from unittest.mock import patch

import numpy as np

from fewkern.select import rules
from fewkern.select.selection import SelectionRule, select_vectors

ZERO = 1e-14


def choose(gram, limit=10_000, block=64, weights=None, start=None, **settings):
    """Our own selection, with at most ``block`` pivots eliminated together."""
    with patch.multiple(rules, _BLOCK=block, _GAIN_BLOCK=min(block, 8)):
        return select_vectors(gram, SelectionRule(**settings), limit, weights, start)


def centre_index(K):
    """Sample whose image is nearest to the mean image (Appendix A with one neighbour)."""
    return int(np.argmin(np.diag(K) - 2 * K.mean(axis=0)))


def centred(K, c):
    """Kernel matrix after moving the origin of feature space to the image of sample ``c``."""
    out = K - K[:, [c]] - K[[c], :] + K[c, c]
    out[c, :] = out[:, c] = 0.0
    return out


def local_fitness(K, S):
    """Eq. (7b) for every sample, each solved from scratch; NaN for zero vectors."""
    S = list(S)
    d = np.diag(K)
    J = np.full(len(K), np.nan)
    for i in np.flatnonzero(d > ZERO * d.max()):
        J[i] = K[i, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S, i]) / d[i]
    return J


def global_fitness(K, S, weights=None):
    """Eq. (7a): (weighted) mean of the local fitness over the samples that are not zero vectors."""
    J = local_fitness(K, S)
    w = np.ones(len(K)) if weights is None else np.asarray(weights, dtype=float)
    kept = ~np.isnan(J)
    return float(np.sum(w[kept] * J[kept]) / np.sum(w[kept]))


def residuals(K, S):
    """``r_i = k_ii - k_Si' K_SS^{-1} k_Si``."""
    S = list(S)
    return np.array([K[i, i] - K[i, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S, i]) for i in range(len(K))])


def first_vector(K):
    """Sample of highest global fitness on its own; the first of equal ones."""
    d = np.diag(K)
    valid = np.flatnonzero(d > ZERO * d.max())
    fitness = [np.mean([K[i, j] ** 2 / (d[i] * d[j]) for j in valid]) for i in valid]
    return int(valid[int(np.argmax(fitness))])


def literal_selection(K, limit, floor=1e-8):
    """The paper's listing with the recursion of Appendix C, eqs. (15)-(18), corrected (methods F12).

    Ends after ``limit`` vectors, or when the lowest local fitness is within ``floor`` of one, where the
    recursion is no longer to be trusted.
    """
    n, d = len(K), np.diag(K)
    valid = d > ZERO * d.max()
    S = [first_vector(K)]
    H = (K[S[0]] / K[S[0], S[0]])[None, :]  # column i is H_{S i}
    fitness = []
    while True:
        psi = np.array([K[S, i] @ H[:, i] for i in range(n)])  # (17)
        J = np.where(valid, psi / np.where(valid, d, 1.0), np.inf)
        J[S] = np.inf
        fitness.append(np.mean([psi[i] / d[i] for i in range(n) if valid[i]]))
        s = int(np.argmin(J))
        if len(S) == limit or 1 - J[s] <= floor:
            return S, np.array(fitness)
        c = psi[s] - d[s]
        t = K[S, s] @ H
        H = np.vstack([H + np.outer(H[:, s], (K[s] - t) / c), (t - K[s]) / c])  # (18)
        S.append(s)


def refit(Z, Y, ridge, weights):
    """Coefficients ``(1 + L, q)`` of ridge regression with a free constant, by the normal equations."""
    X = np.column_stack([np.ones(len(Z)), Z])
    penalty = ridge * np.eye(X.shape[1])
    penalty[0, 0] = 0.0
    left = X.T @ (weights[:, None] * X) + penalty
    return np.linalg.lstsq(left, X.T @ (weights[:, None] * Y), rcond=None)[0]


def leave_one_out(Z, Y, ridge, weights=None):
    """Prediction for every sample by a model fitted without it: ``n`` refits."""
    n = len(Z)
    weights = np.ones(n) if weights is None else weights
    out = np.empty_like(Y)
    for i in range(n):
        others = np.arange(n) != i
        beta = refit(Z[others], Y[others], ridge, weights[others])
        out[i] = beta[0] + Z[i] @ beta[1:]
    return out


def kernel_ridge(K, Y, ridge, K_new, weights=None):
    """Kernel ridge regression with a free constant: predictions at the rows of ``K_new``."""
    n = len(K)
    w = np.ones(n) if weights is None else weights
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + ridge * np.diag(1 / w)
    system[:n, n] = 1.0
    system[n, :n] = 1.0
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return K_new @ solution[:n] + solution[n]


def generalised_discriminant(K, codes, ridge=0.0, rank_tol=1e-9):
    """Generalised discriminant analysis (Baudat and Anouar 2000) on the whole centred kernel matrix.

    Maximises ``a' K W K a / (a' K K a + ridge a' K a)``, ``W`` the block matrix of the classes. Returns the inertias,
    and the training projections scaled to unit variance.
    """
    n = len(K)
    C = np.eye(n) - 1 / n
    Kc = C @ K @ C
    values, P = np.linalg.eigh(Kc)
    keep = values > rank_tol * values.max()
    values, P = values[keep], P[:, keep]
    W = sum(np.outer(codes == c, codes == c) / np.sum(codes == c) for c in np.unique(codes))
    # b = K-length coordinates: numerator P'WP between f and f, f = sqrt(v / (v + ridge))
    f = np.sqrt(values / (values + ridge))
    inertia, B = np.linalg.eigh((f[:, None] * (P.T @ W @ P)) * f[None, :])
    order = np.argsort(inertia)[::-1][: len(np.unique(codes)) - 1]
    T = P @ (f[:, None] * B[:, order])
    return inertia[order], T / np.sqrt(np.mean(T**2, axis=0))
