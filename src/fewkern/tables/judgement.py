"""How good a model of a table is: the rows held out, its error on them beside simple baselines, and its summary."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.reporting.evaluation import EACH_ROW, Counted, compare, wilson
from fewkern.reporting.formatting import label, number, percent
from fewkern.tables.resolve import Job, is_rare

# Standard errors on either side of a 95% interval.
_Z = 1.96

# What the vectors of a learned model are.
_ORIGINS = {
    "samples": ", rows of the table",
    "distilled": ", moved to imitate a larger model",
    "moved": ", moved to lower the error",
}


Measure = Literal["error", "rmse", "log density"]


@storable
@dataclass(frozen=True)
class HeldOutRows:
    """Rows that a model did not see, and its predictions for them."""

    rows: Any
    """Positions in the table that was fitted."""
    truth: Any
    predicted: Any
    probabilities: Any = None
    """``(n, n_classes)`` of a classifier, else None."""
    weights: Any = None
    """Weights of the rows, if they have any."""
    groups: Any = None
    """Numbers of the groups of the rows, if there are any."""

    @property
    def counted(self) -> Counted:
        """How the rows count in an error."""
        return Counted(self.weights, self.groups)


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
    """The same measure of a linear model, where one was fitted."""
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
    """One for each of several targets; the measure of all together is in units of their standard deviations."""


def measure_text(value: float, measure: str) -> str:
    """An error rate in percent, another measure to four digits."""
    return percent(value) if measure == "error" else number(value, 4)


# By how the losses of a model compare with those of the simplest answer.
_VERDICTS = {
    "better": "better than {}",
    "perhaps better": "no better than {}: on {:,} rows the difference may be chance",
    "no better": "no better than {}",
    "worse": "worse than {}",
}


def _verdict(losses: tuple[Array, Array, Any], name: str, counted: Counted) -> str:
    """How a model compares with the simplest baseline and with a linear model, by their losses row by row."""
    own, simple, linear = losses
    found = compare(own, simple, counted)
    verdict = _VERDICTS[found].format(name, len(own))
    if linear is None:
        return verdict
    other = compare(own, linear, counted)
    if other == "worse" and (found == "better" or compare(linear, simple, counted) == "better"):
        return f"{verdict}; use a linear model, it is better"
    if found != "better":
        return verdict
    if other == "better":
        return f"{verdict}, and better than a linear model"
    if counted.mean(linear)[0] <= 1.02 * counted.mean(own)[0]:
        return f"{verdict}; use a linear model, it is as good"
    return f"{verdict}; the difference to a linear model may be chance"


def _judge(measure: Measure, losses: tuple[Array, Array, Any], name: str, counted: Counted, **more: Any) -> Judgement:
    """The judgement by the losses of the model, of the baseline and of a linear model (or None), row by row."""
    own, simple, linear = losses
    (low, high), groups = counted.interval(own), None if counted.groups is None else counted.count(own)
    value, base = counted.mean(own)[0], counted.mean(simple)[0]
    other = None if linear is None else counted.mean(linear)[0]
    if measure == "rmse":
        value, low, high, base = (math.sqrt(max(square, 0.0)) for square in (value, low, high, base))
        other = None if other is None else math.sqrt(other)
    return Judgement(
        measure, len(own), value, low, high, base, name, other, _verdict(losses, name, counted),
        weighted=counted.weights is not None, groups=groups, **more,
    )  # fmt: skip


def judge_classes(held_out: HeldOutRows, majority: Any, linear: Any = None, classes: Any = None) -> Judgement:
    """Share of wrong classes; ``majority`` is the most frequent class of the rows that were fitted."""
    truth, predicted = np.asarray(held_out.truth), np.asarray(held_out.predicted)
    answers = (predicted, majority, linear)
    wrong: Any = tuple(None if answer is None else np.asarray(truth != answer, dtype=bool) for answer in answers)
    found, ranking = _found(truth, predicted), _ranking(truth, held_out.probabilities, classes)
    name = f"always answering {label(majority)}"
    return _judge("error", wrong, name, held_out.counted, found=found, ranking=ranking)


def _found(truth: Array, predicted: Array) -> str | None:
    """Recall and precision of the rarer of two classes, in words."""
    labels, counts = np.unique(truth, return_counts=True)
    if len(labels) != 2:
        return None
    rare = labels[int(np.argmin(counts))]
    hits = int(np.sum((truth == rare) & (predicted == rare)))
    named = int(np.sum(predicted == rare))
    text = f"{hits:,} of {int(counts.min()):,} rows of class {label(rare)}"
    return text + (f"; {hits:,} of {named:,} answers {label(rare)} are right" if named else "")


def _ranking(truth: Array, probabilities: Any, classes: Any) -> str | None:
    """Average precision and AUC of the rarest class, if it is rare."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    if probabilities is None or classes is None:
        return None
    counts = np.array([np.sum(truth == known) for known in classes])
    rare = int(np.argmin(np.where(counts > 0, counts, len(truth) + 1)))
    share = counts[rare] / len(truth)
    if not is_rare(share, len(classes)):
        return None
    member, p = truth == classes[rare], np.asarray(probabilities)[:, rare]
    return (
        f"class {label(classes[rare])}: average precision {average_precision_score(member, p):.2f} (at random "
        f"{share:.3f}), AUC {roc_auc_score(member, p):.2f}"
    )


