"""A fitted model as one SQL expression.

The expression is a chain of subqueries, one per step: inputs, features, scaled features, exponents, kernels, values.
``LIMIT 1`` keeps a database from putting one step into the next, where it would be computed once per vector.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.io.archive import write_atomically
from fewkern.io.c_text import c_comment
from fewkern.io.describe import plan, refuse_columns
from fewkern.io.js import json_label
from fewkern.io.plan import Classes, Inputs, Lookup, Plan, Sum, Vector

# PostgreSQL allows 1664 columns in a subquery, SQLite 2000.
_MOST_COLUMNS = 1600
# Beyond this, either way, an exponential is replaced: PostgreSQL raises an error where one underflows or overflows.
_EXPONENT = 700.0


def to_sql(
    model: Any, path: str | os.PathLike[str] | None = None, *, output: str = "predict", number: int | None = None
) -> str:
    """A fitted model as one SQL expression of the columns of a table.

    It stands where a column can stand: ``SELECT id, <expression> AS price FROM houses``, in a view, in ``WHERE``.

    Parameters
    ----------
    model : fitted classifier, regressor or transformer of fewkern
        Or a pipeline or a model of tables, as in :func:`to_c`. Columns have the names that the model was fitted with,
        else ``x0``, ``x1``, ... Missing numbers are ``NULL``; texts are given as they are. A date in a table
        becomes several columns, such as ``"since (day)"``, which the head of the file describes.
    path : str, path or None, default None
        If given, also write the expression to this file, below a comment.
    output : {"predict", "predict_proba", "decision", "transform"}, default "predict"
        What the expression computes. The label of a classifier has the type of its classes.
    number : int or None, default None
        Which class, score, value or component; not for the label. None: the last one, which is the second of two
        classes, or the only value.

    Returns
    -------
    str
        The expression, in parentheses.

    Notes
    -----
    The expression uses ``exp``, ``abs``, ``coalesce``, ``CASE`` and ``CAST``, and refers to the columns of the query
    around it. SQLite has ``exp`` if it was built with its math functions (the command line tool is); elsewhere register
    one: ``connection.create_function("exp", 1, math.exp)``. Tested with SQLite, and tried with DuckDB; PostgreSQL has
    the same functions and quotes. A column that the table lacks is an error. SQLite takes its quoted name for a text:
    a column of numbers that is not there makes every row ``NULL`` (unless its name is a number), one of texts counts as
    an unknown category. Numbers must be numbers in the table: a text such as "12,34 EUR" is an error or, in SQLite, 12.
    Densities and the kernel ``LinearSpline`` are refused.

    Examples
    --------
    >>> from fewkern import KernelRegressor, to_sql
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1)
    >>> model = KernelRegressor(n_vectors=5).fit(X, y)
    >>> expression = to_sql(model)
    >>> import math, sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> connection.create_function("exp", 1, math.exp)
    >>> (value,) = connection.execute(f"SELECT {expression} FROM (SELECT 0.5 AS x0)").fetchone()
    >>> bool(abs(value - model.predict([[0.5]])[0]) < 1e-10)
    True
    """
    refuse_columns(model, "to_sql")
    described = plan(model, "double", "to_sql")
    _check(described, output)
    expression = _expression(described, output, number)
    if path is not None:
        lines = [
            f"{described.title}: {output}",
            f"Written by fewkern {__version__} (to_sql). Use: SELECT *, <this expression> AS {output} FROM <table>",
            *described.notes,
        ]
        comment = "".join(f"-- {c_comment(line)}\n" for line in lines)
        write_atomically(path, lambda handle: handle.write(f"{comment}{expression}\n".encode()))
    return expression


def _check(described: Plan, output: str) -> None:
    for part in described.sums:
        if not isinstance(part, Sum):
            raise TypeError(
                f"to_sql: {described.model} is made of densities, and SQL has no stable logarithm of a sum; use to_c, "
                "to_js or to_onnx."
            )
        if part.kind == "spline":
            raise ValueError("to_sql: the kernel LinearSpline has no form in SQL; use to_c, to_js or to_onnx.")
        if len(part.vectors) > _MOST_COLUMNS or described.n_features > _MOST_COLUMNS:
            raise ValueError(
                f"to_sql: databases allow about {_MOST_COLUMNS} columns in a subquery, and this {described.model} has "
                f"{len(part.vectors)} vectors of {described.n_features} features; use compress, or fewer vectors."
            )
    classes = described.classes
    known: list[str] = [] if described.values is None else [described.values]
    if classes is not None:
        known += ["predict", "decision", *(["predict_proba"] if classes.probable else [])]
    if output not in known:
        raise ValueError(f"to_sql: output of this {described.model} must be one of {known}, got {output!r}.")


def _number(value: float) -> str:
    if not np.isfinite(value):
        raise ValueError("to_sql: the model holds a number that is not finite; fit it again on finite samples.")
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text


def _quoted(text: str, mark: str) -> str:
    if "\0" in text:
        raise ValueError(f"to_sql: {text!r} holds a NUL, which ends a text in SQL; rename it.")
    return mark + text.replace(mark, 2 * mark) + mark


def _name(text: str) -> str:
    return _quoted(text, '"')


def _literal(value: Any) -> str:
    """A label or a category."""
    if isinstance(value, str):
        return _quoted(value, "'")
    return repr(int(value)) if isinstance(value, int) else _number(value)


def _total(terms: list[str]) -> str:
    """A sum with balanced parentheses: databases limit the depth of an expression."""
    if len(terms) <= 8:
        return " + ".join(terms) or "0e0"
    half = len(terms) // 2
    return f"({_total(terms[:half])}) + ({_total(terms[half:])})"


def _products(names: list[str], weights: Vector) -> list[str]:
    return [f"{name} * {_number(weight)}" for name, weight in zip(names, weights) if weight]


def _exp(exponent: str) -> str:
    """The exponential of a column, clipped against overflow and underflow; NULL stays NULL."""
    low, high = _number(-_EXPONENT), _number(_EXPONENT)
    largest = _number(float(np.exp(_EXPONENT)))
    return f"CASE WHEN {exponent} < {low} THEN 0e0 WHEN {exponent} > {high} THEN {largest} ELSE exp({exponent}) END"


class _Chain:
    """Steps, each a subquery with named columns that reads the one before."""

    def __init__(self) -> None:
        self.text = ""

    def step(self, letter: str, expressions: list[str], keep: list[str] | None = None) -> list[str]:
        """Add a step; returns the names of its columns, without those of the last step that it keeps."""
        names = [f"{letter}{i}" for i in range(len(expressions))]
        columns = [*(keep or []), *(f"{one} AS {name}" for one, name in zip(expressions, names))]
        self.text = f"(SELECT {', '.join(columns)}{self._source()} LIMIT 1) AS {letter}_"
        return names

    def close(self, expression: str) -> str:
        return f"(SELECT {expression}{self._source()} LIMIT 1)"

    def _source(self) -> str:
        return f"\nFROM {self.text}" if self.text else ""


def _expression(described: Plan, output: str, number: int | None) -> str:
    chain = _Chain()
    names = described.input_names
    if described.inputs is None:
        u = chain.step("u", [_if_there(name, _cell(name)) for name in names])
    else:
        u = chain.step("u", _features(described.inputs, names))
    part = described.sums[0]
    assert isinstance(part, Sum)
    values = chain.step("f", _values(part, chain, u))
    if described.classes is None or output == described.values:
        return chain.close(values[_place(number, len(values), output)])
    return _class_output(described.classes, chain, values, (output, number))


def _place(number: int | None, count: int, output: str) -> int:
    if number is not None and not 0 <= number < count:
        raise ValueError(f"to_sql: number must be between 0 and {count - 1} for output={output!r}, got {number}.")
    return count - 1 if number is None else number


def _cell(name: str) -> str:
    return f"CAST({_name(name)} AS DOUBLE PRECISION)"


def _if_there(name: str, expression: str) -> str:
    """A number, NULL without its column: SQLite takes a quoted name that is no column for a text, the name itself."""
    try:
        float(name)
    except ValueError:
        pass
    else:  # a cell may be equal to it
        return expression
    return f"CASE WHEN CAST({_name(name)} AS TEXT) = {_literal(name)} THEN NULL ELSE {expression} END"


def _features(inputs: Inputs, names: tuple[str, ...]) -> list[str]:
    """Expressions of the features, from cells."""
    found: list[str] = []
    for part in inputs.parts:
        texts, name = inputs.texts.get(part.column), names[part.column]
        cell = (f"TRIM({_name(name)})" if inputs.trimmed else _name(name)) if texts else _cell(name)
        if part.missing is not None:
            missing = _literal(texts[int(part.missing)]) if texts else _number(part.missing)
            cell = f"COALESCE({cell}, {missing})"
        if not isinstance(part, Lookup):
            found.append(_if_there(name, cell))
            continue
        keys = [_literal(texts[int(key)]) if texts else _number(key) for key in part.keys]
        for values, unknown in zip(part.values.T, part.unknown):
            other = "NULL" if np.isnan(unknown) else _number(unknown)
            cases = [f"WHEN {key} THEN {_number(one)}" for key, one in zip(keys, values) if one != unknown]
            looked_up = f"CASE {cell} {' '.join(cases)} ELSE {other} END" if cases else other
            found.append(looked_up if texts else _if_there(name, looked_up))
    return found


def _bend(x: str, knots: Vector, values: Vector) -> str:
    """Linear between the knots, constant beyond them."""
    cases = [f"WHEN {x} IS NULL THEN NULL", f"WHEN {x} <= {_number(knots[0])} THEN {_number(values[0])}"]
    for k in range(1, len(knots)):
        rise, run = _number(values[k] - values[k - 1]), _number(knots[k] - knots[k - 1])
        line = f"{_number(values[k - 1])} + {rise} * (({x} - {_number(knots[k - 1])}) / {run})"
        cases.append(f"WHEN {x} < {_number(knots[k])} THEN {line}")
    return f"CASE {' '.join(cases)} ELSE {_number(values[-1])} END"


def _values(part: Sum, chain: _Chain, u: list[str]) -> list[str]:
    """Add the steps of a sum; returns the expressions of its values."""
    t = u if part.bends is None else chain.step("t", [_bend(x, *bend) for x, bend in zip(u, part.bends)])
    z = t if part.shift is None else [f"({x} - {_number(s)})" for x, s in zip(t, part.shift)]
    if part.factor is not None:
        z = [f"{x} * {_number(f)}" for x, f in zip(z, part.factor)]
    z += [_total(_products(t, row)) for row in part.directions] if part.directions is not None else []
    linear = t if part.slopes is not None else []
    z = chain.step("z", z, linear)
    if part.coef is None:
        return [_total([_number(b), *_products(z, v)]) for b, v in zip(part.offset, part.vectors)]
    k = _kernels(part, chain, z, linear)
    slopes = np.zeros((len(part.offset), 0)) if part.slopes is None else part.slopes
    return [
        _total([_number(b), *_products(k, c), *_products(t, s)]) for b, c, s in zip(part.offset, part.coef.T, slopes)
    ]


def _kernels(part: Sum, chain: _Chain, z: list[str], linear: list[str]) -> list[str]:
    """Steps from scaled features to kernels; ``linear`` are columns that a later step reads."""
    if part.kind == "polynomial":
        assert part.constant is not None
        bases = [_total([_number(c), *_products(z, v)]) for c, v in zip(part.constant, part.vectors)]
        b = chain.step("b", bases, linear)
        return chain.step("k", [" * ".join([one] * part.degree) for one in b], linear)
    gaps = [[f"({x} - {_number(v)})" for x, v in zip(z, row)] for row in part.vectors]
    if part.kind == "laplacian":
        exponents = [f"-({_total([f'abs{gap}' for gap in row])})" for row in gaps]
    elif part.kind != "gaussian":
        raise ValueError(f"to_sql: kernels of the kind {part.kind!r} are not written.")
    else:
        narrow = np.ones(len(gaps)) if part.narrow is None else part.narrow
        exponents = [
            f"{_number(-width)} * ({_total([f'{gap} * {gap}' for gap in row])})" for row, width in zip(gaps, narrow)
        ]
    e = chain.step("e", exponents, linear)
    return chain.step("k", [_exp(one) for one in e], linear)


def _class_output(classes: Classes, chain: _Chain, values: list[str], what: tuple[str, int | None]) -> str:
    """The label, a score or a probability."""
    output, number = what
    scores, count = classes.scores, len(classes.labels)
    made = values
    if scores.weights is not None:
        made = [_total(_products(values, column)) for column in scores.weights.T]
    if scores.offset is not None:
        made = [f"{one} + {_number(b)}" for one, b in zip(made, scores.offset)]
    s = chain.step("s", made)
    if output == "decision":
        return chain.close(s[_place(number, len(s), output)])
    if output == "predict":
        if number is not None:
            raise ValueError("to_sql: number is not for the label of a class; leave it out.")
        return chain.close(_largest(s, [_literal(json_label(label, "to_sql")) for label in classes.labels]))
    own = _place(number, count, output)
    slope, level = scores.shares or (0.0, 0.0)
    if len(s) == 1:
        whole = f"({s[0]} * {_number(slope)} + {_number(level)})"
        s = chain.step("c", [f"({whole} - {s[0]}) / 2e0", f"({whole} + {s[0]}) / 2e0"])
    if scores.shares is not None:
        p = chain.step("p", [f"CASE WHEN {one} < 0e0 THEN 0e0 ELSE {one} END" for one in s])
        return chain.close(f"{p[own]} / ({_total(p)})")
    # relative to the score of the class itself: its probability is one over the sum
    e = chain.step("d", [f"{_number(scores.factor)} * ({one} - {s[own]})" for one in s])
    return chain.close(f"1e0 / ({_total([_exp(one) for one in e])})")


def _largest(s: list[str], labels: list[str]) -> str:
    """The label of the first of the largest scores; NULL where a score is."""
    cases = [f"WHEN {' OR '.join(f'{one} IS NULL' for one in s)} THEN NULL"]
    if len(s) == 1:
        return f"CASE {cases[0]} WHEN {s[0]} > 0e0 THEN {labels[1]} ELSE {labels[0]} END"
    for i, one in enumerate(s[:-1]):
        better = " AND ".join(f"{one} >= {other}" for other in s[i + 1 :])
        cases.append(f"WHEN {better} THEN {labels[i]}")
    return f"CASE {' '.join(cases)} ELSE {labels[-1]} END"
