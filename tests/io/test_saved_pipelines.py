"""Pipelines in files: steps of scikit-learn are written by what they learned, and are made again."""

import numpy as np
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorSelector,
    RecursiveSVM,
    load,
    save,
    to_c,
)
from fewkern.io import ModelFileError
from fewkern.io.steps import LINEAR_MODELS, STEPS
from fewkern.kernels import Gaussian
from tests.fuzz.lies import put, tamper
from tests.io.running import assert_exported, assert_same, expected, run_sanitized

pd = pytest.importorskip("pandas")

MODEL = FeatureVectorDiscriminant(n_vectors=6, alpha=1e-2, kernel=Gaussian(length_scale=2.0))


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 80
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "wood": pd.Series(rng.choice(["ash", "elm", "kiefer ä"], n), dtype=object),
            "x": rng.normal(size=n),
            "grade": rng.integers(0, 3, n),
        }
    )
    y = np.where(table["x"] + (table["wood"] == "elm") > 0.3, "yes", "no")
    return table, y


PREPARED = {
    "numbers and texts": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["size", "x"]),
        (OneHotEncoder(handle_unknown="ignore"), ["wood"]),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["grade"]),
    ),
    "given categories, dropped, passed": lambda: make_column_transformer(
        (OneHotEncoder(categories=[["ash", "elm", "kiefer ä"]], drop="first", sparse_output=False), ["wood"]),
        ("drop", ["size"]),
        ("passthrough", ["x", "grade"]),
    ),
    "by number, the rest imputed": lambda: make_column_transformer(
        (OneHotEncoder(dtype=np.float32), [1]),
        (FunctionTransformer(), []),
        remainder=make_pipeline(SimpleImputer(strategy="constant", fill_value=0.5), MinMaxScaler()),
        verbose_feature_names_out=False,
    ),
    "a text that was never missing": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder()), ["wood"]),
        (SimpleImputer(keep_empty_features=True), slice("size", "size")),
        remainder="passthrough",
        n_jobs=1,
    ),
}


def again(model, tmp_path):
    return load(save(model, tmp_path / "m.npz"))


def assert_same_steps(model, other, table):
    """The same answers at a table in any order of its columns, the same names, the same after another fit."""
    for rows in (table, table[:1]):
        for method in ("predict_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(other, method)(rows), getattr(model, method)(rows))
    assert list(other[:-1].get_feature_names_out()) == list(model[:-1].get_feature_names_out())


@pytest.mark.parametrize("name", PREPARED)
def test_tables_of_numbers_and_texts(name, frame, tmp_path):
    table, y = frame
    model = make_pipeline(PREPARED[name](), MODEL).fit(table, y)
    other = again(model, tmp_path)
    assert_same_steps(model, other, table)
    if name in ("numbers and texts", "given categories, dropped, passed"):
        assert repr(other) == repr(model)
    first, second = other[0], model[0]
    assert first.output_indices_ == second.output_indices_
    assert first.sparse_output_ == second.sparse_output_
    other.fit(table, y)
    assert_same_steps(model, other, table)


def test_columns_by_name_are_found_in_any_order_and_columns_that_a_function_chose(frame, tmp_path):
    table, y = frame
    columns = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include=float)), (OneHotEncoder(), ["wood"])
    )
    model = make_pipeline(columns, MODEL).fit(table, y)
    other = again(model, tmp_path)
    turned = table[["x", "grade", "wood", "size"]]
    np.testing.assert_array_equal(other.predict_proba(turned), model.predict_proba(table))
    with pytest.raises(ValueError, match=r"columns are missing: \{'wood'\}"):
        other.predict(table.drop(columns="wood"))


@pytest.mark.parametrize("mark", ["?", None])
def test_what_an_imputer_takes_for_missing(mark, tmp_path):
    rows = np.array([["a", "x"], [mark, "y"], ["b", "x"]] * 20, dtype=object)
    steps = SimpleImputer(missing_values=mark, strategy="most_frequent"), OneHotEncoder()
    model = make_pipeline(*steps, FeatureVectorDiscriminant(max_vectors=2, kernel="linear")).fit(
        rows, np.arange(60) % 2
    )
    again = load(save(model, tmp_path / "m"))
    assert again[0].missing_values == mark
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


def test_a_statistic_that_equals_the_mark_of_missing_cells(tmp_path):
    rows = np.column_stack([np.tile([1.0, -1.0], 30), np.arange(60.0)])
    model = make_pipeline(SimpleImputer(missing_values=0), FeatureVectorDiscriminant(max_vectors=2, kernel="linear"))
    model.fit(rows, np.arange(60) % 2)
    again = load(save(model, tmp_path / "m"))
    assert again[0].statistics_[0] == 0
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


