"""Units do not matter: scaling and shifting any column changes no answer of any estimator with an automatic width."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_regressor
from sklearn.datasets import load_wine

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    ForwardKernelFisher,
    KernelClassifier,
    KernelRegressor,
    SparseKernelFisher,
)
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Laplacian
from fewkern.select.paths import units_to_compare
from tests.checks.everyone import ALL, KERNELS, every, fresh, name, outputs

CHANGES = {
    "all": ([1e5, 1e-5, 3.0], [0.0, 0.0, 0.0]),
    "shift": ([1.0, 1.0, 1e5], [1e4, -3.0, 7e5]),
}


def table(seed=3, n=70):
    """Samples of three features with two classes, the third of them without a part in it."""
    X, y = make_banana(n, random_state=seed)
    rng = np.random.default_rng(seed)
    # some zeros: the two units are not proportional, and must be compared
    return np.column_stack([X, np.where(rng.random(n) < 0.8, 0.0, rng.exponential(size=n))]), y


def test_the_samples_leave_a_choice():
    assert len(units_to_compare(Gaussian(), table()[0])) == 2


def automatic(model, kernel="gaussian"):
    """A model with an automatic width where it has a kernel."""
    return fresh(model, **({"kernel": kernel} if model in KERNELS else {}))


def assert_law(model, X, y, factor, shift, tolerance=1e-6):
    factor, shift = np.asarray(factor), np.asarray(shift)
    target = X[:, 0] * X[:, 1] + X[:, 2] if is_regressor(model) else y
    one, other = fresh(model).fit(X, target), fresh(model).fit(X * factor + shift, target)
    new = X[::3] + 0.1
    theirs = outputs(other, new * factor + shift)
    for method, value in outputs(one, new).items():
        if method == "score_samples":  # a density per unit of volume
            value = value - np.sum(np.log(factor))
        if value.dtype.kind == "f":
            scale = max(1.0, float(np.abs(value).max()))
            np.testing.assert_allclose(theirs[method], value, atol=tolerance * scale, err_msg=method)
        else:
            np.testing.assert_array_equal(theirs[method], value, err_msg=method)


DENSITIES = [model for model in ALL if "scale" in model.get_params(deep=False)]
# with the tolerance; rounding errors grow in a search of many steps, and where correlations are removed
LAWS = [(automatic(model), 2e-2 if type(model).__name__.startswith("Kernel") else 1e-6) for model in ALL]
LAWS += [(fresh(model, scale="whiten"), 1e-5) for model in DENSITIES]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("model", "tolerance"), LAWS, ids=name)
def test_units_do_not_matter(model, tolerance, change):
    assert_law(model, *table(), *CHANGES[change], tolerance=tolerance)


@pytest.mark.parametrize(
    "kernel", [Laplacian(), Gaussian("scale"), Gaussian(unit="spread"), Gaussian(unit="range")], ids=repr
)
@every(KERNELS)
def test_nor_with_other_rules_and_kernels(model, kernel):
    assert_law(automatic(model, kernel), *table(), *CHANGES["all"])


@pytest.mark.parametrize("model", [KernelClassifier(n_vectors=4), KernelRegressor(max_vectors=8)], ids=repr)
def test_nor_where_vectors_are_moved(model):
    """Exactly so where nothing is rounded: a search of many steps makes the last digit grow."""
    assert_law(model, *table(n=120), [2.0**17, 2.0**-9, 4.0], [0.0, 0.0, 0.0], tolerance=1e-12)


@given(
    st.integers(0, 5),
    st.lists(st.floats(-12, 12), min_size=3, max_size=3),
    st.lists(st.floats(-9, 9), min_size=3, max_size=3),
)
def test_any_units_of_a_small_model(seed, powers, shifts):
    factor = 10.0 ** np.array(powers)
    model = FeatureVectorPCA(n_components=2, max_vectors=5)
    assert_law(model, *table(seed, n=30), factor, factor * shifts)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_sparse_samples_give_the_same_widths_and_answers(kernel):
    X, y = table()
    X = np.where(X > 0.3, X, 0.0) * [1e5, 1e-5, 1.0]
    model = FeatureVectorDiscriminant(kernel=kernel, max_vectors=5)
    dense, sparse = fresh(model).fit(X, y), fresh(model).fit(sp.csr_array(X), y)
    assert sparse.kernel_.unit == dense.kernel_.unit
    np.testing.assert_allclose(sparse.kernel_.length_scale, dense.kernel_.length_scale, rtol=1e-9)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-6)


def test_one_common_width_is_what_the_papers_have():
    """The law is not the kernel's: with one width for all features it does not hold."""
    model = FeatureVectorDiscriminant(kernel=Gaussian(unit="common"), max_vectors=12)
    with pytest.raises(AssertionError):
        assert_law(model, *table(), *CHANGES["all"])


def test_ridges_that_are_chosen_are_positive():
    """Without a ridge, coefficients of 5e10 once fitted the samples and nothing else."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) * [1.0, 1e5, 1.0, 1.0]
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 1e5 * X[:, 2]
    model = FeatureVectorRegressor(prefer="accurate").fit(X, y)
    assert model.alpha_ >= 1e-6
    assert min(model.path_.axes["alpha"]) == pytest.approx(1e-6)
    assert np.abs(model.expansion_.coef).max() < 1e6
    assert FeatureVectorRegressor(alpha=0.0, max_vectors=5).fit(X, y).path_.axes["alpha"] == (0.0,)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("model", [SparseKernelFisher, ForwardKernelFisher])
def test_nor_with_three_classes_of_few_samples(model, kernel):
    """Columns that forward selection takes in the end must not be chosen by rounding."""
    X, y = load_wine(return_X_y=True)
    X = X[:, :5]
    Z = X * [1e5, 1.0, 1.0, 7.3, 1.0] + [0.0, 0.0, 1e3, 0.0, 0.0]
    one, other = model(kernel=kernel).fit(X, y), model(kernel=kernel).fit(Z, y)
    assert other.n_vectors_ == one.n_vectors_
    np.testing.assert_allclose(other.predict_proba(Z), one.predict_proba(X), atol=1e-6)
