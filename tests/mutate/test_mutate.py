"""The mutator itself: what it changes, what it leaves alone, and that it can tell a killed mutant from a survivor."""

import ast
import random
import subprocess
import sys
import textwrap

import pytest

from tests.mutate.mutants import mutants_of
from tests.mutate.reach import OneTest, Reach
from tests.mutate.run import source_of, transplant
from tests.mutate.subjects import Equivalents, algorithm_modules, equivalent


def changes(source):
    """Every change of a function's text, as pairs."""
    found = mutants_of("toy", textwrap.dedent(source))
    return {(" ".join(m.before.split()), " ".join(m.after.split())) for m in found}


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        ("a < b", "a < b", "(a <= b)"),
        ("a < b", "a < b", "(a >= b)"),
        ("0 < a < b", "0 < a < b", "(0 < a <= b)"),
        ("a + b * c", "a + b * c", "a - (b * c)"),
        ("a and b", "a and b", "(a or b)"),
        ("not a", "not a", "(a)"),
        ("-a", "-a", "(a)"),
        ("a[0]", "0", "(1)"),
        ("f(1e-12)", "1e-12", "(1.000000000001)"),
        ("f(1e3)", "1e3", "(0.0)"),
        ("f(x=True)", "True", "(False)"),
        ("a if b else c", "a if b else c", "(c)"),
        ("xp.max(a)", "xp.max(a)", "(xp.min(a))"),
        ("abs(a)", "abs(a)", "(a)"),
        ("if a: b()", "a", "(False)"),
        ("while a: b()", "a", "(False)"),
        ("f(a)", "f(a)", "pass"),
        ("a[i] = b", "a[i] = b", "pass"),
        ("a += b", "a += b", "a -= b"),
        ("for a in b: break", "break", "continue"),
    ],
)
def test_a_change_of_every_kind(source, before, after):
    found = changes(source)
    assert (before, after) in found or (before, f"({after})") in found


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring with 3 numbers."""',
        "import a",
        "__all__ = ['a']",
        "raise ValueError(f'{1 + 2} is wrong')",
        "def f(a: int | None) -> float | None: ...",
        "a: dict[int, 3]",
        "@decorated(1)\ndef f(): ...",
        "class A(Protocol):\n    b = 1",
        "a = b",  # without its first value a name fails at once
    ],
)
def test_what_is_left_alone(source):
    assert not changes(source)


def test_a_second_value_of_a_name_is_dropped():
    assert ("a = c", "pass") in changes("def f(b):\n    a = b\n    a = c\n    return a")


def test_every_mutant_is_python_and_changes_its_line_only():
    for module in random.Random(0).sample(algorithm_modules(), 4):
        source = source_of(module).read_text(encoding="utf-8")
        found = mutants_of(module, source)
        for mutant in random.Random(0).sample(found, min(10, len(found))):
            changed = mutant.apply(source)
            ast.parse(changed)
            assert changed != source
            assert changed[: mutant.start // 4] == source[: mutant.start // 4]
            assert f"{mutant.module}:{mutant.line}" in str(mutant)


def test_the_modules_of_the_table_are_there():
    modules = algorithm_modules()
    assert {"fewkern.core.peel", "fewkern.fisher.lasso", "fewkern.margins.hinge"} <= set(modules)
    assert all(source_of(module).exists() for module in modules)


def test_tests_that_reach_a_function_come_near_and_quick_ones_first():
    here = frozenset({"fewkern.core.peel:peel"})
    tests = [
        OneTest("tests/core/test_path.py::slow", 2.0, here),
        OneTest("tests/core/test_path.py::quick", 0.1, here),
        OneTest("tests/laws/test_all.py::quickest", 0.0, here),
        OneTest("tests/core/test_peel.py::own", 3.0, here),
        OneTest("tests/core/test_peel.py::other", 0.0, frozenset({"fewkern.core.peel:Peeled"})),
    ]
    found = [test.name.split("::")[1] for test in Reach(tests).of("fewkern.core.peel", "peel", budget=20)]
    assert found == ["own", "quick", "slow", "quickest"]
    assert [test.name for test in Reach(tests).of("fewkern.core.peel", "peel", budget=0.1)] == [
        "tests/core/test_path.py::quick",
        "tests/laws/test_all.py::quickest",
    ]
    # a line outside of functions: all tests of the module
    assert len(Reach(tests).of("fewkern.core.peel", "", budget=20)) == 5


def test_a_mutant_is_killed_and_no_change_survives():
    """In a process of its own, with a session of pytest of its own."""
    code = """
