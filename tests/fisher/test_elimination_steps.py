"""Few columns: paths in folds, logistic regressions in folds, who leaves, who enters, and which size is taken."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fewkern.fisher import elimination, few, sizes
from fewkern.fisher.elimination import Candidacy, LogisticColumns, eliminate, exchange, log_losses
from fewkern.fisher.forward_folds import QUICK, THOROUGH, Folded, FoldedPath, _settled, forward_folds
from fewkern.kernels import Gaussian
from tests.fisher.helpers import classes, labelled

RIDGE = 1e-3


def regression(n=80, k=5, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k))
    signs = np.where(Z[:, 0] - 0.5 * Z[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    return Z, signs, rng.uniform(0.5, 2.0, n)


def penalty_of(k, seed=0):
    B = np.random.default_rng(seed).normal(size=(k, k))
    return B @ B.T


def columns_of(Z, signs, weights, R=None):
    """One fold; no penalty unless it is given."""
    R = np.zeros((Z.shape[1], Z.shape[1])) if R is None else R
    return LogisticColumns.of(Z[None], signs, weights[None], R[None])


def written_out(A, signs, weights, R, coef):
    """What is minimized: the logistic loss plus a little of the mean square, weights adding up to n, and a penalty."""
    w = weights * len(weights) / weights.sum()
    f = A @ coef
    return w @ (np.log1p(np.exp(-signs * f)) + RIDGE / 2 * f**2) + coef[1:] @ R @ coef[1:] / 2


def minimum(Z, signs, weights, R=None):
    A = np.column_stack([np.ones(len(Z)), Z])
    R = np.zeros((Z.shape[1], Z.shape[1])) if R is None else R
    found = minimize(lambda c: written_out(A, signs, weights, R, c), np.zeros(A.shape[1]), method="BFGS", tol=1e-10)
    return found.x, found.fun


def test_a_stage_is_the_minimum_written_out():
    Z, signs, w = regression()
    R = penalty_of(5)
    stage = next(eliminate(columns_of(Z, signs, w, R)))
    coef, value = minimum(Z, signs, w, R)
    np.testing.assert_allclose(stage.coef[0], coef, atol=1e-4)
    A = np.column_stack([np.ones(80), Z])
    np.testing.assert_allclose(stage.values[0], A @ stage.coef[0], rtol=1e-9)
    assert stage.objective == pytest.approx(value, rel=1e-7)
    scaled = w * 80 / w.sum()
    p = 1 / (1 + np.exp(-stage.values[0]))
    H = A.T @ (A * (scaled * (p * (1 - p) + RIDGE))[:, None])
    H[1:, 1:] += R
    np.testing.assert_allclose(stage.inverse[0], np.linalg.inv(H), rtol=2e-2, atol=1e-4)


def test_rough_regressions_are_enough_to_compare_sizes():
    """Fewer steps, and losses that differ by less than a percent."""
    Z, signs, w = regression()
    columns = columns_of(Z, signs, w, penalty_of(5))
    rough = replace(columns, settled=elimination.ROUGH)
    for one, other in zip(eliminate(columns), eliminate(rough), strict=True):
        np.testing.assert_array_equal(one.kept, other.kept)
        exact, found = (log_losses(stage.values, signs).sum() for stage in (one, other))
        assert found == pytest.approx(exact, rel=1e-2)
        assert found != exact


def test_derivatives_are_those_of_the_terms():
    values, signs, w, h = np.array([[-3.0, 0.2, 5.0]]), np.array([1.0, -1.0, 1.0]), np.array([[1.0, 2.0, 0.5]]), 1e-4

    def terms(f):
        return w * (log_losses(f, signs) + RIDGE / 2 * f**2)

    slope, curve = elimination._derivatives(values, signs, w, RIDGE)
    np.testing.assert_allclose(slope, (terms(values + h) - terms(values - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(curve, (terms(values + h) - 2 * terms(values) + terms(values - h)) / h**2, rtol=1e-4)


def test_weights_add_up_to_the_number_of_samples():
    w = np.array([[1.0, 2.0, 0.0], [5.0, 5.0, 5.0]])
    np.testing.assert_allclose(elimination.scaled(w), [[1.0, 2.0, 0.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(("k", "leave"), [(2, 1), (5, 1), (15, 1), (16, 2), (24, 3)])
def test_one_in_eight_leaves_at_once(k, leave):
    Z, signs, w = regression(k=k)
    stages = eliminate(LogisticColumns.of(Z[None], signs, w[None], np.zeros((1, k, k))))
    assert [next(stages).size, next(stages).size] == [k, k - leave]


@pytest.mark.parametrize(("k", "leave"), [(2, 1), (5, 1), (16, 2), (24, 3)])
def test_those_of_least_worth_leave(k, leave):
    rng = np.random.default_rng(k)
    coef = rng.normal(size=(2, k + 1))
    root = rng.normal(size=(2, k + 1, k + 1))
    inverse = np.eye(k + 1) * 0.1 + root @ np.swapaxes(root, 1, 2) / k
    stay, left = elimination._part(coef, inverse, leave)
    assert stay.shape == (2, k + 1 - leave)
    for f in range(2):
        worth = coef[f] ** 2 / np.diag(inverse[f])
        gone = sorted(set(range(k + 1)) - set(stay[f].tolist()))
        assert sorted(left[f].tolist()) == gone
        assert 0 not in gone
        assert sorted(np.argsort(worth[1:])[:leave] + 1) == gone
        assert stay[f].tolist() == sorted(stay[f].tolist())


@pytest.mark.parametrize("stay", [[[0, 1, 3, 4]], [[0, 2, 4]], [[0, 3]]])
def test_the_others_take_over_from_those_that_leave(stay):
    """To second order: exact for a quadratic with that second derivative."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 5))
    H = A.T @ A
    coef = rng.normal(size=5)
    b = H @ coef
    exact = np.linalg.solve(H[np.ix_(stay[0], stay[0])], b[stay[0]])
    gone = np.array([sorted(set(range(5)) - set(stay[0]))])
    found = elimination._without(coef[None], np.linalg.inv(H)[None], np.array(stay), gone)[0]
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_columns_that_nearly_depend_on_each_other_may_leave_together():
    """Their coefficients are large and cancel each other: those that stay must take over, else the values run away."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 200))
    signs = np.where(np.sin(2 * x) + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)
    centers = np.linspace(-3, 3, 48)
    K = np.exp(-((x[:, None] - centers) ** 2) / 2)
    R = 1e-3 * np.exp(-((centers[:, None] - centers) ** 2) / 2)
    for stage in eliminate(columns_of(K, signs, np.ones(200), R)):
        wrong = np.mean(stage.values[0] * signs <= 0)
        if stage.size >= 8:
            assert wrong < 0.25


def test_stages_go_down_to_one_column_and_say_which_are_left():
    Z, signs, w = regression(k=6)
    none = np.zeros((2, 6, 6))
    stages = list(eliminate(LogisticColumns.of(np.stack([Z, Z[:, ::-1]]), signs, np.stack([w, w]), none)))
    assert [stage.size for stage in stages] == [6, 5, 4, 3, 2, 1]
    for stage in stages:
        np.testing.assert_array_equal(np.sort(5 - stage.kept[1]), stage.kept[0])
        coef, _ = minimum(Z[:, stage.kept[0]], signs, w)
        np.testing.assert_allclose(stage.coef[0], coef, atol=2e-3)
    assert stages[-1].kept[0, 0] == 0


def test_the_column_that_brings_most_enters():
    """Rao's statistic is the gain of a column in the quadratic model at the present stage, whose minimum is taken."""
    Z, signs, w = regression(k=7, seed=3)
    R = penalty_of(7)
    candidacy = Candidacy.of(Z, R, 1.0, signs, w)
    stage = candidacy.regress(np.array([0, 1]))
    for _ in range(3):  # to the last digit, so that only the new column has a slope
        stage = candidacy.regress(np.array([0, 1]), stage.coef[0])
    kept, coef, inverse = candidacy.enlarged(stage)
    entering = int(kept[0, -1])
    slope, curve = stage.columns.derivatives(stage.values)
    A = np.column_stack([np.ones(80), Z[:, :2]])
    gains = []
    for j in range(7):
        B, S = np.column_stack([A, Z[:, j]]), [0, 1, j]
        H = B.T @ (B * curve[0][:, None])
        H[1:, 1:] += R[np.ix_(S, S)]
        g = np.r_[np.zeros(3), slope[0] @ Z[:, j] + R[j, :2] @ stage.coef[0, 1:]]
        gains.append(g @ np.linalg.solve(H, g) if j > 1 else -1.0)
        if j == entering:
            np.testing.assert_allclose(inverse[0], np.linalg.inv(H), rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(coef[0], np.r_[stage.coef[0], 0] - np.linalg.solve(H, g), rtol=1e-6)
    assert entering == np.argmax(gains)


def to_the_last_digit(candidacy):
    """The regression on the first two columns, to the last digit."""
    stage = candidacy.regress(np.array([0, 1]))
    for _ in range(3):
        stage = candidacy.regress(np.array([0, 1]), stage.coef[0])
    return stage


def test_where_no_column_brings_anything_none_enters():
    Z, signs, w = regression(k=2, seed=3)
    candidacy = Candidacy.of(Z, penalty_of(2), 1.0, signs, w)
    stage = candidacy.regress(np.array([0, 1]))
    assert candidacy.enlarged(stage) is None
    twice = Candidacy.of(Z[:, [0, 1, 0]], np.zeros((3, 3)), 1.0, signs, w)  # one that depends on those inside
    assert twice.enlarged(to_the_last_digit(twice)) is None
    assert exchange(candidacy, candidacy.regress(np.array([0, 1]))).kept.tolist() == [[0, 1]]


@pytest.mark.parametrize(("k", "exchanged"), [(15, True), (16, False)])
def test_many_columns_stay_as_they_are(k, exchanged):
    rng = np.random.default_rng(5)
    K = rng.normal(size=(200, 20))
    signs = np.where(K[:, 19] + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)
    candidacy = Candidacy.of(K, np.eye(20), 0.1, signs, np.ones(200))
    found = exchange(candidacy, candidacy.regress(np.arange(k)))
    assert (19 in found.kept[0].tolist()) == exchanged
    assert found.size == k


def test_an_exchange_ends_where_none_gains_a_ten_thousandth():
    rng = np.random.default_rng(5)
    K = rng.normal(size=(120, 10))
    signs = np.where(K[:, 7] + K[:, 4] + 0.5 * rng.normal(size=120) > 0, 1.0, -1.0)
    w = np.ones(120)
    candidacy = Candidacy.of(K, np.eye(10), 0.1, signs, w)
    found = exchange(candidacy, candidacy.regress(np.array([0, 1])))
    assert sorted(found.kept[0].tolist()) == [4, 7]
    _, value = minimum(K[:, [4, 7]], signs, w, 0.1 * np.eye(2))
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert sorted(exchange(candidacy, candidacy.regress(found.kept[0])).kept[0].tolist()) == [4, 7]


# Paths in folds


def folded(n=60, n_folds=3):
    X, codes, w = classes(n, 2)
    samples = labelled(X, codes, w)
    return samples, Folded.of(samples, samples.folds(n_folds))


def test_a_path_is_settled_when_the_last_sizes_bring_less_than_two_percent():
    assert not _settled([1.0], THOROUGH)
    assert not _settled([1.0, *[0.99] * 4], THOROUGH)
    assert _settled([1.0, *[0.999] * 5], THOROUGH)
    assert not _settled([1.0, *[0.999] * 4, 0.97], THOROUGH)
    # what was better before counts
    assert _settled([0.5, *[1.0] * 5], THOROUGH)
    # of many sizes half must bring nothing
    falling = [0.9**k for k in range(20)]
    assert not _settled([*falling, *[falling[-1]] * 17], THOROUGH)
    assert _settled([*falling, *[falling[-1]] * 20], THOROUGH)
    assert _settled([1.0, *[0.999] * 2], QUICK)
    assert not _settled([1.0, 0.999], QUICK)


def test_the_first_size_that_is_enough():
    path = FoldedPath(None, (0.5, 0.3, 0.35, 0.2))
    assert path.least == 0.2
    assert [path.enough(e) for e in (0.5, 0.4, 0.3, 0.25, 0.2, 0.1)] == [1, 2, 2, 4, 4, 0]
    assert FoldedPath(None, ()).least == math.inf


def test_held_out_losses_are_weighted_shares():
    samples, parts = folded()
    losses = np.random.default_rng(0).random((3, 60))
    test = np.asarray(parts.test)
    np.testing.assert_allclose(parts.held_out(losses), (losses * test).sum(axis=0) / test.sum())
    assert parts.held_out(np.ones((3, 60))).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.asarray(parts.train).sum(axis=0), 2 * samples.weights)


