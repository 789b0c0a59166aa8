"""Candidates, folds, and the choice of a setting by cross-validation."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fewkern.core.path import TOLERANCE
from fewkern.fisher.cross_validation import CrossValidated, CVPlan, _is_clearly_worse, cross_validate, select_setting
from fewkern.fisher.forward import ForwardFamily
from fewkern.fisher.lq import LqFamily
from fewkern.fisher.problem import Candidates, fisher_targets, kernel_scale
from fewkern.kernels import Gaussian, Linear, Polynomial
from tests.fisher import helpers
from tests.fisher.helpers import classes, labelled


def two_classes(n=60):
    X, codes, w = classes(n, 2)
    samples = labelled(X, codes, w)
    return samples, Candidates.of(samples, Gaussian(length_scale=1.5), None, 0)


def targets_of(samples):
    return fisher_targets(samples.codes, samples.n_classes, samples.weights)


def select(samples, kernel, plan, *step):
    return select_setting(samples, targets_of(samples), kernel, plan, *step)


def test_errors_and_held_out_values_are_those_of_refits():
    """The shares of the classes, and so the targets, differ from fold to fold; values are in units of all samples."""
    samples, candidates = two_classes()
    K, codes, w = candidates.K, samples.codes, samples.weights
    folds = [(list(range(20, 60)), list(range(20))), (list(range(50)), list(range(50, 60)))]
    path = cross_validate(samples, candidates, LqFamily(1.0), (0.1, 0.01), folds)
    posteriors, wrong, sizes = np.zeros((2, 60, 2)), np.zeros(2), np.zeros(2)
    for s, penalty in enumerate((0.1, 0.01)):
        for train, test in folds:
            t = fisher_targets(codes[train], 2, w[train])
            fit = helpers.fit(K[np.ix_(train, train)], t.rows(codes[train]), penalty, w[train], q=1)
            posteriors[s, test] = t.posteriors(fit.values(K[np.ix_(test, train)]))
            wrong[s] += w[test][posteriors[s, test].argmax(axis=1) != codes[test]].sum()
            sizes[s] += fit.size / 2
    rows = [*range(20), *range(50, 60)]
    np.testing.assert_allclose(path.errors, wrong / w[rows].sum())
    np.testing.assert_array_equal(path.sizes, sizes)
    found = path.held_out([1, 0], targets_of(samples))  # every fold at a setting of its own
    np.testing.assert_array_equal(found.samples.rows, rows)
    expected = np.vstack([posteriors[1, :20], posteriors[0, 50:]])
    np.testing.assert_allclose(targets_of(samples).posteriors(found.values), expected, atol=1e-5)


def test_a_sample_that_is_held_out_twice_counts_once():
    samples, candidates = two_classes()
    folds = samples.folds(3, 0) + samples.folds(3, 1)
    found = cross_validate(samples, candidates, LqFamily(1.0), (0.01,), folds).held_out([0] * 6, targets_of(samples))
    assert found.samples is samples
    once = cross_validate(samples, candidates, LqFamily(1.0), (0.01,), folds[:3]).held_out([0] * 3, targets_of(samples))
    np.testing.assert_array_equal(found.values, once.values)


def test_a_fold_is_judged_at_the_setting_that_the_other_folds_choose():
    samples, _ = two_classes(90)
    folds = samples.folds(3, 0)
    plan = CVPlan(ForwardFamily(tuple(range(1, 13))), folds, "accurate")
    chosen = select(samples, Gaussian(length_scale=0.7), plan)
    path = cross_validate(samples, chosen.candidates, plan.family, tuple(range(1, 13)), folds)
    others = [int(np.argmin(np.round(path.without(f).errors, 9))) for f in range(3)]
    np.testing.assert_array_equal(chosen.nested.values, path.held_out(others, targets_of(samples)).values)
    s = int(np.argmin(np.round(path.errors, 9)))
    assert chosen.setting == s + 1
    np.testing.assert_array_equal(chosen.held_out.values, path.held_out([s] * 3, targets_of(samples)).values)
    assert len(path.without(1).rows) == 60
    alone = cross_validate(samples, chosen.candidates, plan.family, (1, 2), folds[:1])
    assert alone.without(0) is alone


@pytest.mark.parametrize(
    ("errors", "sizes", "worse"),
    [
        ([0.1, 0.2, 0.2], [1, 2, 3], True),
        ([0.1, 0.2], [1, 2], False),  # two models are too few to tell
        ([0.1, 0.2, 0.17], [1, 2, 3], False),  # 0.1 + 2 * 0.03 + 0.01
        ([0.1, 0.17, 0.2], [1, 2, 3], False),
        ([0.1, 0.2, 0.2], [3, 3, 4], False),  # no larger than the best
        ([0.3, 0.1, 0.2, 0.2], [9, 1, 2, 3], True),
    ],
)
def test_the_end_of_a_path_is_left_where_it_is_hopeless(errors, sizes, worse):
    assert _is_clearly_worse(errors, sizes, 100) is worse


def path_of(errors, sizes, n=100):
    """A path whose machines have these errors and sizes: one fold, and the first samples are the misclassified ones."""
    misses = (np.arange(n) < np.round(np.array(errors) * n)[:, None]).astype(float)
    fold = SimpleNamespace(rows=np.arange(n))
    samples = SimpleNamespace(weights=np.ones(n))
    return CrossValidated(samples, (fold,), tuple((SimpleNamespace(size=m),) for m in sizes), misses)


def plan(prefer="balanced", max_vectors=None):
    return CVPlan(LqFamily(max_vectors=max_vectors), [], prefer)


def test_choice_prefers_accuracy_or_few_vectors():
    """Differences of 4, 1 and 0.25 samples: their standard errors are 2, 1 and 0.5 samples."""
    path = path_of([0.14, 0.11, 0.10], [1, 2, 20])
    assert [plan(prefer).select(path) for prefer in TOLERANCE] == [2, 2, 1]
    equal = path_of([0.14, 0.10, 0.10], [1, 2, 20])
    assert [plan(prefer).select(equal) for prefer in TOLERANCE] == [1, 1, 1]
    # sample by sample: of 100, the smallest model is wrong on five others than the second, and one more
    misses = np.zeros((3, 100))
    misses[0, :11], misses[1, [*range(8), 20, 21]], misses[2, :10] = 1, 1, 1
    paired = replace(equal, misses=misses)
    np.testing.assert_allclose(paired.paired_std_errors(2), np.sqrt([1, 4, 0]) / 100)
    assert [plan(prefer).select(paired) for prefer in TOLERANCE] == [1, 0, 0]


def test_choice_within_a_budget():
    path = path_of([0.30, 0.20, 0.15, 0.10], [2, 5, 20, 30])
    chosen = [plan("accurate", m).select(path) for m in (30, 25, 10, 5, 1)]
    # one step beyond the budget: the last machine is then found between that one and the one before
    assert chosen == [3, 3, 2, 2, 0]
    small = path_of([0.10, 0.20, 0.15, 0.10], [2, 5, 20, 30])
    assert plan("accurate", 6).select(small) == 0


def test_widths_are_compared_within_the_budget():
    compared = [([0.30, 0.05], [2, 9]), ([0.20, 0.10], [2, 9]), ([0.40, 0.30], [3, 9])]
    paths = {k: path_of(*path) for k, path in enumerate(compared)}
    assert [plan(max_vectors=m).best_width(paths) for m in (9, 8, 2, 1)] == [0, 1, 1, 1]
    # none is within it: the smallest model of every width
    paths[0] = path_of([0.10, 0.05], [3, 9])
    assert plan(max_vectors=1).best_width(paths) == 0
    # of equal errors that of the smallest model, of these the widest
    equal = {k: path_of([0.1], [size]) for k, size in enumerate((3, 2, 2))}
    assert plan().best_width(equal) == 2


@pytest.mark.parametrize("family", [LqFamily(), ForwardFamily(tuple(range(1, 9)))], ids=lambda f: f.axis)
def test_width_and_setting_are_chosen_by_the_folds(family):
    """Every second width, the neighbors of the best one, and no better pair of width and setting among them."""
    samples, _ = two_classes(90)
    steps, folds = [], samples.folds(3, 0)
    found = select(samples, Gaussian(), CVPlan(family, folds, "accurate"), steps.append)
    k, s = found.trace.chosen
    assert found.trace.axes[family.axis][s] == found.setting
    compared = np.isfinite(found.trace.error).any(axis=1).nonzero()[0].tolist()
    assert set(range(0, 9, 2)) <= set(compared)
    assert {max(k - 1, 0), min(k + 1, 8)} <= set(compared) or k % 2
    assert found.trace.error[k, s] == found.trace.error.min()
    assert steps == list(range(1, len(compared) + 2))
    alone = cross_validate(samples, found.candidates, family, found.trace.axes[family.axis], folds)
    count, e = len(alone.errors), alone.errors
    np.testing.assert_array_equal(e, found.trace.error[k, :count])
    np.testing.assert_allclose(found.trace.spread[k, :count], np.sqrt(e * (1 - e) / 90))
    if family.axis == "alpha":
        np.testing.assert_array_equal(found.trace.size[k, :count], alone.sizes)
    else:
        assert found.trace.size is None


def test_widths_are_compared_on_a_part_of_the_samples_and_the_setting_on_all():
    """1,400 samples: a fold's error of a width is a multiple of 1/1,000, that of the chosen path of 1/1,400."""
    X, codes, _ = classes(1400, 2)
    samples, folds = labelled(X, codes), labelled(X, codes).folds(3, 0)
    found = select(samples, Gaussian(), CVPlan(ForwardFamily(tuple(range(1, 7))), folds))
    assert found.held_out.samples is samples
    k, _ = found.trace.chosen
    part = samples.some(1000, np.random.default_rng(0)).n

    def whole(errors, n):
        return np.allclose(n * errors, np.round(n * errors))

    compared = found.trace.error[np.isfinite(found.trace.error).all(axis=1)]
    assert [whole(errors, part) for errors in compared].count(False) == 1
    assert whole(found.trace.error[k], 1400)
    assert not whole(found.trace.error[k], part)
    # a fold that would train on none of the part: widths are compared on all samples
    rare = labelled(X, np.where(np.arange(1400) < 8, 1, 0))
    one = [(np.r_[0:2, 8:1400].tolist(), list(range(2, 8)))]
    assert select(rare, Gaussian(), CVPlan(ForwardFamily((1,)), one)).held_out.samples.n == 6


