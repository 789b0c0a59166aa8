"""Which tests reach which function, and how long they take: measured once per test file and kept."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

import pytest

__all__ = ["OPTIONS", "OneTest", "Reach"]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fewkern"
KEPT = Path(__file__).with_name("reach.json")
# Folders of tests that concern core and the algorithms. The golden record is not among them: it notices every change
# and says of none that it is wrong. Neither are tests on real data, of whole estimators, files, pictures, commands.
FOLDERS = ("core", "backend", "vectors", "fisher", "margins", "density", "laws")
OPTIONS = ["-q", "-o", "addopts=", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist"]
# hypothesis is imported before pytest could rewrite its assertions, which it has no need of
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]

# Tests that take longer, in seconds of processor time, are too slow to be run for every mutant.
SLOWEST = 0.7
# Of a test file no more is measured than takes this long; its tests come in any order, so that all parts have some.
ENOUGH = 6.0


@dataclass(frozen=True)
class OneTest:
    """One test: its name for pytest, its duration, and the functions that it called, as ``module:qualified.name``."""

    name: str
    seconds: float
    functions: frozenset[str]


class Reach:
    """The tests, and which of them to try on a mutant of a function."""

    def __init__(self, tests: list[OneTest]) -> None:
        self.tests = tests

    @classmethod
    def measure(cls) -> Reach:
        """Read what is kept; run the test files that are new or changed, and keep what they did."""
        kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        files = {str(p.relative_to(ROOT)): p for f in FOLDERS for p in sorted((ROOT / "tests" / f).glob("test_*.py"))}
        known: dict[str, Any] = {}
        for name, path in files.items():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if kept.get(name, {}).get("sha256") == digest:
                known[name] = kept[name]
                continue
            print(f"which functions do the tests of {name} reach?", file=sys.stderr, flush=True)
            known[name] = {"sha256": digest, "tests": _apart(path)}
            KEPT.write_text(json.dumps({**kept, **known}), encoding="utf-8")
        return cls(
            [
                OneTest(name, seconds, frozenset(functions))
                for file in known.values()
                for name, (seconds, functions) in file["tests"].items()
            ]
        )

    def of(self, module: str, function: str, budget: float) -> list[OneTest]:
        """Tests that reach the function, the nearest and quickest first, as many as ``budget`` seconds allow.

        A line outside of functions, or a function that runs only while modules are imported, is reached by all tests
        that call any function of the module.
        """
        package, _, stem = module.removeprefix("fewkern.").rpartition(".")
        found = [t for t in self.tests if f"{module}:{function}" in t.functions]
        found = found or [t for t in self.tests if any(f.startswith(f"{module}:") for f in t.functions)]

        def distance(test: OneTest) -> tuple[bool, bool, float]:
            return f"test_{stem}.py" not in test.name, f"tests/{package}/" not in test.name, test.seconds

        chosen, spent = [], 0.0
        for test in sorted(found, key=distance):
            if spent + test.seconds <= budget:
                chosen.append(test)
                spent += test.seconds
        return chosen


@dataclass(eq=False)
class _Recorder:
    """A pytest plugin that notes the functions of the package that every test calls."""

    seen: dict[str, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    """What fixtures called. One of a wider scope serves several tests, but runs in the first of them only."""
    names: dict[CodeType, str | None] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.process_time)

    def record(self) -> dict[str, tuple[float, list[str]]]:
        """Duration and functions of every test that passed."""
        return {name: (round(self.seconds[name], 3), sorted(self.seen[name] | self.shared)) for name in self.passed}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self.traced(self.shared, 5 * SLOWEST))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        began = time.process_time()
        result = yield from self.traced(self.seen.setdefault(item.nodeid, set()), SLOWEST)
        self.seconds[item.nodeid] = time.process_time() - began
        if time.process_time() - self.began > ENOUGH:
            item.session.shouldstop = "enough"
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def traced(self, called: set[str], limit: float) -> Any:
        def note(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if code not in self.names:
                self.names[code] = _name(code)
            name = self.names[code]
            if name is not None:
                called.add(name)

        before = sys.gettrace()
        signal.signal(signal.SIGPROF, _too_slow)
        signal.setitimer(signal.ITIMER_PROF, limit)
        sys.settrace(note)
        try:
            return (yield)
        finally:
            sys.settrace(before)
            signal.setitimer(signal.ITIMER_PROF, 0.0)


def _too_slow(signal: int, frame: object) -> NoReturn:
    pytest.fail("too slow")


def _apart(path: Path) -> Any:
    """The record of one test file, made in a process of its own, so that this one does not import the package."""
    reading, writing = os.pipe()
    if not os.fork():
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            recorder = _Recorder()
            pytest.main([*OPTIONS, str(path)], plugins=[recorder])
            with os.fdopen(writing, "w", encoding="utf-8") as stream:
                json.dump(recorder.record(), stream)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        text = stream.read()
    os.wait()
    return json.loads(text)


def _name(code: CodeType) -> str | None:
    """``module:qualified.name`` of a function of the package."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return None
    module = ".".join(["fewkern", *path.relative_to(PACKAGE).with_suffix("").parts])
    return f"{module}:{code.co_qualname}"
