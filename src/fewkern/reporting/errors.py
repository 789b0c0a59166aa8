"""Where a model errs: confusion matrix, residuals, calibration, thresholds, the worst rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from fewkern.reporting.evaluation import ClassLine, rarer
from fewkern.reporting.formatting import cell, label, number, percent, signed
from fewkern.reporting.holdout import Predictions

__all__ = [
    "Calibration",
    "Confusion",
    "Curves",
    "Residuals",
    "Threshold",
    "WorstRow",
    "calibration",
    "confusion",
    "curves",
    "in_order",
    "residuals",
    "thresholds",
    "worst_rows",
]

Vector = np.ndarray[Any, Any]
# Groups of rows with similar probabilities, about as many rows in each.
_MOST_BINS, _LEAST_IN_BIN = 10, 10
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MOST_WORST = 10


def in_order(labels: Any) -> list[Any]:
    """Labels in the order that people expect: numbers by size, also where they are texts; then texts."""

    def key(value: Any) -> tuple[int, float, str]:
        try:
            return 0, float(value), ""
        except (TypeError, ValueError):
            return 1, 0.0, str(value)

    return sorted(set(labels), key=key)


@dataclass(frozen=True)
class Confusion:
    """How often each class was taken for each other one."""

    labels: tuple[Any, ...]
    counts: Vector
    """Rows: true classes; columns: predicted ones."""

    @property
    def pairs(self) -> list[tuple[Any, Any, int]]:
        """True class, predicted class, how often: only confusions, the most frequent first."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        places = [(int(i), int(j)) for i, j in zip(*np.nonzero(wrong))]
        places.sort(key=lambda at: -int(wrong[at]))
        return [(self.labels[i], self.labels[j], int(wrong[i, j])) for i, j in places]


