"""The vectors of a model as rows of the table."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import fewkern
from fewkern.reporting.evaluation import predict_held_out
from fewkern.reporting.kept import (
    cancellation,
    coefficients,
    examples,
    nearest_vectors,
    rows_of_vectors,
    vectors,
)
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_model, customers, iris_model, price_model


def listed(found):
    """The table of the vectors, by column."""
    head, rows = found.table
    return dict(zip(head, zip(*rows)))


def test_kept_rows_in_the_cells_of_the_table():
    model, frame, y = churn_model()
    subject = subject_of(model, frame, y)
    found = vectors(subject, "churn", ("plan", "age", "noise"), 0)
    table = listed(found)
    assert list(table) == [
        "row",
        "churn",
        "coefficient",
        "votes",
        "nearest rows",
        "mostly",
        "key",
        "plan",
        "age",
        "noise",
    ]
    assert found.total == model[-1].n_vectors_ == len(table["row"])
    rows = [int(name) for name in table["row"]]
    assert set(rows) == set(model[-1].indices_.tolist())
    assert table["churn"] == tuple(y[rows])
    for name in ("key", "plan"):
        assert table[name] == tuple(frame.loc[rows, name])
    assert [float(v) for v in table["age"]] == pytest.approx(frame.loc[rows, "age"].tolist())
    sizes = [float(v[1:]) for v in table["coefficient"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(int(v) for v in table["nearest rows"]) == len(frame)
    assert found.sentences[0].startswith(f"The model keeps {found.total} of 240 rows")
    assert "personal data" in found.sentences[1]


def test_a_missing_cell_is_shown_as_missing():
    from sklearn.impute import SimpleImputer

    X = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.loc[:30, "a"] = np.nan
    model = make_pipeline(SimpleImputer(), fewkern.FeatureVectorDiscriminant(max_vectors=5)).fit(frame, X[:, 1] > 0)
    assert "–" in listed(vectors(subject_of(model, frame, X[:, 1] > 0), "y", ("a", "b"), 0))["a"]


def test_coefficients_are_those_of_the_scores():
    model, X, y = iris_model()
    subject = subject_of(model, X, y)
    values, meanings = coefficients(subject)
    coef = model.expansion_.then(model.class_scores_.weights).coef
    k = np.abs(coef).argmax(axis=1)
    np.testing.assert_allclose(values, coef[np.arange(len(coef)), k])
    assert meanings == [f"{'for' if v > 0 else 'against'} {c}" for v, c in zip(values, model.classes_[k])]
    model, frame, y = churn_model()
    values, meanings = coefficients(subject_of(model, frame, y))
    assert meanings == ["for 'yes'" if v > 0 else "for 'no'" for v in values]
    model, X, y = price_model()
    assert set(coefficients(subject_of(model, X, y))[1]) <= {"raises it", "lowers it"}


@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_nearest_kernels_of_a_density(scale):
    X = np.random.default_rng(0).normal(size=(80, 2)) * [1, 5]
    model = fewkern.ReducedSetDensity(scale=scale).fit(X)
    found = nearest_vectors(subject_of(model, X), X)
    A = model.expansion_.transform
    Z, C = (X * A, model.vectors_ * A) if A.ndim == 1 else (X @ A.T, model.vectors_ @ A.T)
    np.testing.assert_array_equal(found, ((Z[:, None] - C[None]) ** 2).sum(axis=2).argmin(axis=1))


def test_moved_vectors_are_named_as_such():
    model, frame, y = churn_model(moved=True)
    subject = subject_of(model, frame, y)
    found = vectors(subject, "churn", (), 0)
    table = listed(found)
    assert found.moved
    assert {"row", "churn"} & set(table) == set()
    assert list(table)[-3:] == ["age", "noise", "plan"]
    assert "not rows" in found.sentences[1]
    assert not any("personal" in sentence for sentence in found.sentences)
    # in the units of the table
    scaler = model[0].named_transformers_["standardscaler"]
    order = np.argsort(-np.abs(coefficients(subject)[0]), kind="stable")
    ages = model[-1].vectors_[order, 0] * scaler.scale_[0] + scaler.mean_[0]
    assert [float(v.replace(",", "")) for v in table["age"]] == pytest.approx(ages, rel=1e-3)
    assert all(v.startswith(("month (", "year (")) for v in table["plan"])
    assert examples(subject, predict_held_out(subject, QUICK), "churn") == ((), ())


def test_vectors_of_another_table():
    model, _, _ = churn_model()
    other, z = customers(60, seed=4)
    subject = subject_of(model, other, z)
    assert rows_of_vectors(subject) == [None] * model[-1].n_vectors_
    found = vectors(subject, "churn", (), 0)
    assert set(listed(found)["row"]) == {"–"}
    assert "of the table that it was fitted to" in found.sentences[0]


def test_a_linear_map_keeps_nothing():
    X, y = iris_model()[1:]
    assert vectors(subject_of(fewkern.GraphEmbedding().fit(X, y), X, y), "class", (), 0) is None


def test_a_density_classifier():
    X, y = iris_model()[1:]
    table = listed(vectors(subject_of(fewkern.DensityClassifier().fit(X, y), X, y), "class", (), 0))
    assert all("of the rows with" in meaning for meaning in table["votes"])
    assert sum(int(v) for v in table["nearest rows"]) <= 150


def test_predictions_by_the_kept_rows_that_are_like_them():
    model, X, y = iris_model()
    subject = subject_of(model, X, y)
    judged = predict_held_out(subject, QUICK)
    head, rows = examples(subject, judged, "class")
    assert head == ("row", "true class", "predicted", "probability", *["most similar"] * 3)
    assert len(rows) == 4  # one per class, and the least sure
    sure = judged.probabilities.max(axis=1)
    assert rows[-1][0] == str(judged.positions[np.argmin(sure)])
    meanings = dict(zip(model.indices_.tolist(), coefficients(subject)[1]))
    for name, *_, first, second, third in rows:
        distances = (((X[int(name)] - model.vectors_) / model.kernel_.length_scale) ** 2).sum(axis=1)
        order = [i for i in model.indices_[np.argsort(distances, kind="stable")] if i != int(name)][:3]
        for shown, i in zip((first, second, third), order):
            assert re.fullmatch(rf"row {i} \([<>]?\d+%\): {meanings[i]}", shown)


def test_coefficients_that_cancel_have_no_effect_of_their_own():
    """With nearly no penalty, and a width beyond the table, huge coefficients add up to a small function."""
    X = np.linspace(0, 1, 60)[:, None]
    y = np.sin(6 * X[:, 0])
    model = fewkern.FeatureVectorRegressor(kernel=fewkern.kernels.Gaussian(3.0), n_vectors=8, alpha=1e-12).fit(X, y)
    subject = subject_of(model, X, y)
    K = model.kernel_(X, model.vectors_)
    expected = (K.std(axis=0) * np.abs(model.expansion_.coef[:, 0])).max() / model.predict(X).std()
    assert cancellation(subject) == pytest.approx(expected)
    assert expected > 5
    found = vectors(subject, "y", (), 0)
    assert "effect" not in listed(found)
    assert "Their coefficients cancel" in found.sentences[-1]
    page = fewkern.report(model, X, y, settings=QUICK).html
    assert "raises it" not in page
    assert "lowers it" not in page
    assert cancellation(subject_of(*price_model())) < 5
    assert "cancel" not in " ".join(vectors(subject_of(*price_model()), "price", (), 0).sentences)


def test_nearest_in_the_metric_of_the_kernel():
    model, X, y = iris_model()
    subject = subject_of(model, X, y)
    width = model.kernel_.length_scale
    V = model.vectors_
    expected = (((X[:, None] - V[None]) / width) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_vectors(subject, X), expected)
