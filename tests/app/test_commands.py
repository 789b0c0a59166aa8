import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fewkern
from fewkern.app import jobs
from fewkern.app._commands import app
from fewkern.datasets import make_banana

runner = CliRunner()


def run(*arguments, code=0):
    result = runner.invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def fails(*arguments, match):
    """Exit code 1, one message on stderr, nothing on stdout, no traceback."""
    result = run(*arguments, code=1)
    assert re.search(match, result.stderr), result.stderr
    assert result.stderr.startswith("fewkern: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return result


def banana(n=120):
    X, y = make_banana(n)
    return pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "side": np.where(y == 1, "right", "left")})


def mixed(n=120):
    frame = banana(n)
    frame.insert(0, "colour", np.where(np.arange(n) % 3 == 0, "red", "blue"))
    frame.loc[[3, 5], "x0"] = np.nan
    frame.loc[7, "colour"] = None
    frame.loc[11, "side"] = None
    return frame


def write(frame, suffix, folder):
    path = folder / f"table{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, X=frame[["x0", "x1"]].to_numpy(), y=frame["side"].to_numpy(dtype=str))
    return path


@pytest.fixture
def csv(tmp_path):
    return write(banana(), ".csv", tmp_path)


@pytest.fixture
def model(csv, tmp_path):
    run("fit", csv, "--out", tmp_path / "m.npz", "--holdout", 0, "--max-vectors", 10)
    return tmp_path / "m.npz"