def test_columns_that_a_fold_may_not_take_are_not_taken():
    samples, parts = folded()
    K = Gaussian(width=1.5)(samples.X, samples.X)
    usable = np.asarray(parts.train) > 0
    path = forward_folds(K, parts, 6, usable)
    for f in range(3):
        assert usable[f, path.order[f]].all()
        assert len(set(path.order[f].tolist())) == path.order.shape[1]
    assert path.order.shape[1] <= 6
    none = forward_folds(K, parts, 6, np.zeros_like(usable))
    assert (none.order.shape, none.errors) == ((3, 0), ())
    # units of the columns do not matter
    for factor in (1e200, 1e-200):
        np.testing.assert_array_equal(forward_folds(factor * K, parts, 6, usable).order, path.order)


# The size


def sizes_of(wrong=None, **losses):
    none = {int(k[1:]): np.zeros(100) for k in losses}
    return sizes.Sizes({int(k[1:]): np.asarray(v) for k, v in losses.items()}, none | (wrong or {}))


@pytest.mark.parametrize(("excess", "chosen"), [(0.095, 2), (0.105, 9)])
def test_a_smaller_size_may_lose_a_share_of_the_error(excess, chosen):
    """With ``prefer="balanced"`` half of a fifth, even where the difference is certain."""
    loss = np.full(100, 0.01)
    found = sizes_of(s2=loss * (1 + excess), s9=loss)
    assert sizes.means_of(found.losses) == {2: pytest.approx(1 + excess), 9: pytest.approx(1.0)}
    assert found.choose("balanced", sizes.TWO) == chosen
    assert found.choose("accurate", sizes.TWO) == 9
    assert found.choose("sparse", sizes.TWO) == 2


