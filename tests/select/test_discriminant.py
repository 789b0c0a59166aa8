import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fewkern import FeatureVectorDiscriminant
from fewkern.core.scores import softmax
from fewkern.kernels import Linear


@pytest.fixture
def three():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 50)
    return rng.standard_normal((150, 2)) + 2 * np.column_stack([np.cos(2 * y), np.sin(2 * y)]), y


def test_linear_kernel_is_linear_discriminant_analysis(three):
    X, y = three
    ours = FeatureVectorDiscriminant(kernel=Linear(), alpha=0.0, n_vectors=100).fit(X, y)
    theirs = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    np.testing.assert_allclose(softmax(ours.decision_function(X)), theirs.predict_proba(X), atol=0.01)
    # six numbers from 150 samples leave little to put right
    assert ours.class_scores_.factor == pytest.approx(1.0, abs=0.3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    np.testing.assert_allclose(ours.means_, [ours.transform(X[y == c]).mean(axis=0) for c in range(3)], atol=1e-7)
    for j in range(2):
        assert abs(np.corrcoef(ours.transform(X)[:, j], theirs.transform(X)[:, j])[0, 1]) == pytest.approx(1.0)


def test_number_of_components(three):
    X, y = three
    assert FeatureVectorDiscriminant(n_components=1).fit(X, y).transform(X).shape == (150, 1)
    with pytest.warns(UserWarning, match="n_components=3 was asked for, but these samples give only 2"):
        model = FeatureVectorDiscriminant(n_components=3).fit(X, y)
    assert model.transform(X).shape == (150, model.n_components_) == (150, 2)


def test_class_weights_are_other_class_probabilities(three):
    X, y = three
    weights = {0: 0.98 * 3, 1: 0.01 * 3, 2: 0.01 * 3}  # over the shares among the samples
    model = FeatureVectorDiscriminant(class_weight=weights).fit(X, y)
    assert np.mean(model.predict(X) == 0) > np.mean(FeatureVectorDiscriminant().fit(X, y).predict(X) == 0)
    np.testing.assert_allclose(model.priors_, [0.98, 0.01, 0.01])


@pytest.mark.parametrize("seed", [1, 3])
def test_probabilities_of_unbalanced_classes_are_as_high_as_they_are_right(seed):
    """Five rows of five hundred ruled a factor by likelihood: .27 was stated, and .93 was right."""

    def draw(rows, rng):
        X = rng.standard_t(1.5, (rows, 7))
        return X, np.digitize(X[:, 0] + 0.3 * X[:, 1], [-30, -8, 2.2, 5, 40])

    rng = np.random.default_rng([77, seed])
    X, y = draw(500, rng)
    new, truth = draw(4000, rng)
    P = FeatureVectorDiscriminant().fit(X, y).predict_proba(new)
    right = np.unique(y)[P.argmax(axis=1)] == truth
    assert P.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.05)
