"""What the three reducers have in common."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM
from fewkern.core.path import Stop
from fewkern.kernels import Gaussian
from fewkern.margins import hinge, reducer, soft, svm

EVERY = [GraphEmbedding, RecursiveSVM, RecursiveSoftMargin]
every = pytest.mark.parametrize("make", EVERY)


@every
def test_nothing_is_left_of_an_earlier_fit(make, iris):
    X, y = iris
    model = make(n_components=2).fit(X, y)
    assert model.components_.shape == (2, 4)
    model.set_params(kernel=Gaussian(2.0), max_vectors=20).fit(X, y)
    for name in ("components_", "mean_"):
        assert not hasattr(model, name)
    with pytest.raises(ValueError, match='use kernel="linear"'):
        model.inverse_transform(model.transform(X))
    model.set_params(kernel="linear", max_vectors=None).fit(X, y)
    with pytest.raises(ValueError, match="expects 2 columns"):
        model.inverse_transform(np.ones((2, 3)))
    np.testing.assert_allclose(model.transform(model.inverse_transform(model.transform(X))), model.transform(X))


@every
def test_labels_are_checked_before_vectors_are_chosen(make, iris, monkeypatch):
    X, y = iris
    monkeypatch.setattr(reducer, "choose_basis", None)
    for bad, weights, message in (
        (np.zeros(150), None, "only one class"),
        (y, -np.ones(150), "must be finite, not negative"),
        (y, (y > 0).astype(float), "no sample of positive weight"),
    ):
        with pytest.raises(ValueError, match=message):
            make(kernel="gaussian").fit(X, bad, sample_weight=weights)


@every
def test_a_linear_map_keeps_no_sample(make, iris):
    X, y = iris
    for X_, max_vectors in ((X, None), (X, 4), (sp.csr_matrix(X), None)):
        model = make(n_components=2, max_vectors=max_vectors).fit(X_, y)
        assert model.n_vectors_ == 0
        assert model.vectors_.shape == (0, 4)
        assert model.indices_.shape == (0,)
        assert model.components_.shape == (2, 4)
    model = make(n_components=2, kernel="gaussian", max_vectors=9).fit(X, y)
    assert model.n_vectors_ == len(model.indices_) == 9
    np.testing.assert_array_equal(model.vectors_, X[model.indices_])


@every
def test_the_basis_of_a_kernel_is_bounded(make, iris, monkeypatch):
    X, y = iris
    settings = {"kernel": Gaussian(0.5), "n_components": 2}
    exact = make(max_vectors=len(X), **settings).fit(X, y)
    assert exact.basis_.n_vectors > 50
    # few samples: as without a bound
    np.testing.assert_array_equal(make(**settings).fit(X, y).transform(X), exact.transform(X))
    monkeypatch.setattr(reducer, "_MAX_VECTORS", 50)
    bounded = make(**settings).fit(X, y)
    assert bounded.n_vectors_ == bounded.basis_.n_vectors == 50
    np.testing.assert_array_equal(bounded.transform(X), make(max_vectors=50, **settings).fit(X, y).transform(X))
    assert make(max_vectors=len(X), **settings).fit(X, y).basis_.n_vectors == exact.basis_.n_vectors
    # the linear kernel needs no basis
    assert make(n_components=2).fit(X, y).basis_ is None


@every
def test_as_many_components_as_there_are(make, iris):
    X, y = iris
    with pytest.warns(UserWarning, match=f"{make.__name__}: n_components=100 was asked for, but .* give only [1-4];"):
        few = make(n_components=100).fit(X, y)
    assert few.n_components_ == few.transform(X).shape[1] <= 4
    assert few.stop_ in (Stop.FLAT, Stop.RANK, Stop.FADED)
    assert isinstance(few.stop_, Stop)


def test_recursive_svm_says_that_it_did_not_converge(iris, monkeypatch):
    X, y = iris
    for limit in (2, 14):
        monkeypatch.setattr(hinge, "MAX_ITERATIONS", limit)
        monkeypatch.setattr(svm, "MAX_ITERATIONS", limit)
        message = rf"in {limit} interior point iterations: .* duality gap is .*, above 1e-09; use a smaller C"
        with pytest.warns(ConvergenceWarning, match=message) as w:
            model = RecursiveSVM(n_components=1).fit(X[:100] + 0.3 * X[:100] ** 2, y[:100])
        # after 14 it is accepted, but not solved to the tolerance
        assert model.n_components_ == (limit == 14)
        assert (model.stop_ == "max_iter") == (limit == 2)
        assert model.n_iter_ == limit
    assert len(w) == 1


def test_recursive_soft_margin_says_that_it_did_not_converge(iris, monkeypatch):
    X, y = iris
    enough = RecursiveSoftMargin(n_components=2, C=50.0).fit(X, y)
    assert {step.stop for step in enough.steps_} == {Stop.CONVERGED}
    monkeypatch.setattr(soft, "MAX_STEPS", 1)
    with pytest.warns(
        ConvergenceWarning, match=r"2 of 2 directions did not converge .* of J\(0\) - J; use a smaller C"
    ):
        model = RecursiveSoftMargin(n_components=2, C=50.0).fit(X, y)
    assert {step.stop for step in model.steps_} == {Stop.MAX_ITER}


def test_the_papers_weight_is_the_relative_one_times_delta_0(iris):
    X, y = iris
    relative = RecursiveSoftMargin(n_components=1, C=7.0).fit(X, y)
    step = relative.steps_[0]
    assert step.delta == pytest.approx(7.0 * step.delta_0)
    absolute = RecursiveSoftMargin(n_components=1, C=step.delta, scale_C=False).fit(X, y)
    np.testing.assert_allclose(absolute.components_, relative.components_, atol=1e-10)
