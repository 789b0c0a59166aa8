"""Where a model errs, and how certain it is of its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, mean_pinball_loss

from fewkern.arrays.namespace import Array
from fewkern.plotting import IntervalsDisplay
from fewkern.reporting.formatting import cell, label, number, percent, plural, signed
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.quality import ClassLine
from fewkern.reporting.subject import Subject

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
class Calibration:
    """Predicted probabilities against observed frequencies, in groups of rows."""

    of: str
    """What the probability is of."""
    stated: Array
    true: Array
    counts: Array

    @property
    def gap(self) -> float:
        """Mean difference between probabilities and frequencies (expected calibration error)."""
        return float(np.average(np.abs(self.stated - self.true), weights=self.counts))

    @property
    def sentence(self) -> str:
        """The gap, and the rows that the model is most certain of."""
        return (
            f"Probabilities of {self.of} differ from observed frequencies by {percent(self.gap)} on average. "
            f"For the {self.counts[-1]:,} rows with the highest probabilities, the average prediction is "
            f"{percent(self.stated[-1], 0)} and the observed frequency {percent(self.true[-1], 0)}."
        )


@dataclass(frozen=True)
class Errors:
    """Where a model of a target errs; what does not apply to it is None or empty."""

    labels: tuple[Any, ...] = ()
    """Classes in the order of ``counts``."""
    counts: Array | None = None
    """Confusion matrix; rows: true classes, columns: predicted ones."""
    calibration: Calibration | None = None
    thresholds: tuple[ClassLine, ...] = ()
    """The rarer of two classes, if it is predicted from the probability ``label`` on."""
    sentences: tuple[str, ...] = ()
    """About the residuals of a regression."""

    @property
    def confusions(self) -> list[tuple[Any, Any, int]]:
        """True class, predicted class, how often: only confusions, the most frequent first."""
        assert self.counts is not None
        wrong = self.counts - np.diag(np.diag(self.counts))
        places = sorted(zip(*np.nonzero(wrong)), key=lambda at: -int(wrong[at]))
        return [(self.labels[i], self.labels[j], int(wrong[i, j])) for i, j in places]


def errors(found: Predictions, target: str) -> Errors:
    """What stands out in the errors of a classifier or a regression."""
    if found.classes is None:
        return Errors(sentences=_residuals(found, target))
    return Errors(*_confusion(found), _calibration(found), _thresholds(found))


def _confusion(found: Predictions) -> tuple[tuple[Any, ...], Array]:
    """Classes, and counts of true against predicted ones: numbers by size, also where they are texts; then texts."""

    def key(value: Any) -> tuple[int, float, str]:
        try:
            return 0, float(value), ""
        except (TypeError, ValueError):
            return 1, 0.0, str(value)

    assert found.classes is not None
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
    leads = [(cell(found.truth[i]), predicted_cell(found, i), words) for i, words in zip(worst, how)]
    return list(zip(found.positions[worst].tolist(), leads))


def predicted_cell(found: Predictions, i: int) -> str:
    """Prediction ``i`` as text; a number to four digits."""
    value = found.predicted[i]
    return cell(value if found.classes is not None else float(f"{value:.4g}"))


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
    sentences: list[str] = []
    absent: list[str] = []

    def ask(name: str, make: Callable[..., tuple[Any, str]], *given: Any) -> Any:
        if not hasattr(subject.core, name):
            return None
        try:
            value, sentence = make(subject, *given)
        except (AttributeError, ValueError) as error:  # the message tells why there is none
            absent.append(str(error))
            return None
        sentences.append(sentence)
        return value

    intervals, sizes = None, None
    if found is not None:
        intervals = ask("predict_interval", _intervals, found)
        ask("predict_quantile", _distribution, found)
        sizes = ask("predict_set", _set_sizes, found)
    ask("novelty", _novelty)
    return Uncertainty(tuple(sentences), intervals, sizes or (), tuple(absent))


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


def _novelty(subject: Subject) -> tuple[None, str]:
    """How unlike the training samples the rows are."""
    values = subject.ask("novelty", subject.samples[:_MOST_ROWS]).astype(float)
    limit = float(subject.core.novelty_threshold(false_alarms=_FALSE_ALARMS))
    return None, (
        f"At a false-alarm rate of {percent(_FALSE_ALARMS, 0)} (novelty above {number(limit)}), "
        f"{percent(float(np.mean(values > limit)))} of these rows are flagged as unlike the training data."
    )
