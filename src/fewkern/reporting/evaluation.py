"""How good a model is beside simple baselines, as numbers and sentences. Summaries of tables use it, too."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from fewkern.reporting.formatting import label, number, of, percent, plural
from fewkern.reporting.holdout import Predictions, losses, relation
from fewkern.reporting.rows import sample_rows

__all__ = [
    "ClassLine",
    "Quality",
    "Score",
    "baselines",
    "compare_losses",
    "linear_predictions",
    "mean_interval",
    "quality",
    "recommend",
    "score",
    "wilson",
]

Vector = np.ndarray[Any, Any]
# Confidence level of all intervals, and of "clearly".
_CONFIDENCE = 0.95
# An interval of an error rate that is wider than this is worth a remark.
_VAGUE = 0.3
# Most rows that a linear model is fitted to, and most features: it must not take longer than our model.
_LINEAR_ROWS, _LINEAR_FEATURES = 20_000, 2_000


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


def baselines(found: Predictions, X: Vector, y: Vector, seed: int) -> dict[str, Vector]:
    """Predictions of simple baselines by name: the most frequent class or the mean, then, if possible, a linear model.

    ``X`` and ``y`` are all rows of the table. A baseline is fitted to the rows of the fit, or where these are not
    known, predicts each fifth of the rows from the other four.
    """
    rows, task = np.arange(len(found.positions)), "regress" if found.classes is None else "classify"
    if len(found.train) or len(rows) < 2:
        folds = [(found.train if len(found.train) else found.positions, rows)]
    else:
        parts = KFold(min(5, len(rows)), shuffle=True, random_state=seed).split(rows)
        folds = [(found.positions[train], test) for train, test in parts]
    made = []
    for predict in (_constant_predictions, linear_predictions):
        values = np.empty(len(rows), dtype=found.truth.dtype)
        for train, test in folds:
            predicted = predict(X[train], y[train], X[found.positions[test]], task)
            if predicted is None:
                break
            values[test] = predicted
        else:
            made.append(values)
    names = set(made[0].tolist())
    most = "the mean" if task == "regress" else label(names.pop()) if len(names) == 1 else "the most frequent class"
    return dict(zip((f"always {most}", "a linear model"), made))


def _constant_predictions(X: Vector, y: Vector, new: Vector, task: str) -> Vector:
    model = DummyClassifier() if task == "classify" else DummyRegressor()
    return np.asarray(model.fit(X, y).predict(new))


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


def score(name: str, loss: Vector, variance: float = 0.0) -> Score:
    """The error rate, with Wilson's interval, or the mean absolute error of a target with the given variance."""
    if loss.dtype == bool:
        k, n = int(loss.sum()), len(loss)
        return Score(name, k / n, *wilson(k, n))
    mean, low, high = mean_interval(loss)
    square = float((loss**2).mean())
    r2 = 1 - square / variance if variance > 0 else float("nan")
    return Score(name, mean, max(low, 0.0), high, square**0.5, r2)


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
    """Recall and precision of one class, or of the class that is predicted from some probability on."""

    label: Any
    """The class, or the probability."""
    count: int
    """Rows of the class."""
    called: int
    """Rows that are assigned to the class."""
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

    @classmethod
    def of(cls, name: Any, true: Vector, called: Vector) -> ClassLine:
        """Count rows of the class, rows assigned to it, and rows that are both."""
        return cls(name, int(true.sum()), int(called.sum()), int((true & called).sum()))


@dataclass(frozen=True)
class Quality:
    """How good a classifier or a regression is, on rows that it was not fitted to."""

    scores: tuple[Score, ...]
    """Of the model, of a constant prediction, of a linear model where there is one."""
    verdicts: tuple[str, ...]
    """How the model compares with each of the baselines, as :func:`compare_losses` puts it."""
    classes: tuple[ClassLine, ...]
    """Of a classifier: its classes, and those that only the rows have."""
    auc: float | None
    """Area under the ROC curve of the rarer of two classes."""
    sentences: tuple[str, ...]
    recommendation: str


