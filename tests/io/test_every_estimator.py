"""Every estimator, with every kernel that can be written out, gives the same in C and in ONNX as in Python."""

import ctypes
import functools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_regressor

import fewkern
from fewkern import to_c, to_onnx
from fewkern.kernels import Gaussian, Laplacian, Linear, LinearSpline, Polynomial
from tests.io.running import Compiled, compile_library, run_onnx, run_reference

TOLERANCE = {"double": 1e-10, "float": 1e-4}
KERNELS = {
    "gaussian": Gaussian(width=1.5),
    "widths": Gaussian(width=[1.0, 1.5, 2.0]),
    "laplacian": Laplacian(width=3.0),
    "polynomial": Polynomial(degree=3, gamma=0.3),
    "linear": Linear(),
    "spline": LinearSpline(),
}
# estimator -> settings to export it with
ESTIMATORS = {
    "FeatureVectorSelector": [{"max_vectors": 3}, {"max_vectors": 3, "rule": "greedy", "projection": "symmetric"}],
    "FeatureVectorRegressor": [{"max_vectors": 6, "ridge": 1e-2}],
    "FeatureVectorClassifier": [{"max_vectors": 6, "ridge": 1e-2}],
    "FeatureVectorDiscriminant": [{"max_vectors": 6, "ridge": 1e-2}],
    "FeatureVectorPCA": [{"max_vectors": 4, "n_components": 2}],
    "SparseKernelFisher": [{"penalty": 0.05}, {"penalty": 0.05, "posterior": "least_squares"}],
    "ForwardKernelFisher": [{"n_vectors": 4}],
    "KernelFisher": [{"penalty": 0.1}],
    "RecursiveSVM": [{"n_components": 2, "max_vectors": 6}],
    "RecursiveSoftMargin": [{"n_components": 2, "max_vectors": 6, "rho": 0.1}],
    "GraphEmbedding": [{"n_components": 2, "max_vectors": 6}],
    "ParzenDensity": [{}, {"scale": "whiten"}],
    "ForwardDensity": [{}],
    "ForwardConstrainedDensity": [{}],
    "ReducedSetDensity": [{}],
    "OrthogonalForwardDensity": [{}],
    "DensityClassifier": [{}],
}
# The spline kernel is not bounded: with the penalties above coefficients cancel, and float has too few figures.
STRONGER = {"SparseKernelFisher": {"penalty": 20.0}, "KernelFisher": {"penalty": 1e4}}
# estimator -> why it cannot be exported
EXCLUDED: dict[str, str] = {}


def public_estimators():
    for name in fewkern.__all__:
        value = getattr(fewkern, name)
        if isinstance(value, type) and issubclass(value, BaseEstimator):
            yield name


def test_no_estimator_was_forgotten():
    assert set(public_estimators()) == set(ESTIMATORS) | set(EXCLUDED)
    assert all(EXCLUDED.values())


@functools.cache
def samples():
    """Samples, their three classes, two classes, and new samples, some far outside; all exact in float32."""
    rng = np.random.default_rng(0)
    y = np.arange(75) % 3
    X = rng.standard_normal((75, 3)) + 1.5 * np.eye(3)[y]
    new = np.concatenate([X[:10] + 0.1, 2.5 * rng.standard_normal((15, 3)), [[30.0, -20.0, 10.0]]])
    return (
        X.astype(np.float32).astype(float),
        np.array(["ash", "birch", "cedar"])[y],
        np.where(y == 2, 7, -3),
        new.astype(np.float32).astype(float),
    )


def cases():
    for name, settings in ESTIMATORS.items():
        estimator = getattr(fewkern, name)
        kernels = KERNELS if "kernel" in estimator().get_params() else {"": None}
        for i, given in enumerate(settings):
            for label, kernel in kernels.items():
                if i and label not in ("", "gaussian"):
                    continue
                two = (False, True) if "predict_proba" in dir(estimator) and label in ("", "gaussian") else (False,)
                for binary in two:
                    chosen = given if kernel is None else {**given, "kernel": kernel}
                    if label == "spline":
                        chosen = {**chosen, **STRONGER.get(name, {})}
                    text = "-".join(filter(None, [name, label, str(i) if i else "", "two" if binary else ""]))
                    yield pytest.param(estimator(**chosen), binary, id=text)


def expected(model, X):
    """All that the model says of new samples, by the name of the output in ONNX."""
    found = {}
    if hasattr(model, "score_samples"):
        return {"log_density": model.score_samples(X)[:, None]}
    if hasattr(model, "transform"):
        found["variable"] = model.transform(X)
    if hasattr(model, "predict_proba"):
        found["label"] = model.predict(X)
        found["probabilities"] = model.predict_proba(X)
        decision = getattr(model, "decision_function", None) or model.predict_joint_log_proba
        found["decision"] = decision(X)
    elif hasattr(model, "predict"):
        found["variable"] = model.predict(X)
    return {name: value[:, None] if name != "label" and value.ndim == 1 else value for name, value in found.items()}


def from_c(model, code, truth, X):
    """The same from the C functions."""
    found = {}
    if "log_density" in truth:
        found["log_density"] = code.give("log_density", X)[:, None]
    if "variable" in truth:
        method = "transform" if hasattr(model, "transform") else "predict"
        found["variable"] = code.write(method, X, truth["variable"].shape[1])
    if "label" in truth:
        numbers = code.give("predict", X, ctypes.c_int)
        assert [code.label(number) for number in numbers] == [str(c) for c in model.classes_[numbers]]
        found["label"] = model.classes_[numbers]
        found["probabilities"] = code.write("predict_proba", X, truth["probabilities"].shape[1])
        found["decision"] = code.write("decision", X, truth["decision"].shape[1])
    return found


def assert_same(found, truth, tolerance):
    assert set(found) == set(truth)
    for name, value in truth.items():
        if name == "label":
            assert found[name].tolist() == value.tolist()
            continue
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance * np.abs(value).max(), err_msg=name)
        assert found[name].shape == value.shape


@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
@pytest.mark.parametrize(("model", "binary"), list(cases()))
def test_c_and_onnx_say_what_the_model_says(model, binary, tmp_path):
    X, three, two, new = samples()
    y = two if binary else three
    if is_regressor(model):
        y = np.sin(X[:, :2])
    check(clone(model).fit(X, y), new, tmp_path)


def test_priors_move_the_probabilities_of_the_least_squares_rule(tmp_path):
    X, _, y, new = samples()
    model = fewkern.SparseKernelFisher(penalty=0.05, posterior="least_squares", priors=[0.2, 0.8])
    check(model.fit(X, y), new, tmp_path)
    assert model.link_.total[0] != 0


def check(fitted, new, tmp_path):
    truth = expected(fitted, new)
    texts = [to_c(fitted, name=dtype[0], dtype=dtype) for dtype in TOLERANCE]
    library = compile_library(tmp_path, *texts)
    for dtype, tolerance in TOLERANCE.items():
        assert_same(from_c(fitted, Compiled(library, dtype[0], dtype), truth, new), truth, tolerance)
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    for dtype, tolerance in TOLERANCE.items():
        proto = to_onnx(fitted, dtype=dtype)
        assert_same(run_onnx(proto, new, dtype), truth, tolerance)
    assert_same(run_reference(proto, new, dtype), truth, tolerance)
