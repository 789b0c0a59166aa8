"""What commands write: whole files or none. Where that fails they say so in one line, with the details in a file."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fewkern
from fewkern.app import _terminal, jobs
from fewkern.app._terminal import MODEL, PAGE, Outputs
from tests.app.running import fails, run
from tests.tables.examples import banana

# a classifier that does not try to move its vectors
FAST = ["--max-vectors", 8, "--holdout", 0, "--model", "discriminant"]


@pytest.fixture(autouse=True)
def _table(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    banana().to_csv("t.csv", index=False)


def raising(error):
    def raised(*_, **__):
        raise error

    return raised


def in_a_process(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_no_output_is_an_input(tmp_path):
    before = (tmp_path / "t.csv").read_bytes()
    run("fit", "t.csv", "--out", "m.npz", *FAST)
    (tmp_path / "link.npz").symlink_to("m.npz")
    for arguments in (
        ("predict", "m.npz", "t.csv", "--out", "t.csv"),
        ("check", "t.csv", "--out", tmp_path / "t.csv"),
        ("compress", "m.npz", "t.csv", "--out", "./m"),
        ("compress", "m.npz", "t.csv", "--out", "link.npz"),
    ):
        fails(*arguments, match=r"cannot write .*: that is the file to read")
    assert (tmp_path / "t.csv").read_bytes() == before


def test_two_outputs_of_the_same_name_folders_and_devices(tmp_path):
    outputs = Outputs()
    with outputs.together():
        outputs.write(Path(os.devnull), lambda path: path.write_text("text"))
    assert not Path(os.devnull).is_file()
    outputs.claim(tmp_path / "m.html", PAGE)
    with pytest.raises(ValueError, match="two results would go to the same file"):
        outputs.claim(tmp_path / "m.html", PAGE)
    (tmp_path / "f.npz").mkdir()
    with pytest.raises(ValueError, match="it is a folder"):
        outputs.claim(tmp_path / "f.npz", MODEL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "t.csv", "--out", "m.onnx"], r"ends in .npz \('fewkern export' writes ONNX, C, JavaScript and SQL\)"),
        (["fit", "t.csv", "--picture", "m.txt"], "ends in .png, .pdf, .svg"),
        (["fit", "t.csv", "--report", "m.pdf"], "ends in .html, .htm"),
        (["predict", "m.npz", "t.csv", "--out", "p.xlsx"], r".csv, .tsv, .*\(a spreadsheet program reads .csv\)"),
        (["plot", "m.npz", "--out", "p.csv"], "ends in .png"),
        (["report", "m.npz", "t.csv", "--out", "p.csv"], "ends in .html"),
    ],
)
def test_suffixes_that_lie_are_refused(arguments, message):
    fails(*arguments, match=message)


def test_a_full_disk_is_named_after_the_summary(monkeypatch, tmp_path):
    full = raising(OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(jobs, "save_figure", full)
    result = run("fit", "t.csv", "--out", "m.npz", *FAST, code=1)
    assert "vectors kept" in result.stdout
    assert "fewkern: cannot write m.png: No space left on device; written before: m.npz." in result.stderr
    assert (tmp_path / "m.npz").exists()
    with pytest.raises(OSError, match=r"cannot write m.csv: No space left on device; nothing was written"):
        Outputs().write(Path("m.csv"), full)


def test_an_interrupt_says_what_was_written(monkeypatch):
    monkeypatch.setattr(jobs, "save_figure", raising(KeyboardInterrupt()))
    assert run("fit", "t.csv", "--out", "m.npz", *FAST, code=130).stderr.endswith("fewkern: stopped; written: m.npz.\n")
    monkeypatch.setattr(fewkern.TableModel, "fit", raising(KeyboardInterrupt()))
    result = run("fit", "t.csv", "--out", "n.npz", code=130)
    assert result.stderr.endswith("fewkern: stopped; nothing was written.\n")


def test_a_kill_leaves_the_files_of_one_fit(tmp_path):
    """The process ends in the middle of the report, after the model and the picture are complete."""
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
    (tmp_path / "real.npz").touch()
    result = run("fit", "t.csv", "--out", "m.npz", "--report", "m.html", *FAST)
    assert "written: m.npz (replaced), m.png (replaced), m.html (replaced)\n" in result.stdout
    assert (tmp_path / "m.html").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "m.npz").is_symlink()
    assert fewkern.load("real.npz").target_ == "side"
    assert len(list(tmp_path.glob(".fewkern-*"))) == 2  # of the process that was killed


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


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(argument):
    """Neither scikit-learn nor pandas nor matplotlib: these take longer than all the rest."""
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


def test_json_and_quiet():
    told = json.loads(run("fit", "t.csv", "--out", "m.npz", "--json", "--quiet", "--max-vectors", 8).stdout)
    assert told["task"] == "classify"
    assert told["held_out"]["rows"] == 24
    assert told["facts"]["vectors"] <= 8
    assert told["written"] == ["m.npz", "m.png"]
    assert json.loads(run("info", "m.npz", "--json").stdout)["features"] == ["x0", "x1"]
    assert run("fit", "t.csv", "--out", "m.npz", "--quiet", *FAST).output == ""


def test_info_says_whether_vectors_are_rows():
    run("fit", "t.csv", "--out", "m.npz", "--holdout", 0)
    said = "The vectors that are kept were moved, and are not rows of the table."
    assert f"{said} But novelty is measured by rows" in run("info", "m.npz").stdout
    run("fit", "t.csv", "--model", "discriminant", "--out", "d.npz", "--holdout", 0)
    assert "The vectors that are kept are rows of the table" in run("info", "d.npz").stdout
    run("compress", "d.npz", "t.csv", "--vectors", 3, "--tolerance", 0.5, "--out", "s.npz")
    assert said in (shown := run("info", "s.npz").stdout)
    assert "novelty is measured" not in shown


@pytest.mark.parametrize("error", [KeyError("x"), AttributeError("a\nb"), Exception()])
def test_what_is_not_foreseen_is_one_line(monkeypatch, error):
    monkeypatch.setattr(sys, "argv", ["fewkern", "fit", "a b.csv"])
    monkeypatch.setattr("fewkern.tables.model.fit_job", raising(error))
    said = run("fit", "t.csv", code=1).stderr
    assert said.count("\n") == 1
    assert said.startswith(f"fewkern: unexpected error: {type(error).__name__}")
    log = Path(re.search(r"The details are in (\S+\.log); please report them", said)[1]).read_text()
    assert log.startswith(f"fewkern {fewkern.__version__}, Python ")
    assert "fewkern fit 'a b.csv'\n" in log
    assert "test_outputs.py" in log
    monkeypatch.setattr(_terminal, "_log", raising(OSError("full")))
    assert "The details could not be written" in run("fit", "t.csv", code=1).stderr


def test_errors_of_other_packages_of_memory_and_outside_of_a_command(monkeypatch):
    with monkeypatch.context() as patch:  # raised in C, it has no place but the line of ours that called it
        patch.setattr("fewkern.tables.fitting.linear_predictions", lambda *_: np.zeros(3))
        said = run("fit", "t.csv", "--target", "x1", code=1).stderr
        assert "unexpected error: ValueError: operands could not be" in said
        patch.setattr("fewkern.tables.model.fit_job", raising(MemoryError()))
        assert "there is not enough memory; use fewer rows or columns" in run("fit", "t.csv", code=1).stderr
    monkeypatch.setattr("fewkern.app._commands._show", raising(KeyError("x")))
    run("fit", "t.csv", "--quiet", *FAST)
    monkeypatch.setattr(sys, "argv", ["fewkern", "info", "fewkern-model.npz"])
    with pytest.raises(SystemExit, match=r"fewkern: unexpected error: KeyError: 'x'\. The details are in"):
        fewkern.app.main()
