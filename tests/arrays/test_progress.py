"""What a loop tells about itself: bars on a terminal, lines elsewhere, nothing unless asked."""

import sys
from types import SimpleNamespace

import pytest

from fewkern.arrays import progress as module
from fewkern.arrays.progress import progress, shown, titled


class Model:
    """What an estimator is to the functions here."""

    def __init__(self, verbose):
        self.verbose = verbose


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is set."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now.seconds)
    return now


def on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)


def said(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


@pytest.mark.parametrize(
    ("verbose", "total", "seconds", "lines"),
    [
        (False, 3, [0.0], []),
        (True, 3, [0.0, 0.0, 0.0], ["3 of 3, 0.0 s, done"]),
        (True, None, [0.0] * 7, ["7, 0.0 s, done"]),
        (1, 100, range(1, 14), ["5 of 100, 5.0 s", "10 of 100, 10.0 s", "13 of at most 100, 13.0 s, done"]),
    ],
)
def test_lines_at_the_end_and_at_intervals_if_asked(verbose, total, seconds, lines, capsys, clock):
    with progress(Model(verbose), "work", total) as step:
        for done, clock.seconds in enumerate(map(float, seconds), start=1):
            step(done)
    assert said(capsys) == [f"Model: work: {line}" for line in lines]


def test_an_interrupted_loop_says_where_it_stopped(capsys, clock):
    def interrupted():
        with progress(Model(verbose=True), "work", 3) as step:
            step(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert said(capsys) == ["Model: work: 1 of at most 3, 0.0 s, stopped"]


def test_a_title_says_which_part_of_the_work_it_is(capsys, clock):
    with titled("1/2 held-out check"), progress(Model(verbose=True), "work", 1) as step:
        step(1)
    with progress(Model(verbose=True), "work", 1) as step:
        step(1)
    assert said(capsys) == [
        "1/2 held-out check, Model: work: 1 of 1, 0.0 s, done",
        "Model: work: 1 of 1, 0.0 s, done",
    ]


@pytest.mark.parametrize("total", [3, None])
def test_a_bar_on_a_terminal_disappears_in_the_end(capsys, monkeypatch, total):
    on_a_terminal(monkeypatch)
    with progress(Model(verbose=True), "work", total) as step:
        step(2)
    drawn = "\n".join(said(capsys))
    assert "Model: work" in drawn
    assert "done" not in drawn


def test_lines_on_a_terminal_without_rich(capsys, clock, monkeypatch):
    on_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress(Model(verbose=True), "work", 3) as step:
        step(3)
    assert said(capsys) == ["Model: work: 3 of 3, 0.0 s, done"]


def test_only_a_bar(capsys):
    with shown("work", 3, lines=False) as step:
        step(3)
    assert said(capsys) == []
