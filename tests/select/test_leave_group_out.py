"""Leaving whole groups out in closed form equals refits without them."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor
from fewkern.core.kernel import Gram
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Gaussian
from fewkern.select.leave_one_out import GroupBlocks, LooScheme, loo_paths, solve
from fewkern.select.paths import KernelGrid
from fewkern.select.search import automatic_space, nested_values, search
from fewkern.select.selection import SelectionRule, select_vectors
from tests.oracles import fvs

# Groups of one, of several sizes, and one with more samples than there are columns.
GROUPS = np.array([0] * 14 + [1, 2, 2, 2, 5, 5, 7, 8, 8, 8, 8, 8, 9, 9, 9, 9])


@pytest.fixture
def G(rng):
    return select_vectors(Gram(Gaussian(length_scale=1.5), rng.standard_normal((30, 2))), SelectionRule(), 8).G


@pytest.fixture(params=["none", "real"])
def weights(request, rng):
    return None if request.param == "none" else rng.random(30) + 0.1


def without_groups(G, Y, ridge, w, groups):
    """Every group predicted by a fit to the others."""
    out = np.empty_like(Y)
    for g in np.unique(groups):
        own = groups == g
        beta = fvs.refit(G[~own], Y[~own], ridge, w[~own])
        out[own] = beta[0] + G[own] @ beta[1:]
    return out


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_path_equals_refits(G, rng, ridge, outputs, weights):
    Y, w = rng.standard_normal((30, outputs)), np.ones(30) if weights is None else weights
    path = loo_paths(G, Y, (ridge,), weights, LooScheme(GroupBlocks.of(GROUPS)))[0]
    for L in range(9):
        error = np.sum((Y - without_groups(G[:, :L], Y, ridge, w, GROUPS)) ** 2, axis=1)
        assert path.error[L] == pytest.approx(np.average(error, weights=w), rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_held_out_values_equal_refits(G, rng, ridge, weights):
    Y, w = rng.standard_normal((30, 2)), np.ones(30) if weights is None else weights
    found = solve(G, Y, ridge, weights, LooScheme(GroupBlocks.of(GROUPS)))
    np.testing.assert_allclose(found.held_out, without_groups(G, Y, ridge, w, GROUPS), atol=1e-7)
    np.testing.assert_allclose(found.W, solve(G, Y, ridge, weights).W)


def test_spread_counts_groups_not_samples(G, rng):
    """The standard error is that of a mean over groups: samples that say the same do not make it smaller."""
    Y = rng.standard_normal((30, 1))
    twice, numbers = np.repeat(np.arange(30), 2), np.repeat(np.arange(30), 2)
    path = loo_paths(G[twice], Y[twice], (0.1,), None, LooScheme(GroupBlocks.of(numbers)))[0]
    half = loo_paths(G, Y, (0.05,))[0]
    np.testing.assert_allclose(path.error, half.error, rtol=1e-8)
    np.testing.assert_allclose(path.std_error, half.std_error, rtol=1e-8)


def test_a_direction_of_one_group_is_unknown_without_it():
    """A vector that only one group reaches: left out, nothing but the mean of the others is known of it."""
    G = np.zeros((12, 1))
    G[:4, 0] = 1.0
    Y = np.arange(12.0)[:, None]
    groups = np.array([0] * 4 + [1] * 4 + [2] * 4)
    held_out = solve(G, Y, 0.0, None, LooScheme(GroupBlocks.of(groups))).held_out[:, 0]
    np.testing.assert_allclose(held_out[:4], Y[4:].mean())
    np.testing.assert_allclose(held_out[4:8], Y[8:].mean())
    error = loo_paths(G, Y, (0.0,), None, LooScheme(GroupBlocks.of(groups)))[0].error
    assert error[1] == pytest.approx(np.mean((Y[:, 0] - held_out) ** 2))


@pytest.mark.parametrize("n_vectors", [None, 4])
@pytest.mark.parametrize("groups", [None, np.arange(40) // 2])
def test_a_part_is_judged_at_the_settings_that_the_others_choose(n_vectors, groups):
    X, y = make_sinc(40, noise=0.3)
    grid = KernelGrid.of(Gaussian(0.3), Gaussian(1.0))
    plan = automatic_space(SelectionRule(), 40, n_vectors=n_vectors, max_vectors=5, ridge="auto", prefer="accurate")
    samples = Samples.of(X, targets=y[:, None], groups=groups)
    found = search(samples, grid, plan)
    each = np.arange(40) if groups is None else groups
    errors = {}
    for kernel in grid.kernels:
        G = select_vectors(Gram(kernel, X), SelectionRule(), plan.limit).G
        for ridge in plan.ridges:
            for L in range(1, 6) if n_vectors is None else [4]:
                held_out = without_groups(G[:, :L], y[:, None], ridge, np.ones(40), each)[:, 0]
                errors[kernel.length_scale, ridge, L] = y - held_out
    values = nested_values(samples, found).values[:, 0]
    assert sum(fold.inside.sum() for fold in found.nested_folds) == 40
    for fold in found.nested_folds:
        best = min(errors, key=lambda setting: np.sum(errors[setting][~fold.inside] ** 2))
        assert (fold.selection.gram.kernel.length_scale, fold.ridge, fold.n_vectors) == best
        np.testing.assert_allclose((y - values)[fold.inside], errors[best][fold.inside], atol=1e-6)


def test_copies_in_a_group_do_not_look_like_new_samples(rng):
    """Every sample ten times, with labels that mean nothing: only whole groups say that nothing was learned."""
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    ten, groups = np.repeat(np.arange(40), 10), np.repeat(np.arange(40), 10)
    noise = X[ten] + 1e-3 * rng.standard_normal((400, 2))
    plain = FeatureVectorRegressor().fit(noise, y[ten])
    grouped = FeatureVectorRegressor().fit(noise, y[ten], groups=groups)
    assert plain.held_out_error_ < 0.2 * y.var()
    assert grouped.held_out_error_ > 0.8 * y.var()
    widths = [np.ptp(model.predict_interval(X, 0.8), axis=1).mean() for model in (plain, grouped)]
    assert widths[1] > 2 * widths[0]


def test_classifiers_take_groups():
    X, y = make_banana(120)
    model = FeatureVectorDiscriminant(max_vectors=10).fit(X, y, groups=np.arange(120) // 4)
    plain = FeatureVectorDiscriminant(max_vectors=10).fit(X, y)
    assert model.held_out_scores_.effective == 30
    assert plain.held_out_scores_.effective == 120
    each = FeatureVectorDiscriminant(max_vectors=10).fit(X, y, groups=[f"row {i}" for i in range(120)])
    np.testing.assert_array_equal(each.predict_proba(X), plain.predict_proba(X))


def test_groups_through_a_pipeline_and_a_search():
    X, y = make_sinc(90, noise=0.2)
    groups = np.arange(90) // 3
    model = FeatureVectorRegressor(max_vectors=6)
    direct = model.fit(StandardScaler().fit_transform(X), y, groups=groups).held_out_error_
    pipe = make_pipeline(StandardScaler(), FeatureVectorRegressor(max_vectors=6))
    pipe.fit(X, y, featurevectorregressor__groups=groups)
    assert pipe[-1].held_out_error_ == direct
    with config_context(enable_metadata_routing=True):
        routed = FeatureVectorRegressor(max_vectors=6).set_fit_request(groups=True)
        grid = GridSearchCV(make_pipeline(StandardScaler(), routed), {}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert grid.best_estimator_[-1].held_out_error_ == direct
