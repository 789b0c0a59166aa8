"""The density estimators: attributes, protocols, scales, weights, messages."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

import fewkern
from fewkern import (
    DensityClassifier,
    ForwardDensity,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)
from fewkern.datasets import make_banana, make_gaussian_laplacian

X = make_gaussian_laplacian(200, random_state=0)

DENSITIES = [
    ParzenDensity(),
    ForwardDensity(),
    ForwardDensity(polish=False, size="loo-1se"),
    ForwardDensity(variant="ml"),
    ForwardDensity(variant="paper"),
    ForwardDensity(variant="refit"),
    ReducedSetDensity(width="silverman"),
    ReducedSetDensity(width=0.5, solver="mnqp"),
    OrthogonalForwardDensity(),
    OrthogonalForwardDensity(target="distribution"),
]
IDS = ["parzen", "ise-em", "ise", "ml", "paper", "refit", "rsde", "rsde-mnqp", "skd", "sdc"]
every_density = pytest.mark.parametrize("density", DENSITIES, ids=IDS)


@every_density
def test_fitted_attributes_agree_with_the_expansion(density):
    model = clone(density).fit(X)
    assert model.n_vectors_ == len(model.vectors_) == len(model.weights_) == len(model.widths_)
    assert abs(model.weights_.sum() - 1) <= 1e-12
    assert np.all(model.weights_ >= 0)
    assert np.all(model.widths_ > 0)
    assert isinstance(model.stop_, str)
    assert len(model.trace_) > 0 if isinstance(model.trace_, tuple) else model.trace_ is not None
    if model.indices_ is not None:
        np.testing.assert_array_equal(model.vectors_, X[model.indices_])
    assert model.expansion_.vectors is model.vectors_


@every_density
def test_log_density_pdf_and_score_agree(density):
    model = clone(density).fit(X)
    log_p = model.score_samples(X)
    np.testing.assert_allclose(model.pdf(X), np.exp(log_p))
    assert model.score(X) == pytest.approx(log_p.sum())
    assert np.all(np.isfinite(model.score_samples(np.array([[1e6, -1e6], [1e200, 0.0]]))))


@every_density
def test_prediction_reads_only_the_expansion(density):
    model = clone(density).fit(X)
    other = clone(density)
    other.expansion_, other.n_features_in_ = model.expansion_, 2
    np.testing.assert_array_equal(other.score_samples(X[:5]), model.score_samples(X[:5]))
    np.testing.assert_array_equal(other.sample(3, random_state=0), model.sample(3, random_state=0))


@every_density
def test_same_input_gives_the_same_model(density):
    np.testing.assert_array_equal(clone(density).fit(X).weights_, clone(density).fit(X).weights_)


@every_density
def test_float32_stays_float32(density):
    model = clone(density).fit(X.astype(np.float32))
    assert model.vectors_.dtype == model.weights_.dtype == model.score_samples(X.astype(np.float32)).dtype == np.float32
    reference = clone(density).fit(X)
    np.testing.assert_allclose(model.score_samples(X.astype(np.float32)), reference.score_samples(X), atol=0.05)


@every_density
def test_torch_gives_the_same_density(density):
    torch = pytest.importorskip("torch")
    model = clone(density).fit(torch.asarray(X))
    log_p = model.score_samples(torch.asarray(X))
    assert isinstance(log_p, torch.Tensor)
    np.testing.assert_allclose(np.asarray(log_p), clone(density).fit(X).score_samples(X), atol=1e-6)
    assert isinstance(model.sample(2, random_state=0), torch.Tensor)


@every_density
def test_zero_weights_leave_samples_out_and_constant_weights_change_nothing(density):
    weights = np.ones(200)
    plain = clone(density).fit(X).score_samples(X)
    np.testing.assert_allclose(clone(density).fit(X, sample_weight=3 * weights).score_samples(X), plain, atol=1e-6)
    weights[:50] = 0
    dropped, left_out = clone(density).fit(X, sample_weight=weights), clone(density).fit(X[50:])
    np.testing.assert_allclose(dropped.score_samples(X), left_out.score_samples(X), atol=1e-6)
    if dropped.indices_ is not None:
        assert dropped.indices_.min() >= 50
        np.testing.assert_array_equal(dropped.vectors_, X[dropped.indices_])


@every_density
def test_units_of_the_features_do_not_matter(density):
    factors, shift = np.array([1e3, 1e-4]), np.array([5e5, -3.0])
    model, other = clone(density).fit(X), clone(density).fit(X * factors + shift)
    expected = model.score_samples(X) - np.log(factors).sum()
    np.testing.assert_allclose(other.score_samples(X * factors + shift), expected, atol=1e-5)


def test_whitening_makes_correlated_data_look_uncorrelated():
    mixing = np.array([[3.0, 2.9], [0.0, 0.1]])
    Z = np.random.default_rng(0).normal(size=(300, 2))
    test = np.random.default_rng(1).normal(size=(2000, 2))
    whitened = ForwardDensity(scale="whiten").fit(Z @ mixing)
    divided = ForwardDensity().fit(Z @ mixing)
    assert whitened.score(test @ mixing) > divided.score(test @ mixing) + 100
    direct = ForwardDensity(scale="whiten").fit(Z)
    expected = direct.score_samples(test) - np.log(abs(np.linalg.det(mixing)))
    np.testing.assert_allclose(whitened.score_samples(test @ mixing), expected, atol=1e-6)
    drawn = whitened.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn.T), mixing.T @ mixing, atol=0.2 * 9)
    with pytest.raises(ValueError, match="products over the features"):
        whitened.cdf(Z)


def test_parzen_equals_scikit_learn_at_the_same_width():
    model = ParzenDensity(scale="none").fit(X)
    peer = KernelDensity(bandwidth=model.width_, rtol=1e-12).fit(X)
    np.testing.assert_allclose(model.score_samples(X[:20]), peer.score_samples(X[:20]), rtol=1e-9)
    weights = np.random.default_rng(0).random(200)
    weighted = ParzenDensity(scale="none", width=0.5).fit(X, sample_weight=weights)
    peer = KernelDensity(bandwidth=0.5, rtol=1e-12).fit(X, sample_weight=weights)
    np.testing.assert_allclose(weighted.score_samples(X[:20]), peer.score_samples(X[:20]), rtol=1e-9)


@pytest.mark.parametrize("rule", ["lscv", "lscv-approximate", "likelihood", "silverman", "scott"])
def test_every_rule_gives_a_sensible_width(rule):
    assert 0.05 < ParzenDensity(width=rule).fit(X).width_ < 0.6


def test_a_grid_of_ten_widths_as_in_the_paper():
    grid = np.linspace(0.1, 1.0, 10)
    model = ParzenDensity(scale="none", grid=grid).fit(X)
    assert np.any(np.isclose(model.width_, grid))
    assert len(model.trace_.widths) == 10


def test_the_width_of_many_samples_comes_from_some_of_them():
    many = make_gaussian_laplacian(3000, random_state=1)
    some, all_of_them = ParzenDensity(search_rows=1000).fit(many), ParzenDensity(search_rows=5000).fit(many)
    assert some.width_ == pytest.approx(all_of_them.width_, rel=0.25)


def test_samples_follow_the_density():
    model = ForwardDensity().fit(X)
    drawn = model.sample(4000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), model.weights_ @ model.vectors_, atol=0.2)
    # the distribution function of the samples is the one of the model
    for point in X[:5]:
        assert np.mean(np.all(drawn <= point, axis=1)) == pytest.approx(model.cdf(point[None])[0], abs=0.03)
    np.testing.assert_array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))


def test_distance_between_two_densities():
    parzen, few = ParzenDensity().fit(X), ForwardDensity().fit(X)
    far = ForwardDensity().fit(X + 20)
    assert 0 < few.l2_distance(parzen) < 0.3 * few.l2_distance(far)
    assert few.l2_distance(few.expansion_) < 1e-7
    with pytest.raises(TypeError, match=r"l2_distance: expected a fitted density.*KernelDensity"):
        few.l2_distance(KernelDensity())
    with pytest.raises(ValueError, match=r"same number of features, got 2 and 1"):
        few.l2_distance(ParzenDensity().fit(X[:, :1]))


def test_sizes_of_the_improved_variant():
    small, best = ForwardDensity(size="loo-1se").fit(X), ForwardDensity().fit(X)
    assert small.n_vectors_ <= best.n_vectors_
    assert ForwardDensity(size="max", max_vectors=4).fit(X).n_vectors_ == 4
    assert ForwardDensity(polish=False).fit(X).indices_ is not None
    assert best.indices_ is None
    assert np.all(best.widths_ >= 1.5 * best.width_ * (1 - 1e-12))


def test_polish_raises_the_likelihood():
    assert ForwardDensity().fit(X).score(X) > ForwardDensity(polish=False).fit(X).score(X)


def test_cross_validated_variant_chooses_gamma_and_size():
    model = ForwardDensity(variant="cv", n_folds=2, max_vectors=4).fit(X[:80])
    assert model.gamma_ in (1.25, 1.5, 1.75, 2.0, 2.25)
    assert 1 <= model.n_vectors_ <= 4
    assert ForwardDensity(variant="cv", n_folds=2, max_vectors=2, gamma=1.9).fit(X[:80]).gamma_ == 1.9


def test_candidates_are_drawn_where_there_are_more():
    few = ForwardDensity(max_candidates=20, polish=False)
    model = few.fit(X)
    assert model.n_vectors_ <= 20
    other = clone(few).set_params(random_state=1).fit(X)
    assert set(model.indices_) != set(other.indices_)
    paper = ForwardDensity(variant="paper", max_candidates=20).fit(X)
    assert paper.n_vectors_ <= 20


def test_reduced_set_is_exact_and_its_width_cross_validated():
    model = ReducedSetDensity().fit(X)
    assert model.gap_ <= 1e-8
    assert model.width_ == min(model.trace_, key=model.trace_.get)
    assert len(model.trace_) == 10
    exact, slow = ReducedSetDensity(width=0.5).fit(X), ReducedSetDensity(width=0.5, solver="mnqp").fit(X)
    assert exact.n_vectors_ <= slow.n_vectors_
    assert exact.l2_distance(slow) < 0.02
    assert slow.stop_ == "limit"


def test_orthogonal_rows_are_drawn_where_there_are_more():
    model = OrthogonalForwardDensity(max_rows=60).fit(X)
    assert 1 <= model.n_vectors_ <= 60
    assert model.total_ == pytest.approx(1, abs=0.3)


def test_data_frames_and_grid_search():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ForwardDensity().fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(model.score_samples(frame), ForwardDensity().fit(X).score_samples(X))
    search = GridSearchCV(ParzenDensity(), {"width": [0.01, 0.3]}, cv=3).fit(X)
    assert search.best_params_ == {"width": 0.3}


def test_two_samples_are_enough():
    pair = np.array([[0.0, 0.0], [1.0, 2.0]])
    for density in DENSITIES:
        if not isinstance(density, ReducedSetDensity):
            density = clone(density).set_params(width="silverman")
        model = clone(density).fit(pair)
        assert np.all(np.isfinite(model.score_samples(pair)))


@every_density
def test_equal_samples_are_an_error(density):
    with pytest.raises(ValueError, match=r"all samples of positive weight are equal .*at least two different samples"):
        clone(density).fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="all samples of positive weight are equal"):
        clone(density).fit(X, sample_weight=np.eye(200)[0])


def test_a_constant_feature_is_named_and_gets_the_width_of_the_others():
    flat = np.column_stack([X, np.full(200, 3.0)])
    with pytest.warns(UserWarning, match=r"1 of 3 features.*constant"):
        model = ParzenDensity(width=0.3).fit(flat)
    scale = np.mean(X.std(axis=0))
    expected = ParzenDensity(width=0.3).fit(X).score_samples(X) - np.log(0.3 * scale * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(model.score_samples(flat), expected, atol=1e-9)


def test_duplicates_are_named():
    with pytest.warns(UserWarning, match=r"\d+ pairs of samples are equal; remove duplicated"):
        ParzenDensity().fit(np.repeat(X[:100], 2, axis=0))


def test_a_width_at_the_end_of_the_grid_is_named():
    with pytest.warns(UserWarning, match="lies at an end of the widths tried"):
        ParzenDensity(grid=[1e4, 2e4]).fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(200), "sample_weight must be finite, not negative"),
        (np.zeros(200), "not all zero"),
        (np.ones(3), "one number per sample"),
    ],
)
def test_bad_weights_are_an_error(weights, message):
    with pytest.raises(ValueError, match=message):
        ForwardDensity().fit(X, sample_weight=weights)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_an_error(bad):
    broken = X.copy()
    broken[0, 0] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ForwardDensity().fit(broken)


def test_unknown_options_are_an_error():
    with pytest.raises(ValueError, match="The 'variant' parameter of ForwardDensity"):
        ForwardDensity(variant="best").fit(X)


def test_public_names():
    for name in (
        "ParzenDensity",
        "ForwardDensity",
        "ReducedSetDensity",
        "OrthogonalForwardDensity",
        "DensityClassifier",
    ):
        assert name in fewkern.__all__


class TestDensityClassifier:
    def test_bayes_rule(self):
        Z, y = make_banana(300, random_state=0)
        model = DensityClassifier().fit(Z, y)
        shares = [np.mean(y == c) for c in model.classes_]
        joint = np.column_stack([share * d.pdf(Z) for share, d in zip(shares, model.densities_)])
        np.testing.assert_allclose(model.predict_proba(Z), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
        np.testing.assert_array_equal(model.predict(Z), model.classes_[joint.argmax(axis=1)])
        assert model.n_vectors_ == sum(d.n_vectors_ for d in model.densities_)
        assert model.score(Z, y) > 0.85

    def test_far_samples_still_have_probabilities(self):
        Z, y = make_banana(200, random_state=0)
        proba = DensityClassifier(estimator=ForwardDensity(variant="ml")).fit(Z, y).predict_proba([[1e5, 1e5]])
        assert np.all(np.isfinite(proba))
        assert proba.sum() == pytest.approx(1)

    def test_weights_and_priors(self):
        Z, y = make_banana(200, random_state=0)
        weights = np.where(y == y[0], 3.0, 1.0)
        share = weights[y == y.max()].sum() / weights.sum()
        base = ParzenDensity(width=0.3)
        assert DensityClassifier(estimator=base).fit(Z, y, weights).priors_[1] == pytest.approx(share)
        assert DensityClassifier(estimator=base, priors=[0.1, 0.9]).fit(Z, y).priors_[0] == 0.1
        with pytest.raises(ValueError, match="priors must be 2 positive numbers of sum one"):
            DensityClassifier(estimator=base, priors=[0.5, 0.9]).fit(Z, y)

    def test_a_class_of_one_sample_is_an_error(self):
        with pytest.raises(ValueError, match="class 'rare' has fewer than two different samples"):
            DensityClassifier().fit(X[:10], np.array(["common"] * 9 + ["rare"]))
