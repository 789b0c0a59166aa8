"""Which tests reach which function, and how long they take: measured once per test file and kept."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

import pytest

__all__ = ["OneTest", "Reach", "Recorder", "changed_files", "keep", "test_files"]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fewkern"
KEPT = Path(__file__).with_name("reach.json")
# Folders of tests that concern core and the algorithms. The golden record is not among them: it notices every change
# and says of none that it is wrong. Neither are tests on real data, of whole estimators, files, pictures, commands.
FOLDERS = ("core", "arrays", "select", "fisher", "margins", "density", "laws")
# Tests that take longer, in seconds of processor time, are too slow to be run for every mutant.
SLOWEST = 2.0
# Of a test file no more is measured than takes this long; its tests come in any order, so that all parts have some.
ENOUGH = 20.0


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
    def read(cls) -> Reach:
        """What is kept of earlier measurements."""
        return cls(
            [
                OneTest(name, seconds, frozenset(functions))
                for file in _kept().values()
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
            own = re.search(rf"/test_{stem}(_\w+)?\.py", test.name) is None
            return own, f"tests/{package}/" not in test.name, test.seconds

        chosen, spent = [], 0.0
        for test in sorted(found, key=distance):
            if spent + test.seconds <= budget:
                chosen.append(test)
                spent += test.seconds
        return chosen


def _kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def test_files() -> dict[str, str]:
    """The files of tests, and a checksum of each."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def changed_files() -> dict[str, str]:
    """The files of tests that were not measured as they are now."""
    kept = _kept()
    return {name: digest for name, digest in test_files().items() if kept.get(name, {}).get("sha256") != digest}


def keep(name: str, digest: str, tests: dict[str, Any]) -> None:
    """Keep the measurement of one file of tests, and forget files that are gone."""
    present = test_files()
    kept = {file: value for file, value in _kept().items() if file in present}
    KEPT.write_text(json.dumps({**kept, name: {"sha256": digest, "tests": tests}}), encoding="utf-8")


class Recorder:
    """Notes the functions of the package that tests call, and how long they take."""

    def __init__(self, passes: Callable[[pytest.Item], bool]) -> None:
        self.passes = passes
        self.names: dict[CodeType, str | None] = {}

    def measure(self, items: list[pytest.Item]) -> dict[str, tuple[float, list[str]]]:
        """Duration and functions of every test that passes in time.

        A fixture that serves several tests runs in the first of them only, so it runs here for each anew.
        """
        found = {}
        began = time.process_time()
        for item in sorted(items, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest()):
            if time.process_time() - began > ENOUGH:
                break
            called: set[str] = set()
            start = time.process_time()
            if self._traced(item, called):
                found[item.nodeid] = (round(time.process_time() - start, 3), sorted(called))
        return found

    def _traced(self, item: pytest.Item, called: set[str]) -> bool:
        def note(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if code not in self.names:
                self.names[code] = _name(code)
            name = self.names[code]
            if name is not None:
                called.add(name)

        signal.signal(signal.SIGPROF, _too_slow)
        signal.setitimer(signal.ITIMER_PROF, SLOWEST)
        sys.settrace(note)
        try:
            return self.passes(item)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0.0)


def _too_slow(signal: int, frame: object) -> NoReturn:
    pytest.fail("too slow")


def _name(code: CodeType) -> str | None:
    """``module:qualified.name`` of a function of the package."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return None
    module = ".".join(["fewkern", *path.relative_to(PACKAGE).with_suffix("").parts])
    return f"{module}:{code.co_qualname}"
