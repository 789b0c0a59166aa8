"""The mutator itself: what it changes, what it leaves alone, and that it can tell a killed mutant from a survivor."""

import ast
import textwrap
from dataclasses import replace

import pytest

from tests.mutate import __main__ as command
from tests.mutate.mutants import equivalent, mutants_of


def changes(source):
    """Every change of a source, as pairs."""
    return {(m.before, m.after) for m in mutants_of("toy", textwrap.dedent(source))}


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        ("a < b", "a < b", "a <= b"),
        ("a < b", "a < b", "a >= b"),
        ("0 < a < b", "0 < a < b", "0 < a <= b"),
        ("a * (b + c)", "a * (b + c)", "a / (b + c)"),
        ("a and b", "a and b", "a or b"),
        ("not a", "not a", "a"),
        ("-a", "-a", "a"),
        ("a[0]", "0", "1"),
        ("f(1e-12)", "1e-12", "1.000000000001"),
        ("f(1e3)", "1000.0", "0.0"),
        ("f(x=True)", "True", "False"),
        ("a if b else c", "a if b else c", "c"),
        ("xp.max(a)", "xp.max(a)", "xp.min(a)"),
        ("abs(a)", "abs(a)", "a"),
        ("if a: b()", "a", "False"),
        ("while a: b()", "a", "False"),
        ("f(a)", "f(a)", "pass"),
        ("a[i] = b", "a[i] = b", "pass"),
        ("a += b", "a += b", "a -= b"),
        ("for a in b: break", "break", "continue"),
        ("def f(b):\n    a = b\n    a = c\n    return a", "a = c", "pass"),
    ],
)
def test_a_change_of_every_kind(source, before, after):
    assert (before, after) in changes(source)


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


def test_every_mutant_is_python_and_names_its_place():
    ((module, source),) = command.sources(["core.path"]).items()
    for mutant in mutants_of(module, source):
        ast.parse(mutant.source)
        assert mutant.source != source
        assert mutant.line in " ".join(source.split())
        assert f"fewkern.core.path:{mutant.number} " in str(mutant)


def test_a_mutant_is_killed_and_no_change_survives(tmp_path, monkeypatch):
    ((module, source),) = command.sources(["core.path"]).items()
    (tmp_path / "fewkern" / "core").mkdir(parents=True)
    (tmp_path / "fewkern" / "core" / "path.py").write_text(source)
    mutant = mutants_of(module, source)[0]

    def fails(folder, module, seconds):
        return (folder / "fewkern" / "core" / "path.py").read_text() != source

    monkeypatch.setattr(command, "fails", fails)
    assert not command.survives(mutant, tmp_path, 1.0)
    assert command.survives(replace(mutant, source=source), tmp_path, 1.0)
    assert (tmp_path / "fewkern" / "core" / "path.py").read_text() == source


def test_tests_of_the_module_come_first():
    found = command.tests_of("fewkern.core.path")
    assert found[0] == "tests/core/test_path.py"
    assert {"tests/core/test_path.py", "tests/laws/test_fvs.py", "tests/golden/test_golden.py"} < set(found)


def test_equivalent_mutants_are_recognized():
    """Lines move and modules change: the command names entries that match nothing any more."""
    modules = {key[0].removeprefix("fewkern.") for key in equivalent()}
    found = {m.key for module, source in command.sources(list(modules)).items() for m in mutants_of(module, source)}
    assert len(equivalent() & found) >= 10
