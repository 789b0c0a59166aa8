"""KernelClassifier: labels of any kind, probabilities, weights of classes, groups."""

import numpy as np
import pytest

from fewkern import KernelClassifier
from fewkern.datasets import make_banana


@pytest.fixture(scope="module")
def banana():
    return make_banana(300)


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
