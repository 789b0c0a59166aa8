"""The frontier's results: kept, taken up again, measured anew, averaged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import frontier
from benchmarks.frontier import Frontier
from benchmarks.frontier_picture import draw_average, draw_sets
from benchmarks.methods import METHODS, Method
from experiments.store import Store


class Counting:
    """A method that notes how often it runs; its errors are given."""

    def __init__(self, errors, own=True):
        self.errors, self.own, self.calls = iter(errors), own, 0

    def __call__(self, data, found):
        self.calls += 1
        error = next(self.errors)
        sizes = (None, 5) if self.own else (5,)
        return {"points": [{"size": s, "vectors": s or 7, "error": error, "seconds": 1.0} for s in sizes]}


def failing(data, found):
    raise RuntimeError("no convergence")


@pytest.fixture
def methods(monkeypatch):
    """Two methods of ours and one of another package."""
    made = {
        "learner": Method("learner", Counting([10.0, 12.0, 20.0, 22.0, 0.0, 0.0]), "1"),
        "nystroem": Method("nystroem", Counting([30.0] * 9, own=False), "1", ours=False),
        "xrfm": Method("xrfm", failing, "1", ours=False),
    }
    for name, method in made.items():
        monkeypatch.setitem(METHODS, name, method)
    monkeypatch.setattr(frontier, "split", lambda name, k: (name, k))
    return made


def test_what_is_known_is_not_measured_again(methods, tmp_path, monkeypatch):
    store = Store(tmp_path / "frontier.jsonl")
    Frontier(store).measure(["learner"], ["a"], 2)
    store.pack()
    again = Frontier(store)
    again.measure(["learner"], ["a", "b"], 2)
    assert methods["learner"].run.calls == 4
    assert [p.error for p in again.points("learner", "b")] == [21.0, 21.0]
    again.forget(["learner"], ["a"], 1)
    stopped = Frontier(store)
    assert ("learner", "a", 0) not in stopped.values
    assert stopped.values == again.values
    stopped.measure(["learner"], ["a"], 2)
    assert methods["learner"].run.calls == 5
    monkeypatch.setitem(METHODS, "learner", Method("learner", methods["learner"].run, "2"))
    assert not Frontier(store).values


def test_means_and_standard_errors(methods, tmp_path):
    found = Frontier(Store(tmp_path / "frontier.jsonl"))
    found.measure(["learner", "nystroem"], ["a"], 1)
    assert math.isnan(found.points("learner", "a")[0].spread)
    assert frontier.cell(found.points("learner", "a")[0]) == "10.00 / 7"
    found.measure(["learner", "nystroem"], ["a"], 2)
    found.measure(["learner", "nystroem"], ["b"], 2)
    own, curve = found.points("learner", "a")
    assert (own.size, own.vectors, own.error, curve.size) == (None, 7.0, 11.0, 5)
    assert own.spread == pytest.approx(np.std([10, 12], ddof=1) / math.sqrt(2))
    whole = found.average("learner", ["a", "b"])[0]
    assert whole.error == pytest.approx(16.0)
    assert whole.spread == pytest.approx(math.sqrt(1.0 + 1.0) / 2)
    assert found.average("learner", ["a", "c"]) == []
    names, sets = ["learner", "nystroem"], ["a", "b"]
    assert len(draw_sets(found, names, sets).axes) == 4
    labels = draw_average(found, names, sets).axes[0].get_legend_handles_labels()[1]
    assert sorted(labels) == ["learner", "nystroem"]


def test_a_peer_that_fails_says_why_and_ours_must_not(methods, tmp_path, capsys, monkeypatch):
    found = Frontier(Store(tmp_path / "frontier.jsonl"))
    found.measure(["xrfm"], ["a"], 1)
    assert "RuntimeError: no convergence" in capsys.readouterr().out
    assert found.points("xrfm", "a") == []
    monkeypatch.setitem(METHODS, "learner", Method("learner", failing, "1"))
    with pytest.raises(RuntimeError, match="no convergence"):
        found.measure(["learner"], ["a"], 1)


def test_peers_that_are_not_installed_are_named(monkeypatch, capsys):
    monkeypatch.setitem(METHODS, "xrfm", Method("xrfm", failing, "1", ours=False, package="no_such_package"))
    assert "xrfm" not in frontier.chosen_methods(["peers"])
    assert "xrfm is not installed (pip install 'fewkern[benchmarks]'): left out" in capsys.readouterr().out
    assert frontier.chosen_methods(["ours"]) == [name for name, m in METHODS.items() if m.ours]