@pytest.mark.parametrize(("allowed", "share"), [(sizes.TWO, 0.1), (sizes.SEVERAL, 0.025), (sizes.MOVED_SEVERAL, 0.25)])
def test_what_is_slight_depends_on_who_is_judged(allowed, share):
    loss = np.full(100, 0.01)
    for part, chosen in ((0.9, 2), (1.1, 9)):
        assert sizes_of(s2=loss * (1 + part * share), s9=loss).choose("balanced", allowed) == chosen


@pytest.mark.parametrize(
    ("allowed", "share"), [(sizes.TWO, 0.0075), (sizes.SEVERAL, 0.002), (sizes.MOVED_SEVERAL, 0.004)]
)
def test_a_smaller_size_may_not_lose_decisions(allowed, share):
    """With ``prefer="balanced"`` three in 400, two or (moved) four in 1,000 with several classes, but one sample."""
    for n, most in ((allowed.many, share), (20, 1 / 20)):
        loss = np.full(n, 1 / n)
        for part, chosen in ((0.9, 3), (1.1, 9)):
            wrong = {3: np.full(n, (0.1 + part * most) / n), 9: np.full(n, 0.1 / n)}
            assert sizes.Sizes({3: loss, 9: loss}, wrong).choose("balanced", allowed) == chosen