import os
from dataclasses import replace
from tests.mutate.mutants import mutants_of
from tests.mutate.reach import ROOT, OneTest
from tests.mutate.run import source_of, try_mutant, with_tests
os.chdir(ROOT)
source = source_of("fewkern.core.peel").read_text(encoding="utf-8")
found = {(m.before, m.after): m for m in mutants_of("fewkern.core.peel", source)}
more = found["len(records) < limit", "(len(records) <= limit)"]
endless = replace(more, after="(True)")
def work(items):
    tests = [OneTest(name, 0.1, frozenset()) for name in items]
    for mutant in (more, endless, replace(more, after=more.before)):
        print(try_mutant(mutant, tests, items))
with_tests(["tests/core/test_peel.py"], work)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert [word for word in done.stdout.split() if word in ("killed", "timeout", "survived")] == [
        "killed",
        "killed",
        "survived",
    ], done.stderr


ORIGINAL = """
import enum
import functools
class E(enum.StrEnum):
    ONE = "one"
    def __len__(self): return 1
LIMIT = 3
TABLE = {"f": print}
def f(x, y=1):
    return x + y + LIMIT
@functools.cache
def g(x):
    return x + 1
class A:
    level = 1
    def m(self): return self.level + 1
    @property
    def p(self): return 1
    @classmethod
    def c(cls): return 1
    @staticmethod
    def s(): return 1
"""


def test_changes_reach_everybody_who_imported_a_name():
    old, new = ({"__name__": "toy"} for _ in range(2))
    exec(ORIGINAL, old)
    f, g, A, made, table = old["f"], old["g"], old["A"], old["A"](), old["TABLE"]
    assert (f(0), g(0), made.m(), made.p, A.c(), A.s()) == (4, 1, 2, 1, 1, 1)
    g.cache_clear()
    exec(ORIGINAL.replace("1", "5").replace("LIMIT = 3", "LIMIT = 7"), new)
    transplant(old, new, "toy")
    assert (f(0), g(0), made.m(), made.p, A.c(), A.s(), len(old["E"].ONE)) == (12, 5, 10, 5, 5, 5, 5)
    # what is not a plain value stays, for others may hold it
    assert old["TABLE"] is table


def test_equivalent_mutants_exist_and_have_reasons():
    known = equivalent()
    found = set()
    for module in {entry["module"] for entry in known.entries}:
        source = source_of(module).read_text(encoding="utf-8")
        found |= {known.key(mutant) for mutant in mutants_of(module, source)}
    assert known.keys - found == set()
    assert all(len(entry["reason"]) > 20 for entry in known.entries)


def test_an_equivalent_mutant_is_known_wherever_its_line_is(tmp_path):
    file = tmp_path / "equivalent.toml"
    entry = {"module": "toy", "function": "f", "line": "return a < b", "before": "a  <  b", "after": "(a <= b)"}
    lines = [f'{key} = "{text}"' for key, text in {**entry, "reason": "there are no ties"}.items()]
    file.write_text("\n".join(["[[mutant]]", *lines]), encoding="utf-8")
    known = Equivalents(file)
    for source in ("def f():\n    return a < b", "\n\ndef f():\n    if True:\n        return a < b"):
        assert [m.after for m in mutants_of("toy", source) if m in known] == ["(a <= b)"]
    for source in ("def f():\n    print(a < b)", "def g():\n    return a < b"):
        assert not [m for m in mutants_of("toy", source) if m in known]
