"""A part of ``python -m tests.hostile``, and proof that it can find something."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from fewkern import FeatureVectorPCA, ParzenDensity
from tests.checks.everyone import ALL, every
from tests.hostile.inputs import CASES, KERNEL_CASES
from tests.hostile.run import Trial, run

# These get all cases; the others, whose fits take longer, those that once went wrong.
QUICK = {
    "FeatureVectorPCA",
    "FeatureVectorSelector",
    "ForwardConstrainedDensity",
    "GraphEmbedding",
    "OrthogonalForwardDensity",
    "ParzenDensity",
    "RecursiveSVM",
}
ONCE_WRONG = (
    "two samples",
    "scale 1e200",
    "denormal numbers",
    "float32 of scale 1e30",
    "asked 1e160 times as far",
    "target 1e300",
    "one class",
    "one weight 1e-300",
    "all weights 1e-300",
    "weights from 1e-300 to 1e300",
    "weights of text",
    "wide, rank one",
    "labels as objects",
    "NaN",
    "text",
    "sparse, 2^31 columns",
    "sparse labels",
)
KERNELS_ONCE_WRONG = (
    "kernel function as_lists",
    "kernel function dividing",
    "kernel function nan_off_the_diagonal",
    "degree 10, asked 1e40 times as far",
    "linear, scale 1e150",
    "Gaussian of width 1e-300",
)


@every(ALL)
def test_hostile_inputs_are_answered_or_refused(model):
    quick = type(model).__name__ in QUICK
    cases = list(CASES if quick else ONCE_WRONG)
    if "kernel" in model.get_params(deep=False):
        cases += KERNEL_CASES if quick else KERNELS_ONCE_WRONG
    found = [run(Trial(model, "", case)) for case in cases]
    assert [f"{one.trial.name}: {one.detail}" for one in found if one.result == "wrong"] == []
    assert {one.result for one in found} >= {"answered", "refused"}


class Careless(ClassifierMixin, BaseEstimator):
    """What no estimator should be."""

    def __init__(self, how="nan"):
        self.how = how

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        if self.how == "type":
            raise ValueError(f"class {self.classes_[0]!r}")
        if self.how == "loud":
            np.ones(2) / np.zeros(2)
        if self.how == "nameless":
            warnings.warn("something happened", UserWarning, stacklevel=2)
        return self

    def predict(self, X):
        return np.full(len(X), np.nan if self.how == "nan" else self.classes_[0])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("nan", "predict is not finite"),
        ("type", "nobody meant this ValueError: class np.int64"),
        ("loud", "RuntimeWarning: divide by zero"),
        ("nameless", "a warning that names nobody: something happened"),
    ],
)
def test_a_careless_estimator_is_found(how, message):
    outcome = run(Trial(Careless(how), "", "plain"))
    assert outcome.result == "wrong"
    assert message in outcome.detail


def test_a_refusal_and_a_warning_are_told_apart():
    assert run(Trial(ParzenDensity(), "", "constant column")).result == "warned"
    assert run(Trial(FeatureVectorPCA(), "", "no features")).result == "refused"
    assert run(Trial(FeatureVectorPCA(), "", "plain")).result == "answered"
