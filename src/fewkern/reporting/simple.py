"""What a model is compared with: a linear model, and the interval of a share. The summary of a table uses both too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler

__all__ = ["linear_predictions", "wilson"]

# A linear model is fitted to at most so many rows, and not at all to more features: it shall not take longer than ours.
_ROWS, _FEATURES = 20_000, 2_000


def wilson(errors: int, rows: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share.

    Examples
    --------
    >>> from fewkern.reporting.simple import wilson
    >>> [round(v, 3) for v in wilson(5, 100)]
    [0.022, 0.112]
    """
    found = stats.binomtest(errors, rows).proportion_ci(confidence, method="wilson")
    return float(found.low), float(found.high)


def linear_predictions(
    X: Any, y: Any, new: Any, task: str, seed: int = 0, weights: Any = None
) -> np.ndarray[Any, Any] | None:
    """What a linear model fitted to ``X`` and ``y`` says of new rows; None where it cannot, or would take long."""
    if len(X) < 2 or X.shape[1] > _FEATURES or (task == "classify" and len(np.unique(y)) < 2):
        return None
    if len(X) > _ROWS:
        some = np.random.default_rng(seed).choice(len(X), _ROWS, replace=False)
        X, y, weights = X[some], y[some], None if weights is None else weights[some]
        if task == "classify" and len(np.unique(y)) < 2:
            return None
    model = LogisticRegression(max_iter=300) if task == "classify" else RidgeCV(np.logspace(-3, 3, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge to be compared with
        scaler = StandardScaler().fit(X)
        return np.asarray(model.fit(scaler.transform(X), y, sample_weight=weights).predict(scaler.transform(new)))
