"""How good a model is, beside simple rules, in numbers and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score

from fewkern.reporting.judging import Baselines, Judged
from fewkern.reporting.simple import wilson
from fewkern.reporting.words import about, in_hundred, label, number, of, percent, plural

__all__ = ["ClassLine", "ClassQuality", "RegressionQuality", "Score", "classify_quality", "regress_quality"]

Vector = np.ndarray[Any, Any]
# Of all intervals, and of "clearly": one wrong statement in twenty.
_CONFIDENCE = 0.95
# An interval of an error rate that is wider than this says little.
_VAGUE = 0.3


@dataclass(frozen=True)
class Score:
    """How wrong one way of answering is on average, with a 95% interval."""

    name: str
    value: float
    low: float
    high: float


def error_rate(name: str, wrong: Vector) -> Score:
    """Share of wrong answers, with Wilson's interval."""
    k, n = int(wrong.sum()), len(wrong)
    return Score(name, k / n, *wilson(k, n, _CONFIDENCE))


def mean_error(name: str, errors: Vector) -> Score:
    """Mean absolute error, with the interval of a mean (Student's t)."""
    mean, n = float(errors.mean()), len(errors)
    if n < 2:
        return Score(name, mean, 0.0, float("inf"))
    half = float(stats.t.ppf(0.5 + _CONFIDENCE / 2, n - 1) * errors.std(ddof=1) / np.sqrt(n))
    return Score(name, mean, max(mean - half, 0.0), mean + half)


@dataclass(frozen=True)
class ClassLine:
    """How one class fares."""

    label: Any
    count: int
    """Rows of the class."""
    called: int
    """Rows that the model says are of the class."""
    found: int
    """Rows that are both."""

    @property
    def recall(self) -> float:
        """Share of the rows of the class that are found."""
        return self.found / self.count if self.count else float("nan")

    @property
    def precision(self) -> float:
        """Share of the rows called so that are right."""
        return self.found / self.called if self.called else float("nan")


@dataclass(frozen=True)
class ClassQuality:
    """How good a classifier is."""

    scores: tuple[Score, ...]
    """Error rates: of the model, of the majority, of a linear model where there is one."""
    classes: tuple[ClassLine, ...]
    verdicts: tuple[str, ...]
    """"better", "unclear" or "worse" than each of the rules after the model."""
    auc: float | None
    sentences: tuple[str, ...]


def classify_quality(judged: Judged, rules: Baselines, classes: Vector, target: str) -> ClassQuality:
    """Judge a classifier on rows that it was not fitted to."""
    wrong = judged.truth != judged.predicted
    majority = rules.constant[0]
    constant = (rules.constant != judged.truth, f"always {label(majority)}")
    if len(set(rules.constant.tolist())) > 1:
        constant = (constant[0], "always the most frequent class")
    others = [constant]
    if rules.linear is not None:
        others.append((rules.linear != judged.truth, "a linear model"))
    lines = _lines(judged, classes)
    scores = (error_rate("this model", wrong), *(error_rate(name, w) for w, name in others))
    verdicts = tuple(_sign_test(wrong, w) for w, _ in others)
    right = f"{of(int((~wrong).sum()), len(wrong))} {'rows' if len(wrong) != 1 else 'row'}{_seen(judged)}"
    low, high = percent(1 - scores[0].high, 0), percent(1 - scores[0].low, 0)
    share = f"{percent(1 - scores[0].value)} (with 95% confidence between {low} and {high})"
    sentences = [f"It names the right {target} for {right}: {share}."]
    if target != "class":
        sentences = [f"It predicts {target} correctly for {right}: {share}."]
    if scores[0].high - scores[0].low > _VAGUE:
        sentences.append(f"{plural(len(wrong), 'row')} can say no more than that.")
    for score, verdict in zip(scores[1:], verdicts):
        does = f"is right for {in_hundred(1 - score.value)} rows"
        sentences.append(_comparison(score, does, _FEWER, verdict, len(wrong)))
    sentences += _two_classes(lines) if len(lines) == 2 else _many_classes(lines, judged)
    return ClassQuality(scores, lines, verdicts, _auc(judged, lines, classes), tuple(sentences))


def _seen(judged: Judged) -> str:
    return {
        "held out": " that it had not seen",
        "refitted": " that it had not seen",
        "new": " of this table",
        "fitted": " that it was fitted to, which is too kind a measure",
    }[judged.how]


def _lines(judged: Judged, classes: Vector) -> tuple[ClassLine, ...]:
    """One line per class of the model, and per class that only the rows have."""
    known = list(classes.tolist())
    labels = known + sorted({v for v in judged.truth.tolist() if v not in known}, key=str)
    return tuple(
        ClassLine(
            name,
            int((judged.truth == name).sum()),
            int((judged.predicted == name).sum()),
            int(((judged.truth == name) & (judged.predicted == name)).sum()),
        )
        for name in labels
    )


def _sign_test(wrong: Vector, other: Vector) -> str:
    """Compare two rules on the rows where only one of them is right (McNemar's test, exact)."""
    better, worse = int((~wrong & other).sum()), int((wrong & ~other).sum())
    return _verdict(better - worse, lambda: stats.binomtest(better, better + worse, alternative="greater").pvalue)


def _verdict(gain: float, pvalue: Any) -> str:
    if gain <= 0:
        return "worse"
    return "better" if pvalue() < 1 - _CONFIDENCE else "unclear"


