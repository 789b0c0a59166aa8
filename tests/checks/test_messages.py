"""What the checks of samples, labels, targets and weights say."""

import numpy as np
import pytest
import scipy.sparse as sp

import fewkern
from fewkern.datasets import make_banana
from tests.checks.everyone import ALL, CLASSIFIERS, SUPERVISED, assert_same_outputs, every, fresh, use

X, Y = make_banana(30, random_state=4)


def message_of(function, *args, **keywords):
    with pytest.raises(ValueError) as caught:
        function(*args, **keywords)
    return str(caught.value)


@every(ALL)
def test_missing_values(model):
    expected = f"{type(model).__name__}: the samples contain NaN or infinity; fill or drop them first, for example with"
    fitted = fresh(model).fit(X, Y)
    for value in (np.nan, np.inf):
        hole = X.copy()
        hole[3, 1] = value
        assert message_of(fresh(model).fit, hole, Y).startswith(expected)
        assert message_of(use, fitted, hole).startswith(expected)
    nothing = X.astype(object)
    nothing[3, 1] = None
    assert message_of(fresh(model).fit, nothing, Y).startswith(expected)


@every(ALL)
def test_no_numbers(model):
    for rows in (np.array([["a", "b"]] * 30), [["a", 1.0]] * 30, [[1.0, 2.0], [1.0]] * 15):
        said = message_of(fresh(model).fit, rows, Y)
        assert said.startswith(f"{type(model).__name__}: X must hold numbers, the same number of them in every row (")
        assert "np." not in said
        assert said.endswith("for example with OneHotEncoder.")


@every(ALL)
def test_sparse_rows_that_are_too_long(model):
    rows = sp.csr_array((np.ones(30), np.zeros(30, dtype=np.int64), np.arange(31)), shape=(30, 2**31))
    said = message_of(fresh(model).fit, rows, Y)
    assert said.startswith(f"{type(model).__name__}: X has 2,147,483,648 columns, and a fit keeps several numbers for")


@every(SUPERVISED)
def test_sparse_targets(model):
    with pytest.raises(
        TypeError, match=f"^{type(model).__name__}: expected y as an array, got a sparse one; pass y.to"
    ):
        fresh(model).fit(X, sp.csr_array(Y[:, None]))


@every(ALL)
def test_whole_numbers_that_no_float_holds(model):
    name, huge = type(model).__name__, X.astype(object)
    huge[3, 1] = -(10**400)
    for said in (message_of(fresh(model).fit, huge, Y), message_of(use, fresh(model).fit(X, Y), huge)):
        assert said.startswith(f"{name}: X must hold numbers, the same number of them in every row (int too large to")
    said = message_of(fresh(model).fit, X, Y, sample_weight=[10**400] * 30)
    assert said == f"{name}: sample_weight must hold one number per sample (int too large to convert to float)."


@pytest.mark.parametrize("model", [fewkern.KernelRegressor(), fewkern.FeatureVectorRegressor()])
def test_targets_that_no_float_holds(model):
    said = message_of(fresh(model).fit, X, np.array([10**400] * 30, dtype=object))
    assert said == f"{type(model).__name__}: y must hold numbers (int too large to convert to float)."


@every(CLASSIFIERS)
def test_classes_as_the_user_wrote_them(model):
    without = np.where(Y == 0, 0.0, 1.0)
    for labels in (np.array([3, 7]), np.array(["a", "b"]), np.array(["a", "b"], dtype=object)):
        first = repr(labels.tolist()[0])
        assert f"y has only one class ({first});" in message_of(fresh(model).fit, X, np.full(30, labels[0]))
        said = message_of(fresh(model).fit, X, labels[Y], without)
        assert f"class {first} has no sample of positive weight" in said


def test_a_class_of_one_object():
    labels = np.array(["a", "b"], dtype=object)[(np.arange(30) == 3).astype(int)]
    assert "class 'b' has fewer than two" in message_of(fewkern.DensityClassifier().fit, X, labels)
    with pytest.warns(UserWarning, match="class 'b' has 1 sample, too few for cross-validation"):
        fewkern.SparseKernelFisher().fit(X, labels)


@every(ALL)
def test_weights_out_of_range(model):
    name = type(model).__name__
    for value in (1e-300, 1e300):
        said = message_of(fresh(model).fit, X, Y, sample_weight=np.full(30, value))
        expected = f"{name}: the largest of sample_weight must lie between 2e-103 and 6e+102, got {value:.0e}; multiply"
        assert said.startswith(expected)
    said = message_of(fresh(model).fit, X, Y, sample_weight=["a"] * 30)
    assert said == f"{name}: sample_weight must hold one number per sample (could not convert string to float: 'a')."
    single = message_of(fresh(model).fit, X.astype(np.float32), Y, sample_weight=np.full(30, 1e20))
    assert "between 1e-13 and 7e+12" in single


@every(ALL)
def test_a_weight_that_is_nothing_beside_the_others_is_zero(model):
    weights, zero = np.ones(30), np.ones(30)
    weights[::7], zero[::7] = 1e-300, 0.0
    assert_same_outputs(
        fresh(model).fit(X, Y, sample_weight=zero), fresh(model).fit(X, Y, sample_weight=weights), X, tolerance=0
    )


def test_targets_out_of_range():
    model = fewkern.FeatureVectorRegressor()
    assert "the largest of y must lie between 1e-140 and 1e+140, got 1e+200" in message_of(model.fit, X, Y * 1e200)
    assert "got 1e-200, so that squared errors are numbers" in message_of(model.fit, X, Y * 1e-200)
    text = np.array(["a", "b"], dtype=object)[Y]
    assert message_of(model.fit, X, text).startswith("FeatureVectorRegressor: y must hold numbers (could not convert")
    np.testing.assert_array_equal(model.fit(X, np.zeros(30)).predict(X), 0.0)


def test_targets_in_any_units():
    model = fewkern.FeatureVectorRegressor(max_vectors=6)
    expected = fresh(model).fit(X, Y.astype(float)).predict(X)
    for factor in (2.0**400, 2.0**-400):
        np.testing.assert_array_equal(fresh(model).fit(X, Y * factor).predict(X), factor * expected)


def test_kernel_values_whose_squares_are_no_numbers():
    for factor, value in ((1e80, r"e\+160"), (1e-80, "e-160")):
        with pytest.raises(
            ValueError, match=rf"kernel Fisher: the largest k\(x, x\) is .*{value}, but must lie between"
        ):
            fewkern.SparseKernelFisher(kernel="linear").fit(X * factor, Y)


def test_densities_out_of_range():
    density = fewkern.ParzenDensity()
    assert 'with scale="std" the samples must differ by numbers between' in message_of(density.fit, X * 1e-310)
    density = fewkern.ParzenDensity(scale="none")
    assert 'use scale="std"' in message_of(density.fit, X * 1e150)
    assert "between 3e-18 and 3e+17" in message_of(density.fit, (X * 1e-30).astype(np.float32))


def test_margins_of_samples_too_long_for_the_arithmetic():
    with pytest.warns(UserWarning, match=r"RecursiveSVM: no direction .* the first problem could not be solved"):
        fitted = fewkern.RecursiveSVM().fit(X * 1e150, Y)
    assert str(fitted.stop_) == "precision"
