"""Units in processes of their own: side by side, with their reasons where they fail, hang or die."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.workers import Workers, run, thread_variables, threads
from experiments.store import Store

HANGS = 600


def work(name, value):
    """What a unit does that comes from here: a number, an error, no end, or the end of the process."""
    if name == "hangs":
        time.sleep(HANGS)
    if name == "dies":
        os._exit(7)
    if name == "fails":
        raise RuntimeError("no\nmore of it")
    return {"error": 2.0 * value, "vectors": None, "seconds": 0.0, "process": os.getpid(), "threads": threads()}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results.jsonl", ("name", "value"))


@pytest.mark.parametrize("processes", [0, 1, 2])
def test_units_are_done_once_and_kept(store, processes, capsys):
    units = [("works", k) for k in range(4)]
    how = Workers(processes, threads=2)
    assert run(store, work, units[:1], how) == 1
    assert run(store, work, units, how) == 3
    assert run(store, work, units, how) == 0
    found = store.read()
    assert [record["error"] for record in found] == [0.0, 2.0, 4.0, 6.0]
    ours = {record["process"] == os.getpid() for record in found}
    assert ours == {processes == 0}
    if processes:
        assert {record["threads"] for record in found} == {2}
    assert "  3/3: works, " in capsys.readouterr().out


def test_a_unit_that_hangs_fails_or_dies_is_named_and_the_others_go_on(store, capsys):
    units = [(name, 1) for name in ("hangs", "fails", "dies", "works")]
    begun = time.monotonic()
    run(store, work, [("works", 0)], Workers(1))  # imports are not what is limited below
    run(store, work, units, Workers(1, limit=4 + 2 * (time.monotonic() - begun)))
    found = {record["name"]: record for record in store.read() if record["value"]}
    assert found["hangs"]["failed"].startswith("stopped after ")
    assert found["fails"]["failed"] == "RuntimeError: no"
    assert found["dies"]["failed"] == "the process ended with 7"
    assert found["works"]["error"] == 2.0
    assert "hangs, 1: failed, stopped after" in capsys.readouterr().out
    assert run(store, work, units, Workers(1)) == 0  # also what was stopped is kept


def test_the_number_of_threads_is_that_of_every_library(monkeypatch):
    assert thread_variables(3)["OMP_NUM_THREADS"] == thread_variables(3)["OPENBLAS_NUM_THREADS"] == "3"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads() == 5
