"""Few vectors of two classes: forward selection in all folds, elimination, exchange, and the choice of a size."""

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from sklearn.datasets import make_moons

from fewkern import ForwardKernelFisher, SparseKernelFisher
from fewkern.core.trace import Stop
from fewkern.datasets import make_banana
from fewkern.fisher import FisherVariant, few
from fewkern.fisher.choice import Candidates, Comparing
from fewkern.fisher.elimination import Candidacy, LogisticColumns, eliminate, exchange, log_losses
from fewkern.fisher.families import ForwardFamily, LqFamily
from fewkern.fisher.forward import forward_columns
from fewkern.fisher.forward_folds import QUICK, THOROUGH, Folded, forward_folds
from fewkern.fisher.lq import LqSettings
from fewkern.fisher.problem import Begun
from fewkern.fisher.targets import fisher_targets
from fewkern.kernels import Gaussian
from tests.fisher.helpers import classes, labelled

X, Y = make_banana(150, random_state=0)


def folded_samples(n=60, n_classes=2):
    samples = labelled(*classes(n, n_classes))
    folds = samples.folds(3)
    return samples, folds, Folded.of(samples, folds)


def regression_problem(n=80, k=4):
    rng = np.random.default_rng(0)
    K = rng.standard_normal((n, k))
    signs = np.where(K[:, 0] - K[:, 1] + rng.standard_normal(n) > 0, 1.0, -1.0)
    return K, signs, rng.uniform(0.5, 2.0, n)


def stages_of(K, signs, weights):
    """The elimination of one fold, without a penalty."""
    none = np.zeros((1, K.shape[1], K.shape[1]), dtype=K.dtype)
    return eliminate(LogisticColumns.of(K[None, :, :], signs, weights[None, :], none))


