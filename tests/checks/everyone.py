"""Every public estimator, small enough for a test. The list comes from the package: a new estimator is in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import fewkern

# What makes an estimator quick on 40 to 80 samples; none of it is needed.
SETTINGS: dict[str, dict[str, Any]] = {
    "FeatureVectorDiscriminant": {"max_vectors": 12},
    "FeatureVectorPCA": {"n_components": 3, "max_vectors": 10},
    "FeatureVectorRegressor": {"max_vectors": 12},
    "FeatureVectorSelector": {"max_vectors": 10},
    "ForwardKernelFisher": {"max_vectors": 12},
    "GraphEmbedding": {"n_components": 1},
    "KernelClassifier": {"max_vectors": 6},
    "KernelRegressor": {"max_vectors": 6},
    "RecursiveSVM": {"n_components": 1},
    "RecursiveSoftMargin": {"n_components": 1},
    "SparseKernelFisher": {"cv": 2},
}
# These take tables, not arrays; tests/tables is about them.
OF_TABLES = {"TableEncoder", "TableModel"}
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def public_estimators() -> dict[str, type]:
    """Classes in ``fewkern.__all__`` that can be fitted to arrays, by name."""
    found = {name: getattr(fewkern, name) for name in fewkern.__all__ if name not in OF_TABLES}
    return {name: cls for name, cls in found.items() if isinstance(cls, type) and hasattr(cls, "fit")}


ALL = [cls(**SETTINGS.get(name, {})) for name, cls in public_estimators().items()]
CLASSIFIERS = [model for model in ALL if is_classifier(model)]
SUPERVISED = [model for model in ALL if is_classifier(model) or is_regressor(model)]
TRANSFORMERS = [model for model in ALL if hasattr(model, "transform")]
KERNELS = [model for model in ALL if "kernel" in model.get_params(deep=False)]
# Those on feature vectors.
VECTORS = [model for model in ALL if type(model).__name__.startswith("FeatureVector")]


def name(value: Any) -> str | None:
    """Of an estimator, for the name of a test."""
    return type(value).__name__ if hasattr(value, "get_params") else None


def every(models: list[Any]) -> Any:
    """Run a test with each of the models."""
    return pytest.mark.parametrize("model", models, ids=name)


def use(model: Any, X: Any) -> Any:
    """What the model is for: predict, transform, or the density."""
    return next(
        getattr(model, method)(X) for method in ("predict", "transform", "score_samples") if hasattr(model, method)
    )


def outputs(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Everything that a fitted model says of samples."""
    return {method: np.asarray(getattr(model, method)(X)) for method in METHODS if hasattr(model, method)}


def assert_same_outputs(one: Any, other: Any, X: Any, Y: Any = None, tolerance: float = 1e-9) -> None:
    """Both models say the same, of ``X`` and (for the other) of ``Y``."""
    ours, theirs = outputs(one, X), outputs(other, X if Y is None else Y)
    assert ours.keys() == theirs.keys()
    for method, value in ours.items():
        if value.dtype.kind in "fc":
            np.testing.assert_allclose(theirs[method], value, atol=tolerance, err_msg=method)
        else:
            np.testing.assert_array_equal(theirs[method], value, err_msg=method)


def fresh(model: Any, **parameters: Any) -> Any:
    """An unfitted copy with other parameters."""
    return clone(model).set_params(**parameters)
