"""The model inside a Pipeline, a search or a table model, and the names of what it sees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fewkern import FeatureVectorDiscriminant, FeatureVectorSelector, TableModel
from fewkern.datasets import make_banana
from fewkern.plotting.fitted import as_numbers, fitted_model

X, y = make_banana(60)
FRAME = pd.DataFrame(X, columns=["age", "income"])
TOWN = FRAME.assign(town=np.where(X[:, 0] > 0, "A", "B"))


def selector():
    return FeatureVectorSelector(max_vectors=4)


@pytest.mark.parametrize(("given", "names"), [(X, ["feature 0", "feature 1"]), (FRAME, ["age", "income"])])
def test_the_last_step_of_a_pipeline_and_what_it_sees(given, names):
    pipeline = make_pipeline("passthrough", StandardScaler(), None, selector()).fit(given)
    found = fitted_model(pipeline, given)
    assert found.model is pipeline[-1]
    np.testing.assert_array_equal(found.X, pipeline[1].transform(given))
    assert found.names == found.labels == names
    np.testing.assert_allclose(found.given_units(found.X), X)
    assert fitted_model(pipeline).X is None
    assert fitted_model(pipeline).names == names


def logarithm(function):
    return FunctionTransformer(function, feature_names_out="one-to-one")


GAPS = FRAME.assign(age=np.where(np.arange(60) == 3, np.nan, X[:, 0]))
SCALED = make_column_transformer((StandardScaler(), ["income"]), remainder="passthrough")
PLAIN = make_column_transformer(
    (OneHotEncoder(), ["town"]), remainder=StandardScaler(), verbose_feature_names_out=False
)


@pytest.mark.parametrize(
    ("step", "frame", "labels"),
    [
        (SimpleImputer(), GAPS, ["age", "income"]),  # values that are left alone
        (SCALED, FRAME, ["income", "age"]),  # in another order, and with the names of the steps before theirs
        (StandardScaler(), FRAME.assign(age=7.0), ["age", "income"]),  # a constant has a unit, too
        (PLAIN, TOWN, ["town_A", "town_B", "age", "income"]),  # new features beside scaled ones
        (PCA(2), FRAME, ["pca0", "pca1"]),
        (logarithm(np.log1p), FRAME - FRAME.min(), [f"{name} (after FunctionTransformer)" for name in FRAME]),
        (logarithm(np.negative), FRAME, [f"{name} (after FunctionTransformer)" for name in FRAME]),
    ],
)
def test_labels_say_what_a_step_has_changed(step, frame, labels):
    pipeline = make_pipeline(step, selector()).fit(frame)
    found = fitted_model(pipeline, frame)
    assert found.labels == labels
    shown = pd.DataFrame(found.given_units(as_numbers(found.X)), columns=labels)
    for name in set(labels) & set(frame.columns):
        there = frame[name].notna()
        np.testing.assert_allclose(shown[name][there], frame[name][there])
    if "age" in labels:  # without samples nobody knows
        assert fitted_model(pipeline).labels[labels.index("age")].startswith("age (after ")


@pytest.mark.parametrize("written", [str, "{:.3f} EUR".format])
def test_the_table_model_of_the_package(written):
    table = TOWN.assign(age=TOWN["age"].map(written), target=np.array(["no", "yes"])[y])
    model = TableModel(max_vectors=5, holdout=0).fit(table, "target")
    found = fitted_model(model, table)
    assert found.model is model.estimator_
    assert found.labels[:2] == ["age", "income"]
    np.testing.assert_allclose(found.given_units(found.X)[:, :2], X, atol=1e-3)


@pytest.mark.parametrize(
    "estimator",
    [
        selector(),
        make_pipeline(StandardScaler(), selector()),
        GridSearchCV(FeatureVectorDiscriminant(), {"prefer": ["sparse"]}),
    ],
)
def test_what_is_not_fitted_says_so(estimator):
    with pytest.raises(NotFittedError, match="is not fitted"):
        fitted_model(estimator)


def test_a_pipeline_without_a_model():
    with pytest.raises(ValueError, match="last step of this Pipeline is 'passthrough'"):
        fitted_model(make_pipeline(StandardScaler(), "passthrough").fit(X), X)


def test_pipelines_inside_of_pipelines_and_searches():
    inner = make_pipeline(SimpleImputer(), StandardScaler(), FeatureVectorDiscriminant())
    search = GridSearchCV(inner, {"featurevectordiscriminant__max_vectors": [2, 3]}, cv=2).fit(FRAME, y)
    found = fitted_model(search, FRAME)
    assert found.model is search.best_estimator_[-1]
    assert found.labels[1] == "income"
    outer = make_pipeline(SimpleImputer(), make_pipeline(StandardScaler(), selector())).fit(FRAME)
    found = fitted_model(outer, FRAME)
    np.testing.assert_allclose(as_numbers(found.X), StandardScaler().fit_transform(X))
    np.testing.assert_allclose(found.given_units(found.X), X)
