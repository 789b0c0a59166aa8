"""Samples in large units, far out, far apart, or no numbers at all."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    ForwardDensity,
    KernelExpansion,
    to_c,
    to_onnx,
)
from fewkern.datasets import make_three_gaussians
from fewkern.kernels import Gaussian, Polynomial
from tests.io.running import compiled, run_onnx


@pytest.fixture
def onnx():
    return pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")


def exact(X):
    """Samples that float holds exactly: what then differs is the file's fault."""
    return np.asarray(X, dtype=np.float32).astype(float)


@pytest.mark.parametrize("unit", [1e-18, 1.0, 1e18, 1e25])
def test_units_do_not_matter(onnx, tmp_path, rng, unit):
    X = exact(unit * rng.normal(size=(100, 3)))
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=unit), max_vectors=10, alpha=1e-2).fit(
        X, X[:, 0] / unit
    )
    want = model.predict(X)
    np.testing.assert_allclose(run_onnx(to_onnx(model), X)["variable"][:, 0], want, atol=1e-4)
    np.testing.assert_allclose(compiled(tmp_path, model, "float").write("predict", X, 1)[:, 0], want, atol=1e-4)


@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_units_of_a_density_do_not_matter(onnx, tmp_path, scale):
    X = exact(1e18 * make_three_gaussians(200))
    model = ForwardDensity(scale=scale, max_vectors=8).fit(X)
    want = model.score_samples(X)
    np.testing.assert_allclose(run_onnx(to_onnx(model), X)["log_density"][:, 0], want, atol=1e-3)
    np.testing.assert_allclose(compiled(tmp_path, model, "float").give("log_density", X), want, atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", Polynomial(2), "rbf"])
def test_a_scaler_far_from_the_origin(onnx, tmp_path, rng, kernel):
    X = 16_000_000 + rng.integers(0, 10, (200, 2)).astype(float)
    y = X[:, 0] + X[:, 1] > 32_000_009
    model = make_pipeline(StandardScaler(), FeatureVectorDiscriminant(kernel=kernel, max_vectors=3, alpha=1e-2)).fit(
        X, y
    )
    want = model.predict_proba(X)
    np.testing.assert_allclose(run_onnx(to_onnx(model), X)["probabilities"], want, atol=1e-4)
    np.testing.assert_allclose(compiled(tmp_path, model, "float").write("predict_proba", X, 2), want, atol=1e-4)


def test_one_far_vector_among_many_features(onnx, rng):
    X = exact(rng.normal(size=(150, 20)))
    X[0] = 1e4
    V = X[:30]
    model = KernelExpansion(Gaussian(length_scale=4.0), V, rng.normal(size=(30, 1)), np.zeros(1))
    with pytest.warns(UserWarning, match=r"to_onnx: .* far apart .* dtype=\"double\""):
        proto = to_onnx(model)
    # the others do not suffer from it
    np.testing.assert_allclose(run_onnx(proto, X[1:])["variable"], model(X[1:]), atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double = to_onnx(model, dtype="double")
    np.testing.assert_allclose(run_onnx(double, X, "double")["variable"], model(X), atol=1e-6)


@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_no_number_stays_none_and_far_out_stays_finite(onnx, tmp_path, scale):
    X = make_three_gaussians(200)[:, :2]
    y = X[:, 0] > np.median(X[:, 0])
    density = ForwardDensity(scale=scale, max_vectors=5)
    model = DensityClassifier(estimator=density).fit(X, y)
    single = density.fit(X)
    for dtype in ("float", "double"):
        for part in (model, single):
            folder = tmp_path / f"{dtype}{type(part).__name__}"
            folder.mkdir()
            code = compiled(folder, part, dtype)
            none = np.array([[np.nan, 0.0]])
            far = np.array([[1e20, 1e20], [-1e20, 3e19]])
            if part is model:
                assert np.isnan(code.write("predict_proba", none, 2)).all()
                # beyond the largest square of a float the classes are alike
                near = far * 1e-8
                np.testing.assert_allclose(code.write("predict_proba", near, 2), model.predict_proba(near), atol=1e-3)
                np.testing.assert_allclose(code.write("predict_proba", far, 2).sum(axis=1), 1.0, atol=1e-6)
            else:
                assert np.isnan(code.give("log_density", none)).all()
                assert np.isfinite(code.give("log_density", far)).all()
                assert np.isfinite(run_onnx(to_onnx(part, dtype=dtype), far, dtype)["log_density"]).all()


def test_labels_that_a_file_cannot_hold(onnx, rng):
    X = rng.normal(size=(40, 2))
    large = FeatureVectorDiscriminant(max_vectors=3).fit(
        X, np.where(X[:, 0] > 0, np.uint64(2**63 + 5), np.uint64(2**63 + 7))
    )
    with pytest.raises(ValueError, match="the label 9223372036854775815 does not fit into 64 bits with a sign"):
        to_onnx(large)
    nul = FeatureVectorDiscriminant(max_vectors=3).fit(X, np.where(X[:, 0] > 0, "a\0b", "c"))
    with pytest.raises(ValueError, match=r"to_c: the label 'a\\x00b' holds a NUL"):
        to_c(nul)
