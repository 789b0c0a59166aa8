"""How good a model is, beside simple answers."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import r2_score, root_mean_squared_error

from fewkern.reporting.comparison import normal_log_density
from fewkern.reporting.evaluation import wilson
from fewkern.tables.fitting import contradiction
from fewkern.tables.judgement import (
    HeldOutRows,
    judge_classes,
    judge_density,
    judge_fit,
    judge_numbers,
)

RNG = np.random.default_rng(0)


def classes(wrong, rows=200):
    truth = np.array(["no"] * 150 + ["yes"] * 50)[:rows]
    predicted = truth.copy()
    predicted[rows - wrong :] = "no"
    return HeldOutRows(np.arange(rows), truth, predicted)


def test_classes_are_judged_beside_the_most_frequent_one():
    good = judge_classes(classes(10), "no", linear=np.full(200, "no"))
    assert good.value == 0.05
    assert good.baseline == good.linear == 0.25
    assert good.verdict == "better than always answering 'no', and better than a linear model"
    both = judge_classes(classes(0), "no", linear=classes(0).truth)
    assert both.verdict == "better than always answering 'no'; use a linear model, it is as good"
    assert good.found == "40 of 50 rows of class 'yes'; 40 of 40 answers 'yes' are right"
    assert (good.low, good.high) == wilson(10, 200)
    assert judge_classes(classes(50), "no").verdict == "no better than always answering 'no'"
    assert judge_classes(classes(50), "no").found == "0 of 50 rows of class 'yes'"
    hardly = judge_classes(classes(48), "no").verdict
    assert hardly == "no better than always answering 'no': on 200 rows the difference may be chance"
    assert judge_classes(HeldOutRows(None, np.array([0, 1, 2]), np.array([0, 1, 1])), 0).found is None


def test_numbers_are_judged_beside_the_mean():
    truth = RNG.normal(size=300)
    predicted = truth + 0.1 * RNG.normal(size=300)
    found = judge_numbers(HeldOutRows(None, truth, predicted), 0.0, np.zeros(300))
    assert found.value == pytest.approx(root_mean_squared_error(truth, predicted))
    assert found.r2 == pytest.approx(r2_score(truth, predicted))
    assert found.baseline == found.linear == pytest.approx(np.sqrt(np.mean(truth**2)))
    assert found.low < found.value < found.high < found.baseline
    assert found.verdict == "better than always answering the mean, 0, and better than a linear model"
    noise = judge_numbers(HeldOutRows(None, truth, 2 * RNG.normal(size=300)), 0.0)
    assert noise.verdict == "worse than always answering the mean, 0"
    assert judge_numbers(HeldOutRows(None, truth[:1], predicted[:1]), 0.0).high == math.inf


def test_a_fit_without_rows_held_out_is_judged_by_its_own_error():
    y = np.array(["no"] * 299 + ["yes"])
    found = judge_fit("classify", 1 / 300, y)
    assert found.verdict == "no better than always answering 'no'"
    assert (found.low, found.high) == wilson(1, 300)
    assert found.how == "cross-validated"
    assert judge_fit("classify", 0.0, y[-5:]).verdict.endswith("on 5 rows the difference may be chance")
    numbers = RNG.normal(size=100)
    good = judge_fit("regress", 0.1, numbers)
    assert good.verdict.startswith("better than always answering the mean")
    assert good.r2 == pytest.approx(1 - 0.01 / np.var(numbers))


def test_densities_are_judged_beside_one_normal_distribution():
    Z = RNG.normal(size=(50, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    expected = multivariate_normal(Z.mean(axis=0), np.cov(Z, rowvar=False)).logpdf(Z[:5])
    np.testing.assert_allclose(normal_log_density(Z, Z[:5]), expected, rtol=1e-6)
    found = judge_density(np.zeros(20), -np.ones(20))
    assert (found.value, found.baseline) == (0.0, -1.0)
    assert found.verdict == "better than one normal distribution"


def test_verdicts_beside_a_linear_model():
    mean, truth, noise = "better than always answering the mean, 0", RNG.normal(size=400), RNG.normal(size=400)

    def verdict(own, linear):
        return judge_numbers(HeldOutRows(None, truth, truth + own), 0.0, truth + linear).verdict

    assert verdict(0.5 * noise, 0.1 * noise) == f"{mean}; use a linear model, it is better"
    assert verdict(0.1, -0.1) == f"{mean}; use a linear model, it is as good"
    assert verdict(0.1 * noise, 0.105 * np.roll(noise, 1)) == f"{mean}; the difference to a linear model may be chance"
    assert verdict(5 * noise, 3 * np.roll(noise, 1)) == "worse than always answering the mean, 0"
    assert verdict(5 * noise, 0.1).endswith("worse than always answering the mean, 0; use a linear model, it is better")


def test_probabilities_rank_the_rows_of_a_rare_class():
    y, p = np.array([0] * 990 + [1] * 10), np.linspace(0, 1, 1000)
    for shares, ranking in (
        ([1 - p, p], "class 1: average precision 1.00 (at random 0.010), AUC 1.00"),
        ([p, 1 - p], "class 1: average precision 0.01 (at random 0.010), AUC 0.00"),
    ):
        held_out = HeldOutRows(None, y, 0 * y, np.column_stack(shares))
        assert judge_classes(held_out, 0, classes=np.array([0, 1])).ranking == ranking


def test_contradictions_need_a_factor_and_a_certain_difference():
    truth = RNG.normal(size=200)
    judged = judge_numbers(HeldOutRows(None, truth, truth + 0.1), 0.0)
    assert contradiction(judged, 0.15) == []
    assert "a few rows decide" in contradiction(judged, 0.9)[0]
    rate = judge_classes(HeldOutRows(None, np.array([0, 1] * 50), np.array([0, 1] * 40 + [0, 0] * 10)), 0)
    assert contradiction(rate, 0.15) == []
    assert "the cross-validated error (45.0%) and the held-out error (10.0%)" in contradiction(rate, 0.45)[0]
