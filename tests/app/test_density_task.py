"""The command line with --task density, and densities in files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from fewkern import (
    DensityClassifier,
    ForwardConstrainedDensity,
    ForwardDensity,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
    load,
    save,
)
from fewkern.app._commands import app
from fewkern.datasets import make_banana, make_gaussian_laplacian

X = make_gaussian_laplacian(150, random_state=0)
run = CliRunner().invoke


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({"length": 100 * X[:, 0], "weight": X[:, 1] - 7}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("model", ["forward", "parzen", "reduced", "orthogonal"])
def test_fit_predict_info_plot(table, tmp_path, model):
    out = tmp_path / "model.npz"
    result = run(
        app, ["fit", str(table), "--task", "density", "--model", model, "--out", str(out),
              "--report", str(tmp_path / "report.html")]
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "held-out log density" in result.output
    assert out.with_suffix(".png").stat().st_size > 5000
    page = (tmp_path / "report.html").read_text()
    assert "What is common, and what is rare?" in page

    result = run(app, ["predict", str(out), str(table)])
    values = pd.read_csv(pd.io.common.StringIO(result.output))["log_density"]
    # in the units of the table: the same density, the first column counted in hundredths
    frame = pd.read_csv(table)
    fitted = load(out)
    direct = clone(fitted.estimator_).fit(frame.to_numpy()).score_samples(frame.to_numpy())
    np.testing.assert_allclose(values, direct, atol=1e-5)

    assert "density with model" in run(app, ["info", str(out)]).output
    result = run(app, ["plot", str(out), "--out", str(tmp_path / "again.png")])
    assert result.exit_code == 0, result.output


def test_a_picture_of_three_columns(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.npz"
    pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc")).to_csv(path, index=False)
    result = run(app, ["fit", str(path), "--task", "density", "--out", str(out), "--report", str(tmp_path / "r.html")])
    assert result.exit_code == 0, result.output
    assert out.with_suffix(".png").stat().st_size > 5000
    result = run(app, ["plot", str(out), "--out", str(tmp_path / "again.png")])
    assert result.exit_code == 0


def test_text_columns_are_left_out(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"x": X[:50, 0], "kind": list("ab") * 25, "on": [True, False] * 25}).to_csv(path, index=False)
    result = run(app, ["fit", str(path), "--task", "density", "--out", str(tmp_path / "m.npz")])
    assert result.exit_code == 0
    assert "columns 'kind', 'on' are no numbers, which a density needs, and left out" in result.stderr
    assert load(tmp_path / "m.npz").encoder_.names == ["x"]


@pytest.mark.parametrize(
    "density",
    [
        ParzenDensity(),
        ForwardDensity(),
        ForwardDensity(criterion="squared_error"),
        ForwardConstrainedDensity(scale="whiten"),
        ReducedSetDensity(),
        OrthogonalForwardDensity(),
    ],
    ids=lambda d: f"{type(d).__name__}-{getattr(d, 'criterion', '')}",
)
def test_saved_densities_come_back(density, tmp_path):
    model = clone(density).fit(X)
    again = load(save(model, tmp_path / "density"))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.sample(3, random_state=0), model.sample(3, random_state=0))
    assert again.stop_ == model.stop_
    assert again.path_.axes == model.path_.axes
    np.testing.assert_array_equal(again.path_.error, model.path_.error)
    assert again.get_params() == model.get_params()


def test_saved_classifier_comes_back(tmp_path):
    Z, y = make_banana(200, random_state=0)
    model = DensityClassifier(estimator=ForwardDensity(cv=None)).fit(Z, y)
    again = load(save(model, tmp_path / "classifier"))
    np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
