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
from fewkern.kernels import Gaussian, Precomputed
from tests.io.running import assert_exported

X, y = make_banana(80)
UNFITTED = [FeatureVectorDiscriminant(), FeatureVectorSelector(), ForwardDensity(), DensityClassifier()]


@pytest.fixture(params=[to_c, to_onnx], ids=["to_c", "to_onnx"])
def export(request):
    if request.param is to_onnx:
        pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    return request.param


class Mine(Gaussian):
    """A kernel of the user's own class."""

    def _block(self, X, Y):
        return super()._block(X, Y) ** 2


def of_kernel(kernel, outputs=1):
    return KernelExpansion(kernel, X[:3], np.ones((3, outputs)), np.zeros(outputs))


def without_components():
    model = FeatureVectorPCA(max_vectors=3).fit(X)
    model.expansion_ = of_kernel(Gaussian(1.0), 0)
    return model


NAMED = {"a": X[:, 0], "b": X[:, 1]}
OURS = "expected a fitted estimator of fewkern, a pipeline that ends in one .*, or an expansion, got"
REFUSED = [
    *((lambda model=model: model, f"this {type(model).__name__} is not fitted; call fit first") for model in UNFITTED),
    (lambda: make_pipeline(StandardScaler(), ForwardDensity()), "this Pipeline is not fitted; call fit first"),
    (SVC, f"{OURS} SVC"),
    (lambda: "model.npz", f"{OURS} str"),
    (lambda: None, f"{OURS} NoneType"),
    (lambda: fisher_path(SparseKernelFisher(), X, y, alphas=[0.1]), f"{OURS} FisherPath"),
    (lambda: make_pipeline(StandardScaler(), SVC()).fit(X, y), f"{OURS} SVC"),
    (lambda: make_pipeline(FeatureVectorSelector(max_vectors=5), SVC()).fit(X, y), f"{OURS} SVC"),
    (lambda: fewkern.TableEncoder().fit(NAMED), "a TableEncoder has no kernels to write; export a model"),
    (
        lambda: make_pipeline(fewkern.TableModel(max_vectors=3, holdout=0)).fit(NAMED, y),
        "a TableModel prepares its rows itself; export it without",
    ),
    (lambda: of_kernel(Precomputed()), "this KernelExpansion has the kernel Precomputed, which has no form outside"),
    (lambda: of_kernel(Mine(1.0)), "the kernel Mine, which has no form outside of Python; fit with one of Gaussian"),
    (lambda: of_kernel(Gaussian("median")), "length_scale='median', a rule in place of a number; use kernel.resolve"),
    (without_components, "this FeatureVectorPCA found no component, so there is nothing to write"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(export, make, message):
    with pytest.raises((ValueError, TypeError, NotFittedError), match=f"{export.__name__}: .*{message}"):
        export(make())


def test_a_type_that_is_none(export):
    with pytest.raises(ValueError, match=f'{export.__name__}: dtype must be "float" or "double", got \'half\''):
        export(of_kernel(Gaussian(1.0)), dtype="half")


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
