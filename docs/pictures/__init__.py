"""Pictures of the site, drawn from fits of the library and from the tables of the benchmarks when it is built.

``cd docs && python -m pictures [NAME ...]`` draws them by hand, into ``docs/_pictures``. ``python -m pictures readme``
draws those of the README, which are in the repository. To add one: write a function that returns a figure, decorate it
with ``@picture``, and put ``![...](_pictures/NAME.png)`` into a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt

from pictures import benchmarks, front, guide, methods  # noqa: F401 - they add their pictures
from pictures.canvas import PICTURES

__all__ = ["draw_for_readme", "draw_pictures"]

FOLDER = Path(__file__).parents[1] / "_pictures"

# Twice the pixels of the page, for screens with a high resolution.
DPI = 160


def draw_pictures(names: Iterable[str] = (), folder: Path = FOLDER) -> None:
    """Draw the pictures of these names, or all of them, into ``folder``."""
    folder.mkdir(exist_ok=True)
    plt.switch_backend("Agg")
    for name in names or PICTURES:
        fig = PICTURES[name]()
        fig.savefig(folder / f"{name}.png", dpi=DPI)
        plt.close(fig)


def draw_for_readme(folder: Path = FOLDER.parent) -> None:
    """Draw the picture of the README, for light and dark pages; they are small files, since git keeps them."""
    plt.switch_backend("Agg")
    for name, file in (("hero_light", "hero.png"), ("hero_dark", "hero-dark.png")):
        fig = PICTURES[name]()
        fig.savefig(folder / file, dpi=110, pil_kwargs={"optimize": True})
        plt.close(fig)
