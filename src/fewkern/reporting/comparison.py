"""Other models for the same rows: simple baselines, and a support vector machine, with its size and speed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from timeit import repeat
from typing import Any

import numpy as np
from scipy import stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from fewkern.arrays.namespace import Array
from fewkern.io.describe import plan
from fewkern.reporting.evaluation import Predictions, losses
from fewkern.reporting.judgement import Judgement, answering, constant_answer, judge
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# Most rows that a linear model is fitted to, and most features: it must not take longer than our model.
_LINEAR_ROWS, _LINEAR_FEATURES = 20_000, 2_000
# A column decides alone if it leaves no more than this share of the errors, or of the variance, of a constant.
_DECIDING_ERRORS, _DECIDING_VARIANCE = 0.01, 0.001
# The grid search of the comparison sees this many rows, and its winner is fitted to a few more.
_MOST_SEARCHED, _MOST_FITTED, _FOLDS = 600, 3000, 3
_GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0]}
_TIMED_ROWS, _TIMES = 1000, 3


def judge_predictions(found: Predictions, X: Array, y: Array, seed: int) -> Judgement:
    """The judgement of predictions beside simple baselines; that of the model itself, if it held these rows out.

    ``X`` and ``y`` are all rows of the table. A baseline is fitted to the rows of the fit, or where these are not
    known, predicts each fifth of the rows from the other four.
    """
    if found.judgement is not None:
        return found.judgement
    rows, classify = np.arange(len(found.positions)), found.classes is not None
    if len(found.train) or len(rows) < 2:
        folds = [(found.train if len(found.train) else found.positions, rows)]
    else:
        parts = KFold(min(5, len(rows)), shuffle=True, random_state=seed).split(rows)
        folds = [(found.positions[train], test) for train, test in parts]
    constants = [constant_answer(y[train], classify) for train, _ in folds]
    lines = [linear_predictions(X[train], y[train], X[found.positions[test]], classify) for train, test in folds]
    answers = {"this model": found.predicted, answering(constants, classify): np.empty_like(found.truth)}
    for (_, test), constant in zip(folds, constants):
        answers[answering(constants, classify)][test] = constant
    if all(predicted is not None for predicted in lines):
        answers["a linear model"] = np.empty_like(found.truth)
        for (_, test), predicted in zip(folds, lines):
            answers["a linear model"][test] = predicted
    return judge(found.truth, answers, found.counted, found.classes, found.probabilities)


def linear_predictions(X: Any, y: Any, new: Any, classify: bool, weights: Any = None) -> Array | None:
    """Predictions of a linear model fitted to ``X`` and ``y``; None where it cannot be fitted, or would take long."""
    if len(X) > _LINEAR_ROWS:
        some = sample_rows(len(X), _LINEAR_ROWS, np.random.default_rng(0))
        X, y, weights = X[some], y[some], None if weights is None else weights[some]
    if len(X) < 2 or X.shape[1] > _LINEAR_FEATURES or (classify and len(np.unique(y)) < 2):
        return None
    model = LogisticRegression(max_iter=300) if classify else RidgeCV(np.logspace(-3, 3, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge to be compared with
        scaler = StandardScaler().fit(X)
        return np.asarray(model.fit(scaler.transform(X), y, sample_weight=weights).predict(scaler.transform(new)))


def normal_log_density(X: Array, new: Array) -> Array:
    """Logarithm of the normal density with the mean and covariance of ``X``."""
    covariance = np.atleast_2d(np.cov(X, rowvar=False)) if len(X) > 1 else np.eye(X.shape[1])
    # a column that follows from the others, or does not vary, would make it infinite
    covariance = covariance + 1e-9 * max(float(np.trace(covariance)) / X.shape[1], 1e-300) * np.eye(X.shape[1])
    normal = stats.multivariate_normal(X.mean(axis=0), covariance, allow_singular=True)
    return np.asarray(normal.logpdf(new)).reshape(-1)


def decides_alone(column: tuple[Array, Array], y: tuple[Any, Any], classify: bool) -> bool:
    """Whether one column predicts the target almost perfectly, as one that is known only after the target does.

    ``column`` are its features, ``y`` the targets: of rows to fit to, and of others.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.reporting.comparison import decides_alone
    >>> x = np.linspace(0, 1, 100)[:, None]
    >>> decides_alone((x[::2], x[1::2]), (3 * x[::2, 0], 3 * x[1::2, 0]), classify=False)
    True
    """
    (X, new), (known, truth) = column, y
    if not classify:  # between neighboring rows, by the first feature: the number, or the day
        order, inside = np.argsort(X[:, 0]), (new[:, 0] >= X[:, 0].min()) & (new[:, 0] <= X[:, 0].max())
        gap, variance = np.interp(new[:, 0], X[order, 0], known[order]) - truth, float(np.var(truth))
        return bool(inside.any() and 0 < variance and np.mean(gap[inside] ** 2) <= _DECIDING_VARIANCE * variance)
    names, counts = np.unique(known, return_counts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # many classes may still be classes
        tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(X, known)
    constant = np.mean(truth != names[np.argmax(counts)])
    return bool(0 < constant and np.mean(tree.predict(new) != truth) <= _DECIDING_ERRORS * constant)


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
    own = Machine("this model", len(subject.vectors), int(subject.core.expansion_.nbytes), took, error)
    others, notes = _support_vectors(subject, found, seed) if compare and found is not None else ([], [])
    exports = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan(subject.model, "double", "to_c")
    except (TypeError, ValueError) as refused:
        exports = False
        notes.append(f"No export to C or ONNX: {refused}")
    return Usage((own, *others), method, subject.encoder is not None, exports, tuple(notes))


def _time(call: Any, rows: Array) -> float:
    """Microseconds per row, the best of a few trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the rows have lost the names of their columns
        return 1e6 * min(repeat(lambda: call(rows), repeat=_TIMES, number=1)) / len(rows)


def _support_vectors(subject: Subject, found: Predictions, seed: int) -> tuple[list[Machine], list[str]]:
    """A support vector machine for the same rows, and how it was made; nothing where the rows are too few for it."""
    rng = np.random.default_rng(seed)
    X, y, classify = subject.samples, subject.truth, subject.task == "classify"
    train = sample_rows(found.train if len(found.train) else np.arange(len(X)), _MOST_FITTED, rng)
    few = sample_rows(train, _MOST_SEARCHED, rng)
    if len(few) < 3 * _FOLDS or (classify and np.unique(y[few], return_counts=True)[1].min() < _FOLDS):
        return [], []
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
    searching = f"a grid of {len(_GRID['C']) * len(_GRID['gamma'])}, searched on {len(few):,} rows"
    return [Machine(name, len(svm.support_vectors_), nbytes, took, error)], [
        f"{name}: C and gamma from {searching} with {_FOLDS} folds, then fitted to {len(train):,} rows.",
        "Its size and prediction time grow with the number of rows.",
        "Times were measured on the computer that made this page.",
    ]
