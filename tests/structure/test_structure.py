"""The shape of the package stays what ARCHITECTURE asks for."""

import pytest
from sklearn.base import is_regressor

import fewkern
from fewkern.kernels import Linear
from tests.golden.cases import table
from tests.structure.measure import LONGEST, MOST_PARAMETERS, estimators, functions, own_ancestry, upward_calls

# function -> why it may be longer, or take more parameters
EXCEPTIONS: dict[str, str] = dict.fromkeys(
    [f"app/_commands:{name}" for name in ("fit", "check", "predict", "compress")],
    "the parameters of a command are its options",
) | dict.fromkeys(
    ["compression/compress:compress", "io/c:to_c"], "a public function with keyword options, as a constructor has"
)


@pytest.mark.parametrize("name", list(estimators()))
def test_calls_go_only_downward(name):
    model = estimators()[name]()
    X, y, _, _ = table("real" if is_regressor(model) else "two", 60)
    assert not upward_calls(model, X, y)


def test_an_upward_call_is_seen(monkeypatch):
    """The counter itself can fail: a kernel that calls an estimator."""

    def block(self, X, Y):
        fewkern.FeatureVectorSelector(max_vectors=1)
        return X @ Y.T

    block.__globals__["__name__"] = "fewkern.core.kernels"
    monkeypatch.setattr(Linear, "_block", block)
    try:
        assert upward_calls(fewkern.FeatureVectorSelector(kernel="linear"), *table("real", 20)[:2])
    finally:
        block.__globals__["__name__"] = __name__


def test_no_function_is_too_long_or_takes_too_much():
    found = {
        f"{f.where} ({f.lines} lines, {f.parameters} parameters)"
        for f in functions()
        if (f.lines > LONGEST or f.parameters > MOST_PARAMETERS) and f.where not in EXCEPTIONS
    }
    assert not found


def test_at_most_two_of_our_classes_in_an_ancestry():
    assert {name: count for name, count in own_ancestry().items() if count > 2} == {}
