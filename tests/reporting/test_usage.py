import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import fewkern
from fewkern.reporting.holdout import predict_held_out
from fewkern.reporting.subject import subject_of
from fewkern.reporting.usage import usage
from tests.reporting.helpers import QUICK, Table, customers, iris_model, price_model


def of(model, X, y=None, compare=False):
    subject = subject_of(model, X, y)
    return usage(subject, predict_held_out(subject, QUICK) if y is not None else None, compare, 0)


@pytest.mark.parametrize("make", [iris_model, price_model])
def test_beside_a_support_vector_machine(make):
    model, X, y = make()
    own, other = of(model, X, y, compare=True).machines
    core = model[-1] if hasattr(model, "steps") else model
    assert own.vectors == core.n_vectors_
    assert own.nbytes == core.expansion_.nbytes
    assert other.name == ("SVC, grid-searched" if make is iris_model else "SVR, grid-searched")
    # support vectors, their coefficients (one row per pair of classes and more), and constants
    width = X.shape[1]
    assert other.nbytes >= 8 * other.vectors * (width + 1)
    assert own.microseconds > 0
    assert other.error == pytest.approx(own.error, abs=0.2 if make is iris_model else 5000)


def test_too_few_rows_of_a_class_for_a_search():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.zeros(40)
    y[:2] = 1
    model = fewkern.FeatureVectorDiscriminant(max_vectors=3).fit(X, y)
    assert len(of(model, X, y, compare=True).machines) == 1


def test_recipes_of_a_bare_model():
    model, X, y = iris_model()
    recipes = {r.title: r.lines for r in of(model, X, y).recipes}
    assert set(recipes) == {"Python", "C", "ONNX"}
    text = fewkern.to_c(model)
    assert "model_predict(const double *x)" in text
    assert recipes["C"][1].startswith("int class = model_predict(x);")


@pytest.mark.parametrize(
    ("model", "call"),
    [
        (fewkern.ReducedSetDensity(), "model_log_density(x)"),
        (fewkern.FeatureVectorPCA(n_components=2, max_vectors=10), "model_transform(x, out)"),
        (fewkern.FeatureVectorRegressor(max_vectors=5), "model_predict(x, out)"),
    ],
)
def test_the_functions_in_the_recipes_exist(model, call):
    X = iris_model()[1]
    y = X[:, 0] if hasattr(model, "predict") else None
    model = model.fit(X, y) if y is not None else model.fit(X)
    recipes = {r.title: r.lines for r in of(model, X, y).recipes}
    assert call in recipes["C"][1]
    assert call.split("(")[0] + "(const double *x" in fewkern.to_c(model)


def test_recipes_of_a_table():
    frame, y = customers()
    table = frame.assign(churn=y)
    subject = subject_of(Table().fit(table, "churn"), table)
    found = usage(subject, predict_held_out(subject, QUICK), False, 0)
    assert found.recipes[1].lines == ("fewkern predict model.npz table.csv --out predictions.csv",)


def test_what_cannot_be_exported_is_said():
    _, X, y = iris_model()
    model = make_pipeline(PolynomialFeatures(2), fewkern.FeatureVectorDiscriminant(max_vectors=5)).fit(X, y)
    found = of(model, X, y)
    assert [r.title for r in found.recipes] == ["Python"]
    assert found.notes[-1].startswith("No export to C or ONNX: ")
