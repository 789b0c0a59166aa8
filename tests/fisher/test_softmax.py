"""Logistic regression of several classes: what it minimizes, what leaves, and what two rules have in common."""

from itertools import pairwise

import numpy as np
import pytest

from fewkern.fisher import deciding, softmax
from fewkern.fisher.deciding import Labelled, SeveralClasses, TwoClasses
from fewkern.fisher.problem import Machine
from fewkern.fisher.softmax import SoftmaxColumns, eliminate_softmax, slopes_softmax
from fewkern.fisher.targets import fisher_targets


def problem(n=90, k=5, n_classes=3):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, k))
    codes = np.argmax(Z[:, :n_classes] + 0.7 * rng.standard_normal((n, n_classes)), axis=1)
    B = rng.standard_normal((k, k))
    return Z, codes, rng.uniform(0.5, 2.0, n), B @ B.T


def objective(Z, codes, weights, R, coef, modest=0.03):
    values = coef[0] + Z @ coef[1:]
    losses = np.log(np.exp(values).sum(axis=1)) - values[np.arange(len(Z)), codes]
    return np.sum(weights * (losses + modest * np.sum(values**2, axis=1) / 2)) + np.sum(coef[1:] * (R @ coef[1:])) / 2


def gradient(function, coef, step=1e-6):
    found = np.zeros_like(coef)
    for i in np.ndindex(coef.shape):
        up, down = coef.copy(), coef.copy()
        up[i] += step
        down[i] -= step
        found[i] = (function(up) - function(down)) / (2 * step)
    return found


def columns_of(Z, codes, weights, R):
    return SoftmaxColumns.of(Z[None], np.eye(3)[codes], weights[None], R[None])


def test_a_regression_is_the_minimum_of_what_it_says(monkeypatch):
    monkeypatch.setattr(softmax, "_SETTLED", 1e-9)
    Z, codes, weights, R = problem()
    columns = columns_of(Z, codes, weights, R)
    coef, values = columns.regress(columns.nothing(), 2000)
    w = weights * len(Z) / weights.sum()
    np.testing.assert_allclose(gradient(lambda b: objective(Z, codes, w, R, b), coef[0]), 0, atol=1e-5)
    np.testing.assert_allclose(values[0], coef[0, 0] + Z @ coef[0, 1:])
    stage = softmax.SoftmaxStage(np.arange(5)[None], coef, values, columns)
    assert stage.objective == pytest.approx(objective(Z, codes, w, R, coef[0]))
    np.testing.assert_allclose(coef.sum(axis=2), 0, atol=1e-8)


def folds_of(weights, n_folds=3):
    """A sample is held out in one fold: it has no weight there."""
    number = np.arange(len(weights)) % n_folds
    return np.where(number == np.arange(n_folds)[:, None], 0.0, weights)


def test_scores_that_are_timid_are_judged_by_a_multiple_of_them():
    """The factor is that at which held-out samples have the least loss, whatever those say that are trained on."""
    Z, codes, weights, R = problem(300)
    train = folds_of(weights)
    columns = SoftmaxColumns.of(np.stack([Z] * 3), np.eye(3)[codes], train, np.stack([R] * 3))
    stage = next(eliminate_softmax(columns))

    def loss(factor, times):
        held_out = train == 0
        return float(np.mean(columns.losses(factor * times * stage.values)[held_out]))

    for times in (1.0, 0.25):
        timid = softmax.SoftmaxStage(stage.kept, stage.coef, times * stage.values, columns)
        found = softmax.sharpness(timid)
        assert all(loss(found, times) <= loss(factor, times) for factor in softmax._FACTORS)
    assert softmax.sharpness(timid) == pytest.approx(4 * softmax.sharpness(stage), rel=0.5)


def test_one_factor_serves_all_sizes_and_whoever_judges():
    Z, _, weights, R = problem(120)
    codes = np.argmax(Z[:, :3], axis=1)  # easy to tell apart, with scores that are small
    rule = SeveralClasses(fisher_targets(codes, 3, np.ones(120)).theta, R, 1e-2)
    sizes = list(rule.sizes(Labelled(Z, codes, folds_of(weights)), np.stack([np.arange(5)] * 3)))
    assert len({one.factor for one in sizes}) == 1
    assert sizes[0].factor > 1
    for one in sizes:
        assert one.sharp.shape == one.losses.shape == (3, 120)
    assert np.sum(sizes[0].sharp) < np.sum(sizes[0].losses)
    values = np.random.default_rng(0).standard_normal((120, 2))
    sharp = deciding.replace(rule, factor=2.0)
    np.testing.assert_allclose(sharp.judge(values, codes)[0], rule.judge(2 * values, codes)[0])
    np.testing.assert_array_equal(sharp.judge(values, codes)[1], rule.judge(values, codes)[1])


