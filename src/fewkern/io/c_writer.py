"""The text of a C file for one plan, and of one that goes on learning where it runs, by recursive least squares.

The loops are C functions in ``loops.c``, and what a user calls is in ``functions.c``. This module copies what a model
needs, and writes its numbers and its sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.core.scores import ClassScores
from fewkern.density.mixture import product_bound, square_limit
from fewkern.io.c_text import c_functions, c_head, c_lines, c_loops, c_number, c_string, c_words, filled
from fewkern.io.plan import DTYPES, Bounds, Classes, Inputs, Learning, LogSum, Lookup, Plan, Shares, Sum, Vector

# Nodes and weights on [0, 1] for Gaussians along a short segment, as in arrays.line_integrals.
_NODES = np.polynomial.legendre.leggauss(8) * np.array([[0.5], [0.5]]) + np.array([[0.5], [0.0]])


class CWriter:
    """The text of one plan."""

    def __init__(self, described: Plan, name: str, dtype: str, shares: Shares | None = None) -> None:
        self.plan, self.name, self.dtype, self.shares = described, name, dtype, shares
        self.largest = float(np.finfo(DTYPES[dtype]).max) if dtype in DTYPES else 0.0
        self.nbytes = self.n_state = 0
        self.constants: list[str] = []
        # names by content: what two sums share is written once
        self.arrays: dict[tuple[str, str], str] = {}
        self.prototypes: list[tuple[str, str]] = []
        self.functions: list[str] = []
        self.words: dict[str, Any] = {
            **c_words(dtype),
            "S": dtype,
            "INPUTS": described.n_inputs,
            "VALUES": described.n_values,
            "SCORES": described.n_scores,
            "CLASSES": 0 if described.classes is None else len(described.classes.labels),
            "SUM": f"{name}_sum0" if isinstance(described.sums[0], Sum) else f"{name}_sums",
        }
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
        if plan.classes is not None and not isinstance(plan.sums[0], Sum):
            lines = [f"out[{i}] = {n}_sum{i}(x);" for i in range(len(plan.sums))]
            self._function(f"static void {n}_sums(const {t} *x, {t} *out)", lines)
        if plan.values == "log_density":
            self._copy("log_density")
        elif plan.values is not None:
            self._copy("values", plan.values)
        if plan.classes is not None:
            self._class_functions(plan.classes)
        if plan.bounds is not None:
            self._bounds(plan.bounds, len(plan.sums))
        if plan.set_threshold is not None:
            self._copy("predict_set", COVERAGE=f"{plan.coverage:g}", THRESHOLD=self._number(plan.set_threshold))
        if plan.novelty is not None:
            self._novelty(plan.novelty, len(plan.sums) + 1)
        if self.shares is not None:
            self._explain(self.shares, len(plan.sums) + 2)
        self._more()
        functions = "\n".join(self.functions)
        head = c_head(plan, n, self._about_size(), self.prototypes, self.n_state, self._formats())
        return "\n".join([head, *self.constants, *c_loops(functions, n, self.words["T"]), functions])

    def _more(self) -> None:
        """Hook for writers that add functions."""

    def _formats(self) -> list[str] | None:
        """What ``x`` holds, where these are whole numbers."""
        return None

    def _number(self, value: float) -> str:
        return c_number(value, self.dtype)

    def _array(self, what: str, values: Any, *, gaps: bool = False) -> str:
        """A constant array, row by row; returns its name, or 0 for None. With ``gaps`` entries may be NaN."""
        if values is None:
            return "0"
        values = np.asarray(values, dtype=float)
        texts = [["NAN" if gaps and np.isnan(v) else self._number(v) for v in row] for row in np.atleast_2d(values)]
        return self._constant(self.dtype, what, texts, np.dtype(DTYPES[self.dtype]).itemsize)

    def _integers(self, what: str, rows: Iterable[Iterable[int]]) -> str:
        return self._constant("int", what, [list(map(str, row)) for row in rows], np.dtype(np.intc).itemsize)

    def _constant(self, kind: str, what: str, texts: list[list[str]], itemsize: int) -> str:
        size, rows = sum(map(len, texts)), ",\n".join(map(c_lines, texts))
        if (kind, rows) not in self.arrays:
            self.arrays[kind, rows] = f"{self.name}_{what}"
            self.nbytes += size * itemsize
            self.constants.append(f"static const {kind} {self.name}_{what}[{size}] = {{\n{rows}\n}};\n")
        return self.arrays[kind, rows]

    def _texts(self, what: str, texts: Iterable[Any]) -> None:
        literals = [c_string(str(text)) for text in texts]
        rows = ",\n    ".join(literals)
        self.constants.append(f"static const char *const {self.name}_{what}[{len(literals)}] = {{\n    {rows}\n}};\n")

    def _function(self, signature: str, lines: list[str]) -> None:
        body = "".join(f"    {line}\n" for line in lines)
        self.functions.append(f"{signature}\n{{\n{body}}}\n")

    def _copy(self, function: str, name: str | None = None, **words: Any) -> None:
        """A function of ``functions.c`` with these words in place, and with another name if one is given."""
        meaning, text = c_functions()[function]
        words = {**self.words, **words, "NAME": self.name}
        text = filled(text.replace(f"NAME_{function}(", f"NAME_{name or function}("), words)
        if not text.startswith("static "):
            self.prototypes.append((text.split("\n")[0], filled(meaning, words)))
        self.functions.append(text)

    def _inputs(self, inputs: Inputs) -> None:
        """The function that makes the features ``u`` of the inputs ``x``, and the one that knows texts."""
        n, t = self.name, self.dtype
        lines, first = [], 0
        for i, part in enumerate(inputs.parts):
            value = f"x[{part.column}]"
            if part.missing is not None:
                value = f"{n}_fill({value}, {self._number(part.missing)})"
            if not isinstance(part, Lookup):
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
            self._texts(f"texts{column}", categories)
            found = f"{n}_find(text, {n}_texts{column}, {len(categories)})"
            lines += [f"if (input == {column}) {{", f"    return {found};", "}"]
        self._copy("code", CASES="\n    ".join(lines))

    def _bent(self, bends: tuple[tuple[Vector, Vector], ...], missing: Vector | None, i: int) -> str:
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
            places.append(place)
        knots, values = self._array(f"knots{i}", pools[0]), self._array(f"values{i}", pools[1])
        n, where = self.name, self._integers(f"places{i}", places)
        gaps = self._array(f"gaps{i}", missing)
        return f"{n}_prepare({self.sample}, {where}, {knots}, {values}, {gaps}, {len(places)}, t);"

    def _prepare(self, part: Sum | LogSum, i: int, d: int) -> list[str]:
        """Statements that make ``z`` from the sample ``x``, and ``t`` where there are bends."""
        n, t, x = self.name, self.dtype, self.sample
        lines = [] if x == "x" else [f"{t} u[{d}];", f"{n}_features(x, u);"]
        if isinstance(part, Sum) and part.bends is not None:
            lines += [f"{t} t[{d}];", self._bent(part.bends, part.gaps, i)]
            x = "t"
        if part.factor is None:
            return [*lines, f"const {t} *const z = {x};"]
        shift, factor = self._array(f"shift{i}", part.shift), self._array(f"factor{i}", part.factor)
        if part.shift is None:
            lines += [f"{t} z[{part.vectors.shape[1]}];", self._turned(part, i, x, "z")]
        elif part.factor.ndim == 1:
            lines += [f"{t} z[{d}];", f"{n}_scale({x}, {shift}, {factor}, {d}, z);"]
        else:
            bound = self._array(f"bound{i}", product_bound(part.factor, self.largest))
            lines += [f"{t} y[{d}], z[{d}];", f"{n}_rotate({x}, {shift}, {factor}, {bound}, {d}, y, z);"]
        if isinstance(part, LogSum):
            lines.append(f"{n}_clip(z, {self._number(square_limit(d, self.largest))}, {d});")
        return lines

    def _turned(self, part: Sum, i: int, source: str, target: str) -> str:
        """The statement that takes prepared columns to the metric."""
        d, d_metric, factor = self.plan.n_features, part.vectors.shape[1], self._array(f"factor{i}", part.factor)
        directions = self._array(f"directions{i}", part.directions)
        return f"{self.name}_turn({source}, {factor}, {directions}, {d}, {d_metric}, {target});"

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

    def _class_functions(self, classes: Classes) -> None:
        count, scores = len(classes.labels), classes.scores
        self._texts("classes", classes.labels)
        if scores.weights is not None:
            weights = self._array("score_weights", scores.weights.T)
            zero = np.zeros(self.plan.n_scores)
            offset = self._array("score_offset", zero if scores.offset is None else scores.offset)
            self._copy("weighted_decision", "decision", WEIGHTS=weights, OFFSET=offset)
        elif scores.offset is not None:
            self._copy("moved_decision", "decision", OFFSET=self._array("score_offset", scores.offset))
        else:
            self._copy("decision")
        best = f"{self.name}_largest(scores, {count})" if self.plan.n_scores > 1 else "scores[0] > 0"
        self._copy("predict", BEST=best, LAST=count - 1)
        if classes.probable:
            self._proba(scores)
        self._copy("class_name")

    def _proba(self, scores: ClassScores) -> None:
        """The function that turns scores into probabilities."""
        n, count, lines = self.name, self.words["CLASSES"], []
        if self.plan.n_scores == 1:
            slope, level = scores.shares or (0.0, 0.0)
            lines.append(f"{n}_two(out, {self._number(slope)}, {self._number(level)});")
        if scores.shares is None:
            lines.append(f"{n}_softmax(out, {count}, {self._number(scores.factor)});")
        else:
            lines.append(f"{n}_shares(out, {count});")
        self._copy("predict_proba", LINK="\n    ".join(lines))

    def _bounds(self, bounds: Bounds, i: int) -> None:
        words: dict[str, Any] = {"COVERAGE": f"{self.plan.coverage:g}", "ENDS": 2 * self.plan.n_values}
        words |= {"LOWER": self._array("lower_end", bounds.lower), "UPPER": self._array("upper_end", bounds.upper)}
        if bounds.scale is None or bounds.limits is None:
            self._copy("interval", **words)
            return
        self._sum(bounds.scale, i)
        least, most = self._array("least_scale", bounds.limits[0]), self._array("most_scale", bounds.limits[1])
        self._copy("scaled_interval", "interval", SCALE=f"{self.name}_sum{i}", LEAST=least, MOST=most, **words)

    def _novelty(self, features: Sum, i: int) -> None:
        self._sum(features, i)
        self._copy("novelty", FEATURES=f"{self.name}_sum{i}", COUNT=len(features.offset))
        threshold = self._number(self.plan.novelty_threshold)
        self._copy("is_novel", ALARMS=f"{self.plan.false_alarms:g}", THRESHOLD=threshold)

    def _explain(self, shares: Shares, i: int) -> None:
        n, t, part, q = self.name, self.dtype, shares.part, len(shares.baseline)
        (count, d), d_metric = shares.centers.shape, part.vectors.shape[1]
        lines, bent = self._prepare(part, i, d), part.bends is not None
        if not bent:  # far out, where every Gaussian is zero, squares stay finite
            lines.append(f"{n}_clip(z, {self._number(square_limit(16 * d, self.largest))}, {d});")
        centers, weights = self._array("centers", shares.centers), self._array("weights", shares.weights)
        columns = self._integers("columns", [self.plan.columns])
        linear = self._array(f"slopes{i}", part.vectors if part.coef is None else part.slopes)
        loop, start, metric = [], "center", "0, 0"
        if part.coef is not None:
            if bent:
                loop, start = [f"{t} start[{d_metric}];", self._turned(part, i, "center", "start")], "start"
                metric = f"{self._array(f'factor{i}', part.factor)}, {self._array(f'directions{i}', part.directions)}"
            arrays = [self._array(f"{what}{i}", getattr(part, what)) for what in ("vectors", "coef", "narrow")]
            sizes = f"{self._array('nodes', _NODES)}, {len(part.vectors)}, {d_metric}, {q}"
            loop.append(f"{n}_along(z, {start}, {', '.join(arrays)}, {sizes}, pull);")
        sizes, x = f"{weights}[k], {d}, {d_metric}, {q}, out", "z" if part.coef is None or not bent else "t"
        loop.append(f"{n}_share({x}, center, pull, {linear}, {metric}, {columns}, {sizes});")
        words = {"WHAT": "value" if self.plan.classes is None else "score", "VALUES": q, "COUNT": count}
        words |= {"PREPARE": "\n    ".join(lines), "SHARES": "\n        ".join(loop)}
        self._copy("explain", PULL=q * d_metric, CENTERS=centers, FEATURES=d, **words)
        self._copy("baseline", MEANS=self._array("mean_value", shares.baseline), **words)

    def _about_size(self) -> str:
        tables = any(kind == "int" for kind, _ in self.arrays)
        return f"Constants: {self.nbytes} bytes of {self.dtype}{' and int' * tables}."


class LearningWriter(CWriter):
    """A plan whose first sum has coefficients that change."""

    def __init__(self, described: Plan, name: str, dtype: str, learning: Learning) -> None:
        if described.classes is not None:
            scores = ClassScores(factor=learning.factor)
            described = replace(described, classes=replace(described.classes, scores=scores))
        super().__init__(described, name, dtype)
        self.learning, self.n_state = learning, learning.state.size

    def _variable(self, what: str, values: Vector) -> None:
        """An array that changes, and its first values."""
        numbers = c_lines([self._number(value) for value in values.ravel()])
        self.constants.append(f"static {self.dtype} {self.name}_{what}[{values.size}] = {{\n{numbers}\n}};\n")

    def _sum(self, part: Sum, i: int) -> None:
        if i > 0:  # the novelty, which stays
            super()._sum(part, i)
            return
        n, t, own = self.name, self.dtype, self.learning
        size, d = len(own.coef), self.plan.n_features
        m = size - 1 - len(own.linear)
        lines = [*self._prepare(part, i, d), "row[0] = 1;"]
        if m:
            lines += [f"for (int j = 0; j < {m}; j++) {{", f"    row[1 + j] = {self._kernel(part, i)};", "}"]
        if len(own.linear):
            lines += [f"for (int k = {1 + m}; k < {size}; k++) {{", "    row[k] = 0;", "}"]
            linear = self._array("rows_linear", own.linear)
            lines.append(f"{n}_linear(t, {linear}, {len(own.linear)}, {d}, row + {1 + m});")
        self._variable("now", own.state)
        self._variable("coef", own.coef)
        self._function(f"static void {n}_row(const {t} *x, {t} *row)", lines)
        self._copy("learned", "sum0", SIZE=size)

    def _more(self) -> None:
        classes, (size, q) = self.plan.classes, self.learning.coef.shape
        words = {"SIZE": size, "RIDGE": self._number(self.learning.ridge)}
        if classes is None:
            self._copy("update", **words)
        else:
            self._copy("update_class", "update", TARGET="y == o" if q > 1 else "y > o ? 1 : -1", **words)
        self._copy("error", WHAT="squared error" if classes is None else "share of errors")
        self._copy("state")
        self._copy("merge", **words)

    def _about_size(self) -> str:
        own = self.learning
        memory = (own.state.size + own.coef.size) * np.dtype(DTYPES[self.dtype]).itemsize
        return f"{super()._about_size()} What changes: {memory} bytes."