def derivative(K, columns, signs, weights, coef, step=1e-5):
    """Of the objective that the module states, by differences."""
    w = weights * len(weights) / weights.sum()
    A = np.column_stack([np.ones(len(K)), K[:, columns]])

    def objective(b):
        f = A @ b
        return np.sum(w * (np.logaddexp(0, -signs * f) + 1e-3 / 2 * f**2))

    return np.array([(objective(coef + e) - objective(coef - e)) / (2 * step) for e in step * np.eye(len(coef))])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_folds_at_once_are_the_folds_one_by_one(n_classes):
    samples, folds, folded = folded_samples(60, n_classes)
    candidates = Candidates.of(samples, Gaussian(width=1.0), None, 0)
    path = forward_folds(candidates.K, folded, 5, candidates.usable(folded))
    size = path.order.shape[1]
    assert size >= 4
    errors = np.zeros(size)
    for f, (train, test) in enumerate(folds):
        train, test = np.array(train), np.array(test)
        codes, w = samples.codes, samples.weights
        targets = fisher_targets(codes[train], n_classes, w[train])
        scaled = targets.rows(codes) / targets.scale
        columns = np.array(candidates.among(train))
        alone = forward_columns(candidates.K[np.ix_(train, columns)], scaled[train], size, weights=w[train])
        np.testing.assert_array_equal(path.order[f], columns[alone.order])
        for k in range(size):
            left = scaled[test] - alone.machine(k + 1).values(candidates.K[np.ix_(test, columns)])
            errors[k] += np.sum(w[test] * np.sum(left**2, axis=1)) / w.sum()
    np.testing.assert_allclose(path.errors, errors, rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_fold_more_is_forward_selection_on_all_samples(n_classes):
    """The folds themselves, and what is held out, stay as they are. The path is longer than the first room for it."""
    samples, _, folded = folded_samples(60, n_classes)
    candidates = Candidates.of(samples, Gaussian(width=0.3), None, 0)
    every = folded.with_all()
    path, plain = (forward_folds(candidates.K, one, 20, candidates.usable(one), None) for one in (every, folded))
    targets = fisher_targets(samples.codes, n_classes, samples.weights).rows(samples.codes)
    alone = forward_columns(candidates.K, targets, 20, weights=samples.weights)
    np.testing.assert_array_equal(path.order[-1], alone.order)
    np.testing.assert_array_equal(path.order[:-1], plain.order)
    np.testing.assert_allclose(path.errors, plain.errors)


def test_a_path_ends_where_more_columns_bring_little():
    _, _, folded = folded_samples()
    n = folded.samples.n
    helpful = (folded.samples.codes + 0.1 * np.random.default_rng(0).standard_normal(n))[:, None]
    K = np.hstack([helpful, np.random.default_rng(1).standard_normal((n, 20))])
    for patience, length in ((QUICK, 3), (THOROUGH, 6), (None, 20)):
        path = forward_folds(K, folded, 20, patience=patience)
        assert path.order.shape == (3, length)
    np.testing.assert_array_equal(path.order[:, 0], 0)
    assert path.enough(path.errors[0]) == 1
    assert forward_folds(np.ones((n, 2)), folded, 5).enough(np.inf) == 0


def test_samples_outside_all_folds_take_no_part():
    samples, folds, folded = folded_samples()
    some = Folded.of(samples, [(train[:20], test[:5]) for train, test in folds])
    used = sorted({i for train, test in folds for i in [*train[:20], *test[:5]]})
    assert len(used) < 60
    np.testing.assert_array_equal(some.rows, used)
    np.testing.assert_array_equal(some.samples.codes, samples.codes[used])
    part = folded.some(30, np.random.default_rng(0))
    assert part.train.shape == part.test.shape == (3, part.samples.n)
    np.testing.assert_array_equal(samples.rows[part.rows], part.samples.rows)


def test_every_stage_is_a_minimum_and_the_useless_leave_first():
    K, signs, w = regression_problem()
    stages = list(stages_of(K, signs, w))
    assert [stage.size for stage in stages] == [4, 3, 2, 1]
    np.testing.assert_array_equal(stages[2].kept[0], [0, 1])
    for stage in stages:
        assert np.abs(derivative(K, stage.kept[0], signs, w, stage.coef[0])).max() < 0.05
        A = np.column_stack([np.ones(len(K)), K[:, stage.kept[0]]])
        np.testing.assert_allclose(stage.values[0], A @ stage.coef[0], atol=1e-10)


def test_many_columns_leave_several_at_once():
    K, signs, w = regression_problem(200, 30)
    sizes = [stage.size for stage in stages_of(K, signs, w)]
    assert sizes[:3] == [30, 27, 24]
    assert sizes[-3:] == [3, 2, 1]


def test_classes_that_can_be_separated_stay_finite():
    K = np.linspace(-1, 1, 40)[:, None]
    (stage,) = stages_of(K, np.sign(K[:, 0]), np.ones(40))
    assert np.all(np.isfinite(stage.coef))
    assert log_losses(stage.values[0], np.sign(K[:, 0])).max() < 0.7


def test_leave_one_out_values_are_those_of_refits():
    K, signs, w = regression_problem()
    stage = next(stages_of(K, signs, w))
    values = stage.leave_one_out()[0]
    for i in (0, 7, 30):
        without = w.copy()
        without[i] = 0.0
        refit = next(stages_of(K, signs, without))
        assert values[i] == pytest.approx(refit.values[0, i], abs=0.05)
        assert abs(values[i] - refit.values[0, i]) < abs(stage.values[0, i] - refit.values[0, i])


def test_exchange_finds_the_columns_that_matter():
    K, signs, w = regression_problem(80, 8)
    every, some = (Candidacy.of(A, np.zeros((A.shape[1], A.shape[1])), 1.0, signs, w) for A in (K, K[:, 4:]))
    found = exchange(every, every.regress(np.array([5, 6])))
    assert sorted(found.kept[0]) == [0, 1]
    assert found.objective < exchange(some, some.regress(np.array([1, 2]))).objective
    assert exchange(every, every.regress(np.array([0, 1]))).objective == pytest.approx(found.objective, rel=1e-4)


def test_float32_columns_give_the_same_stages():
    K, signs, w = regression_problem()
    for one, other in zip(
        stages_of(K, signs, w),
        stages_of(*(value.astype(np.float32) for value in (K, signs, w))),
    ):
        np.testing.assert_array_equal(one.kept, other.kept)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-3, atol=1e-4)


def test_log_losses_do_not_overflow():
    np.testing.assert_allclose(log_losses(np.array([0.0, 1e4, -1e4]), np.ones(3)), [np.log(2), 0.0, 1e4])


@pytest.mark.parametrize("estimator", [ForwardKernelFisher, SparseKernelFisher])
def test_two_moons_need_few_vectors(estimator):
    sizes, scores = [], []
    for seed in range(5):
        moons, labels = make_moons(300, noise=0.3, random_state=seed)
        model = estimator(kernel=Gaussian(unit="common")).fit(moons, labels)  # both features are lengths
        assert model.trace_.setting["n_vectors"] == model.n_vectors_
        np.testing.assert_array_equal(model.vectors_, moons[model.indices_])
        sizes.append(model.n_vectors_)
        scores.append(model.score(*make_moons(5000, noise=0.3, random_state=1000)))
    assert 3 <= np.mean(sizes) <= 7
    assert np.mean(scores) > 0.9


def test_budget_and_ratios_of_the_vectors_that_were_kept():
    model = ForwardKernelFisher(max_vectors=3).fit(X, Y)
    assert model.n_vectors_ <= 3
    assert max(model.trace_.axes["n_vectors"]) <= 3
    assert len(model.ratios_) == model.n_vectors_ + 1
    assert SparseKernelFisher(max_vectors=3).fit(X, Y).n_vectors_ <= 3
    assert ForwardKernelFisher().fit(X, Y).stop_ == Stop.SIZE


