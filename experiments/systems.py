"""The systems of the papers, as the experiments build them: the only module here that knows estimators' parameters.

Settings in ``tables`` have names of their own, so that renaming a parameter of an estimator changes this file and no
stored result. ``VERSIONS`` says which results still belong to the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    GraphEmbedding,
    KernelBasis,
    RecursiveSoftMargin,
    RecursiveSVM,
    graphs,
)
from fewkern.kernels import Gaussian
from fewkern.margins.soft import ListedPairs, RankedPairs

__all__ = [
    "VERSIONS",
    "TwoClasses",
    "automatic_classifier",
    "basis_of",
    "embedding",
    "fisher_embedding",
    "fvs_classifier",
    "fvs_discriminant",
    "fvs_regressor",
    "fvs_selector",
    "polynomial_discriminant",
    "recursive_svm",
    "soft_margin",
]

# Raise a number when a change of the code changes what a system returns. Units of the next run are then new, and the
# pages mark results of an earlier number until they have been run again. A table names the systems that it uses.
VERSIONS: dict[str, int] = {
    "feature vectors": 1,  # FVS: selection, regression, discriminant, the automatic choices
    "kernel fisher": 1,  # KFD: kFDA_q and its path
    "forward fisher": 1,  # KFD: kFDA_OLS
    "recursive svm": 1,
    "graph embedding": 1,  # RSM: PCA, FDA, recursive FDA, LPP, UDP
    "soft margin": 3,  # RSM: 2, the concave-convex steps end elsewhere for large weights delta; 3, ties are turned
    "densities": 2,  # FCR: 2, folds dealt in turn, FCR-ML by held-out likelihood, other counts in Table I
    "density samples": 2,  # FCR: 2, draws of the two densities come from NumPy's Generator
}


def _paper_gaussian(sigma: float) -> Gaussian:
    """exp(-|x - y|^2 / sigma^2), as the FVS paper writes it."""
    return Gaussian(length_scale=sigma / np.sqrt(2))


class TwoClasses:
    """FVS-LR as a classifier: the regression on -1 and 1, and its sign."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: Any) -> TwoClasses:
        self.classes_ = np.unique(y)
        self.regressor.fit(X, np.where(y == self.classes_[1], 1.0, -1.0))
        return self

    def decision_function(self, X: Any) -> Any:
        return self.regressor.predict(X)

    def score(self, X: Any, y: Any) -> float:
        return float(np.mean(self.classes_[(self.decision_function(X) > 0).astype(int)] == y))


def fvs_classifier(sigma: float, vectors: int) -> TwoClasses:
    """FVS-LR for classes, as :func:`fvs_regressor`."""
    return TwoClasses(fvs_regressor(_paper_gaussian(sigma), vectors))


def basis_of(model: Any) -> KernelBasis:
    """The chosen vectors of a system."""
    model = model.regressor if isinstance(model, TwoClasses) else model
    found: KernelBasis = model[0].basis_ if isinstance(model, Pipeline) else model.basis_
    return found


def fvs_regressor(kernel: Any, vectors: int) -> Pipeline:
    """FVS-LR as the paper has it: its rule, centered at the nearest sample, no ridge, all vectors asked for."""
    return make_pipeline(_selector(kernel, vectors), LinearRegression())


def fvs_discriminant(sigma: float, vectors: int) -> Pipeline:
    """FVS-LDA with a Gaussian kernel: the discriminant on the features of the vectors."""
    axes = FeatureVectorDiscriminant(kernel="linear", n_vectors=vectors, alpha=0.0)
    return make_pipeline(_selector(_paper_gaussian(sigma), vectors), axes)


def polynomial_discriminant(kernel: Any) -> FeatureVectorDiscriminant:
    """FVS-LDA with as many vectors as the feature space of ``kernel`` has dimensions, not centered."""
    return FeatureVectorDiscriminant(kernel=kernel, alpha=0.0, n_vectors=100)


def fvs_selector(sigma: float, vectors: int) -> FeatureVectorSelector:
    """The selection alone."""
    return _selector(_paper_gaussian(sigma), vectors)


