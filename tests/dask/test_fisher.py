"""Kernel Fisher classifiers on Dask collections: vectors from a sample, coefficients from all rows."""

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fewkern import ForwardKernelFisher, SparseKernelFisher
from fewkern.core.samples import Samples
from fewkern.fisher import fitting

N, SAMPLE, BLOCK = 900, 240, 128


def table(n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + np.pi + 0.3 * rng.standard_normal(N)
    return X, np.array(["a", "b", "c"])[(angle // (2 * np.pi / n_classes)).astype(int) % n_classes]


def test_choices_are_made_on_fewer_rows_than_the_sample(monkeypatch):
    X, y = table()
    model = ForwardKernelFisher(n_vectors=5).fit(X, y)
    monkeypatch.setattr(fitting, "CHOICE_ROWS", 60)
    fewer = ForwardKernelFisher(n_vectors=5).fit(X, y)
    assert set(fewer.indices_) <= set(Samples.of(X).drawn(60).rows.tolist())
    assert not set(model.indices_) <= set(Samples.of(X).drawn(60).rows.tolist())


@pytest.mark.parametrize("q", [0.5, 1.0])
def test_the_objective_is_that_of_all_rows(q):
    """More rows than the sample: (5) with the targets of the sample, at the coefficients that predict."""
    X, y = table()
    model = SparseKernelFisher(q=q)
    model.fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200))
    sample = Samples.of(X).drawn(SAMPLE).rows
    share = np.mean(y[sample] == "b")
    targets = np.where(y == "b", 1 / share, -1 / (1 - share))
    # the score is an affine function of the discriminant, whose slope at the minimum of (5) makes (5) least
    ours = model.expansion_.coef[:, 0]
    K = model.kernel_(X, model.vectors_)

    def objective(slope):
        residual = targets - slope * K @ ours
        residual = residual - residual.mean()
        return residual @ residual / 2 + model.alpha_ * N * np.sum(np.abs(slope * ours) ** q)

    slope = (K @ ours - (K @ ours).mean()) @ targets / np.sum((K @ ours - (K @ ours).mean()) ** 2)
    least = minimize_scalar(objective, bounds=(0.5 * slope, slope), options={"xatol": 1e-9 * slope})
    assert model.objective_ == model.path_.objectives[-1] == pytest.approx(least.fun, rel=1e-6)
    assert model.n_iter_ == len(model.path_.objectives)


def test_error_reduction_ratios_are_those_of_all_rows():
    X, y = table()
    model = ForwardKernelFisher(n_vectors=6).fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200))
    share = np.mean(y[Samples.of(X).drawn(SAMPLE).rows] == "b")
    Y = np.where(y == "b", 1 / share, -1 / (1 - share))
    left = []
    for k in range(7):
        K = np.column_stack([np.ones(N), model.kernel_(X, model.vectors_)[:, :k]])
        left.append(np.sum((Y - K @ np.linalg.lstsq(K, Y, rcond=None)[0]) ** 2) / np.sum(Y**2))
    np.testing.assert_allclose(model.path_.objectives, left, atol=1e-8)
    assert sum(model.error_reduction_) == pytest.approx(1 - left[-1])
