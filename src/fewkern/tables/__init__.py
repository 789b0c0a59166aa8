"""Models of raw tables: the tasks, their models, and the estimator of each; the modules read, encode, fit and judge.

Nothing heavy is imported before an estimator is built: the command line shows the names in its help.
"""

from __future__ import annotations

import inspect
from typing import Any

# task -> its models, of which the first is the default -> the estimator in fewkern
MODELS: dict[str, dict[str, str]] = {
    "classify": {
        "kernel": "KernelClassifier",
        "discriminant": "FeatureVectorDiscriminant",
        "fisher": "SparseKernelFisher",
        "forward-fisher": "ForwardKernelFisher",
    },
    "regress": {"kernel": "KernelRegressor", "fvs": "FeatureVectorRegressor"},
    "reduce": {
        "pca": "FeatureVectorPCA",
        "embedding": "GraphEmbedding",
        "margins": "RecursiveSVM",
        "soft-margins": "RecursiveSoftMargin",
    },
    "density": {
        "forward": "ForwardDensity",
        "parzen": "ParzenDensity",
        "reduced": "ReducedSetDensity",
        "orthogonal": "OrthogonalForwardDensity",
    },
}
TASKS = tuple(MODELS)
# Reducers that look at a target.
BY_CLASS = ("embedding", "margins", "soft-margins")


def check_model(task: str, model: str) -> str:
    """The name of the model of a task; "auto" is the first."""
    known = list(MODELS[task])
    if model == "auto":
        return known[0]
    if model not in known:
        raise ValueError(f"model: for the task {task!r} expected {', '.join(known)}, got {model!r}.")
    return model


def build(task: str, model: str, asked: dict[str, Any], offered: dict[str, Any], fit: Any = ()) -> Any:
    """An estimator that is not fitted, with all settings ``asked`` for, and those ``offered`` that it has.

    ``fit`` are names of arguments that its method ``fit`` must take.
    """
    import fewkern

    made = getattr(fewkern, MODELS[task][model])
    accepted = inspect.signature(made).parameters
    for name in asked:
        if name not in accepted:
            raise ValueError(f"{name}: the model {model!r} has no such setting (task {task!r}).")
    for name in fit:
        if name not in inspect.signature(made.fit).parameters:
            raise ValueError(f"{name}: the model {model!r} takes none (task {task!r}).")
    return made(**{key: value for key, value in offered.items() if key in accepted} | asked)
