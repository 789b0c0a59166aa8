"""Where a model errs: confusions, residuals, calibration, thresholds, the worst rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from fewkern.reporting.judging import Judged
from fewkern.reporting.quality import ClassLine, rarer
from fewkern.reporting.subject import Subject
from fewkern.reporting.words import cell, label, number, percent

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
# Groups of rows with similar stated probabilities, with about as many rows in each.
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


def confusion(judged: Judged, classes: Vector) -> Confusion:
    """Count true against predicted classes, in order."""
    labels = in_order([*classes.tolist(), *judged.truth.tolist(), *judged.predicted.tolist()])
    place = {name: k for k, name in enumerate(labels)}
    truth = [place[v] for v in judged.truth.tolist()]
    predicted = [place[v] for v in judged.predicted.tolist()]
    return Confusion(tuple(labels), confusion_matrix(truth, predicted, labels=list(range(len(labels)))))


@dataclass(frozen=True)
class Calibration:
    """Stated probabilities against what happened, in groups of rows."""

    stated: tuple[float, ...]
    true: tuple[float, ...]
    counts: tuple[int, ...]
    of: str
    """What the probability is of."""
    sentence: str

    @property
    def gap(self) -> float:
        """Mean difference between stated and true shares (expected calibration error)."""
        weights = np.array(self.counts) / sum(self.counts)
        return float(np.abs(np.array(self.stated) - np.array(self.true)) @ weights)


def calibration(judged: Judged, lines: tuple[ClassLine, ...], classes: Vector) -> Calibration | None:
    """How often the model is right when it says so: for the rarer of two classes, else for its answer."""
    P = judged.probabilities
    if P is None or len(P) < 2 * _LEAST_IN_BIN:
        return None
    if len(classes) == 2:
        k = rarer(lines)
        stated, happened, what = P[:, k], judged.truth == classes[k], label(classes[k])
    else:
        stated, happened, what = P.max(axis=1), judged.predicted == judged.truth, "its answer"
    bins = min(_MOST_BINS, len(P) // _LEAST_IN_BIN)
    order = np.argsort(stated, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    means = tuple(float(stated[part].mean()) for part in parts)
    shares = tuple(float(happened[part].mean()) for part in parts)
    counts = tuple(len(part) for part in parts)
    found = Calibration(means, shares, counts, what, "")
    top = len(parts) - 1
    sentence = (
        f"Stated probabilities of {what} and true shares differ by {percent(found.gap)} on average. In the "
        f"{counts[top]:,} rows where it is surest ({percent(means[top], 0)} on average), it holds in "
        f"{percent(shares[top], 0)}."
    )
    return Calibration(means, shares, counts, what, sentence)


@dataclass(frozen=True)
class Threshold:
    """What happens if the rarer class is called from some probability on."""

    at: float
    called: int
    found: int
    count: int
    """Rows of the class."""

    @property
    def false_alarms(self) -> int:
        """Rows called so that are not."""
        return self.called - self.found


def thresholds(judged: Judged, lines: tuple[ClassLine, ...], classes: Vector) -> tuple[Threshold, ...]:
    """A table for choosing a threshold for the rarer of two classes."""
    if judged.probabilities is None or len(classes) != 2:
        return ()
    k = rarer(lines)
    positive, stated = judged.truth == classes[k], judged.probabilities[:, k]
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


def curves(judged: Judged, lines: tuple[ClassLine, ...], classes: Vector) -> Curves | None:
    """Both curves, where both classes are among the rows."""
    if judged.probabilities is None or len(classes) != 2:
        return None
    k = rarer(lines)
    positive, stated = judged.truth == classes[k], judged.probabilities[:, k]
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


def residuals(judged: Judged, target: str) -> Residuals:
    """Differences between truth and prediction: their size, lean, and where they are large."""
    gap = np.asarray(judged.predicted - judged.truth, dtype=float)
    middle, wide = (float(q) for q in np.quantile(np.abs(gap), [0.5, 0.9]))
    sentences = [
        f"Half of the predictions are off by less than {number(middle)}, nine of ten by less than {number(wide)}."
    ]
    n = len(gap)
    if n >= 20:
        lean = float(gap.mean())
        if abs(lean) > 3 * gap.std() / np.sqrt(n):
            sentences.append(f"On average they are too {'high' if lean > 0 else 'low'} by {number(abs(lean))}.")
        order = np.argsort(judged.predicted, kind="stable")
        low, high = (float(np.abs(gap[part]).mean()) for part in (order[: n // 3], order[-(n // 3) :]))
        if max(low, high) > 2 * min(low, high):
            where = "largest" if high > low else "smallest"
            sentences.append(
                f"They are least certain where the predicted {target} is {where}: off by {number(max(low, high))} "
                f"there, and by {number(min(low, high))} at the other end."
            )
    return Residuals(np.asarray(judged.truth, dtype=float), np.asarray(judged.predicted, dtype=float), tuple(sentences))


@dataclass(frozen=True)
class WorstRow:
    """One row that the model gets very wrong."""

    position: int
    truth: str
    predicted: str
    how: str
    """The stated probability of the wrong answer, or the difference."""


def worst_rows(subject: Subject, judged: Judged) -> tuple[WorstRow, ...]:
    """Rows with the surest wrong answers, or with the largest differences."""
    if subject.task == "classify":
        wrong = np.flatnonzero(judged.truth != judged.predicted)
        if judged.probabilities is None:
            return tuple(
                WorstRow(int(judged.positions[i]), cell(judged.truth[i]), cell(judged.predicted[i]), "")
                for i in wrong[:_MOST_WORST]
            )
        sure = judged.probabilities.max(axis=1)
        worst = wrong[np.argsort(-sure[wrong], kind="stable")][:_MOST_WORST]
        return tuple(
            WorstRow(int(judged.positions[i]), cell(judged.truth[i]), cell(judged.predicted[i]), percent(sure[i], 0))
            for i in worst
        )
    gap = np.asarray(judged.predicted - judged.truth, dtype=float)
    return tuple(
        WorstRow(
            int(judged.positions[i]),
            cell(judged.truth[i]),
            cell(float(f"{judged.predicted[i]:.4g}")),
            ("+" if gap[i] > 0 else "−") + number(abs(gap[i])),
        )
        for i in np.argsort(-np.abs(gap), kind="stable")[:_MOST_WORST]
    )
