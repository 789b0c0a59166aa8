"""Bad input gets a clear error or a correct answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

import fewkern
from fewkern import FeatureVectorSelector
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from tests.checks.everyone import (
    ALL,
    CLASSIFIERS,
    METHODS,
    SUPERVISED,
    VECTORS,
    assert_same_outputs,
    every,
    fresh,
    use,
)

CHOOSING = [model for model in VECTORS if model in SUPERVISED]
SELECTOR = FeatureVectorSelector(max_vectors=8)
REGRESSOR = fewkern.FeatureVectorRegressor(max_vectors=8)
DISCRIMINANT = fewkern.FeatureVectorDiscriminant(max_vectors=8)
X, Y = make_banana(40)


def with_entry(value, dtype=float):
    """The samples with another value in one place."""
    changed = X.astype(dtype)
    changed[3, 1] = value
    return changed


LONG = sp.csr_array((np.ones(40), np.zeros(40, dtype=np.int64), np.arange(41)), shape=(40, 2**31))
HOLES = "the samples contain NaN or infinity; fill or drop them first, for example with"
NO_NUMBERS = r"X must hold numbers, the same number of them in every row \((?!.*np\.).*with OneHotEncoder\.$"
HUGE = r"X must hold numbers, the same number of them in every row \(int too large to convert"
WEIGHT = "the largest of sample_weight must lie between 2e-103 and 6e\\+102, got {}; multiply"
# samples, weights, what the message says after the name of the class
BAD = {
    "NaN": (with_entry(np.nan), None, HOLES),
    "infinity": (with_entry(np.inf), None, HOLES),
    "None": (with_entry(None, object), None, HOLES),
    "text": (np.array([["a", "b"]] * 40), None, NO_NUMBERS),
    "mixed": ([["a", 1.0]] * 40, None, NO_NUMBERS),
    "ragged": ([[1.0, 2.0], [1.0]] * 20, None, NO_NUMBERS),
    "too long": (LONG, None, "X has 2,147,483,648 columns, and a fit keeps several numbers for"),
    "huge": (with_entry(-(10**400), object), None, HUGE),
    "huge weights": (X, [10**400] * 40, r"sample_weight must hold one number per sample \(int too large to convert"),
    "text weights": (X, ["a"] * 40, r"sample_weight must hold one number per sample \(could not convert string to fl"),
    "other length": (X, np.ones(39), r"sample_weight must have one number per sample, shape \(40,\), got \(39,\)"),
    "matrix": (X, np.ones((40, 1)), "sample_weight must have one number per sample"),
    "negative": (X, -np.ones(40), "sample_weight must be finite, not negative and not all zero"),
    "all zero": (X, np.zeros(40), "sample_weight must be finite, not negative and not all zero"),
    "NaN weights": (X, np.full(40, np.nan), "sample_weight must be finite"),
    "least": (X, np.full(40, 1e-300), WEIGHT.format("1e-300")),
    "largest": (X, np.full(40, 1e300), WEIGHT.format(r"1e\+300")),
    "single": (X.astype(np.float32), np.full(40, 1e20), "the largest of sample_weight must lie between 1e-13 and 7e"),
}


# To these NaN is a gap.
TABLES = ("KernelClassifier", "KernelRegressor")
INFINITY = r"the samples contain infinity; replace it, or leave a gap \(NaN\)"


@pytest.mark.parametrize("case", BAD)
@every(ALL)
def test_samples_and_weights(model, case):
    rows, weights, message = BAD[case]
    if type(model).__name__ in TABLES and message == HOLES:
        if case != "infinity":
            assert np.isfinite(fresh(model).fit(rows, Y).predict(rows)).all()
            return
        message = INFINITY
    with pytest.raises(ValueError, match=f"^{type(model).__name__}: {message}"):
        fresh(model).fit(rows, Y, sample_weight=weights)


@every(ALL)
def test_samples_of_a_prediction(model):
    fitted = fresh(model).fit(X, Y)
    for case in ("huge",) if type(model).__name__ in TABLES else ("NaN", "huge"):
        with pytest.raises(ValueError, match=f"^{type(model).__name__}: {BAD[case][2]}"):
            use(fitted, BAD[case][0])


@every(ALL)
def test_wrong_types_in_other_array_libraries(model, foreign):
    to, _ = foreign
    for rows, y, message in (
        (X[:, 0], Y, r"expected a 2-D array of samples, got shape \(40,\)"),
        (X + 1j, Y, "complex data is not supported"),
        (X * np.inf, Y, "the samples contain (NaN or )?infinity; "),
        (X[:0], Y[:0], r"expected at least \d sample"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(to(rows), to(y))
    fitted = clone(model).fit(to(X), to(Y))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* was fitted with 2"):
        use(fitted, to(np.zeros((4, 3))))


@every(ALL)
def test_a_weight_that_is_nothing_beside_the_others_is_zero(model):
    weights, zero = np.ones(40), np.ones(40)
    weights[::7], zero[::7] = 1e-300, 0.0
    assert_same_outputs(
        fresh(model).fit(X, Y, sample_weight=zero), fresh(model).fit(X, Y, sample_weight=weights), X, tolerance=0
    )


@every(ALL)
def test_not_fitted(model):
    for method in (*METHODS, "inverse_transform"):
        if hasattr(model, method):
            with pytest.raises(NotFittedError, match=f"This {type(model).__name__} instance is not fitted yet"):
                getattr(clone(model), method)(np.zeros((2, 2)))


@every(SUPERVISED)
def test_target_that_does_not_fit(model):
    with pytest.raises(ValueError, match="X has 40 samples but y has 39"):
        clone(model).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        clone(model).fit(X, None)
    sparse = f"^{type(model).__name__}: expected y as an array, got a sparse one; pass y.to"
    with pytest.raises(TypeError, match=sparse):
        fresh(model).fit(X, sp.csr_array(Y[:, None]))


@every(CLASSIFIERS)
def test_labels(model):
    labels = np.array(["a", "b"], dtype=object)[Y]
    for missing in (None, np.nan):
        labels[2] = missing
        with pytest.raises(
            ValueError, match=r"y has missing labels \(None, NaN or infinity\); drop those samples first"
        ):
            clone(model).fit(X, labels)
    labels[2] = 3
    with pytest.raises(ValueError, match="y must hold labels of one kind, all text or all numbers"):
        clone(model).fit(X, labels)
    for labels in (np.array([3, 7]), np.array(["a", "b"]), np.array(["a", "b"], dtype=object)):
        first = repr(labels.tolist()[0])
        with pytest.raises(ValueError, match=rf"y has only one class \({first}\);"):
            clone(model).fit(X, np.full(40, labels[0]))
        with pytest.raises(ValueError, match=f"class {first} has no sample of positive weight"):
            clone(model).fit(X, labels[Y], np.where(Y == 0, 0.0, 1.0))


def test_a_class_of_one_object():
    labels = np.array(["a", "b"], dtype=object)[(np.arange(40) == 3).astype(int)]
    with pytest.raises(ValueError, match="class 'b' has fewer than two"):
        fewkern.DensityClassifier().fit(X, labels)
    with pytest.warns(UserWarning, match="class 'b' has 1 sample, too few for cross-validation"):
        fewkern.SparseKernelFisher().fit(X, labels)


# Numbers whose squares overflow or vanish, and targets of the wrong kind.
SINGLE = (X * 1e-30).astype(np.float32)
BEYOND = [
    (REGRESSOR, X, np.array(["a", "b"])[Y], "not compatible with arrays of bytes/strings"),
    (REGRESSOR, X, np.array(["a", "b"], dtype=object)[Y], r"Regressor: y must hold numbers \(could not convert"),
    (REGRESSOR, X, np.array([10**400] * 40, dtype=object), r"Regressor: y must hold numbers \(int too large to"),
    (fewkern.KernelRegressor(), X, np.array([10**400] * 40, dtype=object), r"y must hold numbers \(int too large to"),
    (REGRESSOR, X, Y * 1e200, r"the largest of y must lie between 1e-140 and 1e\+140, got 1e\+200"),
    (REGRESSOR, X, Y * 1e-200, "got 1e-200, so that squared errors are numbers"),
    (DISCRIMINANT, X, np.column_stack([Y, 1 - Y]), r"one label per sample|multilabel|Unknown label type"),
    (fewkern.SparseKernelFisher(kernel="linear"), X * 1e80, Y, r"kernel Fisher: the largest k\(x, x\) is .*e\+160, bu"),
    (fewkern.SparseKernelFisher(kernel="linear"), X * 1e-80, Y, r"largest k\(x, x\) is .*e-160, but must lie between"),
    (fewkern.ParzenDensity(), X * 1e-310, None, 'with scale="std" the spreads of the features must lie between'),
    (fewkern.ParzenDensity(scale="none"), X * 1e150, None, 'use scale="std"'),
    (fewkern.ParzenDensity(scale="none"), SINGLE, None, r"between 3e-18 and 3e\+17"),
    (FeatureVectorSelector(center=True), np.ones((10, 2)), None, "use another kernel, or center=False"),
]


@pytest.mark.parametrize(("model", "rows", "y", "message"), BEYOND, ids=range(len(BEYOND)))
def test_numbers_of_one_model(model, rows, y, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(rows, y)


def test_margins_of_samples_too_long_for_the_arithmetic():
    with pytest.warns(UserWarning, match=r"RecursiveSVM: no direction .* the first problem could not be solved"):
        fitted = fewkern.RecursiveSVM().fit(X * 1e150, Y)
    assert fitted.stop_ == "precision"


def test_targets_in_any_units():
    expected = fresh(REGRESSOR).fit(X, Y.astype(float)).predict(X)
    for factor in (0.0, 2.0**400, 2.0**-400):
        np.testing.assert_array_equal(fresh(REGRESSOR).fit(X, Y * factor).predict(X), factor * expected)


@every(VECTORS)
def test_constant_features(model):
    """One column without spread changes nothing; nothing but constants leaves the constant answer."""
    wide = np.column_stack([X, np.full(40, 5.0)])
    plain, more = (fresh(model, kernel=Gaussian(length_scale=1.0)).fit(A, Y) for A in (X, wide))
    np.testing.assert_allclose(use(more, wide), use(plain, X), atol=1e-6)
    constant = np.full((40, 3), 0.3)
    fitted = clone(model).fit(constant, Y)
    if is_regressor(model):
        np.testing.assert_allclose(fitted.predict(constant), Y.mean())
    elif is_classifier(model):
        np.testing.assert_allclose(fitted.predict_proba(constant)[0], [0.5, 0.5], atol=1e-3)
    else:
        assert np.all(np.isfinite(fitted.transform(constant)))


@every(VECTORS)
def test_duplicated_rows(model):
    rows, y = np.repeat(X[:10], 8, axis=0), np.repeat(Y[:10], 8)
    fitted = fresh(model, max_vectors=60, kernel=Gaussian(length_scale=1.0)).fit(rows, y)
    assert len(np.unique(rows[fitted.indices_], axis=0)) == fitted.n_vectors_ <= 10
    assert np.all(np.isfinite(use(fitted, rows)))


@every(VECTORS)
def test_zero_kernel_diagonal(model):
    rows, y = np.zeros((10, 2)), np.arange(10) % 2
    with pytest.raises(ValueError, match=r"every sample is a zero vector of the kernel \(k\(x, x\) = 0\)"):
        fresh(model, kernel="linear").fit(rows, y)
    rows[:4] = np.eye(2)[[0, 1, 0, 1]]
    fitted = fresh(model, kernel="linear").fit(rows, y)
    assert set(fitted.indices_.tolist()) <= {0, 1, 2, 3}
    assert np.all(np.isfinite(use(fitted, rows)))


@every(CHOOSING)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_two_or_a_few_samples_are_enough(model, n):
    fitted = fresh(model, max_vectors=None).fit(X[:n], np.arange(n) % 2)
    assert np.all(np.isfinite(fitted.predict(X)))


@pytest.mark.parametrize(
    ("model", "parameter", "values"),
    [
        (SELECTOR, "max_vectors", (0, 2.5)),
        (SELECTOR, "max_fitness", (0.0, 1.1)),
        (SELECTOR, "center", (-1, "yes")),
        (SELECTOR, "projection", ("flat",)),
        (REGRESSOR, "alpha", (-1.0,)),
        (REGRESSOR, "prefer", ("cheap",)),
        (DISCRIMINANT, "class_weight", ("even",)),
        (DISCRIMINANT, "n_components", (0,)),
    ],
)
def test_parameters_of_one_model(model, parameter, values):
    for value in values:
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {type(model).__name__} must be"):
            fresh(model, **{parameter: value}).fit(X, Y)


@every(VECTORS)
def test_precomputed_kernel_that_is_none(model, rng):
    A = rng.standard_normal((40, 40))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        fresh(model, kernel="precomputed").fit(A + A.T, Y)
    K = Gaussian(1.0)(X, X)
    fitted = fresh(model, kernel="precomputed").fit(K, Y)
    with pytest.raises(ValueError, match=r"X has 39 features, but .* is expecting 40 features"):
        use(fitted, K[:3, :39])