def test_fit_on_the_embedded_table(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "make_banana", lambda n, random_state: make_banana(200, random_state=random_state))
    result = run("fit", "--report", "report.html")
    for word in ("vectors kept", "cross-validated error", "held-out error", "fitted in", "size of the model"):
        assert word in result.stdout
    assert "written: fewkern-model.npz, fewkern-model.png, report.html" in result.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"fewkern-model.npz", "fewkern-model.png", "report.html"}
    assert (tmp_path / "fewkern-model.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_fit_and_predict_from_every_kind_of_table(suffix, tmp_path):
    table = write(banana(), suffix, tmp_path)
    result = run("fit", table, "--out", "m.npz", "--max-vectors", 10)
    assert "no target given: using the last column" in result.stderr
    assert "120 of 2 features" in result.stdout
    predicted = pd.read_csv(_text(run("predict", "m.npz", table).stdout))
    truth = banana()["side"]
    assert np.mean(predicted.iloc[:, 0].to_numpy() == truth.to_numpy()) > 0.8


def _text(content):
    import io

    return io.StringIO(content)


def test_categories_and_missing_values(tmp_path):
    table = tmp_path / "mixed.csv"
    mixed().to_csv(table, index=False)
    result = run("fit", table, "--target", "side", "--out", "m.npz", "--max-vectors", 10)
    assert "1 row without a target was left out" in result.stderr
    assert "column 'x0': 2 missing values replaced by the median" in result.stderr
    assert "column 'colour': 1 missing value counts as no category" in result.stderr
    assert "119 of 4 features" in result.stdout
    assert "features: colour=blue, colour=red, x0, x1" in run("info", "m.npz").stdout
    new = pd.DataFrame({"x1": [0.0, 1.0], "x0": [0.5, np.nan], "colour": ["green", None]})
    new.to_csv("new.csv", index=False)
    result = run("predict", "m.npz", "new.csv")
    assert len(result.stdout.splitlines()) == 3
    assert "column 'colour': 1 of 2 rows has a category that the model does not know ('green')" in result.stderr
    assert run("predict", "m.npz", "new.csv", "--quiet").stderr == ""


def test_a_budget_that_is_too_small_is_a_remark_and_in_the_report(tmp_path):
    x = np.linspace(0, 6, 200)
    pd.DataFrame({"x": x, "up": np.where(np.sin(4 * x) > 0, "yes", "no")}).to_csv("t.csv", index=False)
    settings = ["--model", "discriminant", "--max-vectors", 8, "--holdout", 0]
    result = run("fit", "t.csv", "--out", "m.npz", "--report", "r.html", *settings)
    assert result.stderr.count("still falling") == 1
    assert "the error was still falling at the budget of vectors" in (tmp_path / "r.html").read_text()


def test_predict_to_files(model, csv, tmp_path):
    stdout = run("predict", model, csv, "--proba").stdout
    assert run("predict", model, csv, "--proba", "--out", "p.csv").stdout == ""
    assert (tmp_path / "p.csv").read_text() == stdout
    for name in ("p.tsv", "p.csv.gz", "p.parquet"):
        assert f"written: {name}" in run("predict", model, csv, "--proba", "--out", name).stderr
    for found in (pd.read_csv("p.tsv", sep="\t"), pd.read_csv("p.csv.gz"), pd.read_parquet("p.parquet")):
        pd.testing.assert_frame_equal(found, pd.read_csv("p.csv"), check_dtype=False)
    assert not list(tmp_path.glob(".*.part"))


def test_predict_refuses_tables_that_do_not_fit(model):
    banana()[["x0"]].to_csv("short.csv", index=False)
    fails("predict", model, "short.csv", match=r"the table lacks the column 'x1' that the model was fitted with")
    pd.DataFrame({"x0": ["a", "b"], "x1": [0, 1]}).to_csv("text.csv", index=False)
    fails("predict", model, "text.csv", match="column 'x0' was numeric when the model was fitted, but now holds text")
    fails("predict", model, "none.csv", match="there is no file none.csv")


def test_info_plot_and_report(model, csv, tmp_path):
    assert "written: r.html" in run("report", model, csv, "--out", "r.html").stdout
    assert "<html" in (tmp_path / "r.html").read_text()
    result = run("info", model)
    assert "classify with model kernel, target side" in result.stdout
    assert "features: x0, x1" in result.stdout
    for name, start in (("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")):
        assert f"written: {name}" in run("plot", model, "--out", name).stdout
        assert (tmp_path / name).read_bytes().startswith(start)


def test_other_models_files_are_refused(model, tmp_path):
    fewkern.save(fewkern.FeatureVectorSelector(max_vectors=3).fit(make_banana(20)[0]), "bare.npz")
    fails("info", "bare.npz", match="bare.npz holds a bare FeatureVectorSelector, saved from Python")
    content = model.read_bytes()
    model.write_bytes(content[: len(content) // 2])
    fails("info", model, match="m.npz is not an intact fewkern model file")
    fails("info", "none.npz", match="there is no file none.npz")


def test_arguments_that_do_not_fit(csv, tmp_path):
    fails("fit", csv, "--target", "Side", match=r"no column 'Side'; did you mean 'side'\?")
    fails("fit", csv, "--task", "regress", match="the target 'side' holds text; use the task 'classify'")
    pd.DataFrame(np.zeros((5, 300)), columns=[f"g{k}" for k in range(300)]).to_csv("wide.csv", index=False)
    assert len(fails("fit", "wide.csv", "--target", "nope", match=r"no column 'nope'; .*300 in all").stderr) < 200
    fails("fit", "none.csv", match="there is no file none.csv")
    fails("fit", csv, "--out", "none/m.npz", "--max-vectors", 3, match="the folder none does not exist; make it first")
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,x\n3,x\n4,x\n5,x\n")
    fails("fit", "t.csv", match=r"y has only one class \('x'\)")
    assert {p.name for p in tmp_path.iterdir()} == {"table.csv", "t.csv", "wide.csv"}


def test_usage_errors_have_exit_code_two(csv):
    for arguments in (["fit", "--holdout", "2"], ["fit", "--max-vectors", "0"], ["predict"], ["nonsense"]):
        assert run(*arguments, code=2).stderr
    assert "'balanced', 'accurate', 'sparse'" in run("fit", csv, "--prefer", "fast", code=2).stderr
    assert "'classify', 'regress', 'reduce', 'density'" in run("fit", csv, "--task", "guess", code=2).stderr


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
    path = tmp_path / "few.csv"
    path.write_text("a,y\n1,u\n2,u\n3,v\n4,v\n5,v\n")
    result = run("fit", path, "--target", "y", "--out", tmp_path / "m.npz")
    assert "too few rows of a class to hold any out" in result.stderr
    assert "held-out" not in result.stdout
    assert re.search(r"cross-validated error .* \(5 rows; 95% CI ", result.stdout)
