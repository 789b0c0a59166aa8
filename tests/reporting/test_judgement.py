"""How good a model is, beside simple answers: the numbers against SciPy's and scikit-learn's, and the words."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from fewkern.reporting.comparison import normal_log_density
from fewkern.reporting.judgement import Counted, compare, judge, judge_density, judge_fit, wilson
from fewkern.tables.fitting import contradiction

RNG = np.random.default_rng(0)
NO = np.array(["no"] * 150 + ["yes"] * 50)
CLASSES = ["no", "yes"]


def of_classes(truth, predicted, linear=None, classes=CLASSES, **more):
    answers = {"this model": predicted, "always answering 'no'": np.full(len(truth), "no")}
    return judge(
        np.asarray(truth), answers | ({} if linear is None else {"a linear model": linear}), classes=classes, **more
    )


def of_numbers(truth, predicted, linear=None):
    answers = {"this model": predicted, "the mean": np.zeros_like(truth)}
    return judge(truth, answers | ({} if linear is None else {"a linear model": linear}))


def with_errors(count):
    return np.where(np.arange(200) >= 200 - count, "no", NO)


def test_intervals():
    p, n, z = 7 / 40, 40, stats.norm.ppf(0.975)
    middle, half = (p + z**2 / (2 * n)), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    assert Counted().interval(np.arange(40) < 7) == wilson(7, 40) == pytest.approx(expected)
    errors = RNG.exponential(size=30)
    assert Counted().interval(errors) == pytest.approx(stats.t.interval(0.95, 29, errors.mean(), stats.sem(errors)))
    assert Counted().interval(errors[:1])[1] == np.inf


def test_intervals_and_comparisons_count_groups():
    counted = Counted(groups=np.repeat(np.arange(20), 10))
    errors = np.random.default_rng(0).exponential(size=20)
    expected = stats.t.interval(0.95, 19, errors.mean(), stats.sem(errors))
    assert counted.interval(np.repeat(errors, 10)) == pytest.approx(expected)
    wrong = np.arange(20) < 5
    (low, high), one_each = counted.interval(np.repeat(wrong, 10)), wilson(5, 20)
    assert high - low == pytest.approx(one_each[1] - one_each[0], rel=0.1)
    own, other = np.zeros(200), np.repeat([1.0] * 2 + [0.0] * 18, 10)
    assert (compare(own, other), compare(own, other, counted)) == ("better", "perhaps better")


def test_a_row_without_weight_does_not_count():
    counted = Counted(weights=np.repeat([1.0, 0.0], 100))
    found = of_classes(NO, np.where(np.arange(200) >= 100, "?", NO), counted=counted)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.weighted


@pytest.mark.parametrize(("hits", "verdict"), [(4, "perhaps better"), (5, "better")])
def test_classes_are_compared_by_mcnemars_exact_test(hits, verdict):
    """One-sided, at the level of 5%: 0.5 ** 4 = 0.06, 0.5 ** 5 = 0.03."""
    simple = np.repeat([False, True], [50, 10])
    assert compare(simple & (np.arange(60) >= 50 + hits), simple) == verdict


def test_errors_of_classes():
    found = of_classes(NO, with_errors(10), linear=np.full(200, "no"))
    assert (found.value, found.baseline, found.linear) == (0.05, 0.25, 0.25)
    assert (found.low, found.high) == wilson(10, 200)
    assert found.found == "40 of 50 rows of class 'yes'; 40 of 40 answers 'yes' are right"
    assert of_classes(NO, with_errors(50)).found == "0 of 50 rows of class 'yes'"
    assert of_classes(NO[:9], NO[:9]).found is None
    assert of_classes(NO, NO, classes=["maybe", *CLASSES]).found is None


def test_errors_of_numbers():
    truth = RNG.normal(size=300)
    predicted = truth + 0.1 * RNG.normal(size=300)
    found = of_numbers(truth, predicted, np.zeros(300))
    assert found.value == pytest.approx(metrics.root_mean_squared_error(truth, predicted))
    assert found.r2 == pytest.approx(metrics.r2_score(truth, predicted))
    assert found.baseline == found.linear == pytest.approx(np.sqrt(np.mean(truth**2)))
    assert found.low < found.value < found.high < found.baseline
    assert of_numbers(truth[:1], predicted[:1]).high == np.inf
    assert of_numbers(np.zeros(9), predicted[:9]).r2 is None


NOISE, MEAN = RNG.normal(size=400), "the mean"
TRUTH = RNG.normal(size=400)


@pytest.mark.parametrize(
    ("own", "linear", "verdict"),
    [
        (0.1 * NOISE, TRUTH, f"better than {MEAN}, and better than a linear model"),
        (0.1 * NOISE, None, f"better than {MEAN}"),
        (0.5 * NOISE, 0.1 * NOISE, f"better than {MEAN}; use a linear model, it is better"),
        (0.1, -0.1, f"better than {MEAN}; use a linear model, it is as good"),
        (0.1 * NOISE, 0.105 * np.roll(NOISE, 1), f"better than {MEAN}; the difference to a linear model may be chance"),
        (5 * NOISE, 3 * np.roll(NOISE, 1), f"worse than {MEAN}"),
        (5 * NOISE, 0.1, f"worse than {MEAN}; use a linear model, it is better"),
        (-TRUTH, None, f"no better than {MEAN}"),
    ],
)
def test_verdicts(own, linear, verdict):
    assert of_numbers(TRUTH, TRUTH + own, None if linear is None else TRUTH + linear).verdict == verdict


def test_a_difference_that_may_be_chance():
    found = of_classes(NO, with_errors(48))
    assert found.verdict == "no better than always answering 'no': on 200 rows the difference may be chance"


def test_a_fit_without_rows_held_out_is_judged_by_its_own_error():
    y = np.array(["no"] * 299 + ["yes"])
    found = judge_fit("classify", 1 / 300, y)
    assert found.verdict == "no better than always answering 'no'"
    assert (found.low, found.high, found.how) == (*wilson(1, 300), "cross-validated")
    assert judge_fit("classify", 0.0, y[-5:]).verdict.endswith("on 5 rows the difference may be chance")
    assert judge_fit("classify", 0.5, NO).verdict == "worse than always answering 'no'"
    numbers = RNG.normal(size=100)
    good = judge_fit("regress", 0.1, numbers)
    assert good.verdict.startswith("better than always answering the mean, ")
    assert good.r2 == pytest.approx(1 - 0.01 / np.var(numbers))
    assert good.baseline == pytest.approx(np.std(numbers))
    weighted = judge_fit("classify", 0.1, NO, np.where(NO == "yes", 9.0, 1.0))
    assert (weighted.baseline_name, weighted.baseline) == ("always answering 'yes'", pytest.approx(0.25))


def test_densities_are_judged_beside_one_normal_distribution():
    Z = RNG.normal(size=(50, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    expected = stats.multivariate_normal(Z.mean(axis=0), np.cov(Z, rowvar=False)).logpdf(Z[:5])
    np.testing.assert_allclose(normal_log_density(Z, Z[:5]), expected, rtol=1e-6)
    found = judge_density(np.zeros(20), -np.ones(20))
    assert (found.value, found.baseline) == (0.0, -1.0)
    assert found.verdict == "better than one normal distribution"


def test_probabilities_rank_the_rows_of_a_rare_class():
    y, p = np.array([0] * 990 + [1] * 10), np.linspace(0, 1, 1000)
    for shares, ranking in (
        ([1 - p, p], "class 1: average precision 1.00 (at random 0.010), AUC 1.00"),
        ([p, 1 - p], "class 1: average precision 0.01 (at random 0.010), AUC 0.00"),
    ):
        found = of_classes(y, 0 * y, classes=np.array([0, 1]), probabilities=np.column_stack(shares))
        assert found.ranking == ranking
    halves = of_classes(y, 0 * y, classes=np.array([0, 1]))
    assert halves.ranking is None


def test_contradictions_need_a_factor_and_a_certain_difference():
    judged = of_numbers(TRUTH, TRUTH + 0.1)
    assert contradiction(judged, 0.15) == []
    assert "a few rows decide" in contradiction(judged, 0.9)[0]
    rate = of_classes(NO, with_errors(20))
    assert contradiction(rate, 0.15) == []
    assert "the cross-validated error (45.0%) and the held-out error (10.0%)" in contradiction(rate, 0.45)[0]
