"""The code on the pages of the site gives what the pages say, and the formulas can be drawn."""

import doctest
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(pycon|python)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
GUIDE = [DOCS / "index.md", *sorted((DOCS / "guide").glob("*.md"))]
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def failures(text, name="page"):
    """Run the blocks of a page in one namespace; what its sessions print and should not."""
    names, report = {"__name__": "__main__"}, []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for number, (kind, code) in enumerate(BLOCK.findall(text), start=1):
        where = f"{name}, block {number}"
        if kind == "python":
            exec(compile(code, where, "exec"), names)
        else:
            test = doctest.DocTestParser().get_doctest(code, {}, where, where, 0)
            test.globs = names
            runner.run(test, out=report.append, clear_globs=False)
    return "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS).with_suffix("")))
def test_code_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages write files
    wrong = failures(page.read_text(encoding="utf-8"), page.name)
    plt.close("all")
    assert not wrong, wrong


def test_every_guide_page_has_code_that_runs():
    assert {page.stem for page in GUIDE if page not in PAGES} == {"when-not"}


def test_a_wrong_output_is_noticed():
    assert "Expected" in failures("```python\none = 1\n```\n\n```pycon\n>>> one + 1\n3\n```\n")
    with pytest.raises(NameError, match="two"):
        failures("```python\ntwo + 1\n```\n")


def test_every_guide_page_is_in_a_list_of_contents():
    lists = (DOCS / "index.md").read_text(encoding="utf-8"), (DOCS / "guide" / "index.md").read_text(encoding="utf-8")
    named = {Path(name).stem for text in lists for name in re.findall(r"^(?:guide/)?([\w-]+)$", text, re.MULTILINE)}
    assert {page.stem for page in GUIDE} <= named


def test_the_readme_shows_what_its_code_prints():
    """The README promises numbers of vectors in comments; the first page of the guide computes the same model."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    guide = (DOCS / "guide" / "index.md").read_text(encoding="utf-8")
    kept = re.search(r">>> model.n_vectors_\n(\d+)", guide)[1]
    assert re.search(rf"model\.n_vectors_  # .*\b{kept}\b", readme)
    assert re.search(rf"vectors kept +{kept} ", readme)
