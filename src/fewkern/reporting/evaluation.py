"""How good a model is beside simple baselines, as numbers and sentences. Summaries of tables use it, too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from fewkern.reporting.formatting import label, number, of, percent, plural
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.rows import sample_rows

__all__ = [
    "Baselines",
    "ClassLine",
    "ClassQuality",
    "RegressionQuality",
    "Score",
    "baselines",
    "classify_quality",
    "compare_losses",
    "linear_predictions",
    "mean_interval",
    "prediction_error",
    "rarer",
    "recommend",
    "regress_quality",
    "wilson",
]

Vector = np.ndarray[Any, Any]
# Confidence level of all intervals, and of "clearly".
_CONFIDENCE = 0.95
# An interval of an error rate that is wider than this is worth a remark.
_VAGUE = 0.3
# Most rows that a linear model is fitted to, and most features: it must not take longer than our model.
_LINEAR_ROWS, _LINEAR_FEATURES = 20_000, 2_000


def wilson(errors: int, rows: int, confidence: float = _CONFIDENCE) -> tuple[float, float]:
    """Wilson's interval of a proportion.

    Examples
    --------
    >>> from fewkern.reporting.evaluation import wilson
    >>> [round(v, 3) for v in wilson(5, 100)]
    [0.022, 0.112]
    """
    found = stats.binomtest(errors, rows).proportion_ci(confidence, method="wilson")
    return float(found.low), float(found.high)


def linear_predictions(X: Any, y: Any, new: Any, task: str, seed: int = 0, weights: Any = None) -> Vector | None:
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


@dataclass(frozen=True)
class Baselines:
    """Predictions of simple baselines for the rows that a model is evaluated on."""

    constant: Vector
    """The most frequent class, or the mean."""
    linear: Vector | None
    """A linear model; None where it cannot be fitted."""


def baselines(found: Predictions, X: Vector, y: Vector, task: str, seed: int) -> Baselines:
    """Predictions of the majority or mean, and of a linear model, fitted without the rows that they predict.

    ``X`` and ``y`` are all rows of the table.
    """
    constant = _from_other_rows(found, lambda train, test: np.full(len(test), _constant(y[train], task)), seed)
    linear = _from_other_rows(found, lambda train, test: linear_predictions(X[train], y[train], X[test], task), seed)
    assert constant is not None
    return Baselines(constant, linear)


def _from_other_rows(found: Predictions, predict: Callable[[Vector, Vector], Any], seed: int) -> Vector | None:
    """Predictions from the rows of the fit, or where there are none, of each fifth from the other four."""
    n = len(found.positions)
    if len(found.train) or n < 2:
        train = found.train if len(found.train) else found.positions
        predicted = predict(train, found.positions)
        return None if predicted is None else np.asarray(predicted, dtype=found.truth.dtype)
    values = np.empty(n, dtype=found.truth.dtype)
    for train, test in KFold(min(5, n), shuffle=True, random_state=seed).split(found.positions):
        predicted = predict(found.positions[train], found.positions[test])
        if predicted is None:
            return None
        values[test] = predicted
    return values


def _constant(y: Vector, task: str) -> Any:
    if task == "regress":
        return float(y.mean())
    labels, counts = np.unique(y, return_counts=True)
    return labels[np.argmax(counts)]


def prediction_error(truth: Vector, predicted: Vector, task: str) -> float:
    """Error rate, or mean absolute error."""
    return float(np.mean(truth != predicted if task == "classify" else np.abs(truth - predicted)))


@dataclass(frozen=True)
class Score:
    """Mean loss of one way of predicting, with a 95% interval."""

    name: str
    value: float
    low: float
    high: float


def error_rate(name: str, wrong: Vector) -> Score:
    """Share of wrong predictions, with Wilson's interval."""
    k, n = int(wrong.sum()), len(wrong)
    return Score(name, k / n, *wilson(k, n))


def mean_error(name: str, errors: Vector) -> Score:
    """Mean absolute error, with the interval of a mean."""
    mean, low, high = mean_interval(errors)
    return Score(name, mean, max(low, 0.0), high)


