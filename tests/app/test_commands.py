"""The commands, their options and their errors."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd

import fewkern
from fewkern.app import jobs
from fewkern.datasets import make_banana
from tests.app.running import fails, predicted, run
from tests.tables.examples import banana, patients


def test_fit_on_the_embedded_table(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "make_banana", lambda n, random_state: make_banana(200, random_state=random_state))
    result = run("fit", "--report", "report.html")
    for word in ("vectors kept", "cross-validated error", "held-out error", "fitted in", "size of the model"):
        assert word in result.stdout
    assert "written: fewkern-model.npz, fewkern-model.png, report.html" in result.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"fewkern-model.npz", "fewkern-model.png", "report.html"}
    assert (tmp_path / "fewkern-model.png").read_bytes().startswith(b"\x89PNG")


def test_fit_predict_info_plot_and_report(tmp_path):
    frame = banana()
    np.savez("t.npz", X=frame[["x0", "x1"]].to_numpy(), y=frame["side"].to_numpy(dtype=str))
    result = run("fit", "t.npz", "--out", "m.npz", "--max-vectors", 10)
    assert "no target given: using the last column" in result.stderr
    assert "120 of 2 features" in result.stdout
    assert np.mean(predicted("m.npz", "t.npz")["y"] == frame["side"]) > 0.8
    shown = run("info", "m.npz").stdout
    assert "classify with model kernel, target y" in shown
    assert "features: x0, x1" in shown
    assert "written: r.html" in run("report", "m.npz", "t.npz", "--out", "r.html").stdout
    assert "<html" in (tmp_path / "r.html").read_text()
    for name, start in (("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")):
        assert f"written: {name}" in run("plot", "m.npz", "--out", name).stdout
        assert (tmp_path / name).read_bytes().startswith(start)


def test_a_budget_that_is_too_small_is_a_remark_and_in_the_report(tmp_path):
    x = np.linspace(0, 6, 200)
    pd.DataFrame({"x": x, "up": np.where(np.sin(4 * x) > 0, "yes", "no")}).to_csv("t.csv", index=False)
    settings = ["--model", "discriminant", "--max-vectors", 8, "--holdout", 0]
    result = run("fit", "t.csv", "--out", "m.npz", "--report", "r.html", *settings)
    assert result.stderr.count("still falling") == 1
    assert "the error was still falling at the budget of vectors" in (tmp_path / "r.html").read_text()


def test_groups_weights_and_class_weights():
    patients().assign(w=1.0).to_csv("t.csv", index=False)
    asked = ("--groups", "patient", "--weights", "w", "--class-weight", "balanced", "--n-vectors", 3)
    said = run("fit", "t.csv", "--target", "ill", *asked, "--prefer", "sparse", "--out", "m.npz").stdout
    assert "320 of 4 features, in 40 groups" in said
    assert "of 8 groups the model did not see; weighted; 95% CI" in said
    assert "vectors kept           3 " in said


def test_several_targets():
    patients().to_csv("t.csv", index=False)
    said = run("fit", "t.csv", "--target", "a", "--target", "b", "--drop", "ill", "--out", "m.npz").stdout
    assert "regress with model kernel, targets a, b" in said
    run("predict", "m.npz", "t.csv", "--interval", 0.9, "--id", "patient", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    assert found.columns.tolist() == ["patient", "a", "b", "low a", "high a", "low b", "high b"]
    assert (found["low a"] < found["a"]).all()
    assert (found["b"] < found["high b"]).all()
    fails("fit", "t.csv", "--target", "a", "--target", "b", "--report", "r.html", match="a report is about one target")


def test_other_files_of_models_are_refused(tmp_path):
    fewkern.save(fewkern.FeatureVectorSelector(max_vectors=3).fit(make_banana(20)[0]), "bare.npz")
    fails("info", "bare.npz", match="bare.npz holds a bare FeatureVectorSelector, saved from Python")
    (tmp_path / "half.npz").write_bytes((tmp_path / "bare.npz").read_bytes()[:500])
    fails("info", "half.npz", match="half.npz is not an intact fewkern model file")
    fails("info", "none.npz", match="there is no file none.npz")


def test_arguments_that_do_not_fit(tmp_path):
    banana().to_csv("table.csv", index=False)
    fails("fit", "table.csv", "--target", "Side", match=r"no column 'Side'; did you mean 'side'\?")
    fails("fit", "table.csv", "--task", "regress", match="the target 'side' holds text; use the task 'classify'")
    pd.DataFrame(np.zeros((5, 300)), columns=[f"g{k}" for k in range(300)]).to_csv("wide.csv", index=False)
    assert len(fails("fit", "wide.csv", "--target", "nope", match=r"no column 'nope'; .*300 in all").stderr) < 200
    fails("fit", "none.csv", match="there is no file none.csv")
    fails("fit", "table.csv", "--out", "none/m.npz", match="the folder none does not exist; make it first")
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,x\n3,x\n4,x\n5,x\n")
    fails("fit", "t.csv", match=r"y has only one class \('x'\)")
    assert {p.name for p in tmp_path.iterdir()} == {"table.csv", "t.csv", "wide.csv"}


def test_usage_errors_have_exit_code_two():
    for arguments in (["fit", "--holdout", "2"], ["fit", "--max-vectors", "0"], ["predict"], ["nonsense"]):
        assert run(*arguments, code=2).stderr
    assert "'balanced', 'accurate', 'sparse'" in run("fit", "t.csv", "--prefer", "fast", code=2).stderr
    assert "'classify', 'regress', 'reduce', 'density'" in run("fit", "t.csv", "--task", "guess", code=2).stderr


def test_version_and_help():
    assert run("--version").stdout == f"fewkern {fewkern.__version__}\n"
    for command in ("fit", "predict", "info", "plot"):
        assert command in run("--help").stdout
    shown = run("fit", "--help").stdout
    for word in ("Largest number of vectors", "density", "forward-fisher", "soft-margins", "accurate"):
        assert word in shown


def test_entry_point_in_a_process_of_its_own(tmp_path):
    code = "import sys; sys.argv = ['fewkern', 'info', 'none.npz']; from fewkern.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == "fewkern: load: there is no file none.npz."


def test_too_few_rows_of_a_class_to_hold_out(tmp_path):
    (tmp_path / "few.csv").write_text("a,y\n1,u\n2,u\n3,v\n4,v\n5,v\n")
    result = run("fit", "few.csv", "--target", "y", "--out", "m.npz")
    assert "too few rows of a class to hold any out" in result.stderr
    assert "held-out" not in result.stdout
    assert re.search(r"cross-validated error .* \(5 rows; 95% CI ", result.stdout)
