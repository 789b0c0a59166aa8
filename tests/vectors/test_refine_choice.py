"""The choice between unrefined, distilled and refined models."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern.core.samples import Samples
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from fewkern.vectors import refine_choice
from fewkern.vectors.refine_choice import (
    Candidate,
    RefinePlan,
    Score,
    candidates,
    choose_refined,
    fit_unrefined,
    refit,
    splits,
)
from fewkern.vectors.search import Searching
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


def test_many_samples_have_one_held_out_part(monkeypatch):
    monkeypatch.setattr(refine_choice, "LARGE", 50)
    monkeypatch.setattr(refine_choice, "CHOICE_ROWS", 60)
    ((fit, judged),) = splits(shaped(200, 1, 1), PLAN)
    assert fit.n == 60
    assert len(judged) == 40
    assert not set(fit.rows.tolist()) & set(judged.tolist())


def test_candidates_end_at_the_size_of_the_unrefined_model():
    found = candidates(shaped(1000, 5, 1), 13, PLAN)
    assert found[0] == Candidate(13, "unrefined")
    assert {c.n_vectors for c in found[1:]} == {3, 5, 10, 20}
    assert max(c.n_vectors for c in candidates(shaped(1000, 5, 1), 300, PLAN)) == 300
    assert max(c.n_vectors for c in candidates(shaped(1000, 5, 1), 300, PLAN)[1:]) == 40
    assert max(c.n_vectors for c in candidates(shaped(2000, 16, 26), 196, PLAN)[1:]) == 80
    # classes are not told apart by fewer vectors than there are of them
    assert min(c.n_vectors for c in candidates(shaped(2000, 16, 26), 196, PLAN)) == 40


def test_few_samples_or_many_features_allow_few_steps():
    assert max(c.n_iter for c in candidates(shaped(1000, 5, 1), 13, PLAN)) == 60
    assert max(c.n_iter for c in candidates(shaped(200, 5, 1), 13, PLAN)) == 20
    crowded = candidates(shaped(1000, 600, 1), 13, PLAN)
    assert max(c.n_iter for c in crowded if c.n_vectors == 5) == 20


def test_a_certain_but_negligible_difference_is_none():
    assert Score(Candidate(3, "distilled"), 1.001, 0.001, 1e-9).within(0.5)
    assert not Score(Candidate(3, "distilled"), 1.1, 0.1, 0.1).within(0.5)
    assert Score(Candidate(3, "distilled"), 1.1, 0.1, 0.1).within(1.0)


@pytest.mark.parametrize(("unrefined", "chosen"), [(150, 150), (300, 80)])
def test_a_much_larger_unrefined_model_must_be_better_not_only_as_good(unrefined, chosen):
    """Or a larger budget gives a larger and worse model: letter, 2,000 rows, 200 vectors 20.3 %, 300 vectors 21.7 %."""
    long, short = Candidate(unrefined, "unrefined"), Candidate(80, "distilled", 20)
    race = refine_choice._Race([long, short])
    race.begin(np.zeros((500, 1)), np.ones(500))
    # squared errors that differ by one up and down, and by half a standard error in the mean
    ups_and_downs = np.tile([0.5, -0.5], 250)[:, None]
    race.judge(long, None, np.sqrt(1.0 + ups_and_downs + 0.02))
    race.judge(short, None, np.sqrt(1.0 - ups_and_downs))
    best, other = race.scores()
    assert (best.candidate, other.candidate) == (short, long)
    assert other.excess / other.spread == pytest.approx(0.45, abs=0.01)
    assert race.choose(0.5).n_vectors == chosen


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
    monkeypatch.setattr(refine_choice, "STEPS", {"unrefined": (0,), "distilled": (0, 5), "selected": ()})
    lost = replace(whole.expansion, coef=0 * whole.expansion.coef)
    monkeypatch.setattr(refine_choice, "refit", lambda *_: (lost, 1.0))
    choice = choose_refined(data, whole, replace(PLAN, forced=True))
    honest = np.mean((choice.held_out - Y[choice.rows]) ** 2)
    assert np.mean((choice.expansion(X) - Y) ** 2) < refine_choice.LOST * honest
    assert choice.expansion.n_vectors == choice.chosen.n_vectors
    np.testing.assert_array_equal(choice.expansion.indices, whole.indices[: choice.chosen.n_vectors])


def test_every_fold_is_judged_by_the_choice_of_the_others(rng):
    """Two candidates: in each fold the values are those of the one with the least error elsewhere."""
    race = refine_choice._Race([Candidate(5, "distilled", 5), Candidate(5, "distilled", 20)])
    first, second = race.running
    errors = rng.standard_normal((2, 3, 40, 1)) * np.array([[1.0, 5.0, 1.0], [5.0, 1.0, 5.0]])[:, :, None, None]
    for k in range(3):
        race.begin(np.zeros((40, 1)), np.ones(40))
        race.judge(first, None, errors[0, k])
        race.judge(second, None, errors[1, k])
    assert race.choose(0.0) == first
    expected = []
    for k in range(3):
        rest = [np.mean(np.delete(errors[c], k, axis=0) ** 2) for c in range(2)]
        expected.append(errors[int(np.argmin(rest)), k])
    np.testing.assert_array_equal(race.cross_chosen(0.0), np.concatenate(expected))


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
    again, _ = refit(part, fit_unrefined(part, Gaussian(0.7), limit, PLAN), choice.chosen, PLAN)
    np.testing.assert_allclose(choice.held_out[: len(judged)], again(X[judged]), atol=1e-6)


def test_the_unrefined_model_is_returned_as_it_is_when_it_is_chosen(rng):
    X, Y = striped(60, rng)
    data = rows(X, Y)
    whole = fit_unrefined(data, Gaussian(2.0), 10, PLAN)
    expansion, ridge = refit(data, whole, Candidate(whole.expansion.n_vectors, "unrefined"), PLAN)
    assert expansion is whole.expansion
    assert ridge == whole.ridge


def test_many_samples_move_the_vectors_on_some_and_fit_the_coefficients_on_all(rng, monkeypatch):
    X, Y = striped(300, rng, noise=0.1)
    data = rows(X, Y)
    whole = fit_unrefined(data, Gaussian(1.5), 40, PLAN)
    chosen = Candidate(5, "distilled", 5)
    complete, _ = refit(data, whole, chosen, PLAN)
    monkeypatch.setattr(refine_choice, "MOVE_ROWS", 200)
    some, _ = refit(data, whole, chosen, PLAN)
    assert not np.allclose(some.vectors, complete.vectors)
    # the normal equation of the constant holds on all samples
    np.testing.assert_allclose(np.mean(some(X) - Y), 0.0, atol=1e-8)
    np.testing.assert_array_equal(some.indices, whole.indices[:5])


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
        data, fit_unrefined(data, Gaussian(2.0), 10, PLAN), replace(PLAN, n_folds=3, sizes=(3,)), seen.append
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


def test_a_candidate_leaves_that_would_have_to_overtake_a_smaller_one():
    unrefined, small, large, quiet = (
        Candidate(20, "unrefined"),
        Candidate(3, "distilled", 5),
        Candidate(10, "distilled", 5),
        Candidate(10, "distilled", 0),
    )
    race = refine_choice._Race([unrefined, small, large, quiet])
    race.begin(np.zeros((100, 1)), np.ones(100))
    # squared errors that are larger by 0.03, with a standard error of 0.02
    worse = np.sqrt(1.03 + 0.2 * (-1.0) ** np.arange(100))[:, None]
    for candidate in (unrefined, small, large, quiet):
        race.judge(candidate, None, np.ones((100, 1)) if candidate is small else worse)
    race.drop(3.0)
    # the one that saw no labels may still be taken before the small one
    assert race.running == [unrefined, small, quiet]


def race_of(errors, weights=None, forced=False):
    """A race in which candidates have made these squared errors at the same held-out samples."""
    race = refine_choice._Race(list(errors), forced)
    n = len(next(iter(errors.values())))
    race.begin(np.zeros((n, 1)), np.ones(n) if weights is None else weights)
    for candidate, error in errors.items():
        race.judge(candidate, None, np.sqrt(np.asarray(error, dtype=float))[:, None])
    return race


def test_differences_are_paired_and_weighted():
    weights = np.array([1.0, 3.0, 1.0, 1.0])
    one, other = Candidate(3, "distilled"), Candidate(5, "distilled")
    errors = {one: [1.0, 2.0, 0.5, 1.0], other: [1.5, 1.0, 0.5, 2.0]}
    best, second = race_of(errors, weights).scores()
    share = weights / 6
    difference = np.subtract(errors[one], errors[other])
    assert (best.candidate, second.candidate) == (other, one)
    assert best.error == pytest.approx(share @ errors[other])
    assert (best.excess, best.spread) == (0.0, 0.0)
    assert second.excess == pytest.approx(share @ difference)
    assert second.spread == pytest.approx(np.sqrt(share**2 @ (difference - share @ difference) ** 2))


def test_two_outputs_count_together_and_folds_are_one_after_the_other():
    one = Candidate(3, "distilled")
    race = refine_choice._Race([one])
    for target in (np.zeros((2, 2)), np.ones((3, 2))):
        race.begin(target, np.ones(len(target)))
        race.judge(one, None, target + [[1.0, 2.0]])
    (score,) = race.scores()
    assert score.error == pytest.approx(5.0)
    assert race.values(one).shape == (5, 2)
    assert len(race.models(one)) == 2


def test_a_path_is_left_when_it_was_better_before_by_a_standard_error():
    stages = [Candidate(5, "distilled", steps) for steps in (0, 5, 20, 60)]
    other = Candidate(10, "distilled", 60)
    base = np.tile([1.0, 2.0], 50)
    noise = np.tile([1.0, -1.0, -1.0, 1.0], 25)  # its standard error in the mean of 100 is 0.1
    for excess, worsens in ((0.11, True), (0.09, False)):
        race = refine_choice._Race([*stages, other])
        race.begin(np.zeros((100, 1)), np.ones(100))
        race.judge(stages[0], None, np.sqrt(base)[:, None])
        assert not race.worsens(stages[0])
        race.judge(stages[1], None, np.sqrt(base + excess + noise * 0.999)[:, None])
        assert race.worsens(stages[1]) is worsens
        # those that follow leave, those of other paths stay
        assert race.running == ([*stages[:2], other] if worsens else [*stages, other])


def test_a_path_is_compared_with_its_best_stage_not_with_its_first():
    stages = [Candidate(5, "distilled", steps) for steps in (0, 5, 20)]
    base = np.tile([3.0, 4.0], 50)
    race = refine_choice._Race(stages)
    race.begin(np.zeros((100, 1)), np.ones(100))
    for stage, error in zip(stages, (base, base - 2.0, base - 1.0)):
        race.judge(stage, None, np.sqrt(error)[:, None])
    assert race.worsens(stages[2])


def test_clearly_worse_candidates_leave_but_never_the_unrefined_one():
    """A difference of ``k`` standard errors: dropped beyond the limit, kept within it."""
    unrefined, small, large = Candidate(9, "unrefined"), Candidate(3, "distilled"), Candidate(20, "distilled")
    base = np.full(100, 4.0)
    noise = np.tile([1.0, -1.0], 50)
    for k, kept in ((2.5, [unrefined]), (1.5, [unrefined, small])):
        race = race_of({unrefined: base, small: base + k * 0.1 + noise})
        race.drop(2.0)
        assert race.running == kept
    race = race_of({unrefined: base + 3.0, large: base})
    race.drop(2.0)
    assert race.running == [unrefined, large]


def test_who_is_preferred_at_the_same_error():
    quiet, moved = Candidate(5, "distilled"), Candidate(5, "distilled", 20)
    assert refine_choice._preferred(quiet, moved)
    assert not refine_choice._preferred(moved, quiet)
    assert refine_choice._preferred(Candidate(3, "distilled", 5), moved)
    assert not refine_choice._preferred(Candidate(10, "distilled"), quiet)
    assert refine_choice._preferred(quiet, quiet)


def test_vectors_that_saw_the_labels_must_be_better_by_a_standard_error():
    quiet, moved = Candidate(10, "distilled"), Candidate(5, "distilled", 20)
    base, noise = np.full(100, 4.0), np.tile([1.0, -1.0], 50)
    for k, chosen in ((0.9, quiet), (1.1, moved)):
        race = race_of({quiet: base + k * 0.1 + noise, moved: base})
        assert race.choose(0.5) == chosen


def test_the_smallest_within_the_tolerance_is_taken():
    small, large = Candidate(3, "distilled"), Candidate(10, "distilled")
    base, noise = np.full(100, 4.0), np.tile([1.0, -1.0], 50)
    for k, chosen in ((0.9, small), (1.1, large)):
        race = race_of({small: base + k * 0.1 + noise, large: base})
        assert race.choose(1.0) == chosen
    # of two of one size the better one
    other = Candidate(3, "distilled", 0)
    selected = Candidate(3, "selected", 0)
    assert race_of({other: base + 0.01, selected: base}).choose(0.5) == selected


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
    """At most half of the samples; from the selection up to ten vectors; few steps where there are many numbers."""
    assert max(c.n_vectors for c in candidates(shaped(20, 1, 1), 30, PLAN)[1:]) == 10
    assert {c.start for c in candidates(shaped(1000, 5, 1), 13, PLAN) if c.n_vectors == 10} == {"distilled", "selected"}
    assert {c.start for c in candidates(shaped(1000, 5, 1), 13, PLAN) if c.n_vectors == 20} == {"distilled"}
    assert {c.n_iter for c in candidates(shaped(1000, 5, 1), 13, PLAN) if c.path == (5, "distilled")} == {0, 5, 20, 60}
    assert {c.n_iter for c in candidates(shaped(1000, 5, 1), 13, PLAN) if c.path == (5, "selected")} == {5, 20}
    for n, most in ((249, 20), (250, 60)):
        assert max(c.n_iter for c in candidates(shaped(n, 5, 1), 13, PLAN)) == most
    # ten vectors of 99 features have 1,000 numbers to learn
    for n, most in ((499, 20), (500, 60)):
        assert max(c.n_iter for c in candidates(shaped(n, 99, 1), 10, PLAN) if c.n_vectors == 10) == most
    many = candidates(shaped(20_000, 5, 1), 400, PLAN)
    assert max(c.n_vectors for c in many[1:]) == 80
    assert max(c.n_vectors for c in candidates(shaped(40_000, 5, 1), 400, PLAN)[1:]) == 160
    assert max(c.n_vectors for c in candidates(shaped(64_000, 5, 1), 400, PLAN)[1:]) == 320
    # too small for any of the sizes, and yet they must move
    assert candidates(shaped(100, 2, 1), 2, replace(PLAN, sizes=(3,), forced=True))[1].n_vectors == 3
    assert len(candidates(shaped(4, 2, 1), 3, PLAN)) == 1
    assert {c.n_vectors for c in candidates(shaped(4, 2, 1), 3, replace(PLAN, forced=True))[1:]} == {2}
