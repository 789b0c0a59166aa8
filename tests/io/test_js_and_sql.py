"""A JavaScript module and an SQL expression: tables, files, and what they refuse. ``assert_exported`` runs both."""

import json

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import fewkern
from fewkern import FeatureVectorRegressor, KernelClassifier, KernelRegressor, to_js, to_sql
from fewkern.datasets import make_sinc
from fewkern.kernels import Gaussian, Laplacian, LinearSpline, Polynomial
from tests.io.running import assert_same, assert_sql, run_js, run_sql
from tests.io.test_every_estimator import samples


@pytest.fixture(scope="module")
def frame():
    """Gaps, texts with quotes and letters of other languages, and names that SQL and HTML have to quote."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    size = rng.standard_normal(80)
    wood = np.array(["o'ak", 'b"ir<ch', "kiefer \u00e4"])[rng.integers(0, 3, 80)]
    grade = np.array(["low", "mid", "top"])[rng.integers(0, 3, 80)]
    y = np.where(size + (wood == "o'ak") + rng.standard_normal(80) / 3 > 0.3, "it's", "</script>")
    size[::9] = np.nan
    data = pandas.DataFrame({'the "size"': size, "wood": wood.astype(object), "grade": grade.astype(object)})
    return data, y


@pytest.mark.filterwarnings("ignore:column 'wood'.*does not know:UserWarning")
def test_tables_with_gaps_and_texts(frame, tmp_path):
    data, y = frame
    model = fewkern.TableModel(max_vectors=6, holdout=0).fit(data.assign(y=y), "y")
    new = data.copy()
    new.loc[1, "wood"], new.loc[2, "wood"], new.loc[3, "wood"] = None, "larch", f" {new.wood[3]} "
    truth = {"label": model.predict(new), "probabilities": model.predict_proba(new)}
    assert_same(run_js(tmp_path, model, new, truth), truth, 1e-10)
    assert_sql(model, new, truth)
    text = (tmp_path / "model.mjs").read_text()
    assert "</script>" not in text
    assert text.isascii()


def test_pipelines_with_gaps_and_texts(frame, tmp_path):
    data, y = frame
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ['the "size"']),
        (OneHotEncoder(handle_unknown="ignore"), ["wood"]),
        (OrdinalEncoder(categories=[["low", "mid", "top"]]), ["grade"]),
    )
    model = make_pipeline(columns, KernelClassifier(max_vectors=6)).fit(data, y)
    truth = {"label": model.predict(data), "probabilities": model.predict_proba(data)}
    assert_same(run_js(tmp_path, model, data, truth), truth, 1e-10)
    assert_sql(model, data, truth)
    # a grade that is none of its categories is an error in Python: no label, no probability
    other = data[1:2].assign(grade="none")
    assert run_js(tmp_path, model, other, ["label"])["label"].tolist() == [None]
    asked = [to_sql(model), to_sql(model, output="predict_proba")]
    assert run_sql(asked, list(data), other.values.tolist()) == [(None, None)]


def test_numbers_of_json_and_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    model = KernelRegressor(n_vectors=4).fit(*make_sinc(60))
    text = to_js(model)
    assert json.loads(text.split("const model = ")[1].split(";\n")[0])["columns"] == ["x0"]
    by_name = run_js(tmp_path, model, pandas.DataFrame({"x0": [0.25]}), ["variable"])["variable"]
    assert (tmp_path / "model.mjs").read_text() == text
    np.testing.assert_allclose(by_name[:, 0], model.predict([[0.25]]), atol=1e-12)
    with pytest.raises(AssertionError, match="RangeError: no column x0; null is a missing cell"):
        run_js(tmp_path, model, pandas.DataFrame({"X0": [0.25]}), ["variable"])


def test_far_away_and_missing_cells_in_sql():
    X, y = make_sinc(60)
    model = FeatureVectorRegressor(max_vectors=4, kernel=Gaussian(0.5)).fit(X, y)
    far, missing = run_sql([to_sql(model)], ["x0"], [[1e150], [None]])
    np.testing.assert_allclose(far, model.expansion_.offset, atol=1e-12)
    assert missing == (None,)


def test_many_vectors_stay_within_the_depth_of_sqlite():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 2))
    kernel = Laplacian(2.0)
    model = fewkern.KernelExpansion(kernel, X, rng.standard_normal((1500, 1)), np.zeros(1))
    (found,) = zip(*run_sql([to_sql(model)], ["x0", "x1"], X[:3].tolist()))
    np.testing.assert_allclose(found, model(X[:3])[:, 0], atol=1e-10)


def test_sql_without_a_column_is_null_in_sqlite(frame):
    """SQLite takes a quoted name that is no column for a text: not for a missing cell, and not for zero."""
    data, y = frame
    named = data.assign(wood=np.where(data.wood == "o'ak", "wood", data.wood))  # a category with the name of its column
    table = fewkern.TableModel(max_vectors=4, holdout=0).fit(named.assign(y=y), "y")
    rows = named.iloc[:5].astype(object).where(named.iloc[:5].notna(), None)
    assert [(label,) for label in table.predict(named[:5])] == run_sql(
        [to_sql(table)], list(rows), rows.values.tolist()
    )
    rest = rows.drop(columns='the "size"')
    assert run_sql([to_sql(table)], list(rest), rest.values.tolist()) == [(None,)] * 5


def test_sql_of_columns_whose_names_are_numbers():
    """A cell may be equal to the name of its column."""
    pandas = pytest.importorskip("pandas")
    X, y = make_sinc(60)
    X = pandas.DataFrame({"0": np.round(3 * X[:, 0]) % 2, "2019": X[:, 0]})
    model = KernelRegressor(n_vectors=4).fit(X, y)
    rows = [[int(flag), value] for flag, value in X.values.tolist()]  # a whole number is written as the name is
    (found,) = zip(*run_sql([to_sql(model)], list(X), rows))
    np.testing.assert_allclose(np.array(found, float), model.predict(X), atol=1e-10)


def test_js_refuses_a_text_in_place_of_a_number(frame, tmp_path):
    data, y = frame
    model = fewkern.TableModel(max_vectors=4, holdout=0).fit(data.assign(y=y), "y")
    wrong = data[:1].astype(object)
    for missing in ("", " ", "NaN"):
        wrong.iloc[0, 0] = missing
        assert run_js(tmp_path, model, wrong, ["label"])["label"] == model.predict(wrong)
    wrong.iloc[0, 0] = "1,5 EUR"
    with pytest.raises(AssertionError, match='column the "size": 1,5 EUR is no number'):
        run_js(tmp_path, model, wrong, ["label"])


def test_sql_of_a_file(tmp_path):
    model = KernelRegressor(n_vectors=4).fit(*make_sinc(60))
    expression = to_sql(model, tmp_path / "m.sql")
    text = (tmp_path / "m.sql").read_text()
    assert text.startswith("-- KernelRegressor, Gaussians in a learned metric, 4 vectors of 1 features: predict\n")
    assert text.endswith(f"{expression}\n")
    assert run_sql([text], ["x0"], [[0.5]]) == run_sql([expression], ["x0"], [[0.5]])


def test_what_sql_refuses():
    X, three, _, _ = samples()
    spline = FeatureVectorRegressor(max_vectors=3, kernel=LinearSpline()).fit(X, X[:, 0])
    wide = fewkern.KernelExpansion(Polynomial(gamma=1.0), np.zeros((1601, 1)), np.zeros((1601, 1)), np.zeros(1))
    model = KernelClassifier(max_vectors=4).fit(X, three)
    known = r"output of this KernelClassifier must be one of \['predict', 'decision', 'pr"
    for refused, asked, message in (
        (fewkern.ParzenDensity().fit(X), {}, "to_sql: ParzenDensity is made of densities"),
        (spline, {}, "to_sql: the kernel LinearSpline has no form in SQL; use to_c"),
        (wide, {}, "about 1600 columns in a subquery, and this KernelExpansion has 1601 vectors"),
        (model, {"output": "transform"}, known),
        (model, {"output": "predict_proba", "number": 3}, "number must be between 0 and 2 for output='predict_proba'"),
        (model, {"number": 0}, "number is not for the label"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            to_sql(refused, **asked)
    broken = fewkern.KernelExpansion(Gaussian(1.0), X[:2], np.array([[np.inf], [1.0]]), np.zeros(1))
    for writer in (to_sql, to_js):
        with pytest.raises(ValueError, match=f"{writer.__name__}: the model holds a number that is not finite"):
            writer(broken)
