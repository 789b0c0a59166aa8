"""Predictions for held-out rows, and their losses compared with those of other models: for reports and table models."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.model_selection import train_test_split

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.base import BudgetWarning
from fewkern.core.gaussians import GaussianExpansion
from fewkern.reporting.formatting import cell
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# Confidence level of all intervals, and of "clearly".
_CONFIDENCE = 0.95
# A fifth of the rows is held out, as the command line does; fewer rows than this cannot spare any.
_HELD_OUT, _LEAST_ROWS = 0.2, 5
# More rows make a report slower, and no number in it more certain.
_MOST_ROWS = 20_000
# Residuals of a fit with a free constant add up to zero, up to rounding; those of other rows do not.
_ROUNDING = 1e-7


@dataclass(frozen=True)
class ReportSettings:
    """Options of a report, and what its footer states.

    Parameters
    ----------
    rows : {"auto", "fitted", "new"}, default "auto"
        Whether the model was fitted to the rows of the report. With "fitted", the error is measured on the rows that
        the model held out, as a TableModel does, or else with a copy fitted to four fifths of the rows. With "new", it
        is measured directly. "auto" finds out.
    compare : bool, default True
        Also fit an SVC or SVR, with a small grid search, for its size and speed.
    random_state : int, default 0
        Seed of all random choices of the report.
    source : str or None, default None
        Name of the file that the table came from.
    command : str or None, default None
        The command that made the report.

    Examples
    --------
    >>> from fewkern import ReportSettings
    >>> ReportSettings(rows="new", compare=False).random_state
    0
    """

    rows: str = "auto"
    compare: bool = True
    random_state: int = 0
    source: str | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        if self.rows not in ("auto", "fitted", "new"):
            raise ValueError(f"ReportSettings: rows must be 'auto', 'fitted' or 'new', got {self.rows!r}.")


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
    rmse: Any = None
    """Root mean squared error of a regression, else None."""
    r2: Any = None


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


@dataclass(frozen=True)
class Predictions:
    """True and predicted targets of rows, and how the rows relate to the fit."""

    positions: Array
    """Rows of the table."""
    truth: Array
    predicted: Array
    probabilities: Array
    """Probabilities of every class; None where the model states none."""
    how: str
    """"held out" (the model's own record), "refitted" (by a copy), "new" or "fitted" (optimistic)."""
    train: Array
    """Rows that a baseline may be fitted to; empty if there are none."""
    classes: Array = None
    """Labels of the classes, in the order of the probabilities; None for a regression."""
    counted: Counted = EACH_ROW
    """Weights and groups of the rows, where the model was fitted with any."""
    seen: bool = True
    """Whether the model of the report was fitted to these rows, though the one that predicted them was not."""

    @property
    def rare(self) -> tuple[Any, Array, Array] | None:
        """The rarer of two classes, which rows have it, and its probabilities, where they exist."""
        if self.classes is None or self.probabilities is None or (k := rarer(self.truth, self.classes)) is None:
            return None
        return self.classes[k], self.truth == self.classes[k], self.probabilities[:, k]

    @property
    def losses(self) -> Array:
        """Whether each prediction is wrong, or by how much it is off."""
        return losses(self.truth, self.predicted, self.classes is not None)

    def cell(self, i: int) -> str:
        """Prediction ``i`` as text; a number to four digits."""
        value = self.predicted[i]
        return cell(value if self.classes is not None else float(f"{value:.4g}"))


def rarer(truth: Any, classes: Array) -> int | None:
    """The index of the class of interest: the rarer of two, of equal ones the second; None unless there are two."""
    if len(classes) != 2:
        return None
    first, second = ((truth == name).sum() for name in classes)
    return 0 if first < second else 1


def relation(how: str) -> str:
    """How rows relate to the fit, for a sentence about them."""
    return {"new": "of this table", "fitted": "it was fitted to"}.get(how, "it had not seen")


def predict_held_out(subject: Subject, settings: ReportSettings) -> Predictions:
    """Predictions for rows that were held out: by the model itself, by a copy fitted without them, or new rows."""
    record = _record(subject)
    if record is not None and settings.rows != "new":
        return record
    model, train, test, how = try_out(subject, settings)
    samples, classify = model.samples[test], subject.task == "classify"
    return Predictions(
        test, subject.truth[test], model.predict(samples), model.probabilities(samples) if classify else None, how,
        train, subject.classes if classify else None, seen=how != "new",
    )  # fmt: skip


def try_out(subject: Subject, settings: ReportSettings) -> tuple[Subject, Array, Array, str]:
    """A model, the rows that it was fitted to, rows to try it on, and how these relate to the fit.

    The model itself and new rows (then the first rows are not known, and empty), or a copy fitted to a part of the
    rows, and the others.
    """
    n, seed = len(subject.rows), settings.random_state
    fitted = settings.rows == "fitted" or (settings.rows == "auto" and was_fitted_to(subject))
    if fitted and n >= _LEAST_ROWS:
        parts = train_test_split(np.arange(n), test_size=_HELD_OUT, random_state=seed, stratify=_strata(subject))
        train, test = map(np.sort, parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # said of the model itself
            try:
                return subject.refitted(train), train, test[:_MOST_ROWS], "refitted"
            except ValueError:
                pass  # a part of the rows may lack what the model needs, such as two classes
    some = sample_rows(n, _MOST_ROWS, np.random.default_rng(seed))
    return subject, np.arange(0), some, "fitted" if fitted else "new"


def _strata(subject: Subject) -> Array | None:
    """The classes, where there are enough rows for all of them in both parts."""
    if subject.task != "classify":
        return None
    names = subject.truth.astype(str)
    counts = np.unique(names, return_counts=True)[1]
    return names if counts.min() >= 2 and round(_HELD_OUT * len(names)) >= len(counts) else None


def _record(subject: Subject) -> Predictions | None:
    """The rows that the model itself held out, if these are rows of this table."""
    record = getattr(subject.model, "held_out_", None)
    if record is None:
        return None
    positions = np.searchsorted(subject.places, record.rows)
    if not len(positions) or positions.max() >= len(subject.truth):
        return None
    truth = subject.truth[positions]
    if not np.array_equal(truth.astype(str), record.truth.astype(truth.dtype).astype(str)):
        return None  # another table
    train = np.setdiff1d(np.arange(len(subject.truth)), positions)
    return Predictions(
        positions, truth, record.predicted, record.probabilities, "held out", train,
        subject.classes if subject.task == "classify" else None, record.counted,
        # from many rows on, a table model is not fitted again to all of them
        seen=subject.model.facts_.rows > len(train),
    )  # fmt: skip


def was_fitted_to(subject: Subject) -> bool:
    """Whether the model was fitted to these rows, as far as can be detected.

    Samples that the model holds are found again among the rows. Where it holds none, the residuals of a least-squares
    fit with a free constant add up to zero on the rows of the fit, and on no others. Other models do not show it; they
    count as fitted to the rows.
    """
    expansion, held = subject.core.expansion_, subject.held_rows
    if held:
        if None not in held:
            return True
        if isinstance(expansion, GaussianExpansion) or getattr(expansion, "indices", None) is not None:
            return False  # they are rows of another table
    if subject.task in ("reduce", "density") or getattr(subject.core, "loss_", "squared") != "squared":
        return True  # unknown; a copy that is fitted to a part of the rows is honest in both cases
    values = to_numpy(expansion(subject.samples))
    if subject.task == "regress":
        targets = subject.truth[:, None]
    else:
        targets = (subject.truth[:, None] == subject.classes[None, :]).astype(float)
        targets = targets if values.shape[1] > 1 else 2 * targets[:, 1:] - 1
    residuals = targets - values
    sizes = np.maximum(np.abs(residuals).mean(axis=0), 1e-300)
    return bool(np.all(np.abs(residuals.mean(axis=0)) <= _ROUNDING * sizes))
