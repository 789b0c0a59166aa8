"""Candidates, folds, and the choice of a setting by cross-validation."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from fewkern.core.path import TOLERANCE, Path
from fewkern.fisher import choice
from fewkern.fisher.choice import (
    Candidates,
    Comparing,
    CrossValidated,
    absent_class,
    choose_setting,
    cross_validate,
    fit_within,
)
from fewkern.fisher.families import ForwardFamily, LqFamily
from fewkern.fisher.lq import LqSettings
from fewkern.fisher.posterior import least_squares_scores
from fewkern.fisher.problem import Machine
from fewkern.fisher.targets import fisher_targets
from fewkern.kernels import Gaussian
from fewkern.select.paths import KernelGrid
from tests.fisher import helpers
from tests.fisher.helpers import classes, labelled


def two_classes(n=60):
    X, codes, w = classes(n, 2)
    samples = labelled(X, codes, w)
    return samples, Candidates.of(samples, Gaussian(length_scale=1.5), None, 0)


def test_cross_validation_errors_are_those_of_refits():
    samples, candidates = two_classes()
    K, codes, w = candidates.K, samples.codes, samples.weights
    penalties = (0.1, 0.01)
    folds = samples.folds(4)
    found = cross_validate(samples, candidates, LqFamily(LqSettings(q=1.0)), penalties, folds)
    assert found.n == 60
    for j, penalty in enumerate(penalties):
        wrong, size = 0.0, 0.0
        for train, test in folds:
            train, test = np.array(train), np.array(test)
            t = fisher_targets(codes[train], 2, w[train])
            fit = helpers.fit(K[np.ix_(train, train)], t.rows(codes[train]), penalty, w[train], q=1)
            scores = least_squares_scores(t)(fit.values(K[np.ix_(test, train)]))
            wrong += w[test][scores.argmax(axis=1) != codes[test]].sum() / w.sum()
            size += fit.size / 4
        assert found.errors[j] == pytest.approx(wrong)
        assert found.sizes[j] == size


def test_held_out_values_are_those_of_refits_in_units_of_all_samples():
    """Every fold at a setting of its own; the shares of the classes, and so the targets, differ from fold to fold."""
    samples, candidates = two_classes()
    K, codes, w = candidates.K, samples.codes, samples.weights
    folds = [(list(range(20, 60)), list(range(20))), (list(range(50)), list(range(50, 60)))]
    found = cross_validate(samples, candidates, LqFamily(LqSettings(q=1.0)), (0.1, 0.01), folds).held_out([1, 0])
    np.testing.assert_array_equal(found.samples.rows, [*range(20), *range(50, 60)])
    whole, expected = fisher_targets(codes, 2, w), []
    for (train, test), penalty in zip(folds, (0.01, 0.1)):
        t = fisher_targets(codes[train], 2, w[train])
        fit = helpers.fit(K[np.ix_(train, train)], t.rows(codes[train]), penalty, w[train], q=1)
        expected.append(least_squares_scores(t)(fit.values(K[np.ix_(test, train)])))
    found_posteriors = least_squares_scores(whole)(found.values)
    np.testing.assert_allclose(found_posteriors, np.vstack(expected), atol=1e-5)


def test_a_sample_that_is_held_out_twice_counts_once():
    samples, candidates = two_classes()
    folds = samples.folds(3, 0) + samples.folds(3, 1)
    found = cross_validate(samples, candidates, LqFamily(LqSettings(q=1.0)), (0.01,), folds).held_out([0] * 6)
    assert found.samples is samples
    once = cross_validate(samples, candidates, LqFamily(LqSettings(q=1.0)), (0.01,), folds[:3]).held_out([0] * 3)
    np.testing.assert_array_equal(found.values, once.values)


def test_a_fold_is_judged_at_the_setting_that_the_other_folds_choose():
    samples, _ = two_classes(90)
    folds, plan = samples.folds(3, 0), Comparing(ForwardFamily(limit=12), "accurate")
    chosen = choose_setting(samples, Gaussian(length_scale=0.7), plan, folds)
    path = cross_validate(samples, chosen.candidates, plan.family, tuple(range(1, 13)), folds)
    others = [int(np.argmin(np.round(path.without(f).errors, 9))) for f in range(3)]
    np.testing.assert_array_equal(chosen.judged.values, path.held_out(others).values)
    s = int(np.argmin(np.round(path.errors, 9)))
    assert chosen.setting == s + 1
    np.testing.assert_array_equal(chosen.held_out.values, path.held_out([s] * 3).values)
    assert path.without(1).n == 60
    alone = cross_validate(samples, chosen.candidates, plan.family, (1, 2), folds[:1])
    assert alone.without(0).errors == alone.errors


@dataclass
class Worsening:
    """Machines that get larger, and after the first one wrong."""

    asked: list

    def path(self, K, Y, weights, settings):
        fit = helpers.fit(K, Y, 0.01, weights, q=1)
        for k, _ in enumerate(settings):
            self.asked.append(k)
            more = np.arange(k)
            yield Machine(
                np.r_[fit.support, more], np.vstack([(-1.0 if k else 1.0) * fit.coef, np.zeros((k, 1))]), fit.offset
            )


def test_hopeless_end_of_a_path_is_left():
    samples, candidates = two_classes()
    asked = []
    found = cross_validate(samples, candidates, Worsening(asked), tuple(range(9)), samples.folds(3))
    assert len(found.errors) == 3
    assert max(asked) == 2


def trace(error, size, n=100):
    error, size = np.array(error), np.array(size)
    with np.errstate(invalid="ignore"):
        spread = np.where(np.isfinite(error), np.sqrt(error * (1 - error) / n), np.inf)
    axes = {"length_scale": tuple(range(error.shape[0])), "alpha": tuple(range(error.shape[1]))}
    return Path(axes, error, spread, (0, 0), size=size)


def test_choice_prefers_accuracy_or_few_vectors():
    """A smaller machine is as good within half a standard error, or one, of the difference from the best one."""
    edge = trace([[0.155, 0.14, 0.12, 0.10]], [[1.0, 2.0, 3.0, 20.0]])
    plans = [Comparing(LqFamily(LqSettings()), prefer) for prefer in ("accurate", "balanced", "sparse")]
    assert [choice._choose(edge, plan, np.array([[0.042] * 4]))[1] for plan in plans] == [3, 2, 1]
    assert [choice._choose(edge, plan)[1] for plan in plans] == [3, 3, 3]
    compared = trace([[0.30, 0.11, 0.10], [0.25, 0.10, np.inf]], [[2.0, 5.0, 20.0], [3.0, 12.0, np.inf]])
    assert choice._choose(compared, plans[0]) == (1, 1)


def test_errors_of_a_path_are_compared_sample_by_sample():
    """Three machines; the smallest is wrong on one more of 50 samples, the second on two others instead."""
    misses = np.zeros((3, 50))
    misses[0, :11], misses[1, [*range(8), 20, 21]], misses[2, :10] = 1, 1, 1
    parts = (SimpleNamespace(n=20, weight=20.0), SimpleNamespace(n=30, weight=30.0))
    machines = tuple((SimpleNamespace(size=k),) * 2 for k in (1, 2, 3))
    path = CrossValidated(None, parts, machines, misses)
    assert path.errors == (0.22, 0.2, 0.2)
    np.testing.assert_allclose(path.paired_spread(2), np.sqrt([1, 4, 0]) / 50)
    family = LqFamily(LqSettings())
    chosen = [choice._choose_on(path, family, (0.3, 0.2, 0.1, 0.05), Comparing(family, p)) for p in TOLERANCE]
    # ties go to the smaller machine: the second, from which the smallest differs on five samples, by one
    assert chosen == [1, 0, 0]
    assert path.without(0).errors == (0.0, 2 / 30, 0.0)


def test_of_widths_with_equal_errors_the_widest_is_taken():
    grid = KernelGrid.of(*(Gaussian(length_scale=w) for w in (1.0, 2.0, 3.0)))
    paths = {k: SimpleNamespace(errors=(0.1,), sizes=(size,), n=50) for k, size in enumerate((3.0, 2.0, 2.0))}
    assert choice._best_width(grid, (0.1,), Comparing(LqFamily(LqSettings())), paths) == 2
    paths[0] = SimpleNamespace(errors=(0.05,), sizes=(9.0,), n=50)
    assert choice._best_width(grid, (0.1,), Comparing(LqFamily(LqSettings())), paths) == 0


NONE = np.zeros((1, 4))


def test_choice_within_a_budget():
    compared = trace([[0.30, 0.20, 0.15, 0.10]], [[2.0, 5.0, 20.0, 30.0]])
    family = LqFamily(LqSettings())
    chosen = [choice._choose(compared, Comparing(family, max_vectors=m), NONE)[1] for m in (30, 25, 10, 5, 1)]
    # one step beyond the budget: the last machine is then found between that one and the one before
    assert chosen == [3, 3, 2, 2, 0]
    best_is_small = trace([[0.10, 0.20, 0.15, 0.10]], [[2.0, 5.0, 20.0, 30.0]])
    assert choice._choose(best_is_small, Comparing(family, max_vectors=6), NONE) == (0, 0)


def test_widths_are_compared_within_the_budget():
    compared = trace([[0.30, 0.05], [0.20, 0.10], [0.40, 0.30]], [[2.0, 9.0], [2.0, 9.0], [3.0, 9.0]])
    family = LqFamily(LqSettings())
    assert [choice._choose(compared, Comparing(family, max_vectors=m)) for m in (9, 8, 2)] == [(0, 1), (1, 0), (1, 0)]
    assert choice._choose(compared, Comparing(family, max_vectors=1)) == (1, 0)


@pytest.mark.parametrize("penalty", [None, 1e-3])
def test_the_last_machine_obeys_the_budget(penalty):
    samples, _ = two_classes(150)
    for budget in (1, 3, 8):
        plan = Comparing(LqFamily(LqSettings(), penalty), max_vectors=budget)
        chosen = choose_setting(samples, Gaussian(length_scale=1.0), plan, samples.folds(3))
        fitted, setting = fit_within(samples, chosen, plan)
        assert 1 <= fitted.machine.size <= budget
        assert setting >= chosen.setting


def test_a_matrix_of_one_kernel_is_computed_once():
    samples, _ = two_classes()
    calls = []

    @dataclass(eq=False)
    class Counting(Gaussian):
        def _block(self, X, Y):
            calls.append((len(X), len(Y)))
            return super()._block(X, Y)

    plan = Comparing(ForwardFamily(limit=5))
    chosen = choose_setting(samples, Counting(length_scale=1.5), plan, samples.folds(3))
    fit_within(samples, chosen, plan)
    assert calls == [(60, 60)]


def test_absent_class_names_fold_and_class():
    samples, _ = two_classes()
    order = np.argsort(samples.codes, kind="stable").tolist()
    first = int(np.sum(samples.codes == 0))
    assert absent_class(samples, samples.folds(4)) is None
    assert absent_class(samples, [(list(range(60)), []), (order[:first], order[first:])]) == (1, 1)


def test_a_fold_uses_only_candidates_that_it_trains_on():
    samples, candidates = two_classes()
    rows = np.array([4, 7, 9])
    np.testing.assert_array_equal(candidates.among(rows), rows)
    few = Candidates.of(samples, Gaussian(length_scale=1.5), 10, 0)
    assert few.among(rows) is None
    assert few.K.shape == (60, 10)


def test_a_path_is_hopeless_when_its_last_two_machines_are_larger_and_clearly_worse():
    """Two standard errors of the least error, and one sample."""
    n, least = 100, 0.1
    bound = least + 2 * np.sqrt(least * 0.9 / n) + 1 / n
    for worse, expected in ((bound + 1e-9, True), (bound - 1e-9, False)):
        assert choice._hopeless([least, worse, worse], [1, 2, 3], n) is expected
        assert not choice._hopeless([least, worse], [1, 2], n)
        assert not choice._hopeless([least, worse, least], [1, 2, 3], n)
        assert not choice._hopeless([least, least, worse], [1, 2, 3], n)
        # machines that are not larger may come back
        assert not choice._hopeless([least, worse, worse], [3, 2, 3], n)
        assert not choice._hopeless([least, worse, worse], [3, 4, 3], n)


def test_a_table_of_errors_has_their_standard_errors():
    paths = {1: SimpleNamespace(errors=(0.4, 0.1), sizes=(3.0, 7.5), n=50)}
    found = choice._trace((1.0, 2.0), LqFamily(LqSettings()), (0.1, 0.01, 0.001), paths)
    np.testing.assert_array_equal(found.error, [[np.inf] * 3, [0.4, 0.1, np.inf]])
    np.testing.assert_allclose(found.spread[1, :2], np.sqrt([0.4 * 0.6 / 50, 0.1 * 0.9 / 50]))
    np.testing.assert_array_equal(found.size, [[np.inf] * 3, [3.0, 7.5, np.inf]])
    assert found.axes == {"length_scale": (1.0, 2.0), "alpha": (0.1, 0.01, 0.001)}
    assert choice._trace((1.0, 2.0), ForwardFamily(), (1, 2, 3), paths).size is None


def test_the_numbers_of_vectors_are_sizes_where_they_are_the_setting():
    axes = {"length_scale": (1.0,), "n_vectors": (1, 2, 3)}
    compared = Path(axes, np.array([[0.3, 0.1, 0.1]]), np.full((1, 3), 0.01), (0, 0))
    assert choice._choose(compared, Comparing(ForwardFamily())) == (0, 1)
    assert choice._choose(compared, Comparing(ForwardFamily(), max_vectors=1), NONE[:, :3]) == (0, 1)
    worse = Path(axes, np.array([[0.3, 0.2, 0.1]]), np.full((1, 3), 0.01), (0, 0))
    assert choice._choose(worse, Comparing(ForwardFamily(), max_vectors=2), NONE[:, :3]) == (0, 2)


def test_what_there_is_to_compare():
    one, many = LqFamily(LqSettings(), penalty=0.1), LqFamily(LqSettings())
    given, rule = Gaussian(length_scale=1.0), Gaussian()
    assert [Comparing(family).n_paths(kernel) for family in (one, many) for kernel in (given, rule)] == [1, 8, 1, 8]
    assert [Comparing(family).compares for family in (one, many)] == [False, True]


@pytest.mark.parametrize("family", [LqFamily(LqSettings()), ForwardFamily(limit=8)], ids=lambda f: f.axis)
def test_width_and_setting_are_chosen_by_the_folds(family):
    """Every second width, the neighbors of the best one, and no better pair of width and setting among them."""
    samples, _ = two_classes(90)
    plan, steps, folds = Comparing(family, "accurate"), [], samples.folds(3, 0)
    found = choose_setting(samples, Gaussian(), plan, folds, steps.append)
    k, s = found.trace.chosen
    assert found.trace.axes[family.axis][s] == found.setting
    compared = np.isfinite(found.trace.error).any(axis=1).nonzero()[0].tolist()
    assert set(range(0, 9, 2)) <= set(compared)
    assert {max(k - 1, 0), min(k + 1, 8)} <= set(compared) or k % 2
    assert found.trace.error[k, s] == found.trace.error.min()
    assert steps == list(range(1, len(compared) + 2))
    alone = cross_validate(samples, found.candidates, family, found.trace.axes[family.axis], folds)
    assert alone.errors == tuple(found.trace.error[k, : len(alone.errors)])


def test_widths_are_compared_on_some_samples_and_the_setting_on_all(monkeypatch):
    monkeypatch.setattr(choice, "WIDTH_ROWS", 60)
    monkeypatch.setattr(choice, "WIDTH_CANDIDATES", 20)
    samples, _ = two_classes(150)
    seen = []

    def noted(some, candidates, family, settings, folds):
        seen.append((some.n, candidates.K.shape[1]))
        return cross_validate(some, candidates, family, settings, folds)

    monkeypatch.setattr(choice, "cross_validate", noted)
    found = choose_setting(samples, Gaussian(), Comparing(ForwardFamily(limit=6)), samples.folds(3, 0))
    assert {(n, m) for n, m in seen[:-1]} == {(60, 20)}
    assert seen[-1] == (150, 150)
    assert found.held_out.samples is samples
    some, parts = choice._part(samples, samples.folds(3, 0), np.random.default_rng(0))
    for (train, test), (whole_train, whole_test) in zip(parts, samples.folds(3, 0)):
        assert set(some.rows[train].tolist()) <= set(whole_train)
        assert set(some.rows[test].tolist()) <= set(whole_test)
    # a fold that would train on none of them: all samples are used
    nobody = [([i for i in range(150) if i not in set(some.rows.tolist())], some.rows.tolist())]
    assert choice._part(samples, nobody, np.random.default_rng(0)) == (samples, nobody)


def test_without_folds_the_default_is_taken():
    samples, _ = two_classes()
    plan = Comparing(LqFamily(LqSettings()))
    found = choose_setting(samples, Gaussian(length_scale=1.5), plan, [])
    stretch = fisher_targets(samples.codes, 2, samples.weights).stretch
    assert found.setting == pytest.approx(plan.family.settings(1.0, stretch)[3])
    assert found.trace.axes["alpha"] == (found.setting,)
    assert found.candidates.kernel.length_scale == 1.5


def test_a_budget_is_used_as_far_as_halvings_find():
    """Between the last setting that is too large and the first that is not, six halvings."""
    samples, candidates = two_classes(150)
    family = LqFamily(LqSettings(), 1e-4)
    plan = Comparing(family, max_vectors=6)
    chosen = choice.Chosen(candidates, 1e-4, None)
    fitted, setting = fit_within(samples, chosen, plan)
    Y = fisher_targets(samples.codes, 2, samples.weights).rows(samples.codes)

    def size(penalty):
        return family.fit(candidates.K, Y, samples.weights, penalty).machine.size

    assert size(1e-4) > 6
    assert size(setting) == fitted.machine.size <= 6
    # a little less penalty is too much already
    assert size(setting / 10 ** (0.5 / 2**6) * 0.999) > 6
    free, same = fit_within(samples, chosen, Comparing(family))
    assert (free.machine.size, same) == (size(1e-4), 1e-4)
    exact, same = fit_within(samples, chosen, Comparing(family, max_vectors=size(1e-4)))
    assert (exact.machine.size, same) == (size(1e-4), 1e-4)


def test_candidates_are_distinct_samples_or_a_few_that_span_them(monkeypatch):
    X, codes, _ = classes(40, 2)
    samples = labelled(np.vstack([X, X[:5]]), np.r_[codes, codes[:5]])
    every = Candidates.of(samples, Gaussian(length_scale=1.5), None, 0)
    assert every.K.shape == (45, 40)
    np.testing.assert_array_equal(every.owners[40:], every.owners[:5])
    few = Candidates.of(samples, Gaussian(length_scale=1.5), 7, 0)
    assert few.K.shape == (45, 7)
    assert few.owners is None
    assert few.among(np.arange(3)) is None
    assert Candidates.of(samples, Gaussian(length_scale=1.5), 40, 0).owners is not None
    np.testing.assert_array_equal(every.among(np.array([3, 1, 41])), sorted({int(every.owners[i]) for i in (3, 1, 41)}))
    monkeypatch.setattr(choice, "MOST_CANDIDATES", 11)
    assert Candidates.of(samples, Gaussian(length_scale=1.5), None, 0).K.shape == (45, 11)


def test_the_scale_of_a_kernel_is_its_mean_and_its_square_a_number():
    from fewkern.kernels import Linear, Polynomial

    samples, _ = two_classes()
    X = samples.X
    assert choice.kernel_scale(samples, Linear()) == pytest.approx((X**2).sum(axis=1).mean())
    assert choice.kernel_scale(samples, Gaussian(length_scale=1.0)) == 1.0
    zero = labelled(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
    with pytest.raises(ValueError, match="every sample is a zero vector of the kernel"):
        choice.kernel_scale(zero, Linear())
    huge = labelled(1e40 * X, samples.codes)
    with pytest.raises(ValueError, match=r"the largest k\(x, x\) is .*scale the samples"):
        choice.kernel_scale(huge, Polynomial(2, gamma=1.0))
    with pytest.raises(ValueError, match=r"the largest k\(x, x\) is .*scale the samples"):
        choice.kernel_scale(labelled(1e-40 * X, samples.codes), Polynomial(2, gamma=1.0, coef0=0.0))
