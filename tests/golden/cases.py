"""Every estimator on fixed data in a few settings: what it keeps, and what it says of new samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fewkern
from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.kernels import Gaussian, Polynomial

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


@dataclass(frozen=True)
class Case:
    """One fit: a name that never changes, the estimator, its data, and how the data are passed."""

    name: str
    model: Any
    data: str
    fit: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float64"
    library: str = "numpy"
    tolerance: float | None = None
    """Relative difference that is allowed, where it is not that of the record."""


def table(kind: str, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """``X, y, weights`` to fit, and new samples. Everything is drawn here, so that no generator can move the record."""
    rng = np.random.default_rng(2024)
    classes = {"two": 2, "three": 3}.get(kind, 2)
    codes = np.arange(n + 20) % classes
    centres = np.array([[0.0, 0.0, 0.5], [1.6, 1.0, -0.5], [-1.2, 1.8, 0.3]])
    X = centres[codes] + rng.standard_normal((n + 20, 3)) * [0.8, 0.6, 1.0]
    X[:, 1] += 0.5 * X[:, 0] ** 2
    weights = rng.integers(0, 4, n).astype(float)
    if kind == "real":
        y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n + 20)
        return X[:n], y[:n], weights, X[n:]
    labels = np.array(["ash", "birch", "cedar"])[codes]
    return X[:n], labels[:n], weights, X[n:]


def cases() -> Iterator[Case]:
    """The cases. A name stays when a parameter is renamed; a case that goes or changes needs a changelog entry."""
    few = {"max_vectors": 12}
    for data in ("two", "three"):
        for label, model in {
            "discriminant": fewkern.FeatureVectorDiscriminant(**few),
            "sparse-fisher": fewkern.SparseKernelFisher(),
            "sparse-fisher-1": fewkern.SparseKernelFisher(q=1.0, alpha=0.05),
            "sparse-fisher-few": fewkern.SparseKernelFisher(prefer="sparse"),
            "forward-fisher": fewkern.ForwardKernelFisher(n_vectors=6),
            "forward-fisher-auto": fewkern.ForwardKernelFisher(max_vectors=15),
            "kernel-fisher": fewkern.SparseKernelFisher(q=2.0, alpha=1e-3),
            "recursive-svm": fewkern.RecursiveSVM(n_components=2),
            "recursive-svm-kernel": fewkern.RecursiveSVM(kernel=Gaussian(2.0), n_components=3, max_vectors=30),
            "soft-margin": fewkern.RecursiveSoftMargin(n_components=2),
            "soft-margin-kernel": fewkern.RecursiveSoftMargin(
                graph="mfa", kernel=Gaussian(2.0), n_components=2, max_vectors=20
            ),
            "embedding-fisher": fewkern.GraphEmbedding(n_components=1),
            "embedding-recursive": fewkern.GraphEmbedding(n_components=2, recursive=True),
            "embedding-lpp": fewkern.GraphEmbedding(graph="lpp", n_components=2),
            "embedding-lfda": fewkern.GraphEmbedding(graph="lfda", n_components=2),
            "embedding-udp-kernel": fewkern.GraphEmbedding(
                graph="udp", kernel=Gaussian(2.0), max_vectors=20, n_components=2
            ),
            "density-classifier": fewkern.DensityClassifier(),
        }.items():
            yield Case(f"{label}/{data}", model, data)
            if not label.startswith(("sparse-fisher-", "embedding-l", "embedding-u")):
                yield Case(f"{label}/{data}/weights", model, data, {"sample_weight": True})
    for label, model in {
        "regressor": fewkern.FeatureVectorRegressor(**few),
        "regressor-auto": fewkern.FeatureVectorRegressor(prefer="accurate"),
        "recursive-svm-regression": fewkern.RecursiveSVM(epsilon=0.1, n_components=2),
        "selector": fewkern.FeatureVectorSelector(max_vectors=10),
        "selector-greedy": fewkern.FeatureVectorSelector(max_vectors=10, rule="greedy"),
        "selector-random": fewkern.FeatureVectorSelector(max_vectors=10, rule="random", projection="symmetric"),
        "selector-uniform": fewkern.FeatureVectorSelector(max_vectors=10, rule="uniform", projection="raw"),
        "selector-fitness": fewkern.FeatureVectorSelector(kernel=Polynomial(degree=2), max_fitness=0.99),
        "pca": fewkern.FeatureVectorPCA(n_components=3, max_vectors=15),
        "embedding-pca": fewkern.GraphEmbedding(graph="pca", n_components=2),
        "parzen": fewkern.ParzenDensity(),
        "forward-density-default": fewkern.ForwardDensity(),
        "forward-density-paper": fewkern.ForwardConstrainedDensity(),
        "forward-density-ml": fewkern.ForwardDensity(cv=None),
        "reduced-set": fewkern.ReducedSetDensity(),
        "orthogonal": fewkern.OrthogonalForwardDensity(),
        "orthogonal-distribution": fewkern.OrthogonalForwardDensity(target="distribution"),
    }.items():
        yield Case(f"{label}/real", model, "real")
        if label not in {"regressor-auto", "orthogonal-distribution"}:
            yield Case(f"{label}/real/weights", model, "real", {"sample_weight": True})
    moved = {
        "regressor": (fewkern.FeatureVectorRegressor(**few), "real"),
        "discriminant": (fewkern.FeatureVectorDiscriminant(**few), "three"),
        "selector": (fewkern.FeatureVectorSelector(max_vectors=10), "real"),
        "pca": (fewkern.FeatureVectorPCA(n_components=3, max_vectors=15), "real"),
        "sparse-fisher": (fewkern.SparseKernelFisher(alpha=0.05), "three"),
        "forward-fisher": (fewkern.ForwardKernelFisher(n_vectors=6), "two"),
        "recursive-svm": (fewkern.RecursiveSVM(n_components=2), "two"),
        "soft-margin": (fewkern.RecursiveSoftMargin(n_components=2), "three"),
        "embedding-fisher": (fewkern.GraphEmbedding(n_components=1), "three"),
        "forward-density": (fewkern.ForwardDensity(), "real"),
        "parzen": (fewkern.ParzenDensity(), "real"),
    }
    for label, (model, data) in moved.items():
        yield Case(f"{label}/{data}/float32", model, data, dtype="float32")
        yield Case(f"{label}/{data}/strict", model, data, library="array_api_strict")
        yield Case(f"{label}/{data}/torch", model, data, library="torch")


def converter(library: str) -> Callable[[Any], Any] | None:
    """From NumPy to a library; None where that is not installed."""
    if library == "numpy":
        return lambda x: x
    try:
        return __import__(library).asarray
    except ImportError:
        return None


def run(case: Case) -> dict[str, np.ndarray] | None:
    """Fit the case; its expansion and its answers as NumPy arrays, None where its library is missing."""
    from sklearn.base import clone

    to = converter(case.library)
    if to is None:
        return None
    X, y, weights, new = table(case.data)
    X, new = to(X.astype(case.dtype)), to(new.astype(case.dtype))
    if case.library != "numpy":  # other libraries have no strings
        y = to(np.unique(y, return_inverse=True)[1] if y.dtype.kind == "U" else y)
    fit = {"sample_weight": weights} if case.fit else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(case.model).fit(X, y, **fit)
        found = {method: to_numpy(getattr(model, method)(new)) for method in METHODS if hasattr(model, method)}
    for i, part in enumerate(getattr(model, "densities_", (model,))):
        for name, value in _kept(part):
            found[f"{name}{i}"] = value
    return found


def _kept(model: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a fitted expansion, of a mixture, or of the basis of a selector."""
    value = getattr(model, "expansion_", None) or model.basis_
    for name in ("vectors", "coef", "offset", "weights", "bandwidths", "factor"):
        array = getattr(value, name, None)
        if array is not None:
            # the record calls bandwidths widths
            yield name.removeprefix("band"), to_numpy(array.toarray() if is_sparse(array) else array)