def quality(found: Predictions, rules: dict[str, Vector], target: str) -> Quality:
    """Compare the predictions of a model with those of baselines, which have names."""
    classify = found.classes is not None
    loss = {"this model": found.losses}
    loss |= {name: losses(found.truth, predicted, classify) for name, predicted in rules.items()}
    variance = 0.0 if classify else float(found.truth.var())
    scores = tuple(score(name, values, variance) for name, values in loss.items())
    verdicts = tuple(compare_losses(loss["this model"], loss[name]) for name in rules)
    lines = _lines(found)
    sentences = _class_sentences(found, scores[0], target) if classify else _number_sentences(found, scores[0], target)
    for other, verdict in zip(scores[1:], verdicts):
        own, shown = (percent(1 - s.value) if classify else number(s.value) for s in (scores[0], other))
        if other.name == "a linear model":
            same = own == shown and verdict not in ("better", "worse")
            words = _LINEAR["equal" if same else verdict][0 if classify else 1]
            sentences.append(f"A linear model is {words.format(shown)}.")
        else:
            does = f"is right for {shown} of rows" if classify else f"is off by {shown}"
            sentences.append(_beside_constant(other.name, does, verdict, len(found.truth)))
    if classify:
        sentences += _two_classes(lines) if len(lines) == 2 else _many_classes(lines, found)
    auc = None
    if found.rare is not None and len(lines) == 2 and all(line.count for line in lines):
        auc = float(roc_auc_score(*found.rare[1:]))
    return Quality(scores, verdicts, lines, auc, tuple(sentences), recommend(scores, verdicts))


def _lines(found: Predictions) -> tuple[ClassLine, ...]:
    """One line per class of the model, and per class that only the rows have."""
    if found.classes is None:
        return ()
    known = list(found.classes.tolist())
    labels = known + sorted({v for v in found.truth.tolist() if v not in known}, key=str)
    return tuple(ClassLine.of(name, found.truth == name, found.predicted == name) for name in labels)


def _class_sentences(found: Predictions, own: Score, target: str) -> list[str]:
    wrong, n = found.losses, len(found.truth)
    rows = f"{of(n - int(wrong.sum()), n)} {'rows' if n != 1 else 'row'} {relation(found.how)}"
    optimistic = ", which is optimistic" if found.how == "fitted" else ""
    low, high = percent(1 - own.high, 0), percent(1 - own.low, 0)
    does = "names the right class" if target == "class" else f"predicts {target} correctly"
    sentences = [f"It {does} for {rows}{optimistic}: {percent(1 - own.value)} (95% CI {low} to {high})."]
    if own.high - own.low > _VAGUE:
        sentences.append(f"With {plural(n, 'row')} this is a rough estimate.")
    return sentences


def _number_sentences(found: Predictions, own: Score, target: str) -> list[str]:
    assert own.r2 is not None
    low, high = (float(q) for q in np.quantile(found.truth, [0.05, 0.95]))
    rows = f"{plural(len(found.truth), 'row')} {relation(found.how)}"
    interval = f"95% CI {number(own.low)} to {number(own.high)}"
    sentences = [
        f"Its predictions of {target} are off by {number(own.value)} on average, for {rows} ({interval}).",
        f"For comparison: nine of ten rows have a value between {number(low)} and {number(high)}.",
    ]
    if np.isfinite(own.r2):
        sentences.append(f"It explains {percent(max(own.r2, 0.0), 0)} of the variance of {target} (R² {own.r2:.2f}).")
    return sentences


# What a linear model does on the same rows, by how the model compares with it: of classes, and of numbers.
_LINEAR = {
    "better": ("right clearly less often ({})", "off by {}: clearly more"),
    "perhaps better": (
        "right slightly less often ({}); the difference may be chance",
        "off by {}: slightly more, which may be chance",
    ),
    "equal": ("right just as often ({})", "off by just as much ({})"),
    "no better": (
        "right slightly more often ({}); the difference may be chance",
        "off by {}: slightly less, which may be chance",
    ),
    "worse": ("right clearly more often ({})", "off by {}: clearly less"),
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


def _two_classes(lines: tuple[ClassLine, ...]) -> list[str]:
    line = lines[0 if lines[0].count < lines[1].count else 1]
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
