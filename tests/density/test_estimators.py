"""The density estimators: attributes, protocols, scales, weights, messages, and extreme numbers."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KernelDensity

from fewkern import (
    DensityClassifier,
    ForwardConstrainedDensity,
    ForwardDensity,
    KernelMixture,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)
from fewkern.core.path import Path, Stop
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana, make_gaussian_laplacian
from fewkern.density import bandwidth, forward, paper
from fewkern.density.problem import AllRows
from fewkern.density.simplex import reduced_set_bandwidths

X = make_gaussian_laplacian(200, random_state=0)

DENSITIES = [
    ParzenDensity(),
    ForwardDensity(),
    ForwardDensity(cv=None),
    ForwardConstrainedDensity(),
    ReducedSetDensity(bandwidth="silverman"),
    OrthogonalForwardDensity(),
    OrthogonalForwardDensity(target="distribution"),
]
IDS = ["parzen", "ml", "ml-bic", "paper", "rsde", "skd", "sdc"]
every_density = pytest.mark.parametrize("density", DENSITIES, ids=IDS)


@every_density
def test_prediction_reads_only_the_expansion(density):
    model = clone(density).fit(X, sample_weight=np.arange(200) >= 50)
    assert isinstance(model.expansion_, KernelMixture)
    assert model.n_vectors_ == len(model.vectors_) == len(model.weights_) == len(model.bandwidths_)
    if model.indices_ is not None:
        assert model.indices_.min() >= 50
        np.testing.assert_array_equal(model.vectors_, X[model.indices_])
    assert isinstance(model.stop_, Stop)
    assert isinstance(model.path_, Path)
    other = clone(density)
    other.expansion_, other.n_features_in_ = model.expansion_, 2
    log_p = other.score_samples(X)
    np.testing.assert_array_equal(log_p, model.score_samples(X))
    np.testing.assert_array_equal(other.sample(3, random_state=0), model.sample(3, random_state=0))
    np.testing.assert_allclose(other.pdf(X), np.exp(log_p))
    assert other.score(X) == pytest.approx(log_p.sum())


def test_whitening_makes_correlated_data_look_uncorrelated():
    mixing = np.array([[3.0, 2.9], [0.0, 0.1]])
    Z = np.random.default_rng(0).normal(size=(300, 2))
    test = np.random.default_rng(1).normal(size=(2000, 2))
    whitened = ForwardDensity(scale="whiten").fit(Z @ mixing)
    divided = ForwardDensity(scale="std").fit(Z @ mixing)
    assert whitened.score(test @ mixing) > divided.score(test @ mixing) + 100
    drawn = whitened.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn.T), mixing.T @ mixing, atol=0.2 * 9)


def test_parzen_equals_scikit_learn_at_the_same_bandwidth():
    model = ParzenDensity(scale="none").fit(X)
    peer = KernelDensity(bandwidth=model.bandwidth_, rtol=1e-12).fit(X)
    np.testing.assert_allclose(model.score_samples(X[:20]), peer.score_samples(X[:20]), rtol=1e-9)
    np.testing.assert_array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))
    weights = np.random.default_rng(0).random(200)
    weighted = ParzenDensity(scale="none", bandwidth=0.5).fit(X, sample_weight=weights)
    peer = KernelDensity(bandwidth=0.5, rtol=1e-12).fit(X, sample_weight=weights)
    np.testing.assert_allclose(weighted.score_samples(X[:20]), peer.score_samples(X[:20]), rtol=1e-9)


def test_distance_between_two_densities():
    parzen, few = ParzenDensity().fit(X), ForwardDensity().fit(X)
    far = ForwardDensity().fit(X + 20)
    assert 0 < few.l2_distance(parzen) < 0.3 * few.l2_distance(far)
    assert few.l2_distance(few.expansion_) < 1e-7
    with pytest.raises(TypeError, match=r"l2_distance: expected a fitted density.*KernelDensity"):
        few.l2_distance(KernelDensity())
    with pytest.raises(ValueError, match=r"same number of features, got 2 and 1"):
        few.l2_distance(ParzenDensity().fit(X[:, :1]))


def test_prefer_decides_the_size():
    models = [ForwardDensity(prefer=prefer).fit(X) for prefer in ("sparse", "balanced", "accurate")]
    sizes = [model.n_vectors_ for model in models]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2]
    best = models[2]
    assert best.path_.setting["n_vectors"] == best.n_vectors_
    assert best.path_.chosen[0] == int(np.argmin(best.path_.error))
    assert ForwardDensity(max_vectors=2).fit(X).n_vectors_ <= 2
    assert best.indices_ is None
    assert best.least_bandwidth_ == 1.5 * best.bandwidth_
    assert np.all(best.bandwidths_ >= best.least_bandwidth_ * (1 - 1e-12))


def test_many_dimensions_do_not_collapse_to_one_kernel():
    rng, m = np.random.default_rng(0), 40
    lumps = 1.5 * rng.normal(size=(4, m))
    data = lumps[rng.integers(0, 4, 1200)] + rng.normal(size=(1200, m))
    model = ForwardDensity().fit(data[:600])
    assert model.n_vectors_ == 4
    assert model.score(data[600:]) > ParzenDensity(bandwidth="silverman").fit(data[:600]).score(data[600:]) + 100


@pytest.mark.parametrize(
    ("density", "n"),
    [(ReducedSetDensity(), 2), (ReducedSetDensity(), 3), (ForwardDensity(cv=5, bandwidth="silverman"), 3)],
)
def test_too_few_samples_for_the_folds_that_were_asked_for(density, n):
    with pytest.warns(UserWarning, match=rf"{type(density).__name__}: {n} samples .* too few for folds") as seen:
        model = density.fit(X[:n])
    assert seen[-1].filename == __file__
    assert np.all(np.isfinite(model.score_samples(X)))


@every_density
@pytest.mark.parametrize("n", [2, 3])
def test_two_samples_are_enough_and_without_folds_no_reason_to_warn(density, n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(density).set_params(bandwidth="silverman").fit(X[:n])
    assert np.all(np.isfinite(model.score_samples(X[:n])))


@pytest.mark.parametrize(
    ("density", "place", "name"),
    [
        (ForwardDensity(scale="std"), forward, "MAX_CANDIDATES"),
        (ForwardConstrainedDensity(), paper, "MAX_CANDIDATES"),
        (ReducedSetDensity(bandwidth="silverman"), paper, "MAX_CANDIDATES"),
        (OrthogonalForwardDensity(), paper, "_MAX_ORTHOGONAL_ROWS"),
    ],
)
def test_candidates_are_drawn_where_there_are_more(density, place, name, monkeypatch):
    monkeypatch.setattr(place, name, 20)
    model, again, other = (clone(density).set_params(random_state=seed).fit(X) for seed in (0, 0, 1))
    assert model.n_vectors_ <= 20
    np.testing.assert_array_equal(model.vectors_, again.vectors_)
    assert not np.array_equal(model.vectors_, other.vectors_)


def test_reduced_set_compares_bandwidths_on_the_candidates(monkeypatch):
    """The bandwidth of many samples is that of the candidates alone, less by what more samples allow."""
    monkeypatch.setattr(paper, "MAX_CANDIDATES", 80)
    density = ReducedSetDensity().fit(X)
    drawn = np.sort(np.random.default_rng(0).choice(len(X), 80, replace=False))
    problem = AllRows.of(Samples.of(X), "std").scaling.problem(Samples.of(X[drawn]))
    alone = replace(problem, unit=density.path_.axes["bandwidth"][0] * (200 / 80) ** (1 / 6))
    path = reduced_set_bandwidths(alone, Samples.of(X[drawn]).folds(5))
    factor = (200 / 80) ** (2 / 6)  # of the units of squared errors in two dimensions
    np.testing.assert_allclose(density.path_.error * factor, path.error, rtol=1e-9)
    assert density.path_.chosen == path.chosen
    assert np.isin(density.indices_, drawn).all()
    assert (density.gap_ <= 1e-8, density.stop_) == (True, Stop.CONVERGED)
    assert density.bandwidth_ == density.path_.axes["bandwidth"][int(np.argmin(density.path_.error))]


def test_a_constant_feature_is_named_and_gets_the_bandwidth_of_the_others():
    flat = np.column_stack([X, np.full(200, 3.0)])
    with pytest.warns(UserWarning, match=r"1 of 3 features.*constant") as seen:
        model = ParzenDensity(bandwidth=0.3).fit(flat)
    assert seen[0].filename == __file__
    scale = np.mean(X.std(axis=0))
    expected = ParzenDensity(bandwidth=0.3).fit(X).score_samples(X) - np.log(0.3 * scale * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(model.score_samples(flat), expected, atol=1e-9)


def test_duplicates_are_named():
    with pytest.warns(UserWarning, match=r"because 100 pairs of samples are equal; remove duplicated"):
        ParzenDensity().fit(np.repeat(X[:100], 2, axis=0))


def test_a_bandwidth_at_the_end_of_the_grid_is_named(monkeypatch):
    monkeypatch.setattr(bandwidth, "_GRID_IN_SILVERMANS", np.geomspace(1e8, 1e9, 5))
    with pytest.warns(UserWarning, match="lies at an end of the bandwidths tried") as seen:
        model = ParzenDensity().fit(X)
    # the first grid, and three extensions by its span
    assert (model.stop_, model.path_.chosen, len(model.path_.error)) == (Stop.EDGE, (0,), 5 + 3 * 4)
    assert seen[0].filename == __file__  # where the user called fit


@every_density
@pytest.mark.parametrize("scale", ["std", "whiten"])
@pytest.mark.parametrize(
    ("factors", "shift", "tolerance"),
    [
        ([1e200] * 2, 0.0, {"rtol": 1e-6}),
        ([1e-200] * 2, 0.0, {"rtol": 1e-6}),
        ([1e3, 1e-4], [5e5, -3.0], {"atol": 1e-5}),
    ],
)
def test_units_of_the_features_do_not_matter(density, scale, factors, shift, tolerance):
    there = X * factors + shift
    model, other = (clone(density).set_params(scale=scale).fit(data) for data in (X, there))
    expected = model.score_samples(X) - np.log(factors).sum()
    np.testing.assert_allclose(other.score_samples(there), expected, **{"rtol": 1e-12, **tolerance})


@pytest.mark.filterwarnings("ignore:.*of cross-validation lies at an end:UserWarning")
@pytest.mark.filterwarnings("ignore:.*features .* are constant:UserWarning")
@every_density
def test_hundreds_of_features_on_a_line_or_not(density):
    rng = np.random.default_rng(0)
    line = np.outer(rng.normal(size=30), rng.normal(size=800))
    for data in (line, rng.normal(size=(30, 800))):
        if getattr(density, "target", None) == "distribution":
            continue
        model = clone(density).fit(data)
        assert np.all(np.isfinite(model.score_samples(data)))
        assert abs(model.weights_.sum() - 1) <= 1e-12


FEW = X[:60]
FAR = np.vstack([X[:5], [[1e6, -1e6]], [[1e30, 1e30]]])
# Kernels that no longer overlap, or all look alike, are worth a warning of ours; those of NumPy are errors.
ours = pytest.mark.filterwarnings("ignore:[A-Z][a-z]+[A-Za-z]*Density:UserWarning")


def _finite(model, dtype=np.float64):
    far = FAR.astype(dtype)
    return all(np.all(np.isfinite(found)) for found in (model.score_samples(far), model.cdf(far), model.sample(3)))


@ours
@every_density
@pytest.mark.parametrize(("bandwidth", "dtype"), [(1e-39, "f8"), (1e39, "f8"), (1e-17, "f4"), (1e17, "f4")])
def test_a_bandwidth_within_the_range_gives_finite_numbers(density, bandwidth, dtype):
    assert _finite(clone(density).set_params(bandwidth=bandwidth).fit(FEW.astype(dtype)), dtype)


@ours
@pytest.mark.parametrize("light", [1e-17, 1e-99])
@pytest.mark.parametrize("rule", ["lscv", "likelihood"])
def test_one_sample_of_nearly_all_the_weight(light, rule):
    weights = np.full(60, light)
    weights[5] = 1.0
    if light > 1e-90:
        assert _finite(ParzenDensity(bandwidth=rule, scale="none").fit(FEW, sample_weight=weights))
    spread_out = 10.0 ** np.linspace(np.log10(light), 0, 60)
    assert _finite(ParzenDensity(bandwidth=rule).fit(FEW, sample_weight=spread_out))


@every_density
@pytest.mark.filterwarnings("ignore:.*features .* are constant:UserWarning")
def test_a_constant_feature_near_the_largest_number_is_a_constant_feature(density):
    flat = np.column_stack([FEW, np.full(60, 1e308)])
    for scale in ("std", "whiten"):
        model = clone(density).set_params(scale=scale).fit(flat)
        assert np.all(np.isfinite(model.score_samples(flat)))
        one = clone(density).set_params(scale=scale).fit(np.column_stack([FEW, np.ones(60)]))
        np.testing.assert_allclose(model.bandwidths_, one.bandwidths_)


def test_splits_choose_the_size():
    halves = [(range(30, 60), range(30)), (range(30), range(30, 60))]
    assert ForwardDensity(cv=halves, max_vectors=2).fit(FEW).n_vectors_ <= 2


RANGE = r"{} must lie between 1e-40 and 1e\+40 in units of the scaled data"
SPREADS = r"spreads of the features must lie between 7e-306 and 1e\+305, got 2.7\de-310 to"
ERRORS = [
    *((clone(density), np.ones((5, 2)), "all samples of positive weight are equal") for density in DENSITIES[:2]),
    (ParzenDensity(), FEW * [1e-310, 1.0], SPREADS),
    (ForwardDensity(scale="whiten"), FEW * [1e-310, 1.0], SPREADS),
    *((clone(one).set_params(bandwidth=s), FEW, RANGE.format("bandwidth")) for one in DENSITIES for s in (1e-99, 1e99)),
    (ForwardConstrainedDensity(gamma=1e300), FEW, RANGE.format("gamma times Parzen's bandwidth")),
    (OrthogonalForwardDensity(kernel_bandwidth=1e-300), FEW, RANGE.format("kernel_bandwidth")),
    (
        OrthogonalForwardDensity(target="distribution"),
        np.random.default_rng(0).normal(size=(30, 800)),
        "800 dimensions, all columns .* underflow to zero; use target=",
    ),
    (ForwardDensity(cv=[(range(30), range(100, 110))]), FEW, "a split names row 100, but the rows are 0 to 59"),
    (ForwardDensity(cv=[(range(30), [-1])]), FEW, "a split names row -1, but the rows are 0 to 59"),
    (ForwardDensity(cv=[(range(30), [])]), FEW, "at least two samples .* but split 0 has 30 and 0"),
    (ForwardDensity(cv=[(range(30, 60), range(30)), ([1], range(30))]), FEW, "but split 1 has 1 and 30"),
    (DensityClassifier(), X[:10], "class 'rare' has fewer than two different samples"),
]


@ours
@pytest.mark.parametrize(("density", "data", "message"), ERRORS)
def test_input_and_settings_that_cannot_be_used_are_explained(density, data, message):
    with pytest.raises(ValueError, match=rf"({type(density).__name__}|cv): .*{message}"):
        density.fit(data, ["common"] * (len(data) - 1) + ["rare"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bayes_rule(n_classes):
    Z, y = make_banana(200, random_state=0)
    y = np.where(Z[:, 0] > np.quantile(Z[:, 0], 0.7), 5, y) if n_classes == 3 else y
    model = DensityClassifier(estimator=ParzenDensity(bandwidth=0.3)).fit(Z, y)
    shares = [np.mean(y == c) for c in model.classes_]
    joint = np.column_stack([np.log(share) + d.score_samples(Z) for share, d in zip(shares, model.densities_)])
    np.testing.assert_allclose(model.predict_joint_log_proba(Z), joint)
    scores = joint if n_classes == 3 else joint[:, 1] - joint[:, 0]
    np.testing.assert_allclose(model.decision_function(Z), scores, atol=1e-9)
    powers = np.exp(joint) ** model.class_scores_.factor
    np.testing.assert_allclose(model.predict_proba(Z), powers / powers.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(Z), model.classes_[joint.argmax(axis=1)])
    np.testing.assert_array_equal(model.expansion_.vectors, np.vstack([d.vectors_ for d in model.densities_]))
    assert model.n_vectors_ == len(model.expansion_.vectors)
    assert model.expansion_.nbytes == sum(d.expansion_.nbytes for d in model.densities_)
    assert model.predict_proba([[1e5, 1e5]]).sum() == pytest.approx(1)
    # other priors change the odds by their ratio
    priors = np.array([0.2, 0.8 / (n_classes - 1)] + [0.4] * (n_classes - 2))
    moved = DensityClassifier(estimator=ParzenDensity(bandwidth=0.3), priors=priors).fit(Z, y)
    expected = model.predict_proba(Z) * priors / model.priors_
    np.testing.assert_allclose(moved.predict_proba(Z), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_array_equal(moved.predict(Z), moved.classes_[expected.argmax(axis=1)])

    # by default they are the shares of the weights
    weights = np.where(y == y[0], 3.0, 1.0)
    shares = np.array([weights[y == c].sum() for c in model.classes_]) / weights.sum()
    np.testing.assert_allclose(
        DensityClassifier(estimator=ParzenDensity(bandwidth=0.3)).fit(Z, y, weights).priors_, shares
    )


def test_confidence_in_many_dimensions():
    """Densities of 20 features differ by factors that no sample supports."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    Z = rng.standard_normal((600, 20)) * np.where(y[:, None] == 1, 1.2, 1.0) + 0.15 * y[:, None]
    model = DensityClassifier(estimator=ParzenDensity(bandwidth=0.5)).fit(Z[:200], y[:200])
    assert model.class_scores_.factor < 0.5
    stated, right = model.predict_proba(Z[200:]).max(axis=1).mean(), model.score(Z[200:], y[200:])
    assert stated == pytest.approx(right, abs=0.08)
