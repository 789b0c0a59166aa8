"""What a model costs and where it can be taken: its size and speed beside a support vector machine's, exports."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from fewkern.io.describe import plan
from fewkern.reporting.evaluation import losses
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

Vector = np.ndarray[Any, Any]
# The grid search of the comparison sees this many rows, and its winner is fitted to a few more.
_MOST_SEARCHED, _MOST_FITTED, _FOLDS = 600, 3000, 3
_GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0]}
_TIMED_ROWS, _TIMES = 1000, 3


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
    """Size and time per prediction, beside those of a grid-searched SVC or SVR, if asked for; and possible exports."""
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


def _time(call: Any, rows: Vector) -> float:
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