def test_penalties_that_keep_nothing_leave_the_columns_of_forward_selection():
    samples, _ = folded_samples()[:2]
    targets = fisher_targets(samples.codes, 2, samples.weights).rows(samples.codes)
    K = Candidates.of(samples, Gaussian(width=1.0), None, 0).K
    order = forward_columns(K, targets, 9, weights=samples.weights).order
    begun = LqFamily(LqSettings()).reach(K, targets, samples.weights, (1e6,), Begun(order[:3], order))
    np.testing.assert_array_equal(begun.support, order[:3])
    penalties = (1e6, 0.1, 1e-3, 1e-4)
    enough = LqFamily(LqSettings()).reach(K, targets, samples.weights, penalties, Begun(order[:3], order))
    assert enough.support.shape[0] >= 3
    assert set(enough.support.tolist()) <= set(order.tolist())


def test_a_given_setting_keeps_the_least_squares_machine():
    model = ForwardKernelFisher(n_vectors=5, kernel=Gaussian(width=0.6)).fit(X, Y)
    assert model.n_vectors_ == 5
    other = ForwardKernelFisher(
        n_vectors=5, kernel=Gaussian(width=0.6), variant=FisherVariant(width_by="leave_one_out")
    ).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_without_a_column_that_varies_there_is_nothing_to_choose():
    samples = labelled(np.zeros((20, 2)), np.arange(20) % 2, np.ones(20))
    plan = Comparing(ForwardFamily())
    assert few.choose_few(samples, Gaussian(width=1.0), plan, samples.folds(2)) is None


def test_other_array_libraries_choose_the_same():
    model = ForwardKernelFisher().fit(X, Y)
    other = ForwardKernelFisher().fit(array_api_strict.asarray(X), array_api_strict.asarray(Y))
    np.testing.assert_array_equal(model.indices_, np.asarray(other.indices_))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_units_of_the_kernel_do_not_matter(n_classes):
    samples, codes, _ = classes(90, n_classes)
    narrow = Gaussian(width=1.5)
    one, other = (
        ForwardKernelFisher(kernel=kernel).fit(samples, codes)
        for kernel in (lambda A, B: narrow(A, B), lambda A, B: 64.0 * narrow(A, B))
    )
    np.testing.assert_array_equal(one.indices_, other.indices_)
    np.testing.assert_allclose(one.predict_proba(samples), other.predict_proba(samples), atol=1e-6)


def test_several_classes_keep_few_vectors_within_the_budget():
    samples, codes, _ = classes(150, 3)
    model = SparseKernelFisher().fit(samples, codes)
    assert model.n_vectors_ <= 40
    assert model.score(samples, codes) > 0.7
    assert model.trace_.measure == "held-out logarithmic loss"
    assert SparseKernelFisher(max_vectors=3).fit(samples, codes).n_vectors_ <= 3
    least_squares = SparseKernelFisher(variant=FisherVariant(width_by="leave_one_out")).fit(samples, codes)
    assert least_squares.trace_.measure == "cross-validated error"


def test_several_classes_on_another_array_library():
    samples, codes, _ = classes(60, 3)
    here = SparseKernelFisher(kernel=Gaussian(width=1.5)).fit(samples, codes)
    strict = [array_api_strict.asarray(one) for one in (samples, codes)]
    there = SparseKernelFisher(kernel=Gaussian(width=1.5)).fit(*strict)
    found = np.asarray(there.predict_proba(strict[0]))
    np.testing.assert_allclose(found, here.predict_proba(samples), atol=1e-10)


def test_no_fold_takes_more_columns_than_half_of_its_samples():
    """As many as there are samples leave one direction, along which all columns are alike but for rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    samples = labelled(X, np.arange(30) % 3)
    folded = Folded.of(samples, samples.folds(5))
    assert folded.half == 12
    path = forward_folds(np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), folded, 300, None, None)
    assert len(path.errors) == 12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_ridge_of_least_held_out_loss_is_taken(n_classes, monkeypatch):
    samples, _, parts = folded_samples(90, n_classes)
    candidates = Candidates.of(samples, Gaussian(width=2.0), 60, 0)
    beginning = few.Beginning.of(parts, candidates, 1.0, np.random.default_rng(0))
    ridges = (1e3, 1e-2, 1e-9)
    monkeypatch.setattr(few, "RIDGES_TWO", ridges)
    monkeypatch.setattr(few, "RIDGES", ridges)
    deciding, stages = few._deciding(samples, beginning)
    first = next(stages)
    losses = []
    for ridge in ridges:
        alone = next(replace(deciding, ridge=ridge).sizes(beginning.folds, beginning.order))
        losses.append(float(beginning.folded.held_out(alone.losses).sum()))
    assert deciding.ridge == ridges[int(np.argmin(losses))]
    # begun at the coefficients of another ridge, it ends at the same place
    assert float(beginning.folded.held_out(first.losses).sum()) == pytest.approx(min(losses), rel=0.02)
    assert next(stages).size < first.size
