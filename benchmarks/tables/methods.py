"""The models that are compared on real tables: ours as they come, peers with their defaults or over a usual grid.

Every choice is made on the training part. Boosting gets the columns as they are, with categories declared, and so do
ours where they take them (``RAW_COLUMNS``); all others get columns of numbers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import fewkern
from benchmarks.tables.data import CLASSES, Part
from benchmarks.workers import threads

__all__ = ["BASELINE", "METHODS", "Fitted", "Method", "automatic", "declared_categories", "kernel_machine"]

# Whether ours get categories and gaps as they are. Where they do, "zero-one" is the default on 0/1 columns beside it.
RAW_COLUMNS = "categorical_features" in signature(fewkern.KernelClassifier).parameters

# The method that the others are measured against.
BASELINE = "boosting"
# The grid of the SVM: costs, and `gamma` times the number of columns; the target of SVR has deviation 1.
SVC_COSTS, SVR_COSTS, GAMMAS, SVM_FOLDS = (1.0, 10.0, 100.0, 1000.0), (1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0), 3
RIDGES = np.logspace(-3, 4, 15)
# Categories with more levels are numbers to boosting.
MOST_LEVELS = 255
# The part of the training rows that xRFM holds out.
HELD_OUT = 0.2
# fastrvm may not converge with wide kernels: its default of 10,000 steps would take hours.
RVM_STEPS = 1000


@dataclass(frozen=True)
class Fitted:
    """A fitted model; ``vectors`` is what a prediction needs of the training rows, None for models of another kind."""

    model: Any
    vectors: int | None = None
    raw: bool = False

    def predict(self, part: Part) -> np.ndarray:
        return np.asarray(self.model.predict(self._test(part))).ravel()

    def probabilities(self, part: Part) -> np.ndarray | None:
        """Of the sorted classes of the training part; None where the model has none."""
        if part.task != CLASSES or not hasattr(self.model, "predict_proba"):
            return None
        return np.asarray(self.model.predict_proba(self._test(part)))

    def _test(self, part: Part) -> np.ndarray:
        return part.raw_test if self.raw else part.X_test


@dataclass(frozen=True)
class Method:
    """A way to fit a model to the training part of a table."""

    label: str
    fit: Callable[[Part], Fitted]
    ours: bool = False
    package: str | None = None
    """Package that has to be installed, beside those that fewkern needs."""

    @property
    def missing(self) -> str:
        """What this machine lacks; empty where the method can run."""
        if self.package and importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed (pip install 'fewkern[benchmarks]')"
        return ""


def kernel_machine(task: str, **settings: Any) -> Any:
    """Our automatic model, not fitted."""
    return (fewkern.KernelClassifier if task == CLASSES else fewkern.KernelRegressor)(**settings)


def automatic(raw: bool = RAW_COLUMNS, **settings: Any) -> Callable[[Part], Fitted]:
    """A fit of our automatic model with these settings, to the columns as they are or to columns of numbers."""
    return lambda part: fit_ours(kernel_machine(part.task, **settings), part, raw)


def feature_vectors(part: Part) -> Fitted:
    """FVS: samples as vectors, everything by leave-one-out."""
    kind = fewkern.FeatureVectorDiscriminant if part.task == CLASSES else fewkern.FeatureVectorRegressor
    return fit_ours(kind(), part)


def fit_ours(model: Any, part: Part, raw: bool = False) -> Fitted:
    if raw:
        model.set_params(categorical_features=part.categories)
    model.fit(part.raw if raw else part.X, part.y)
    return Fitted(model, int(model.n_vectors_), raw)


def boosting(part: Part) -> Fitted:
    kind = HistGradientBoostingClassifier if part.task == CLASSES else HistGradientBoostingRegressor
    return Fitted(kind(categorical_features=declared_categories(part), random_state=0).fit(part.raw, part.y), raw=True)


def declared_categories(part: Part) -> np.ndarray:
    """The categories that have few enough levels to be declared."""
    levels = np.array([len(np.unique(column[np.isfinite(column)])) for column in part.raw.T])
    return part.categories & (levels <= MOST_LEVELS)


def lightgbm(part: Part) -> Fitted:
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = (LGBMClassifier if part.task == CLASSES else LGBMRegressor)(n_jobs=threads(), random_state=0, verbose=-1)
    declared = np.flatnonzero(declared_categories(part)).tolist()
    return Fitted(model.fit(part.raw, part.y, categorical_feature=declared), raw=True)


def catboost(part: Part) -> Fitted:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if part.task == CLASSES else CatBoostRegressor
    machine = kind(
        cat_features=np.flatnonzero(part.categories).tolist(), thread_count=threads(), random_seed=0, verbose=False,
        allow_writing_files=False,
    )  # fmt: skip
    return Fitted(_Named(part.categories, machine).fit(part.raw, part.y), raw=True)


def chimeraboost(part: Part) -> Fitted:
    from chimeraboost import ChimeraBoostClassifier, ChimeraBoostRegressor

    kind = ChimeraBoostClassifier if part.task == CLASSES else ChimeraBoostRegressor
    machine = kind(cat_features=np.flatnonzero(part.categories).tolist(), thread_count=threads(), random_state=0)
    return Fitted(_Named(part.categories, machine).fit(part.raw, part.y), raw=True)


def svm(part: Part) -> Fitted:
    gammas = [factor / part.X.shape[1] for factor in GAMMAS]
    if part.task == CLASSES:
        search = GridSearchCV(SVC(cache_size=500), {"C": SVC_COSTS, "gamma": gammas}, cv=SVM_FOLDS)
        search.fit(part.X, part.y)
        return Fitted(search, len(search.best_estimator_.support_))
    search = GridSearchCV(SVR(cache_size=500), {"C": SVR_COSTS, "gamma": gammas}, cv=SVM_FOLDS)
    model = TransformedTargetRegressor(search, transformer=StandardScaler()).fit(part.X, part.y)
    return Fitted(model, len(model.regressor_.best_estimator_.support_))


def forest(part: Part) -> Fitted:
    kind = RandomForestClassifier if part.task == CLASSES else RandomForestRegressor
    return Fitted(kind(n_estimators=100, n_jobs=threads(), random_state=0).fit(part.X, part.y))


def linear(part: Part) -> Fitted:
    if part.task == CLASSES:
        return Fitted(LogisticRegressionCV(scoring="accuracy", max_iter=1000).fit(part.X, part.y))
    return Fitted(RidgeCV(RIDGES).fit(part.X, part.y))


def xrfm(part: Part) -> Fitted:
    """A recursive feature machine with its defaults: every training row is a vector, but for those held out."""
    from xrfm import xRFM

    target = _Target(part)
    X, held_X, y, held_y = train_test_split(part.X, target.coded, test_size=HELD_OUT, random_state=0)
    machine = xRFM(device="cpu", n_threads=threads(), random_state=0, verbose=False)
    machine.fit(X, y, held_X, held_y)
    return Fitted(target.decoding(machine), len(y))


def fastrvm(part: Part) -> Fitted:
    """A relevance vector machine with its own width."""
    from fastrvm import RVC, RVR

    target = _Target(part)
    machine = (RVC if part.task == CLASSES else RVR)(fit_intercept=True, max_iter=RVM_STEPS, n_jobs=threads())
    machine.fit(part.X, target.coded)
    return Fitted(target.decoding(machine), len(machine.relevance_vectors_))


def neo_ls_svm(part: Part) -> Fitted:
    """Every training row is a vector up to 1,024 of them; above, the machine has random features."""
    from neo_ls_svm import NeoLSSVM

    if part.task != CLASSES:
        target = _Target(part)
        machine = NeoLSSVM(estimator_type="regressor").fit(part.X, target.coded)
        return Fitted(target.decoding(machine), len(part.y) if machine.dual_ else None)
    classes = np.unique(part.y)
    one_by_one = classes[1:] if len(classes) == 2 else classes
    machines = [NeoLSSVM(estimator_type="classifier").fit(part.X, part.y == label) for label in one_by_one]
    return Fitted(_OneByOne(machines, classes), len(part.y) if machines[0].dual_ else None)


@dataclass(frozen=True)
class _Named:
    """Gives a machine its categories as words, a gap being one of them."""

    categories: np.ndarray
    machine: Any

    def _named(self, raw: np.ndarray) -> np.ndarray:
        if not self.categories.any():
            return raw
        named = raw.astype(object)
        named[:, self.categories] = raw[:, self.categories].astype(str)
        return named

    def fit(self, raw: np.ndarray, y: np.ndarray) -> _Named:
        self.machine.fit(self._named(raw), y)
        return self

    def predict(self, raw: np.ndarray) -> np.ndarray:
        return np.asarray(self.machine.predict(self._named(raw)))

    def predict_proba(self, raw: np.ndarray) -> np.ndarray:
        return np.asarray(self.machine.predict_proba(self._named(raw)))


class _Target:
    """The target as peers want it: classes 0, 1, ..., or numbers with mean 0 and deviation 1."""

    def __init__(self, part: Part) -> None:
        self.classes = np.unique(part.y) if part.task == CLASSES else None
        self.mean, self.scale = (0.0, 1.0) if self.classes is not None else (float(part.y.mean()), float(part.y.std()))
        shifted = (part.y - self.mean) / self.scale
        self.coded = shifted if self.classes is None else np.searchsorted(self.classes, part.y)

    def decoding(self, model: Any) -> Any:
        """The model, with the answers of the table."""
        return _Classes(model, self.classes) if self.classes is not None else _Numbers(model, self.mean, self.scale)


@dataclass(frozen=True)
class _Numbers:
    model: Any
    mean: float
    scale: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.mean + self.scale * np.asarray(self.model.predict(X)).ravel()


@dataclass(frozen=True)
class _Classes:
    model: Any
    classes: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes[np.asarray(self.model.predict(X)).ravel().astype(int)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(X))


@dataclass(frozen=True)
class _OneByOne:
    """Machines for two classes, one for each class against the others."""

    machines: list[Any]
    classes: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = np.stack([np.asarray(machine.predict_proba(X))[:, 1] for machine in self.machines], axis=1)
        if p.shape[1] == 1:
            return np.hstack([1 - p, p])
        p = np.maximum(p, 1e-9)
        return p / p.sum(axis=1, keepdims=True)


METHODS = {
    "balanced": Method("fewkern, balanced", automatic(), ours=True),
    **({"zero-one": Method("fewkern, 0/1 columns", automatic(raw=False), ours=True)} if RAW_COLUMNS else {}),
    "sparse": Method("fewkern, sparse", automatic(prefer="sparse"), ours=True),
    "feature-vectors": Method("fewkern, feature vectors", feature_vectors, ours=True),
    "boosting": Method("HistGradientBoosting", boosting),
    "svm": Method("SVM, grid", svm),
    "forest": Method("RandomForest", forest),
    "linear": Method("linear", linear),
    "lightgbm": Method("LightGBM", lightgbm, package="lightgbm"),
    "catboost": Method("CatBoost", catboost, package="catboost"),
    "chimeraboost": Method("ChimeraBoost", chimeraboost, package="chimeraboost"),
    "xrfm": Method("xRFM", xrfm, package="xrfm"),
    "neo-ls-svm": Method("Neo LS-SVM", neo_ls_svm, package="neo_ls_svm"),
    "fastrvm": Method("fastrvm", fastrvm, package="fastrvm"),
}