def judge_numbers(held_out: HeldOutRows, mean: float, linear: Any = None) -> Judgement:
    """Root mean squared error; ``mean`` is that of the targets that were fitted."""
    truth, predicted = np.asarray(held_out.truth, float), np.asarray(held_out.predicted, float)
    counted = held_out.counted
    squares = (truth - predicted) ** 2, (truth - mean) ** 2, None if linear is None else (truth - linear) ** 2
    spread = counted.mean((truth - counted.mean(truth)[0]) ** 2)[0]
    r2 = 1 - counted.mean(squares[0])[0] / spread if spread else None
    return _judge("rmse", squares, f"always answering the mean, {number(mean, 4)}", counted, r2=r2)


def _judge_several(held_out: HeldOutRows, means: Array, linear: Any, names: tuple[str, ...]) -> Judgement:
    """Root mean squared error of several targets together, each divided by its standard deviation, and of each."""
    truth, predicted = np.asarray(held_out.truth, float), np.asarray(held_out.predicted, float)
    each = []
    for k in range(len(names)):
        one = replace(held_out, truth=truth[:, k], predicted=predicted[:, k])
        each.append(judge_numbers(one, float(means[k]), None if linear is None else linear[:, k]))
    unit = truth.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)

    def squares(answers: Any) -> Any:
        return None if answers is None else (((truth - answers) / unit) ** 2).mean(axis=1)

    losses = squares(predicted), squares(means), squares(linear)
    known = [one.r2 for one in each if one.r2 is not None]
    r2 = float(np.mean(known)) if known else None
    return _judge("rmse", losses, "always answering the means", held_out.counted, targets=tuple(each), r2=r2)


def judge_held_out(
    task: str, held_out: HeldOutRows, training: tuple[Array, Any], linear: Any, labels: Any
) -> Judgement:
    """Judge by task; ``training``: targets and weights of the fitted rows, ``labels``: classes or names of targets."""
    y, weights = training
    if task == "classify":
        known, codes = np.unique(y, return_inverse=True)
        majority = known[int(np.argmax(np.bincount(codes, weights)))]
        return judge_classes(held_out, majority, linear, labels)
    mean = np.average(y, axis=0, weights=weights)
    if y.ndim == 2:
        return _judge_several(held_out, mean, linear, labels)
    return judge_numbers(held_out, float(mean), linear)


