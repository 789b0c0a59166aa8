"""The commands, their options and their errors."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons

import fewkern
from fewkern.app import jobs
from fewkern.datasets import make_banana
from tests.app.running import fails, predicted, run
from tests.tables.examples import banana, mixed, patients


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
    assert run("fit", "t.csv", "--report", "r.html", *settings).stderr.count("still falling") == 1
    assert "the error was still falling at the budget of vectors" in (tmp_path / "r.html").read_text()


def test_groups_weights_and_several_targets():
    patients().assign(w=1.0).to_csv("t.csv", index=False)
    asked = ("--groups", "patient", "--weights", "w", "--class-weight", "balanced", "--n-vectors", 3)
    said = run("fit", "t.csv", "--target", "ill", *asked, "--prefer", "sparse", "--out", "m.npz").stdout
    assert "320 of 4 features, in 40 groups" in said
    assert "of 8 groups the model did not see; weighted; 95% CI" in said
    assert "vectors kept           3 " in said
    two = ("fit", "t.csv", "--target", "a", "--target", "b")
    assert "regress with model kernel, targets a, b" in run(*two, "--drop", "ill", "--out", "m.npz").stdout
    found = predicted("m.npz", "t.csv", "--interval", 0.9, "--id", "patient")
    assert found.columns.tolist() == ["patient", "a", "b", "low a", "high a", "low b", "high b"]
    assert ((found["low a"] < found["a"]) & (found["b"] < found["high b"])).all()
    fails(*two, "--report", "r.html", match="a report is about one target")


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


def test_usage_errors_version_and_help():
    for arguments in (["fit", "--holdout", "2"], ["fit", "--max-vectors", "0"], ["predict"], ["nonsense"]):
        assert run(*arguments, code=2).stderr
    assert "'balanced', 'accurate', 'sparse'" in run("fit", "t.csv", "--prefer", "fast", code=2).stderr
    assert run("--version").stdout == f"fewkern {fewkern.__version__}\n"
    assert {"fit", "predict", "info", "plot"} <= set(run("--help").stdout.split())
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


def test_check_prints_findings_errors_and_rows_and_writes_all_rows(tmp_path):
    X, y = make_moons(200, noise=0.15, random_state=0)
    y[11] = 1 - y[11]
    table = pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "side": np.where(y == 1, "right", "left")})
    table.to_csv("t.csv", index=False)
    shown = run("check", "t.csv", "--target", "side", "--show", "1").stdout
    assert shown.startswith("side: 200 rows, classes\n")
    assert "rows one by one" in shown
    assert "the last fifth of the rows" in shown
    assert "least credible first:\n  row 12: " in shown
    assert shown.count("  row ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    run("check", "t.csv", "--out", "ranked.csv")
    ranked = pd.read_csv("ranked.csv")
    assert ranked["row"][0] == 12
    assert ranked["score"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(ranked.sort_values("row", ignore_index=True)[list(table.columns)], table)


def test_compress_a_classifier_of_a_table():
    frame = mixed(200)
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--target", "side", "--model", "discriminant", "--prefer", "accurate", "--holdout", 0)
    result = run("compress", "fewkern-model.npz", "table.csv", "--vectors", 6, "--tolerance", 0.3)
    assert "written: fewkern-short.npz" in result.stdout
    assert "equal decisions" in result.stdout
    long, short = fewkern.load("fewkern-model.npz"), fewkern.load("fewkern-short.npz")
    assert short.estimator_.n_vectors_ == 6 == short.facts_.vectors
    assert short.facts_.bytes < long.facts_.bytes
    assert np.mean(short.predict(frame) == long.predict(frame)) > 0.9
    run("export", "fewkern-short.npz", "short.c")
    said = run("compress", "fewkern-model.npz", "table.csv", "--vectors", 1, "--tolerance", 0).stderr
    assert "note: compress: 1 vectors do not agree" in said


def test_explain_a_row_column_by_column(tmp_path):
    mixed(120).to_csv("table.csv", index=False)
    run("fit", "table.csv", "--target", "side", "--holdout", 0)
    baseline, *steps, total = (
        run("explain", "fewkern-model.npz", "table.csv", "--row", 8, "--out", "row.png").stdout.strip().splitlines()
    )
    assert baseline.startswith("baseline")
    assert total.startswith("score (positive: ")
    shares = [float(line.split()[-1]) for line in steps]
    assert abs(sum(float(line.split()[-1]) for line in (baseline, *steps)) - float(total.split()[-1])) < 0.01
    assert np.all(np.diff(np.abs(shares)) <= 1e-9)
    cells = pd.read_csv("table.csv", dtype=str).loc[7]
    columns = fewkern.load("fewkern-model.npz").encoder_.columns
    assert sorted(line.split()[0] for line in steps) == sorted(columns)
    assert any(line.startswith(f"{name} = {cells[name]} ") for line in steps for name in columns)
    assert (tmp_path / "row.png").stat().st_size > 1000
    fails("explain", "fewkern-model.npz", "table.csv", "--row", 121, match="no row 121; the table has 120 rows")


def test_reports_count_rows_from_one_too(monkeypatch):
    banana().to_csv("table.csv", index=False)
    run("fit", "table.csv", "--holdout", 0)
    seen = []
    monkeypatch.setattr(fewkern.TableModel, "report", lambda _, rows, *__, **___: seen.append(rows.index[0]))
    run("report", "fewkern-model.npz", "table.csv", "--out", "r.html")
    assert seen == [1]
