"""How to use a model: lines to copy, its size and speed, and those of a support vector machine."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from fewkern.io.describe import plan
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.subject import Subject

__all__ = ["Machine", "Recipe", "Usage", "usage"]

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
class Recipe:
    """Lines to copy."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Usage:
    """How to use the model, and what it costs."""

    machines: tuple[Machine, ...]
    recipes: tuple[Recipe, ...]
    notes: tuple[str, ...]


def usage(subject: Subject, found: Predictions | None, compare: bool, seed: int) -> Usage:
    """Recipes, size, time per prediction; beside those of a grid-searched SVC or SVR, if asked for."""
    rows = subject.samples[:_TIMED_ROWS]
    call = _evaluate(subject)
    error = None if found is None else _error(found.truth, found.predicted, subject.task)
    own = Machine("this model", len(subject.vectors), int(subject.core.expansion_.nbytes), _time(call, rows), error)
    machines, notes = [own], []
    if compare and found is not None:
        other, searched, fitted = _support_vectors(subject, found, seed)
        if other is not None:
            machines.append(other)
            searching = f"a grid of {len(_GRID['C']) * len(_GRID['gamma'])}, searched on {searched:,} rows"
            notes += [
                f"{other.name}: C and gamma from {searching} with {_FOLDS} folds, and fitted to {fitted:,}.",
                "Its size and time grow with the rows. Times are of the computer that made this page.",
            ]
    recipes, refused = _recipes(subject)
    return Usage(tuple(machines), recipes, (*notes, *refused))


def _evaluate(subject: Subject) -> Any:
    name = {"reduce": "transform", "density": "score_samples"}.get(subject.task, "predict")
    return getattr(subject.core, name)


def _error(truth: Vector, predicted: Vector, task: str) -> float:
    return float(np.mean(truth != predicted if task == "classify" else np.abs(truth - predicted)))


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


def _support_vectors(subject: Subject, found: Predictions, seed: int) -> tuple[Machine | None, int, int]:
    """A support vector machine for the same rows, and the numbers of rows of its grid search and of its fit."""
    rng = np.random.default_rng(seed)
    X, y = subject.samples, subject.truth
    assert y is not None
    train = found.train if len(found.train) else np.arange(len(X))
    train = train if len(train) <= _MOST_FITTED else rng.choice(train, _MOST_FITTED, replace=False)
    few = train if len(train) <= _MOST_SEARCHED else rng.choice(train, _MOST_SEARCHED, replace=False)
    classify = subject.task == "classify"
    if len(few) < 3 * _FOLDS or (classify and np.unique(y[few], return_counts=True)[1].min() < _FOLDS):
        return None, 0, 0
    center, spread = (0.0, 1.0) if classify else (float(y[train].mean()), float(y[train].std()) or 1.0)
    machine = make_pipeline(StandardScaler(), SVC() if classify else SVR())
    step = "svc" if classify else "svr"
    # gamma in units of one over the number of features, as scikit-learn's "scale"
    grid = {f"{step}__C": _GRID["C"], f"{step}__gamma": [g / X.shape[1] for g in _GRID["gamma"]]}
    targets = y if classify else (y - center) / spread
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a comparison is no place for another program's remarks
        search = GridSearchCV(machine, grid, cv=_FOLDS, refit=False).fit(X[few], targets[few])
        machine.set_params(**search.best_params_).fit(X[train], targets[train])
        inner = machine.steps[-1][1]
        parts = (inner.support_vectors_, inner.dual_coef_, inner.intercept_)
        error = None
        if len(found.train):
            predicted = machine.predict(X[found.positions])
            error = _error(found.truth, predicted if classify else predicted * spread + center, subject.task)
        took = _time(machine.predict, X[:_TIMED_ROWS])
    name = f"{type(inner).__name__}, grid-searched"
    nbytes = sum(np.asarray(part).nbytes for part in parts)
    return Machine(name, len(inner.support_vectors_), nbytes, took, error), len(few), len(train)


def _recipes(subject: Subject) -> tuple[tuple[Recipe, ...], tuple[str, ...]]:
    """Lines for Python, the command line, C and ONNX; and why some are missing."""
    verb = {"reduce": "transform", "density": "score_samples"}.get(subject.task, "predict")
    recipes = [
        Recipe(
            "Python",
            (
                "import fewkern",
                'fewkern.save(model, "model.npz")',
                'model = fewkern.load("model.npz")',
                f"model.{verb}(rows)",
            ),
        )
    ]
    if subject.is_table:
        recipes.append(Recipe("Command line", ("fewkern predict model.npz table.csv --out predictions.csv",)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan(subject.model, "double", "to_c")
    except (TypeError, ValueError) as error:
        return tuple(recipes), (f"No export to C or ONNX: {error}",)
    function = {"classify": "predict", "density": "log_density", "reduce": "transform"}.get(subject.task, "predict")
    value = "int class = model_predict(x);" if subject.task == "classify" else f"model_{function}(x, out);"
    value = "double value = model_log_density(x);" if subject.task == "density" else value
    if subject.is_table:
        recipes.append(Recipe("C", ("fewkern export model.npz model.c", f"{value}  /* no library needed */")))
        recipes.append(Recipe("ONNX", ("fewkern export model.npz model.onnx",)))
    else:
        recipes.append(Recipe("C", ('fewkern.to_c(model, "model.c")', f"{value}  /* no library needed */")))
        recipes.append(Recipe("ONNX", ('fewkern.to_onnx(model, "model.onnx")',)))
    return tuple(recipes), ()
