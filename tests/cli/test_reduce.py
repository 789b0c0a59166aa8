"""The command line reduces tables with the margin methods."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from fewkern.cli._app import app


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
