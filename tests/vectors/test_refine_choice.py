"""The choice between unrefined, distilled and refined models."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern import FeatureVectorClassifier, FeatureVectorRegressor, ForwardKernelFisher
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from fewkern.vectors import refine_choice, search
from fewkern.vectors.objective import Placement, expand, refine_problem
from fewkern.vectors.race import Candidate
from fewkern.vectors.refine_choice import (
    RefinePlan,
    candidates,
    choose_refined,
    fit_unrefined,
    refit,
    splits,
    unrefined_model,
)
from fewkern.vectors.searching import Searching
from fewkern.vectors.selection import Selecting

RIDGES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
PLAN = RefinePlan(Searching(Selecting(), RIDGES, 0, 0, 0.5))


def rows(X, Y, weights=None):
    return Samples.of(X, weights, targets=Y)


def shaped(n, d, q):
    return rows(np.zeros((n, d)), np.zeros((n, q)))


def striped(n, rng, noise=0.0):
    """A function of the first of four features, which one width for all cannot see well."""
    X = rng.normal(size=(n, 4))
    return X, np.sin(3 * X[:, :1]) + noise * rng.normal(size=(n, 1))


def test_candidates_end_at_the_size_of_the_unrefined_model():
    found = candidates(shaped(1000, 5, 1), 13, PLAN)
    assert found[0] == Candidate(13)
    assert {c.n_vectors for c in found[1:]} == {3, 10, 20}
    assert max(c.n_vectors for c in candidates(shaped(1000, 5, 1), 300, PLAN)) == 300
    assert max(c.n_vectors for c in candidates(shaped(1000, 5, 1), 300, PLAN)[1:]) == 40
    assert max(c.n_vectors for c in candidates(shaped(2000, 16, 26), 196, PLAN)[1:]) == 80
    # classes are not told apart by fewer vectors than there are of them
    assert min(c.n_vectors for c in candidates(shaped(2000, 16, 26), 196, PLAN)) == 40


def test_few_samples_or_many_features_allow_few_steps():
    assert max(c.n_iter for c in candidates(shaped(1000, 5, 1), 13, PLAN)) == 40
    assert max(c.n_iter for c in candidates(shaped(200, 5, 1), 13, PLAN)) == 10
    crowded = candidates(shaped(1000, 600, 1), 13, PLAN)
    assert max(c.n_iter for c in crowded if c.n_vectors == 10) == 10


def test_refinement_finds_the_features_that_matter(rng):
    X, Y = striped(400, rng, noise=0.1)
    data = rows(X, Y)
    whole = fit_unrefined(data, Gaussian(1.5), 100, PLAN)
    choice = choose_refined(data, whole, PLAN)
    assert choice.refined
    assert choice.chosen.n_iter > 0
    assert choice.expansion.n_vectors < whole.expansion.n_vectors
    X_test, Y_test = striped(400, rng, noise=0.1)
    error, before = (np.mean((f(X_test) - Y_test) ** 2) for f in (choice.expansion, whole.expansion))
    assert error < 0.5 * before
    widths = choice.expansion.kernel.width
    assert widths[0] < 0.5 * np.min(widths[1:])
    # the cross-fitted error is honest
    honest = np.mean((choice.held_out - Y[choice.rows]) ** 2)
    assert 0.5 * error < honest < 2 * error


def test_a_search_that_lost_its_way_starts_again_from_a_fold(rng, monkeypatch):
    X, Y = striped(300, rng, noise=0.1)
    data = rows(X, Y)
    whole = fit_unrefined(data, Gaussian(1.5), 40, PLAN)
    monkeypatch.setattr(refine_choice, "STEPS", (0, 5))
    lost = replace(whole.expansion, coef=0 * whole.expansion.coef)
    monkeypatch.setattr(refine_choice, "refit", lambda *_: (lost, 1.0))
    choice = choose_refined(data, whole, replace(PLAN, forced=True))
    honest = np.mean((choice.held_out - Y[choice.rows]) ** 2)
    assert np.mean((choice.expansion(X) - Y) ** 2) < refine_choice.LOST * honest
    assert choice.expansion.n_vectors == choice.chosen.n_vectors
    np.testing.assert_array_equal(choice.expansion.indices, whole.indices[: choice.chosen.n_vectors])


def test_noise_is_left_alone(rng):
    X = rng.normal(size=(120, 10))
    Y = np.sign(X[:, :1] + 3 * rng.normal(size=(120, 1)))
    data = rows(X, Y)
    choice = choose_refined(data, fit_unrefined(data, Gaussian(5.0), 40, PLAN), PLAN)
    assert choice.chosen.n_iter == 0


def test_held_out_values_belong_to_their_rows():
    X, y = make_banana(200)
    y = 2 * y - 1
    Y = y[:, None].astype(float)
    data = rows(X, Y)
    whole = fit_unrefined(data, Gaussian(0.7), 40, PLAN)
    choice = choose_refined(data, whole, PLAN)
    assert sorted(choice.rows.tolist()) == list(range(200))
    assert choice.held_out.shape == choice.cross_chosen.shape == (200, 1)
    # other folds choose the same candidate, or another one that is judged on the same rows
    assert np.mean(np.sign(choice.cross_chosen[:, 0]) != y[choice.rows]) < 0.2
    assert np.mean(np.sign(choice.held_out[:, 0]) != y[choice.rows]) < 0.2
    # what was held out was not seen: fitting the chosen candidate without the first fold says the same
    part, judged = splits(data, PLAN)[0]
    limit = max(int(np.ceil(1.25 * whole.expansion.n_vectors)), 40)
    again, _ = refit(part, fit_unrefined(part, Gaussian(0.7), limit, PLAN), choice.chosen)
    np.testing.assert_allclose(choice.held_out[: len(judged)], again(X[judged]), atol=1e-6)


def test_weights_of_zero_take_a_sample_out(rng):
    X, Y = striped(200, rng)
    Y[150:] = 100.0
    weights = np.repeat([1.0, 0.0], [150, 50])
    data = rows(X, Y, weights)
    choice = choose_refined(data, fit_unrefined(data, Gaussian(1.5), 40, PLAN), PLAN)
    assert np.max(np.abs(choice.expansion(X[:150]) - Y[:150])) < 5.0


@pytest.mark.parametrize("q", [1, 3])
def test_every_array_library_gives_the_same(rng, foreign, q):
    to, back = foreign
    X, Y = striped(120, rng, noise=0.2)
    Y = np.concatenate([Y, X[:, 1:q] ** 2], axis=1)
    plan = replace(PLAN, n_folds=2, sizes=(3, 5))
    kernel = Gaussian(1.5)
    base, other = rows(X, Y), rows(to(X), to(Y))
    ours = choose_refined(base, fit_unrefined(base, kernel, 20, plan), plan)
    theirs = choose_refined(other, fit_unrefined(other, kernel, 20, plan), plan)
    assert ours.chosen == theirs.chosen
    # a search of a hundred evaluations makes differences in the last digits grow
    error, same = (np.mean((back(c.held_out) - Y[back(c.rows)]) ** 2) for c in (ours, theirs))
    assert same == pytest.approx(error, rel=0.05)
    assert np.corrcoef(back(theirs.expansion(to(X)))[:, 0], ours.expansion(X)[:, 0])[0, 1] > 0.999


def test_progress_counts_the_folds(rng):
    X, Y = striped(60, rng)
    data = rows(X, Y)
    seen = []
    choose_refined(
        data, fit_unrefined(data, Gaussian(2.0), 10, PLAN), replace(PLAN, n_folds=3, sizes=(3,)), None, seen.append
    )
    assert seen == [1, 2, 3]


def test_vectors_that_must_move_are_compared_among_themselves(rng):
    X = rng.normal(size=(150, 3))
    data = rows(X, np.sign(X[:, :1] + 2 * rng.normal(size=(150, 1))))
    whole = fit_unrefined(data, Gaussian(3.0), 40, PLAN)
    choice = choose_refined(data, whole, replace(PLAN, forced=True))
    assert choice.refined


def test_too_few_samples_for_folds_are_left_alone():
    X = np.arange(3.0)[:, None]
    data = rows(X, X)
    assert choose_refined(data, fit_unrefined(data, Gaussian(1.0), 1, PLAN), PLAN) is None


def test_folds_have_their_share_of_every_range_of_the_targets():
    rng = np.random.default_rng(0)
    Y = rng.permutation(20)[:, None].astype(float)
    found = splits(rows(np.zeros((20, 1)), Y), PLAN)
    assert len(found) == 5
    for fit, judged in found:
        assert sorted(Y[judged, 0] // 5) == [0, 1, 2, 3]
        assert set(fit.rows.tolist()) | set(judged.tolist()) == set(range(20))
        assert fit.n == 16
    assert sorted(np.concatenate([judged for _, judged in found])) == list(range(20))
    assert len(splits(rows(np.zeros((10, 1)), np.zeros((10, 1))), PLAN)) == 5
    assert splits(rows(np.zeros((9, 1)), np.zeros((9, 1))), PLAN) == []


def test_candidates_at_their_bounds():
    """At most half of the samples; few steps where there are many numbers."""
    assert max(c.n_vectors for c in candidates(shaped(20, 1, 1), 30, PLAN)[1:]) == 10
    assert {c.n_iter for c in candidates(shaped(1000, 5, 1), 13, PLAN) if c.path == (3, True)} == {0, 10, 40}
    for n, most in ((249, 10), (250, 40)):
        assert max(c.n_iter for c in candidates(shaped(n, 5, 1), 13, PLAN)) == most
    # ten vectors of 99 features have 1,000 numbers to learn
    for n, most in ((999, 10), (1000, 40)):
        assert max(c.n_iter for c in candidates(shaped(n, 99, 1), 10, PLAN) if c.n_vectors == 10) == most
    many = candidates(shaped(20_000, 5, 1), 400, PLAN)
    assert max(c.n_vectors for c in many[1:]) == 80
    assert max(c.n_vectors for c in candidates(shaped(40_000, 5, 1), 400, PLAN)[1:]) == 160
    assert max(c.n_vectors for c in candidates(shaped(64_000, 5, 1), 400, PLAN)[1:]) == 320
    # too small for any of the sizes, and yet they must move
    assert candidates(shaped(100, 2, 1), 2, replace(PLAN, sizes=(3,), forced=True))[1].n_vectors == 3
    assert len(candidates(shaped(4, 2, 1), 3, PLAN)) == 1
    assert {c.n_vectors for c in candidates(shaped(4, 2, 1), 3, replace(PLAN, forced=True))[1:]} == {2}


def test_the_unrefined_model_is_kept_as_it_is_when_it_is_chosen(rng):
    X = rng.normal(size=(120, 2))
    data = rows(X, rng.normal(size=(120, 1)))
    whole = fit_unrefined(data, Gaussian(2.0), 10, PLAN)
    choice = choose_refined(data, whole, PLAN)
    assert not choice.refined
    assert choice.expansion is whole.expansion
    assert choice.ridge == whole.ridge


@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_of_many_samples_those_that_the_search_has_not_seen_judge(rng, monkeypatch, noise):
    monkeypatch.setattr(search, "LARGE", 100)
    monkeypatch.setattr(search, "SEARCH_ROWS", 250)
    monkeypatch.setattr(refine_choice, "LARGE", 100)
    monkeypatch.setattr(refine_choice, "splits", None)  # no folds
    X, Y = striped(400, rng, noise=noise)
    data, plan = (
        rows(X, Y),
        Searching.automatic(Selecting(), 400, n_vectors="auto", max_vectors=40, ridge="auto", prefer="balanced"),
    )
    found = search.automatic_model(data, Gaussian(), plan)
    whole, _ = unrefined_model(data, found, plan)
    seen, steps, real = [], [], refine_choice.refine
    monkeypatch.setattr(
        refine_choice,
        "refine",
        lambda *at, max_iter, **how: steps.append(max_iter) or real(*at, max_iter=max_iter, **how),
    )
    choice = choose_refined(data, whole, replace(PLAN, search=plan), found.trial, seen.append)
    assert seen == [1]
    assert choice.refined is (noise < 1)
    np.testing.assert_array_equal(choice.rows, found.trial.judged)
    (fold,) = choice.folds
    np.testing.assert_allclose(choice.held_out, fold.expansion(X[choice.rows]))
    assert fold.fitted.n == 250
    if not choice.refined:
        assert choice.expansion is whole.expansion
        return
    assert steps[-1] == max(choice.chosen.n_iter, refine_choice.SHORT)
    # from the vectors of the fold further on all samples: the normal equation of the constant holds on them
    assert not np.allclose(choice.expansion.vectors, fold.expansion.vectors)
    assert np.mean((choice.expansion(X) - Y) ** 2) < np.mean((fold.expansion(X) - Y) ** 2)
    np.testing.assert_allclose(np.mean(choice.expansion(X) - Y), 0.0, atol=1e-8)
    np.testing.assert_array_equal(choice.expansion.indices, whole.indices[: choice.chosen.n_vectors])


@pytest.mark.parametrize("ridge", [0.0, 0.3, 10.0])
@pytest.mark.parametrize("model", [FeatureVectorClassifier, FeatureVectorRegressor])
def test_a_ridge_that_was_given_stays_when_vectors_move(model, ridge):
    X, y = make_banana(150, random_state=0)
    found = model(ridge=ridge, refine=True).fit(X, y)
    assert found.refined_
    assert found.ridge_ == ridge


def test_the_coefficients_of_distilled_vectors_are_those_of_the_given_ridge(rng):
    data = rows(*striped(120, rng))
    whole = replace(fit_unrefined(data, Gaussian(0.7), 40, PLAN), ridge=5.0, given_ridge=True)
    model, ridge = refit(data, whole, Candidate(6, True, 0))
    assert ridge == 5.0
    problem = refine_problem(data.X, data.targets, data.weights)
    again = expand(problem, Placement(model.vectors, model.kernel, 5.0))
    np.testing.assert_allclose(model.coef, again.coef, rtol=1e-8)


@pytest.mark.parametrize("n_vectors", [1, 7, 60, 80])
def test_a_number_of_vectors_that_was_given_is_kept(n_vectors):
    X, y = make_banana(120, random_state=0)
    for refine in (True, "auto"):
        assert FeatureVectorClassifier(n_vectors=n_vectors, refine=refine).fit(X, y).n_vectors_ == n_vectors


@pytest.mark.parametrize("ridge", ["auto", 10.0])
def test_a_ridge_means_the_same_beside_weights(ridge):
    """Weights of ten are ten samples each: a given ridge is a tenth as strong, and a learned one is as told."""
    X, y = make_banana(150, random_state=0)
    settings = {"n_vectors": 8, "refine": True, "ridge": ridge, "kernel": Gaussian(width=2.0)}
    light = FeatureVectorRegressor(**settings).fit(X, y)
    heavy = FeatureVectorRegressor(**settings).fit(X, y, sample_weight=np.full(150, 10.0))
    if ridge == "auto":
        assert heavy.ridge_ == pytest.approx(10 * light.ridge_, rel=1e-2)
        np.testing.assert_allclose(heavy.predict(X), light.predict(X), atol=1e-3)
        return
    assert heavy.ridge_ == light.ridge_ == 10.0
    tenth = FeatureVectorRegressor(**settings | {"ridge": 1.0}).fit(X, y)
    np.testing.assert_allclose(heavy.predict(X), tenth.predict(X), atol=1e-6)


def test_many_vectors_that_were_given_stay_samples_unless_asked_for():
    data = shaped(300, 2, 1)
    plan = replace(PLAN, search=replace(PLAN.search, tolerance=None))
    assert [c.n_vectors for c in candidates(data, 40, plan)] == [40, 40, 40, 40]
    assert [c.n_vectors for c in candidates(data, 41, plan)] == [41]
    assert {c.moved for c in candidates(data, 41, replace(plan, forced=True))} == {False, True}


def test_a_truth_value_of_numpy_is_one():
    X, y = make_banana(60, random_state=0)
    for model in (FeatureVectorClassifier, ForwardKernelFisher):
        assert model(refine=np.True_).fit(X, y).refined_
        assert not getattr(model(refine=np.False_).fit(X, y), "refined_", False)
