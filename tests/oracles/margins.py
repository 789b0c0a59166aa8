"""Slow and obvious versions of the margin methods: explicit pairs, explicit graphs, libsvm, projections written out."""

import numpy as np
import scipy.linalg
from sklearn.svm import SVC, SVR, LinearSVC

from fewkern.core.samples import Samples


def labelled(Z, codes=None, weights=None):
    """The rows of ``Z`` with classes and weights, as a graph rule takes them."""
    count = 0 if codes is None else int(np.max(codes)) + 1
    return Samples.of(Z, weights, codes=codes, n_classes=count)


def gaussian_gram(X, sigma):
    """``exp(-|x - y|^2 / sigma)``, the convention of the IDA benchmark."""
    return np.exp(-((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2) / sigma)


def centred_features(K):
    """``Phi`` with ``Phi Phi'`` equal to the centred ``K``, by an eigendecomposition."""
    n = len(K)
    H = np.eye(n) - 1.0 / n
    values, U = np.linalg.eigh(H @ K @ H)
    keep = values > n * 1e-13 * values[-1]
    return U[:, keep] * np.sqrt(values[keep])


def recursive_svm_on_gram(K, y, C, steps, tol=1e-9):
    """RSVM as printed (with the labels), on the Gram matrix, by libsvm: values ``P_t`` and training features."""
    n = len(y)
    H = np.eye(n) - 1.0 / n
    K = H @ K @ H
    values, features = [], []
    for _ in range(steps):
        svm = SVC(C=1.0, kernel="precomputed", tol=tol, cache_size=500).fit(K, y, sample_weight=np.broadcast_to(C, n))
        beta = np.zeros(n)
        beta[svm.support_] = svm.dual_coef_[0]
        c = K @ beta
        s = beta @ c
        hinge = np.maximum(1 - y * (c + svm.intercept_[0]), 0)
        values.append(0.5 * s + np.sum(C * hinge))
        features.append(c / np.sqrt(s))
        K = K - np.outer(c, c) / s
    return np.array(values), np.array(features).T


def svr_value(K, y, C, epsilon):
    """Optimal value of epsilon-SVR by libsvm."""
    svr = SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-10).fit(K, y)
    beta = np.zeros(len(y))
    beta[svr.support_] = svr.dual_coef_[0]
    f = K @ beta
    return 0.5 * beta @ f + C * np.maximum(np.abs(y - f - svr.intercept_[0]) - epsilon, 0).sum()


def pairs_of(n, codes=None, removed=None):
    """All ``j < i``, of different classes if there are codes, not among the removed ones."""
    upper, lower = np.tril_indices(n, -1)
    keep = np.ones(len(upper), bool)
    if codes is not None:
        keep &= codes[upper] != codes[lower]
    if removed is not None:
        gone = {(int(max(a, b)), int(min(a, b))) for a, b in zip(*removed)}
        keep &= np.array([(int(a), int(b)) not in gone for a, b in zip(upper, lower)], dtype=bool)
    return upper[keep], lower[keep]


def pair_sums(s, p, upper, lower, m, mu, X):
    """Every sum over pairs that the sorted form computes, one pair at a time."""
    n = len(s)
    t, w = s[upper] - s[lower], p[upper] * p[lower]
    outer, inner = np.maximum(m + mu - t, 0), np.maximum(m - mu - t, 0)
    slope = w * (outer - inner) / (2 * mu)
    d = X[upper] - X[lower]
    return {
        "balance": np.bincount(upper, w, n) - np.bincount(lower, w, n),
        "window": np.sum(w * np.maximum(m - np.abs(t), 0)),
        "huber": np.sum(w * (outer**2 - inner**2)) / (4 * mu),
        "huber_gradient": np.bincount(lower, slope, n) - np.bincount(upper, slope, n),
        "curvature": (d * (w * (np.abs(m - t) < mu))[:, None]).T @ d / (2 * mu),
    }


def laplacian_scatter(V, Z):
    """``Z'(diag(V1) - V)Z`` with the matrix written out."""
    V = V - np.diag(np.diag(V))
    return Z.T @ (np.diag(V.sum(axis=1)) - V) @ Z


def fisher_weights(codes):
    """``1/n_k`` inside class ``k``."""
    same = codes[:, None] == codes[None, :]
    return same / np.bincount(codes)[codes][:, None]


