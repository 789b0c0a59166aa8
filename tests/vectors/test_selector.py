import numpy as np
import pytest

from fewkern import FeatureVectorSelector
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from tests.oracles import fvs


@pytest.fixture
def X():
    return make_banana(100)[0]


@pytest.mark.parametrize("centre", [False, True, 3])
@pytest.mark.parametrize("projection", ["nested", "symmetric", "raw"])
def test_products_of_features_approximate_the_kernel(X, projection, centre):
    model = FeatureVectorSelector(kernel=Gaussian(width=1.0), max_vectors=None, projection=projection, centre=centre)
    Z = model.fit_transform(X)
    assert Z.shape == (100, model.n_vectors_)
    np.testing.assert_allclose(Z, model.transform(X), atol=1e-4)
    if projection != "raw":
        K = Gaussian(width=1.0)(X, X)
        b = np.zeros(100)
        if centre:
            b[model.basis_.centre_indices] = model.basis_.centre_weights
        shift = np.eye(100) - np.outer(b, np.ones(100))
        np.testing.assert_allclose(Z @ Z.T, shift.T @ K @ shift, atol=1e-7)


def test_greedy_is_centred_by_default_and_gain_is_not(X):
    K = Gaussian(width=1.0)(X, X)
    paper = FeatureVectorSelector(kernel=Gaussian(width=1.0), rule="greedy", max_vectors=10).fit(X)
    c = fvs.centre_index(K)
    assert paper.basis_.centre_indices.tolist() == [c]
    assert paper.indices_.tolist() == fvs.literal_selection(fvs.centred(K, c), 10)[0]
    assert FeatureVectorSelector().fit(X).basis_.centre_vectors is None


def test_fitness_is_its_definition(X):
    model = FeatureVectorSelector(kernel=Gaussian(width=1.0), max_fitness=0.9, max_vectors=None).fit(X)
    assert model.stop_ == "fitness"
    K = Gaussian(width=1.0)(X, X)
    expected = [fvs.global_fitness(K, model.indices_[: j + 1]) for j in range(model.n_vectors_)]
    np.testing.assert_allclose(model.fitness_, expected)
    assert model.fitness_[-1] >= 0.9 > model.fitness_[-2]


def test_more_candidates_explain_more(X):
    few, many = (FeatureVectorSelector(max_vectors=8, n_candidates=k).fit(X).fitness_[-1] for k in (1, 100))
    assert many > few


def test_warm_start_goes_on(X):
    settings = {"rule": "greedy", "kernel": Gaussian(width=0.6)}
    warm = FeatureVectorSelector(max_vectors=6, warm_start=True, **settings).fit(X)
    first = warm.indices_.tolist()
    warm.set_params(max_vectors=15)
    Z = warm.fit_transform(X)
    cold = FeatureVectorSelector(max_vectors=15, **settings).fit(X)
    assert warm.indices_.tolist() == cold.indices_.tolist()
    assert warm.indices_[:6].tolist() == first
    assert len(warm.get_feature_names_out()) == 15
    np.testing.assert_allclose(Z, cold.transform(X), atol=1e-8)


@pytest.mark.parametrize("rule", ["gain", "random", "uniform"])
def test_warm_start_of_the_random_rules(X, rule):
    warm = FeatureVectorSelector(max_vectors=6, warm_start=True, rule=rule, kernel=Gaussian(width=0.6)).fit(X)
    first = warm.indices_.tolist()
    warm.set_params(max_vectors=15).fit(X)
    assert warm.indices_[:6].tolist() == first
    assert len(set(warm.indices_.tolist())) == 15


def test_warm_start_with_a_smaller_budget_gives_that_budget(X):
    warm = FeatureVectorSelector(max_vectors=9, warm_start=True, rule="greedy").fit(X)
    nine = warm.indices_.tolist()
    warm.set_params(max_vectors=4).fit(X)
    assert warm.indices_.tolist() == nine[:4]
    assert warm.transform(X).shape == (100, 4)


def test_warm_start_on_other_samples_is_refused(X):
    warm = FeatureVectorSelector(max_vectors=5, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="warm_start=True goes on with the samples of the last fit"):
        warm.fit(X + 1.0)
    with pytest.raises(ValueError, match="warm_start=True goes on with the samples of the last fit"):
        warm.fit(X[:50])


def test_warm_start_with_another_kernel_starts_over(X):
    warm = FeatureVectorSelector(max_vectors=5, warm_start=True).fit(X)
    warm.set_params(kernel=Gaussian(width=0.1)).fit(X)
    assert warm.kernel_.width == 0.1
    cold = FeatureVectorSelector(max_vectors=5, kernel=Gaussian(width=0.1)).fit(X)
    assert warm.indices_.tolist() == cold.indices_.tolist()


def test_many_samples_in_blocks_and_with_a_sampled_centre(rng):
    X = rng.standard_normal((2500, 2))
    for rule in ("gain", "greedy", "random", "uniform"):
        model = FeatureVectorSelector(rule=rule, max_vectors=30, centre=True, kernel=Gaussian(width=0.5)).fit(X)
        assert model.n_vectors_ == len(set(model.indices_.tolist())) == 30
        Z = model.transform(X[:300])
        assert np.linalg.norm(Z, axis=1).max() <= 2.01