def test_without_folds_the_default_is_taken():
    samples, _ = two_classes()
    plan = CVPlan(LqFamily(), [])
    found = select(samples, Gaussian(length_scale=1.5), plan)
    assert found.setting == pytest.approx(plan.family.settings(1.0, targets_of(samples).scale / 2)[3])
    assert found.trace.axes["alpha"] == (found.setting,)
    assert found.candidates.kernel.length_scale == 1.5


def test_a_budget_is_used_as_far_as_halvings_find():
    """Between the last setting that is too large and the first that is not, six halvings."""
    samples, candidates = two_classes(150)
    Y = targets_of(samples).rows(samples.codes)

    def fit(penalty, max_vectors=None):
        return LqFamily(max_vectors=max_vectors).fit(candidates.K, Y, samples.weights, penalty)

    def size(penalty):
        return fit(penalty).size

    fitted = fit(1e-4, 6)
    assert size(fitted.setting) == fitted.size <= 6 < size(1e-4)
    # a little less penalty is too much already
    assert size(fitted.setting / 10 ** (0.5 / 2**6) * 0.999) > 6
    exact = fit(1e-4, size(1e-4))
    assert (exact.size, exact.setting) == (size(1e-4), 1e-4)


def test_candidates_are_distinct_samples_or_a_few_that_span_them():
    X, codes, _ = classes(40, 2)
    samples = labelled(np.vstack([X, X[:5]]), np.r_[codes, codes[:5]])
    every = Candidates.of(samples, Gaussian(length_scale=1.5), None, 0)
    assert every.K.shape == (45, 40)
    np.testing.assert_array_equal(every.row_to_candidate[40:], every.row_to_candidate[:5])
    few = Candidates.of(samples, Gaussian(length_scale=1.5), 7, 0)
    assert (few.K.shape, few.row_to_candidate, few.columns_for(np.arange(3))) == ((45, 7), None, None)
    assert Candidates.of(samples, Gaussian(length_scale=1.5), 40, 0).row_to_candidate is not None
    np.testing.assert_array_equal(
        every.columns_for(np.array([3, 1, 41])), sorted({int(every.row_to_candidate[i]) for i in (3, 1, 41)})
    )
    for n_classes, limit in ((2, 1000), (3, 400)):
        X, codes, _ = classes(limit + 20, n_classes)
        assert len(Candidates.of(labelled(X, codes), Gaussian(length_scale=0.1), None, 0).rows) == limit


def test_the_scale_of_a_kernel_is_its_mean_and_its_square_a_number():
    samples, _ = two_classes()
    X = samples.X
    assert kernel_scale(samples, Linear()) == pytest.approx((X**2).sum(axis=1).mean())
    assert kernel_scale(samples, Gaussian(length_scale=1.0)) == 1.0
    zero = labelled(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
    with pytest.raises(ValueError, match=r"the largest k\(x, x\) is 0, .* or use another kernel"):
        kernel_scale(zero, Linear())
    for factor in (1e40, 1e-40):
        with pytest.raises(ValueError, match=r"the largest k\(x, x\) is .*scale the samples"):
            kernel_scale(labelled(factor * X, samples.codes), Polynomial(2, gamma=1.0, coef0=0.0))
