"""docs/api.rst lists every public name once, and nothing that does not exist."""

import importlib
import re
from collections import Counter
from pathlib import Path
from pydoc import locate

import fewkern

PAGE = Path(__file__).parents[1] / "docs" / "api.rst"
MODULES = {name: importlib.import_module(f"fewkern.{name}") for name in ("datasets", "fisher", "io", "plotting")}
MODULES |= {"graphs": fewkern.graphs, "kernels": fewkern.kernels}


def listed():
    """Entries of the autosummary tables: indented names, with their module."""
    return re.findall(r"^   ([A-Za-z_.]+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def public():
    """Public names; what the package itself exports has no module in front."""
    own = {name for name in fewkern.__all__ if name != "__version__" and name not in MODULES}
    names = {f"{prefix}.{name}" for prefix, module in MODULES.items() for name in module.__all__}
    return own | {name for name in names if name.split(".")[1] not in own}


def test_every_public_name_is_listed():
    assert public() - set(listed()) == set()


def test_no_name_is_listed_twice():
    assert [name for name, count in Counter(listed()).items() if count > 1] == []


def test_every_listed_name_exists():
    for name in listed():
        assert locate(f"fewkern.{name}") is not None, name
