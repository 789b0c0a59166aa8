"""ForwardDensity, with and without a shape, against GaussianMixture on numerical columns of ten real tables.

``python -m benchmarks.density_tables``, with FEWKERN_DATA: fitted to 800 rows (60% of fewer), mean log density of up to
4,000 others. At most ten columns, those in which a fifth of the values are distinct, standardized on the rows that are
fitted; GaussianMixture has full covariances and 1 to 20 components, by BIC.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from fewkern import ForwardDensity

TABLES = [
    "cells",
    "house8l",
    "house_16h",
    "miami_housing",
    "phoneme",
    "soil",
    "uci_skillcraft",
    "sulfur",
    "vowel",
    "wilt",
]


def rows(name: str) -> tuple[Any, Any]:
    """Rows to fit, and others."""
    table = np.load(Path(os.environ["FEWKERN_DATA"]) / "tables" / f"{name}.npz")
    X = table["X"].astype(float)[:, ~table["cat"]]
    X = X[np.isfinite(X).all(axis=1)]
    distinct = np.array([len(np.unique(column)) / len(X) for column in X.T])
    X = X[:, np.flatnonzero(distinct > 0.2)[:10]]
    X = X[np.random.default_rng(100).permutation(len(X))]
    n = min(800, int(0.6 * len(X)))
    X = (X - X[:800].mean(axis=0)) / X[:800].std(axis=0)
    return X[:n], X[n : n + 4000]


def main() -> None:
    """Print one line per table."""
    print("| table | columns | round | default | GaussianMixture |\n| --- | --- | --- | --- | --- |")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in TABLES:
            X, T = rows(name)
            line = [name, str(X.shape[1])]
            for model in (ForwardDensity(scale="std").fit(X), ForwardDensity().fit(X)):
                line.append(f"{model.score(T) / len(T):.2f} ({model.n_vectors_}) {model.scale_}")
            peers = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 21)]
            peer = min(peers, key=lambda peer: peer.bic(X))
            line.append(f"{peer.score(T):.2f} ({peer.n_components})")
            print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
