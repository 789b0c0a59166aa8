"""What a person meets who comes with a table of their own: files, options, notes, and nothing lost."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewkern
from fewkern.app import jobs
from fewkern.app._terminal import MODEL, PAGE, Outputs
from tests.app.test_commands import _text, banana, fails, run

QUICK = ["--max-vectors", 8, "--holdout", 0]
# a classifier that does not try to move its vectors
FAST = [*QUICK, "--model", "discriminant"]


def predicted(*arguments):
    return pd.read_csv(_text(run("predict", *arguments).stdout))


# A: what changed the meaning of a table


def test_the_summary_judges():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": np.where(np.arange(200) % 4 == 0, "yes", "no")})
    frame.to_csv("noise.csv", index=False)
    result = run("fit", "noise.csv", "--out", "m.npz", "--max-vectors", 8, "--model", "discriminant")
    assert "no better than always answering 'no'" in result.stdout
    assert re.search(r"held-out error +25.0% \(40 rows the model did not see; 95% CI 14.\d–40.\d%\)", result.stdout)
    assert re.search(r"found +0 of 10 rows of class 'yes'", result.stdout)
    assert "no better than always answering 'no'" in run("info", "m.npz").stdout
    frame.assign(y=np.where(np.arange(200) == 5, "yes", "no")).to_csv("one.csv", index=False)
    result = run("fit", "one.csv", "--out", "m.npz", "--max-vectors", 8)
    assert "the class 'yes' has only one row, too few to learn" in result.stderr
    assert "no better than always answering 'no'" in result.stdout


# B: what was lost


def test_no_output_is_an_input_or_another_output(tmp_path):
    frame = banana()
    np.savez("data.npz", X=frame[["x0", "x1"]].to_numpy(), y=frame["side"].to_numpy(dtype=str))
    before = (tmp_path / "data.npz").read_bytes()
    fails("fit", "data.npz", "--out", "data.npz", match="cannot write data.npz: that is the file to read")
    fails("fit", "data.npz", "--out", tmp_path / "data.npz", match="that is the file to read")
    fails("fit", "data.npz", "--out", "./data", match="that is the file to read")
    (tmp_path / "link.npz").symlink_to("data.npz")
    fails("fit", "data.npz", "--out", "link.npz", match="that is the file to read")
    frame.to_csv("t.csv", index=False)
    fails("fit", "t.csv", "--out", "m.npz", "--picture", "m.png", "--report", "m.npz", match="ends in .html, .htm")
    run("fit", "t.csv", "--out", "m.npz", *FAST)
    fails("predict", "m.npz", "t.csv", "--out", "t.csv", match="that is the file to read")
    fails("compress", "m.npz", "t.csv", "--out", "m.npz", match="that is the file to read")
    assert (tmp_path / "data.npz").read_bytes() == before


def test_two_outputs_of_the_same_name(tmp_path):
    outputs = Outputs("t.csv")
    outputs.claim(tmp_path / "m.html", PAGE)
    with pytest.raises(ValueError, match="two results would go to the same file"):
        outputs.claim(tmp_path / "m.html", PAGE)
    (tmp_path / "f.npz").mkdir()
    with pytest.raises(ValueError, match="it is a folder"):
        outputs.claim(tmp_path / "f.npz", MODEL)


def test_replaced_files_are_named():
    banana().to_csv("t.csv", index=False)
    assert "written: m.npz, m.png\n" in run("fit", "t.csv", "--out", "m.npz", *FAST).stdout
    assert "written: m.npz (replaced), m.png (replaced)\n" in run("fit", "t.csv", "--out", "m.npz", *FAST).stdout


def test_a_full_disk_is_named_after_the_summary(monkeypatch, tmp_path):
    banana().to_csv("t.csv", index=False)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jobs, "save_figure", full)
    result = run("fit", "t.csv", "--out", "m.npz", *FAST, code=1)
    assert "vectors kept" in result.stdout
    assert "fewkern: cannot write m.png: No space left on device; written before: m.npz." in result.stderr
    assert (tmp_path / "m.npz").exists()
    with pytest.raises(OSError, match=r"cannot write m.csv: No space left on device; nothing was written"):
        Outputs().write(tmp_path.relative_to(tmp_path) / "m.csv", full)


def test_an_interrupt_says_what_was_written(monkeypatch):
    banana().to_csv("t.csv", index=False)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "save_figure", stop)
    assert run("fit", "t.csv", "--out", "m.npz", *FAST, code=130).stderr.endswith("fewkern: stopped; written: m.npz.\n")
    monkeypatch.setattr(fewkern.TableModel, "fit", stop)
    result = run("fit", "t.csv", "--out", "n.npz", code=130)
    assert result.stderr.endswith("fewkern: stopped; nothing was written.\n")


def test_a_kill_leaves_the_files_of_one_fit(tmp_path):
    """The process ends in the middle of the report, after the model and the picture are complete."""
    banana().to_csv("t.csv", index=False)
    names = ["m.npz", "m.png", "m.html"]
    for name in names:
        (tmp_path / name).write_text("old")
    code = """
