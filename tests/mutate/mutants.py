"""Mutants of a module: its source with one small change, such as a slip of the pen could have made."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "equivalent", "mutants_of"]

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
_OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_NAMES = {
    one: other
    for pair in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil"))
    for one, other in (pair, pair[::-1])
} | {"zeros": "ones", "zeros_like": "ones_like", "ones": "zeros", "ones_like": "zeros_like"}
# Adding one to a large number is next to nothing: it is replaced by zero.
_LARGE = 100


@dataclass(frozen=True)
class Mutant:
    """``before`` becomes ``after`` in ``function`` (empty at the top of the module); both as ``ast.unparse`` writes."""

    module: str
    function: str
    line: str
    """The source line in which the change begins."""
    before: str
    after: str
    number: int
    """Of that line."""
    source: str
    """The whole module with the change."""

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies a mutant when lines move."""
        return (self.module, self.function, self.line, self.before, self.after)

    def __str__(self) -> str:
        return f"{self.module}:{self.number} {self.function}: {self.before}  ->  {self.after}"


def mutants_of(module: str, source: str) -> list[Mutant]:
    """All mutants of one module.

    Operators, comparisons, numbers, truth values, conditions, signs, extremes (``min`` for ``max``) and statements
    change; docstrings, messages, annotations, decorators and imports do not.
    """
    content, lines = source.encode(), source.splitlines(keepends=True)
    starts = [0]
    for text in lines:
        starts.append(starts[-1] + len(text.encode()))
    found = []
    for function, node, after in _changes(ast.parse(source).body, "", set()):
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        put = f"({after})" if isinstance(node, ast.expr) else after
        changed = (content[:begin] + put.encode() + content[end:]).decode()
        line = " ".join(lines[node.lineno - 1].split())
        found.append(Mutant(module, function, line, ast.unparse(node), after, node.lineno, changed))
    return found


def equivalent() -> set[tuple[str, ...]]:
    """Keys of the mutants in ``equivalent.toml``: nobody could tell them from the original."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    return {
        (e["module"], e["function"], " ".join(e["line"].split()), *(_unparsed(e[text]) for text in ("before", "after")))
        for e in entries
    }


def _unparsed(text: str) -> str:
    return text if text in ("break", "continue") else ast.unparse(ast.parse(text.strip()))


def _changes(nodes: list[ast.AST], scope: str, assigned: set[str]) -> Iterator[tuple[str, ast.AST, str]]:
    """Function, node and what replaces it, for these nodes and everything inside them.

    ``assigned`` are names that have a value: without its first value a name would only fail at once.
    """
    for node in nodes:
        inner = f"{scope}." if scope else ""
        if isinstance(node, ast.FunctionDef):
            yield from _changes([d for d in (*node.args.defaults, *node.args.kw_defaults) if d], scope, assigned)
            known = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
            yield from _changes(node.body, f"{inner}{node.name}", known)
        elif isinstance(node, ast.ClassDef):
            if not any(ast.unparse(base).startswith("Protocol") for base in node.bases):
                yield from _changes(node.body, f"{inner}{node.name}", assigned)
        elif isinstance(node, ast.AnnAssign):
            yield from _changes([node.value] if node.value else [], scope, assigned)
        elif not isinstance(node, (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)) and not _is_list(node):
            yield from ((scope, changed, after) for changed, after in _replacements(node, assigned))
            if isinstance(node, ast.Assign):
                assigned |= _names(node)
            yield from _changes(list(ast.iter_child_nodes(node)), scope, assigned)


def _replacements(node: ast.AST, assigned: set[str]) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.Compare():
            for i, old in enumerate(node.ops):
                for new in _OPERATORS[type(old)]:
                    ops = [*node.ops[:i], new(), *node.ops[i + 1 :]]
                    yield node, ast.unparse(ast.Compare(node.left, ops, node.comparators))
        case ast.BinOp() if not (_is_text(node.left) or _is_text(node.right)):
            for new in _OPERATORS.get(type(node.op), ()):
                yield node, ast.unparse(ast.BinOp(node.left, new(), node.right))
        case ast.BoolOp():
            yield node, ast.unparse(ast.BoolOp(_OPERATORS[type(node.op)][0](), node.values))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, ast.unparse(node.operand)
        case ast.Constant(value=bool()):
            yield node, str(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, repr(type(node.value)(0) if node.value >= _LARGE else node.value + 1)
        case ast.IfExp():
            yield from ((node, ast.unparse(part)) for part in (node.body, node.orelse))
        case ast.Call():
            called = ast.unparse(node.func)
            name = called.rpartition(".")[2]
            if name in _NAMES:
                yield node, called.removesuffix(name) + _NAMES[name] + ast.unparse(node).removeprefix(called)
            if name == "abs" and len(node.args) == 1:
                yield node, ast.unparse(node.args[0])
        case ast.If():
            yield from ((node.test, word) for word in ("True", "False"))
        case ast.While():
            yield node.test, "False"
        case ast.Expr() if not isinstance(node.value, ast.Constant):
            yield node, "pass"
        case ast.Assign():
            parts = [part for target in node.targets for part in ast.walk(target)]
            if any(isinstance(part, (ast.Subscript, ast.Attribute)) for part in parts) or _names(node) <= assigned:
                yield node, "pass"
        case ast.AugAssign():
            yield node, "pass"
            for new in _OPERATORS.get(type(node.op), ()):
                yield node, ast.unparse(ast.AugAssign(node.target, new(), node.value))
        case ast.Break() | ast.Continue():
            yield node, "continue" if isinstance(node, ast.Break) else "break"


def _names(node: ast.Assign) -> set[str]:
    return {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _is_list(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and "__all__" in _names(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