def judge_fit(task: str, error: float, y: Array, weights: Any = None) -> Judgement:
    """The error that a fit itself reports (share of wrong classes, or the root of the mean squared error).

    The interval of a root mean squared error takes the errors for normal.
    """
    n, value = len(y), error
    if task == "classify":
        labels, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights)
        low, high = wilson(round(error * n), n)
        baseline = 1.0 - float(counts.max() / counts.sum())
        name, r2 = f"always answering {label(labels[int(np.argmax(counts))])}", None
    else:
        mean = float(np.average(y, weights=weights))
        spread = float(np.average((y - mean) ** 2, weights=weights))
        baseline = math.sqrt(spread)
        part = _Z / math.sqrt(2 * n)
        low, high = value * max(0.0, 1 - part), value * (1 + part)
        name, r2 = f"always answering the mean, {number(mean, 4)}", 1 - error**2 / spread if spread else None
    gain = 0.0 if math.isclose(value, baseline) else baseline - value
    found = {True: ("better", "perhaps better"), False: ("worse", "no better")}[gain > 0][low <= baseline <= high]
    verdict = _VERDICTS[found].format(name, n)
    return Judgement(
        "error" if task == "classify" else "rmse", n, value, low, high, baseline, name, None, verdict, r2=r2,
        how="cross-validated", weighted=weights is not None,
    )  # fmt: skip


def judge_density(values: Array, normal: Array) -> Judgement:
    """Mean log density of rows held out; ``normal`` is that of one normal distribution."""
    found = _judge("log density", (-values, -normal, None), "one normal distribution", EACH_ROW)
    return replace(found, value=-found.value, low=-found.high, high=-found.low, baseline=-found.baseline)


def split_rows(job: Job, rows: Array) -> tuple[Array, Any, list[str]]:
    """Rows to fit and rows to hold out (None: no check), and why there is none; whole groups are held out."""
    share = job.request.holdout
    if not share or job.task == "reduce":
        return rows, None, []
    stratify = None
    if job.task == "classify" and job.y is not None:
        counts = np.unique(job.y, return_counts=True)[1]
        if counts.min() < 3 and len(counts) < 3:
            return rows, None, ["too few rows of a class to hold any out: the error is not measured"]
        enough = counts.min() >= 2 and min(round(share * len(rows)), round((1 - share) * len(rows))) >= len(counts)
        stratify = job.y if enough else None
    if job.groups is not None:
        train, test = _split_groups(job, rows, job.groups[rows])
    else:
        train, test = train_test_split(rows, test_size=share, random_state=job.request.random_state, stratify=stratify)
    if len(train) < 2:
        return rows, None, ["too few rows to hold any out: the error is not measured"]
    return train, test, []


def _split_groups(job: Job, rows: Array, groups: Array) -> tuple[Array, Array]:
    """Whole groups to hold out; of ten draws the one whose classes, or means, are most like those of all rows."""
    share = job.request.holdout
    draws = GroupShuffleSplit(10, test_size=share, random_state=job.request.random_state)
    targets = np.zeros((len(rows), 1)) if job.y is None else job.y[rows].reshape(len(rows), -1)
    if job.task == "classify":
        targets = (targets == np.unique(targets)).astype(float)
    mean, spread = targets.mean(axis=0), np.maximum(targets.std(axis=0), 1e-300)

    def unlike(split: Any) -> float:
        held = split[1]
        return float(np.abs((targets[held].mean(axis=0) - mean) / spread).max()) + abs(len(held) / len(rows) - share)

    train, test = min(draws.split(rows, groups=groups), key=unlike)
    return rows[train], rows[test]


@storable
@dataclass(frozen=True)
class FitFacts:
    """Numbers about a fit."""

    rows: int
    """Rows that the model was fitted to."""
    features: int
    vectors: int | None
    """None of a model without vectors."""
    kernel: str
    bytes: int
    seconds: tuple[float, ...]
    """Seconds of the check on rows held out, if there was one, and of the fit."""
    total: float
    """Seconds of everything."""
    cross_validated: float | None = None
    """Error rate, or root mean squared error, from the fit itself."""
    cross_validated_r2: float | None = None
    components: int | None = None
    groups: int | None = None
    """Number of groups of rows."""
    agreement: str | None = None
    """How far a compressed model agrees with the long one."""
    kept_rows: np.ndarray[Any, Any] | None = None
    """Positions, in the table, of the rows that the kept vectors are or started from."""
    kept_missing: np.ndarray[Any, Any] | None = None
    """Which cells of the kept rows are missing, ``(n_vectors, number of columns)``."""
    kept_target: np.ndarray[Any, Any] | None = None
    """Targets of the kept rows."""


