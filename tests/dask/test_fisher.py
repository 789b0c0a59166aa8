"""Kernel Fisher classifiers on Dask collections: vectors from a sample, coefficients from all rows."""

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from fewkern import ForwardKernelFisher, SparseKernelFisher
from fewkern.core import population
from fewkern.core.samples import Samples
from fewkern.fisher import fitting

N, SAMPLE, BLOCK = 900, 240, 128
GIVEN = [
    (SparseKernelFisher(alpha=0.01), 3),
    (SparseKernelFisher(alpha=0.01, q=1.0), 2),
    (SparseKernelFisher(alpha=0.01, q=1.0), 3),
    (SparseKernelFisher(alpha=0.01, q=2.0), 3),
    (ForwardKernelFisher(n_vectors=6), 3),
]
CHOSEN = [(SparseKernelFisher(), 2), (ForwardKernelFisher(), 2)]


def table(n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + np.pi + 0.3 * rng.standard_normal(N)
    return X, np.array(["a", "b", "c"])[(angle // (2 * np.pi / n_classes)).astype(int) % n_classes]


@pytest.mark.parametrize(("model", "n_classes"), [*GIVEN, *CHOSEN], ids=str)
def test_the_same_model_as_in_memory_for_any_chunking(model, n_classes):
    X, y = table(n_classes)
    here = clone(model).fit(X, y)
    chunks = ((0, 400, 1, 499), (1, 1))
    there = clone(model).fit(da.from_array(X, chunks=chunks), da.from_array(y, chunks=77))
    np.testing.assert_array_equal(there.indices_, here.indices_)
    np.testing.assert_array_equal(X[there.indices_], there.vectors_)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-10)
    assert here.score(X, y) > 0.8
    other = clone(model).fit(da.from_array(X, chunks=(N, 2)), y)
    np.testing.assert_array_equal(other.predict_proba(X), there.predict_proba(X))


@pytest.mark.parametrize("model", [SparseKernelFisher(alpha=0.01), ForwardKernelFisher(n_vectors=6)], ids=str)
def test_a_sample_of_all_rows_is_the_fit_in_memory(model, monkeypatch):
    monkeypatch.setattr(population, "SAMPLE_ROWS", N)
    X, y = table()
    here, there = clone(model).fit(X, y), clone(model).fit(da.from_array(X, chunks=200), y)
    np.testing.assert_array_equal(here.predict_proba(X), there.predict_proba(X))


def test_choices_are_made_on_fewer_rows_than_the_sample(monkeypatch):
    X, y = table()
    model = ForwardKernelFisher(n_vectors=5).fit(X, y)
    monkeypatch.setattr(fitting, "CHOICE_ROWS", 60)
    fewer = ForwardKernelFisher(n_vectors=5).fit(X, y)
    assert set(fewer.indices_) <= set(Samples.of(X).drawn(60).rows.tolist())
    assert not set(model.indices_) <= set(Samples.of(X).drawn(60).rows.tolist())


@pytest.mark.parametrize(("model", "n_classes"), GIVEN, ids=str)
def test_the_coefficients_come_from_all_rows(model, n_classes):
    X, y = table(n_classes)
    outside = ~np.isin(np.arange(N), Samples.of(X).drawn(SAMPLE).rows)
    other = y.copy()
    other[outside & (X[:, 0] > 1)] = "a"
    one, two = (clone(model).fit(da.from_array(X, chunks=300), labels) for labels in (y, other))
    kept = set(two.indices_) | set(one.indices_)
    assert kept <= set(np.flatnonzero(~outside))
    assert np.abs(one.predict_proba(X) - two.predict_proba(X)).max() > 0.05


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


def test_weights_and_single_precision():
    X, y = table()
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    chunked = [da.from_array(a, chunks=(300, *a.shape[1:])) for a in (X.astype(np.float32), y, weights)]
    there = SparseKernelFisher(class_weight="balanced").fit(chunked[0], chunked[1], sample_weight=chunked[2])
    here = SparseKernelFisher(class_weight="balanced").fit(X.astype(np.float32), y, sample_weight=weights)
    assert there.expansion_.coef.dtype == np.float32
    assert np.all(weights[there.indices_] > 0)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-4)
