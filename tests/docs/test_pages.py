"""The code on the pages of the site gives what the pages say, and the formulas can be drawn."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```pycon\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
PAGES = [DOCS / "index.md", *sorted((DOCS / "guide").glob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def sessions(text):
    """The interactive sessions of a page, as one: a later one uses the names of those before."""
    return "\n".join(BLOCK.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages write files
    text = page.read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(sessions(text), {}, page.name, str(page), 0)
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
    assert test.examples or page.stem in ("when-not",), f"{page.name} has no code that runs"


def test_a_wrong_output_is_noticed():
    test = doctest.DocTestParser().get_doctest(sessions("```pycon\n>>> 1 + 1\n3\n```\n"), {}, "page", None, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=lambda text: None)
    assert runner.failures == 1


def test_every_guide_page_is_in_a_list_of_contents():
    lists = (DOCS / "index.md").read_text(encoding="utf-8"), (DOCS / "guide" / "index.md").read_text(encoding="utf-8")
    named = {Path(name).stem for text in lists for name in re.findall(r"^(?:guide/)?([\w-]+)$", text, re.MULTILINE)}
    assert {page.stem for page in PAGES} <= named


def test_the_readme_shows_what_its_code_prints():
    """The README promises numbers of vectors in comments; the first page of the guide computes the same model."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    guide = (DOCS / "guide" / "index.md").read_text(encoding="utf-8")
    kept = re.search(r">>> model.n_vectors_\n(\d+)", guide)[1]
    assert re.search(rf"model\.n_vectors_  # .*\b{kept}\b", readme)
    assert re.search(rf"vectors kept +{kept} ", readme)
