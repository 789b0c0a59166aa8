"""KernelClassifier: labels of any kind, probabilities, weights of classes, groups."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from fewkern import KernelClassifier
from fewkern.core.scores import softmax
from fewkern.datasets import make_banana


@pytest.fixture(scope="module")
def banana():
    return make_banana(300)


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 50)
    return rng.standard_normal((150, 2)) + 3 * np.column_stack([np.cos(2 * y), np.sin(2 * y)]), y


@pytest.mark.parametrize("labels", [["x", "longer", ""], [10, -3, 7]])
def test_several_classes_of_any_kind(three, labels):
    X, y = three
    target = np.array(labels)[y]
    model = KernelClassifier(max_vectors=12).fit(X, target)
    assert model.classes_.tolist() == sorted(labels)
    p = model.predict_proba(X)
    assert p.shape == model.decision_function(X).shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert model.score(X, target) > 0.9
    assert model.predict(X).dtype == target.dtype


def test_many_classes(rng):
    y = np.arange(240) % 12
    X = np.column_stack([np.cos(y / 2), np.sin(y / 2)]) * 5 + 0.2 * rng.standard_normal((240, 2))
    assert KernelClassifier(max_vectors=40).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_calibrated(classes, rng):
    losses, gaps = [], []
    for _ in range(3):  # one draw of 300 rows says little
        y = rng.integers(0, classes, 1200)
        X = rng.standard_normal((1200, 2)) + 1.5 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
        model = KernelClassifier(max_vectors=20).fit(X[:300], y[:300])
        new, truth = X[300:], y[300:]
        p = model.predict_proba(new)
        losses.append([log_loss(truth, softmax(factor * np.log(p))) for factor in (1.0, 0.5, 0.7, 1.4, 2.0)])
        gaps.append(np.mean(p.max(axis=1)) - model.score(new, truth))
    assert np.argmin(np.mean(losses, axis=0)) == 0
    assert np.mean(gaps) == pytest.approx(0.0, abs=0.03)


def test_balanced_class_weights(banana):
    X, y = banana
    some = np.flatnonzero((y == 0) | (np.arange(300) % 5 == 0))
    X, y = X[some], y[some]
    balanced = KernelClassifier(n_vectors=6, class_weight="balanced").fit(X, y)
    by_hand = KernelClassifier(n_vectors=6).fit(X, y, sample_weight=len(y) / (2 * np.bincount(y)[y]))
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-8)
    labels = np.array(["no", "yes"])[y]
    named = KernelClassifier(n_vectors=6, class_weight={"yes": 20.0, "no": 1.0}).fit(X, labels)
    assert np.mean(named.predict(X) == "yes") > np.mean(y)


def test_groups_are_held_out_as_a_whole(rng):
    """Every sample ten times, with labels that mean nothing: only whole groups say that nothing was learned."""
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 2
    ten = np.repeat(np.arange(40), 10)
    noise = X[ten] + 1e-3 * rng.standard_normal((400, 2))
    plain, grouped = KernelClassifier().fit(noise, y[ten]), KernelClassifier().fit(noise, y[ten], groups=ten)
    assert plain.held_out_error_ < 0.2
    assert grouped.held_out_error_ > 0.35
    assert grouped.held_out_scores_.effective == pytest.approx(40)


def test_a_last_class_of_one_row():
    """Its fold is fitted without it, and still has a score for it."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [30, 29, 1])
    X = rng.normal(size=(60, 2)) + (y == "b")[:, None] + 2 * (y == "c")[:, None]
    model = KernelClassifier(max_vectors=4).fit(X, y)
    assert model.predict_proba(X).shape == (60, 3)
