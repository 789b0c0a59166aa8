"""Small fitted models to damage: every public estimator, and the special cases of what a file can hold."""

from __future__ import annotations

import copy
import functools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import fewkern
from fewkern import KernelMixture, to_c
from fewkern.kernels import Gaussian, Laplacian, Linear, LinearSpline, Polynomial
from fewkern.tables.model import TableModel
from tests.checks.everyone import ALL

METHODS = (
    *("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples"),
    *("predict_set", "predict_interval", "novelty"),
)
# Methods of the functions that models are made of, and of densities.
FUNCTIONS = ("__call__", "log_density", "pdf", "cdf")


@dataclass(frozen=True)
class Subject:
    """A file, and samples that the model in it can be asked about."""

    name: str
    model: Any
    content: bytes
    samples: Any


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, classes and targets."""
    rng = np.random.default_rng(7)
    y = np.arange(40) % 3
    X = rng.standard_normal((40, 3)) + 1.5 * np.eye(3)[y]
    return X, y, np.sin(X[:, 0]) + X[:, 1]


def models() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, model, samples and targets to fit."""
    X, y, t = data()
    for model in ALL:
        yield type(model).__name__, model, X, y
    for kernel in (Gaussian([0.5, 1.0, 2.0]), Laplacian(1.0), Polynomial(2), Linear(), LinearSpline()):
        yield f"kernel-{type(kernel).__name__}", fewkern.FeatureVectorRegressor(kernel=kernel, max_vectors=5), X, t
    K = Gaussian(1.0)(X, X)
    yield "precomputed", fewkern.FeatureVectorDiscriminant(kernel="precomputed", max_vectors=5), K, y > 0
    some = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    yield "sparse-linear", fewkern.FeatureVectorDiscriminant(kernel="linear", max_vectors=4), some, y
    yield "sparse-gaussian", fewkern.FeatureVectorRegressor(kernel=Gaussian(1.0), max_vectors=4), some, t
    words = sp.random_array((40, 300), density=0.05, rng=np.random.default_rng(1), format="csr")
    yield "components", fewkern.KernelClassifier(n_vectors=3), words, y
    yield "greedy", fewkern.FeatureVectorSelector(rule="greedy", projection="symmetric", max_vectors=4), X, None
    yield "centered", fewkern.FeatureVectorSelector(max_vectors=4, center=7), X, None
    back = fewkern.FeatureVectorPCA(n_components=2, max_vectors=5, fit_inverse_transform=True)
    yield "inverse", back, X, None
    yield "whitened", fewkern.ParzenDensity(scale="whiten"), X, None
    yield "two-classes", fewkern.SparseKernelFisher(alpha=0.05), X, np.array(["no", "yes"], dtype=object)[y // 2]
    yield "float32", fewkern.FeatureVectorDiscriminant(max_vectors=4), X.astype(np.float32), y
    yield "pipeline", make_pipeline(StandardScaler(), MinMaxScaler(), fewkern.FeatureVectorDiscriminant()), X, y
    yield from pipelines(X, y)


def pipelines(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any, Any, Any]]:
    """Steps of scikit-learn before and after a model: of a table of texts and numbers, of numbers only."""
    table = np.empty((len(X), 4), dtype=object)
    table[:, :2] = np.where(X[:, :2] > 2.0, np.nan, X[:, :2])
    table[:, 2] = np.array(["ash", "elm", "oak"], dtype=object)[(X[:, 2] > 0).astype(int) + (X[:, 2] > 1)]
    table[:, 3] = np.arange(len(X)) % 3
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
        (OneHotEncoder(handle_unknown="ignore"), [2]),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), [3]),
    )
    small = fewkern.FeatureVectorDiscriminant(max_vectors=4)
    yield "columns", make_pipeline(columns, small), table, y
    names = ["size", "weight", "wood", "grade"]
    frame = pd.DataFrame({name: pd.Series(list(table[:, i])) for i, name in enumerate(names)})
    named = make_column_transformer(
        (SimpleImputer(strategy="median"), ["size", "weight"]),
        (OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False), ["wood"]),
        remainder="passthrough",
    ).set_output(transform="pandas")
    yield "frame", make_pipeline(named, small), frame, y
    chosen = make_pipeline(SelectKBest(k=2), fewkern.FeatureVectorSelector(max_vectors=4), LogisticRegression())
    yield "linear-classes", chosen, X, y
    yield "linear-values", make_pipeline(fewkern.FeatureVectorSelector(max_vectors=4), Ridge()), X, X[:, 0]


