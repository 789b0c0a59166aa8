"""Sphinx configuration: ``python -m sphinx -b html docs docs/_build/html``."""

import re
import sys
import warnings
from pathlib import Path

import fewkern

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from pictures import draw_pictures

from experiments.page import write_pages

write_pages()
draw_pictures()

project = "fewkern"
author = "the fewkern developers"
copyright = "2026, the fewkern developers"
release = version = fewkern.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "fewkern"
exclude_patterns = ["_build", "gallery/README.rst"]
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
}
suppress_warnings = ["config.cache", "myst.xref_missing"]
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")


def without_foreign_labels(*event):
    """Methods inherited from scikit-learn refer to labels of its own manual: keep the words, drop the reference."""
    lines = event[-1]
    lines[:] = [re.sub(r":ref:`([^`<]*?) <(?:accuracy_score|r2_score)>`", r"\1", line) for line in lines]


def setup(app):
    """Connect the hook above; Sphinx calls this."""
    app.connect("autodoc-process-docstring", without_foreign_labels)
