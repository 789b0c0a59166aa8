import numpy as np
import pytest
from sklearn import inspection

import fewkern
from fewkern.reporting.importances import importances, partial_dependence
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import churn_model, price_model


def test_permutation_importances_of_columns_are_those_of_scikit_learn():
    model, X, y = price_model()
    found = importances(subject_of(model, X, y), 0)
    oracle = inspection.permutation_importance(model, X, y, scoring="neg_mean_absolute_error", random_state=0)
    rises = {d.column: d.increase for d in found.columns}
    # both are means of random shuffles
    tolerance = 4 * oracle.importances_std.max() / np.sqrt(5) * 2
    assert [rises["area"], rises["noise"]] == pytest.approx(oracle.importances_mean, abs=tolerance)
    assert found.useful[0].column == found.columns[0].column == "area"
    assert found.error == pytest.approx(np.abs(model.predict(X) - y).mean())
    assert not found.several


def test_own_importances_are_added_up_over_the_features_of_a_column():
    model, frame, y = churn_model()
    found = importances(subject_of(model, frame, y), 0)
    shares = model[-1].feature_importances_
    own = {column.column: column.share for column in found.columns}
    assert own == pytest.approx({"age": shares[0], "noise": shares[1], "plan": shares[2] + shares[3]})
    assert found.several
    assert found.unused == ("key",)
    assert {column.column for column in found.useful} == {"age", "plan"}


def test_a_model_of_noise_has_no_driver():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.ones(60)
    y[:3] = 0
    model = fewkern.FeatureVectorDiscriminant(max_vectors=2).fit(X, y)
    assert importances(subject_of(model, X, y), 0).useful == ()


def test_partial_effects_are_partial_dependence():
    model, X, y = price_model()
    effect = partial_dependence(subject_of(model, X, y), 0, np.random.default_rng(0))
    assert (effect.column, effect.kind, effect.curves[0][0]) == ("area", "number", "price")
    values = {"area": np.array(effect.values)}
    oracle = inspection.partial_dependence(model, X, ["area"], custom_values=values, kind="average")
    assert effect.curves[0][1] == pytest.approx(oracle["average"][0])


def test_partial_effects_of_a_category_are_of_the_rarer_class():
    model, frame, y = churn_model()
    effect = partial_dependence(subject_of(model, frame, y), 3, np.random.default_rng(0))
    assert set(effect.values) == {"month", "year"}
    rare = y.value_counts().idxmin()
    assert [name for name, _ in effect.curves] == [rare]
    some = np.sort(np.random.default_rng(0).choice(len(frame), 200, replace=False))
    for value, mean in zip(effect.values, effect.curves[0][1]):
        changed = frame.iloc[some].assign(plan=value)
        assert mean == pytest.approx(model.predict_proba(changed)[:, list(model.classes_).index(rare)].mean())


def test_many_columns_are_not_all_tried():
    X = np.random.default_rng(0).normal(size=(40, 300))
    y = X[:, 7] > 0
    found = importances(subject_of(fewkern.FeatureVectorDiscriminant(max_vectors=10).fit(X, y), X, y), 0)
    assert found.left_out == 250
    assert "feature 7" in [d.column for d in found.columns]