@pytest.mark.parametrize(
    "selection",
    [
        VarianceThreshold(0.1),
        SelectKBest(f_classif, k=2),
        SelectFromModel(Ridge()),
        RFE(Ridge(), n_features_to_select=2),
    ],
)
def test_feature_selection_is_its_columns(selection, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X[:, 2] *= 1e-3
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    model = make_pipeline(selection, MODEL).fit(X, y)
    other = again(model, tmp_path)
    assert_same_steps(model, other, X)
    assert other[0].transform(X).shape == model[0].transform(X).shape
    assert to_c(other) == to_c(model)


# Linear models on features


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3)) * [1.0, 4.0, 0.5]
    return X, X[:, 0] ** 2 + np.sin(X[:, 1]), (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def target_of(model, samples):
    _, t, y = samples
    if hasattr(type(model), "decision_function"):
        return np.array(["low", "mid", "top"])[y]
    return np.stack([t, -2 * t], axis=1) if isinstance(model, LinearRegression) else t


LINEAR = [
    LinearRegression(),
    Ridge(alpha=0.1),
    RidgeCV(alphas=(0.1, 1.0)),
    Lasso(alpha=1e-3),
    ElasticNet(alpha=1e-3, fit_intercept=False),
    LinearSVR(max_iter=20_000),
    LogisticRegression(C=10.0),
    LogisticRegressionCV(Cs=2, cv=3, max_iter=5000),
    LinearSVC(),
    SGDClassifier(loss="log_loss"),
]


def test_all_kinds_of_linear_models():
    assert {type(model) for model in LINEAR} == set(LINEAR_MODELS)
    assert {cls.__name__ for cls in LINEAR_MODELS} < set(STEPS)


@pytest.mark.filterwarnings("ignore::FutureWarning:sklearn.*")
@pytest.mark.parametrize("last", LINEAR, ids=lambda model: type(model).__name__)
def test_linear_models_on_chosen_vectors(last, samples, tmp_path):
    X = samples[0]
    model = make_pipeline(StandardScaler(), FeatureVectorSelector(max_vectors=8), StandardScaler(), last)
    model.fit(X, target_of(last, samples))
    other = again(model, tmp_path)
    assert repr(other) == repr(model)
    truth = expected(model, X[:20])
    assert_same(expected(other, X[:20]), truth, 0.0)
    if isinstance(last, SGDClassifier):
        # several logistic models, whose probabilities are divided by their sum
        assert "The probabilities of this SGDClassifier are not written." in to_c(model)
        del truth["probabilities"]
    assert_same(run_sanitized(tmp_path, model, X[:20], "double"), truth, 1e-9)


@pytest.mark.parametrize(
    "transformer", [FeatureVectorPCA(n_components=3, max_vectors=9), RecursiveSVM(n_components=2, max_vectors=9)]
)
def test_linear_models_on_components_two_classes(transformer, samples, tmp_path):
    X, _, y = samples
    model = make_pipeline(StandardScaler(), transformer, SelectKBest(k=1), LogisticRegression()).fit(X, y > 0)
    assert_exported(tmp_path, model, X[:20], {"double": 1e-9})


# What a search found


def test_the_best_of_a_search(samples, tmp_path):
    X, _, y = samples
    pipeline = make_pipeline(StandardScaler(), MODEL)
    inside = GridSearchCV(MODEL, {"alpha": [1e-3, 1e-1]}, cv=3)
    searches = [
        GridSearchCV(pipeline, {"featurevectordiscriminant__alpha": [1e-3, 1e-1]}, cv=3),
        RandomizedSearchCV(MODEL, {"alpha": [1e-3, 1e-1]}, n_iter=2, cv=3, random_state=0),
        make_pipeline(StandardScaler(), inside),
    ]
    for search in searches:
        search.fit(X, y)
        other = again(search, tmp_path)
        np.testing.assert_array_equal(other.predict_proba(X), search.predict_proba(X))
        assert to_c(other) == to_c(search)


def test_a_search_without_a_model(samples):
    X, _, y = samples
    search = GridSearchCV(MODEL, {"alpha": [1e-3, 1e-1]}, cv=3, refit=False)
    with pytest.raises(NotFittedError, match="to_c: this GridSearchCV is not fitted; call fit first"):
        to_c(search)
    with pytest.raises(NotFittedError, match=r"save: .*was not told to fit the best model \(refit=False\)"):
        save(search.fit(X, y), "m.npz")


# What cannot be saved


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PolynomialFeatures(), "is a PolynomialFeatures, which cannot be saved.*save the last step alone"),
        (FunctionTransformer(), "is a FunctionTransformer, which cannot be saved.*save the last step alone"),
        (SimpleImputer(add_indicator=True), "a SimpleImputer with add_indicator=True cannot be saved"),
        (OneHotEncoder(min_frequency=2), "a OneHotEncoder with min_frequency or max_categories cannot be saved"),
        (
            make_column_transformer(
                (StandardScaler(), [0, 1]), verbose_feature_names_out=lambda name, feature: feature
            ),
            "a ColumnTransformer with a format of names .* cannot be saved",
        ),
        (OrdinalEncoder(dtype=object), "a OrdinalEncoder with dtype=<class 'object'> cannot be saved"),
    ],
)
def test_steps_that_are_refused_by_name(step, message, tmp_path):
    X = np.random.default_rng(0).integers(0, 4, (40, 3)).astype(float)
    model = make_pipeline(step, MODEL).fit(X, (X[:, 0] > 1).astype(int))
    with pytest.raises(TypeError, match=f"save: .*{message}"):
        save(model, tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_a_last_step_that_is_refused_by_name(samples, tmp_path):
    X, _, y = samples
    model = make_pipeline(FeatureVectorSelector(max_vectors=3), RidgeClassifier()).fit(X, y)
    with pytest.raises(TypeError, match=r"save: Pipeline.steps\[1\]\[1\] is a RidgeClassifier, which cannot be saved"):
        save(model, tmp_path / "m.npz")
    with pytest.raises(TypeError, match=r"ends in one .*got RidgeClassifier"):
        to_c(model)
    encoded = make_pipeline(FeatureVectorSelector(max_vectors=2), OrdinalEncoder(), Ridge()).fit(X, y)
    with pytest.raises(TypeError, match="between FeatureVectorSelector and the linear model only scalers and feature"):
        to_c(encoded)


# Files that were tampered with


@pytest.fixture(scope="module")
def content(frame, tmp_path_factory):
    table, y = frame
    path = tmp_path_factory.mktemp("files") / "m.npz"
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size", "x"]),
        (OneHotEncoder(handle_unknown="ignore"), ["wood"]),
        (OrdinalEncoder(dtype=np.float32), ["grade"]),
    )
    model = make_pipeline(columns, FeatureVectorSelector(max_vectors=5), LogisticRegression(C=2.0))
    return save(model.fit(table, y), path).read_bytes()


