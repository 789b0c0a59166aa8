"""Whole pipelines of imputers, encoders, scalers and a model: in C and in ONNX as in Python."""

import ctypes

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor, ForwardDensity, to_c, to_onnx
from fewkern.io.c_text import c_comment
from fewkern.kernels import Gaussian
from tests.io.running import (
    TOLERANCE,
    TYPES,
    assert_exported,
    assert_same,
    compiled,
    expected,
    run_onnx,
    run_reference,
    run_sanitized,
)

MODEL = FeatureVectorDiscriminant(n_vectors=6, alpha=1e-2, kernel=Gaussian(length_scale=2.0))


@pytest.fixture(scope="module")
def table():
    """Two numbers, one of them sometimes missing, a category in numbers, an order in numbers; and classes."""
    rng = np.random.default_rng(0)
    X = np.stack(
        [rng.normal(size=80), 50 + 10 * rng.normal(size=80), rng.choice([1, 4, 9], 80), rng.integers(0, 3, 80)], 1
    )
    y = np.where(X[:, 0] + (X[:, 2] == 4) > 0.5, "yes", "no")
    X[rng.random(80) < 0.2, 1] = np.nan
    return X.astype(np.float32).astype(float), y


def new_rows(X):
    """Rows with a category that was never seen, and one without a number."""
    rows = X[:12].copy()
    rows[:4, 2] = 5.0
    rows[4:6, 1] = np.nan
    rows[:, 0] += 0.25
    return rows


COLUMNS = {
    "numbers and categories": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), [0, 1]),
        (OneHotEncoder(handle_unknown="ignore"), [2]),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), [3]),
    ),
    "remainder, dropped, masks": lambda: make_column_transformer(
        (SimpleImputer(), [False, True, False, False]),
        ("drop", [0]),
        (OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False), slice(2, 3)),
        remainder="passthrough",
    ),
    "scaled, then imputed": lambda: make_pipeline(MinMaxScaler(), SimpleImputer(strategy="constant", fill_value=0.5)),
    "imputed, then looked up": lambda: make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="constant", fill_value=4.0), OneHotEncoder(handle_unknown="ignore")),
            [2],
        ),
        (make_pipeline(SimpleImputer(), FunctionTransformer()), [1, 0]),
    ),
}


@pytest.mark.filterwarnings("ignore:Found unknown categories:UserWarning")
@pytest.mark.parametrize("name", COLUMNS)
def test_a_pipeline_says_the_same_everywhere(name, table, tmp_path):
    X, y = table
    X = X.copy()
    if name == "imputed, then looked up":
        X[::9, 2] = np.nan
    model = make_pipeline(COLUMNS[name](), StandardScaler(), MODEL).fit(X, y)
    assert_exported(tmp_path, model, new_rows(X))


@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
@pytest.mark.parametrize("last", [MODEL, FeatureVectorRegressor(max_vectors=5, alpha=1e-2), ForwardDensity()])
def test_features_that_are_selected(last, table, tmp_path):
    X, y = table
    selection = SelectKBest(k=2) if last is MODEL else SelectKBest(lambda X, y: -X.std(axis=0), k=2)
    model = make_pipeline(SimpleImputer(), StandardScaler(), selection, last)
    model.fit(X, y if last is MODEL else X[:, 0])
    assert_exported(tmp_path, model, new_rows(X), {"double": 1e-9})


@pytest.fixture(scope="module")
def frame(table):
    """The same table with texts, one of them with letters of other languages."""
    pandas = pytest.importorskip("pandas")
    X, y = table
    wood = np.array(["ash", "bouleau", "kiefer \u00e4"])[(X[:, 2] > 1).astype(int) + (X[:, 2] > 4)]
    columns = {
        "wood": wood,
        "size": X[:, 1],
        "grade": np.array(["low", "mid", "top"])[X[:, 3].astype(int)],
        "x": X[:, 0],
    }
    return pandas.DataFrame(
        {name: pandas.Series(c, dtype=object if c.dtype.kind == "U" else float) for name, c in columns.items()}
    ), y


@pytest.fixture(scope="module")
def text_model(frame):
    data, y = frame
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size", "x"]),
        (OneHotEncoder(handle_unknown="ignore"), ["wood"]),
        (OrdinalEncoder(categories=[["low", "mid", "top"]]), ["grade"]),
    )
    return make_pipeline(columns, MODEL).fit(data, y)


