"""Vectors that are moved: which sizes are compared, who judges, and what the estimators make of it."""

import array_api_strict
import numpy as np
import pytest
import scipy.sparse

import fewkern
from fewkern import ForwardKernelFisher, SparseKernelFisher
from fewkern.fisher import FisherVariant, few, fitting
from fewkern.fisher import moving as module
from fewkern.fisher.choice import Candidates
from fewkern.fisher.deciding import SeveralClasses, TwoClasses
from fewkern.fisher.moving import Moving, Origin, Way, hold_out, sizes_to_compare
from fewkern.fisher.targets import fisher_targets
from fewkern.kernels import Gaussian, Laplacian
from fewkern.vectors import company
from tests.fisher.helpers import classes, labelled


def hidden(n=200, noise=4, seed=0):
    """Two classes inside and outside a circle in two of the features; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2 + noise))
    return X, (np.sum(X[:, :2] ** 2, axis=1) > 1.4).astype(int)


def moving_of(n_classes=2, n=60, width=1.5):
    samples = labelled(*classes(n, n_classes))
    kernel = Gaussian(width=width)
    candidates = Candidates.of(samples, kernel, None, 0)
    between = np.take(candidates.K, candidates.rows, axis=0)
    targets = fisher_targets(samples.codes, n_classes, samples.weights)
    rule = TwoClasses(between, 1e-3) if n_classes == 2 else SeveralClasses(targets.theta, between, 1e-3)
    return Moving(samples, candidates, 1.0, rule)


def test_parts_of_the_number_of_samples_are_compared_where_they_are_known():
    assert sizes_to_compare(8, 2, range(1, 20)) == [8, 4, 2]
    assert sizes_to_compare(1, 2, [1, 2, 3]) == [1]
    assert sizes_to_compare(100, 3, [300, 100, 77, 55, 48]) == [55]
    # none is left that is large enough: the largest
    assert sizes_to_compare(40, 3, [7, 3]) == [7]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_and_decisions_are_those_of_the_probabilities(n_classes):
    moving = moving_of(n_classes)
    every = np.arange(10)
    moved = moving.move(Origin(every, every[:4]), Way.DISTILLED)
    values = moved.values(moving.samples.X)
    losses, wrong = moved.deciding.judge(values, moving.samples.codes)
    if n_classes == 2:
        scores = np.column_stack([np.zeros(60), values[:, 0]])
    else:
        points = moved.deciding.points
        scores = np.linalg.lstsq((points - points.mean(axis=0)).T, values.T, rcond=None)[0].T
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(losses, -np.log(p[np.arange(60), moving.samples.codes]), atol=1e-8)
    np.testing.assert_array_equal(wrong, np.argmax(p, axis=1) != moving.samples.codes)


def test_a_distilled_machine_has_the_values_of_the_larger_one():
    """Better than the samples where its vectors began do."""
    moving = moving_of(2, 150)
    many, some = np.arange(40), np.arange(5)
    larger = moving._regress(moving.deciding, moving.candidates.K, many).values(moving.candidates.K)

    def distance(machine, K):
        return np.sum((larger - machine.values(K)) ** 2)

    moved = moving.move(Origin(many, some), Way.DISTILLED)
    kept = moving._regress(moving.deciding, moving.candidates.K, some)
    assert distance(moved.machine, moved.candidates.K) < 0.7 * distance(kept, moving.candidates.K)
    np.testing.assert_array_equal(moved.candidates.rows, moving.candidates.rows[some])


@pytest.mark.parametrize("way", [Way.DISTILLED, Way.REFINED])
def test_samples_held_out_have_no_part_in_it(way):
    """Their values are those of a machine that was moved without them, and they change nothing of it."""
    moving = moving_of()
    n = moving.samples.n
    rows = np.arange(n)
    folds = [(rows[rows % 3 != f], rows[rows % 3 == f]) for f in range(3)]
    begin = {3: [Origin(train[:12], train[:3]) for train, _ in folds]}
    found = hold_out(moving, folds, begin)
    np.testing.assert_array_equal(found.times, 1.0)
    for f, (train, test) in enumerate(folds):
        moved = moving.on(train).move(begin[3][f], way)
        np.testing.assert_allclose(found.values[3, way][test], moved.values(moving.samples.X[test]))
        losses, wrong = moved.deciding.judge(found.values[3, way][test], moving.samples.codes[test])
        np.testing.assert_allclose(found.losses[3, way][test], moving.samples.weights[test] * losses)
        np.testing.assert_allclose(found.wrong[3, way][test], moving.samples.weights[test] * wrong)
        part = moving.on(train)
        assert part.samples.n == part.candidates.K.shape[0] == len(train)


@pytest.mark.parametrize("estimator", [ForwardKernelFisher, SparseKernelFisher])
def test_held_out_samples_ask_for_moved_vectors_where_few_features_matter(estimator):
    X, y = hidden()
    X_test, y_test = hidden(2000, seed=1)
    kept, moved = estimator(refine=False).fit(X, y), estimator().fit(X, y)
    assert not kept.refined_
    assert moved.refined_
    np.testing.assert_array_equal(kept.vectors_, X[kept.indices_])
    assert np.abs(moved.vectors_ - X[moved.indices_]).max() > 0.01
    assert moved.n_vectors_ == len(moved.vectors_) == len(moved.indices_) <= kept.n_vectors_
    assert moved.score(X_test, y_test) > kept.score(X_test, y_test) + 0.02
    importances = moved.feature_importances_
    assert importances[:2].min() > importances[2:].max()


def test_few_samples_stay_where_they_are_unless_asked(monkeypatch):
    X, y = hidden()
    kept = ForwardKernelFisher(refine=False).fit(X, y).n_vectors_
    monkeypatch.setattr(few, "_FEW", kept + 2)
    assert not ForwardKernelFisher().fit(X, y).refined_
    assert ForwardKernelFisher(refine=True).fit(X, y).refined_
    monkeypatch.setattr(few, "_FEW", kept - 2)
    assert ForwardKernelFisher().fit(X, y).refined_
    monkeypatch.setattr(few, "_FEW", kept + 2)
    monkeypatch.setattr(few, "_MANY", len(y))
    monkeypatch.setattr(few, "_FEW_OF_MANY", kept - 2)
    assert ForwardKernelFisher().fit(X, y).refined_


def test_half_of_the_vectors_do_for_several_classes():
    """They are taught by a machine of many more."""
    X, codes, _ = classes(2000, 4)
    kept, moved = (ForwardKernelFisher(refine=refine).fit(X[:400], codes[:400]) for refine in (False, True))
    assert moved.n_vectors_ <= 0.6 * kept.n_vectors_
    assert moved.score(X[400:], codes[400:]) > kept.score(X[400:], codes[400:]) - 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_vectors_are_taught_on_samples_and_their_company(monkeypatch, n_classes):
    moving, many = moving_of(n_classes), np.arange(20)
    teacher = moving._regress(moving.deciding, moving.candidates.K, many)
    lesson = moving._lesson(many)
    assert lesson.X.shape[0] == module._LESSON_ROWS
    np.testing.assert_array_equal(lesson.X[:60], moving.samples.X)
    vectors = moving.samples.X[moving.candidates.rows[many]]
    expected = moving.candidates.kernel(lesson.X, vectors) @ teacher.coef + teacher.offset
    np.testing.assert_allclose(lesson.Y, expected)
    weights = company.border_weights(moving.deciding.scores(lesson.Y))
    weights[60:] *= company.CROSSED
    np.testing.assert_allclose(lesson.weights, weights * len(weights) / weights.sum())
    monkeypatch.setattr(module, "_LESSON_SAMPLES", 30)
    assert moving._lesson(many).X.shape[0] == module._LESSON_ROWS
    monkeypatch.setattr(module, "_LESSON_ROWS", 0)
    assert moving._lesson(many).X.shape[0] == 45


@pytest.mark.parametrize("way", [Way.DISTILLED, Way.REFINED])
def test_a_search_begins_with_a_kernel_no_wider_than_the_samples_lie_apart(monkeypatch, way):
    starts = []
    search = module.refine

    def watched(problem, start, **settings):
        starts.append(float(np.max(start.kernel.width)))
        return search(problem, start, **settings)

    monkeypatch.setattr(module, "refine", watched)
    for width in (1.5, 200.0):
        moving_of(width=width).move(Origin(np.arange(12), np.arange(3)), way)
    assert starts[0] == 1.5
    assert starts[1] < 10


def test_moved_vectors_are_kept_in_files_and_within_the_budget(tmp_path):
    X, codes, _ = classes(120, 3)
    model = SparseKernelFisher(refine=True, max_vectors=6).fit(X, codes)
    assert model.refined_
    assert model.n_vectors_ <= 6
    fewkern.save(model, tmp_path / "model.npz")
    again = fewkern.load(tmp_path / "model.npz")
    assert again.refined_
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))


def test_probabilities_are_fitted_to_what_folds_say_of_samples_held_out(monkeypatch):
    """Not to values of vectors that have seen the samples."""
    X, y = hidden(120)
    moves, fitted_to = [], []
    judge, fit_posterior = few.judge_moves, fitting.fit_posterior

    def judge_and_tell(*arguments):
        moves.append(judge(*arguments))
        return moves[-1]

    def fit_and_tell(rule, held_out, *others):
        fitted_to.append(held_out)
        return fit_posterior(rule, held_out, *others)

    monkeypatch.setattr(few, "judge_moves", judge_and_tell)
    monkeypatch.setattr(fitting, "fit_posterior", fit_and_tell)
    model = ForwardKernelFisher(refine=True).fit(X, y)
    of_folds = [values for (size, _), values in moves[0].held_out.values.items() if size == model.n_vectors_]
    assert any(np.array_equal(fitted_to[0], values) for values in of_folds)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_units_of_the_features_do_not_matter(n_classes):
    X, codes, _ = classes(90, n_classes, seed=6)
    exact, rounded = np.array([2.0**10, 1.0, 2.0**-7]), np.array([1e3, 1.0, 1e-2])
    one = SparseKernelFisher(refine=True).fit(X, codes)
    # the steps of a search multiply rounding errors
    for Z, tolerance in ((X * exact, 1e-12), (X * rounded + 5.0 * rounded, 5e-3)):
        other = SparseKernelFisher(refine=True).fit(Z, codes)
        assert one.n_vectors_ == other.n_vectors_
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(Z), atol=tolerance)


def test_another_array_library_moves_the_same():
    X, y = hidden(40, 1)
    settings = {"kernel": Gaussian(width=1.5), "refine": True, "cv": 2, "max_vectors": 3}
    here = ForwardKernelFisher(**settings).fit(X, y)
    strict = [array_api_strict.asarray(one) for one in (X, y)]
    there = ForwardKernelFisher(**settings).fit(*strict)
    assert there.refined_
    np.testing.assert_allclose(np.asarray(there.predict_proba(strict[0])), here.predict_proba(X), atol=1e-5)


def test_a_width_that_was_given_is_not_learned_unless_asked_for():
    X, y = hidden(100, 1)
    assert not ForwardKernelFisher(kernel=Gaussian(width=1.0), refine="auto").fit(X, y).refined_
    assert ForwardKernelFisher(kernel=Gaussian(width=1.0), refine=True).fit(X, y).refined_


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kernel": Laplacian()}, "kernel Laplacian has no derivatives; use Gaussian or Polynomial, or refine=False"),
        ({"n_vectors": 4}, "number of vectors is automatic are moved"),
        ({"variant": FisherVariant(width_by="leave_one_out")}, "number of vectors is automatic are moved"),
    ],
)
def test_what_cannot_be_moved_is_refused(settings, reason):
    X, y = hidden(60, 1)
    with pytest.raises(ValueError, match=f"ForwardKernelFisher: refine=True cannot be done: .*{reason}"):
        ForwardKernelFisher(refine=True, **settings).fit(X, y)
    assert not ForwardKernelFisher(refine="auto", **settings).fit(X, y).refined_


def test_vectors_of_sparse_samples_stay():
    X, y = hidden(60, 1)
    sparse = scipy.sparse.csr_array(X)
    with pytest.raises(ValueError, match="refine=True cannot be done: moved vectors would not be sparse"):
        SparseKernelFisher(refine=True).fit(sparse, y)
    assert not SparseKernelFisher(refine="auto").fit(sparse, y).refined_


def test_single_precision_is_kept():
    X, y = hidden()
    model = ForwardKernelFisher(refine=True).fit(X.astype(np.float32), y)
    assert model.vectors_.dtype == model.expansion_.coef.dtype == np.float32
    assert model.predict_proba(X[:3].astype(np.float32)).dtype == np.float32


def test_moving_is_shown(capsys):
    X, y = hidden(100, 1)
    ForwardKernelFisher(refine=True, verbose=True).fit(X, y)
    assert "ForwardKernelFisher: moving vectors, by folds: 5 of 5" in capsys.readouterr().err
