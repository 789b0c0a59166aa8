"""References to docs/methods: "methods A3", "methods A3.7" and "methods part A" name something that is there."""

import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(methods A1, B2)", ["A1", "B2"]),
        ("RSVM; methods part A)", ["part A"]),
        ("Methods A3.7: and", ["A3.7"]),
        ("see methods\n    # B5 and B6", ["B5", "B6"]),
        ("five methods and no label", []),
    ],
)
def test_references_are_recognised(text, found):
    assert references(text) == found


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
