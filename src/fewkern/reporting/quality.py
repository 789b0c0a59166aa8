"""How good a classifier or a regression is, where it errs, and how certain it is, as numbers and sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, mean_pinball_loss, roc_auc_score

from fewkern.arrays.namespace import Array
from fewkern.plotting import IntervalsDisplay
from fewkern.reporting.evaluation import Predictions, relation
from fewkern.reporting.formatting import cell, label, number, of, percent, plural, signed
from fewkern.reporting.judgement import ClassLine, Judgement
from fewkern.reporting.subject import Subject

# An interval of an error rate that is wider than this is worth a remark.
_VAGUE = 0.3
# Groups of rows with similar probabilities, about as many rows in each.
_MOST_BINS, _LEAST_IN_BIN = 10, 10
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MOST_WORST = 10
_COVERAGE, _FALSE_ALARMS = 0.9, 0.05
# Quantiles whose losses make up the CRPS: few enough that 19 rows held out can vouch for them.
_LEVELS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
# Rows that intervals, sets and novelties are computed for.
_MOST_ROWS = 2000


@dataclass(frozen=True)
class Quality:
    """How good a classifier or a regression is, on rows that it was not fitted to."""

    judgement: Judgement
    classes: tuple[ClassLine, ...]
    """The classes of a classifier, and those that only the rows have."""
    auc: float | None
    """Area under the ROC curve of the rarer of two classes."""
    sentences: tuple[str, ...]

    @property
    def recommendation(self) -> str:
        """The verdict as a sentence."""
        return f"This model is {self.judgement.verdict}."


def quality(found: Predictions, judged: Judgement, target: str) -> Quality:
    """What the predictions of a model, and how they were judged, mean to a reader."""
    lines, auc = _lines(found), None
    sentences = _class_sentences(found, judged, target) if lines else _number_sentences(found, judged, target)
    if lines:
        others = [f"{name} is right for {percent(1 - error)} of rows" for name, error in judged.baselines.items()]
    else:
        others = [f"{name} has an RMSE of {number(error)}" for name, error in judged.baselines.items()]
    sentences.append(f"{others[0][0].upper()}{'; '.join(others)[1:]}.")
    if judged.found is not None:
        sentences.append(f"It finds {judged.found}.")
    if len(lines) > 2:
        sentences += _many_classes(lines, found)
    if found.rare is not None and len(lines) == 2 and all(line.count for line in lines):
        auc = float(roc_auc_score(*found.rare[1:]))
    return Quality(judged, lines, auc, tuple(sentences))


def _lines(found: Predictions) -> tuple[ClassLine, ...]:
    """One line per class of the model, and per class that only the rows have."""
    if found.classes is None:
        return ()
    known = list(found.classes.tolist())
    labels = known + sorted({v for v in found.truth.tolist() if v not in known}, key=str)
    return tuple(ClassLine.of(name, found.truth == name, found.predicted == name) for name in labels)


def _class_sentences(found: Predictions, judged: Judgement, target: str) -> list[str]:
    n = len(found.truth)
    right = f"{of(n - int(found.losses.sum()), n)} {'row' if n == 1 else 'rows'}"
    optimistic = ", which is optimistic" if found.how == "fitted" else ""
    low, high = percent(1 - judged.high, 0), percent(1 - judged.low, 0)
    does = "names the right class" if target == "class" else f"predicts {target} correctly"
    share = f"{'weighted, ' * judged.weighted}{percent(1 - judged.value)} (95% CI {low} to {high})"
    sentences = [f"It {does} for {right} {relation(found.how)}{optimistic}: {share}."]
    if judged.high - judged.low > _VAGUE:
        sentences.append(f"With {plural(n, 'row')} this is a rough estimate.")
    return sentences


def _number_sentences(found: Predictions, judged: Judgement, target: str) -> list[str]:
    low, high = (float(q) for q in np.quantile(found.truth, [0.05, 0.95]))
    rows = f"{plural(len(found.truth), 'row')} {relation(found.how)}"
    rmse = f"RMSE {number(judged.value)}; 95% CI {number(judged.low)} to {number(judged.high)}"
    off = number(found.counted.mean(found.losses)[0])
    sentences = [
        f"On {rows}, its predictions of {target} are off by {off} on average ({rmse}).",
        f"For scale: 90% of these rows have a {target} between {number(low)} and {number(high)}.",
    ]
    if judged.r2 is not None:
        share = percent(max(judged.r2, 0.0), 0)
        sentences.append(f"The model explains {share} of the variance of {target} (R² {judged.r2:.2f}).")
    return sentences


def _many_classes(lines: tuple[ClassLine, ...], found: Predictions) -> list[str]:
    present = [line for line in lines if line.count]
    if len(present) < 2:
        return []
    best, worst = max(present, key=lambda c: c.recall), min(present, key=lambda c: c.recall)
    if best.recall == worst.recall:
        return [f"Recall is {percent(best.recall, 0)} for every class."]
    taken = found.predicted[(found.truth == worst.label) & (found.predicted != worst.label)]
    names, counts = np.unique(taken, return_counts=True)
    times = "once" if counts.max() == 1 else f"{counts.max():,} times"
    high, low = (f"{label(line.label)} ({of(line.found, line.count)} rows)" for line in (best, worst))
    instead = f"most often predicted as {label(names[np.argmax(counts)])} instead ({times})"
    return [f"Recall is highest for {high} and lowest for {low}, {instead}."]


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities against observed frequencies, in groups of rows."""

    of: str
    """What the probability is of."""
    stated: Array
    true: Array
    counts: Array


