"""What is mutated, and which mutants are known to be no change at all."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from tests.mutate.mutants import Mutant
from tests.mutate.reach import ROOT

__all__ = ["Equivalents", "algorithm_modules", "equivalent"]


def algorithm_modules() -> list[str]:
    """The modules of ``core``, and those of the left column of the table in ARCHITECTURE.md."""
    found = [
        f"core.{path.stem}" for path in (ROOT / "src" / "fewkern" / "core").glob("*.py") if path.stem != "__init__"
    ]
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for package, algorithms in re.findall(r"^\| `(\w+)` \([^|]*\) \| ([^|]*) \|", text, flags=re.MULTILINE):
        found += [f"{package}.{name}" for names in re.findall(r"`([^`]*)`", algorithms) for name in names.split()]
    return sorted(f"fewkern.{name}" for name in found)


class Equivalents:
    """Mutants that no test can tell from the original, by their texts, so that lines may move.

    The file has one table per mutant: ``module``, ``function``, the ``line``, ``before``, ``after`` and the ``reason``.
    """

    def __init__(self, file: Path) -> None:
        entries = tomllib.loads(file.read_text(encoding="utf-8")).get("mutant", [])
        self.entries = [{key: _plain(text) for key, text in entry.items()} for entry in entries]
        self.keys = {(e["module"], e["function"], e["line"], e["before"], e["after"]) for e in self.entries}

    @staticmethod
    def key(mutant: Mutant) -> tuple[str, ...]:
        """What the file knows of a mutant."""
        texts = (mutant.text, mutant.before, mutant.after)
        return (mutant.module, mutant.function, *map(_plain, texts))

    def __contains__(self, mutant: Mutant) -> bool:
        return self.key(mutant) in self.keys


def _plain(text: str) -> str:
    return " ".join(text.split())


@cache
def equivalent() -> Equivalents:
    """Those of ``equivalent.toml``."""
    return Equivalents(Path(__file__).with_name("equivalent.toml"))
