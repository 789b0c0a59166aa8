"""``fewkern export``: what the command line fitted, elsewhere."""

import sys

import numpy as np
import pandas as pd
import pytest

import fewkern
from fewkern import FeatureVectorRegressor, KernelRegressor, save
from fewkern.datasets import make_sinc
from tests.app.running import fails, run
from tests.io.running import Compiled, compile_library, run_onnx
from tests.tables.examples import banana, mixed


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("merge", [False, True])
def test_a_classifier_of_a_table_takes_the_cells_of_the_table(tmp_path, merge):
    """Categories by their texts, in any spelling that was seen, NaN for what is missing: the file does the rest."""
    frame = mixed()
    if merge:
        frame.loc[::4, "colour"] = frame.loc[::4, "colour"].str.upper()
    model = fewkern.TableModel(max_vectors=8, holdout=0, merge_spellings=merge).fit(frame, "side")
    assert model.encoder_.names[:2] == ["colour=blue", "colour=red"]
    text = fewkern.to_c(model, name="side")
    assert " *   0  colour\n *   1  x0\n *   2  x1\n" in text
    assert f"x[0] is a text: put side_code(0, text) there. Its {4 if merge else 2} categories:" in text
    assert "A missing number (NaN; null in JavaScript, NULL in SQL) is replaced by the median of its column." in text
    codes = frame["colour"].map({"blue": 0, "red": 1, "BLUE": 2, "RED": 3}).fillna(-1)
    X = np.column_stack([codes, frame["x0"], frame["x1"]])
    assert np.isnan(X).sum() == 2
    code = Compiled(compile_library(tmp_path, text), "side", "double")
    truth = model.estimator_.decision_function(model.encoder_.transform(frame))
    np.testing.assert_allclose(code.write("decision", X, 1)[:, 0], truth, rtol=0, atol=1e-10)
    again = fewkern.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_a_classifier_of_a_table_in_onnx(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    frame = mixed()
    model = fewkern.TableModel(max_vectors=8, holdout=0).fit(frame, "side")
    assert model.export(tmp_path / "out.onnx", dtype="double") == tmp_path / "out.onnx"
    onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"))
    session = ort.InferenceSession(str(tmp_path / "out.onnx"))
    numbers = frame[["x0", "x1"]].to_numpy()
    texts = frame[["colour"]].astype(object).where(frame[["colour"]].notna(), "").to_numpy()
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"X": numbers, "T": texts})))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), atol=1e-10)
    assert list(found["label"]) == model.predict(frame).tolist()


def test_dates_are_inputs_by_their_parts():
    """Their numbers are those of tests/io/test_c_test.py."""
    days = pd.date_range("2020-01-01", periods=60).astype(str)
    model = fewkern.TableModel(max_vectors=3, holdout=0).fit({"day": days, "y": np.sin(np.arange(60) / 9)}, "y")
    text = fewkern.to_c(model, name="m")
    assert "Inputs of the date 'day': days since 1970-01-01 (fitted: 2020-01-01 to 2020-02-29);" in text
    assert "sine and cosine of 2 pi (floor(days) + 3) / 7" in text


def test_a_density_of_a_table_is_per_unit_of_its_columns(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    import onnx

    frame = banana(80)[["x0", "x1"]] * 50
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--task", "density", "--holdout", 0)
    run("export", "fewkern-model.npz", "out.onnx", "--dtype", "double")
    found = run_onnx(onnx.load("out.onnx"), frame.to_numpy(), "double")["log_density"]
    truth = fewkern.load("fewkern-model.npz").score_samples(frame)
    np.testing.assert_allclose(found[:, 0], truth, rtol=0, atol=1e-10)


def test_problems(monkeypatch):
    save(FeatureVectorRegressor(max_vectors=5).fit(*make_sinc(60)), "m.npz")
    with pytest.raises(ValueError, match=r"m.txt: expected a file that ends in .*, .mjs or .sql, got '.txt'"):
        fewkern.TableModel(holdout=0, max_vectors=3).fit(banana(), "side").export("m.txt")
    fails("export", "absent.npz", "m.c", match="there is no file absent.npz")
    for arguments, message in (
        (["m.txt"], r"cannot write m.txt: expected a file that ends in .onnx, .c"),
        (["m.c", "--name", "a b"], "name must be a C identifier"),
        (["m.c", "--coverage", 2], "coverage"),
        (["m.js", "--dtype", "float"], "m.js: to_js has no option 'dtype'; leave it out"),
        (["m.sql", "--coverage", 0.9], "m.sql: to_sql has no option 'coverage'; leave it out"),
        (["m.onnx", "--explain"], "m.onnx: to_onnx has no option 'explain'; leave it out"),
        (["m.ino"], "write m.ino as m/m.ino, not as m.ino"),
        (["a/b/b.ino"], "the folder a/b does not exist; make it first"),
    ):
        fails("export", "m.npz", *arguments, match=message)
    assert "'float', 'double', 'int16'" in run("export", "m.npz", "m.c", "--dtype", "half", code=2).stderr
    monkeypatch.setitem(sys.modules, "onnx", None)
    fails("export", "m.npz", "m.onnx", match="to_onnx needs onnx: pip install onnx")


def test_intervals_and_novelty_go_along(tmp_path):
    X, y = make_sinc(150, noise=0.2, random_state=0)
    frame = pd.DataFrame({"x": 10 + 3 * X[:, 0], "y": y})
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--target", "y", "--max-vectors", 8)
    run("export", "fewkern-model.npz", "out.c", "--coverage", 0.8, "--false-alarms", 0.1)
    model = fewkern.load("fewkern-model.npz")
    code = Compiled(compile_library(tmp_path, (tmp_path / "out.c").read_text()), "model", "double")
    new = frame[["x"]]
    np.testing.assert_allclose(code.write("interval", new.to_numpy(), 2), model.predict_interval(new, 0.8), atol=1e-8)
    path = model.export(tmp_path / "again.c", coverage=0.8, false_alarms=0.1)
    assert path.read_text() == (tmp_path / "out.c").read_text()
    assert "novelty" in path.read_text()


def test_all_languages_from_the_command_line(tmp_path):
    model = KernelRegressor(n_vectors=4).fit(*make_sinc(80))
    save(model, "m.npz")
    result = run("export", "m.npz", "sinc/sinc.ino", "--dtype", "int16", "--name", "sinc")
    assert "written: sinc/sinc.ino (" in result.stdout
    assert "bytes), and sinc.c, and sinc.h" in result.stdout
    assert "sinc_quantize(x, numbers);" in (tmp_path / "sinc" / "sinc.ino").read_text()
    run("export", "m.npz", "m.c", "--explain")
    assert "void model_explain(const double *x, double *out)" in (tmp_path / "m.h").read_text()
    for name in ("m.js", "m.mjs", "m.sql"):
        run("export", "m.npz", name)
    assert (tmp_path / "m.js").read_text() == (tmp_path / "m.mjs").read_text() == fewkern.to_js(model)
    assert (tmp_path / "m.sql").read_text().endswith(fewkern.to_sql(model) + "\n")
