"""The plan as a JavaScript module and as an SQL expression, against predict."""

import json

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import fewkern
from fewkern import FeatureVectorRegressor, KernelClassifier, KernelRegressor, to_js, to_sql
from fewkern.datasets import make_sinc
from fewkern.kernels import Gaussian, Laplacian, LinearSpline, Polynomial
from tests.io.elsewhere import plain_rows, run_js, run_sql
from tests.io.running import assert_same, expected
from tests.io.test_every_estimator import cases, samples


def fitted(model, binary):
    X, three, two, new = samples()
    y = np.sin(X[:, :2]) if is_regressor(model) else two if binary else three
    return clone(model).fit(X, y), new


@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
@pytest.mark.parametrize(("model", "binary"), list(cases()))
def test_javascript_says_what_the_model_says(model, binary, tmp_path):
    model, new = fitted(model, binary)
    truth = expected(model, new)
    assert_same(run_js(tmp_path, to_js(model), new.tolist(), truth), truth, 1e-10)


def sql_truth(model, X):
    """Expressions of everything that a model says, and what they should give."""
    truth, found = expected(model, X), {}
    for name, value in truth.items():
        if name == "label":
            found[to_sql(model)] = value
            continue
        transforms = "transform" if hasattr(model, "transform") else "predict"
        output = {"probabilities": "predict_proba", "variable": transforms}.get(name, name)
        found |= {to_sql(model, output=output, number=i): value[:, i] for i in range(value.shape[1])}
    return found


def assert_sql(model, X, columns, rows):
    truth = sql_truth(model, X)
    for found, value in zip(zip(*run_sql(list(truth), columns, rows)), truth.values()):
        if value.dtype.kind == "f":
            np.testing.assert_allclose(np.array(found, float), value, rtol=0, atol=1e-10 * max(1, np.abs(value).max()))
        else:
            assert list(found) == value.tolist()


SQL = [case for case in cases() if "Density" not in case.id and "spline" not in case.id]


@pytest.mark.parametrize(("model", "binary"), SQL)
def test_sql_says_what_the_model_says(model, binary):
    model, new = fitted(model, binary)
    assert_sql(model, new, ["x0", "x1", "x2"], new.tolist())


@pytest.mark.parametrize("binary", [True, False])
def test_shares_of_least_squares(binary, tmp_path):
    X, three, two, new = samples()
    y = two if binary else three
    last = np.flatnonzero(y == np.unique(y)[-1])
    model = fewkern.SparseKernelFisher(alpha=0.05).fit(np.delete(X, last[4:], axis=0), np.delete(y, last[4:]))
    assert model.class_scores_.shares is not None
    truth = expected(model, new)
    assert_same(run_js(tmp_path, to_js(model), new.tolist(), truth), truth, 1e-10)
    assert_sql(model, new, ["x0", "x1", "x2"], new.tolist())


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
    new.loc[1, "wood"], new.loc[2, "wood"] = None, "larch"
    rows, text = plain_rows(new), to_js(model)
    assert "</script>" not in text
    assert text.isascii()
    found = run_js(tmp_path, text, rows, ["label", "probabilities"])
    assert found["label"].tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), atol=1e-10)
    cells = [list(row.values()) for row in rows]
    asked = [to_sql(model), to_sql(model, output="predict_proba", number=0)]
    label, share = zip(*run_sql(asked, list(data), cells))
    assert list(label) == model.predict(new).tolist()
    np.testing.assert_allclose(share, model.predict_proba(new)[:, 0], atol=1e-10)


@pytest.mark.filterwarnings("ignore:Found unknown categories:UserWarning")
def test_pipelines_with_gaps_and_texts(frame, tmp_path):
    data, y = frame
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ['the "size"']),
        (OneHotEncoder(handle_unknown="ignore"), ["wood"]),
        (OrdinalEncoder(categories=[["low", "mid", "top"]]), ["grade"]),
    )
    model = make_pipeline(columns, KernelClassifier(max_vectors=6)).fit(data, y)
    rows = plain_rows(data)
    found = run_js(tmp_path, to_js(model), rows, ["label", "probabilities"])
    assert found["label"].tolist() == model.predict(data).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(data), atol=1e-10)
    cells = [list(row.values()) for row in rows]
    (label,) = zip(*run_sql([to_sql(model)], list(data), cells))
    assert list(label) == model.predict(data).tolist()
    # a grade that is none of its categories is an error in Python: no label, no probability
    other = {**rows[1], "grade": "none"}
    assert run_js(tmp_path, to_js(model), [other], ["label"])["label"].tolist() == [None]
    asked = [to_sql(model), to_sql(model, output="predict_proba")]
    assert run_sql(asked, list(data), [list(other.values())]) == [(None, None)]


