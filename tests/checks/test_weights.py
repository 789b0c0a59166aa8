"""A weight is a number of copies: with settings that are given, a sample of weight two is that sample twice."""

from typing import Any

import numpy as np
import pytest

from fewkern import ParzenDensity
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Polynomial
from tests.checks.everyone import ALL, fresh, name, outputs
from tests.checks.test_estimators import LOO

# as many vectors as the feature space has dimensions: whichever are drawn, they span all of it
_ALL = {"kernel": Polynomial(degree=2, gamma=1.0)}
_REGRESSION = {**_ALL, "n_vectors": 6, "alpha": 0.1}
_REDUCER = {"kernel": Gaussian(1.0), "n_components": 1}
_WIDTH = {"bandwidth": 0.5}
# Settings that leave nothing to choose.
FIXED: dict[str, dict[str, Any]] = {
    "FeatureVectorSelector": {"kernel": Gaussian(1.0), "rule": "greedy", "center": False, "max_vectors": 6},
    "FeatureVectorPCA": {**_ALL, "max_vectors": 6},
    "FeatureVectorDiscriminant": _REGRESSION,
    "FeatureVectorRegressor": _REGRESSION,
    "KernelClassifier": {"n_vectors": 3},
    "KernelRegressor": {"n_vectors": 3},
    "SparseKernelFisher": {"kernel": Gaussian(1.0), "alpha": 0.01, "q": 1.0},
    "ForwardKernelFisher": {"kernel": Gaussian(1.0), "n_vectors": 4},
    "RecursiveSVM": _REDUCER,
    "RecursiveSoftMargin": _REDUCER,
    "GraphEmbedding": _REDUCER,
    "ParzenDensity": _WIDTH,
    "ReducedSetDensity": _WIDTH,
    "OrthogonalForwardDensity": _WIDTH,
    "ForwardConstrainedDensity": _WIDTH,
    "ForwardDensity": {**_WIDTH, "cv": None},
    "DensityClassifier": {"estimator": ParzenDensity(**_WIDTH)},
}
MODELS = [fresh(model, **FIXED[type(model).__name__]) for model in ALL]

# What cannot be: estimator -> why. Everything else must hold.
_FOLDS = "rows held out choose the model, and copies of a row fall into several folds"
CANNOT = {
    **dict.fromkeys(["SparseKernelFisher", "ForwardKernelFisher", "KernelClassifier", "KernelRegressor"], _FOLDS),
    "ForwardConstrainedDensity": f"{LOO}: the method chooses every kernel by the score (20)",
    "ForwardDensity": "the number of kernels is chosen for an effective number of samples, 1 / sum(w^2)",
}
# Their probabilities come from held-out values.
CALIBRATED, PROBABILITIES = {"FeatureVectorDiscriminant", "DensityClassifier"}, {"predict_proba", "predict_log_proba"}


def cases():
    for model in MODELS:
        reason = CANNOT.get(type(model).__name__)
        yield pytest.param(model, marks=pytest.mark.xfail(reason=reason, strict=True) if reason else ())


@pytest.mark.parametrize("model", list(cases()), ids=name)
def test_a_weight_is_a_number_of_copies(model):
    for seed in range(4):
        X, y = make_banana(40, random_state=seed)
        copies = np.random.default_rng(seed).integers(0, 4, 40)
        again = np.repeat(np.arange(40), copies)
        ours = outputs(fresh(model).fit(X, y, sample_weight=copies.astype(float)), X)
        theirs = outputs(fresh(model).fit(X[again], y[again]), X)
        for method in ours.keys() - (PROBABILITIES if type(model).__name__ in CALIBRATED else set()):
            one, other = theirs[method], ours[method]
            if method == "transform":  # the sign of an axis is that of the features on the vectors that were drawn
                one, other = np.abs(one), np.abs(other)
            np.testing.assert_allclose(one, other, atol=1e-6, rtol=1e-6, err_msg=method)
