"""One mutant against the tests that reach it, in a process of its own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import NoReturn

import hypothesis
import pytest

from tests.mutate.mutants import Mutant
from tests.mutate.reach import OPTIONS, ROOT, OneTest

__all__ = ["preload", "source_of", "try_mutant"]

# A mutant is taken for an endless loop when a test takes this many times the processor time that it should, and some
# seconds more.
PATIENCE = 10
GRACE = 5.0
# What tests import besides the package: imported once, before the processes part.
SHARED = [
    "array_api_compat.numpy",
    "array_api_extra",
    "array_api_strict",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "matplotlib",
    "pandas",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
    "sklearn.datasets",
    "sklearn.decomposition",
    "sklearn.discriminant_analysis",
    "sklearn.gaussian_process",
    "sklearn.kernel_approximation",
    "sklearn.kernel_ridge",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sklearn.neighbors",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.svm",
    "sklearn.utils.estimator_checks",
    "threadpoolctl",
]


def preload() -> None:
    """Import what all runs share, so that it is done once. The package itself and its tests are not among it."""
    for name in SHARED:
        importlib.import_module(name)


def source_of(module: str) -> Path:
    """The file of a module of the package."""
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def try_mutant(mutant: Mutant, tests: Sequence[OneTest]) -> str:
    """Run the tests with the change, until one fails: "killed", "timeout" or "survived".

    Raises
    ------
    RuntimeError
        If pytest could not run them and cannot without the change either: names of tests are out of date.
    """
    status = _in_child(mutant, mutant.apply(source_of(mutant.module).read_text(encoding="utf-8")), tests)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGPROF else "killed"
    code = os.WEXITSTATUS(status)
    if code == pytest.ExitCode.OK:
        return "survived"
    if code not in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        # a module that cannot be imported, or tests that have other names: the mutant's doing, unless ...
        unchanged = _in_child(mutant, source_of(mutant.module).read_text(encoding="utf-8"), tests)
        if unchanged != 0:
            raise RuntimeError(f"pytest cannot run the tests of {mutant.module}; delete tests/mutate/reach.json")
    return "killed"


def _in_child(mutant: Mutant, source: str, tests: Sequence[OneTest]) -> int:
    """Run the tests in a forked process with ``source`` as the mutant's module; its exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        _child(mutant, source, tests)
    return os.waitpid(process, 0)[1]


def _child(mutant: Mutant, source: str, tests: Sequence[OneTest]) -> NoReturn:
    code = 1
    try:
        log = os.environ.get("MUTATE_LOG", os.devnull)
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        sys.meta_path.insert(0, _Changed(mutant.module, source))
        limits = _Limits({test.name: test.seconds for test in tests})
        code = int(pytest.main([*OPTIONS, "-x", *(test.name for test in tests)], plugins=[limits]))
    finally:
        sys.stdout.flush()
        os._exit(code)


class _Changed:
    """Finder on ``sys.meta_path`` that gives one module another source."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.module:
            return None
        file = str(source_of(name))
        return importlib.util.spec_from_file_location(name, file, loader=_ChangedLoader(name, file, self.source))


class _ChangedLoader(SourceFileLoader):
    def __init__(self, name: str, file: str, source: str) -> None:
        super().__init__(name, file)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")


class _Limits:
    """A pytest plugin: a time limit for every test, and property tests that stop at the first counterexample."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_configure(self) -> None:
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutate", parent=hypothesis.settings(), phases=phases, database=None)
        hypothesis.settings.load_profile("mutate")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        # the signal ends the process
        signal.setitimer(signal.ITIMER_PROF, GRACE + PATIENCE * self.seconds.get(item.nodeid, 0.0))
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
