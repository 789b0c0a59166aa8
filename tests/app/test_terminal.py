"""Names and labels of tables and models on a terminal: nothing of them is shown raw."""

import json
import os
import pty
import sys

import numpy as np
import pandas as pd
import pytest

import fewkern
from fewkern.datasets import make_banana
from tests.app.running import run

ESC, BIDI, NUL = "\x1b]0;title\x07", "\u202e", "\0"
QUICK = ("--model", "discriminant", "--max-vectors", 3, "--holdout", 0)


def spoiled(name):
    return f"{name}{ESC}{BIDI}{NUL}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table and a model of it, with escape sequences in all names, labels and cells."""
    X, y = make_banana(80)
    frame = pd.DataFrame({spoiled("a"): X[:, 0], spoiled("b"): X[:, 1]})
    frame[spoiled("kind")] = np.array([spoiled("u"), spoiled("v"), None], dtype=object)[np.arange(80) % 3]
    frame[spoiled("key")] = [spoiled(f"key {k}") for k in range(80)]
    frame[spoiled("fixed")] = spoiled("x")
    frame[spoiled("day")] = pd.date_range("2024-01-01", periods=80).strftime("%d/%m/2024")
    frame[spoiled("side")] = np.array([spoiled("left"), spoiled("right")], dtype=object)[y]
    folder = tmp_path_factory.mktemp("terminal")
    frame.to_parquet(folder / "t.parquet")
    frame.assign(**{spoiled("kind"): spoiled("new"), spoiled("a"): spoiled("9 km")}).to_parquet(folder / "new.parquet")
    frame.drop(columns=spoiled("b")).to_parquet(folder / "short.parquet")
    (folder / f"{ESC}.csv").write_text("a,b\n1\n")
    model = fewkern.TableModel(max_vectors=3, holdout=0, model="discriminant").fit(frame, spoiled("side"))
    model.save(folder / "m.npz")
    return folder


def assert_safe(text):
    assert text
    assert all(character.isprintable() or character in "\r\n\t" for character in text), repr(text)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ("fit", "t.parquet", "--out", "n.npz", "--report", "r.html", *QUICK)),
        (0, ("fit", "t.parquet", "--out", "n.npz", "--json", *QUICK)),
        (0, ("fit", "t.parquet", "--groups", spoiled("kind"), "--out", "n.npz", *QUICK)),
        (0, ("check", "t.parquet", "--show", "5")),
        (0, ("predict", "m.npz", "t.parquet", "--out", "p.csv")),
        (0, ("explain", "m.npz", "t.parquet", "--row", "1")),
        (0, ("info", "m.npz")),
        (0, ("info", "m.npz", "--json")),
        (0, ("plot", "m.npz", "--out", "p.png")),
        (0, ("report", "m.npz", "t.parquet", "--out", "r.html")),
        (0, ("export", "m.npz", "m.js")),
        (0, ("compress", "m.npz", "t.parquet", "--vectors", "2", "--tolerance", "0.9", "--out", "s.npz")),
        (1, ("predict", "m.npz", "new.parquet", "--out", "p.csv")),
        (1, ("export", "m.npz", "m.c")),
        (1, ("predict", "m.npz", "short.parquet")),
        (1, ("report", "m.npz", "short.parquet")),
        (1, ("fit", "t.parquet", "--target", spoiled("none"))),
        (1, ("fit", "t.parquet", "--target", spoiled("key"))),
        (1, ("fit", "t.parquet", "--task", "regress")),
        (1, ("check", "t.parquet", "--drop", spoiled("c"))),
        (1, ("fit", f"{ESC}.csv")),
        (1, ("info", f"{ESC}{BIDI}.npz")),
        (1, ("fit", "t.parquet", "--out", f"{ESC}.txt")),
    ],
)
def test_no_command_shows_names_labels_and_cells_raw(folder, monkeypatch, code, arguments):
    monkeypatch.chdir(folder)
    found = run(*arguments, code=code)
    assert_safe(found.stdout + found.stderr)


def test_escapes_are_those_of_json(folder):
    assert json.loads(run("info", folder / "m.npz", "--json").stdout)["target"] == spoiled("side")


def test_predictions_are_data_in_a_pipe_and_text_on_a_terminal(folder):
    table, model = folder / "t.parquet", folder / "m.npz"
    assert spoiled("left") in run("predict", model, table).stdout
    code = "import sys; from fewkern.app import main; sys.argv[1:] = sys.argv[1:]; main()"
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", code, "predict", str(model), str(table), "--quiet"])
    text = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    assert os.waitpid(child, 0)[1] == 0
    assert_safe(text.decode())
    assert r"left\u001b" in text.decode()
