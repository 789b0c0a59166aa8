"""Textbook versions of sparse kernel Fisher discrimination: slow, obvious, dense. NumPy only."""

from __future__ import annotations

import numpy as np


def targets(y):
    """The paper's targets for y in {0, 1}: +N/N1 on class 1, -N/N2 on class 0."""
    n, n1 = len(y), int(np.sum(y))
    return np.where(np.asarray(y) == 1, n / n1, -n / (n - n1))


def augmented(K):
    """[1 K]."""
    return np.column_stack([np.ones(len(K)), K])


def objective(K, Y, omega, rho, q, penalize_bias=True, weights=None):
    """(5), rows of omega; omega[0] is the bias."""
    Y, omega = np.reshape(Y, (len(K), -1)), np.reshape(omega, (K.shape[1] + 1, -1))
    w = np.ones(len(K)) if weights is None else weights * len(K) / weights.sum()
    residual = Y - augmented(K) @ omega
    rows = np.linalg.norm(omega if penalize_bias else omega[1:], axis=1)
    return 0.5 * np.sum(w[:, None] * residual**2) + rho * len(K) * np.sum(rows**q)


def ridge_start(K, Y, rho, penalize_bias=True):
    """(K~'K~ + rho N I)^{-1} K~'Y, no penalty on a free bias."""
    A = augmented(K)
    D = np.eye(A.shape[1])
    D[0, 0] = float(penalize_bias)
    return np.linalg.solve(A.T @ A + rho * len(K) * D, A.T @ np.reshape(Y, (len(K), -1)))


def iteration_8(K, Y, rho, q, *, penalize_bias=True, start=None, tol=1e-5, max_iter=10_000):
    """The paper's iteration (8), literally, on all components; returns omega (bias first) and every J."""
    Y = np.reshape(Y, (len(K), -1))
    A = augmented(K)
    G, B = A.T @ A, A.T @ Y
    omega = ridge_start(K, Y, rho, penalize_bias) if start is None else np.reshape(start, (A.shape[1], -1)).copy()
    ridge = np.full(A.shape[1], rho * len(K) * q)
    if not penalize_bias:
        ridge[0] = 0.0
    values = [objective(K, Y, omega, rho, q, penalize_bias)]
    for _ in range(max_iter):
        psi = np.linalg.norm(omega, axis=1) ** ((2 - q) / 2)
        if not penalize_bias:
            psi[0] = 1.0
        M = psi[:, None] * G * psi[None, :] + np.diag(ridge)
        omega = psi[:, None] * np.linalg.solve(M, psi[:, None] * B)
        values.append(objective(K, Y, omega, rho, q, penalize_bias))
        if abs(values[-2] - values[-1]) <= tol * values[-2]:
            break
    return omega, values


def curvature(A, w, lam, q):
    """Eigenvalues, ascending, of the second derivatives of (5) at the components w of the columns A."""
    return np.linalg.eigvalsh(A.T @ A - np.diag(lam * q * (1 - q) * np.abs(w) ** (q - 2)))


def second_order_bound(K, rho, q, center):
    """Smallest size a nonzero component of a minimum of (5) can have; the bias projected out if ``center``."""
    C = K - K.mean(axis=0) if center else K
    return (rho * len(K) * q * (1 - q) / np.sum(C**2, axis=0)) ** (1 / (2 - q))


def gram_schmidt_selection(K, Y, n_terms):
    """kFDA_OLS: modified Gram-Schmidt on all columns, constant first; returns the order and the ratios."""
    Y = np.reshape(Y, (len(K), -1)).astype(float)
    total = np.sum(Y**2)
    P = K - K.mean(axis=0)
    R = Y - Y.mean(axis=0)
    original = np.sum(K**2, axis=0)
    ratios = [1 - np.sum(R**2) / total]
    order = []
    for _ in range(n_terms):
        norms = np.sum(P**2, axis=0)
        usable = norms > 1e-10 * original
        usable[order] = False
        if not usable.any():
            break
        ratio = np.where(usable, np.sum((P.T @ R) ** 2, axis=1) / np.where(usable, norms, 1.0), -1.0) / total
        best = int(np.argmax(ratio))
        order.append(best)
        ratios.append(ratio[best])
        p = P[:, best] / np.sqrt(norms[best])
        for _ in range(2):
            P = P - np.outer(p, p @ P)
        R = R - np.outer(p, p @ R)
    return order, ratios
