"""Figures inside a page."""

import warnings

import pytest

from fewkern.reporting.figures import INK, drawing, inline_svg, new_axes
from tests.reporting.helpers import Parsed


def drawn(label, name="p"):
    with drawing():
        ax = new_axes()
        ax.plot([0, 1], [0, 1], color=INK)
        ax.set_xlabel(label)
        return inline_svg(ax.figure, name, f"about {label}")


@pytest.mark.parametrize(
    "label", ['style="font-family: a', "</text><script>", 'a" onload="x', "$\\frac{", 'url(#a id="b', "&amp;"]
)
def test_texts_stay_texts(label):
    svg, width = drawn(label)
    page = Parsed(svg)
    assert width == 442  # 4.6 inches
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in Parsed(drawn("plain")[0]).elements}
    names = {name for _, attrs in page.elements for name in attrs}
    assert names == {name for _, attrs in Parsed(drawn("plain")[0]).elements for name in attrs}
    assert page.tags("svg")[0]["aria-label"] == f"about {label}"


def test_letters_that_the_drawing_lacks_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "東京" in drawn("東京")[0]