def test_slopes_are_the_derivative_of_the_losses():
    Z, codes, weights, _ = problem()
    coef = np.random.default_rng(1).standard_normal((6, 3))
    exact = gradient(lambda b: objective(Z, codes, weights, np.zeros((5, 5)), b, 0), coef)
    np.testing.assert_allclose(slopes_softmax(Z, np.eye(3)[codes], weights, coef), exact, atol=1e-5)


def test_useless_columns_leave_first():
    Z, codes, weights, _ = problem(400, 5)
    stages = list(eliminate_softmax(columns_of(Z, codes, weights, np.eye(5))))
    assert [stage.size for stage in stages] == [5, 4, 3, 2, 1]
    np.testing.assert_array_equal(stages[2].kept[0], [0, 1, 2])
    assert all(a.objective <= b.objective + 1e-6 for a, b in pairwise(stages))


def test_one_in_eight_of_many_columns_leaves_at_once():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((60, 24))
    sizes = [s.size for s in eliminate_softmax(columns_of(Z, rng.integers(0, 3, 60), np.ones(60), np.eye(24)))]
    assert sizes[:4] == [24, 21, 19, 17]


def test_left_out_values_are_near_those_of_a_fit_without_the_sample(monkeypatch):
    monkeypatch.setattr(softmax, "_SETTLED", 1e-9)
    Z, codes, _, R = problem()
    weights = np.ones(90)
    columns = columns_of(Z, codes, weights, R)
    stage = softmax.SoftmaxStage(np.arange(5)[None], *columns.regress(columns.nothing(), 2000), columns)
    found, exact = stage.leave_one_out()[0], stage.values[0].copy()
    for i in range(20):
        without = weights.copy()
        without[i] = 0
        less = columns_of(Z, codes, without, R * 90 / 89)  # weights are scaled to add up to 90
        exact[i] = less.regress(less.nothing(), 2000)[1][0, i]
    moved = exact[:20] - stage.values[0, :20]
    assert np.linalg.norm(found[:20] - exact[:20]) < 0.6 * np.linalg.norm(moved)


def test_a_machine_keeps_its_scores_as_coordinates():
    Z, codes, weights, _ = problem()
    targets = fisher_targets(codes, 3, weights)
    rule = SeveralClasses(targets.theta, Z[:5] @ Z[:5].T, 0.1)
    scores = np.random.default_rng(0).standard_normal((6, 3))
    scores = scores - scores.mean(axis=1, keepdims=True)
    flat = scores @ targets.theta
    np.testing.assert_allclose(rule._scores(Machine(np.arange(5), flat[1:], flat[0])), scores, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_pull_moves_a_regression_to_that_of_other_rows(n_classes, monkeypatch):
    """The derivative of all rows at the minimum is zero once it is added."""
    monkeypatch.setattr(softmax, "_MODEST", 0.0)
    Z, codes, weights, _ = problem(300, 3, 3)
    codes = np.minimum(codes, n_classes - 1)
    targets = fisher_targets(codes, n_classes, weights)
    two = n_classes == 2
    rule = TwoClasses(np.eye(3), 1e-6) if two else SeveralClasses(targets.theta, np.eye(3), 1e-6)
    some, every = (Labelled(Z[:m], codes[:m], weights[:m]) for m in (150, 300))
    start = Machine(np.arange(3), np.zeros((3, n_classes - 1)), np.zeros(n_classes - 1))
    found = rule.regress(some, start, np.zeros_like(rule.slopes(some, start)))
    before = None
    for _ in range(6):
        slope = rule.slopes(every, found) / weights.sum()
        size = np.abs(slope).max()
        before = size if before is None else before
        found = rule.regress(some, found, 150 * (slope - rule.slopes(some, found) / weights[:150].sum()))
    assert size < 0.05 * before


def test_an_indefinite_kernel_gives_a_penalty_that_is_none_below_zero():
    found = deciding.penalties(np.diag([1.0, -1.0]), np.array([[0, 1]]), 2.0)
    np.testing.assert_allclose(found[0], np.diag([2.0, 0.0]))
    for ridges in (deciding.RIDGES, deciding.RIDGES_TWO):
        assert ridges == tuple(sorted(ridges, reverse=True))


def test_columns_without_rank_give_finite_scores():
    """Two hundred columns of a wide kernel span fifteen dimensions or so; steps with an inverse must not run away."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 200)
    codes = np.argmax(X @ rng.standard_normal((2, 3)), axis=1)
    for stage in eliminate_softmax(columns_of(K, codes, np.ones(200), 1e-3 * K)):
        assert np.isfinite(stage.objective)
        if stage.size >= 10:
            assert np.mean(np.argmax(stage.values[0], axis=1) != codes) < 0.2


def test_the_penalty_of_a_kernel_is_a_multiple_of_it():
    A = np.random.default_rng(0).normal(size=(6, 2))
    order = np.array([[0, 3, 5], [1, 2, 4]])
    found = deciding.penalties(A @ A.T, order, 0.5)  # of rank two: positive up to rounding
    for f in range(2):
        np.testing.assert_allclose(found[f], 0.5 * (A @ A.T)[np.ix_(order[f], order[f])], atol=1e-12)
