"""The vectors of a model as rows of the table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import fewkern
from fewkern.reporting.kept import nearest_vectors, rows_of_vectors, vectors
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import churn_model, customers, iris_model


def listed(found):
    """The table of the vectors, by column."""
    head, rows = found.table
    return dict(zip(head, zip(*rows)))


def test_kept_rows_in_the_cells_of_the_table():
    model, frame, y = churn_model()
    found = vectors(subject_of(model, frame, y), "churn", ("plan", "age", "noise"), 0)
    table = listed(found)
    beside = ["row", "churn", "coefficient", "of", "nearest rows", "mostly"]
    assert list(table) == [*beside, "key", "plan", "age", "noise"]
    assert found.total == model[-1].n_vectors_ == len(table["row"])
    rows = [int(name) for name in table["row"]]
    assert set(rows) == set(model[-1].indices_.tolist())
    assert table["churn"] == tuple(y[rows])
    for name in ("key", "plan"):
        assert table[name] == tuple(frame.loc[rows, name])
    assert [float(v) for v in table["age"]] == pytest.approx(frame.loc[rows, "age"].tolist())
    sizes = [float(v[1:]) for v in table["coefficient"]]
    assert sizes == sorted(sizes, reverse=True)
    assert set(table["of"]) == {"class 'yes'"}
    assert sum(int(v) for v in table["nearest rows"]) == len(frame)
    assert found.is_here
    assert not found.is_linear


def test_a_missing_cell_is_shown_as_missing():
    X = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.loc[:30, "a"] = np.nan
    model = make_pipeline(SimpleImputer(), fewkern.FeatureVectorDiscriminant(max_vectors=5)).fit(frame, X[:, 1] > 0)
    assert "–" in listed(vectors(subject_of(model, frame, X[:, 1] > 0), "y", ("a", "b"), 0))["a"]


def test_coefficients_are_the_largest_of_the_scores():
    model, X, y = iris_model()
    table = listed(vectors(subject_of(model, X, y), "class", (), 0))
    coef = model.expansion_.then(model.class_scores_.weights).coef
    order = np.argsort(-np.abs(coef).max(axis=1), kind="stable")
    largest = np.abs(coef).argmax(axis=1)[order]
    numbers = [float(v.replace("−", "-").replace(",", "")) for v in table["coefficient"]]
    assert numbers == pytest.approx(coef[order, largest], rel=1e-2)
    assert table["of"] == tuple(f"class {model.classes_[k]}" for k in largest)


def test_moved_vectors_are_named_as_such():
    model, frame, y = churn_model(moved=True)
    found = vectors(subject_of(model, frame, y), "churn", ("age", "plan"), 0)
    table = listed(found)
    assert found.moved
    assert not {"row", "churn"} & set(table)
    # in the units of the table, where features are a column in other units
    assert list(table)[-4:] == ["age", "onehotencoder__plan_month", "onehotencoder__plan_year", "noise"]
    scaler = model[0].named_transformers_["standardscaler"]
    ages = model[-1].vectors_[:, 0] * scaler.scale_[0] + scaler.mean_[0]
    assert sorted(float(v.replace(",", "")) for v in table["age"]) == pytest.approx(np.sort(ages), rel=1e-3)


def test_vectors_of_another_table():
    model, _, _ = churn_model()
    subject = subject_of(model, *customers(60, seed=4))
    assert rows_of_vectors(subject) == [None] * model[-1].n_vectors_
    found = vectors(subject, "churn", (), 0)
    assert set(listed(found)["row"]) == {"–"}
    assert not found.is_here


def test_a_linear_map_keeps_nothing_and_a_density_has_weights():
    X, y = iris_model()[1:]
    assert vectors(subject_of(fewkern.GraphEmbedding().fit(X, y), X, y), "class", (), 0) is None
    table = listed(vectors(subject_of(fewkern.DensityClassifier().fit(X, y), X, y), "class", (), 0))
    assert all("of the rows with" in meaning for meaning in table["stands for"])
    assert "nearest rows" not in table


def test_nearest_in_the_metric_of_the_kernel():
    model, X, y = iris_model()
    gaps = (X[:, None] - model.vectors_[None]) / model.kernel_.length_scale
    expected = (gaps**2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_vectors(subject_of(model, X, y), X), expected)
    learned = fewkern.KernelClassifier(n_vectors=6).fit(X, y)
    basis = learned.expansion_.basis
    metric = np.concatenate([np.diag(basis.scales), basis.directions], axis=1)
    gaps = (basis.prepared(X) @ metric)[:, None] - (basis.vectors @ metric)[None]
    expected = ((gaps**2).sum(axis=2) * basis.inverse_widths**2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_vectors(subject_of(learned, X, y), X), expected)
