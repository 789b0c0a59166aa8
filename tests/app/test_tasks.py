"""The tasks "density" and "reduce" from the command line: models, predictions, reports and pictures."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from fewkern import load
from fewkern.datasets import make_gaussian_laplacian
from fewkern.tables import MODELS
from tests.app.running import fails, predicted, run

X = make_gaussian_laplacian(150, random_state=0)


@pytest.mark.parametrize("model", MODELS["density"])
def test_a_density(tmp_path, model):
    frame = pd.DataFrame({"length": 100 * X[:, 0], "weight": X[:, 1] - 7})
    frame.to_csv("t.csv", index=False)
    fitted = run("fit", "t.csv", "--task", "density", "--model", model, "--out", "m.npz", "--report", "r.html")
    assert "held-out log density" in fitted.stdout
    assert (tmp_path / "m.png").stat().st_size > 5000
    assert "What is common, and what is rare?" in (tmp_path / "r.html").read_text()
    values = predicted("m.npz", "t.csv")["log_density"]
    # in the units of the table: the same density, the first column counted in hundredths
    direct = clone(load("m.npz").estimator_).fit(frame.to_numpy()).score_samples(frame.to_numpy())
    np.testing.assert_allclose(values, direct, atol=1e-5)
    assert f"density with model {model}" in run("info", "m.npz").stdout
    fails("explain", "m.npz", "t.csv", "--row", 1, match="task 'density' predicts nothing")


def test_a_density_is_of_numbers_in_complete_rows(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 3)), columns=list("abc"))
    frame.loc[:29, "a"] = np.nan
    frame.assign(kind=list("ab") * 75, on=[True, False] * 75).to_csv("t.csv", index=False)
    said = run("fit", "t.csv", "--task", "density", "--out", "m.npz", "--report", "r.html").stderr
    assert "30 rows with missing values left out" in said
    assert "columns 'kind', 'on' are not numeric, as a density needs, and were left out" in said
    assert "UserWarning" not in said
    assert load("m.npz").encoder_.names == ["a", "b", "c"]
    assert (tmp_path / "m.png").stat().st_size > 5000  # of three columns
    run("plot", "m.npz", "--out", "again.png")
    assert "30 of 150 rows have a missing value and so no log density" in run("predict", "m.npz", "t.csv").stderr
    assert predicted("m.npz", "t.csv")["log_density"].isna().sum() == 30


@pytest.fixture
def iris():
    data, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(data, columns=list("abcd"))
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[y]
    frame.to_csv("iris.csv", index=False)
    return frame


@pytest.mark.parametrize("model", MODELS["reduce"])
def test_a_reduction(tmp_path, iris, model):
    given = ["--task", "reduce", "--model", model, "--target", "species"]
    fitted = run("fit", "iris.csv", *given, "--out", "m.npz", "--report", "m.html")
    assert re.search(r"components +2\n", fitted.stdout)
    assert ("vectors kept" in fitted.stdout) == (model == "pca")
    assert "4 columns in a few components" in (tmp_path / "m.html").read_text()
    assert (tmp_path / "m.png").stat().st_size > 5000
    scores = predicted("m.npz", "iris.csv")
    assert scores.columns.tolist() == load("m.npz").estimator_.get_feature_names_out().tolist()
    assert scores.shape == (150, 2)
    if model == "pca":
        fails("plot", "m.npz", match="this model has no path of errors to draw")
        fails("predict", "m.npz", "iris.csv", "--proba", match="--proba: this model gives no probabilities")


def test_a_reduction_with_a_target_of_numbers(iris):
    iris["species"] = iris["a"] + 0.5 * iris["b"] + np.sin(np.arange(len(iris)))
    iris.to_csv("iris.csv", index=False)
    run("fit", "iris.csv", "--task", "reduce", "--target", "species", "--model", "margins")
    wrong = "the target 'species' holds numbers, not classes; use the model 'margins'"
    fails("fit", "iris.csv", "--task", "reduce", "--target", "species", "--model", "embedding", match=wrong)