def test_the_least_loss_is_taken_if_nothing_else_is_as_good():
    loss = np.full(100, 0.01)
    assert (
        sizes_of({3: np.full(100, 0.001), 9: np.zeros(100)}, s3=loss, s9=1.5 * loss).choose("balanced", sizes.TWO) == 3
    )


def test_a_smaller_size_may_lose_a_part_of_a_standard_error():
    loss = np.full(100, 0.01)
    noise = np.tile([0.05, -0.05], 50)  # a standard error of 0.5
    assert sizes.spread_of(noise) == pytest.approx(0.5)
    for excess, chosen in ((0.24, 3), (0.26, 9)):
        found = sizes_of(s3=loss * (1 + excess) + noise, s9=loss)
        assert found.choose("balanced", sizes.TWO) == chosen
    # of equal ones the smaller
    assert sizes_of(s3=loss, s9=loss).choose("accurate", sizes.TWO) == 3


def test_the_width_that_needs_fewest_columns_for_nearly_the_least_error(monkeypatch):
    samples, parts = folded()
    kernels = tuple(Gaussian(width=float(k + 1)) for k in range(9))
    errors = {2: (0.5, 0.42), 3: (0.5, 0.4), 4: (0.405, 0.39), 5: (0.6, 0.3, 0.2), 6: (0.203, 0.202), 7: (0.3, 0.21)}
    asked = []

    def path(K, folded, limit, usable):
        width = next(k for k, kernel in enumerate(kernels) if np.allclose(K, kernel(samples.X, samples.X)))
        asked.append(width)
        return FoldedPath(None, errors[width])

    monkeypatch.setattr(few, "forward_folds", path)
    steps = []
    found = few._best_width(parts, kernels, np.random.default_rng(0), steps.append)
    # a third and two thirds first, then neighbors of the best: 5 has the least error, 6 needs one column for nearly it
    assert asked == [3, 6, 5, 7]
    assert found == 6
    assert steps == [1, 2, 3, 4]
    assert few._best_width(parts, kernels[:1], np.random.default_rng(0), None) == 0
    errors[6] = (0.30, 0.207)
    asked.clear()
    assert few._best_width(parts, kernels, np.random.default_rng(0), None) == 5
    # from 6 to 5 the error falls by more than 2 %: the next neighbor may be better still
    assert asked == [3, 6, 5, 7, 4]