def test_javascript_intervals_sets_and_novelty(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(200)
    model, rows = KernelRegressor(max_vectors=8).fit(X, y), 1.5 * X[:20]
    trust = {"coverage": 0.8, "false_alarms": 0.1}
    truth = expected(model, rows, **trust)
    assert_same(run_js(tmp_path, to_js(model, **trust), rows.tolist(), truth), truth, 1e-9)
    scaled = FeatureVectorRegressor(max_vectors=8).fit(X, y + np.exp(X[:, 1]) * rng.standard_normal(200) / 5)
    assert scaled.intervals_.scale is not None
    truth = expected(scaled, rows, coverage=0.8)
    assert_same(run_js(tmp_path, to_js(scaled, coverage=0.8), rows.tolist(), truth), truth, 1e-9)
    X, three, _, new = samples()
    classifier = KernelClassifier(max_vectors=6).fit(X, three)
    sets = run_js(tmp_path, to_js(classifier, coverage=0.9), new.tolist(), ["set"])["set"]
    assert sets == [classifier.classes_[row].tolist() for row in classifier.predict_set(new, 0.9)]


def test_numbers_of_json_and_names_of_columns(tmp_path):
    X, y = make_sinc(60)
    model = KernelRegressor(n_vectors=4).fit(X, y)
    text = to_js(model, tmp_path / "m.mjs")
    assert (tmp_path / "m.mjs").read_text() == text
    assert json.loads(text.split("const model = ")[1].split(";\n")[0])["columns"] == ["x0"]
    by_name = run_js(tmp_path, text, [{"x0": 0.25}], ["variable"])["variable"]
    np.testing.assert_allclose(by_name[:, 0], model.predict([[0.25]]), atol=1e-12)
    with pytest.raises(AssertionError, match="RangeError: no column x0; null is a missing cell"):
        run_js(tmp_path, text, [{"X0": 0.25}], ["variable"])


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


def test_sql_of_a_file(tmp_path):
    model = KernelRegressor(n_vectors=4).fit(*make_sinc(60))
    expression = to_sql(model, tmp_path / "m.sql")
    text = (tmp_path / "m.sql").read_text()
    assert text.startswith("-- KernelRegressor, Gaussians in a learned metric, 4 vectors of 1 features: predict\n")
    assert text.endswith(f"{expression}\n")
    assert run_sql([text], ["x0"], [[0.5]]) == run_sql([expression], ["x0"], [[0.5]])


def test_what_sql_refuses():
    X, three, _, _ = samples()
    density = fewkern.ParzenDensity().fit(X)
    with pytest.raises(TypeError, match="to_sql: ParzenDensity is made of densities"):
        to_sql(density)
    spline = FeatureVectorRegressor(max_vectors=3, kernel=LinearSpline()).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="to_sql: the kernel LinearSpline has no form in SQL; use to_c"):
        to_sql(spline)
    wide = fewkern.KernelExpansion(Polynomial(gamma=1.0), np.zeros((1601, 1)), np.zeros((1601, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="about 1600 columns in a subquery, and this KernelExpansion has 1601 vectors"):
        to_sql(wide)
    model = KernelClassifier(max_vectors=4).fit(X, three)
    with pytest.raises(
        ValueError, match=r"output of this KernelClassifier must be one of \['predict', 'decision', 'pr"
    ):
        to_sql(model, output="transform")
    with pytest.raises(ValueError, match="number must be between 0 and 2 for output='predict_proba', got 3"):
        to_sql(model, output="predict_proba", number=3)
    with pytest.raises(ValueError, match="number is not for the label"):
        to_sql(model, number=0)
    broken = fewkern.KernelExpansion(Gaussian(1.0), X[:2], np.array([[np.inf], [1.0]]), np.zeros(1))
    for writer in (to_sql, to_js):
        with pytest.raises(ValueError, match=f"{writer.__name__}: the model holds a number that is not finite"):
            writer(broken)
