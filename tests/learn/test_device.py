"""The search on a device: torch on the host stands for one."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor
from fewkern.learn import fitting
from fewkern.learn.geometry import coefficients, values
from fewkern.learn.objective import objective
from fewkern.learn.policy import POLICY
from tests.learn.test_objective import own_spectrum, problem

torch = pytest.importorskip("torch", reason="torch is not installed (pip install 'fewkern[gpu]')")
pytestmark = pytest.mark.torch

FEW = replace(
    POLICY,
    candidates=replace(POLICY.candidates, ladder=(4, 8), still=(20, 40)),
    rows=replace(POLICY.rows, still=200, device=1500),
)


def there(rows):
    moved = {name: torch.asarray(getattr(rows, name)) for name in ("T", "Y", "weights", "places")}
    return replace(rows, **moved)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("generalized", [False, True])
def test_value_and_gradient_are_those_of_numpy(outputs, generalized):
    rows, geometry = problem(outputs, n=200)
    spectrum = own_spectrum(rows, geometry) if generalized else None
    expected, slopes = objective(rows, geometry, POLICY, spectrum)
    value, found = objective(there(rows), geometry, POLICY, spectrum)
    assert value == pytest.approx(expected, rel=1e-12)
    for name in ("vectors", "log_scales", "log_widths", "directions", "log_ridge"):
        np.testing.assert_allclose(getattr(found, name), getattr(slopes, name), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(found.warp.parameters, slopes.warp.parameters, rtol=1e-8, atol=1e-11)
    W, offset = coefficients(rows, geometry, POLICY)
    np.testing.assert_allclose(coefficients(there(rows), geometry, POLICY)[0], W, rtol=1e-9)
    expected = values(rows, geometry, W, offset)
    np.testing.assert_allclose(values(there(rows), geometry, W, offset).numpy(), expected, rtol=1e-10)


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


@pytest.fixture
def accelerator(monkeypatch):
    monkeypatch.setattr(fitting, "on_host", lambda X: isinstance(X, np.ndarray))


def fitted(kind, X, y, policy=FEW):
    model = kind()
    model._policy = policy
    return model.fit(X, y)


@pytest.mark.parametrize("kind", [KernelRegressor, KernelClassifier])
def test_the_model_is_that_of_the_host(kind, accelerator):
    X, y = data(600)
    y = y if kind is KernelRegressor else (y > 0.5).astype(int)
    new = data(200, seed=1)[0]
    expected = fitted(kind, X, y)
    found = fitted(kind, torch.asarray(X), torch.asarray(y))
    assert found.n_vectors_ == expected.n_vectors_
    method = "predict" if kind is KernelRegressor else "decision_function"
    np.testing.assert_allclose(
        getattr(found, method)(torch.asarray(new)).numpy(), getattr(expected, method)(new), rtol=1e-6, atol=5e-4
    )


def test_rows_beyond_the_sample_move_vectors(accelerator, monkeypatch):
    from fewkern.arrays import sampling

    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 500)
    seen, move = [], fitting.learn.__globals__["move"]
    monkeypatch.setitem(fitting.learn.__globals__, "move", lambda rows, *a: seen.append(rows.n) or move(rows, *a))
    X, y = data(2000)
    model = fitted(KernelRegressor, torch.asarray(X), torch.asarray(y))
    assert seen[-1:] in ([1500], [])
    assert float(model.score(X, y)) > 0.97


def test_a_device_without_memory_falls_back_to_the_host(accelerator, monkeypatch):
    class OutOfMemoryError(RuntimeError):
        pass

    def learn(some, settings, step, without=None, beyond=None):
        if beyond is not None:
            raise OutOfMemoryError("CUDA out of memory")
        return original(some, settings, step, without)

    original = fitting.learn
    monkeypatch.setattr(fitting, "learn", learn)
    X, y = data(400)
    with pytest.warns(UserWarning, match="memory of cpu is too small for 400 rows"):
        fitted(KernelRegressor, torch.asarray(X), torch.asarray(y))
