"""The mutator itself: what it changes, what it leaves alone, and that it can tell a killed mutant from a survivor."""

import ast
import random
import subprocess
import sys
import textwrap

import pytest

from tests.mutate.mutants import mutants_of
from tests.mutate.reach import OneTest, Reach
from tests.mutate.run import source_of
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
        for mutant in random.Random(0).sample(mutants_of(module, source), 10):
            changed = mutant.apply(source)
            ast.parse(changed)
            assert changed != source
            assert changed[: mutant.start // 4] == source[: mutant.start // 4]
            assert f"{mutant.module}:{mutant.line} " in str(mutant)


def test_the_modules_of_the_table_are_there():
    modules = algorithm_modules()
    assert {"fewkern.core.peel", "fewkern.fisher.lasso", "fewkern.margins.hinge"} <= set(modules)
    assert all(source_of(module).exists() for module in modules)


def test_tests_that_reach_a_function_come_near_and_quick_ones_first():
    here = frozenset({"fewkern.core.peel:peel"})
    tests = [
        OneTest("tests/core/test_trace.py::slow", 2.0, here),
        OneTest("tests/core/test_trace.py::quick", 0.1, here),
        OneTest("tests/laws/test_all.py::quickest", 0.0, here),
        OneTest("tests/core/test_peel.py::own", 3.0, here),
        OneTest("tests/core/test_peel.py::other", 0.0, frozenset({"fewkern.core.peel:Peeled"})),
    ]
    found = [test.name.split("::")[1] for test in Reach(tests).of("fewkern.core.peel", "peel", budget=20)]
    assert found == ["own", "quick", "slow", "quickest"]
    assert [test.name for test in Reach(tests).of("fewkern.core.peel", "peel", budget=0.1)] == [
        "tests/core/test_trace.py::quick",
        "tests/laws/test_all.py::quickest",
    ]
    # a line outside of functions: all tests of the module
    assert len(Reach(tests).of("fewkern.core.peel", "", budget=20)) == 5


def test_a_mutant_is_killed_and_no_change_survives():
    """In a process of its own: here the package is imported already."""
    code = """
import os
from tests.mutate.mutants import mutants_of
from tests.mutate.reach import ROOT, OneTest
from tests.mutate.run import source_of, try_mutant
os.chdir(ROOT)
tests = [OneTest("tests/core/test_peel.py", 0.1, frozenset())]
source = source_of("fewkern.core.peel").read_text(encoding="utf-8")
found = {(m.before, m.after): m for m in mutants_of("fewkern.core.peel", source)}
loop = found["len(records) < limit", "(len(records) <= limit)"]
print(try_mutant(loop, tests), try_mutant(found["len(records) < limit", "(False)"], tests))
print(try_mutant(type(loop)(loop.module, loop.function, loop.line, loop.before, loop.before, loop.start), tests))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["killed", "killed", "survived"], done.stderr


def test_equivalent_mutants_exist_and_have_reasons():
    known = equivalent()
    found = set()
    for module in {entry["module"] for entry in known.entries}:
        source = source_of(module).read_text(encoding="utf-8")
        found |= {
            (m.module, m.function, " ".join(m.before.split()), " ".join(m.after.split()))
            for m in mutants_of(module, source)
            if m in known
        }
    assert known.keys - found == set()
    assert all(len(entry["reason"]) > 20 for entry in known.entries)


def test_an_equivalent_mutant_is_known_wherever_its_line_is(tmp_path):
    file = tmp_path / "equivalent.toml"
    file.write_text(
        '[[mutant]]\nmodule = "toy"\nfunction = "f"\nbefore = "a  <  b"\nafter = "(a <= b)"\nreason = "ties"\n',
        encoding="utf-8",
    )
    known = Equivalents(file)
    for source in ("def f():\n    a < b", "\n\ndef f():\n    if True:\n        return (a <\n            b)"):
        assert [m.after for m in mutants_of("toy", source) if m in known] == ["(a <= b)"]