def local_fisher_weights(X, codes, k):
    """Within and between weights of LFDA (Sugiyama 2007), pair by pair; affinity in local scaling inside a class."""
    n = len(X)
    within, between = np.zeros((n, n)), np.zeros((n, n))
    distance = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    radius = np.zeros(n)
    for i in range(n):
        own = np.sort(distance[i, (codes == codes[i]) & (np.arange(n) != i)])
        radius[i] = own[min(k, len(own)) - 1]
    for i in range(n):
        for j in range(n):
            if codes[i] != codes[j]:
                between[i, j] = 1 / n
                continue
            size = np.sum(codes == codes[i])
            affinity = np.exp(-(distance[i, j] ** 2) / (radius[i] * radius[j]))
            within[i, j] = affinity / size
            between[i, j] = affinity * (1 / n - 1 / size)
    return within, between


def foley_sammon(B, S, count):
    """Orthogonal discriminant vectors: the best ratio in the null space of those before."""
    W = np.zeros((len(B), 0))
    for _ in range(count):
        N = scipy.linalg.null_space(W.T) if W.shape[1] else np.eye(len(B))
        u = N @ scipy.linalg.eigh(N.T @ B @ N, N.T @ S @ N)[1][:, -1]
        W = np.column_stack([W, u / np.linalg.norm(u)])
    return W


def soft_margin_objective(Z, S, upper, lower, v, D, w):
    """``lower(w)`` over explicit pairs."""
    s = Z @ w
    return 0.5 * w @ S @ w + D * np.maximum(1 - v * np.abs(s[upper] - s[lower]), 0).sum()


def neighbor_weights(X, k):
    """One for two samples of which either is among the ``k`` nearest of the other."""
    distance = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    near = np.zeros(distance.shape)
    np.put_along_axis(near, np.argsort(distance, axis=1)[:, :k], 1.0, axis=1)
    return np.maximum(near, near.T)


def soft_margin_directions(Z, within, pairs, v, count, delta_rel, rho=1e-2, steps=100):
    """RSM for weights inside and pairs apart: every pair written out, null spaces, liblinear for the convex step."""
    upper, lower = pairs
    W, values, tau = np.zeros((Z.shape[1], 0)), [], None
    for _ in range(count):
        N = scipy.linalg.null_space(W.T) if W.shape[1] else np.eye(Z.shape[1])
        A = Z @ N
        S = laplacian_scatter(within, A)
        tau = np.trace(S) / len(S) if tau is None else tau
        S = S + rho * tau * np.eye(len(S))
        d = v * (A[upper] - A[lower])
        signs = np.where(d @ scipy.linalg.eigh(d.T @ d, S)[1][:, -1] >= 0, 1, -1)
        D = delta_rel / np.abs(d @ np.linalg.solve(S, d.T @ signs)).max()
        L = np.linalg.cholesky(S)
        G = scipy.linalg.solve_triangular(L, d.T, lower=True).T
        half = np.where(np.arange(len(d)) % 2, 1, -1)  # two classes, of which liblinear has need
        least = np.inf
        for _ in range(steps):
            svm = LinearSVC(C=D, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
            u = svm.fit(G * (signs * half)[:, None], half).coef_[0]
            candidate = scipy.linalg.solve_triangular(L.T, u)
            value = soft_margin_objective(A, S, upper, lower, v, D, candidate)
            if value >= least * (1 - 1e-9):
                break
            w, least, t = candidate, value, d @ candidate
            # pairs that meet, as far as liblinear can tell, change places
            signs = np.where(np.abs(t) < 1e-5 * np.abs(t).max(), -signs, np.where(t >= 0, 1, -1))
        values.append(least)
        W = np.column_stack([W, N @ w / np.linalg.norm(w)])
    return W, np.array(values)


def nearest_accuracy(A, a, B, b):
    """Per cent of the rows of ``B`` whose nearest row of ``A`` has their label."""
    distance = ((B[:, None, :] - A[None, :, :]) ** 2).sum(axis=2)
    return 100 * float(np.mean(a[distance.argmin(axis=1)] == b))


def align(A, B):
    """``B`` with the sign of every column chosen to match ``A``."""
    return B * np.sign(np.sum(A * B, axis=0))
