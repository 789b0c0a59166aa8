"""scikit-learn's own checks, on every public estimator."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.checks.everyone import public_estimators

# with parameters of their own where the default would only be slow
SETTINGS = {"ForwardKernelFisher": {"n_vectors": 5}}
ESTIMATORS = [cls(**SETTINGS.get(name, {})) for name, cls in public_estimators().items()]

# estimator name -> {check: why it fails}. Every entry is a statement about the method and its automatic choice;
# with settings that are given, tests/checks/test_weights.py asks for more.
_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
_DRAWS = "the draws and the median width look at rows, so a repeated row is not a row of weight two"
_LOO = "leave-one-out leaves a weighted sample out as a whole, and one copy of a repeated sample at a time"
_FOLDS = "rows held out choose the model, and copies of a row fall into several folds"
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "FeatureVectorSelector": dict.fromkeys(_WEIGHTS, _DRAWS),
    "FeatureVectorPCA": dict.fromkeys(_WEIGHTS, _DRAWS),
    "FeatureVectorRegressor": dict.fromkeys(_WEIGHTS, _LOO),
    "FeatureVectorDiscriminant": dict.fromkeys(_WEIGHTS, _LOO),
    "DensityClassifier": dict.fromkeys(_WEIGHTS, _LOO),
    "SparseKernelFisher": dict.fromkeys(_WEIGHTS, _LOO),
    "ForwardKernelFisher": dict.fromkeys(_WEIGHTS, _LOO),
    "KernelClassifier": dict.fromkeys(_WEIGHTS, _FOLDS),
    "KernelRegressor": dict.fromkeys(_WEIGHTS, _FOLDS),
}


# For all estimators; these run only where SCIPY_ARRAY_API=1 switches scikit-learn's dispatch on.
_ARRAYS = {
    "check_array_api_same_namespace": "a fitted model goes where the new samples are; scikit-learn asks for an error",
    "check_array_api_mixed_inputs": "labels come back in the library of y; scikit-learn asks for that of X",
}


def _cases():
    for estimator in ESTIMATORS:
        reasons = {**_ARRAYS, **EXPECTED_FAILURES.get(type(estimator).__name__, {})}
        for instance, check in estimator_checks_generator(estimator, legacy=True):
            name = check.func.__name__
            marks = pytest.mark.xfail(reason=reasons[name], strict=name in _WEIGHTS) if name in reasons else ()
            yield pytest.param(instance, check, id=f"{type(estimator).__name__}-{name}", marks=marks)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*the midpoint rule is used:UserWarning")  # labels that say nothing of the samples
@pytest.mark.parametrize(("estimator", "check"), list(_cases()))
def test_scikit_learn_check(estimator, check):
    try:
        check(estimator)
    except ImportError as error:
        # scikit-learn 1.6 wants to dispatch arrays where SciPy is too old for it
        if "SciPy must be" not in str(error):
            raise
        pytest.skip(str(error))
