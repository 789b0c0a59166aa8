"""Two trees take turns: a small repository with a made-up fewkern, of which the second commit lacks something."""

from __future__ import annotations

import subprocess
from shutil import rmtree

import pytest

from benchmarks import times
from benchmarks.times import Times

PACKAGE = """
class Model:
    n_vectors_ = {vectors}
    def __init__(self, **settings):
        pass
    def fit(self, X, y=None):
        return self
FeatureVectorSelector = RecursiveSVM = Model
"""


def git(root, *words):
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", "-C", str(root), *names, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The commit has 4 vectors; the tree, not committed yet, 8 and a density."""
    root = tmp_path / "repository"
    package = root / "src" / "fewkern" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text(PACKAGE.format(vectors=4))
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    package.write_text(PACKAGE.format(vectors=8) + "ForwardDensity = Model\n")
    monkeypatch.setattr(times, "HERE", root)
    return root


def test_both_trees_answer_and_nothing_is_left(root, capsys):
    times.main(["--cases", "selector", "import", "ForwardDensity", "--seconds", "0"])
    printed = capsys.readouterr().out
    rows = {line.split("  ")[0]: line for line in printed.split("range:\n")[1].splitlines()}
    assert "8 / 4" in rows["selector, 20,000 x 20"]
    assert rows["import"].count(" to ") == 1
    assert rows["ForwardDensity"].endswith("failed")
    missing = "module 'fewkern' has no attribute 'ForwardDensity'"
    assert f"ForwardDensity: there: AttributeError: {missing}" in printed
    assert len(git(root, "worktree", "list").splitlines()) == 1


def test_what_cannot_be_compared_is_said(root):
    with pytest.raises(SystemExit, match="no case has one of these words: nothing"):
        times.main(["--cases", "nothing"])
    with pytest.raises(SystemExit, match=r"git worktree: .*nowhere"):
        times.main(["--against", "nowhere"])
    (root / "src" / "fewkern" / "__init__.py").unlink()
    rmtree(root / "src" / "fewkern")
    with pytest.raises(RuntimeError, match="expected the fewkern of"):
        times.Side(root)


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ([(1.2, 1.0), (1.3, 1.0), (1.15, 1.0)], "slower"),
        ([(1.2, 1.0), (1.3, 1.0), (0.99, 1.0)], ""),
        ([(1.05, 1.0), (1.04, 1.0), (1.06, 1.0)], ""),
        ([(0.5, 1.0), (0.9, 1.0), (0.8, 1.0)], "faster"),
        ([], ""),
    ],
)
def test_slower_and_faster_are_what_every_round_says(rounds, verdict):
    assert Times(rounds).verdict == verdict


def test_the_sides_take_turns_at_being_first():
    order = []

    class Fake:
        def __init__(self, name, seconds):
            self.name, self.seconds = name, seconds

        def run(self, case):
            order.append(self.name)
            return {"seconds": self.seconds, "vectors": None}

    found = times.compare("case", Fake("here", 2.0), Fake("there", 1.0), seconds=0.0)
    assert order == ["here", "there", "there", "here"] * 2
    assert found.rounds == [(2.0, 1.0)] * 4
    assert len(times.compare("case", Fake("here", 2.0), Fake("there", 1.0), seconds=16.0).rounds) == 6
