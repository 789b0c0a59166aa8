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
def test_products_of_features_approximate_the_kernel(X, projection, center):
    model = FeatureVectorSelector(
        kernel=Gaussian(length_scale=1.0), max_vectors=100, projection=projection, center=center
    )
    Z = model.fit_transform(X)
    assert Z.shape == (100, model.n_vectors_)
    np.testing.assert_allclose(Z, model.transform(X), atol=1e-4)
    if projection != "raw":
        K = Gaussian(length_scale=1.0)(X, X)
        b = np.zeros(100)
        if center:
            b[model.basis_.center_indices] = model.basis_.center_weights
        shift = np.eye(100) - np.outer(b, np.ones(100))
        np.testing.assert_allclose(Z @ Z.T, shift.T @ K @ shift, atol=1e-7)


def test_greedy_is_centred_by_default_and_gain_is_not(X):
    K = Gaussian(length_scale=1.0)(X, X)
    paper = FeatureVectorSelector(kernel=Gaussian(length_scale=1.0), rule="greedy", max_vectors=10).fit(X)
    c = fvs.centre_index(K)
    assert paper.basis_.center_indices.tolist() == [c]
    assert paper.indices_.tolist() == fvs.literal_selection(fvs.centred(K, c), 10)[0]
    assert FeatureVectorSelector().fit(X).basis_.center_vectors is None


def test_fitness_is_its_definition(X):
    model = FeatureVectorSelector(kernel=Gaussian(length_scale=1.0), max_fitness=0.9, max_vectors=100).fit(X)
    assert model.stop_ == "fitness"
    K = Gaussian(length_scale=1.0)(X, X)
    expected = [fvs.global_fitness(K, model.indices_[: j + 1]) for j in range(model.n_vectors_)]
    np.testing.assert_allclose(model.fitness_, expected)
    assert model.fitness_[-1] >= 0.9 > model.fitness_[-2]


def test_more_candidates_explain_more(X):
    few, many = (FeatureVectorSelector(max_vectors=8, n_candidates=k).fit(X).fitness_[-1] for k in (1, 100))
    assert many > few


def test_warm_start_goes_on(X):
    settings = {"rule": "greedy", "kernel": Gaussian(length_scale=0.6)}
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
    warm = FeatureVectorSelector(max_vectors=6, warm_start=True, rule=rule, kernel=Gaussian(length_scale=0.6)).fit(X)
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
    with pytest.raises(ValueError, match="warm_start=True goes on with the samples and weights of the last fit"):
        warm.fit(X + 1.0)
    with pytest.raises(ValueError, match="warm_start=True goes on with the samples and weights of the last fit"):
        warm.fit(X[:50])
    # one entry of a row that was not chosen
    other = X.copy()
    other[next(i for i in range(100) if i not in warm.indices_)] += 1e-3
    with pytest.raises(ValueError, match="warm_start=True goes on with the samples and weights of the last fit"):
        warm.fit(other)
    with pytest.raises(ValueError, match="warm_start=True goes on with the samples and weights of the last fit"):
        warm.fit(X, sample_weight=np.arange(1.0, 101.0))


def test_warm_start_with_widths_that_print_alike_starts_over(rng):
    """NumPy shortens an array above 1000 entries, so the text of a kernel does not tell."""
    X, widths = rng.standard_normal((20, 1100)), np.full(1100, 30.0)
    warm = FeatureVectorSelector(kernel=Gaussian(widths), max_vectors=4, warm_start=True).fit(X)
    other = widths.copy()
    other[400:700] = 3.0
    warm.set_params(kernel=Gaussian(other)).fit(X)
    np.testing.assert_array_equal(warm.kernel_.length_scale, other)


def test_warm_start_with_another_kernel_starts_over(X):
    warm = FeatureVectorSelector(max_vectors=5, warm_start=True).fit(X)
    warm.set_params(kernel=Gaussian(length_scale=0.1)).fit(X)
    assert warm.kernel_.length_scale == 0.1
    cold = FeatureVectorSelector(max_vectors=5, kernel=Gaussian(length_scale=0.1)).fit(X)
    assert warm.indices_.tolist() == cold.indices_.tolist()


def test_many_samples_in_blocks_and_with_a_sampled_centre(rng):
    X = rng.standard_normal((2500, 2))
    for rule in ("gain", "greedy", "random", "uniform"):
        model = FeatureVectorSelector(rule=rule, max_vectors=30, center=True, kernel=Gaussian(length_scale=0.5)).fit(X)
        assert model.n_vectors_ == len(set(model.indices_.tolist())) == 30
        Z = model.transform(X[:300])
        assert np.linalg.norm(Z, axis=1).max() <= 2.01


def test_a_sample_of_weight_zero_is_absent(X):
    weights = np.ones(100)
    weights[::3] = 0
    kept = weights > 0
    for rule in ("gain", "greedy", "random", "uniform"):
        one = FeatureVectorSelector(rule=rule, max_vectors=8).fit(X, sample_weight=weights)
        two = FeatureVectorSelector(rule=rule, max_vectors=8).fit(X[kept])
        assert one.kernel_ == two.kernel_
        np.testing.assert_array_equal(one.vectors_, two.vectors_)
        np.testing.assert_array_equal(one.indices_, np.flatnonzero(kept)[two.indices_])
        np.testing.assert_allclose(one.fit_transform(X, sample_weight=weights), two.transform(X), atol=1e-10)


def test_a_precomputed_row_of_weight_zero_is_absent_with_its_column(X):
    K, weights = Gaussian(1.0)(X, X), np.ones(100)
    weights[:40] = 0
    one = FeatureVectorSelector(kernel="precomputed", max_vectors=8).fit(K, sample_weight=weights)
    two = FeatureVectorSelector(kernel="precomputed", max_vectors=8).fit(K[40:, 40:])
    np.testing.assert_array_equal(one.indices_, 40 + two.indices_)
    np.testing.assert_allclose(one.transform(K), two.transform(K[:, 40:]), atol=1e-12)


def test_the_inverse_root_is_computed_once(X, monkeypatch):
    model = FeatureVectorSelector(projection="symmetric", max_vectors=6).fit(X)
    first = model.transform(X)
    monkeypatch.setattr(np.linalg, "svd", None)
    np.testing.assert_array_equal(model.transform(X), first)
