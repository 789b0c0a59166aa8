"""Intervals, sets of classes and novelty in every language."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    ForwardDensity,
    KernelClassifier,
    KernelRegressor,
    RecursiveSVM,
    SparseKernelFisher,
    to_c,
    to_onnx,
)
from fewkern.datasets import make_banana
from fewkern.kernels import Laplacian, Polynomial
from tests.io.running import assert_exported

TOLERANCE = {"double": 1e-9, "float": 2e-4}


@pytest.fixture(scope="module")
def new():
    return make_banana(60, random_state=7)[0].astype(np.float32).astype(float)


def wavy(outputs=1, heteroscedastic=False):
    """Samples and targets; the noise grows along the second feature, if so."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 2)).astype(np.float32).astype(float)
    noise = np.exp(X[:, 1]) if heteroscedastic else np.ones(300)
    y = np.sin(X[:, :1]) + 0.1 * noise[:, None] * rng.standard_normal((300, outputs))
    return X, y[:, 0] if outputs == 1 else y


REGRESSORS = {
    "plain": (KernelRegressor(max_vectors=8), wavy()),
    "scaled": (FeatureVectorRegressor(max_vectors=12), wavy(heteroscedastic=True)),
    "two outputs": (FeatureVectorRegressor(max_vectors=8), wavy(2, heteroscedastic=True)),
    "pipeline": (make_pipeline(StandardScaler(), FeatureVectorRegressor(max_vectors=8)), wavy(heteroscedastic=True)),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_exported_intervals(name, new, tmp_path):
    model, (X, y) = REGRESSORS[name]
    model.fit(X, y)
    last = model[-1] if name == "pipeline" else model
    assert (last.intervals_.scale is None) == (name == "plain")
    assert_exported(tmp_path, model, new, TOLERANCE, coverage=0.8)


@pytest.mark.parametrize("coverage", [0.7, 0.97, 0.9999])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [KernelClassifier(max_vectors=6), SparseKernelFisher(alpha=0.05)])
def test_exported_sets(model, classes, coverage, new, tmp_path):
    X, y = make_banana(150)
    model.fit(X, y if classes == 2 else np.where(X[:, 0] > 1, 2, y))
    assert_exported(tmp_path, model, new, {"double": 1e-9}, coverage=coverage)
    assert model.predict_set(new, coverage).all() == (coverage > 0.999)


@pytest.mark.parametrize("kernel", ["gaussian", Laplacian()])
@pytest.mark.parametrize("estimator", [FeatureVectorDiscriminant, FeatureVectorSelector])
def test_exported_novelty(estimator, kernel, new, tmp_path):
    X, y = make_banana(150)
    samples = np.concatenate([new, 5 * new])
    model = estimator(kernel=kernel, max_vectors=15).fit(X, y)
    assert len(set(model.novelty(samples) > model.novelty_threshold(0.1))) == 2
    assert_exported(tmp_path, model, samples, {"double": 1e-8}, false_alarms=0.1)


def test_nothing_is_written_unless_it_is_asked_for():
    model = KernelClassifier(max_vectors=5).fit(*make_banana(60))
    text = to_c(model)
    assert not any(name in text for name in ("interval", "predict_set", "novelty"))
    assert [output.name for output in to_onnx(model).graph.output] == ["label", "probabilities", "decision"]


@pytest.mark.parametrize(
    ("model", "asked", "message"),
    [
        (ForwardDensity(), {"coverage": 0.9}, "to_c: coverage is for models with predict_interval or .*, and Forwa"),
        (RecursiveSVM(n_components=1), {"coverage": 0.9}, "to_c: coverage is for models"),
        (FeatureVectorRegressor(max_vectors=5), {"coverage": 1.0}, "coverage must be a number between 0 and 1"),
        (ForwardDensity(), {"false_alarms": 0.05}, "to_c: ForwardDensity has no novelty; leave false_alarms out"),
        (
            FeatureVectorDiscriminant(kernel=Polynomial(degree=3), max_vectors=5),
            {"false_alarms": 0.1},
            r"k\(x, x\) = 1, .* the kernel of this FeatureVectorDiscriminant is Polynomial",
        ),
        (
            FeatureVectorSelector(center=True, max_vectors=5),
            {"false_alarms": 0.1},
            "the kernel of this FeatureVectorSelector is centered Gaussian",
        ),
    ],
)
def test_what_cannot_be_written(model, asked, message):
    model.fit(*make_banana(80))
    with pytest.raises(ValueError, match=message):
        to_c(model, **asked)


def test_a_model_without_held_out_values_says_so(new):
    """As it is where a class has very few samples."""
    model = FeatureVectorRegressor(max_vectors=5).fit(*wavy())
    del model.intervals_, model.novelty_
    for method in ("predict_interval", "novelty"):
        with pytest.raises(AttributeError, match=rf"FeatureVectorRegressor.{method}: this model has no values of held"):
            getattr(model, method)(new)
