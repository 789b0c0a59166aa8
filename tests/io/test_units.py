"""Samples in large units, far out, far apart, or no numbers at all."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    ForwardDensity,
    KernelExpansion,
    to_onnx,
)
from fewkern.datasets import make_banana, make_sinc, make_three_gaussians
from fewkern.kernels import Gaussian, Polynomial
from tests.io.running import assert_exported, run_onnx, run_sanitized


def exact(X):
    """Samples that float holds exactly: what then differs is the file's fault."""
    return np.asarray(X, dtype=np.float32).astype(float)


@pytest.mark.parametrize("unit", [1e-18, 1.0, 1e18, 1e25])
def test_units_do_not_matter(tmp_path, rng, unit):
    X = exact(unit * rng.normal(size=(100, 3)))
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=unit), max_vectors=10, alpha=1e-2)
    assert_exported(tmp_path, model.fit(X, X[:, 0] / unit), X, {"float": 3e-5})


@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_units_of_a_density_do_not_matter(tmp_path, scale):
    X = exact(1e18 * make_three_gaussians(200))
    assert_exported(tmp_path, ForwardDensity(scale=scale, max_vectors=8).fit(X), X, {"float": 1e-5})


@pytest.mark.parametrize("d", [2, 40])
def test_far_from_the_origin_float_is_as_good_as_its_input(tmp_path, d, rng):
    """Few features are subtracted one by one, many in ONNX through a matrix product; neither loses the distances."""
    X = exact(rng.standard_normal((100, d)) + 1e4 * rng.standard_normal(d))
    y = np.sin(X[:, 0] - X[:, 0].mean())
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=2.0 * d**0.5), max_vectors=10, alpha=1e-1).fit(X, y)
    assert_exported(tmp_path, model, X, {"float": 1e-4})


@pytest.mark.parametrize("kernel", ["linear", Polynomial(2), "rbf"])
def test_a_scaler_far_from_the_origin(tmp_path, rng, kernel):
    X = 16_000_000 + rng.integers(0, 10, (200, 2)).astype(float)
    y = X[:, 0] + X[:, 1] > 32_000_009
    model = make_pipeline(StandardScaler(), FeatureVectorDiscriminant(kernel=kernel, max_vectors=3, alpha=1e-2))
    assert_exported(tmp_path, model.fit(X, y), X, {"float": 1e-4})


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "poly", "linear", "linear_spline"])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 2)), MaxAbsScaler(), RobustScaler()])
def test_scalers_before_the_model_are_part_of_the_file(scaler, kernel, tmp_path):
    X, y = make_sinc(80, noise=0.1)
    X = np.concatenate([300 + 20 * X, np.cos(X)], axis=1)
    estimator = FeatureVectorRegressor(kernel=kernel, max_vectors=4, alpha=1e-3)
    model = make_pipeline(scaler, "passthrough", StandardScaler(with_std=False), estimator).fit(X, y)
    assert_exported(tmp_path, model, X, {"double": 1e-10})


def test_one_far_vector_among_many_features(rng):
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    X = exact(rng.normal(size=(150, 20)))
    X[0] = 1e4
    model = KernelExpansion(Gaussian(length_scale=4.0), X[:30], rng.normal(size=(30, 1)), np.zeros(1))
    with pytest.warns(UserWarning, match=r"to_onnx: .* far apart .* dtype=\"double\""):
        proto = to_onnx(model)
    # the others do not suffer from it
    np.testing.assert_allclose(run_onnx(proto, X[1:])["variable"], model(X[1:]), atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double = to_onnx(model, dtype="double")
    np.testing.assert_allclose(run_onnx(double, X, "double")["variable"], model(X), atol=1e-6)


@pytest.mark.parametrize(("d", "scale"), [(2, "std"), (2, "whiten"), (40, "std")])
def test_a_density_is_finite_wherever_its_samples_are(tmp_path, d, scale, rng):
    # correlated, so that whitening subtracts numbers that overflow
    X = make_banana(60)[0] @ np.array([[0.1, 0.09], [0.0, 0.05]]) if d == 2 else rng.standard_normal((60, d))
    # in every direction, also towards the vectors: products of opposite signs overflow to infinity minus infinity
    far = np.concatenate([1e9 * np.eye(1, d), 1e300 * np.ones((1, d)), 1.5e308 * np.sign(X - X.mean(axis=0))])
    density = ForwardDensity(bandwidth=0.4 if d == 2 else 1.0, scale=scale).fit(X)
    both = run_sanitized(tmp_path, density, far, "double"), run_onnx(to_onnx(density, dtype="double"), far, "double")
    for found in both:
        assert np.all(np.isfinite(found["log_density"]))
        np.testing.assert_allclose(found["log_density"][0, 0], density.score_samples(far[:1])[0], rtol=1e-9)
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=1.0), max_vectors=10).fit(X, X[:, 0])
    found = run_onnx(to_onnx(model, dtype="double"), far, "double")["variable"]
    np.testing.assert_allclose(found, np.full((62, 1), model.expansion_.offset[0]), rtol=1e-12)


def test_sparse_float32_and_foreign_models(tmp_path, foreign):
    X, to = exact(make_banana(100)[0]), foreign[0]
    settings = {"max_vectors": 5, "kernel": Gaussian(length_scale=1.0), "alpha": 1e-2}
    # a model fitted in float32 predicts in float32
    for rows, tolerance in ((sp.csr_array(X), 1e-10), (X.astype(np.float32), 1e-5), (to(X), 1e-10)):
        y = X[:, 0] if sp.issparse(rows) else rows[:, 0]
        model = FeatureVectorRegressor(**settings).fit(rows, y)
        truth = {"variable": np.asarray(model.expansion_.like(X)(X), dtype=float)}
        assert_exported(tmp_path, model, X, {"double": tolerance}, truth)