import os, signal, sys
from fewkern.tables.model import TableModel
TableModel.report = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
from fewkern.app import main
main()
"""
    done = in_a_process(code, "fit", "t.csv", "--out", "m.npz", "--report", "m.html", *FAST)
    assert done.returncode == -9
    assert [(tmp_path / name).read_text() for name in names] == ["old"] * 3
    (tmp_path / "m.html").chmod(0o600)
    (tmp_path / "m.npz").unlink()
    (tmp_path / "m.npz").symlink_to(tmp_path / "real.npz")
    run("fit", "t.csv", "--out", "m.npz", "--report", "m.html", *FAST)
    assert (tmp_path / "m.html").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "m.npz").is_symlink()
    assert fewkern.load("real.npz").target_ == "side"
    assert len(list(tmp_path.glob(".fewkern-*"))) == 2  # of the process that was killed


def test_a_device_is_written_to():
    banana().to_csv("t.csv", index=False)
    run("fit", "t.csv", "--out", "m.npz", *FAST)
    outputs = Outputs()
    with outputs.together():
        outputs.write(Path(os.devnull), lambda path: path.write_text("text"))
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "t.csv", "--out", "m.onnx"], r"ends in .npz \('fewkern export' writes ONNX, C, JavaScript and SQL\)"),
        (["fit", "t.csv", "--picture", "m.txt"], "ends in .png, .pdf, .svg"),
        (["fit", "t.csv", "--report", "m.pdf"], "ends in .html, .htm"),
        (
            ["predict", "m.npz", "t.csv", "--out", "p.xlsx"],
            r"ends in .csv, .tsv, .*\(a spreadsheet program reads .csv\)",
        ),
        (["plot", "m.npz", "--out", "p.csv"], "ends in .png"),
        (["report", "m.npz", "t.csv", "--out", "p.csv"], "ends in .html"),
    ],
)
def test_suffixes_that_lie_are_refused(arguments, message):
    banana().to_csv("t.csv", index=False)
    fails(*arguments, match=message)


# C: files as they come, and options


def test_a_table_without_rows_has_an_empty_result():
    banana().to_csv("t.csv", index=False)
    run("fit", "t.csv", "--out", "m.npz", *FAST)
    banana().head(0).to_csv("none.csv", index=False)
    assert run("predict", "m.npz", "none.csv").stdout == "side\n"
    assert run("predict", "m.npz", "none.csv", "--proba", "--with-input").stdout == (
        "x0,x1,side,predicted side,p(left),p(right)\n"
    )


def in_a_process(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_an_interrupt_while_modules_are_imported_is_clean():
    code = """
import sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from fewkern.app import main
main()
"""
    done = in_a_process(code, "fit")
    assert done.returncode == 130
    assert done.stderr == "fewkern: stopped; nothing was written.\n"


def test_version_and_help_import_nothing_heavy():
    """Neither scikit-learn nor pandas nor matplotlib: these take longer than all the rest."""
    for argument in ("--version", "--help"):
        code = f"""
import sys
sys.argv = ["fewkern", {argument!r}]
from fewkern.app import main
try:
    main()
finally:
    print(sorted({{"sklearn", "pandas", "matplotlib", "scipy", "numpy", "rich"}} & set(sys.modules)), file=sys.stderr)
