import numpy as np
import pytest

from fewkern.core.scores import ClassScores


@pytest.mark.parametrize(
    "link",
    [
        ClassScores(),
        ClassScores(factor=3.0),
        ClassScores(weights=np.array([[1.0, 0.0, -1.0], [0.5, 1.0, 0.0]]), offset=np.array([0.1, 0.0, -0.2])),
        ClassScores(offset=np.array([0.3, 0.3]), shares=(0.0, 1.0)),
    ],
)
def test_probabilities_agree_with_the_decision(link, rng):
    values = np.abs(rng.standard_normal((50, 2))) * np.geomspace(1.0, 1e4, 50)[:, None]
    probabilities = link.probabilities(values)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), link.codes(values))
    np.testing.assert_allclose(np.exp(link.log_probabilities(values)), probabilities)


def test_shares_of_one_score():
    link = ClassScores(shares=(0.0, 1.0))
    np.testing.assert_allclose(link.probabilities(np.array([[0.5], [3.0]])), [[0.25, 0.75], [0.0, 1.0]])


@pytest.mark.parametrize("values", [np.array([[0.4], [-2.0]]), np.array([[0.1, 0.5, -1.0], [1.0, 0.0, 0.3]])])
@pytest.mark.parametrize("offset", [False, True])
def test_other_priors_multiply_the_probabilities(values, offset):
    classes = max(2, values.shape[1])
    link = ClassScores(factor=2.5, offset=np.linspace(0.2, 0.6, values.shape[1]) if offset else None)
    ratio = np.linspace(0.5, 3.0, classes)
    expected = link.probabilities(values) * ratio
    found = link.with_priors(ratio).probabilities(values)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True))
