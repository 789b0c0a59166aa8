"""No traceback: whatever happens, one line says what to do, and the details are in a file."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewkern.app
from fewkern.app import _terminal
from fewkern.tables import reading
from tests.app.running import run
from tests.tables.examples import banana


@pytest.fixture(autouse=True)
def _table(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    banana().to_csv("t.csv", index=False)


def broken(error):
    def raising(*_args, **_kwargs):
        raise error

    return raising


@pytest.mark.parametrize("error", [KeyError("x"), AttributeError("a\nb"), Exception()])
def test_what_is_not_foreseen_is_one_line(monkeypatch, error):
    monkeypatch.setattr(sys, "argv", ["fewkern", "fit", "a b.csv"])
    monkeypatch.setattr("fewkern.tables.model.fit_job", broken(error))
    said = run("fit", "t.csv", code=1).stderr
    assert said.count("\n") == 1
    assert said.startswith(f"fewkern: unexpected error: {type(error).__name__}")
    log = Path(re.search(r"The details are in (\S+\.log); please report them", said)[1]).read_text()
    assert "Traceback" in log
    assert "test_errors.py" in log
    assert log.startswith(f"fewkern {fewkern.__version__}, Python ")
    assert "fewkern fit 'a b.csv'\n" in log


def test_an_error_of_another_package_is_not_foreseen(monkeypatch):
    """Raised in C, it has no place but the line of ours that called it."""
    monkeypatch.setattr("fewkern.tables.fitting.linear_predictions", lambda *_: np.zeros(3))
    said = run("fit", "t.csv", "--target", "x1", code=1).stderr
    assert "unexpected error: ValueError: operands could not be" in said


def test_too_little_memory_and_details_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr("fewkern.tables.model.fit_job", broken(MemoryError()))
    assert "there is not enough memory; use fewer rows or columns" in run("fit", "t.csv", code=1).stderr
    monkeypatch.setattr("fewkern.tables.model.fit_job", broken(KeyError("x")))
    monkeypatch.setattr(_terminal, "_log", broken(OSError("full")))
    assert "The details could not be written" in run("fit", "t.csv", code=1).stderr


def test_errors_outside_of_a_command_too(monkeypatch, tmp_path):
    monkeypatch.setattr("fewkern.app._commands._show", broken(KeyError("x")))
    run("fit", "t.csv", "--quiet")
    monkeypatch.setattr(sys, "argv", ["fewkern", "info", str(tmp_path / "fewkern-model.npz")])
    with pytest.raises(SystemExit, match=r"fewkern: unexpected error: KeyError: 'x'\. The details are in"):
        fewkern.app.main()


def test_an_interrupt_while_a_file_is_read(monkeypatch):
    """The reader of pandas sometimes reports Ctrl-C as an error of the source."""
    lost = pd.errors.ParserError("Error tokenizing data. C error: Calling read(nbytes) on source failed.")
    monkeypatch.setattr(reading.pandas(), "read_csv", broken(lost))
    assert run("fit", "t.csv", code=130).stderr == "fewkern: stopped; nothing was written.\n"
