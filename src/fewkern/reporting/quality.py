"""How good a classifier or a regression is, and what it costs, as numbers and sentences."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from fewkern.arrays.namespace import Array
from fewkern.io.describe import plan
from fewkern.reporting.evaluation import Score, judge, linear_predictions, losses, recommend
from fewkern.reporting.formatting import label, number, of, percent, plural
from fewkern.reporting.holdout import Predictions, relation
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# An interval of an error rate that is wider than this is worth a remark.
_VAGUE = 0.3
# The grid search of the comparison sees this many rows, and its winner is fitted to a few more.
_MOST_SEARCHED, _MOST_FITTED, _FOLDS = 600, 3000, 3
_GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0]}
_TIMED_ROWS, _TIMES = 1000, 3


def baselines(found: Predictions, X: Array, y: Array, seed: int) -> dict[str, Array]:
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


def _constant_predictions(X: Array, y: Array, new: Array, task: str) -> Array:
    model = DummyClassifier() if task == "classify" else DummyRegressor()
    return np.asarray(model.fit(X, y).predict(new))


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


@dataclass(frozen=True)
class Quality:
    """How good a classifier or a regression is, on rows that it was not fitted to."""

    scores: tuple[Score, ...]
    """Of the model, of a constant prediction, of a linear model where there is one."""
    verdicts: tuple[str, ...]
    """How the model compares with each of the baselines, as ``evaluation.compare`` words it."""
    classes: tuple[ClassLine, ...]
    """Of a classifier: its classes, and those that only the rows have."""
    auc: float | None
    """Area under the ROC curve of the rarer of two classes."""
    sentences: tuple[str, ...]
    recommendation: str


def quality(found: Predictions, rules: dict[str, Array], target: str) -> Quality:
    """Compare the predictions of a model with those of named baselines."""
    classify = found.classes is not None
    scores, verdicts = judge(found.truth, {"this model": found.predicted} | rules, classify, found.counted)
    lines = _lines(found)
    sentences = _class_sentences(found, scores[0], target) if classify else _number_sentences(found, scores[0], target)
    for other, verdict in zip(scores[1:], verdicts):
        name = other.name.replace("always", "always predicting", 1)
        does = f"is right for {percent(1 - other.value)} of rows" if classify else f"has an RMSE of {_rmse(other)}"
        sentences.append(f"{name[0].upper()}{name[1:]} {does}; this model is {_COMPARED[verdict]}.")
    if classify:
        sentences += _two_classes(lines) if len(lines) == 2 else _many_classes(lines, found)
    auc = None
    if found.rare is not None and len(lines) == 2 and all(line.count for line in lines):
        auc = float(roc_auc_score(*found.rare[1:]))
    return Quality(scores, verdicts, lines, auc, tuple(sentences), recommend(scores, verdicts))


_COMPARED = {
    "better": "clearly better",
    "perhaps better": "slightly better, which may be chance",
    "no better": "no better",
    "worse": "clearly worse",
}


def _rmse(score: Score) -> str:
    assert score.rmse is not None
    return number(score.rmse)


def _lines(found: Predictions) -> tuple[ClassLine, ...]:
    """One line per class of the model, and per class that only the rows have."""
    if found.classes is None:
        return ()
    known = list(found.classes.tolist())
    labels = known + sorted({v for v in found.truth.tolist() if v not in known}, key=str)
    return tuple(ClassLine.of(name, found.truth == name, found.predicted == name) for name in labels)


def _class_sentences(found: Predictions, own: Score, target: str) -> list[str]:
    n = len(found.truth)
    right = f"{of(n - int(found.losses.sum()), n)} {'row' if n == 1 else 'rows'}"
    optimistic = ", which is optimistic" if found.how == "fitted" else ""
    low, high = percent(1 - own.high, 0), percent(1 - own.low, 0)
    does = "names the right class" if target == "class" else f"predicts {target} correctly"
    weighted = "" if found.counted.weights is None else "weighted, "
    share = f"{weighted}{percent(1 - own.value)} (95% CI {low} to {high})"
    sentences = [f"It {does} for {right} {relation(found.how)}{optimistic}: {share}."]
    if own.high - own.low > _VAGUE:
        sentences.append(f"With {plural(n, 'row')} this is a rough estimate.")
    return sentences


def _number_sentences(found: Predictions, own: Score, target: str) -> list[str]:
    assert own.r2 is not None
    low, high = (float(q) for q in np.quantile(found.truth, [0.05, 0.95]))
    rows = f"{plural(len(found.truth), 'row')} {relation(found.how)}"
    interval = f"95% CI {number(own.low)} to {number(own.high)}; RMSE {_rmse(own)}"
    sentences = [
        f"On {rows}, its predictions of {target} are off by {number(own.value)} on average ({interval}).",
        f"For scale: 90% of these rows have a {target} between {number(low)} and {number(high)}.",
    ]
    if np.isfinite(own.r2):
        share = percent(max(own.r2, 0.0), 0)
        sentences.append(f"The model explains {share} of the variance of {target} (R² {own.r2:.2f}).")
    return sentences


def _two_classes(lines: tuple[ClassLine, ...]) -> list[str]:
    line = lines[0 if lines[0].count < lines[1].count else 1]
    if not line.count:
        return []
    name = label(line.label)
    if not line.called:
        return [f"It never predicts {name}: it finds none of the {plural(line.count, 'row')} of this class."]
    return [
        f"It finds {of(line.found, line.count)} rows of class {name} ({percent(line.recall, 0)}).",
        f"When it predicts {name}, it is right {of(line.found, line.called)} times ({percent(line.precision, 0)}).",
    ]


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
class Machine:
    """Size and speed of one model."""

    name: str
    vectors: int
    nbytes: int
    microseconds: float
    """Per row, when many are predicted at once."""
    error: float | None
    """Error rate or mean absolute error, on the rows that both were evaluated on."""


@dataclass(frozen=True)
class Usage:
    """How to use the model, and what it costs."""

    machines: tuple[Machine, ...]
    method: str
    """Name of the method that is called with rows."""
    is_table: bool
    """Whether the model takes a table, as the command line does."""
    exports: bool
    """Whether the model can be written as C and as ONNX."""
    notes: tuple[str, ...]


def usage(subject: Subject, found: Predictions | None, compare: bool, seed: int) -> Usage:
    """Size and time per prediction, compared with a grid-searched SVC or SVR if asked for; and possible exports."""
    method = {"reduce": "transform", "density": "score_samples"}.get(subject.task, "predict")
    error = None if found is None else float(found.losses.mean())
    took = _time(getattr(subject.core, method), subject.samples[:_TIMED_ROWS])
    machines = [Machine("this model", len(subject.vectors), int(subject.core.expansion_.nbytes), took, error)]
    notes: list[str] = []
    other = _support_vectors(subject, found, seed) if compare and found is not None else None
    if other is not None:
        machine, searched, fitted = other
        machines.append(machine)
        searching = f"a grid of {len(_GRID['C']) * len(_GRID['gamma'])}, searched on {searched:,} rows"
        notes += [
            f"{machine.name}: C and gamma from {searching} with {_FOLDS} folds, then fitted to {fitted:,} rows.",
            "Its size and prediction time grow with the number of rows.",
            "Times were measured on the computer that made this page.",
        ]
    exports = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan(subject.model, "double", "to_c")
    except (TypeError, ValueError) as refused:
        exports = False
        notes.append(f"No export to C or ONNX: {refused}")
    return Usage(tuple(machines), method, subject.is_table, exports, tuple(notes))


def _time(call: Any, rows: Array) -> float:
    """Microseconds per row, the best of a few trials."""
    best = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the rows have lost the names of their columns
        for _ in range(_TIMES):
            start = time.perf_counter()
            call(rows)
            best = min(best, time.perf_counter() - start)
    return 1e6 * best / len(rows)


def _support_vectors(subject: Subject, found: Predictions, seed: int) -> tuple[Machine, int, int] | None:
    """A support vector machine for the same rows, and the numbers of rows of its grid search and of its fit."""
    rng = np.random.default_rng(seed)
    X, y, classify = subject.samples, subject.truth, subject.task == "classify"
    assert y is not None
    train = sample_rows(found.train if len(found.train) else np.arange(len(X)), _MOST_FITTED, rng)
    few = sample_rows(train, _MOST_SEARCHED, rng)
    if len(few) < 3 * _FOLDS or (classify and np.unique(y[few], return_counts=True)[1].min() < _FOLDS):
        return None
    # gamma in units of one over the number of features, as scikit-learn's "scale"
    grid = {"svm__C": _GRID["C"], "svm__gamma": [g / X.shape[1] for g in _GRID["gamma"]]}
    machine: Any = Pipeline([("scale", StandardScaler()), ("svm", SVC() if classify else SVR())])
    if not classify:
        machine = TransformedTargetRegressor(machine, transformer=StandardScaler())
        grid = {f"regressor__{name}": values for name, values in grid.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another program
        search = GridSearchCV(machine, grid, cv=_FOLDS, refit=False).fit(X[few], y[few])
        machine.set_params(**search.best_params_).fit(X[train], y[train])
        predicted = machine.predict(X[found.positions])
        took = _time(machine.predict, X[:_TIMED_ROWS])
    svm = (machine if classify else machine.regressor_)["svm"]
    nbytes = sum(np.asarray(part).nbytes for part in (svm.support_vectors_, svm.dual_coef_, svm.intercept_))
    error = float(losses(found.truth, predicted, classify).mean()) if len(found.train) else None
    name = f"{type(svm).__name__}, grid-searched"
    return Machine(name, len(svm.support_vectors_), nbytes, took, error), len(few), len(train)