@dataclass(frozen=True)
class Errors:
    """Where a model of a target errs; what does not apply to it is None or empty."""

    sentences: tuple[str, ...]
    """About the residuals of a regression, or the probabilities of a classifier."""
    labels: tuple[Any, ...] = ()
    """Classes in the order of ``counts``."""
    counts: Array = None
    """Confusion matrix; rows: true classes, columns: predicted ones."""
    calibration: Calibration | None = None
    thresholds: tuple[ClassLine, ...] = ()
    """The rarer of two classes, if it is predicted from the probability ``label`` on."""

    @property
    def confusions(self) -> list[tuple[Any, Any, int]]:
        """True class, predicted class, how often: only confusions, the most frequent first."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        places = sorted(zip(*np.nonzero(wrong)), key=lambda at: -int(wrong[at]))
        return [(self.labels[i], self.labels[j], int(wrong[i, j])) for i, j in places]


def errors(found: Predictions, target: str) -> Errors:
    """What stands out in the errors of a classifier or a regression."""
    if found.classes is None:
        return Errors(_residuals(found, target))
    calibration = _calibration(found)
    return Errors(_probabilities(calibration), *_confusion(found), calibration, _thresholds(found))


def _confusion(found: Predictions) -> tuple[tuple[Any, ...], Array]:
    """Classes, and counts of true against predicted ones: numbers by size, also where they are texts; then texts."""

    def key(value: Any) -> tuple[int, float, str]:
        try:
            return 0, float(value), ""
        except (TypeError, ValueError):
            return 1, 0.0, str(value)

    truth, predicted = found.truth.tolist(), found.predicted.tolist()
    labels = sorted({*found.classes.tolist(), *truth, *predicted}, key=key)
    place = {name: k for k, name in enumerate(labels)}
    codes = ([place[v] for v in values] for values in (truth, predicted))
    return tuple(labels), confusion_matrix(*codes, labels=list(place.values()))


def _calibration(found: Predictions) -> Calibration | None:
    """Calibration of the probability of the rarer of two classes, else of the predicted class."""
    P = found.probabilities
    if P is None or len(P) < 2 * _LEAST_IN_BIN:
        return None
    what, happened, stated = "the predicted class", found.predicted == found.truth, P.max(axis=1)
    if found.rare is not None:
        name, happened, stated = found.rare
        what = label(name)
    parts = np.array_split(np.argsort(stated, kind="stable"), min(_MOST_BINS, len(P) // _LEAST_IN_BIN))
    means, shares = (np.array([values[part].mean() for part in parts]) for values in (stated, happened))
    return Calibration(what, means, shares, np.array([len(part) for part in parts]))


def _probabilities(curve: Calibration | None) -> tuple[str, ...]:
    """How far probabilities are from frequencies (expected calibration error), and where the model is most certain."""
    if curve is None:
        return ()
    gap = float(np.average(np.abs(curve.stated - curve.true), weights=curve.counts))
    stated, true = (percent(values[-1], 0) for values in (curve.stated, curve.true))
    rows = f"the {curve.counts[-1]:,} rows with the highest probabilities"
    return (
        f"Probabilities of {curve.of} differ from observed frequencies by {percent(gap)} on average.",
        f"For {rows}, the average prediction is {stated} and the observed frequency {true}.",
    )


def _thresholds(found: Predictions) -> tuple[ClassLine, ...]:
    """A table for choosing a threshold for the rarer of two classes, where both are among the rows."""
    if found.rare is None:
        return ()
    _, positive, stated = found.rare
    if positive.all() or not positive.any():
        return ()
    return tuple(ClassLine.of(t, positive, stated >= t) for t in _THRESHOLDS)


def _residuals(found: Predictions, target: str) -> tuple[str, ...]:
    """Differences between prediction and truth: their size, bias, and where they are large."""
    gap = np.asarray(found.predicted - found.truth, dtype=float)
    middle, wide = (float(q) for q in np.quantile(np.abs(gap), [0.5, 0.9]))
    sentences = [f"Half of the predictions are off by less than {number(middle)}, 90% by less than {number(wide)}."]
    n = len(gap)
    if n >= 20:
        bias = float(gap.mean())
        if abs(bias) > 3 * gap.std() / np.sqrt(n):
            sentences.append(f"On average they are {number(abs(bias))} too {'high' if bias > 0 else 'low'}.")
        order = np.argsort(found.predicted, kind="stable")
        low, high = (float(np.abs(gap[part]).mean()) for part in (order[: n // 3], order[-(n // 3) :]))
        if max(low, high) > 2 * min(low, high):
            where = "largest" if high > low else "smallest"
            sentences.append(
                f"They are least accurate where the predicted {target} is {where}: off by {number(max(low, high))} "
                f"there, and by {number(min(low, high))} at the other end."
            )
    return tuple(sentences)


def worst_rows(found: Predictions) -> list[tuple[int, tuple[str, str, str]]]:
    """Rows with the most confident wrong predictions, or with the largest differences.

    Of each its position, the truth, the prediction, and the probability of the wrong class or the difference.
    """
    loss, P = found.losses, found.probabilities
    sizes = loss if found.classes is None else np.zeros(len(loss)) if P is None else P.max(axis=1)
    wrong = np.flatnonzero(loss)
    worst = wrong[np.argsort(-sizes[wrong], kind="stable")][:_MOST_WORST]
    if found.classes is None:
        how = [signed(found.predicted[i] - found.truth[i]) for i in worst]
    else:
        how = ["" if P is None else percent(sizes[i], 0) for i in worst]
    leads = [(cell(found.truth[i]), found.cell(i), words) for i, words in zip(worst, how)]
    return list(zip(found.positions[worst].tolist(), leads))


@dataclass(frozen=True)
class Uncertainty:
    """What a model states about its own uncertainty."""

    sentences: tuple[str, ...]
    intervals: IntervalsDisplay | None
    """Prediction intervals of the model itself, not drawn."""
    set_sizes: tuple[int, ...]
    """Rows with a prediction set of no class, of one, of two, ..."""
    absent: tuple[str, ...]
    """Why something is missing, in the words of the model."""


def uncertainty(subject: Subject, found: Predictions | None) -> Uncertainty:
    """Prediction intervals, prediction sets and novelty, where the model has them."""
    values: dict[str, Any] = {}
    sentences, absent = [], []
    for method, describe in _STATED.items():
        if not hasattr(subject.core, method) or (found is None and method != "novelty"):
            continue
        try:
            values[method], sentence = describe(subject, found)
        except (AttributeError, ValueError) as error:  # the message tells why there is none
            absent.append(str(error))
        else:
            sentences.append(sentence)
    intervals, sizes = values.get("predict_interval"), values.get("predict_set", ())
    return Uncertainty(tuple(sentences), intervals, sizes, tuple(absent))


def _intervals(subject: Subject, found: Predictions) -> tuple[IntervalsDisplay, str]:
    samples, truth = subject.samples[found.positions[:_MOST_ROWS]], found.truth[:_MOST_ROWS]
    ends = subject.ask("predict_interval", samples, coverage=_COVERAGE).astype(float)
    made, (low, high) = IntervalsDisplay(subject.predict(samples), truth, ends, _COVERAGE), ends.T
    down, up = (number(float(np.median(size))) for size in (made.predicted - low, high - made.predicted))
    return made, (
        f"At {percent(_COVERAGE, 0)} coverage, a typical prediction interval reaches from {down} below the prediction "
        f"to {up} above it. {percent(float(np.mean(truth < low)))} of the true values lie below their interval and "
        f"{percent(float(np.mean(truth > high)))} above. It contains the true value for {_of_these(made.inside, found)}"
    )


def _distribution(subject: Subject, found: Predictions) -> tuple[None, str]:
    """How well the distributions suit the true values."""
    samples, truth = subject.samples[found.positions[:_MOST_ROWS]], found.truth[:_MOST_ROWS].astype(float)
    losses = [mean_pinball_loss(truth, subject.ask("predict_quantile", samples, q=q), alpha=q) for q in _LEVELS]
    error = float(np.mean(np.abs(truth - subject.predict(samples).astype(float))))
    return None, (
        f"The continuous ranked probability score (CRPS) of the predicted distributions is "
        f"{number(2 * float(np.mean(losses)))}; point predictions alone would score {number(error)}, their mean "
        f"absolute error. The pinball loss is {number(losses[0])} at the {_LEVELS[0]} quantile and "
        f"{number(losses[-1])} at the {_LEVELS[-1]} quantile."
    )


def _set_sizes(subject: Subject, found: Predictions) -> tuple[tuple[int, ...], str]:
    """Sizes of sets of classes that include the true one with a given probability."""
    samples, truth = subject.samples[found.positions[:_MOST_ROWS]], found.truth[:_MOST_ROWS]
    member = subject.ask("predict_set", samples, coverage=_COVERAGE).astype(bool)
    sizes = np.bincount(member.sum(axis=1), minlength=len(subject.classes) + 1)
    covered = (member & (truth[:, None] == subject.classes[None, :])).any(axis=1)
    return tuple(int(v) for v in sizes), (
        f"At {percent(_COVERAGE, 0)} coverage, the prediction set is a single class for "
        f"{percent(sizes[1] / len(member), 0)} of rows. It contains the true class for {_of_these(covered, found)}"
    )


def _of_these(covered: Array, found: Predictions) -> str:
    """The share of covered rows. It flatters the model if it was fitted to them."""
    share = f"{percent(float(covered.mean()))} of these {plural(len(covered), 'row')}."
    return share + f" The model was fitted to them; for new rows expect {percent(_COVERAGE, 0)}." * found.seen


def _novelty(subject: Subject, _: Any) -> tuple[None, str]:
    """How unlike the training samples the rows are."""
    values = subject.ask("novelty", subject.samples[:_MOST_ROWS]).astype(float)
    limit = float(subject.core.novelty_threshold(false_alarms=_FALSE_ALARMS))
    return None, (
        f"At a false-alarm rate of {percent(_FALSE_ALARMS, 0)} (novelty above {number(limit)}), "
        f"{percent(float(np.mean(values > limit)))} of these rows are flagged as unlike the training data."
    )


# What a model may state, in the order of the page: its method, and the function that asks for a value and a sentence.
_STATED: dict[str, Callable[[Subject, Any], tuple[Any, str]]] = {
    "predict_interval": _intervals,
    "predict_quantile": _distribution,
    "predict_set": _set_sizes,
    "novelty": _novelty,
}
