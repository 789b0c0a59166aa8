"""The classifiers that the frontier compares: ours and others, each with everything chosen on the training part.

A method takes a split and returns its points: numbers of vectors, and the test error with them. Some have one point,
which they choose themselves; some have one for every size that they are asked for, too.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.measure import cpu_timed
from benchmarks.splits import Split
from fewkern import FeatureVectorDiscriminant, ForwardKernelFisher, KernelClassifier, SparseKernelFisher, compress
from fewkern.kernels import Gaussian

__all__ = ["METHODS", "Method", "Values"]

# What a method found on a split, as it is kept in the file of results.
Values = dict[str, Any]

# Numbers of vectors: of moved and compressed ones, of samples as vectors, and where every size is tuned anew.
FEW, MANY, TUNED_SIZES = (3, 5, 10, 20, 40), (3, 5, 10, 20, 40, 80, 160), (5, 10, 40, 160)
# The grid of the SVC: 8 widths in units of the median distance and 8 costs, with 5 folds. The other peers have fewer
# widths, from about the same range: they are slower, or have several sizes to be tuned for.
WIDTHS, COSTS, FOLDS = np.geomspace(0.14, 6.0, 8), np.logspace(-1, 4, 8), 5
FEWER_WIDTHS = np.geomspace(0.25, 4.0, 5)
LOGISTIC_COSTS = (0.1, 10.0, 1000.0)
# fastrvm does not converge with wide kernels: on 170 samples of heart its default of 10,000 steps takes 20 seconds.
RVM_WIDTHS, RVM_STEPS = FEWER_WIDTHS[:4], 1000
# xRFM chooses among these on a fifth of the training part, which it needs to be held out in any case.
BANDWIDTHS, HELD_OUT = (1.0, 3.0, 10.0, 30.0), 0.2


@dataclass(frozen=True)
class Method:
    """A classifier in the comparison."""

    label: str
    run: Callable[[Split, Mapping[str, Values]], Values]
    """From a split, and what other methods found on it, to what this one finds."""
    version: str
    """Results of another version are measured again: raise it when a method changes."""
    ours: bool = True
    package: str | None = None
    """Package that has to be installed, beside those that fewkern needs."""

    @property
    def installed(self) -> bool:
        return self.package is None or importlib.util.find_spec(self.package) is not None


def point(data: Split, model: Any, vectors: int, seconds: float, size: int | None = None) -> Values:
    """A point of the frontier; ``size`` is the number of vectors that was asked for, None where the method chose."""
    error = 100 * float(np.mean(np.asarray(model.predict(data.X_test)) != data.y_test))
    return {"size": size, "vectors": int(vectors), "error": error, "seconds": round(seconds, 3)}


def gammas(X: np.ndarray, factors: Iterable[float]) -> list[float]:
    """``gamma`` of Gaussian kernels whose widths are multiples of the median distance."""
    median = Gaussian(unit="common").resolve(X).length_scale
    return [float(1 / (2 * (median * factor) ** 2)) for factor in factors]


def in_sizes(data: Split, kind: type, sizes: Iterable[int]) -> Values:
    """One of our classifiers as it chooses its size, and for given ones."""
    points = []
    for size in (None, *sizes):
        settings = {} if size is None else {"n_vectors": min(size, len(data.y))}
        model, seconds = cpu_timed(lambda s=settings: kind(**s).fit(data.X, data.y))
        points.append(point(data, model, model.n_vectors_, seconds, size))
    return {"points": points}


def learner(data: Split, _: Mapping[str, Values]) -> Values:
    return in_sizes(data, KernelClassifier, FEW)


def feature_vectors(data: Split, _: Mapping[str, Values]) -> Values:
    return in_sizes(data, FeatureVectorDiscriminant, MANY)


def sparse_fisher(data: Split, _: Mapping[str, Values]) -> Values:
    model, seconds = cpu_timed(lambda: SparseKernelFisher().fit(data.X, data.y))
    return {"points": [point(data, model, model.n_vectors_, seconds)]}


def forward_fisher(data: Split, _: Mapping[str, Values]) -> Values:
    model, seconds = cpu_timed(lambda: ForwardKernelFisher().fit(data.X, data.y))
    return {"points": [point(data, model, model.n_vectors_, seconds)]}


def svc(data: Split, _: Mapping[str, Values]) -> Values:
    """SVC over a grid; the settings are kept, so that a later run need not search again."""
    grid = {"C": COSTS, "gamma": gammas(data.X, WIDTHS)}
    search, seconds = cpu_timed(lambda: GridSearchCV(SVC(cache_size=500), grid, cv=FOLDS).fit(data.X, data.y))
    chosen = {name: float(value) for name, value in search.best_params_.items()}
    return {"points": [point(data, search, len(search.best_estimator_.support_), seconds)], "chosen": chosen}


def compressed(data: Split, found: Mapping[str, Values]) -> Values:
    """The tuned SVC, compressed with its training samples."""
    chosen = found["svc"]["chosen"] if "svc" in found else svc(data, found)["chosen"]
    machine = SVC(**chosen).fit(data.X, data.y)
    points = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a size may miss the tolerance: that is what is measured
        for size in (None, *FEW):
            count: Any = "auto" if size is None else size
            model, seconds = cpu_timed(lambda count=count: compress(machine, data.X, n_vectors=count))
            points.append(point(data, model, model.n_vectors_, seconds, size))
    return {"points": points}


def nystroem(data: Split, _: Mapping[str, Values]) -> Values:
    """Random samples as a basis, and logistic regression; width and C by folds for every size."""
    grid = {"nystroem__gamma": gammas(data.X, FEWER_WIDTHS), "logisticregression__C": LOGISTIC_COSTS}
    points = []
    for size in TUNED_SIZES:
        count = min(size, len(data.y) * (FOLDS - 1) // FOLDS)  # a fold has to have so many samples
        model = make_pipeline(Nystroem(n_components=count, random_state=0), LogisticRegression(max_iter=1000))
        search, seconds = cpu_timed(lambda model=model: GridSearchCV(model, grid, cv=FOLDS).fit(data.X, data.y))
        points.append(point(data, search, count, seconds, size))
    return {"points": points}


def fastrvm(data: Split, _: Mapping[str, Values]) -> Values:
    """A relevance vector machine, its width by folds."""
    from fastrvm import RVC

    grid = {"gamma": gammas(data.X, RVM_WIDTHS)}
    machine = RVC(kernel="rbf", fit_intercept=True, max_iter=RVM_STEPS, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a machine without vectors cannot predict: it is not chosen
        search, seconds = cpu_timed(lambda: GridSearchCV(machine, grid, cv=FOLDS).fit(data.X, data.y))
    return {"points": [point(data, search, int(np.sum(search.best_estimator_.n_relevance_)), seconds)]}


@dataclass(frozen=True)
class Recoded:
    """A model of the classes 0, 1, ... as one of the classes that a set has."""

    model: Any
    classes: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes[np.asarray(self.model.predict(X)).ravel()]


def xrfm(data: Split, _: Mapping[str, Values]) -> Values:
    """A recursive feature machine: every training sample is a vector, but for those held out."""
    classes, codes = np.unique(data.y, return_inverse=True)
    X, held_X, y, held_y = train_test_split(data.X, codes, test_size=HELD_OUT, random_state=0, stratify=codes)
    (model, _), seconds = cpu_timed(
        lambda: min((_xrfm(X, y, held_X, held_y, b) for b in BANDWIDTHS), key=lambda m: m[1])
    )
    return {"points": [point(data, Recoded(model, classes), len(y), seconds)]}


def _xrfm(X: Any, y: Any, held_X: Any, held_y: Any, bandwidth: float) -> tuple[Any, float]:
    """A machine with its package's other settings, and the squared error of its probabilities on the held-out part."""
    from xrfm import xRFM

    kernel = {"kernel": "l2_high_dim", "exponent": 1.0, "bandwidth": bandwidth, "diag": False}
    fit = {"get_agop_best_model": True, "return_best_params": True, "reg": 1e-3, "iters": 5, "early_stop_rfm": False}
    settings = {"model": {**kernel, "bandwidth_mode": "constant"}, "fit": fit}
    machine = xRFM(rfm_params=settings, device="cpu", n_threads=1, random_state=0, verbose=False)
    machine.fit(X, y, held_X, held_y)
    probability = np.asarray(machine.predict_proba(held_X))
    return machine, float(np.mean((probability - np.eye(probability.shape[1])[held_y]) ** 2))


METHODS = {
    "learner": Method("KernelClassifier", learner, "1"),
    "feature vectors": Method("samples as vectors", feature_vectors, "1"),
    "sparse fisher": Method("SparseKernelFisher", sparse_fisher, "4"),
    "forward fisher": Method("ForwardKernelFisher", forward_fisher, "4"),
    "svc": Method("SVC, tuned", svc, "1", ours=False),
    "compressed": Method("the SVC, compressed", compressed, "3"),
    "nystroem": Method("Nystroem + logistic regression", nystroem, "1", ours=False),
    "fastrvm": Method("fastrvm, tuned", fastrvm, "1", ours=False, package="fastrvm"),
    "xrfm": Method("xRFM, tuned", xrfm, "1", ours=False, package="xrfm"),
}