def setting(name, value):
    return {"dict": [[name, value]]}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("Pipeline:memory", "folder", "Pipeline.memory must be None in a file"),
        ("Pipeline:steps", {"list": []}, None),
        ("LogisticRegression:settings", setting("n_jobs", 10**6), "no LogisticRegression with the settings"),
        ("LogisticRegression:settings", setting("unheard", 1), "no LogisticRegression with the settings"),
        ("ColumnTransformer:settings", setting("n_jobs", 64), "no ColumnTransformer with the settings"),
        ("ColumnTransformer:settings", setting("verbose_feature_names_out", "{:>99999999}"), "names_out is none"),
        ("ColumnTransformer:n_features", 10**12, "ColumnTransformer.n_features_in_ is 1000000000000"),
        ("ColumnTransformer:rest", {"list": []}, "ColumnTransformer.remainder is none"),
        ("ColumnTransformer:parts", {"tuple": [{"tuple": ["a", "drop", {"list": []}]}]}, None),
        (
            "ColumnTransformer:parts",
            {"tuple": [{"tuple": ["a", "drop", {"list": [1, 2, 3, 4]}, False]}]},
            "ColumnTransformer.n_features_in_ is 4",
        ),
        ("ColumnTransformer:names", None, None),
        ("ColumnTransformer:names", {"strings": ["a", "a", "b", "c"]}, "ColumnTransformer.feature_names_in_ is none"),
        ("SimpleImputer:settings", setting("strategy", "guess"), None),
        ("SimpleImputer:settings", setting("add_indicator", True), "SimpleImputer.add_indicator is none"),
        ("SimpleImputer:output", "html", "SimpleImputer has an unknown output format"),
        ("SimpleImputer:statistics", lambda a: a * np.inf, None),
        ("SimpleImputer:statistics", lambda a: a[:1], None),
        ("OneHotEncoder:settings", setting("min_frequency", 2), "OneHotEncoder.min_frequency is none"),
        ("OneHotEncoder:categories", {"tuple": []}, None),
        ("OneHotEncoder:categories", {"tuple": [{"strings": ["a", "a"]}]}, None),
        ("OrdinalEncoder:settings", setting("dtype", "object"), "OrdinalEncoder.dtype is object"),
        ("OrdinalEncoder:categories", lambda a: a[::-1], None),
        ("StandardScaler:mean_", lambda a: a > 0, "StandardScaler.mean_ is none"),
        ("LogisticRegression:coef", lambda a: a * np.nan, None),
        ("LogisticRegression:coef", lambda a: a[:, :-1], None),
        ("LogisticRegression:coef", lambda a: np.concatenate([a, a]), "LogisticRegression.coef_ is none"),
        ("LogisticRegression:intercept", lambda a: np.zeros(7), "LogisticRegression.intercept_ is none"),
        ("LogisticRegression:intercept", lambda a: a * np.nan, None),
        ("LogisticRegression:classes", lambda a: np.arange(4), "LogisticRegression.coef_ is none"),
    ],
)
def test_steps_that_were_tampered_with(place, value, message, content, tmp_path):
    """The message of our own checks; in all else scikit-learn or the trial of the pipeline has the word."""
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    tamper(path, put(place, value))
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_what_was_not_tampered_with_loads(content, frame, tmp_path):
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    tamper(path)
    assert load(path).predict(frame[0]).shape == (80,)