def confusion(found: Predictions, classes: Vector) -> Confusion:
    """Count true against predicted classes, in order."""
    labels = in_order([*classes.tolist(), *found.truth.tolist(), *found.predicted.tolist()])
    place = {name: k for k, name in enumerate(labels)}
    truth = [place[v] for v in found.truth.tolist()]
    predicted = [place[v] for v in found.predicted.tolist()]
    return Confusion(tuple(labels), confusion_matrix(truth, predicted, labels=list(range(len(labels)))))


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities against observed frequencies, in groups of rows."""

    stated: tuple[float, ...]
    true: tuple[float, ...]
    counts: tuple[int, ...]
    of: str
    """What the probability is of."""
    sentence: str

    @property
    def gap(self) -> float:
        """Mean difference between probabilities and frequencies (expected calibration error)."""
        weights = np.array(self.counts) / sum(self.counts)
        return float(np.abs(np.array(self.stated) - np.array(self.true)) @ weights)


def calibration(found: Predictions, lines: tuple[ClassLine, ...], classes: Vector) -> Calibration | None:
    """Calibration of the probability of the rarer of two classes, else of the predicted class."""
    P = found.probabilities
    if P is None or len(P) < 2 * _LEAST_IN_BIN:
        return None
    if len(classes) == 2:
        k = rarer(lines)
        stated, happened, what = P[:, k], found.truth == classes[k], label(classes[k])
    else:
        stated, happened, what = P.max(axis=1), found.predicted == found.truth, "the predicted class"
    bins = min(_MOST_BINS, len(P) // _LEAST_IN_BIN)
    parts = [part for part in np.array_split(np.argsort(stated, kind="stable"), bins) if len(part)]
    means = tuple(float(stated[part].mean()) for part in parts)
    shares = tuple(float(happened[part].mean()) for part in parts)
    curve = Calibration(means, shares, tuple(len(part) for part in parts), what, "")
    return replace(
        curve,
        sentence=f"Predicted probabilities of {what} and observed frequencies differ by {percent(curve.gap)} on "
        f"average. In the {curve.counts[-1]:,} rows with the highest probabilities ({percent(means[-1], 0)} on "
        f"average), it is true for {percent(shares[-1], 0)}.",
    )


@dataclass(frozen=True)
class Threshold:
    """What happens if the rarer class is predicted from some probability on."""

    at: float
    called: int
    found: int
    count: int
    """Rows of the class."""

    @property
    def false_alarms(self) -> int:
        """Rows predicted so that are not."""
        return self.called - self.found


def thresholds(found: Predictions, lines: tuple[ClassLine, ...], classes: Vector) -> tuple[Threshold, ...]:
    """A table for choosing a threshold for the rarer of two classes."""
    if found.probabilities is None or len(classes) != 2:
        return ()
    k = rarer(lines)
    positive, stated = found.truth == classes[k], found.probabilities[:, k]
    return tuple(
        Threshold(t, int((stated >= t).sum()), int((positive & (stated >= t)).sum()), int(positive.sum()))
        for t in _THRESHOLDS
    )


@dataclass(frozen=True)
class Curves:
    """The ROC and the precision-recall curve of the rarer of two classes."""

    of: str
    false_alarms: Vector
    hits: Vector
    recall: Vector
    precision: Vector
    share: float
    """Share of the class among the rows: the precision of guessing."""


def curves(found: Predictions, lines: tuple[ClassLine, ...], classes: Vector) -> Curves | None:
    """Both curves, where both classes are among the rows."""
    if found.probabilities is None or len(classes) != 2:
        return None
    k = rarer(lines)
    positive, stated = found.truth == classes[k], found.probabilities[:, k]
    if positive.all() or not positive.any():
        return None
    false_alarms, hits, _ = roc_curve(positive, stated)
    precision, recall, _ = precision_recall_curve(positive, stated)
    return Curves(label(classes[k]), false_alarms, hits, recall, precision, float(positive.mean()))


@dataclass(frozen=True)
class Residuals:
    """True and predicted numbers, and what stands out in their differences."""

    truth: Vector
    predicted: Vector
    sentences: tuple[str, ...]


def residuals(found: Predictions, target: str) -> Residuals:
    """Differences between prediction and truth: their size, bias, and where they are large."""
    gap = np.asarray(found.predicted - found.truth, dtype=float)
    middle, wide = (float(q) for q in np.quantile(np.abs(gap), [0.5, 0.9]))
    sentences = [
        f"Half of the predictions are off by less than {number(middle)}, nine of ten by less than {number(wide)}."
    ]
    n = len(gap)
    if n >= 20:
        bias = float(gap.mean())
        if abs(bias) > 3 * gap.std() / np.sqrt(n):
            sentences.append(f"On average they are too {'high' if bias > 0 else 'low'} by {number(abs(bias))}.")
        order = np.argsort(found.predicted, kind="stable")
        low, high = (float(np.abs(gap[part]).mean()) for part in (order[: n // 3], order[-(n // 3) :]))
        if max(low, high) > 2 * min(low, high):
            where = "largest" if high > low else "smallest"
            sentences.append(
                f"They are least accurate where the predicted {target} is {where}: off by {number(max(low, high))} "
                f"there, and by {number(min(low, high))} at the other end."
            )
    return Residuals(np.asarray(found.truth, dtype=float), np.asarray(found.predicted, dtype=float), tuple(sentences))


@dataclass(frozen=True)
class WorstRow:
    """One row that the model gets very wrong."""

    position: int
    truth: str
    predicted: str
    how: str
    """The probability of the wrong class, or the difference."""


def worst_rows(found: Predictions, task: str) -> tuple[WorstRow, ...]:
    """Rows with the most confident wrong predictions, or with the largest differences."""
    if task == "regress":
        gap = np.asarray(found.predicted - found.truth, dtype=float)
        worst = np.argsort(-np.abs(gap), kind="stable")[:_MOST_WORST]
        said = [(cell(float(f"{found.predicted[i]:.4g}")), signed(gap[i])) for i in worst]
    else:
        worst = np.flatnonzero(found.truth != found.predicted)
        sure = np.zeros(len(found.truth)) if found.probabilities is None else found.probabilities.max(axis=1)
        worst = worst[np.argsort(-sure[worst], kind="stable")][:_MOST_WORST]
        said = [
            (cell(found.predicted[i]), percent(sure[i], 0) if found.probabilities is not None else "") for i in worst
        ]
    return tuple(WorstRow(int(found.positions[i]), cell(found.truth[i]), *words) for i, words in zip(worst, said))
