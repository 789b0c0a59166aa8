"""Small fitted models to damage: every public estimator, and the special cases of what a file can hold."""

from __future__ import annotations

import functools
import io
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import fewkern
from fewkern.kernels import Gaussian, Laplacian, Linear, LinearSpline, Polynomial
from fewkern.tables.model import TableModel

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


@dataclass(frozen=True)
class Subject:
    """A file, and samples that the model in it can be asked about."""

    name: str
    content: bytes
    samples: Any
    answers: dict[str, Any]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, classes and targets."""
    rng = np.random.default_rng(7)
    y = np.arange(40) % 3
    X = rng.standard_normal((40, 3)) + 1.5 * np.eye(3)[y]
    return X, y, np.sin(X[:, 0]) + X[:, 1]


def models() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, model, samples and targets to fit."""
    X, y, t = data()
    for name in fewkern.__all__:
        cls = getattr(fewkern, name)
        if not (isinstance(cls, type) and issubclass(cls, BaseEstimator)) or name.startswith("Table"):
            continue
        model = cls()
        if "max_vectors" in model.get_params():
            model.set_params(max_vectors=6)
        if "n_components" in model.get_params():
            model.set_params(n_components=2)
        yield name, model, X, y
    for kernel in (Gaussian([0.5, 1.0, 2.0]), Laplacian(1.0), Polynomial(2), Linear(), LinearSpline()):
        yield f"kernel-{type(kernel).__name__}", fewkern.FeatureVectorRegressor(kernel=kernel, max_vectors=5), X, t
    K = Gaussian(1.0)(X, X)
    yield "precomputed", fewkern.FeatureVectorDiscriminant(kernel="precomputed", max_vectors=5), K, y > 0
    some = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    yield "sparse-linear", fewkern.FeatureVectorDiscriminant(kernel="linear", max_vectors=4), some, y
    yield "sparse-gaussian", fewkern.FeatureVectorRegressor(kernel=Gaussian(1.0), max_vectors=4), some, t
    yield "greedy", fewkern.FeatureVectorSelector(rule="greedy", projection="symmetric", max_vectors=4), X, None
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


@functools.cache
def subjects() -> tuple[Subject, ...]:
    """All models, fitted and saved."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "m.npz"
        for name, model, X, y in models():
            fitted = model.fit(X, y)
            content = fewkern.save(fitted, path).read_bytes()
            found.append(Subject(name, content, X[:5], answers(fitted, X[:5])))
        X, y, _ = data()
        columns = {"a": X[:, 0], "b": X[:, 1], "word": np.where(X[:, 2] > 0, "high", "low"), "y": y}
        table = TableModel(max_vectors=4, holdout=0).fit(columns, "y")
        content = fewkern.save(table, path).read_bytes()
        features = table.encoder_.encode(columns).values[:5]
        found.append(Subject("table", content, features, answers(table, features)))
    return tuple(found)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Everything that the model says of the samples. Raises ArithmeticError where it says NaN."""
    model = getattr(model, "estimator_", model) if isinstance(model, TableModel) else model
    # other names of columns are another table, which is none of a model's business
    names = getattr(model, "feature_names_in_", None)
    X = X.set_axis(names, axis=1) if isinstance(X, pd.DataFrame) and np.shape(names) == X.shape[1:] else X
    found = {}
    with np.errstate(all="ignore"):
        for method in METHODS:
            if hasattr(model, method):
                found[method] = getattr(model, method)(X)
        if hasattr(model, "inverse_transform"):
            try:
                found["inverse_transform"] = model.inverse_transform(found["transform"])
            except ValueError as error:
                if not str(error).startswith(type(model).__name__):
                    raise
    for method, value in found.items():
        if value.dtype.kind == "f" and np.isnan(value).any():
            raise ArithmeticError(f"{method} says NaN")
    return found


def load_bytes(content: bytes, folder: Path) -> Any:
    """``fewkern.load`` of a file with this content."""
    path = folder / "fuzzed.npz"
    path.write_bytes(content)
    return fewkern.load(path)


def members(content: bytes) -> dict[str, bytes]:
    """The members of an intact file."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