def summary(model: Any) -> list[tuple[str, str]]:
    """The facts and the judgement of a fitted model as pairs of name and text."""
    facts: FitFacts = model.facts_
    names = model.targets
    target = f", target{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""
    groups = "" if facts.groups is None else f", in {facts.groups:,} groups"
    rows = [
        ("task", f"{model.task_} with model {model.model_}{target}"),
        ("rows", f"{facts.rows:,} of {facts.features:,} features{groups}"),
    ]
    if facts.components is not None:
        rows.append(("components", f"{facts.components:,}"))
    if facts.vectors is not None:
        share = f"{facts.vectors:,} ({facts.vectors / max(facts.rows, 1):.1%} of the rows)"
        rows.append(("vectors kept", share + _ORIGINS.get(getattr(model.estimator_, "origin_", ""), "")))
    if facts.agreement is not None:
        rows.append(("agreement with the long model", f"{facts.agreement}, held out"))
    judged = model.judgement_
    if facts.cross_validated is not None and (judged is None or judged.how == "held out"):
        measure, r2 = "error" if model.task_ == "classify" else "RMSE", facts.cross_validated_r2
        text = measure_text(facts.cross_validated, measure) + ("" if r2 is None else f" (R² {r2:.3f})")
        rows.append((f"cross-validated {measure}", text))
    if judged is not None:
        rows += _judged(judged, names)
    rows += [("kernel", facts.kernel), ("fitted in", _times(facts))]
    return [*rows, ("size of the model", f"{facts.bytes:,} bytes of numbers")]


def _judged(judged: Judgement, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """The error with its interval, the verdict, and the baselines."""
    name = {"error": "error", "rmse": "RMSE", "log density": "log density"}[judged.measure]
    how = "held-out" if judged.how == "held out" else "cross-validated"
    value, low, high, baseline = (
        measure_text(one, judged.measure) for one in (judged.value, judged.low, judged.high, judged.baseline)
    )
    text = f"{value} ({_details(judged)}95% CI {low.removesuffix('%')}–{high})"
    rows = [(f"{how} {name}", text)]
    for target, one in zip(names, judged.targets):
        rows.append((f"  of {target}", f"{number(one.value, 4)}" + ("" if one.r2 is None else f" (R² {one.r2:.3f})")))
    rows.append(("verdict", judged.verdict))
    others = f"{judged.baseline_name}: {baseline}"
    if judged.linear is not None:
        others += f"; a linear model: {measure_text(judged.linear, judged.measure)}"
    rows.append(("baselines", others))
    if judged.found is not None:
        rows.append(("found", judged.found))
    if judged.ranking is not None:
        rows.append(("ranking", judged.ranking))
    return rows


def _details(judged: Judgement) -> str:
    """R², the number of rows, groups and weights."""
    r2 = f"R² {judged.r2:.3f}; " if judged.r2 is not None else ""
    unit = "in standard deviations of the targets; " if judged.targets else ""
    unseen = " the model did not see" if judged.how == "held out" else ""
    groups = "" if judged.groups is None else f" of {judged.groups:,} groups"
    return f"{unit}{r2}{judged.rows:,} rows{groups}{unseen}; {'weighted; ' if judged.weighted else ''}"


def _times(facts: FitFacts) -> str:
    fit = f"{facts.seconds[-1]:.2f} s"
    if len(facts.seconds) == 1:
        return fit if facts.total < facts.seconds[-1] + 0.5 else f"{fit} ({facts.total:.2f} s with reading the columns)"
    return f"{fit}, and {facts.seconds[0]:.2f} s for the held-out check ({facts.total:.2f} s in all)"
