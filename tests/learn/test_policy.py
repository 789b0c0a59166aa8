"""Every number that can change the model is in the policy, with its reason; any other is named here with one."""

import ast
import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import fewkern.learn
from fewkern.arrays import optimize
from fewkern.learn import policy
from fewkern.learn.policy import POLICY

FOLDER = Path(fewkern.learn.__file__).parent
# Counts, halves and signs are arithmetic.
PLAIN = {0, 1, 2, 0.5}
# Module constant, or function with numbers in it -> why they are not in the policy.
ELSEWHERE = {
    "batches._DIGITS": "rounding: rows that went through a preparation and back",
    "batches._SUM_ROUNDING_ERRORS": "rounding: sums over many rows",
    "compare.grow": "bounds that keep numbers finite where rows are explained",
    "components._EXACT_RESIDUAL_SHARE": "rounding: where conjugate gradients end",
    "components._LEAST_UNIT_SHARE": "a bound that keeps squares finite",
    "components._SEED": "any seed will do",
    "copies._equal_by_chance": "a bound that keeps odds finite",
    "copies._scaled": "quartiles; a value for gaps that no row has",
    "estimators._LEAST_CLASS_ROWS": "when to warn",
    "estimators._warn_of_rare_classes": "labels in a warning",
    "fitting._CLEAR": "when to warn",
    "fitting._WARNED_COPIES_SHARE": "when to warn",
    "geometry._BLOCK_ELEMENTS": "the size of a block",
    "levels._DIGITS": "rounding: ties of levels",
    "levels._NOTHING": "rounding: a score in which no levels differ",
    "levels._POSITION_DIGITS": "rounding: sums over levels",
    "levels.in_units": "the third moment",
    "logistic._ALL": "rounding: all rows have the weight of all rows",
    "preparation._EQUAL": "rounding: quartiles that are equal",
    "preparation._FEW": "the size of a block",
    "preparation._NORMAL_RANGE": "of the normal distribution",
    "preparation._NORMAL_TAIL": "of the normal distribution",
    "preparation.__init__": "the quantiles of both",
    "start.ROUNDING": "rounding: ties of residuals",
    "suspects._MOST_CLASSES": "what is learned, not how: documented at the parameter",
    "suspects._of_numbers": "of the normal distribution",
}


def numbers(name, source):
    """Where numbers are, as "module.function" or "module.CONSTANT", and their lines."""

    def inside(node, where):
        if isinstance(node, ast.FunctionDef):
            where = f"{name}.{node.name}"
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.keyword) and child.arg == "stacklevel":
                continue
            if isinstance(child, ast.Constant) and type(child.value) in (int, float) and child.value not in PLAIN:
                yield where, child.lineno
            yield from inside(child, where)

    for node in ast.parse(source).body:
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        if isinstance(node, ast.Assign | ast.AnnAssign):
            if any(isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in ast.walk(node)):
                yield from ((f"{name}.{constant}", node.lineno) for constant in names)
        else:
            yield from inside(node, f"{name}.{getattr(node, 'name', '')}")


def everywhere():
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem != "policy":
            yield from numbers(path.stem, path.read_text(encoding="utf-8"))


def test_no_number_is_outside_the_policy_without_a_reason():
    assert [f"{where}, line {line}" for where, line in everywhere() if where not in ELSEWHERE] == []


def test_every_reason_is_needed():
    assert set(ELSEWHERE) <= {where for where, _ in everywhere()}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_FOLDS = 2", [("m._FOLDS", 1)]),
        ("A, B = 1, 0.1", [("m.A", 1), ("m.B", 1)]),
        ("RIDGES: tuple = (3.0,)", [("m.RIDGES", 1)]),
        ("def f(tol=1e-5):\n    return 2 * tol", [("m.f", 1)]),
        ("class A:\n    def f(self):\n        return -3 * self.b", [("m.f", 3)]),
        ("class A:\n    b: int = 7", [("m.A", 2)]),
        ("def f():\n    warn(stacklevel=4)\n    return 0.5 * x[-1]", []),
    ],
)
def test_a_number_is_found(source, found):
    assert list(numbers("m", source)) == found


def sections():
    return [type(getattr(POLICY, one.name)) for one in fields(POLICY)] + [optimize.LogisticSteps]


@pytest.mark.parametrize("section", sections())
def test_every_number_of_the_policy_has_a_description(section):
    (body,) = ast.parse(inspect.getsource(section)).body
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and not is_dataclass(getattr(section, node.target.id)):
            assert isinstance(after, ast.Expr), f"{section.__name__}.{node.target.id}"
    assert inspect.getdoc(section)


def test_every_section_is_in_the_policy():
    every = {one for one in vars(policy).values() if isinstance(one, type) and one.__module__ == policy.__name__}
    assert every == {*sections(), policy.Policy} - {optimize.LogisticSteps}
