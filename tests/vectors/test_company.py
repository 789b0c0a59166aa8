"""Samples in company: what short functions are taught on."""

import numpy as np
import pytest

from fewkern.vectors import company
from fewkern.vectors.company import border_weights, with_company


@pytest.fixture
def X(rng):
    return rng.standard_normal((200, 2))


def test_samples_near_a_border_count_most():
    """That of the two classes of highest score; a margin of half the median one counts half."""
    scores = np.array([[5.0, 5.0, 0.0], [9.0, 3.0, 8.0], [0.0, 2.0, -9.0], [7.0, 3.0, 0.0], [0.0, 8.0, 1.0]])
    np.testing.assert_allclose(border_weights(scores), 1 / (1 + np.array([0.0, 1.0, 2.0, 4.0, 7.0]) ** 2))
    np.testing.assert_array_equal(border_weights(np.zeros((4, 3))), 1.0)


def test_samples_get_company(X):
    rows, share = with_company(X, 500, 0)
    np.testing.assert_array_equal(rows[:200], X)
    assert rows.shape == (500, 2)
    assert share.tolist() == [1.0] * 200 + [company.CROSSED] * 300
    for feature in range(2):  # every value is one of a sample
        assert set(rows[:, feature]) == set(X[:, feature])
    known = {tuple(row) for row in X}
    assert 0.3 < np.mean([tuple(row) in known for row in rows[200:]]) < 0.7  # of two features both from one
    assert with_company(X, 100, 0)[0].shape == (300, 2)


def distances_to_samples(rows, X):
    return np.sqrt(((rows[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)).min(axis=1)


def test_company_is_like_the_samples(rng, monkeypatch):
    """Two groups far from each other: a crossing of both is near neither."""
    X = np.repeat([[0.0, 0.0], [50.0, 50.0]], 100, axis=0) + rng.standard_normal((200, 2))
    apart = np.mean(distances_to_samples(with_company(X, 2000, 0)[0][200:], X) > 10)
    assert apart < 0.1
    monkeypatch.setattr(company, "DRAWN", 1)
    assert np.mean(distances_to_samples(with_company(X, 2000, 0)[0][200:], X) > 10) > 2 * apart


def test_units_of_the_features_do_not_matter_to_company(X):
    scale = np.array([1e-3, 2.0**20])
    np.testing.assert_allclose(with_company(X * scale, 500, 0)[0], with_company(X, 500, 0)[0] * scale, rtol=1e-12)


def test_company_of_equal_samples():
    """An equal sample is no partner where there is another one."""
    X = np.array([[0.0, 0.0]] * 9 + [[1.0, 1.0]])
    rows = with_company(X, 400, 0)[0]
    assert np.mean(rows[10:, 0] != rows[10:, 1]) > 0.15
    np.testing.assert_array_equal(with_company(np.ones((3, 2)), 20, 0)[0], np.ones((20, 2)))
