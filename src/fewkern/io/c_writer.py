"""The text of a C file for one plan.

The loops are C functions in ``loops.c``. This module copies those that a model needs, and writes its numbers and the
functions that a user calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.core.scores import ClassScores
from fewkern.density.mixture import product_bound, square_limit
from fewkern.io.c_text import c_head, c_lines, c_loops, c_number, c_string
from fewkern.io.plan import DTYPES, Bounds, Classes, Copy, Inputs, LogSum, Plan, Shares, Sum, Vector

# Nodes and weights on [0, 1] for Gaussians along a short way, as in arrays.line_integrals.
_NODES = np.polynomial.legendre.leggauss(8) * np.array([[0.5], [0.5]]) + np.array([[0.5], [0.0]])


class CWriter:
    """The text of one plan."""

    def __init__(self, described: Plan, name: str, dtype: str, shares: Shares | None = None) -> None:
        self.plan, self.name, self.dtype, self.shares = described, name, dtype, shares
        self.value_type = dtype
        self.largest = float(np.finfo(DTYPES[dtype]).max) if dtype in DTYPES else 0.0
        self.nbytes = self.n_state = 0
        self.constants: list[str] = []
        # names by content: what two sums share is written once
        self.arrays: dict[tuple[str, str], str] = {}
        self.prototypes: list[tuple[str, str]] = []
        self.functions: list[str] = []
        # the sums see the sample itself, or the features that are made of it
        self.sample = "x" if described.inputs is None else "u"

    def text(self) -> str:
        plan, n, t = self.plan, self.name, self.dtype
        if plan.inputs is not None:
            self._inputs(plan.inputs)
        for i, part in enumerate(plan.sums):
            if isinstance(part, Sum):
                self._sum(part, i)
            else:
                self._log_sum(part, i)
        if plan.values == "log_density":
            self._public(f"{t} {n}_log_density(const {t} *x)", "logarithm of the density", [f"return {n}_sum0(x);"])
        elif plan.values is not None:
            signature = f"void {n}_{plan.values}(const {t} *x, {t} *out)"
            self._public(signature, f"{plan.n_values} value(s) to out", self._values("out"))
        if plan.classes is not None:
            self._class_functions(plan.classes)
        if plan.bounds is not None:
            self._bounds(plan.bounds, len(plan.sums))
        if plan.set_threshold is not None:
            self._set(plan.set_threshold)
        if plan.novelty is not None:
            self._novelty(plan.novelty, len(plan.sums) + 1)
        if self.shares is not None:
            self._explain(self.shares, len(plan.sums) + 2)
        self._more()
        functions = "\n".join(self.functions)
        head = c_head(plan, n, self._about_size(), self.prototypes, self.n_state)
        return "\n".join([head, *self.constants, *c_loops(functions, n, t), functions])

    def _more(self) -> None:
        """For writers that add functions."""

    def _number(self, value: float) -> str:
        return c_number(value, self.dtype)

    def _array(self, what: str, values: Any, *, gaps: bool = False) -> str:
        """A constant array, row by row; returns its name. With ``gaps`` entries may be NaN."""
        values = np.asarray(values, dtype=float)
        texts = [["NAN" if gaps and np.isnan(v) else self._number(v) for v in row] for row in np.atleast_2d(values)]
        return self._constant(self.dtype, what, texts, np.dtype(DTYPES[self.dtype]).itemsize)

    def _constant(self, kind: str, what: str, texts: list[list[str]], itemsize: int) -> str:
        size, rows = sum(map(len, texts)), ",\n".join(map(c_lines, texts))
        if (kind, rows) not in self.arrays:
            self.arrays[kind, rows] = f"{self.name}_{what}"
            self.nbytes += size * itemsize
            self.constants.append(f"static const {kind} {self.name}_{what}[{size}] = {{\n{rows}\n}};\n")
        return self.arrays[kind, rows]

    def _function(self, signature: str, lines: list[str]) -> None:
        body = "".join(f"    {line}\n" for line in lines)
        self.functions.append(f"{signature}\n{{\n{body}}}\n")

    def _public(self, signature: str, meaning: str, lines: list[str]) -> None:
        self.prototypes.append((signature, meaning))
        self._function(signature, lines)

    def _inputs(self, inputs: Inputs) -> None:
        """The function that makes the features ``u`` of the inputs ``x``, and the one that knows texts."""
        n, t = self.name, self.dtype
        lines, first = [], 0
        for i, part in enumerate(inputs.parts):
            source = part if isinstance(part, Copy) else part.source
            value = f"x[{source.column}]"
            if source.missing is not None:
                value = f"{n}_fill({value}, {self._number(source.missing)})"
            if isinstance(part, Copy):
                lines.append(f"u[{first}] = {value};")
                first += 1
                continue
            keys, values = self._array(f"keys{i}", part.keys), self._array(f"rows{i}", part.values)
            unknown = self._array(f"unknown{i}", part.unknown, gaps=True)
            count, width = part.values.shape
            lines.append(f"{n}_look_up({value}, {keys}, {count}, {values}, {unknown}, {width}, u + {first});")
            first += width
        self._function(f"static void {n}_features(const {t} *x, {t} *u)", lines)
        if inputs.texts:
            self._codes(inputs.texts)

    def _codes(self, texts: dict[int, tuple[str, ...]]) -> None:
        n, lines = self.name, []
        for column, categories in sorted(texts.items()):
            names = ",\n    ".join(c_string(text) for text in categories)
            count = len(categories)
            self.constants.append(f"static const char *const {n}_texts{column}[{count}] = {{\n    {names}\n}};\n")
            lines += [f"if (input == {column}) {{", f"    return {n}_find(text, {n}_texts{column}, {count});", "}"]
        self._public(
            f"int {n}_code(int input, const char *text)",
            "what to put into x[input] for a text, -1 if it is none of its categories",
            [*lines, "return -1;"],
        )

    def _bent(self, bends: tuple[tuple[Vector, Vector], ...], i: int) -> str:
        """The statement that makes ``t`` from the features; tables that features share are written once."""
        pools: tuple[list[float], list[float]] = ([], [])
        starts: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
        places = []
        for tables in bends:
            place = [len(tables[0])]
            for table, pool, start in zip(tables, pools, starts):
                if table.tobytes() not in start:
                    start[table.tobytes()] = len(pool)
                    pool += table.tolist()
                place.append(start[table.tobytes()])
            places.append([str(one) for one in place])
        knots, values = self._array(f"knots{i}", pools[0]), self._array(f"values{i}", pools[1])
        n, where = self.name, self._constant("int", f"places{i}", places, np.dtype(np.intc).itemsize)
        return f"{n}_prepare({self.sample}, {where}, {knots}, {values}, {len(places)}, t);"

    def _prepare(self, part: Sum | LogSum, i: int, d: int) -> list[str]:
        """Statements that make ``z`` from the sample ``x``, and ``t`` where there are bends."""
        n, t, x = self.name, self.dtype, self.sample
        lines = [] if x == "x" else [f"{t} u[{d}];", f"{n}_features(x, u);"]
        if isinstance(part, Sum) and part.bends is not None:
            lines += [f"{t} t[{d}];", self._bent(part.bends, i)]
            x = "t"
        if part.factor is None:
            return [*lines, f"const {t} *const z = {x};"]
        shift = None if part.shift is None else self._array(f"shift{i}", part.shift)
        factor = self._array(f"factor{i}", part.factor)
        if shift is None:
            lines += [f"{t} z[{part.vectors.shape[1]}];", *self._turned(part, i, x, "z")]  # type: ignore[arg-type]
        elif part.factor.ndim == 1:
            lines += [f"{t} z[{d}];", f"{n}_scale({x}, {shift}, {factor}, {d}, z);"]
        else:
            bound = self._array(f"bound{i}", product_bound(part.factor, self.largest))
            lines += [f"{t} y[{d}], z[{d}];", f"{n}_rotate({x}, {shift}, {factor}, {bound}, {d}, y, z);"]
        if isinstance(part, LogSum):
            lines.append(f"{n}_clip(z, {self._number(square_limit(d, self.largest))}, {d});")
        return lines

    def _turned(self, part: Sum, i: int, source: str, target: str) -> list[str]:
        """Statements that take prepared columns to the metric."""
        n, d, d_metric = self.name, self.plan.n_features, part.vectors.shape[1]
        lines = [f"{n}_stretch({source}, {self._array(f'factor{i}', part.factor)}, {d}, {target});"]
        if part.directions is not None:
            directions = self._array(f"directions{i}", part.directions)
            lines += [f"for (int i = {d}; i < {d_metric}; i++) {{", f"    {target}[i] = 0;", "}"]
            lines.append(f"{n}_linear({source}, {directions}, {d_metric - d}, {d}, {target} + {d});")
        return lines

    def _sum(self, part: Sum, i: int) -> None:
        n, t = self.name, self.dtype
        (m, d), q, count = part.vectors.shape, len(part.offset), self.plan.n_features
        lines = self._prepare(part, i, count)
        vectors, offset = self._array(f"vectors{i}", part.vectors), self._array(f"offset{i}", part.offset)
        lines.append(f"{n}_start({offset}, {q}, out);")
        if part.coef is None:
            lines.append(f"{n}_linear(z, {vectors}, {q}, {d}, out);")
        else:
            coef = self._array(f"coef{i}", part.coef)
            lines += [
                f"for (int j = 0; j < {m}; j++) {{",
                f"    {n}_add({self._kernel(part, i)}, {coef} + j * {q}, {q}, out);",
                "}",
            ]
        if part.slopes is not None:
            lines.append(f"{n}_linear(t, {self._array(f'slopes{i}', part.slopes)}, {q}, {count}, out);")
        self._function(f"static void {n}_sum{i}(const {t} *x, {t} *out)", lines)

    def _kernel(self, part: Sum, i: int) -> str:
        """The kernel of ``z`` and vector ``j``."""
        d = part.vectors.shape[1]
        kernel, arguments = str(part.kind), f"z, {self._array(f'vectors{i}', part.vectors)} + j * {d}, {d}"
        if part.constant is not None:
            arguments += f", {self._array(f'constant{i}', part.constant)}[j], {part.degree}"
        if part.narrow is not None:
            kernel, arguments = "own_gaussian", f"{arguments}, {self._array(f'narrow{i}', part.narrow)}[j]"
        return f"{self.name}_{kernel}({arguments})"

    def _log_sum(self, part: LogSum, i: int) -> None:
        n, t = self.name, self.dtype
        m, d = part.vectors.shape
        lines = self._prepare(part, i, d)
        arrays = [self._array(f"{what}{i}", getattr(part, what)) for what in ("vectors", "level", "narrow")]
        lowest = self._number(-0.4 * self.largest)
        lines.append(f"return {n}_log_sum(z, {', '.join(arrays)}, {m}, {d}, {lowest});")
        self._function(f"static {t} {n}_sum{i}(const {t} *x)", lines)

    def _values(self, target: str) -> list[str]:
        """Statements that write all values to ``target``."""
        if isinstance(self.plan.sums[0], Sum):
            return [f"{self.name}_sum0(x, {target});"]
        return [f"{target}[{i}] = {self.name}_sum{i}(x);" for i in range(len(self.plan.sums))]

    def _class_functions(self, classes: Classes) -> None:
        n, t, count, s = self.name, self.dtype, len(classes.labels), self.plan.n_scores
        value = self.value_type
        names = ",\n    ".join(c_string(str(label)) for label in classes.labels)
        self.constants.append(f"static const char *const {n}_classes[{count}] = {{\n    {names}\n}};\n")
        signature = f"void {n}_decision(const {t} *x, {value} *out)"
        self._public(signature, f"{s} score(s) to out", self._scores(classes.scores))
        decide = f"return {n}_largest(scores, {count});" if s > 1 else "return scores[0] > 0;"
        lines = [f"{value} scores[{s}];", f"{n}_decision(x, scores);", decide]
        self._public(f"int {n}_predict(const {t} *x)", f"number of the class, 0 to {count - 1}", lines)
        if classes.probable:
            self._proba(classes)
        self._public(
            f"const char *{n}_class_name(int number)",
            "label of a class, 0 if there is no such class",
            [f"return number >= 0 && number < {count} ? {n}_classes[number] : 0;"],
        )

    def _scores(self, scores: ClassScores) -> list[str]:
        """Statements that write the scores to ``out``."""
        n, q, s = self.name, self.plan.n_values, self.plan.n_scores
        if scores.weights is None:
            if scores.offset is None:
                return self._values("out")
            return [*self._values("out"), f"{n}_add(1, {self._array('score_offset', scores.offset)}, {s}, out);"]
        weights = self._array("score_weights", scores.weights.T)
        offset = self._array("score_offset", np.zeros(s) if scores.offset is None else scores.offset)
        return [
            f"{self.dtype} values[{q}];",
            *self._values("values"),
            f"{n}_start({offset}, {s}, out);",
            f"{n}_linear(values, {weights}, {s}, {q}, out);",
        ]

    def _proba(self, classes: Classes) -> None:
        """The function that turns scores into probabilities."""
        n, t, scores, count = self.name, self.dtype, classes.scores, len(classes.labels)
        lines = [f"{n}_decision(x, out);"]
        if self.plan.n_scores == 1:
            slope, level = scores.shares or (0.0, 0.0)
            lines.append(f"{n}_two(out, {self._number(slope)}, {self._number(level)});")
        if scores.shares is None:
            lines.append(f"{n}_softmax(out, {count}, {self._number(scores.factor)});")
        else:
            lines.append(f"{n}_shares(out, {count});")
        self._public(f"void {n}_predict_proba(const {t} *x, {t} *out)", f"{count} probabilities to out", lines)

    def _bounds(self, bounds: Bounds, i: int) -> None:
        n, t, q = self.name, self.dtype, self.plan.n_values
        ends = f"{self._array('lower_end', bounds.lower)}, {self._array('upper_end', bounds.upper)}"
        lines = [f"{t} values[{q}];", *self._values("values")]
        if bounds.scale is None or bounds.limits is None:
            lines.append(f"{n}_bounds(values, {ends}, {q}, out);")
        else:
            self._sum(bounds.scale, i)
            least, most = self._array("least_scale", bounds.limits[0]), self._array("most_scale", bounds.limits[1])
            lines = [f"{t} scale[{q}];", *lines, f"{n}_sum{i}(x, scale);"]
            lines.append(f"{n}_scaled_bounds(values, {ends}, scale, {least}, {most}, {q}, out);")
        of = f"of coverage {self.plan.coverage:g}"
        meaning = f"lower and upper bound of every value, {of}, to out ({2 * q} numbers)"
        self._public(f"void {n}_interval(const {t} *x, {t} *out)", meaning, lines)

    def _set(self, threshold: float) -> None:
        n, t, count = self.name, self.dtype, len(self.plan.classes.labels)  # type: ignore[union-attr]
        lines = [f"{t} proba[{count}];", f"{n}_predict_proba(x, proba);"]
        lines.append(f"return {n}_members(proba, {count}, {self._number(threshold)}, out);")
        of = f"of coverage {self.plan.coverage:g}"
        meaning = f"1 for every class in the set {of}, else 0, to out; how many there are"
        self._public(f"int {n}_predict_set(const {t} *x, int *out)", meaning, lines)

    def _novelty(self, features: Sum, i: int) -> None:
        n, t, m = self.name, self.dtype, len(features.offset)
        self._sum(features, i)
        lines = [f"{t} z[{m}];", f"{n}_sum{i}(x, z);", f"return {n}_unexplained(z, {m});"]
        self._public(f"{t} {n}_novelty(const {t} *x)", "how unlike the training samples, 0 to 1", lines)
        self._public(
            f"int {n}_is_novel(const {t} *x)",
            f"1 if the novelty is above that of all but {self.plan.false_alarms:g} of usual samples, else 0",
            [f"return {n}_novelty(x) > {self._number(self.plan.novelty_threshold)};"],
        )

    def _explain(self, shares: Shares, i: int) -> None:
        n, t, part, q = self.name, self.dtype, shares.part, len(shares.baseline)
        (count, d), d_metric, inputs = shares.centers.shape, part.vectors.shape[1], self.plan.n_inputs
        lines, bent = self._prepare(part, i, d), part.bends is not None
        if not bent:  # far out, where every Gaussian is zero, squares stay finite
            lines.append(f"{n}_clip(z, {self._number(square_limit(16 * d, self.largest))}, {d});")
        centers, weights = self._array("centers", shares.centers), self._array("weights", shares.weights)
        columns = self._constant("int", "columns", [[str(one) for one in shares.columns]], np.dtype(np.intc).itemsize)
        slopes = part.slopes if part.coef is not None else part.vectors
        linear = "0" if slopes is None else self._array(f"slopes{i}", slopes)
        lines += [f"{t} pull[{q * d_metric}] = {{0}};", f"for (int i = 0; i < {inputs * q}; i++) {{", "    out[i] = 0;"]
        lines += ["}", f"for (int k = 0; k < {count}; k++) {{", f"    const {t} *const center = {centers} + k * {d};"]
        start, metric = "center", "0, 0"
        if part.coef is not None:
            if bent:
                lines[-1:-1], start = [f"    {t} start[{d_metric}];"], "start"
                lines += [f"    {line}" for line in self._turned(part, i, "center", "start")]
                metric = f"{self._array(f'factor{i}', part.factor)}, "
                metric += "0" if part.directions is None else self._array(f"directions{i}", part.directions)
            arrays = [self._array(f"{what}{i}", getattr(part, what)) for what in ("vectors", "coef")]
            arrays.append("0" if part.narrow is None else self._array(f"narrow{i}", part.narrow))
            sizes = f"{self._array('nodes', _NODES)}, {len(part.vectors)}, {d_metric}, {q}"
            lines.append(f"    {n}_along(z, {start}, {', '.join(arrays)}, {sizes}, pull);")
        sizes, x = f"{weights}[k], {d}, {d_metric}, {q}, out", "z" if part.coef is None or not bent else "t"
        lines += [f"    {n}_share({x}, center, pull, {linear}, {metric}, {columns}, {sizes});", "}"]
        value = "value" if self.plan.classes is None else "score"
        what = f"share of x[i] in {value} o to out[{q} * i + o]; with {n}_baseline they add up to the {value}"
        self._public(f"void {n}_explain(const {t} *x, {t} *out)", what, lines)
        lines = [f"{n}_start({self._array('mean_value', shares.baseline)}, {q}, out);"]
        what = f"mean {value} over the {count} points that {n}_explain compares with, to out ({q} number(s))"
        self._public(f"void {n}_baseline({t} *out)", what, lines)

    def _about_size(self) -> str:
        tables = any(kind == "int" for kind, _ in self.arrays)
        return f"Constants: {self.nbytes} bytes of {self.dtype}{' and int' * tables}."
