"""scikit-learn's own checks, on every public estimator."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import fewkern

ESTIMATORS = [
    fewkern.FeatureVectorSelector(),
    fewkern.FeatureVectorRegressor(),
    fewkern.FeatureVectorClassifier(),
    fewkern.FeatureVectorDiscriminant(),
    fewkern.FeatureVectorPCA(),
]

# estimator name -> {check: why it fails}. Every entry is a statement about the method, not about our code.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}


def _cases():
    for estimator in ESTIMATORS:
        reasons = EXPECTED_FAILURES.get(type(estimator).__name__, {})
        for instance, check in estimator_checks_generator(estimator, legacy=True):
            name = check.func.__name__
            marks = pytest.mark.xfail(reason=reasons[name]) if name in reasons else ()
            yield pytest.param(instance, check, id=f"{type(estimator).__name__}-{name}", marks=marks)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize(("estimator", "check"), list(_cases()))
def test_scikit_learn_check(estimator, check):
    check(estimator)
