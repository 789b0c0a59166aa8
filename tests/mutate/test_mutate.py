"""The mutator itself: what it changes, what it leaves alone, and that it can tell a killed mutant from a survivor."""

import ast
from dataclasses import replace

import pytest

from tests.mutate import __main__ as command
from tests.mutate.mutants import equivalent, mutants_of


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        ("0 < a < b", "0 < a < b", "0 < a <= b"),
        ("a * (b + c)", "a * (b + c)", "a / (b + c)"),
        ("a and b", "a and b", "a or b"),
        ("-a", "-a", "a"),
        ("a[0]", "0", "1"),
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
    assert (before, after) in {(m.before, m.after) for m in mutants_of("toy", source)}


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
    assert not mutants_of("toy", source)


def test_a_mutant_is_killed_and_no_change_survives(tmp_path, monkeypatch):
    ((module, source),) = command.sources(["core.path"]).items()
    (tmp_path / "fewkern" / "core").mkdir(parents=True)
    file = tmp_path / "fewkern" / "core" / "path.py"
    file.write_text(source)
    mutant = mutants_of(module, source)[0]
    ast.parse(mutant.source)
    monkeypatch.setattr(command, "fails", lambda folder, module, seconds: file.read_text() != source)
    assert not command.survives(mutant, tmp_path, 1.0)
    assert command.survives(replace(mutant, source=source), tmp_path, 1.0)
    assert file.read_text() == source


def test_equivalent_mutants_are_recognized():
    """Lines move and modules change: the command names entries that match nothing any more."""
    modules = {key[0].removeprefix("fewkern.") for key in equivalent()}
    found = {m.key for module, source in command.sources(list(modules)).items() for m in mutants_of(module, source)}
    assert len(equivalent() & found) >= 10
