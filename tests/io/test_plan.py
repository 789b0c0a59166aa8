"""What can be exported, and what the errors say."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import fewkern
from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    ForwardDensity,
    KernelExpansion,
    SparseKernelFisher,
    to_c,
    to_onnx,
)
from fewkern.datasets import make_banana
from fewkern.fisher import fisher_path
from fewkern.kernels import Gaussian
from tests.io.running import assert_exported

X, y = make_banana(80)


@pytest.fixture(params=[to_c, to_onnx], ids=["to_c", "to_onnx"])
def export(request):
    if request.param is to_onnx:
        pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    return request.param


@pytest.mark.parametrize(
    "model", [FeatureVectorDiscriminant(), FeatureVectorSelector(), ForwardDensity(), DensityClassifier()]
)
def test_not_fitted(export, model):
    name = type(model).__name__
    with pytest.raises(NotFittedError, match=f"{export.__name__}: this {name} is not fitted; call fit first"):
        export(model)
    with pytest.raises(NotFittedError, match=f"{export.__name__}: this Pipeline is not fitted; call fit first"):
        export(make_pipeline(StandardScaler(), model))


@pytest.mark.parametrize(
    "model", [SVC(), "model.npz", None, fisher_path(SparseKernelFisher(), X, y, alphas=[0.1])], ids=repr
)
def test_not_of_fewkern(export, model):
    message = "expected a fitted estimator of fewkern, a pipeline that ends in one .*, or an expansion, got "
    with pytest.raises(TypeError, match=f"{export.__name__}: {message}{type(model).__name__}"):
        export(model)


def test_an_encoder_has_nothing_to_write(export):
    encoder = fewkern.TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
    with pytest.raises(TypeError, match=f"{export.__name__}: a TableEncoder has no kernels to write; export a model"):
        export(encoder)


def test_a_model_of_a_table_at_the_end_of_a_pipeline(export):
    pd = pytest.importorskip("pandas")
    model = make_pipeline(fewkern.TableModel(max_vectors=3, holdout=0)).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.raises(TypeError, match=f"{export.__name__}: a TableModel prepares its rows itself; export it without"):
        export(model)


def test_kernels_without_a_form(export):
    given = FeatureVectorDiscriminant(kernel="precomputed", max_vectors=3).fit(Gaussian(1.0)(X, X), y)
    message = (
        "has the kernel Precomputed, whose values you compute, so the model does not hold the vectors; fit with one"
    )
    with pytest.raises(
        ValueError, match=f"this FeatureVectorDiscriminant {message} of Gaussian, Laplacian, Polynomial"
    ):
        export(given)
    own = FeatureVectorRegressor(kernel=lambda A, B: A @ B.T, max_vectors=2).fit(X, y)
    with pytest.raises(ValueError, match="the kernel Function, a Python function, which cannot be written in another"):
        export(own)


def test_a_kernel_of_the_users_own_class(export):
    class Mine(Gaussian):
        def _block(self, X, Y):
            return super()._block(X, Y) ** 2

    model = KernelExpansion(Mine(1.0), X[:2], np.ones((2, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="the kernel Mine, which this writer does not know; fit with one of Gaussian"):
        export(model)


def test_a_type_that_is_none(export):
    with pytest.raises(ValueError, match=f'{export.__name__}: dtype must be "float" or "double", got \'half\''):
        export(FeatureVectorDiscriminant(max_vectors=3).fit(X, y), dtype="half")


def test_no_component(export):
    empty = FeatureVectorPCA(max_vectors=3).fit(X)
    empty.expansion_ = KernelExpansion(Gaussian(1.0), X[:3], np.zeros((3, 0)), np.zeros(0))
    with pytest.raises(ValueError, match="this FeatureVectorPCA found no component, so there is nothing to write"):
        export(empty)


def test_cancelling_coefficients_are_a_warning_in_float_only(export):
    near = X[:1] + np.array([[0.0, 0.0], [1e-4, 0.0]])
    steep = KernelExpansion(Gaussian(1.0), near, np.array([[1e5], [-1e5]]), np.zeros(1))
    with pytest.warns(UserWarning, match=r'dtype="float" rounding may change .* because its coefficients cancel'):
        export(steep, dtype="float")
    export(steep, dtype="double")


def test_expansions_of_a_path_the_way_back_of_pca_and_a_constant(tmp_path):
    expansion = fisher_path(SparseKernelFisher(), X, y, alphas=[0.01]).expansions[0]
    pca = FeatureVectorPCA(n_components=2, max_vectors=6, fit_inverse_transform=True).fit(X)
    constant = KernelExpansion(Gaussian(1.0), np.zeros((0, 2)), np.zeros((0, 2)), np.array([3.0, -1.0]))
    for model, samples in ((expansion, X), (pca.inverse_, pca.transform(X)), (constant, X)):
        assert_exported(tmp_path, model, samples, {"double": 1e-10})


def test_pipelines_inside_pipelines(tmp_path):
    inner = make_pipeline(StandardScaler(), MinMaxScaler())
    model = make_pipeline(inner, FeatureVectorRegressor(max_vectors=5, alpha=1e-2)).fit(X, y)
    assert_exported(tmp_path, model, X, {"double": 1e-8})


@pytest.mark.parametrize("before", [[], [FeatureVectorSelector(max_vectors=5)]])
def test_a_pipeline_ends_in_one_of_ours(export, before):
    foreign = make_pipeline(StandardScaler(), *before, SVC()).fit(X, y)
    with pytest.raises(TypeError, match=r"ends in one .*, or an expansion, got SVC"):
        export(foreign)


def test_a_rule_in_place_of_a_number(export):
    expansion = KernelExpansion(Gaussian(length_scale="median"), X[:3], np.ones((3, 1)), np.zeros(1))
    with pytest.raises(ValueError, match=r"length_scale='median', a rule in place of a number; use kernel.resolve"):
        export(expansion)
