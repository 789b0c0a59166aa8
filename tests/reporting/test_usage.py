import html
import re

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import fewkern
from fewkern.reporting.comparison import usage
from fewkern.reporting.evaluation import predict_held_out
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, iris_model, price_model


def of(model, X, y, compare=False):
    subject = subject_of(model, X, y)
    return usage(subject, predict_held_out(subject, QUICK), compare, 0)


@pytest.mark.parametrize(("make", "name", "off"), [(iris_model, "SVC", 0.2), (price_model, "SVR", 5000)])
def test_beside_a_support_vector_machine(make, name, off):
    model, X, y = make()
    own, other = of(model, X, y, compare=True).machines
    core = model[-1] if hasattr(model, "steps") else model
    assert (own.vectors, own.nbytes) == (core.n_vectors_, core.expansion_.nbytes)
    assert other.name == f"{name}, grid-searched"
    # support vectors, their coefficients (one row per pair of classes and more), and constants
    assert other.nbytes >= 8 * other.vectors * (X.shape[1] + 1)
    assert own.microseconds > 0
    assert other.error == pytest.approx(own.error, abs=off)


def test_too_few_rows_of_a_class_for_a_search():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) < 2
    model = fewkern.FeatureVectorDiscriminant(max_vectors=3).fit(X, y)
    assert len(of(model, X, y, compare=True).machines) == 1


def recipes(model, X, y=None):
    """Lines to copy, by their titles on the page."""
    page = fewkern.report(model, X, y, settings=QUICK).html
    found = re.findall(r"<div><h3>(.*?)</h3>\s*<pre>(.*?)</pre>", page, flags=re.DOTALL)
    return {title: html.unescape(lines).split("\n") for title, lines in found}


@pytest.mark.parametrize(
    ("model", "call"),
    [
        (fewkern.FeatureVectorDiscriminant(max_vectors=5), "int class = model_predict(x);"),
        (fewkern.ReducedSetDensity(), "double value = model_log_density(x);"),
        (fewkern.FeatureVectorPCA(n_components=2, max_vectors=10), "model_transform(x, out);"),
        (fewkern.FeatureVectorRegressor(max_vectors=5), "model_predict(x, out);"),
    ],
)
def test_the_functions_in_the_recipes_exist(model, call):
    _, X, y = iris_model()
    y = (y if is_classifier(model) else X[:, 0]) if hasattr(model, "predict") else None
    found = recipes(model.fit(X, y), X, y)
    assert list(found) == ["Python", "C", "ONNX"]
    assert hasattr(model, found["Python"][-1].removeprefix("model.").removesuffix("(rows)"))
    assert found["C"] == ['fewkern.to_c(model, "model.c")', f"{call}  /* no library needed */"]
    assert re.search(r"model_\w+\(", call)[0] + "const double *x" in fewkern.to_c(model)
    assert found["ONNX"] == ['fewkern.to_onnx(model, "model.onnx")']


def test_what_cannot_be_exported_is_said():
    _, X, y = iris_model()
    model = make_pipeline(PolynomialFeatures(2), fewkern.FeatureVectorDiscriminant(max_vectors=5)).fit(X, y)
    assert list(recipes(model, X, y)) == ["Python"]
    assert of(model, X, y).notes[-1].startswith("No export to C or ONNX: ")
