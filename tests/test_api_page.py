"""docs/api.rst lists every public name once, and nothing that does not exist."""

import importlib
import re
from pathlib import Path
from pydoc import locate

import fewkern

PAGE = Path(__file__).parents[1] / "docs" / "api.rst"
MODULES = {name: importlib.import_module(f"fewkern.{name}") for name in ("datasets", "fisher", "io", "plotting")}
MODULES |= {"graphs": fewkern.graphs, "kernels": fewkern.kernels}


def listed():
    """Entries of the autosummary tables: indented names, with their module."""
    return re.findall(r"^   ([A-Za-z_.]+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_public_name_is_listed_once_and_no_other():
    own = set(fewkern.__all__) - {"__version__", *MODULES}
    # what the package itself exports has no module in front
    public = own | {f"{prefix}.{name}" for prefix, module in MODULES.items() for name in set(module.__all__) - own}
    assert public <= set(listed())
    assert len(listed()) == len(set(listed()))
    assert all(locate(f"fewkern.{name}") is not None for name in listed())
