"""Losses compared with those of simple baselines, for reports and for summaries of table models."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fewkern.arrays.namespace import Array
from fewkern.reporting.rows import sample_rows

# Confidence level of all intervals, and of "clearly".
_CONFIDENCE = 0.95
# Most rows that a linear model is fitted to, and most features: it must not take longer than our model.
_LINEAR_ROWS, _LINEAR_FEATURES = 20_000, 2_000
# A column decides alone if it leaves no more than this share of the errors, or of the variance, of a constant.
_DECIDING_ERRORS, _DECIDING_VARIANCE = 0.01, 0.001


def wilson(errors: int, rows: int) -> tuple[float, float]:
    """Wilson's 95% interval of a proportion.

    Examples
    --------
    >>> from fewkern.reporting.evaluation import wilson
    >>> [round(v, 3) for v in wilson(5, 100)]
    [0.022, 0.112]
    """
    found = stats.binomtest(errors, rows).proportion_ci(_CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class Counted:
    """How rows count in an error: their weights, and their groups."""

    weights: Array | None = None
    groups: Array | None = None

    def mean(self, losses: Array) -> tuple[float, float]:
        """Mean of losses, and its standard error, by the sums over groups."""
        weights = np.ones(len(losses)) if self.weights is None else self.weights
        total = float(weights.sum())
        if total <= 0:
            return float(np.mean(losses)), math.inf
        mean = float(weights @ losses) / total
        parts: Any = weights * (losses - mean)
        if self.groups is not None:
            parts = np.bincount(np.unique(self.groups, return_inverse=True)[1], parts)
        n = len(parts)
        return mean, math.sqrt(float(parts @ parts) * n / (n - 1)) / total if n > 1 else math.inf

    def interval(self, losses: Array) -> tuple[float, float]:
        """95% interval of the mean: Wilson's for losses that are true or false, else Student's.

        Wilson's takes as many rows as an independent sample of the same standard error would have.
        """
        mean, error = self.mean(losses)
        if losses.dtype != bool:
            half = (
                float(stats.t.ppf(0.5 + _CONFIDENCE / 2, self.count(losses) - 1)) * error if error < math.inf else error
            )
            return mean - half, mean + half
        n = len(losses)
        if self.weights is not None or self.groups is not None:
            n = max(1, min(n, round(mean * (1 - mean) / error**2) if 0 < mean < 1 and error else self.count(losses)))
        return wilson(round(mean * n), n)

    def count(self, losses: Array) -> int:
        """Number of groups, or of rows where these are independent."""
        return len(losses) if self.groups is None else len(np.unique(self.groups))


# All rows count alike, and are independent.
EACH_ROW = Counted()


def compare(own: Array, other: Array, counted: Counted = EACH_ROW) -> str:
    """Compare the losses of two models on the same rows: "better", "perhaps better", "no better" or "worse".

    "better" and "worse" are significant at the 5% level, one-sided: by McNemar's exact test where losses are true or
    false and every row counts alike, else by a t test of the differences.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.reporting.evaluation import compare
    >>> compare(np.array([True] * 10), np.array([False] * 10))
    'worse'
    """
    gain = np.asarray(other, dtype=float) - np.asarray(own, dtype=float)
    mean, error = counted.mean(gain)
    pvalue = 1.0
    if own.dtype == other.dtype == bool and counted.weights is None and counted.groups is None:
        wins, defeats = int((gain > 0).sum()), int((gain < 0).sum())
        pvalue = stats.binomtest(max(wins, defeats), max(wins + defeats, 1), alternative="greater").pvalue
    elif mean and error < math.inf:
        pvalue = float(stats.t.sf(abs(mean) / error, counted.count(gain) - 1)) if error else 0.0
    significant = pvalue < 1 - _CONFIDENCE
    if mean > 0:
        return "better" if significant else "perhaps better"
    return "worse" if significant else "no better"


@dataclass(frozen=True)
class Score:
    """Mean loss of one way of predicting, with a 95% interval: an error rate, or a mean absolute error."""

    name: str
    value: float
    low: float
    high: float
    rmse: float | None = None
    """Root mean squared error of a regression."""
    r2: float | None = None


def losses(truth: Array, predicted: Array, classify: bool) -> Array:
    """Whether each prediction is wrong, or by how much it is off; the mean is an error rate or the MAE."""
    return truth != predicted if classify else np.abs(np.asarray(truth - predicted, dtype=float))


def judge(
    truth: Array, answers: dict[str, Array], classify: bool, counted: Counted = EACH_ROW
) -> tuple[tuple[Score, ...], tuple[str, ...]]:
    """Scores of all answers, which have names, and how the first one compares with each of the others.

    Classes are compared by whether they are wrong, numbers by their squared errors. Reports and the summaries of table
    models are both made of this.
    """
    loss = [losses(truth, predicted, classify) for predicted in answers.values()]
    variance = 0.0 if classify else counted.mean((truth - counted.mean(truth)[0]) ** 2)[0]
    scores = tuple(score(name, values, counted, variance) for name, values in zip(answers, loss))
    compared = loss if classify else [values**2 for values in loss]
    return scores, tuple(compare(compared[0], other, counted) for other in compared[1:])


def score(name: str, loss: Array, counted: Counted = EACH_ROW, variance: float = 0.0) -> Score:
    """The error rate, or the mean absolute error of a target with the given variance."""
    (mean, _), (low, high) = counted.mean(loss), counted.interval(loss)
    if loss.dtype == bool:
        return Score(name, mean, low, high)
    square = counted.mean(loss**2)[0]
    return Score(name, mean, max(low, 0.0), high, square**0.5, 1 - square / variance if variance > 0 else math.nan)


def recommend(scores: tuple[Score, ...], verdicts: tuple[str, ...]) -> str:
    """What to do with the model, given how it compares with the baselines."""
    simple = scores[1].name.replace("always", "always predicting", 1)
    linear = verdicts[1] if len(verdicts) > 1 else None
    if verdicts[0] in ("no better", "worse"):
        if linear is not None and scores[2].value < min(scores[0].value, scores[1].value):
            return f"Do not use this model: it is no better than {simple}. A linear model does better."
        return f"Do not use this model: it is no better than {simple}."
    if linear == "worse":
        return "Use a linear model: it is clearly better, and simpler."
    if linear == "no better":
        return "Use a linear model: it is as good, and simpler."
    if linear == "perhaps better":
        return "A linear model is nearly as good, and simpler. Only more rows can tell whether this model is better."
    if verdicts[0] == "perhaps better":
        return f"Do not rely on it yet: only more rows can tell whether it is better than {simple}."
    return f"Use this model: it is clearly better than {simple}{' and a linear model' if linear else ''}."


def linear_predictions(X: Any, y: Any, new: Any, task: str, seed: int = 0, weights: Any = None) -> Array | None:
    """Predictions of a linear model fitted to ``X`` and ``y``; None where it cannot be fitted, or would take long."""
    if len(X) < 2 or X.shape[1] > _LINEAR_FEATURES or (task == "classify" and len(np.unique(y)) < 2):
        return None
    if len(X) > _LINEAR_ROWS:
        some = sample_rows(len(X), _LINEAR_ROWS, np.random.default_rng(seed))
        X, y, weights = X[some], y[some], None if weights is None else weights[some]
        if task == "classify" and len(np.unique(y)) < 2:
            return None
    model = LogisticRegression(max_iter=300) if task == "classify" else RidgeCV(np.logspace(-3, 3, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge to be compared with
        scaler = StandardScaler().fit(X)
        return np.asarray(model.fit(scaler.transform(X), y, sample_weight=weights).predict(scaler.transform(new)))


def normal_log_density(X: Array, new: Array) -> Array:
    """Logarithm of the normal density with the mean and covariance of ``X``."""
    covariance = np.atleast_2d(np.cov(X, rowvar=False)) if len(X) > 1 else np.eye(X.shape[1])
    # a column that follows from the others, or does not vary, would make it infinite
    covariance = covariance + 1e-9 * max(float(np.trace(covariance)) / X.shape[1], 1e-300) * np.eye(X.shape[1])
    normal = stats.multivariate_normal(X.mean(axis=0), covariance, allow_singular=True)
    return np.asarray(normal.logpdf(new)).reshape(-1)


def decides_alone(column: tuple[Array, Array], y: tuple[Any, Any], classify: bool) -> bool:
    """Whether one column predicts the target almost perfectly, as one that is known only after the target does.

    ``column`` are its features, ``y`` the targets: of rows to fit to, and of others.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.reporting.evaluation import decides_alone
    >>> x = np.linspace(0, 1, 100)[:, None]
    >>> decides_alone((x[::2], x[1::2]), (3 * x[::2, 0], 3 * x[1::2, 0]), classify=False)
    True
    """
    (X, new), (known, truth) = column, y
    if not classify:  # between neighboring rows, by the first feature: the number, or the day
        order, inside = np.argsort(X[:, 0]), (new[:, 0] >= X[:, 0].min()) & (new[:, 0] <= X[:, 0].max())
        gap, variance = np.interp(new[:, 0], X[order, 0], known[order]) - truth, float(np.var(truth))
        return bool(inside.any() and 0 < variance and np.mean(gap[inside] ** 2) <= _DECIDING_VARIANCE * variance)
    names, counts = np.unique(known, return_counts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # many classes may still be classes
        tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(X, known)
    constant = np.mean(truth != names[np.argmax(counts)])
    return bool(0 < constant and np.mean(tree.predict(new) != truth) <= _DECIDING_ERRORS * constant)