def test_texts_are_an_input_of_their_own_in_onnx(frame, text_model):
    data, _ = frame
    new = data.head(12).copy()
    new.loc[new.index[:3], "wood"] = "oak"
    truth = expected(text_model, new)
    for dtype, tolerance in TOLERANCE.items():
        proto = to_onnx(text_model, dtype=dtype)
        feed = {
            "X": new[["size", "x"]].to_numpy().astype(TYPES[dtype][1]),
            "T": new[["wood", "grade"]].to_numpy().astype(object),
        }
        for run in (run_onnx, run_reference):
            assert_same(run(proto, feed), truth, tolerance)


def test_texts_have_numbers_in_c(frame, text_model, tmp_path):
    data, _ = frame
    new = data.head(12).copy()
    new.loc[new.index[:3], "wood"] = "oak"
    library = compiled(tmp_path, text_model)
    code = library.code.model_code
    X = new.to_numpy().copy()
    for column in (0, 2):
        X[:, column] = [code(column, ctypes.c_char_p(text.encode())) for text in new.iloc[:, column]]
    assert set(X[:3, 0]) == {-1}
    assert code(1, b"ash") == -1
    assert [code(2, text) for text in (b"low", b"mid", b"top", b"to", b"topp", b"")] == [0, 1, 2, -1, -1, -1]
    X = X.astype(float)
    np.testing.assert_allclose(library.write("predict_proba", X, 2), text_model.predict_proba(new), atol=1e-10)
    assert_same(run_sanitized(tmp_path, text_model, X, "double"), expected(text_model, new), 1e-10)
    text = to_c(text_model)
    assert "x[0] is a text: put model_code(0, text) there. Its 3 categories:" in text


def test_what_is_an_error_in_python_is_not_a_number_elsewhere(frame, text_model, tmp_path):
    data, _ = frame
    new = data.head(2).copy()
    new["grade"] = "unheard of"
    with pytest.raises(ValueError, match="Found unknown categories"):
        text_model.predict(new)
    X = np.column_stack([[0, 0], new["size"].fillna(50), [-1, 1], new["x"]]).astype(float)
    found = run_sanitized(tmp_path, text_model, X, "double")["probabilities"]
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()
    feed = {"X": X[:, [1, 3]], "T": np.array([["ash", "unheard of"], ["ash", "mid"]], dtype=object)}
    found = run_onnx(to_onnx(text_model, dtype="double"), feed)["probabilities"]
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()


def test_missing_texts_are_named_in_the_file(frame):
    data, y = frame
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["wood"]), (SimpleImputer(), ["size"])
    )
    most = data["wood"].mode()[0]
    model = make_pipeline(columns, StandardScaler(), MODEL).fit(data, y)
    sentence = f"Missing texts are not handled here: put {most!r} (input 0) in their place."
    assert c_comment(sentence) in to_c(model)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(2), "before the model a pipeline may have StandardScaler, .*ColumnTransformer.* got PCA; export the last"),
        (MinMaxScaler(clip=True), "MinMaxScaler with clip=True has no form outside of Python"),
        (SimpleImputer(add_indicator=True), "SimpleImputer with add_indicator=True has no form"),
        (SimpleImputer(missing_values=9.0), "SimpleImputer with missing_values=9.0 has no form"),
        (OneHotEncoder(min_frequency=2), "OneHotEncoder with min_frequency or max_categories has no form"),
        (OrdinalEncoder(max_categories=3), "OrdinalEncoder with min_frequency or max_categories has no form"),
        (make_pipeline(StandardScaler(), OneHotEncoder()), "OneHotEncoder with a scaler or an encoder before it"),
        (make_pipeline(OrdinalEncoder(), OneHotEncoder()), "OneHotEncoder with a scaler or an encoder before it"),
        (
            make_column_transformer((OneHotEncoder(categories=[[0, 1, 2, 3, 4, np.nan]]), [0])),
            "OneHotEncoder with categories other than texts and finite numbers",
        ),
        (FunctionTransformer(np.abs), "FunctionTransformer with a function has no form outside of Python"),
        (
            ColumnTransformer([("a", StandardScaler(), [0, 1])], transformer_weights={"a": 2.0}),
            "ColumnTransformer with transformer_weights has no form",
        ),
    ],
)
def test_what_cannot_be_written_is_named(step, message):
    X = np.random.default_rng(0).integers(0, 5, (40, 3)).astype(float)
    y = (X[:, 0] > 2).astype(int)
    model = make_pipeline(step, FeatureVectorDiscriminant(max_vectors=3, alpha=0.1)).fit(X, y)
    with pytest.raises(TypeError, match=f"to_c: {message}"):
        to_c(model)
