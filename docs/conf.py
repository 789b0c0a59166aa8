"""Sphinx configuration: ``python -m sphinx -W -n -b html docs docs/_build/html``.

With ``-t quick`` the results, the pictures and the gallery are left as the last build made them: for work on the text.
"""

import re
import sys
import warnings
from pathlib import Path

import fewkern

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE / "_extensions")]

if not tags.has("quick"):  # noqa: F821 - Sphinx defines it
    from pictures import draw_pictures

    from experiments.page import write_pages

    write_pages()
    draw_pictures()

project = "fewkern"
author = "the fewkern developers"
copyright = "2026, the fewkern developers"
release = version = fewkern.__version__
extensions = [
    "mathml",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "fewkern"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_static_path = ["_static"]
html_css_files = ["fewkern.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/README.rst", "**/sg_execution_times.rst", "sg_execution_times.rst"]
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "attrs_block", "attrs_inline", "colon_fence"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "capture_repr": (),
    "plot_gallery": not tags.has("quick"),  # noqa: F821
    "parallel": 2,
    "abort_on_example_error": True,
}
suppress_warnings = ["config.cache"]
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

# What every estimator inherits from scikit-learn; its manual describes it.
OF_SCIKIT_LEARN = {"get_params", "set_params", "get_metadata_routing", "set_output"}

# Modules whose sources also hold classes that are documented as members of the package.
MIXED = {
    "fewkern.compression",
    "fewkern.core.gaussians",
    "fewkern.fisher",
    "fewkern.learn.suspects",
    "fewkern.tables.encoder",
}


def is_of_scikit_learn(*event):
    """Leave these out: their descriptions refer to pages of scikit-learn's manual."""
    name = event[2]
    return True if name in OF_SCIKIT_LEARN or re.fullmatch(r"set_\w+_request", name) else None


def without_foreign_labels(*event):
    """Methods inherited from scikit-learn refer to labels of its own manual: keep the words, drop the reference."""
    lines = event[-1]
    lines[:] = [re.sub(r":(?:func|class):`~?sklearn\.[\w.]*?(\w+)`", r"``\1``", line) for line in lines]
    lines[:] = [re.sub(r":(?:ref|term):`([^`<]*?) ?(?:<[^>]*>)?`", r"\1", line) for line in lines]


def without_mixed_sources(*event):
    """Pages of sources link back by one module each: no source link where a page is under another name than its kin."""
    return "fewkern" if event[1] in MIXED else None


def setup(app):
    """Connect the hooks above; Sphinx calls this."""
    app.connect("autodoc-process-docstring", without_foreign_labels)
    app.connect("autodoc-skip-member", is_of_scikit_learn)
    app.connect("viewcode-follow-imported", without_mixed_sources)
