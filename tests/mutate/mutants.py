"""Small changes of a module's source, one at a time: what a slip of the pen could have made of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

_OPERATORS: dict[type, tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Add: ("-",),
    ast.Sub: ("+",),
    ast.Mult: ("/",),
    ast.Div: ("*",),
    ast.FloorDiv: ("*",),
    ast.Mod: ("*",),
    ast.Pow: ("*",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
    ast.And: ("or",),
    ast.Or: ("and",),
}
_NAMES = {
    one: other
    for pair in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil"))
    for one, other in (pair, pair[::-1])
} | {"zeros": "ones", "zeros_like": "ones_like", "ones": "zeros", "ones_like": "zeros_like"}
# One more is far from a small number and next to nothing for a large one, which is replaced by zero.
_LARGE = 100


@dataclass(frozen=True)
class Mutant:
    """One change: ``before`` becomes ``after`` in ``function`` (or at the top of the module, where it is empty)."""

    module: str
    function: str
    line: int
    before: str
    after: str
    start: int
    """First byte of ``before`` in the source."""
    text: str
    """The line in which it begins."""

    def apply(self, source: str) -> str:
        """The source with this change."""
        content = source.encode()
        end = self.start + len(self.before.encode())
        return (content[: self.start] + self.after.encode() + content[end:]).decode()

    def __str__(self) -> str:
        where = f"{self.module}:{self.line} {self.function}".rstrip()
        return f"{where}: {' '.join(self.before.split())}  ->  {' '.join(self.after.split())}"


def mutants_of(module: str, source: str) -> list[Mutant]:
    """All mutants of one module, in the order of its lines.

    Operators, comparisons, numbers, truth values, conditions, signs, extremes (``min`` for ``max``) and statements
    are changed; docstrings, messages, annotations, decorators and imports are not.
    """
    return sorted(_Finder(module, source).found, key=lambda m: (m.start, m.before, m.after))


class _Finder(ast.NodeVisitor):
    def __init__(self, module: str, source: str) -> None:
        self.module = module
        self.content = source.encode()
        self.starts = [0]
        for line in self.content.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.names: list[str] = []
        self.assigned: set[str] = set()
        self.found: list[Mutant] = []
        self.visit(ast.parse(source))

    def add(self, node: ast.expr | ast.stmt, after: str) -> None:
        """A mutant that has ``after`` in place of the node."""
        before = self.text(node)
        if isinstance(node, ast.expr):
            after = f"({after})"
        if before != after:
            function = ".".join(self.names).removesuffix(".<locals>")
            text = self.content[self.starts[node.lineno - 1] : self.starts[node.lineno]].decode().strip()
            self.found.append(Mutant(self.module, function, node.lineno, before, after, self.offset(node), text))

    def offset(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.content[self.offset(node) : self.starts[node.end_lineno - 1] + node.end_col_offset].decode()

    # What is left as it is

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...
    def visit_Raise(self, node: ast.Raise) -> None: ...
    def visit_Import(self, node: ast.Import) -> None: ...
    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # Scopes

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(self.text(base).startswith("Protocol") for base in node.bases):
            return
        self.names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        outer, self.assigned = self.assigned, {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        self.names += [node.name, "<locals>"]
        for statement in node.body:
            self.visit(statement)
        del self.names[-2:]
        self.assigned = outer

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        terms = [node.left, *node.comparators]
        for i, old in enumerate(node.ops):
            for new in _OPERATORS[type(old)]:
                parts = [self.text(terms[0])]
                for j, term in enumerate(terms[1:]):
                    parts += [new if j == i else _symbol(node.ops[j]), self.text(term)]
                self.add(node, " ".join(parts))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(isinstance(n, ast.JoinedStr | ast.Constant) and _is_text(n) for n in (node.left, node.right))
        if not texts:
            for new in _OPERATORS.get(type(node.op), ()):
                self.add(node, f"{self.wrapped(node.left)} {new} {self.wrapped(node.right)}")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        values = [self.wrapped(value) for value in node.values]
        self.add(node, f" {_OPERATORS[type(node.op)][0]} ".join(values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.add(node, self.text(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self.add(node, repr(type(node.value)(0) if node.value >= _LARGE else node.value + 1))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.add(node, self.text(node.body))
        self.add(node, self.text(node.orelse))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _NAMES:
            called = self.text(node.func).removesuffix(name) + _NAMES[name]
            self.add(node, called + self.text(node).removeprefix(self.text(node.func)))
        if name == "abs" and len(node.args) == 1:
            self.add(node, self.text(node.args[0]))
        self.generic_visit(node)

    # Statements

    def visit_If(self, node: ast.If) -> None:
        self.add(node.test, "True")
        self.add(node.test, "False")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.add(node.test, "False")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.add(node, "pass")
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        if names & {"__all__"}:
            return
        stores = [
            n for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Subscript | ast.Attribute)
        ]
        # without the first value of a name the module fails at once, which would say nothing
        if stores or names <= self.assigned:
            self.add(node, "pass")
        self.assigned |= names
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node, "pass")
        for new in _OPERATORS.get(type(node.op), ()):
            self.add(node, f"{self.text(node.target)} {new}= {self.text(node.value)}")
        self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        self.add(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.add(node, "break")

    def wrapped(self, node: ast.expr) -> str:
        """The text of a term, in parentheses if it needs them."""
        simple = isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript)
        return self.text(node) if simple else f"({self.text(node)})"


def _symbol(operator: ast.cmpop) -> str:
    pair = ast.Compare(ast.Name("a"), [operator], [ast.Name("b")])
    return ast.unparse(pair).removeprefix("a ").removesuffix(" b")


def _is_text(node: ast.JoinedStr | ast.Constant) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node.value, str)