def _selector(kernel: Any, vectors: int) -> FeatureVectorSelector:
    return FeatureVectorSelector(kernel=kernel, max_vectors=vectors, rule="greedy", center=True)


def automatic_classifier(prefer: str = "balanced") -> TwoClasses:
    """Everything chosen by leave-one-out."""
    return TwoClasses(FeatureVectorRegressor(kernel=Gaussian(unit="common"), prefer=prefer))


def recursive_svm(C: float, components: int, sigma: float | None = None) -> RecursiveSVM:
    """Linear, or with the kernel exp(-|x - y|^2 / sigma) of the benchmark."""
    if sigma is None:
        return RecursiveSVM(C=C, n_components=components)
    kernel = Gaussian(length_scale=float(np.sqrt(sigma / 2)))
    # all samples in the basis, as in the paper, not 500 of them: no set has as many as this
    return RecursiveSVM(kernel=kernel, C=C, n_components=components, max_vectors=1_000_000)


@dataclass(eq=False)
class _FisherAgainstTotal(graphs.GraphRule):
    """Between-class scatter over total scatter."""

    supervised = True

    def build(self, Z: Any, samples: Any) -> graphs.GraphPair:
        weights = samples.weights
        total = graphs.AllPairs(1.0 / float(np.sum(weights)), weights)
        return graphs.GraphPair(total, graphs.Fisher().build(Z, samples).penalty)


class _UnitDirections(GraphEmbedding):
    """Directions of length one."""

    def transform(self, X: Any) -> Any:
        return super().transform(X) / np.linalg.norm(self.components_, axis=1)


def embedding(
    method: str, dimension: int | None = None, neighbours: int | None = None, rho: float | None = None
) -> GraphEmbedding:
    """The baselines of the RSM paper on its faces; neighbourhoods and ridge, which it does not print, may be given."""
    if method == "fda":
        return GraphEmbedding(graph=_FisherAgainstTotal(), alpha=0.0)
    if method == "lpp":
        return _UnitDirections(
            graph=graphs.LPP(neighbours or 3), alpha=1e-8 if rho is None else rho, n_components=dimension
        )
    options: dict[str, dict[str, Any]] = {
        "pca": {"graph": "pca"},
        "rfda": {"recursive": True, "alpha": 1e-8},
        "udp": {"graph": graphs.UDP(neighbours or 1), "alpha": 1.0 if rho is None else rho},
    }
    return GraphEmbedding(**options[method], n_components=dimension)


def fisher_embedding(dimension: int, *, recursive: bool) -> GraphEmbedding:
    """FDA and recursive FDA with the library's own ridge."""
    return GraphEmbedding(recursive=recursive, n_components=dimension)


class _EarlyStop(RecursiveSoftMargin):
    """Ends a direction at a step that gains less than ``stop`` of ``J(0) - J``, as the independent implementation."""

    stop = 1e-5

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RecursiveSoftMargin:
        with patch.object(ListedPairs, "gain_rtol", self.stop), patch.object(RankedPairs, "gain_rtol", self.stop):
            return super().fit(X, y, sample_weight)


def soft_margin(
    dimension: int, *, neighbours: int | None = None, kernel: Any = "linear", stop: float | None = None, **settings: Any
) -> RecursiveSoftMargin:
    """RSM/FDA, or RSM/UDP where a number of neighbours is given; ``settings`` are ridge, weight and metric."""
    names = {"rho": "alpha", "delta": "C", "delta_rel": "C", "metric": "metric"}
    options = {names[name]: value for name, value in settings.items()}
    if "delta" in settings:  # the weight of the hinges as the paper gives it, the same for all directions
        options["scale_C"] = False
    graph = graphs.Fisher() if neighbours is None else graphs.UDP(neighbours)
    if stop not in (None, _EarlyStop.stop):
        raise ValueError(f"soft_margin: stop is {_EarlyStop.stop} or not given, got {stop!r}.")
    system = RecursiveSoftMargin if stop is None else _EarlyStop
    return system(graph=graph, kernel=kernel, n_components=dimension, **options)
