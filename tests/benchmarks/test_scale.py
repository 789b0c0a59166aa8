"""The growth benchmark: the same rows in memory and in files, results kept and taken up again, exponents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import scale, scale_methods
from benchmarks.scale import Growth, exponent
from experiments.store import Store


def values(seconds, **more):
    return {"seconds": seconds, "wall": seconds, "memory": 10 * seconds, "quality": 1.0, "vectors": 3, **more}


@pytest.fixture
def calls(monkeypatch):
    """Fits that take a second per thousand rows, and fail with more than 3,000."""
    made = []

    def fit(name, rows, limit, folder):
        made.append((name, rows, folder))
        return values(rows / 1000) if rows <= 3000 else {"failed": "more than 1 s"}

    monkeypatch.setattr(scale, "in_own_process", fit)
    return made


def test_a_stopped_run_goes_on_and_nothing_larger_is_tried_after_a_failure(calls, tmp_path):
    store = Store(tmp_path / "scale.jsonl")
    Growth(store).measure(["density"], [1000, 2000], 1)
    again = Growth(store)
    again.store.pack()
    again.measure(["density", "boosting"], [1000, 4000, 2000, 8000], 1)
    assert calls == [("density", r, None) for r in (1000, 2000, 4000)] + [
        ("boosting", r, None) for r in (1000, 2000, 4000)
    ]
    assert list(again.finished("density")) == [1000, 2000]
    again.forget(["density"])
    assert list(Growth(store).finished("density")) == []
    assert list(Growth(store).finished("boosting")) == [1000, 2000]


def test_table_and_picture(calls, tmp_path, capsys):
    growth = Growth(Store(tmp_path / "scale.jsonl"))
    growth.measure(["density", "boosting"], [1000, 3000], 1)
    growth.measure(["density"], [2000], 1, tmp_path)
    scale.print_table(growth, ["density", "boosting"])
    printed = capsys.readouterr().out
    assert "| ForwardDensity | 1.0 / 10 | 3.0 / 30 |" in printed
    assert "ForwardDensity, 2,000 rows in files: 2.0 / 20" in printed
    assert len(scale.draw(growth, ["density", "boosting"]).axes) == 2


def test_exponents():
    assert exponent({1: 5.0, 100_000: 2.0, 1_000_000: 20.0}) == pytest.approx(1.0)
    assert exponent({50_000: 4.0, 100_000: 16.0, 200_000: 64.0}) == pytest.approx(2.0)
    assert math.isnan(exponent({10: 1.0, 1_000_000: 20.0}))


def test_rows_are_the_same_in_memory_and_in_files(monkeypatch, tmp_path):
    monkeypatch.setattr(scale_methods, "PART_ROWS", 400)
    here, there = scale_methods.in_memory(1000), scale_methods.in_files(1000, tmp_path)
    for one, other in ((here.X, there.X), (here.height, there.height), (here.label, there.label)):
        np.testing.assert_array_equal(other.compute(), one)
    assert 0.3 < here.label.mean() < 0.7
    np.testing.assert_array_equal(scale_methods.in_memory(400).X, here.X[:400])


@pytest.mark.parametrize("name", ["density", "nystroem"])
def test_one_measurement(name):
    found = scale_methods.measure(name, 300, None)
    assert set(found) == set(values(1.0))
    assert found["seconds"] > 0
    assert math.isfinite(found["quality"])


def test_a_process_that_fails_says_why(monkeypatch):
    found = scale.in_own_process("no such method", 100, 60, None)
    assert "KeyError" in found["failed"]
    monkeypatch.setattr(scale.subprocess, "run", _too_long)
    assert scale.in_own_process("density", 100, 1, None) == {"failed": "more than 1 s"}


def _too_long(command, **options):
    raise scale.subprocess.TimeoutExpired(command, options["timeout"])
