import numpy as np
import pytest
from sklearn.base import clone

from fewkern import FeatureVectorClassifier, FeatureVectorRegressor, FeatureVectorSelector, load, save
from fewkern.datasets import make_banana
from fewkern.vectors.leave_one_out import solve


@pytest.fixture(scope="module")
def table():
    X, y = make_banana(600, random_state=2)
    return X, np.where(y > 0, "right", "left"), np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def basis(table):
    return FeatureVectorSelector(max_vectors=12).fit(table[0][:200]).basis_


def in_batches(model, X, y, cuts, **first):
    for k, (a, b) in enumerate(zip((0, *cuts), (*cuts, len(X)))):
        model.partial_fit(X[a:b], y[a:b], **(first if k == 0 else {}))
    return model


@pytest.mark.parametrize("which", [1, 2])
def test_batches_give_the_model_of_one_fit_on_the_same_basis(table, basis, which):
    X, y = table[0], table[which]
    new = FeatureVectorClassifier if which == 1 else FeatureVectorRegressor
    one = new(ridge=1e-3).partial_fit(X, y, basis=basis)
    many = in_batches(new(ridge=1e-3), X, y, (50, 51, 400), basis=basis)
    values = (lambda m: m.decision_function(X)) if which == 1 else (lambda m: m.predict(X))
    np.testing.assert_allclose(values(many), values(one), atol=1e-10)
    targets = (2.0 * (y == "right") - 1 if which == 1 else y)[:, None]
    expected = solve(basis.features(X), targets, 1e-3)
    np.testing.assert_allclose(values(one), (basis.features(X) @ expected.W + expected.offset)[:, 0], atol=1e-10)


def test_the_first_batch_chooses_what_stays(table):
    X, y, _ = table
    model = FeatureVectorClassifier().partial_fit(X[:300], y[:300])
    alone = FeatureVectorClassifier().fit(X[:300], y[:300])
    np.testing.assert_array_equal(model.vectors_, alone.vectors_)
    vectors, before = model.vectors_, model.decision_function(X)
    model.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(model.vectors_, vectors)
    assert np.abs(model.decision_function(X) - before).max() > 1e-3


def test_held_out_errors_are_those_of_leaving_rows_out(table, basis):
    X, _, t = table
    model = FeatureVectorRegressor(ridge=0.01).partial_fit(X, t, basis=basis)
    expected = solve(basis.features(X), t[:, None], 0.01)
    assert model.held_out_error_ == pytest.approx(np.mean((expected.held_out[:, 0] - t) ** 2))
    halves = in_batches(FeatureVectorRegressor(ridge=0.01), X, t, (300,), basis=basis)
    assert halves.held_out_error_ == pytest.approx(model.held_out_error_, rel=0.2)


def test_weights_are_repetitions(table, basis, rng):
    X, y, _ = table
    w = rng.integers(0, 3, len(X))
    again = np.repeat(np.arange(len(X)), w)
    one = FeatureVectorClassifier(ridge=0.1).partial_fit(X, y, sample_weight=w, basis=basis)
    two = FeatureVectorClassifier(ridge=0.1).partial_fit(X[again], y[again], basis=basis)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("which", [1, 2])
def test_merged_models_know_what_both_know(table, basis, which, tmp_path):
    X, y = table[0], table[which]
    new = FeatureVectorClassifier(ridge=0.1) if which == 1 else FeatureVectorRegressor(ridge=0.1)
    whole = clone(new).partial_fit(X, y, basis=basis)
    left, right = (clone(new).partial_fit(X[rows], y[rows], basis=basis) for rows in (slice(0, 200), slice(200, 600)))
    save(right, tmp_path / "right.npz")
    both = left.merge(load(tmp_path / "right.npz"))
    np.testing.assert_allclose(both.expansion_.coef, whole.expansion_.coef, atol=1e-8)
    np.testing.assert_array_equal(both.predict(X), whole.predict(X)) if which == 1 else None
    assert left._learned.statistics.count == 200
    both.partial_fit(X[:10], y[:10])
    assert both._learned.statistics.count == 610


def test_several_classes_that_come_late(table, basis):
    X, y, _ = table
    y = np.where(X[:, 0] > 1.5, "far", y)
    order = np.argsort(y, kind="stable")
    model = FeatureVectorClassifier(ridge=0.1)
    in_batches(model, X[order], y[order], (5, 300), classes=["far", "left", "right"], basis=basis)
    whole = FeatureVectorClassifier(ridge=0.1).partial_fit(X, y, basis=basis)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-10)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y).partial_fit(X[:2], ["left", "new"]), "'new' is not one of the classes"),
        (lambda m, X, y: m.partial_fit(X[:5], np.full(5, "a")), "only one class"),
        (lambda m, X, y: m.partial_fit(X, y).partial_fit(X[:, :1], y), "is expecting 2 features"),
        (lambda m, X, y: m.set_params(class_weight="balanced").partial_fit(X, y), "needs all samples at once"),
        (lambda m, X, y: m.fit(X, y).merge(clone(m).fit(X[:100], y[:100])), "different vectors or ridges"),
        (
            lambda m, X, y: m.partial_fit(X, y).merge(clone(m).partial_fit(X[:100], y[:100])),
            "different vectors or ridges",
        ),
        (
            lambda m, X, y: m.partial_fit(X, y).partial_fit(
                X, y, basis=FeatureVectorSelector(max_vectors=2).fit(X).basis_
            ),
            "the vectors stay those of the first batch",
        ),
    ],
)
def test_bad_batches(table, steps, message):
    X, y, _ = table
    with pytest.raises(ValueError, match=message):
        steps(FeatureVectorClassifier(max_vectors=5, refine=False), X, y)


def test_every_batch_has_as_many_outputs(table, basis):
    X, _, t = table
    model = FeatureVectorRegressor(ridge=0.1).partial_fit(X, t, basis=basis)
    with pytest.raises(ValueError, match=r"y has 2 output\(s\), but the first batch had 1"):
        model.partial_fit(X, X)


def test_only_models_of_one_kind_are_merged(table, basis):
    X, y, t = table
    one = FeatureVectorClassifier().partial_fit(X, y, basis=basis)
    with pytest.raises(TypeError, match="only another FeatureVectorClassifier"):
        one.merge(FeatureVectorRegressor().partial_fit(X, t, basis=basis))


@pytest.mark.parametrize("which", [1, 2])
def test_batches_after_a_fit_go_on_from_it(table, which, tmp_path):
    X, y = table[0], table[which]
    new = FeatureVectorClassifier() if which == 1 else FeatureVectorRegressor()
    model = clone(new).fit(X[:400], y[:400])
    save(model, tmp_path / "model.npz")
    model.partial_fit(X[400:], y[400:])
    whole = new.set_params(ridge=model.ridge_).partial_fit(X, y, basis=model.basis_)
    np.testing.assert_allclose(model.expansion_.coef, whole.expansion_.coef, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="came from a file, which holds no sums"):
        load(tmp_path / "model.npz").partial_fit(X[400:], y[400:])
