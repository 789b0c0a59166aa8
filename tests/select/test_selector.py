import numpy as np
import pytest

from fewkern import FeatureVectorSelector
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from tests.oracles import fvs


@pytest.fixture
def X():
    return make_banana(100)[0]


@pytest.mark.parametrize("center", [False, True, 3])
@pytest.mark.parametrize("projection", ["nested", "symmetric", "raw"])
def test_the_features_of_the_fit_are_those_of_transform(X, projection, center):
    model = FeatureVectorSelector(
        kernel=Gaussian(length_scale=1.0), max_vectors=100, projection=projection, center=center
    )
    Z = model.fit_transform(X)
    assert Z.shape == (100, model.n_vectors_)
    np.testing.assert_allclose(Z, model.transform(X), atol=1e-4)


def test_greedy_is_centred_by_default_and_gain_is_not(X):
    K = Gaussian(length_scale=1.0)(X, X)
    paper = FeatureVectorSelector(kernel=Gaussian(length_scale=1.0), rule="greedy", max_vectors=10).fit(X)
    c = fvs.centre_index(K)
    assert paper.basis_.center_indices.tolist() == [c]
    assert paper.indices_.tolist() == fvs.literal_selection(fvs.centred(K, c), 10)[0]
    assert FeatureVectorSelector().fit(X).basis_.center_vectors is None


def test_many_samples_in_blocks_and_with_a_sampled_centre(rng):
    X = rng.standard_normal((2500, 2))
    for rule in ("gain", "greedy", "random", "uniform"):
        model = FeatureVectorSelector(rule=rule, max_vectors=30, center=True, kernel=Gaussian(length_scale=0.5)).fit(X)
        assert model.n_vectors_ == len(set(model.indices_.tolist())) == 30
        Z = model.transform(X[:300])
        assert np.linalg.norm(Z, axis=1).max() <= 2.01


def test_a_precomputed_row_of_weight_zero_is_absent_with_its_column(X):
    K, weights = Gaussian(1.0)(X, X), np.ones(100)
    weights[:40] = 0
    one = FeatureVectorSelector(kernel="precomputed", max_vectors=8).fit(K, sample_weight=weights)
    two = FeatureVectorSelector(kernel="precomputed", max_vectors=8).fit(K[40:, 40:])
    np.testing.assert_array_equal(one.indices_, 40 + two.indices_)
    np.testing.assert_allclose(one.transform(K), two.transform(K[:, 40:]), atol=1e-12)
