"""Textbook versions of the density algorithms: NumPy loops that say what the definitions say."""

from __future__ import annotations

import itertools

import numpy as np


def normal(x, c, width):
    """Normal kernel, FCR (2)."""
    m = len(x)
    return (2 * np.pi * width**2) ** (-m / 2) * np.exp(-np.sum((x - c) ** 2) / (2 * width**2))


def normal_matrix(X, C, widths):
    widths = np.broadcast_to(np.asarray(widths, float), (len(C),))
    return np.array([[normal(x, c, s) for c, s in zip(C, widths)] for x in X])


def lscv(X, w, width):
    """The exact form of (5), term by term."""
    n = len(X)
    first = sum(w[i] * w[j] * normal(X[i], X[j], np.sqrt(2) * width) for i in range(n) for j in range(n))
    second = sum(w[i] / (1 - w[i]) * w[j] * normal(X[i], X[j], width) for i in range(n) for j in range(n) if i != j)
    return first - 2 * second


def lscv_approximate(X, width):
    """The right side of (5) as printed, without weights."""
    n, m = X.shape
    total = sum(
        normal(X[i], X[j], np.sqrt(2) * width) - 2 * normal(X[i], X[j], width) for i in range(n) for j in range(n)
    )
    return total / n**2 + 2 / n * (2 * np.pi * width**2) ** (-m / 2)


def likelihood_cv(X, w, width):
    total = 0.0
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        total += w[i] * np.log(sum(w[j] * normal(X[i], X[j], width) for j in others) / (1 - w[i]))
    return -total


def simplex_by_enumeration(B, v):
    """Best point over all supports: solve the equality-constrained problem on each, keep the feasible ones."""
    n = len(v)
    best, best_value = None, np.inf
    for size in range(1, n + 1):
        for support in itertools.combinations(range(n), size):
            S = list(support)
            M = np.block([[B[np.ix_(S, S)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            g_S = np.linalg.lstsq(M, np.append(v[S], 1.0), rcond=None)[0][:size]
            if np.all(g_S >= -1e-12) and abs(g_S.sum() - 1) < 1e-9:
                g = np.zeros(n)
                g[S] = g_S
                value = 0.5 * g @ B @ g - v @ g
                if value < best_value - 1e-14:
                    best, best_value = g, value
    return best, best_value


def mixing_by_deletion(psi, y, p, w):
    """(18)-(21) by leaving every row out in turn: least squares, score, jackknife."""
    n = len(p)

    def solve(rows):
        u, t = (y - psi)[rows], (p - psi)[rows]
        return np.sum(w[rows] * u * t) / np.sum(w[rows] * u * u)

    every = np.arange(n)
    least_squares = solve(every)
    left_out = np.array([solve(np.delete(every, i)) for i in range(n)])
    error = np.array([(p - psi)[i] - left_out[i] * (y - psi)[i] for i in range(n)])
    score = np.sum(w * error**2)
    jackknife = least_squares + np.sum((1 - w) * (least_squares - left_out))
    return least_squares, score, jackknife


def forward_constrained(X, p, unit, gamma, *, eta=0.5, steps=5, mode="safe", max_vectors=20):
    """Methods D5 with loops, without weights and without pruning."""
    n, m = X.shape
    w = np.full(n, 1 / n)
    D = ((X[:, None, :] - X[None, :, :]) ** 2).sum(-1)

    def kernel(j, s):
        return (unit / s) ** m * np.exp(-D[:, j] / (2 * s**2))

    def tune(j, lam, y):
        s = gamma * unit
        for _ in range(steps):
            K = kernel(j, s)
            e = p - lam * y - (1 - lam) * K
            slope = K * (D[:, j] / s**3 - m / s)
            move = eta / (1 - lam) * np.sum(e * slope) / np.sum(slope**2)
            if mode == "abs":
                s = max(abs(s + move), 0.02 * unit)
                continue
            for _ in range(7):
                trial = min(max(s + move, 0.02 * unit), 1e3 * unit)
                if np.sum((p - lam * y - (1 - lam) * kernel(j, trial)) ** 2) <= np.sum(e**2):
                    s = trial
                    break
                move /= 2
            else:
                return s
        return s

    first = int(np.argmin([np.mean((p - kernel(j, gamma * unit)) ** 2) for j in range(n)]))
    width = tune(first, 0.0, np.zeros(n))
    chosen, widths, mixings = [first], [width], []
    y = kernel(first, width)
    score = np.mean((p - y) ** 2)
    while len(chosen) < max_vectors:
        best = None
        for j in range(n):
            if j in chosen:
                continue
            least_squares, J, lam = mixing_by_deletion(kernel(j, gamma * unit), y, p, w)
            if 0 <= least_squares <= 1 and 0 <= lam <= 1 and (best is None or best[0] > J):
                best = (J, j, lam)
        if best is None or best[0] >= score:
            break
        score, j, lam = best
        width = tune(j, lam, y)
        y = lam * y + (1 - lam) * kernel(j, width)
        chosen.append(j)
        widths.append(width)
        mixings.append(lam)
    g = np.ones(1)
    for lam in mixings:
        g = np.append(lam * g, 1 - lam)
    return np.array(chosen), np.array(widths), g


def integrated_leave_one_out(X, w, rows, widths, g):
    """Leave-one-out terms of FCR-ISE by deletion: v without sample i, weights solved again on the same support."""
    s = len(rows)
    B = np.array([[normal(X[rows[a]], X[rows[b]], np.hypot(widths[a], widths[b])) for b in range(s)] for a in range(s)])
    terms = np.zeros(len(X))
    for i in range(len(X)):
        v = np.zeros(s)
        for j in range(s):
            others = [k for k in range(len(X)) if k not in (i, rows[j])]
            mass = sum(w[k] for k in others)
            v[j] = sum(w[k] * normal(X[k], X[rows[j]], widths[j]) for k in others) / mass
        M = np.block([[B, np.ones((s, 1))], [np.ones((1, s)), np.zeros((1, 1))]])
        g_i = np.linalg.solve(M, np.append(v, 1.0))[:s]
        # a centre says nothing about itself: its own value is the mean over the others
        phi = np.array([v[j] if i == rows[j] else normal(X[i], X[rows[j]], widths[j]) for j in range(s)])
        terms[i] = g_i @ B @ g_i - 2 * g_i @ phi
    return terms


def press(F, y):
    """Mean squared leave-one-out residual of least squares on the columns of ``F``, by deletion."""
    errors = []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        coef = np.linalg.lstsq(F[keep], y[keep], rcond=None)[0]
        errors.append(y[i] - F[i] @ coef)
    return np.mean(np.square(errors))


def distribution_function(X, w):
    return np.array([sum(w[j] for j in range(len(X)) if np.all(X[j] <= X[i])) for i in range(len(X))])