def parts(X: np.ndarray, y: np.ndarray, t: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Functions that can be saved without their estimator, and models with the sums that they learned."""
    small = {"max_vectors": 5}
    kernel = fewkern.FeatureVectorRegressor(kernel=Gaussian([0.5, 1.0, 2.0]), **small)
    yield "expansion-kernel", kernel.fit(X, t).expansion_
    yield "expansion-gaussians", fewkern.KernelRegressor(**small).fit(X, t).expansion_
    yield "learning", fewkern.KernelRegressor(**small).partial_fit(X, t)
    yield "learning-classes", fewkern.KernelClassifier(**small).partial_fit(X, y)
    yield "expansion-mixture", fewkern.ForwardDensity(**small).fit(X).expansion_
    yield "expansion-whitened", fewkern.ForwardDensity(scale="whiten", **small).fit(X).expansion_
    yield "expansion-classes", fewkern.DensityClassifier(estimator=fewkern.ForwardDensity(**small)).fit(X, y).expansion_


def tables(X: np.ndarray, y: np.ndarray, t: np.ndarray) -> Iterator[tuple[str, Any, pd.DataFrame]]:
    """Models of a table with numbers, categories and dates, and encoders of it."""
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(X)) * 37, unit="D")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": np.where(X[:, 2] > 0, "high", "low")})
    dated = table.assign(day=days.strftime("%d.%m.%Y"))
    small = {"max_vectors": 4}
    yield "table", TableModel(holdout=0, **small).fit(dated.assign(y=y), "y"), dated
    yield "table-numbers", TableModel(task="regress", **small).fit(dated.assign(y=t), "y"), dated
    yield "table-reduced", TableModel(task="reduce", **small).fit(table), table
    yield "table-density", TableModel(task="density", **small).fit(table[["a", "b"]]), table
    yield "encoder", fewkern.TableEncoder().fit(dated), dated


@functools.cache
def subjects() -> tuple[Subject, ...]:
    """All models, fitted and saved."""
    X, y, t = data()
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "m.npz"

        def add(name: str, model: Any, samples: Any) -> None:
            content = fewkern.save(model, path).read_bytes()
            found.append(Subject(name, model, content, samples[:5]))

        for name, model, samples, target in models():
            add(name, clone(model).fit(samples, target), samples)
        for name, part in parts(X, y, t):
            add(name, part, X)
        for name, model, table in tables(X, y, t):
            add(name, model, table)
    return tuple(found)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Everything that the model says of the samples, and of itself. Raises ArithmeticError where it says NaN."""
    # other names of columns are another table, which is none of a model's business
    names = getattr(model, "feature_names_in_", None)
    if not isinstance(model, TableModel | fewkern.TableEncoder):
        X = X.set_axis(names, axis=1) if isinstance(X, pd.DataFrame) and np.shape(names) == X.shape[1:] else X
    found: dict[str, Any] = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in METHODS if isinstance(model, BaseEstimator) else FUNCTIONS:
            if hasattr(type(model), method) and hasattr(model, method):
                found[method] = _said(model, getattr(model, method), X)
        if hasattr(model, "inverse_transform"):
            found["inverse_transform"] = _said(model, model.inverse_transform, found["transform"])
        for name, question in (_questions(model) | _learning(model, X)).items():
            found[name] = _said(model, question)
    for method, value in found.items():
        if getattr(getattr(value, "dtype", None), "kind", "") == "f" and np.isnan(value).any():
            raise ArithmeticError(f"{method} says NaN")
    return {name: value for name, value in found.items() if value is not None}


def _questions(model: Any) -> dict[str, Callable[[], Any]]:
    """What a model can be asked without samples."""
    found: dict[str, Callable[[], Any]] = {"repr": lambda: len(repr(model)) * 0, "to_c": lambda: to_c(model)}
    if hasattr(model, "novelty_threshold"):
        found["novelty_threshold"] = lambda: np.float64(model.novelty_threshold(0.2))
    if isinstance(model, TableModel):
        found |= {"summary": model.summary, "kept": lambda: model.kept().shape}
    if isinstance(model, KernelMixture):
        found |= {"mean": model.mean, "sample": lambda: model.sample(3, 0)}
        found["marginal"] = lambda: model.marginal([0]).mean()
    if not isinstance(model, BaseEstimator):
        found |= {"vectors": lambda: model.vectors, "nbytes": lambda: model.nbytes}
    return found


def _learning(model: Any, X: Any) -> dict[str, Callable[[], Any]]:
    """To explain itself, to go on learning, and to forget."""
    found: dict[str, Callable[[], Any]] = {}
    if hasattr(model, "explain") and isinstance(X, np.ndarray):
        found["explain"] = lambda: model.explain(X).values
    if hasattr(model, "merge"):
        y = np.resize(model.classes_, X.shape[0]) if hasattr(model, "classes_") else np.zeros(X.shape[0])
        found |= {
            "merge": lambda: model.merge(model).predict(X),
            "partial_fit": lambda: copy.copy(model).partial_fit(X, y).predict(X),
            "forget": lambda: copy.copy(model).forget(X[:1], y[:1]).predict(X),
        }
    return found


def _said(model: Any, question: Callable[..., Any], *arguments: Any) -> Any:
    """An answer; None where a model says in its own name that it has none."""
    own = tuple(type(one).__name__ for one in (model, getattr(model, "estimator_", model)))
    try:
        return question(*arguments)
    except (ValueError, TypeError, AttributeError) as error:
        if not str(error).startswith((*own, "to_c: ")):
            raise
        return None


def load_bytes(content: bytes, folder: Path) -> Any:
    """``fewkern.load`` of a file with this content."""
    path = folder / "fuzzed.npz"
    path.write_bytes(content)
    return fewkern.load(path)
