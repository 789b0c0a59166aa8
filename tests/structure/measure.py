"""Numbers about the shape of the package: sizes, parameters, ancestry, and calls that go upward.

``python -m tests.structure`` prints them; ``test_structure.py`` keeps those at zero that must be.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fewkern
from fewkern.arrays.validation import CallbackSupportMixin

ROOT = Path(fewkern.__file__).parent
LONGEST, MOST_PARAMETERS = 60, 6
# From the bottom. A call from one of these into a later one goes upward. Methods beside each other share a level.
LEVELS = (
    ("arrays",),
    ("core",),
    ("base",),
    ("populations",),
    ("select",),
    ("fisher", "margins", "density"),
    ("learn",),
    ("compression",),
    ("io",),
    ("plotting",),
    ("reporting",),
    ("tables",),
    ("app",),
)


# These ask what they were given: peel its state, novelty the units of other folds, a loop or a sum over rows the
# function of a block, SciPy's search the function that it minimizes, and the decorators of fits and predictions the
# method that they decorate.
# Values that implement a protocol of core count as part of it.
VALUES = ("fewkern.density.mixture", "fewkern.density.edges")
ASKING = (
    "fewkern.core.path",
    "fewkern.select.uncertainty",
    "fewkern.core.samples",
    "fewkern.populations",
    "fewkern.arrays.blocks",
    "fewkern.arrays.optimize",
    "fewkern.arrays.validation",
    "fewkern.arrays.partitions",
)


@dataclass(frozen=True)
class Function:
    """One function of the package."""

    where: str
    lines: int
    """Of code: without docstring, blank lines and comments."""
    parameters: int
    """Without ``self`` and ``cls``; zero for constructors."""


def sources() -> list[Path]:
    """Modules of the package."""
    return sorted(ROOT.rglob("*.py"))


def code_lines(source: str) -> set[int]:
    """Numbers of the lines that hold code: no comment, blank line or docstring."""
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {n for t in tokens if t.type not in skip for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def functions() -> Iterator[Function]:
    """Every function and method, those inside others too."""
    for path in sources():
        source = path.read_text(encoding="utf-8")
        lines = code_lines(source)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                own = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                counted = 0 if node.name == "__init__" else len([n for n in names if n not in ("self", "cls")])
                where = f"{path.relative_to(ROOT).with_suffix('')}:{node.name}"
                yield Function(where, len(lines & set(own)), counted)


def estimators() -> dict[str, type]:
    """Public estimators by name."""
    found = {name: getattr(fewkern, name) for name in fewkern.__all__}
    return {name: cls for name, cls in found.items() if isinstance(cls, type) and hasattr(cls, "fit")}


def own_ancestry() -> dict[str, int]:
    """Classes of ours that every public estimator inherits from."""
    return {
        # with scikit-learn before 1.9 its mixin for callbacks is ours, and empty
        name: sum(b.__module__.startswith("fewkern.") and b is not CallbackSupportMixin for b in cls.__mro__[1:])
        for name, cls in estimators().items()
    }


def constructor_parameters() -> dict[str, list[str]]:
    """Names of the parameters of every public estimator."""
    return {name: sorted(cls().get_params(deep=False)) for name, cls in estimators().items()}


def level(module: str) -> tuple[int, str] | None:
    """How high a module stands, and its package; None for what has no level."""
    if module in VALUES:
        return LEVELS.index(("core",)), "core"
    part = module.split(".")[1] if module.startswith("fewkern.") else ""
    return next(((i, part) for i, names in enumerate(LEVELS) if part in names), None)


class Upward:
    """Counts calls from a lower package into a higher one, or between methods that do not know each other."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        here, there = (f.f_globals.get("__name__", "") for f in (frame.f_back, frame))
        lower, higher = level(here), level(there)
        if lower and higher and lower != higher and lower[0] <= higher[0] and here not in ASKING:
            self.calls[f"{here}:{frame.f_back.f_code.co_name}", f"{there}:{frame.f_code.co_qualname}"] += 1


def upward_calls(model: Any, X: Any, y: Any) -> Counter[tuple[str, str]]:
    """Calls that go upward in one fit and one prediction."""
    seen = Upward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(seen)
        try:
            model.fit(X, y)
            for method in ("predict_proba", "predict", "transform", "score_samples"):
                if hasattr(model, method):
                    getattr(model, method)(X)
        finally:
            sys.setprofile(None)
    return seen.calls


def summary() -> dict[str, Any]:
    """The table."""
    every = list(functions())
    text = [path.read_text(encoding="utf-8") for path in sources()]
    parameters = constructor_parameters()
    return {
        "modules": len(text),
        "code lines": sum(len(code_lines(source)) for source in text),
        f"functions over {LONGEST} lines": sum(f.lines > LONGEST for f in every),
        f"functions over {MOST_PARAMETERS} parameters": sum(f.parameters > MOST_PARAMETERS for f in every),
        "longest function": max(f.lines for f in every),
        "public estimators": len(parameters),
        "most own classes in an ancestry": max(own_ancestry().values()),
        "constructor parameters": sum(len(names) for names in parameters.values()),
        "distinct parameter names": len({name for names in parameters.values() for name in names}),
        "type: ignore": sum(source.count("# type: ignore") for source in text),
        "noqa": sum(source.count("# noqa") for source in text),
    }
