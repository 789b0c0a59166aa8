"""The shape of the package stays what ARCHITECTURE.md asks for: calls go downward, functions are short."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from pathlib import Path

import pytest
from sklearn.base import is_regressor

import fewkern
from fewkern.arrays.validation import CallbackSupportMixin
from fewkern.kernels import Linear
from tests.golden.cases import table

ROOT = Path(fewkern.__file__).parent
LONGEST, MOST_PARAMETERS = 60, 6
# Function -> why it may be longer, or take more parameters.
EXCEPTIONS: dict[str, str] = dict.fromkeys(
    [f"app/_commands:{name}" for name in ("fit", "check", "predict", "compress")],
    "the parameters of a command are its options",
) | dict.fromkeys(
    ["compression/compress:compress", "io/c:to_c"], "a public function with keyword options, as a constructor has"
)
# From the bottom. Methods beside each other share a level.
LEVELS = ["arrays", "core", "base", "populations", "select", "fisher margins density", "learn", "compression"]
LEVELS += ["io", "plotting", "reporting", "tables", "app"]
# These implement a protocol of core.
VALUES = ("fewkern.density.mixture", "fewkern.density.edges")
# These call what was passed to them: a state of peel, the function that a search minimizes, that of a row block, the
# method that a decorator wraps.
CALLBACKS = {
    "fewkern.core.path",
    "fewkern.core.samples",
    "fewkern.select.uncertainty",
    "fewkern.populations",
    "fewkern.arrays.blocks",
    "fewkern.arrays.optimize",
    "fewkern.arrays.validation",
    "fewkern.arrays.partitions",
}
ESTIMATORS = {name: getattr(fewkern, name) for name in fewkern.__all__ if hasattr(getattr(fewkern, name), "fit")}


def level(module):
    """The level of a module and its package; None for modules of no level."""
    part = "core" if module in VALUES else module.split(".")[1] if module.startswith("fewkern.") else ""
    return next(((i, part) for i, names in enumerate(LEVELS) if part in names.split()), None)


def upward_calls(model, X, y):
    """Calls from a lower package into a higher one, or between methods, in one fit and one prediction."""
    found = set()

    def trace(frame, event, _):
        if event == "call" and frame.f_back is not None:
            here, there = (f.f_globals.get("__name__", "") for f in (frame.f_back, frame))
            lower, higher = level(here), level(there)
            if lower and higher and lower != higher and lower[0] <= higher[0] and here not in CALLBACKS:
                found.add(f"{here}:{frame.f_back.f_code.co_name} -> {there}:{frame.f_code.co_qualname}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(trace)
        try:
            model.fit(X, y)
            for method in ("predict_proba", "predict", "transform", "score_samples"):
                if hasattr(model, method):
                    getattr(model, method)(X)
        finally:
            sys.setprofile(None)
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_calls_go_only_downward(name):
    model = ESTIMATORS[name]()
    X, y, _, _ = table("real" if is_regressor(model) else "two", 60)
    assert not upward_calls(model, X, y)


def test_an_upward_call_is_seen(monkeypatch):
    """The tracer itself could fail: a kernel that calls an estimator."""
    scope = {"__name__": "fewkern.core.kernels", "fewkern": fewkern}
    exec("def block(self, X, Y):\n    fewkern.FeatureVectorSelector()\n    return X @ Y.T", scope)
    monkeypatch.setattr(Linear, "_block", scope["block"])
    assert upward_calls(fewkern.FeatureVectorSelector(kernel="linear"), *table("real", 20)[:2])


def functions():
    """Every function of the package: where it is, its lines of code, and its parameters without those of methods."""
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        lines = {n for t in tokens if t.type not in skip for n in range(t.start[0], t.end[0] + 1)}
        nodes = list(ast.walk(ast.parse(source)))
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
                lines -= set(range(node.lineno, node.end_lineno + 1))
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                counted = 0 if node.name == "__init__" else sum(name not in ("self", "cls") for name in names)
                where = f"{path.relative_to(ROOT).with_suffix('').as_posix()}:{node.name}"
                yield where, len(lines & set(range(node.lineno, node.end_lineno + 1))), counted


def test_no_function_is_too_long_or_takes_too_much():
    found = [
        f"{where} ({lines} lines, {parameters} parameters)"
        for where, lines, parameters in functions()
        if (lines > LONGEST or parameters > MOST_PARAMETERS) and where not in EXCEPTIONS
    ]
    assert not found


@pytest.mark.parametrize("cls", ESTIMATORS.values())
def test_at_most_two_of_our_classes_in_an_ancestry(cls):
    # with scikit-learn before 1.9 its mixin for callbacks is ours, and empty
    ours = [b for b in cls.__mro__[1:] if b.__module__.startswith("fewkern.") and b is not CallbackSupportMixin]
    assert len(ours) <= 2
