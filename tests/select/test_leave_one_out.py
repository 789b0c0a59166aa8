"""Leaving rows or groups out in closed form equals refits without them."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold

from fewkern import FeatureVectorDiscriminant
from fewkern.core.kernel import Gram
from fewkern.core.samples import Samples, class_targets
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Gaussian
from fewkern.select import leave_one_out
from fewkern.select.leave_one_out import GroupBlocks, HeldOut, LooScheme, loo_paths, solve, solve_samples
from fewkern.select.paths import KernelGrid
from fewkern.select.search import automatic_space, nested_values, search
from fewkern.select.selection import SelectionRule, select_vectors
from tests.oracles import fvs

RIDGES = [0.0, 1e-3, 1.0]
# Groups of one, of several sizes, and one with more samples than there are columns.
GROUPS = np.array([0] * 14 + [1, 2, 2, 2, 5, 5, 7, 8, 8, 8, 8, 8, 9, 9, 9, 9])


def features(X, kernel=Gaussian(length_scale=1.5), limit=8):
    return select_vectors(Gram(kernel, X), SelectionRule(), limit).G


def loo_path(G, Y, ridge, weights=None, scheme=None):
    return loo_paths(G, Y, (ridge,), weights, scheme)[0]


def by_group(groups):
    return None if groups is None else LooScheme(GroupBlocks.of(groups))


def without_groups(G, Y, ridge, w, groups):
    """Every group predicted by a fit to the others; every row where there are no groups."""
    out = np.empty_like(Y)
    groups = np.arange(len(Y)) if groups is None else groups
    for g in np.unique(groups):
        own = groups == g
        beta = fvs.refit(G[~own], Y[~own], ridge, w[~own])
        out[own] = beta[0] + G[own] @ beta[1:]
    return out


@pytest.fixture
def G(rng):
    return features(rng.standard_normal((30, 2)))


@pytest.fixture(params=["equal", "real"])
def weights(request, rng):
    return None if request.param == "equal" else rng.random(30) + 0.1


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("outputs", [1, 3, 5])
@pytest.mark.parametrize("ridge", RIDGES)
def test_path_equals_refits(G, rng, ridge, outputs, weights, groups):
    Y = rng.standard_normal((30, outputs))
    path = loo_path(G, Y, ridge, weights, by_group(groups))
    w = np.ones(30) if weights is None else weights
    assert path.error.shape == path.std_error.shape == (9,)
    for L in range(9):
        error = np.sum((Y - without_groups(G[:, :L], Y, ridge, w, groups)) ** 2, axis=1)
        mean = np.average(error, weights=w)
        assert path.error[L] == pytest.approx(mean, rel=1e-6)
        if groups is None:
            variance = np.average((error - mean) ** 2, weights=w)
            assert path.std_error[L] == pytest.approx(np.sqrt(variance * np.sum(w**2) / np.sum(w) ** 2), rel=1e-6)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("ridge", RIDGES)
def test_solution_and_its_held_out_values(G, rng, ridge, weights, groups):
    Y, w = rng.standard_normal((30, 2)), np.ones(30) if weights is None else weights
    found, beta = solve(G, Y, ridge, w, by_group(groups)), fvs.refit(G, Y, ridge, w)
    np.testing.assert_allclose(found.W, beta[1:], atol=1e-8)
    np.testing.assert_allclose(found.offset, beta[0], atol=1e-8)
    np.testing.assert_allclose(found.held_out, without_groups(G, Y, ridge, w, groups), atol=1e-7)


@pytest.mark.parametrize("outputs", [1, 5])
def test_some_of_many_samples_are_left_out(G, rng, outputs, weights, monkeypatch):
    """The model is fitted to all; its error is the mean over those that are left out."""
    monkeypatch.setattr(leave_one_out, "MAX_LOO_ROWS", 12)
    samples = Samples.of(rng.standard_normal((30, 1)), weights, targets=rng.standard_normal((30, outputs)))
    G, Y, w = G[samples.rows], samples.targets, samples.weights
    scheme = LooScheme.of(samples)
    rows = scheme.rows
    assert len(set(rows.tolist())) == 12
    for path, ridge in zip(loo_paths(G, Y, tuple(RIDGES), w, scheme), RIDGES):
        for L in range(9):
            error = np.sum((Y - fvs.leave_one_out(G[:, :L], Y, ridge, w)) ** 2, axis=1)[rows]
            mean = np.average(error, weights=w[rows])
            assert path.error[L] == pytest.approx(mean, rel=1e-8)
            # the standard error of a mean over all
            variance = np.average((error - mean) ** 2, weights=w[rows])
            assert path.std_error[L] == pytest.approx(np.sqrt(variance * np.sum(w**2) / np.sum(w) ** 2), rel=1e-6)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_solution_for_many_samples_is_the_same(G, rng, ridge, weights, monkeypatch):
    samples = Samples.of(rng.standard_normal((30, 1)), weights, targets=rng.standard_normal((30, 2)))
    G = G[samples.rows]
    expected, every = solve_samples(samples, G, ridge)
    np.testing.assert_array_equal(every.values, expected.held_out)
    monkeypatch.setattr(leave_one_out, "MAX_LOO_ROWS", 12)
    found, some = solve_samples(samples, G, ridge)
    np.testing.assert_allclose(found.W, expected.W, atol=1e-9)
    np.testing.assert_allclose(found.offset, expected.offset, atol=1e-9)
    assert some.samples.n == len(some.values) == 12
    at = [samples.rows.tolist().index(row) for row in some.samples.rows.tolist()]
    np.testing.assert_allclose(some.values, every.values[at], atol=1e-9)


@pytest.mark.parametrize("column", [1, 3, 4])
def test_a_column_that_depends_on_others_adds_nothing(rng, column):
    """Wherever it stands: the errors after it are those of the path without it."""
    G, Y = rng.standard_normal((25, 4)), rng.standard_normal((25, 2))
    twice = np.insert(G, column, 2 * G[:, 0] - 1, axis=1)
    path, plain = loo_path(twice, Y, 0.0), loo_path(G, Y, 0.0)
    np.testing.assert_allclose(path.error, np.insert(plain.error, column, plain.error[column]), rtol=1e-9)
    np.testing.assert_allclose(solve(twice, Y, 0.0).held_out, solve(G, Y, 0.0).held_out, atol=1e-9)


def test_one_sample_alone_on_a_direction_is_predicted_by_the_others(rng):
    """A column that is zero but for one sample: without that sample, nothing is known of the direction."""
    G, Y, w = np.zeros((6, 1)), rng.standard_normal((6, 1)), np.array([1.0, 2, 1, 3, 1, 1])
    G[2] = 5.0
    for weights in (None, w):
        v = np.ones(6) if weights is None else weights
        others = np.array([np.average(np.delete(Y, i), weights=np.delete(v, i)) for i in range(6)])
        held_out = solve(G, Y, 0.0, weights).held_out[:, 0]
        assert held_out[2] == pytest.approx(others[2])
        rest = np.arange(6) != 2
        alone = [np.average(Y[rest & (np.arange(6) != i), 0], weights=v[rest & (np.arange(6) != i)]) for i in range(6)]
        np.testing.assert_allclose(held_out[rest], np.array(alone)[rest])
        # in a path the constant of all samples that is left is what predicts it
        first = (Y[:, 0] - np.average(Y[:, 0], weights=v)) / (1 - v / v.sum())
        errors = np.where(rest, held_out - Y[:, 0], first) ** 2
        assert loo_path(G, Y, 0.0, weights).error[1] == pytest.approx(np.average(errors, weights=v))


def test_errors_of_held_out_values_are_weighted():
    w = np.array([1.0, 3.0, 1.0])
    samples = Samples.of(np.arange(3.0)[:, None], w, codes=np.array([0, 1, 1]), n_classes=2)
    held_out = HeldOut(np.array([[-0.5], [-0.5], [2.0]]), class_targets(samples))
    assert held_out.error_rate() == pytest.approx(3 / 5)
    assert held_out.squared_error() == pytest.approx((0.25 + 3 * 2.25 + 1) / 5)
    assert held_out.some(3) is held_out
    some = held_out.some(2)
    assert (some.values.tolist(), some.samples.X.tolist()) == ([[-0.5], [2.0]], [[0.0], [2.0]])


def test_spread_counts_groups_not_samples(G, rng):
    """The standard error is that of a mean over groups: samples that say the same do not make it smaller."""
    Y = rng.standard_normal((30, 1))
    twice = np.repeat(np.arange(30), 2)
    path = loo_path(G[twice], Y[twice], 0.1, None, by_group(twice))
    half = loo_path(G, Y, 0.05)
    np.testing.assert_allclose(path.error, half.error, rtol=1e-8)
    np.testing.assert_allclose(path.std_error, half.std_error, rtol=1e-8)


def test_a_direction_of_one_group_is_unknown_without_it():
    """A vector that only one group reaches: left out, nothing but the mean of the others is known of it."""
    G = np.zeros((12, 1))
    G[:4, 0] = 1.0
    Y = np.arange(12.0)[:, None]
    groups = np.array([0] * 4 + [1] * 4 + [2] * 4)
    held_out = solve(G, Y, 0.0, None, by_group(groups)).held_out[:, 0]
    np.testing.assert_allclose(held_out[:4], Y[4:].mean())
    np.testing.assert_allclose(held_out[4:8], Y[8:].mean())
    error = loo_path(G, Y, 0.0, None, by_group(groups)).error
    assert error[1] == pytest.approx(np.mean((Y[:, 0] - held_out) ** 2))


@pytest.mark.parametrize("n_vectors", [None, 4])
@pytest.mark.parametrize("groups", [None, np.arange(40) // 2])
def test_a_part_is_judged_at_the_settings_that_the_others_choose(n_vectors, groups):
    X, y = make_sinc(40, noise=0.3)
    grid = KernelGrid((Gaussian(0.3), Gaussian(1.0)), (0.3, 1.0))
    plan = automatic_space(SelectionRule(), 40, n_vectors=n_vectors, max_vectors=5, ridge="auto", prefer="accurate")
    samples = Samples.of(X, targets=y[:, None], groups=groups)
    found = search(samples, grid, plan)
    errors = {}
    for kernel in grid.kernels:
        G = select_vectors(Gram(kernel, X), SelectionRule(), plan.limit).G
        for ridge in plan.ridges:
            for L in range(1, 6) if n_vectors is None else [4]:
                held_out = without_groups(G[:, :L], y[:, None], ridge, np.ones(40), groups)[:, 0]
                errors[kernel.length_scale, ridge, L] = y - held_out
    values = nested_values(samples, found).values[:, 0]
    assert sum(fold.inside.sum() for fold in found.nested_folds) == 40
    for fold in found.nested_folds:
        best = min(errors, key=lambda setting: np.sum(errors[setting][~fold.inside] ** 2))
        assert (fold.selection.gram.kernel.length_scale, fold.ridge, fold.n_vectors) == best
        np.testing.assert_allclose((y - values)[fold.inside], errors[best][fold.inside], atol=1e-6)


def test_classifiers_take_groups():
    X, y = make_banana(120)
    model = FeatureVectorDiscriminant(max_vectors=10).fit(X, y, groups=np.arange(120) // 4)
    plain = FeatureVectorDiscriminant(max_vectors=10).fit(X, y)
    assert model.held_out_scores_.effective == 30
    assert plain.held_out_scores_.effective == 120
    with config_context(enable_metadata_routing=True):
        routed = FeatureVectorDiscriminant(max_vectors=10).set_fit_request(groups=True)
        grid = GridSearchCV(routed, {}, cv=GroupKFold(3)).fit(X, y, groups=np.arange(120) // 4)
    np.testing.assert_array_equal(grid.predict_proba(X), model.predict_proba(X))
    each = FeatureVectorDiscriminant(max_vectors=10).fit(X, y, groups=[f"row {i}" for i in range(120)])
    np.testing.assert_array_equal(each.predict_proba(X), plain.predict_proba(X))
