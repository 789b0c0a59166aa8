"""Which estimator a model of a table is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fewkern.density.baselines import OrthogonalForwardDensity, ParzenDensity, ReducedSetDensity
from fewkern.density.forward import ForwardDensity
from fewkern.fisher.forward_fisher import ForwardKernelFisher
from fewkern.fisher.sparse import SparseKernelFisher
from fewkern.learn.classifier import KernelClassifier
from fewkern.learn.regressor import KernelRegressor
from fewkern.margins.graph_embedding import GraphEmbedding
from fewkern.margins.soft_margin import RecursiveSoftMargin
from fewkern.margins.svm import RecursiveSVM
from fewkern.select.discriminant import FeatureVectorDiscriminant
from fewkern.select.regression import FeatureVectorRegressor
from fewkern.select.selector import FeatureVectorPCA
from fewkern.tables.tasks import MODELS

__all__ = ["ESTIMATORS", "build", "check_model"]

ESTIMATORS: dict[tuple[str, str], Callable[..., Any]] = {
    ("classify", "kernel"): KernelClassifier,
    ("classify", "discriminant"): FeatureVectorDiscriminant,
    ("classify", "fisher"): SparseKernelFisher,
    ("classify", "forward-fisher"): ForwardKernelFisher,
    ("regress", "kernel"): KernelRegressor,
    ("regress", "fvs"): FeatureVectorRegressor,
    ("reduce", "pca"): FeatureVectorPCA,
    ("reduce", "embedding"): GraphEmbedding,
    ("reduce", "margins"): RecursiveSVM,
    ("reduce", "soft-margins"): RecursiveSoftMargin,
    ("density", "forward"): ForwardDensity,
    ("density", "parzen"): ParzenDensity,
    ("density", "reduced"): ReducedSetDensity,
    ("density", "orthogonal"): OrthogonalForwardDensity,
}


def check_model(task: str, model: str) -> str:
    """The name of the model of a task; "auto" is the first."""
    known = MODELS[task]
    if model == "auto":
        return known[0]
    if model not in known:
        raise ValueError(f"model: for the task {task!r} expected {', '.join(known)}, got {model!r}.")
    return model


def build(task: str, model: str, asked: dict[str, Any], offered: dict[str, Any], fit: Any = ()) -> Any:
    """An estimator that is not fitted, with all settings ``asked`` for, and those ``offered`` that it has.

    ``fit`` are names of arguments that its method ``fit`` must take.
    """
    made = ESTIMATORS[task, model]
    accepted = inspect.signature(made).parameters
    for name in asked:
        if name not in accepted:
            raise ValueError(f"{name}: the model {model!r} has no such setting (task {task!r}).")
    for name in fit:
        if name not in inspect.signature(made.fit).parameters:  # type: ignore[attr-defined]
            raise ValueError(f"{name}: the model {model!r} takes none (task {task!r}).")
    return made(**{key: value for key, value in offered.items() if key in accepted} | asked)
