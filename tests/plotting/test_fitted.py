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


def selector():
    return FeatureVectorSelector(max_vectors=4)


def test_the_last_step_of_a_pipeline_and_what_it_sees():
    for given, names in ((X, ["feature 0", "feature 1"]), (FRAME, ["age", "income"])):
        pipeline = make_pipeline(StandardScaler(), selector()).fit(given)
        found = fitted_model(pipeline, given)
        assert found.model is pipeline[-1]
        np.testing.assert_array_equal(found.X, pipeline[0].transform(given))
        assert found.names == names
        assert found.labels == names
        np.testing.assert_allclose(found.given_units(found.X), X)
        assert fitted_model(pipeline).X is None
        assert fitted_model(pipeline).names == names


def test_steps_that_do_nothing_change_no_name():
    pipeline = make_pipeline("passthrough", None, selector()).fit(FRAME)
    assert fitted_model(pipeline, FRAME).labels == ["age", "income"]


def test_steps_that_leave_the_values_alone_change_no_label():
    frame = FRAME.assign(age=np.where(np.arange(60) == 3, np.nan, X[:, 0]))
    filled = fitted_model(make_pipeline(SimpleImputer(), selector()).fit(frame), frame)
    assert filled.labels == ["age", "income"]
    some = make_column_transformer((StandardScaler(), ["income"]), remainder="passthrough")
    pipeline = make_pipeline(some.set_params(verbose_feature_names_out=False), selector()).fit(FRAME)
    found = fitted_model(pipeline, FRAME)
    assert found.labels == ["income", "age"]
    np.testing.assert_allclose(found.given_units(found.X), X[:, ::-1])
    # without samples nobody knows
    assert fitted_model(make_pipeline(SimpleImputer(), selector()).fit(FRAME)).labels[0] == "age (after SimpleImputer)"


def test_a_step_that_changes_more_than_the_unit_is_named():
    logarithm = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    frame = FRAME - FRAME.min()
    found = fitted_model(make_pipeline(logarithm, selector()).fit(frame), frame)
    assert found.labels == ["age (after FunctionTransformer)", "income (after FunctionTransformer)"]
    np.testing.assert_allclose(found.given_units(as_numbers(found.X)), np.log1p(frame))
    turned = make_pipeline(FunctionTransformer(np.negative, feature_names_out="one-to-one"), selector()).fit(FRAME)
    assert fitted_model(turned, FRAME).labels[0] == "age (after FunctionTransformer)"


def test_constant_columns_have_a_unit_too():
    frame = FRAME.assign(age=7.0)
    found = fitted_model(make_pipeline(StandardScaler(), selector()).fit(frame), frame)
    np.testing.assert_allclose(found.given_units(found.X), frame)


def test_steps_that_make_new_features_name_them():
    frame = FRAME.assign(town=np.where(X[:, 0] > 0, "A", "B"))
    encode = make_column_transformer(
        (OneHotEncoder(), ["town"]), remainder=StandardScaler(), verbose_feature_names_out=False
    )
    found = fitted_model(make_pipeline(encode, selector()).fit(frame), frame)
    assert found.names == ["town_A", "town_B", "age", "income"]
    assert found.labels == found.names
    np.testing.assert_allclose(found.given_units(found.X)[:, 2:], X)
    np.testing.assert_array_equal(found.given_units(found.X)[:, 0], frame["town"] == "A")
    assert fitted_model(make_pipeline(PCA(2), selector()).fit(X), X).labels == ["pca0", "pca1"]


def test_the_table_model_of_the_package():
    table = FRAME.assign(town=np.where(X[:, 1] > 0, "A", "B"), target=np.array(["no", "yes"])[y])
    model = TableModel(max_vectors=5, holdout=0).fit(table, "target")
    found = fitted_model(model, table)
    assert found.model is model.estimator_
    assert found.labels[:2] == ["age", "income"]
    np.testing.assert_allclose(found.given_units(found.X)[:, :2], X)


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
