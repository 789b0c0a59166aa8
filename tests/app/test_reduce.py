"""The command line reduces tables with the margin methods."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from fewkern.app._commands import app


@pytest.fixture
def table(tmp_path):
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[y]
    frame.to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path / "iris.csv"


@pytest.mark.parametrize("model", ["embedding", "margins", "soft-margins"])
def test_reduce(table, model):
    run = CliRunner().invoke
    out = table.parent / "model.npz"
    result = run(
        app, ["fit", str(table), "--task", "reduce", "--model", model, "--target", "species", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    scores = table.parent / "scores.csv"
    result = run(app, ["predict", str(out), str(table), "--out", str(scores)])
    assert result.exit_code == 0, result.output
    frame = pd.read_csv(scores)
    assert frame.shape[0] == 150
    assert frame.shape[1] >= 2


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize("model", ["pca", "embedding", "margins", "soft-margins"])
def test_report_and_picture(table, model):
    folder = table.parent
    given = ["--task", "reduce", "--model", model, "--target", "species", "--n-components", 2]
    result = invoke("fit", table, *given, "--out", folder / "m.npz", "--report", folder / "m.html")
    assert result.exit_code == 0, result.output
    assert "components" in result.stdout
    assert ("vectors kept" in result.stdout) == (model == "pca")
    page = (folder / "m.html").read_text()
    assert "4 columns in a few components" in page
    assert (folder / "m.png").stat().st_size > 5000


def test_a_target_of_numbers(table):
    folder = table.parent
    frame = pd.read_csv(table)
    frame["species"] = frame["a"] + 0.5 * frame["b"] + np.sin(np.arange(len(frame)))
    frame.to_csv(table, index=False)
    given = ["--task", "reduce", "--target", "species", "--out", folder / "m.npz"]
    result = invoke("fit", table, *given, "--model", "margins")
    assert result.exit_code == 0, result.output
    result = invoke("fit", table, *given, "--model", "embedding")
    assert result.exit_code == 1
    assert "the target 'species' holds numbers, not classes; use the model 'margins'" in result.stderr
