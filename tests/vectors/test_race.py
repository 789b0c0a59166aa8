"""Candidates compared on samples that they have not seen."""

import numpy as np
import pytest

from fewkern.vectors.race import Candidate, Race, Score, _preferred


def test_a_certain_but_negligible_difference_is_none():
    assert Score(Candidate(3, moved=True), 1.001, 0.001, 1e-9).within(0.5)
    assert not Score(Candidate(3, moved=True), 1.1, 0.1, 0.1).within(0.5)
    assert Score(Candidate(3, moved=True), 1.1, 0.1, 0.1).within(1.0)


@pytest.mark.parametrize(("unrefined", "chosen"), [(150, 150), (300, 80)])
def test_a_much_larger_unrefined_model_must_be_better_not_only_as_good(unrefined, chosen):
    """Or a larger budget gives a larger and worse model: letter, 2,000 rows, 200 vectors 20.3 %, 300 vectors 21.7 %."""
    long, short = Candidate(unrefined), Candidate(80, moved=True, n_iter=20)
    race = Race([long, short])
    race.begin(np.zeros((500, 1)), np.ones(500))
    # squared errors that differ by one up and down, and by half a standard error in the mean
    ups_and_downs = np.tile([0.5, -0.5], 250)[:, None]
    race.judge(long, None, np.sqrt(1.0 + ups_and_downs + 0.02))
    race.judge(short, None, np.sqrt(1.0 - ups_and_downs))
    best, other = race.scores()
    assert (best.candidate, other.candidate) == (short, long)
    assert other.excess / other.spread == pytest.approx(0.45, abs=0.01)
    assert race.choose(0.5).n_vectors == chosen


def test_every_fold_is_judged_by_the_choice_of_the_others(rng):
    """Two candidates: in each fold the values are those of the one with the least error elsewhere."""
    race = Race([Candidate(5, moved=True, n_iter=5), Candidate(5, moved=True, n_iter=20)])
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


def test_a_candidate_leaves_that_would_have_to_overtake_a_smaller_one():
    unrefined, small, large, quiet = (
        Candidate(20),
        Candidate(3, moved=True, n_iter=5),
        Candidate(10, moved=True, n_iter=5),
        Candidate(10, moved=True, n_iter=0),
    )
    race = Race([unrefined, small, large, quiet])
    race.begin(np.zeros((100, 1)), np.ones(100))
    # squared errors that are larger by 0.03, with a standard error of 0.02
    worse = np.sqrt(1.03 + 0.2 * (-1.0) ** np.arange(100))[:, None]
    for candidate in (unrefined, small, large, quiet):
        race.judge(candidate, None, np.ones((100, 1)) if candidate is small else worse)
    race.drop(3.0, 1.0)
    # the one that saw no labels may still be taken before the small one
    assert race.running == [unrefined, small, quiet]


def race_of(errors, weights=None, forced=False):
    """A race in which candidates have made these squared errors at the same held-out samples."""
    race = Race(list(errors), forced)
    n = len(next(iter(errors.values())))
    race.begin(np.zeros((n, 1)), np.ones(n) if weights is None else weights)
    for candidate, error in errors.items():
        race.judge(candidate, None, np.sqrt(np.asarray(error, dtype=float))[:, None])
    return race


def test_differences_are_paired_and_weighted():
    weights = np.array([1.0, 3.0, 1.0, 1.0])
    one, other = Candidate(3, moved=True), Candidate(5, moved=True)
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
    one = Candidate(3, moved=True)
    race = Race([one])
    for target in (np.zeros((2, 2)), np.ones((3, 2))):
        race.begin(target, np.ones(len(target)))
        race.judge(one, None, target + [[1.0, 2.0]])
    (score,) = race.scores()
    assert score.error == pytest.approx(5.0)
    assert race.values(one).shape == (5, 2)
    assert len(race.models(one)) == 2


def test_clearly_worse_candidates_leave_but_never_the_unrefined_one():
    """A difference of ``k`` standard errors: dropped beyond the limit, kept within it."""
    unrefined, small, large = Candidate(9), Candidate(3, moved=True), Candidate(20, moved=True)
    base = np.full(100, 4.0)
    noise = np.tile([1.0, -1.0], 50)
    for k, kept in ((2.5, [unrefined]), (1.5, [unrefined, small])):
        race = race_of({unrefined: base, small: base + k * 0.1 + noise})
        race.drop(2.0, 1.0)
        assert race.running == kept
    race = race_of({unrefined: base + 3.0, large: base})
    race.drop(2.0, 1.0)
    assert race.running == [unrefined, large]


def test_a_candidate_leaves_when_one_that_would_be_preferred_is_ahead():
    small, large, larger = (Candidate(m, moved=True) for m in (3, 10, 20))
    shown = Candidate(10, moved=True, n_iter=5)
    base, noise = np.full(100, 4.0), np.tile([1.0, -1.0], 50)
    race = race_of({small: base + 0.02, large: base + 0.01 + noise, larger: base + 0.03 - noise, shown: base})
    race.drop(3.0, 1.0)
    assert race.running == [small, large, larger, shown]
    race.drop(3.0, 0.0)
    assert race.running == [small, large, shown]


def test_who_is_preferred_at_the_same_error():
    quiet, moved = Candidate(5, moved=True), Candidate(5, moved=True, n_iter=20)
    assert _preferred(quiet, moved)
    assert not _preferred(moved, quiet)
    assert _preferred(Candidate(3, moved=True, n_iter=5), moved)
    assert not _preferred(Candidate(10, moved=True), quiet)
    assert _preferred(quiet, quiet)


def test_vectors_that_saw_the_labels_must_be_better_by_a_standard_error():
    quiet, moved = Candidate(10, moved=True), Candidate(5, moved=True, n_iter=20)
    base, noise = np.full(100, 4.0), np.tile([1.0, -1.0], 50)
    for k, chosen in ((0.9, quiet), (1.1, moved)):
        race = race_of({quiet: base + k * 0.1 + noise, moved: base})
        assert race.choose(0.5) == chosen


def test_the_smallest_within_the_tolerance_is_taken():
    small, large = Candidate(3, moved=True), Candidate(10, moved=True)
    base, noise = np.full(100, 4.0), np.tile([1.0, -1.0], 50)
    for k, chosen in ((0.9, small), (1.1, large)):
        race = race_of({small: base + k * 0.1 + noise, large: base})
        assert race.choose(1.0) == chosen
    # of two of one size the better one
    samples = Candidate(3)
    assert race_of({small: base + 0.01, samples: base}).choose(0.5) == samples
