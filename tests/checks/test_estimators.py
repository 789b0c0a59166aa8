"""scikit-learn's own checks, on every public estimator."""

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.checks.everyone import every, public_estimators

# with parameters of their own where the default would only be slow
SETTINGS = {
    "ForwardKernelFisher": {"n_vectors": 5},
    "KernelClassifier": {"max_vectors": 6},
    "KernelRegressor": {"max_vectors": 6},
    "SparseKernelFisher": {"alpha": 0.01},
}
ESTIMATORS = [cls(**SETTINGS.get(name, {})) for name, cls in public_estimators().items()]

# estimator name -> {check: why it fails}. Every entry is a statement about the method and its automatic choice;
# with settings that are given, test_weights.py asks for more.
_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
_DRAWS = "the draws and the median width look at rows, so a repeated row is not a row of weight two"
LOO = "leave-one-out leaves a weighted sample out as a whole, and one copy of a repeated sample at a time"
_FOLDS = "rows held out choose the model, and copies of a row fall into several folds"
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    name: dict.fromkeys(_WEIGHTS, reason)
    for reason, names in {
        _DRAWS: ["FeatureVectorSelector", "FeatureVectorPCA"],
        LOO: ["FeatureVectorRegressor", "FeatureVectorDiscriminant", "DensityClassifier"],
        _FOLDS: ["SparseKernelFisher", "ForwardKernelFisher", "KernelClassifier", "KernelRegressor"],
    }.items()
    for name in names
}


def checks(estimator):
    """Pairs of an estimator and a check.

    Without those of array libraries, which run only where SCIPY_ARRAY_API=1 is set (test_common.py has our own), and
    without repetitions of the longest ones: on memory maps and in single precision, which have checks of their own, and
    on sparse matrices beside sparse arrays.
    """
    for instance, check in estimator_checks_generator(estimator, legacy=True):
        again = check.func.__name__.endswith("s_train") and check.keywords.get("readonly_memmap")
        if not again and not check.func.__name__.startswith(("check_array_api", "check_estimator_sparse_matrix")):
            yield instance, check


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
# scikit-learn rounds the samples of estimators that take categories, which makes some rows equal
@pytest.mark.filterwarnings("ignore:.*are copies of others:UserWarning")
@pytest.mark.filterwarnings("ignore:.*the midpoint rule is used:UserWarning")  # labels that say nothing of the samples
@every(ESTIMATORS)
def test_scikit_learn_checks(model):
    expected, wrong, passed = EXPECTED_FAILURES.get(type(model).__name__, {}), [], set()
    for instance, check in checks(model):
        name = check.func.__name__
        try:
            check(instance)
        except SkipTest:
            continue
        except Exception as error:
            error.add_note(f"in {name}")
            if name not in expected:
                wrong.append(error)
        else:
            passed.add(name)
    if wrong:
        raise ExceptionGroup(f"{len(wrong)} checks failed", wrong)
    assert len(passed) > 30
    assert not passed & expected.keys()