"""
        assert in_a_process(code).stderr.strip() == "[]"


# predictions beside what they are about


def test_predictions_beside_the_input():
    frame = banana().assign(who=[f"n{k}" for k in range(120)])
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "side", "--out", "m.npz", *FAST)
    by_id = predicted("m.npz", "t.csv", "--id", "who")
    assert by_id.columns.tolist() == ["who", "side"]
    assert by_id["who"].tolist() == frame["who"].tolist()
    beside = predicted("m.npz", "t.csv", "--with-input")
    assert beside.columns.tolist() == ["x0", "x1", "side", "who", "predicted side"]
    assert beside["side"].tolist() == frame["side"].tolist()
    fails("predict", "m.npz", "t.csv", "--id", "Who", match=r"--id: there is no column 'Who'; did you mean 'who'\?")


def test_no_formula_goes_to_a_spreadsheet():
    frame = banana().rename(columns={"x0": "=1+x0"})
    frame["side"] = frame["side"].map({"left": "=HYPERLINK(1)", "right": "@right"})
    frame["by"] = ["-5", "+1,5", "-2+3|cmd", "\tx"] * 30
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "side", "--out", "m.npz", *FAST)
    found = predicted("m.npz", "t.csv", "--with-input", "--no-formulas")
    assert found.columns.tolist() == ["'=1+x0", "x1", "side", "by", "predicted side"]
    assert set(found["side"]) == {"'=HYPERLINK(1)", "'@right"}
    assert found["by"].tolist()[:4] == ["-5", "+1,5", "'-2+3|cmd", "'\tx"]
    assert set(predicted("m.npz", "t.csv")["side"]) == {"=HYPERLINK(1)", "@right"}
    run("predict", "m.npz", "t.csv", "--id", "=1+x0", "--no-formulas", "--out", "p.tsv")
    assert Path("p.tsv").read_text().startswith("'=1+x0\tside\n-1.1")
    run("check", "t.csv", "--target", "side", "--no-formulas", "--out", "c.csv")
    checked = pd.read_csv("c.csv")
    assert not checked.astype(str).map(lambda cell: cell.startswith(("=", "@"))).any(axis=None)


def test_a_table_with_the_target_is_scored():
    frame = banana()
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--out", "m.npz", *FAST)
    model = fewkern.load("m.npz")
    wrong = int(np.sum(model.predict(frame) != frame["side"]))
    assert f"the table has the target 'side': {wrong} of 120 rows are wrong" in run("predict", "m.npz", "t.csv").stderr
    frame[["x0", "x1"]].to_csv("bare.csv", index=False)
    assert run("predict", "m.npz", "bare.csv").stderr == ""
    run("fit", "t.csv", "--target", "x1", "--drop", "side", "--out", "r.npz", *QUICK)
    assert re.search(
        r"the table has the target 'x1': RMSE [\d.]+, R² [\d.-]+ on 120 rows", run("predict", "r.npz", "t.csv").stderr
    )


def test_trust_beside_a_prediction():
    frame = banana()
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "x1", "--drop", "side", "--out", "r.npz", *QUICK)
    run("fit", "t.csv", "--out", "c.npz", *QUICK)
    fails("predict", "c.npz", "t.csv", "--interval", 0.9, match="--interval: this model gives no intervals")
    fails("predict", "r.npz", "t.csv", "--sets", 0.9, match="--sets: this model gives no sets of classes")
    fails("predict", "r.npz", "t.csv", "--interval", 1.5, match="coverage must be")
    found = predicted("r.npz", "t.csv", "--interval", 0.8, "--novelty")
    assert found.columns.tolist() == ["x1", "low", "high", "novelty", "novel"]
    assert np.mean((found["low"] <= frame["x1"]) & (frame["x1"] <= found["high"])) > 0.7
    regressor = fewkern.load("r.npz")
    assert (found["novel"] == (regressor.novelty(frame) > regressor.estimator_.novelty_threshold())).all()
    assert predicted("r.npz", "t.csv", "--interval", 0.8)["low"].gt(found["low"] - 1e-9).all()
    sets = predicted("c.npz", "t.csv", "--sets", 0.95)["set"].fillna("")
    assert set(sets) <= {"", "left", "right", "left | right"}
    assert np.mean([side in held.split(" | ") for side, held in zip(frame["side"], sets)]) > 0.9
    frame.assign(x0=1e6).to_csv("far.csv", index=False)
    assert predicted("c.npz", "far.csv", "--novelty")["novel"].all()


def test_json_and_quiet():
    banana().to_csv("t.csv", index=False)
    told = json.loads(run("fit", "t.csv", "--out", "m.npz", "--json", "--quiet", "--max-vectors", 8).stdout)
    assert told["task"] == "classify"
    assert told["held_out"]["rows"] == 24
    assert told["facts"]["vectors"] <= 8
    assert told["written"] == ["m.npz", "m.png"]
    assert json.loads(run("info", "m.npz", "--json").stdout)["features"] == ["x0", "x1"]
    quiet = run("fit", "t.csv", "--out", "m.npz", "--quiet", *FAST)
    assert quiet.output == ""


def test_info_says_whether_vectors_are_rows():
    banana().to_csv("t.csv", index=False)
    run("fit", "t.csv", "--out", "m.npz", "--holdout", 0)
    said = "The vectors that are kept were moved, and are not rows of the table."
    assert f"{said} But novelty is measured by rows" in run("info", "m.npz").stdout
    run("fit", "t.csv", "--model", "discriminant", "--out", "d.npz", "--holdout", 0)
    assert "The vectors that are kept are rows of the table" in run("info", "d.npz").stdout
    run("compress", "d.npz", "t.csv", "--vectors", 3, "--tolerance", 0.5, "--out", "s.npz")
    assert said in (shown := run("info", "s.npz").stdout)
    assert "novelty is measured" not in shown
