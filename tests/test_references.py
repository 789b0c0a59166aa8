"""References to docs/methods: "methods A3", "methods A3.7" and "methods part A" name something that is there."""

import re
from collections import defaultdict
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from fewkern.learn.policy import Policy

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "methods").glob("*.md"))
LABEL = r"[A-Z]\d+(?:\.\d+)?"
REFERENCE = re.compile(rf"\b[Mm]ethods\s+(part [A-Z]\b|{LABEL}(?:(?:, | and |, and ){LABEL})*)")
FOLDERS = {"src": "*.py", "tests": "*.py", "experiments": "*.py", "experiments/tables": "*.toml", "benchmarks": "*.py"}


def text():
    """The pages, one after the other."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def labels():
    """Labels of the pages: parts, sections, and the numbered entries of sections."""
    found, section = set(), None
    for line in text().splitlines():
        if part := re.match(r"# Part ([A-Z])\. ", line):
            found.add(f"part {part[1]}")
        elif heading := re.match(r"## ([A-Z]\d+)\. ", line):
            section = heading[1]
            assert section not in found, f"{section} occurs twice"
            found.add(section)
        elif entry := re.match(r"(\d+)\. ", line):
            found.add(f"{section}.{entry[1]}")
    return found


def references(text):
    """Labels that a text refers to; a line break inside a comment does not matter."""
    text = re.sub(r"\n\s*(?:# )?", " ", text)
    return [label for match in REFERENCE.finditer(text) for label in re.findall(rf"part [A-Z]|{LABEL}", match[1])]


def files():
    named = {path for folder, pattern in FOLDERS.items() for path in (ROOT / folder).rglob(pattern)}
    return sorted({*named, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {Path(__file__)})


def test_every_reference_resolves():
    known = labels()
    cited = {label: path for path in files() for label in references(path.read_text(encoding="utf-8"))}
    missing = {label: str(path.relative_to(ROOT)) for label, path in cited.items() if label not in known}
    assert not missing, f"not in docs/methods: {missing}"
    assert {"part A", "A3.7", "B5", "F9", "K4", "D6"} <= set(cited)


def test_sections_are_numbered_without_gaps():
    known = {label for label in labels() if "." not in label and not label.startswith("part")}
    for letter in sorted({label[0] for label in known}):
        numbers = sorted(int(label[1:]) for label in known if label[0] == letter)
        assert numbers == list(range(1, len(numbers) + 1)), letter
        assert f"part {letter}" in labels()


def test_sections_that_the_pages_themselves_name_exist():
    """In their own text a label stands alone, as in "(A6)"."""
    named = set(re.findall(r"\((?:[a-z ]*)([ABCDFK]\d+)\b", text()))
    assert named
    assert named <= labels()


SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src" / "fewkern").rglob("*.py"))}


def constants():
    """Section, name and value of the constants that the pages name: "at most 10,000 (`MAX_SEARCH_ROWS`)"."""
    for section, body in re.findall(r"^## ([A-Z]\d+)\. (.*?)(?=^## |\Z)", text(), re.M | re.S):
        for value, name in re.findall(r"([\d,]*\d)[^\d`]{0,20}\(`([A-Z_]*_[A-Z_]+)`", body):
            yield section, name, value.replace(",", "")


@pytest.mark.parametrize(("section", "name", "value"), list(constants()))
def test_constants_of_the_pages_are_in_the_code_which_names_their_section(section, name, value):
    (found,) = (
        (path, match)
        for path, source in SOURCES.items()
        if (match := re.search(rf"((?:^# .*\n)+)(?:_?[A-Z_]+, )*{name}\b.* = ", source, re.M))
    )
    path, match = found
    assert section in references(match[1])
    module = import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    assert value in re.findall(r"\d+", str(getattr(module, name)))


def test_the_page_of_the_learner_is_true_of_the_policy():
    """Numbers by name, such as `knots` or `start.rows`; those that the page leaves out are described in the policy."""
    page, found = (ROOT / "docs" / "methods" / "learner.md").read_text(encoding="utf-8"), 0
    known = {f"{section.name}.{one.name}": one.default for section in fields(Policy) for one in fields(section.default)}
    for section in fields(Policy):
        assert re.search(
            "|".join(rf"`{section.name}\.{one.name}`|`{one.name}`" for one in fields(section.default)), page
        )
    for name, value in re.findall(r"`([\w.]+)` \((\.?\d[\d,.]*)\)", page):
        own = [default for number, default in known.items() if number == name or number.endswith(f".{name}")]
        assert float(value.replace(",", "")) in own, f"{name}: the page has {value}, the policy {own}"
        found += 1
    assert found > 10


def test_modules_that_the_pages_name_exist():
    named = set(re.findall(r"`((?:[a-z]+/)+[a-z_]+\.py)`", text()))
    assert named
    missing = {name for name in named if not ((ROOT / "src/fewkern" / name).exists() or (ROOT / "src" / name).exists())}
    assert not {name for name in missing if not (ROOT / name).exists()}


def test_names_of_the_architecture_exist():
    """Modules of a package, and chains of calls such as ``module.function`` or ``Class.method``."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for package, row in re.findall(r"^\| `(\w+)` \|(.*)$", page, re.M):
        modules = {word for words in re.findall(r"`([^`]+)`", row) for word in words.split()}
        assert modules <= {path.stem for path in (ROOT / "src" / "fewkern" / package).glob("*.py")}, package
    chains = page.split("```")[3]
    scopes = defaultdict(str)
    for path, source in SOURCES.items():
        for scope in (path.parent.name, path.stem, *re.findall(r"^class (\w+)", source, re.M)):
            scopes[scope] += f"def {path.stem}\n" * (scope == path.parent.name) + source
    everything = "".join(SOURCES.values())
    names = re.findall(r"[A-Za-z_]\w*(?:\.\w+)+|\w+_\w+", chains)
    assert len(names) > 40
    for name in names:
        scope, _, last = name.rpartition(".")
        source = scopes[scope.rpartition(".")[2]] if scope else everything
        assert re.search(rf"\b(?:def|class) {last}\b|\b{last}:", source), name