@pytest.mark.parametrize(("columns", "found"), [(6, 6), (8, 6), (9, 5)])
def test_of_kernels_that_need_about_as_few_columns_the_widest_is_taken(columns, found, monkeypatch):
    samples, parts = folded()
    kernels = tuple(Gaussian(width=float(k + 1)) for k in range(9))
    errors = dict.fromkeys(range(9), (0.5,)) | {5: (*(0.4,) * 5, 0.2), 6: (*(0.4,) * (columns - 1), 0.2)}

    def path(K, folded, limit, usable):
        width = next(k for k, kernel in enumerate(kernels) if np.allclose(K, kernel(samples.X, samples.X)))
        return FoldedPath(None, errors[width])

    monkeypatch.setattr(few, "forward_folds", path)
    assert few._best_width(parts, kernels, np.random.default_rng(0), None) == found


def test_a_sample_that_decides_its_own_value_does_not_run_away_without_itself():
    """With a leverage of nearly one, the second order says anything."""
    slope, curve, reach = np.array([0.5, -0.5, 0.1]), np.array([0.2, 0.2, 0.2]), np.array([4.99, 4.999, 1.0])
    found = elimination.left_out_change(slope, curve, reach)
    np.testing.assert_allclose(found, [4.0, -4.0, 0.125])
