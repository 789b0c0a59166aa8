"""Preparations and functions of the learned form, with numbers at random."""

import numpy as np

from fewkern.core.gaussians import GaussianBasis, GaussianExpansion, Preparation


def table(rng, n=60):
    """Five columns: normal, 0/1, constant, far from the origin, and with a long tail."""
    return np.column_stack(
        [
            rng.normal(size=n),
            rng.integers(0, 2, n).astype(float),
            np.full(n, 3.0),
            1000 + 10 * rng.normal(size=n),
            rng.exponential(size=n) ** 3,
        ]
    )


def preparation(X, count=6):
    """Quantiles of every column to equal steps; a column with fewer values has fewer knots."""
    columns = [np.unique(np.quantile(x, np.linspace(0, 1, count))) for x in X.T]
    columns = [np.unique(x) if len(np.unique(x)) < count else knots for x, knots in zip(X.T, columns)]
    padded = np.stack([np.concatenate([k, np.full(count - len(k), k[-1])]) for k in columns], axis=1)
    values = np.stack([np.minimum(np.arange(count), len(k) - 1) - 1.5 for k in columns], axis=1)
    return Preparation(padded, values)


def basis(rng, X, vectors=7, directions=2, linear=5, own_widths=True, moved=True):
    t = preparation(X)
    V, d = t(X[:vectors]), X.shape[1]
    widths = rng.uniform(0.5, 2, vectors) if own_widths else np.full(vectors, 0.8)
    return GaussianBasis(
        t,
        V + 0.1 * rng.normal(size=V.shape) if moved else V,
        rng.uniform(0.1, 0.6, d),
        0.2 * rng.normal(size=(d, directions)),
        widths,
        0.3 * np.eye(d)[:, :linear],
        None if moved else np.arange(vectors),
    )


def function(rng, X, outputs=1, **given) -> GaussianExpansion:
    made = basis(rng, X, **given)
    return made.expand(rng.normal(size=(made.n_vectors + made.linear.shape[1], outputs)), rng.normal(size=outputs))