# How a linear model does beside the model, by the verdict on the model.
_FEWER = {"better": "clearly fewer", "unclear": "fewer, which may be chance", "worse": "no fewer"}
_WORSE = {"better": "clearly worse", "unclear": "worse, which may be chance", "worse": "no worse"}


def _comparison(other: Score, does: str, linear: dict[str, str], verdict: str, n: int) -> str:
    """A sentence on a simple rule that ``does`` so well, judged on ``n`` rows."""
    if other.name == "a linear model":
        return f"A linear model {does}: {linear[verdict]}."
    name = other.name.replace("always", "always answering", 1)
    if verdict == "better":
        return f"That is clearly better than {name}, which {does}."
    if verdict == "unclear":
        return f"That is a little better than {name}, which {does}, but with {plural(n, 'row')} it may be chance."
    return f"That is no better than {name}, which {does}."


def rarer(lines: tuple[ClassLine, ...]) -> int:
    """Which of two classes people look for: the rarer one; of equal ones the second."""
    return 0 if lines[0].count < lines[1].count else 1


def _two_classes(lines: tuple[ClassLine, ...]) -> list[str]:
    line = lines[rarer(lines)]
    if not line.count:
        return []
    name = label(line.label)
    if not line.called:
        return [f"It never answers {name}: none of the {plural(line.count, 'row')} with {name} is found."]
    are = "is" if line.found == 1 else "are"
    called = f"Of the {plural(line.called, 'row')} that it calls {name}, {line.found:,} really {are}"
    return [
        f"It finds {of(line.found, line.count)} rows with {name} ({about(line.recall)}).",
        f"{called} ({about(line.precision)}).",
    ]


def _many_classes(lines: tuple[ClassLine, ...], judged: Judged) -> list[str]:
    present = [line for line in lines if line.count]
    if len(present) < 2:
        return []
    best, worst = max(present, key=lambda c: c.recall), min(present, key=lambda c: c.recall)
    if best.recall == worst.recall:
        return [f"It finds {about(best.recall)} of every class."]
    taken = judged.predicted[(judged.truth == worst.label) & (judged.predicted != worst.label)]
    names, counts = np.unique(taken, return_counts=True)
    times = "once" if counts.max() == 1 else f"{counts.max():,} times"
    instead = f", most often taken for {label(names[np.argmax(counts)])}: {times}"
    first = f"{label(best.label)} ({of(best.found, best.count)} found)"
    last = f"{label(worst.label)} ({of(worst.found, worst.count)} found{instead})"
    return [f"It does best with {first} and worst with {last}."]


def _auc(judged: Judged, lines: tuple[ClassLine, ...], classes: Vector) -> float | None:
    """Area under the ROC curve of the rarer of two classes, where both are among the rows."""
    if judged.probabilities is None or len(lines) != 2 or not all(line.count for line in lines):
        return None
    k = rarer(lines)
    return float(roc_auc_score(judged.truth == classes[k], judged.probabilities[:, k]))


@dataclass(frozen=True)
class RegressionQuality:
    """How good a regression is."""

    scores: tuple[Score, ...]
    """Mean absolute errors: of the model, of the mean, of a linear model where there is one."""
    rmse: tuple[float, ...]
    """Roots of the mean squared errors, in the same order."""
    r2: tuple[float, ...]
    """One minus the squared error over that of the mean of these rows."""
    verdicts: tuple[str, ...]
    sentences: tuple[str, ...]


def regress_quality(judged: Judged, rules: Baselines, target: str) -> RegressionQuality:
    """Judge a regression on rows that it was not fitted to."""
    named = [("this model", judged.predicted), ("always the mean", rules.constant)]
    if rules.linear is not None:
        named.append(("a linear model", rules.linear))
    residuals = [np.asarray(judged.truth - predicted, dtype=float) for _, predicted in named]
    scores = tuple(mean_error(name, np.abs(r)) for (name, _), r in zip(named, residuals))
    squares = [float((r**2).mean()) for r in residuals]
    spread = float(judged.truth.var())
    r2 = tuple(1 - s / spread if spread > 0 else float("nan") for s in squares)
    verdicts = tuple(_paired_test(np.abs(residuals[0]), np.abs(other)) for other in residuals[1:])
    own = scores[0]
    low, high = (float(q) for q in np.quantile(judged.truth, [0.05, 0.95]))
    sure = f"with 95% confidence between {number(own.low)} and {number(own.high)}"
    sentences = [
        f"Its predictions of {target} are off by {number(own.value)} on average, for {judged.rows} ({sure}).",
        f"For comparison: nine of ten rows have a value between {number(low)} and {number(high)}.",
    ]
    if np.isfinite(r2[0]):
        share = max(r2[0], 0.0)
        sentences.append(f"It explains {percent(share, 0)} of the variance of {target} (R² {r2[0]:.2f}).")
    for score, verdict in zip(scores[1:], verdicts):
        does = f"is off by {number(score.value)}"
        sentences.append(_comparison(score, does, _WORSE, verdict, len(judged.truth)))
    return RegressionQuality(scores, tuple(np.sqrt(squares).tolist()), r2, verdicts, tuple(sentences))


def _paired_test(own: Vector, other: Vector) -> str:
    """Compare the absolute errors of two rules on the same rows (paired, Student's t)."""
    gain = other - own
    return _verdict(
        float(gain.mean()),
        lambda: stats.ttest_1samp(gain, 0.0, alternative="greater").pvalue if len(gain) > 2 and gain.std() > 0 else 1.0,
    )
