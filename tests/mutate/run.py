"""Mutants against the tests that reach them, each in a process of its own.

Everything is imported and all tests are collected once. A mutant then costs a fork and the tests that it takes to
notice it: the changed functions are put in place of the original ones in the forked process.
"""

from __future__ import annotations

import os
import signal
import sys
import types
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from tests.mutate.mutants import Mutant
from tests.mutate.reach import ROOT, OneTest

__all__ = ["Items", "in_child", "source_of", "transplant", "try_mutant", "with_tests"]

Items = dict[str, pytest.Item]

# A mutant is taken for an endless loop when a test takes this many times the processor time that it should, and some
# seconds more.
PATIENCE = 10
GRACE = 3.0
# Exit code of a child that failed at something else than a test.
_BROKEN = 70
OPTIONS = ["-q", "-s", "-o", "addopts=", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist"]
# hypothesis is imported before pytest could rewrite its assertions, which it has no need of
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


def source_of(module: str) -> Path:
    """The file of a module of the package."""
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


class _Loop:
    """A pytest plugin that hands the tests to somebody else in place of running them."""

    def __init__(self, work: Callable[[Items], None]) -> None:
        self.work = work

    def pytest_configure(self) -> None:
        # property tests stop at the first counterexample
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutate", parent=hypothesis.settings(), phases=phases, database=None)
        hypothesis.settings.load_profile("mutate")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.work({item.nodeid: item for item in session.items})
        return True


def with_tests(paths: Sequence[str], work: Callable[[Items], None]) -> None:
    """Collect the tests in ``paths`` and call ``work`` with them."""
    code = pytest.main([*OPTIONS, *paths], plugins=[_Loop(work)])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest could not collect {', '.join(paths)}: exit code {code}")


def in_child(work: Callable[[], int]) -> int:
    """The exit status of a forked process that calls ``work``, whose result is its exit code; it prints nothing."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        _be_child(work)
    return os.waitpid(process, 0)[1]


def _be_child(work: Callable[[], int]) -> NoReturn:
    code = _BROKEN
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = work()
    finally:
        os._exit(code)


def try_mutant(mutant: Mutant, tests: Sequence[OneTest], items: Items) -> str:
    """Run the tests with the change, until one fails: "killed", "timeout" or "survived"."""

    def work() -> int:
        try:
            changed = executed(mutant)
        except Exception:  # a module that cannot be imported is noticed by everybody
            return 1
        transplant(vars(sys.modules[mutant.module]), changed, mutant.module)
        for test in tests:
            # the signal ends the process
            signal.setitimer(signal.ITIMER_PROF, GRACE + PATIENCE * test.seconds)
            if not passes(items[test.name]):
                return 1
        return 0

    status = in_child(work)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGPROF else "killed"
    if os.WEXITSTATUS(status) == _BROKEN:
        raise RuntimeError(f"could not try {mutant}")
    return "killed" if os.WEXITSTATUS(status) else "survived"


def passes(item: pytest.Item) -> bool:
    """Whether a test passes."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def executed(mutant: Mutant) -> dict[str, object]:
    """The names of the changed module, executed beside the original one."""
    file = source_of(mutant.module)
    changed = types.ModuleType(mutant.module)
    changed.__file__ = str(file)
    code = compile(mutant.apply(file.read_text(encoding="utf-8")), str(file), "exec")
    # annotations are texts that dataclasses look up in the module of this name
    original = sys.modules[mutant.module]
    sys.modules[mutant.module] = changed
    try:
        exec(code, changed.__dict__)
    finally:
        sys.modules[mutant.module] = original
    return vars(changed)


def transplant(old: dict[str, object], new: dict[str, object], module: str) -> None:
    """Put the code of functions and the values of constants of ``new`` into the functions and names of ``old``.

    Functions keep their identity, so whoever imported them sees the change.
    """
    for name, value in new.items():
        if isinstance(value, type) and value.__module__ == module:
            found = old[name]
            assert isinstance(found, type)
            for key, part in vars(value).items():
                plain = _is_plain(part) and not key.startswith("_") and not issubclass(found, Enum)
                if not _graft(vars(found).get(key), part) and plain:
                    setattr(found, key, part)
        elif not _graft(old.get(name), value) and _is_plain(value) and not name.startswith("__"):
            old[name] = value


def _graft(old: object, new: object) -> bool:
    """Whether these are functions, or hold some, whose code was replaced."""
    if old is None or new is None or old is new:
        return False
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType):
        if old.__code__.co_freevars == new.__code__.co_freevars:
            old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
        return True
    inner = ("__wrapped__", "__func__", "fget", "func")
    return any(_graft(getattr(old, name, None), getattr(new, name, None)) for name in inner)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(_is_plain(item) for pair in value.items() for item in pair)
    return isinstance(value, int | float | str | None)
