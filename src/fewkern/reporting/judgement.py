"""How good a model is on rows that it was not fitted to: its error beside those of simple baselines, and a verdict.

The summary of a table model and the page of a report print the same :class:`Judgement`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.reporting.formatting import label, number, of, percent

# Confidence level of all intervals, and of "better".
_CONFIDENCE_LEVEL = 0.95
# A linear model is as good if its error is larger by no more than this factor.
_AS_GOOD_ERROR_RATIO = 1.02

Measure = Literal["error", "rmse", "log density"]


def wilson(errors: int, rows: int) -> tuple[float, float]:
    """Wilson's 95% interval of a proportion.

    Examples
    --------
    >>> from fewkern.reporting.judgement import wilson
    >>> [round(v, 3) for v in wilson(5, 100)]
    [0.022, 0.112]
    """
    found = stats.binomtest(errors, rows).proportion_ci(_CONFIDENCE_LEVEL, method="wilson")
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
            quantile = stats.t.ppf(0.5 + _CONFIDENCE_LEVEL / 2, self.count(losses) - 1) if error < math.inf else 1.0
            half = float(quantile) * error
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
    >>> from fewkern.reporting.judgement import compare
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
    significant = pvalue < 1 - _CONFIDENCE_LEVEL
    if mean > 0:
        return "better" if significant else "perhaps better"
    return "worse" if significant else "no better"


# By how the losses of a model compare with those of the simplest baseline.
_VERDICTS = {
    "better": "better than {}",
    "perhaps better": "no better than {}: on {:,} rows the difference may be chance",
    "no better": "no better than {}",
    "worse": "worse than {}",
}


def _verdict(losses: list[Array], name: str, counted: Counted) -> str:
    """How a model compares with the simplest baseline and, if there is one, with a linear model."""
    own, simple, *linear = losses
    found = compare(own, simple, counted)
    verdict = _VERDICTS[found].format(name, len(own))
    if not linear:
        return verdict
    other = compare(own, linear[0], counted)
    if other == "worse" and (found == "better" or compare(linear[0], simple, counted) == "better"):
        return f"{verdict}; use a linear model, it is better"
    if found != "better":
        return verdict
    if other == "better":
        return f"{verdict}, and better than a linear model"
    if counted.mean(linear[0])[0] <= _AS_GOOD_ERROR_RATIO * counted.mean(own)[0]:
        return f"{verdict}; use a linear model, it is as good"
    return f"{verdict}; the difference to a linear model may be chance"


@storable
@dataclass(frozen=True)
class Judgement:
    """An error with its interval, and the errors of baselines."""

    measure: Measure
    rows: int
    value: float
    low: float
    high: float
    """A 95% interval."""
    baseline: float
    """The same measure of the simplest baseline: the most frequent class, the mean, one normal distribution."""
    baseline_name: str
    linear: float | None
    """Of a linear model, where one was fitted."""
    verdict: str
    """Better, no better or worse than the simplest baseline, and than a linear model."""
    found: str | None = None
    """Recall and precision of the rarer of two classes, in words."""
    r2: float | None = None
    how: Literal["held out", "cross-validated"] = "held out"
    weighted: bool = False
    """Whether rows or classes have weights."""
    groups: int | None = None
    """Number of groups among these rows, if whole groups were held out."""
    ranking: str | None = None
    """How well probabilities rank the rows of a rare class."""
    targets: tuple[Judgement, ...] = ()
    """Of each of several targets. The measure of all of them is in units of their standard deviations."""

    @property
    def baselines(self) -> dict[str, float]:
        """The errors of the baselines by name."""
        return {self.baseline_name: self.baseline} | ({} if self.linear is None else {"a linear model": self.linear})

    def lines(self, names: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        """Error with its interval, verdict and baselines, as pairs of a name and a text; ``names`` are the targets."""
        name = {"error": "error", "rmse": "RMSE", "log density": "log density"}[self.measure]
        how = "held-out" if self.how == "held out" else "cross-validated"
        value, low, high = (measure_text(one, self.measure) for one in (self.value, self.low, self.high))
        rows = [(f"{how} {name}", f"{value} ({self._details()}95% CI {low.removesuffix('%')}–{high})")]
        for target, one in zip(names, self.targets):
            rows.append((f"  of {target}", error_text(one.value, "rmse", one.r2)))
        others = "; ".join(f"{name}: {measure_text(one, self.measure)}" for name, one in self.baselines.items())
        rows += [("verdict", self.verdict), ("baselines", others)]
        return rows + [(name, text) for name, text in (("found", self.found), ("ranking", self.ranking)) if text]

    def _details(self) -> str:
        """R², the number of rows, groups and weights."""
        r2 = f"R² {self.r2:.3f}; " if self.r2 is not None else ""
        unit = "in standard deviations of the targets; " if self.targets else ""
        unseen = " the model did not see" if self.how == "held out" else ""
        groups = "" if self.groups is None else f" of {self.groups:,} groups"
        return f"{unit}{r2}{self.rows:,} rows{groups}{unseen}; {'weighted; ' if self.weighted else ''}"


def measure_text(value: float, measure: str) -> str:
    """An error rate in percent, another measure to four digits."""
    return percent(value) if measure == "error" else number(value, 4)


def error_text(value: float, measure: str, r2: float | None) -> str:
    """An error, and R² where there is one."""
    return measure_text(value, measure) + ("" if r2 is None else f" (R² {r2:.3f})")


def _judged(measure: Measure, losses: list[Array], names: list[str], counted: Counted, **more: Any) -> Judgement:
    """The judgement by the losses of a model and of the baselines with these names, row by row."""
    means = [counted.mean(loss)[0] for loss in losses]
    found = [means[0], *counted.interval(losses[0]), *means[1:]]
    if measure == "rmse":
        found = [math.sqrt(max(square, 0.0)) for square in found]
    value, low, high, baseline, *linear = found
    return Judgement(
        measure, len(losses[0]), value, low, high, baseline, names[0], linear[0] if linear else None,
        _verdict(losses, names[0], counted), weighted=counted.weights is not None,
        groups=None if counted.groups is None else counted.count(losses[0]), **more,
    )  # fmt: skip


def judge(
    truth: Array,
    answers: dict[str, Array],
    counted: Counted = EACH_ROW,
    classes: Any = None,
    probabilities: Array | None = None,
) -> Judgement:
    """The judgement of the first of the answers; the others are the simplest baseline and perhaps a linear model.

    Parameters
    ----------
    truth : array of shape (n,) or (n, n_targets)
    answers : dict
        Predictions by the names of those that made them.
    counted : Counted
    classes : array or None
        Labels of a classifier, in the order of the probabilities; None for numbers.
    probabilities : array of shape (n, n_classes) or None
    """
    (_, *names), (predicted, *_) = answers, answers.values()
    if classes is None:
        return _judge_numbers(np.asarray(truth, float), answers, counted)
    wrong = [np.asarray(truth != answer, dtype=bool) for answer in answers.values()]
    ranking = None if probabilities is None else _ranking(truth, probabilities, classes)
    return _judged("error", wrong, names, counted, found=_found(truth, predicted, classes), ranking=ranking)


def _judge_numbers(truth: Array, answers: dict[str, Array], counted: Counted) -> Judgement:
    """By squared errors; those of several targets are in units of their standard deviations."""
    names = list(answers)[1:]
    if truth.ndim == 1:
        squares = [(truth - np.asarray(answer, float)) ** 2 for answer in answers.values()]
        spread = counted.mean((truth - counted.mean(truth)[0]) ** 2)[0]
        return _judged("rmse", squares, names, counted, r2=_r2(counted.mean(squares[0])[0], spread))
    unit = truth.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    squares = [(((truth - answer) / unit) ** 2).mean(axis=1) for answer in answers.values()]
    each = []
    for k in range(truth.shape[1]):
        each.append(_judge_numbers(truth[:, k], {name: answer[:, k] for name, answer in answers.items()}, counted))
    known = [one.r2 for one in each if one.r2 is not None]
    r2 = float(np.mean(known)) if known else None
    return _judged("rmse", squares, names, counted, targets=tuple(each), r2=r2)


def _r2(square: float, spread: float) -> float | None:
    return 1 - square / spread if spread else None


def judge_density(values: Array, normal: Array) -> Judgement:
    """Mean log density of rows held out; ``normal`` is that of one normal distribution."""
    found = _judged("log density", [-values, -normal], ["one normal distribution"], EACH_ROW)
    return replace(found, value=-found.value, low=-found.high, high=-found.low, baseline=-found.baseline)


def judge_fit(task: str, error: float, y: Array, weights: Array | None = None) -> Judgement:
    """The error that a fit itself reports (share of wrong classes, or the root of the mean squared error).

    The interval of a root mean squared error takes the errors for normal.
    """
    n, counted, classify = len(y), Counted(weights), task == "classify"
    answer = constant_answer(y, classify, weights)
    if classify:
        (low, high), baseline, r2 = wilson(round(error * n), n), counted.mean(y != answer)[0], None
    else:
        spread = counted.mean((y - answer) ** 2)[0]
        part = float(stats.norm.ppf(0.5 + _CONFIDENCE_LEVEL / 2)) / math.sqrt(2 * n)
        low, high, baseline = error * max(0.0, 1 - part), error * (1 + part), math.sqrt(spread)
        r2 = _r2(error**2, spread)
    gain = 0.0 if math.isclose(error, baseline) else baseline - error
    found = {True: ("better", "perhaps better"), False: ("worse", "no better")}[gain > 0][low <= baseline <= high]
    name = answering([answer], classify)
    return Judgement(
        "error" if classify else "rmse", n, error, low, high, baseline, name, None, _VERDICTS[found].format(name, n),
        r2=r2, how="cross-validated", weighted=weights is not None,
    )  # fmt: skip


def constant_answer(y: Array, classify: bool, weights: Array | None = None) -> Any:
    """The most frequent class, or the mean of every target."""
    if not classify:
        return np.average(y, axis=0, weights=weights)
    known, codes = np.unique(y, return_inverse=True)
    return known[int(np.argmax(np.bincount(codes, weights)))]


def answering(answers: Sequence[Any], classify: bool) -> str:
    """The name of the baseline that gives one of these answers to every row."""
    if classify:
        what = label(answers[0]) if len(set(answers)) == 1 else "the most frequent class"
    elif np.ndim(answers[0]):
        what = "the means"
    else:
        what = "the mean" + (f", {number(answers[0], 4)}" if len(answers) == 1 else "")
    return f"always answering {what}"


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
    def of(cls, name: Any, true: Array, called: Array) -> ClassLine:
        """Count rows of the class, rows assigned to it, and rows that are both."""
        return cls(name, int(true.sum()), int(called.sum()), int((true & called).sum()))


def rarer(truth: Array, classes: Any) -> int | None:
    """The index of the class of interest: the rarer of two, of equal ones the second; None unless there are two."""
    if len(classes) != 2:
        return None
    first, second = ((truth == name).sum() for name in classes)
    return 0 if first < second else 1


def _found(truth: Array, predicted: Array, classes: Any) -> str | None:
    """Recall and precision of the rarer of two classes, in words."""
    k = rarer(truth, classes)
    if k is None or not (truth == classes[k]).any():
        return None
    line, name = ClassLine.of(classes[k], truth == classes[k], predicted == classes[k]), label(classes[k])
    right = f"; {of(line.found, line.called)} answers {name} are right" if line.called else ""
    return f"{of(line.found, line.count)} rows of class {name}{right}"


def is_rare(share: float, classes: int) -> bool:
    """Whether a class has so small a share of the rows that the share of errors says little about it."""
    return 0 < share < min(0.05, 0.25 / classes)


def _ranking(truth: Array, probabilities: Array, classes: Any) -> str | None:
    """Average precision and AUC of the rarest class, if it is rare."""
    counts = np.array([np.sum(truth == known) for known in classes])
    rare = int(np.argmin(np.where(counts > 0, counts, len(truth) + 1)))
    share = counts[rare] / len(truth)
    if not is_rare(share, len(classes)):
        return None
    member, p = truth == classes[rare], probabilities[:, rare]
    return (
        f"class {label(classes[rare])}: average precision {average_precision_score(member, p):.2f} (at random "
        f"{share:.3f}), AUC {roc_auc_score(member, p):.2f}"
    )
