"""Names and labels of tables and models on a terminal: nothing of them is shown raw."""

import json
import os
import pty
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import fewkern
from fewkern.app._commands import app
from fewkern.datasets import make_banana

pd = pytest.importorskip("pandas")

ESC, BIDI = "\x1b]0;title\x07", "\u202e"


@pytest.fixture
def files(tmp_path):
    """A table and a model of it, with escape sequences in all names and labels."""
    X, y = make_banana(80)
    labels = np.array([f"left{ESC}", f"right{BIDI}"])[y]
    frame = pd.DataFrame({f"a{ESC}": X[:, 0], f"b{BIDI}": X[:, 1], f"side{ESC}": labels})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = fewkern.TableModel(max_vectors=3).fit(frame, f"side{ESC}")
    return tmp_path / "t.csv", model.save(tmp_path / "m.npz")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def assert_safe(text):
    assert text
    assert ESC not in text
    assert BIDI not in text
    assert all(character.isprintable() or character in "\r\n\t" for character in text)


def test_what_the_commands_say(files, tmp_path):
    table, model = files
    for arguments in (
        ("info", model),
        ("info", model, "--json"),
        ("predict", model, table, "--out", tmp_path / "p.csv"),
        ("fit", table, "--max-vectors", 3, "--out", tmp_path / "n.npz", "--picture", tmp_path / "n.png"),
        ("fit", table, "--target", f"none{ESC}"),
        ("info", tmp_path / f"none{ESC}.npz"),
    ):
        found = run(*arguments)
        assert_safe(found.stdout + found.stderr)
    told = json.loads(run("info", model, "--json").stdout)
    assert told["target"] == f"side{ESC}"


def test_predictions_are_data_in_a_pipe_and_text_on_a_terminal(files):
    table, model = files
    assert f"left{ESC}" in run("predict", model, table).stdout
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
