"""``fewkern export``: what the command line fitted, elsewhere."""

import sys

import numpy as np
import pytest

import fewkern
from fewkern import FeatureVectorRegressor, KernelExpansion, save
from fewkern.app import jobs
from fewkern.datasets import make_sinc
from fewkern.kernels import Gaussian
from tests.app.test_commands import _elsewhere, banana, fails, mixed, run  # noqa: F401 - the fixture works here too
from tests.io.running import Compiled, compile_library, run_onnx


def raw(model, frame):
    """The features of the file: before standardisation, categories as 0 and 1."""
    return model.encoder.encode(frame) * model.encoder.scale + model.encoder.mean


def test_a_classifier_of_a_table_takes_the_units_of_the_table(tmp_path):
    frame = mixed()
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--target", "side", "--max-vectors", 8)
    result = run("export", "fewkern-model.npz", "out.c", "--name", "side", "--dtype", "double")
    text = (tmp_path / "out.c").read_text()
    assert f"written: out.c ({len(text):,} bytes)" in result.stdout
    assert ' * A feature "column=level" is 1 where the column has that level, and 0 elsewhere.' in text
    assert " *   0  colour=blue\n *   1  colour=red\n *   2  x0\n *   3  x1\n" in text
    assert " * Missing numbers are not handled here: put " in text
    model = fewkern.load("fewkern-model.npz")
    X = raw(model, frame)
    code = Compiled(compile_library(tmp_path, text), "side", "double")
    truth = model.estimator.decision_function(model.encoder.encode(frame))
    np.testing.assert_allclose(code.write("decision", X, 1)[:, 0], truth, rtol=0, atol=1e-10)


def test_a_density_of_a_table_is_per_unit_of_its_columns(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    import onnx

    frame = banana(80)[["x0", "x1"]] * 50
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--task", "density", "--holdout", 0)
    run("export", "fewkern-model.npz", "out.onnx", "--dtype", "double")
    model = fewkern.load("fewkern-model.npz")
    found = run_onnx(onnx.load("out.onnx"), frame.to_numpy(), "double")["log_density"]
    truth = jobs.predict_table(model, frame)["log_density"]
    np.testing.assert_allclose(found[:, 0], truth, rtol=0, atol=1e-10)


def test_a_model_saved_from_python(tmp_path):
    model = FeatureVectorRegressor(max_vectors=5).fit(*make_sinc(60))
    save(model, "m.npz")
    run("export", "m.npz", "m.c")
    assert (tmp_path / "m.c").read_text() == fewkern.to_c(model)


def test_a_warning_is_a_note(tmp_path):
    near = np.array([[0.0], [1e-4]])
    model = FeatureVectorRegressor(max_vectors=2).fit(*make_sinc(60))
    model.expansion_ = KernelExpansion(Gaussian(1.0), near, np.array([[1e5], [-1e5]]), np.zeros(1))
    save(model, "m.npz")
    result = run("export", "m.npz", "m.c", "--dtype", "float")
    assert result.stderr.startswith('note: to_c: with dtype="float" rounding may change the outputs')
    assert "written: m.c" in result.stdout


def test_problems(monkeypatch):
    save(FeatureVectorRegressor(max_vectors=5).fit(*make_sinc(60)), "m.npz")
    fails("export", "m.npz", "m.txt", match=r"m.txt: expected a file that ends in .onnx or .c, got '.txt'")
    fails("export", "absent.npz", "m.c", match="there is no file absent.npz")
    fails("export", "m.npz", "m.c", "--name", "a b", match="name must be a C identifier")
    fails("export", "m.npz", "m.onnx", "--name", "sinc", match="--name is the beginning of names in C")
    fails("export", "m.npz", "m.c", "--dtype", "half", match='dtype must be "float" or "double"')
    monkeypatch.setitem(sys.modules, "onnx", None)
    fails("export", "m.npz", "m.onnx", match=r"pip install 'fewkern\[export\]'")