def mean_interval(values: Vector) -> tuple[float, float, float]:
    """Mean and its 95% interval (Student's t)."""
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return mean, -float("inf"), float("inf")
    half = float(stats.t.ppf(0.5 + _CONFIDENCE / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def compare_losses(own: Vector, other: Vector) -> str:
    """Compare two models on the same rows: "better", "perhaps better", "no better" or "worse".

    Losses of 0 and 1 are compared by McNemar's exact test, others by a paired t test; "better" and "worse" are
    significant at the 5% level, one-sided.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.reporting.evaluation import compare_losses
    >>> compare_losses(np.array([True] * 10), np.array([False] * 10))
    'worse'
    """
    gain = np.asarray(other, dtype=float) - np.asarray(own, dtype=float)
    mean = float(gain.mean())
    if own.dtype == other.dtype == bool:
        wins, losses = int((gain > 0).sum()), int((gain < 0).sum())
        pvalue = stats.binomtest(max(wins, losses), max(wins + losses, 1), alternative="greater").pvalue
    elif len(gain) > 2 and gain.std() > 0:
        pvalue = float(stats.ttest_1samp(gain, 0.0, alternative="greater" if mean > 0 else "less").pvalue)
    else:
        pvalue = 1.0
    significant = pvalue < 1 - _CONFIDENCE
    if mean > 0:
        return "better" if significant else "perhaps better"
    return "worse" if significant else "no better"


@dataclass(frozen=True)
class ClassLine:
    """Recall and precision of one class."""

    label: Any
    count: int
    """Rows of the class."""
    called: int
    """Rows that the model assigns to the class."""
    found: int
    """Rows that are both."""

    @property
    def recall(self) -> float:
        """Share of the rows of the class that are found."""
        return self.found / self.count if self.count else float("nan")

    @property
    def precision(self) -> float:
        """Share of the rows assigned to the class that are right."""
        return self.found / self.called if self.called else float("nan")


@dataclass(frozen=True)
class ClassQuality:
    """How good a classifier is."""

    scores: tuple[Score, ...]
    """Error rates: of the model, of the majority, of a linear model where there is one."""
    classes: tuple[ClassLine, ...]
    verdicts: tuple[str, ...]
    """How the model compares with each of the baselines, as :func:`compare_losses` puts it."""
    auc: float | None
    sentences: tuple[str, ...]
    recommendation: str


def classify_quality(found: Predictions, rules: Baselines, classes: Vector, target: str) -> ClassQuality:
    """Evaluate a classifier on rows that it was not fitted to."""
    wrong = found.truth != found.predicted
    several = len(set(rules.constant.tolist())) > 1
    named = [(f"always {'the most frequent class' if several else label(rules.constant[0])}", rules.constant)]
    named += [("a linear model", rules.linear)] if rules.linear is not None else []
    others = [(name, predicted != found.truth) for name, predicted in named]
    lines = _lines(found, classes)
    scores = (error_rate("this model", wrong), *(error_rate(name, w) for name, w in others))
    verdicts = tuple(compare_losses(wrong, w) for _, w in others)
    right = f"{of(int((~wrong).sum()), len(wrong))} {'rows' if len(wrong) != 1 else 'row'}{_seen(found)}"
    low, high = percent(1 - scores[0].high, 0), percent(1 - scores[0].low, 0)
    does = "names the right class" if target == "class" else f"predicts {target} correctly"
    sentences = [f"It {does} for {right}: {percent(1 - scores[0].value)} (95% CI {low} to {high})."]
    if scores[0].high - scores[0].low > _VAGUE:
        sentences.append(f"With {plural(len(wrong), 'row')} this is a rough estimate.")
    for score, verdict in zip(scores[1:], verdicts):
        share = percent(1 - score.value)
        if score.name == "a linear model":
            sentences.append(_LINEAR[verdict if score.value != scores[0].value else "equal"].format(share))
        else:
            sentences.append(_beside_constant(score.name, f"is right for {share} of rows", verdict, len(wrong)))
    sentences += _two_classes(lines) if len(lines) == 2 else _many_classes(lines, found)
    auc = _auc(found, lines, classes)
    return ClassQuality(scores, lines, verdicts, auc, tuple(sentences), recommend(scores, verdicts))


def _seen(found: Predictions) -> str:
    return {
        "new": " of this table",
        "fitted": " that it was fitted to, which is optimistic",
    }.get(found.how, " that it had not seen")


def _lines(found: Predictions, classes: Vector) -> tuple[ClassLine, ...]:
    """One line per class of the model, and per class that only the rows have."""
    known = list(classes.tolist())
    labels = known + sorted({v for v in found.truth.tolist() if v not in known}, key=str)
    members = [(name, found.truth == name, found.predicted == name) for name in labels]
    return tuple(ClassLine(name, int(t.sum()), int(p.sum()), int((t & p).sum())) for name, t, p in members)


# What a linear model does on the same rows, by how the model compares with it.
_LINEAR = {
    "better": "A linear model is right clearly less often ({}).",
    "perhaps better": "A linear model is right slightly less often ({}); the difference may be chance.",
    "equal": "A linear model is right just as often ({}).",
    "no better": "A linear model is right slightly more often ({}); the difference may be chance.",
    "worse": "A linear model is right clearly more often ({}).",
}
_LINEAR_NUMBERS = {
    "better": "A linear model is off by {}: clearly more.",
    "perhaps better": "A linear model is off by {}: slightly more, which may be chance.",
    "equal": "A linear model is off by just as much ({}).",
    "no better": "A linear model is off by {}: slightly less, which may be chance.",
    "worse": "A linear model is off by {}: clearly less.",
}


def _beside_constant(name: str, does: str, verdict: str, n: int) -> str:
    """A sentence on the constant prediction that ``does`` so well, compared on ``n`` rows."""
    name = name.replace("always", "always predicting", 1)
    if verdict == "perhaps better":
        return f"That is slightly better than {name}, which {does}; with {plural(n, 'row')} it may be chance."
    compared = {"better": "clearly better", "worse": "clearly worse"}.get(verdict, "no better")
    return f"That is {compared} than {name}, which {does}."


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


def rarer(lines: tuple[ClassLine, ...]) -> int:
    """Which of two classes people look for: the rarer one; of equal ones the second."""
    return 0 if lines[0].count < lines[1].count else 1


def _two_classes(lines: tuple[ClassLine, ...]) -> list[str]:
    line = lines[rarer(lines)]
    if not line.count:
        return []
    name = label(line.label)
    if not line.called:
        return [f"It never predicts {name}: it finds none of the {plural(line.count, 'row')} with {name}."]
    return [
        f"It finds {of(line.found, line.count)} rows with {name} ({percent(line.recall, 0)}).",
        f"When it predicts {name}, it is right for {of(line.found, line.called)} rows ({percent(line.precision, 0)}).",
    ]


def _many_classes(lines: tuple[ClassLine, ...], found: Predictions) -> list[str]:
    present = [line for line in lines if line.count]
    if len(present) < 2:
        return []
    best, worst = max(present, key=lambda c: c.recall), min(present, key=lambda c: c.recall)
    if best.recall == worst.recall:
        return [f"It finds {percent(best.recall, 0)} of every class."]
    taken = found.predicted[(found.truth == worst.label) & (found.predicted != worst.label)]
    names, counts = np.unique(taken, return_counts=True)
    times = "once" if counts.max() == 1 else f"{counts.max():,} times"
    instead = f", most often taken for {label(names[np.argmax(counts)])}: {times}"
    first = f"{label(best.label)} ({of(best.found, best.count)} found)"
    last = f"{label(worst.label)} ({of(worst.found, worst.count)} found{instead})"
    return [f"It does best with {first} and worst with {last}."]


def _auc(found: Predictions, lines: tuple[ClassLine, ...], classes: Vector) -> float | None:
    """Area under the ROC curve of the rarer of two classes, where both are among the rows."""
    if found.probabilities is None or len(lines) != 2 or not all(line.count for line in lines):
        return None
    k = rarer(lines)
    return float(roc_auc_score(found.truth == classes[k], found.probabilities[:, k]))


@dataclass(frozen=True)
class RegressionQuality:
    """How good a regression is."""

    scores: tuple[Score, ...]
    """Mean absolute errors: of the model, of the mean, of a linear model where there is one."""
    rmse: tuple[float, ...]
    """Root mean squared errors, in the same order."""
    r2: tuple[float, ...]
    verdicts: tuple[str, ...]
    """As in :class:`ClassQuality`."""
    sentences: tuple[str, ...]
    recommendation: str


def regress_quality(found: Predictions, rules: Baselines, target: str) -> RegressionQuality:
    """Evaluate a regression on rows that it was not fitted to."""
    named = [("this model", found.predicted), ("always the mean", rules.constant)]
    named += [("a linear model", rules.linear)] if rules.linear is not None else []
    residuals = [np.asarray(found.truth - predicted, dtype=float) for _, predicted in named]
    scores = tuple(mean_error(name, np.abs(r)) for (name, _), r in zip(named, residuals))
    squares = [float((r**2).mean()) for r in residuals]
    variance = float(found.truth.var())
    r2 = tuple(1 - s / variance if variance > 0 else float("nan") for s in squares)
    verdicts = tuple(compare_losses(np.abs(residuals[0]), np.abs(other)) for other in residuals[1:])
    own = scores[0]
    low, high = (float(q) for q in np.quantile(found.truth, [0.05, 0.95]))
    interval = f"95% CI {number(own.low)} to {number(own.high)}"
    sentences = [
        f"Its predictions of {target} are off by {number(own.value)} on average, for {found.rows} ({interval}).",
        f"For comparison: nine of ten rows have a value between {number(low)} and {number(high)}.",
    ]
    if np.isfinite(r2[0]):
        sentences.append(f"It explains {percent(max(r2[0], 0.0), 0)} of the variance of {target} (R² {r2[0]:.2f}).")
    for score, verdict in zip(scores[1:], verdicts):
        if score.name == "a linear model":
            same = number(score.value) == number(own.value) and verdict not in ("better", "worse")
            sentences.append(_LINEAR_NUMBERS["equal" if same else verdict].format(number(score.value)))
        else:
            does = f"is off by {number(score.value)}"
            sentences.append(_beside_constant(score.name, does, verdict, len(found.truth)))
    rmse = tuple(np.sqrt(squares).tolist())
    return RegressionQuality(scores, rmse, r2, verdicts, tuple(sentences), recommend(scores, verdicts))
