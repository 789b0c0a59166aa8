"""The text of a C file in 16-bit fixed point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.core.scores import ClassScores
from fewkern.io.c_text import c_head, c_loops, c_number
from fewkern.io.c_writer import Writer
from fewkern.io.fixed import POWERS, Fixed, fixed, rounding
from fewkern.io.plan import Classes, Plan

_BYTES = {"uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "float": 4}


class FixedWriter(Writer):
    """A plan in whole numbers; only ``quantize`` and ``dequantize`` know fractions."""

    def __init__(self, described: Plan, name: str) -> None:
        numbers = fixed(described, "to_c")
        self.error = rounding(described, numbers)
        if described.classes is not None:  # weights and offset of scores are in the numbers
            scores = ClassScores(factor=described.classes.scores.factor)
            described = replace(described, classes=replace(described.classes, scores=scores))
        super().__init__(described, name, "int16_t")
        self.value_type, self.numbers = "int32_t", numbers
        self.powers = ""

    def text(self) -> str:
        n, plan, own = self.name, self.plan, self.numbers
        self.powers = self._whole("uint16_t", "powers", POWERS)
        self._fixed_sum(own)
        if plan.classes is None:
            signature = f"void {n}_predict(const int16_t *x, int32_t *out)"
            self._public(signature, f"{plan.n_values} value(s) to out, for {n}_dequantize", self._values("out"))
        else:
            self._class_functions(plan.classes)
        self._floats(own)
        functions = "\n".join(self.functions)
        head = c_head(plan, n, f"{self._about_size()}\n{self.error}", self.prototypes, numbers=self._formats(own))
        return "\n".join([head, *self.constants, *c_loops(functions, n, self.value_type), functions])

    def _whole(self, kind: str, what: str, values: Any) -> str:
        rows = [[str(int(one)) for one in row] for row in np.atleast_2d(values)]
        return self._constant(kind, what, rows, _BYTES[kind])

    def _formats(self, own: Fixed) -> list[str]:
        """How the numbers of a sample become whole ones."""
        names = self.plan.feature_names or [f"x[{column}]" for column in range(self.plan.n_inputs)]
        lines = [f"x holds the {self.plan.n_inputs} features of one sample as whole numbers, -32767 to 32767:"]
        for i, column in enumerate(own.columns):
            less = f"({names[column]} - {c_number(own.shift[i], 'float')[:-1]})" if own.shift[i] else names[column]
            by = "*" if own.exponent[i] >= 0 else "/"
            lines.append(f"  {column}  {less} {by} {2 ** abs(int(own.exponent[i]))}")
        lines.append(f"{self.name}_quantize does that. What lies beyond the ends counts as the ends.")
        missing = "A missing number is -32768." if own.fill is not None else "None may be missing."
        what = "values" if self.plan.classes is None else "scores"
        return [*lines, missing, f"out holds {what} times 2^{', 2^'.join(map(str, own.unit))}."]

    def _fixed_sum(self, own: Fixed) -> None:
        n, (m, d_metric), q, d = self.name, own.vectors.shape, len(own.offset), len(own.columns)
        knots, values = ([int(one) for tables in part for one in tables] for part in zip(*own.bends))
        sizes = np.array([len(knots) for knots, _ in own.bends])
        starts = np.cumsum(sizes) - sizes
        places = np.stack([own.columns, sizes, starts, starts], axis=1)
        fill = "0" if own.fill is None else self._whole("int16_t", "fill", own.fill)
        tables = [self._whole("uint16_t", "places", places), fill]
        tables += [self._whole("int16_t", "knots", knots), self._whole("int16_t", "values", values)]
        lines = [f"int16_t z[{d_metric}];", f"{n}_prepare16(x, {', '.join(tables)}, {d}, z);"]
        if d_metric > d:
            turns = self._whole("int16_t", "directions", own.directions)
            shifts = self._whole("uint8_t", "direction_shifts", own.direction_shift)
            lines += [f"for (int k = 0; k < {d_metric - d}; k++) {{"]
            product = f"{n}_dot16(z, {turns} + k * {d}, {d}, {own.turn_shift})"
            lines += [f"    z[{d} + k] = (int16_t)({product} >> {shifts}[k]);", "}"]
        lines.append(f"{n}_start({self._whole('int32_t', 'offset', own.offset)}, {q}, out);")
        if own.slopes.any():
            slopes = self._whole("int16_t", "slopes", own.slopes)
            lines += [f"for (int o = 0; o < {q}; o++) {{"]
            lines += [f"    out[o] += {n}_dot16(z, {slopes} + o * {d}, {d}, {own.product_shift});", "}"]
        arrays = {"vectors": "int16_t", "square_shift": "uint8_t", "coef": "int16_t"}
        vectors, squares, coef = (self._whole(kind, what, getattr(own, what)) for what, kind in arrays.items())
        gain = self._whole("uint16_t", "gain", own.decay.gain)
        shift = self._whole("uint8_t", "gain_shift", own.decay.shift)
        rate = f"{gain}[j], {shift}[j], {self.powers}"
        kernel = f"{n}_gaussian16(z, {vectors} + j * {d_metric}, {squares}, {d_metric}, {rate})"
        lines += [f"for (int j = 0; j < {m}; j++) {{", f"    const uint32_t k = {kernel};"]
        lines += [f"    {n}_add16(k, {coef} + j * {q}, {q}, {own.product_shift}, out);", "}"]
        self._function(f"static void {n}_sum0(const int16_t *x, int32_t *out)", lines)

    def _proba(self, classes: Classes) -> None:
        n, rate, count = self.name, self.numbers.probability, len(classes.labels)
        assert rate is not None
        lines = [f"int32_t scores[{self.plan.n_scores}];", f"{n}_decision(x, scores);"]
        lines.append(f"{n}_softmax16(scores, {count}, {rate.gain}, {rate.shift}, {self.powers}, out);")
        signature = f"void {n}_predict_proba(const int16_t *x, uint16_t *out)"
        self._public(signature, f"{count} probabilities to out, times 32768", lines)

    def _floats(self, own: Fixed) -> None:
        n, d = self.name, self.plan.n_inputs
        shift, factor = np.zeros(d), np.ones(d)
        shift[list(own.columns)], factor[list(own.columns)] = own.shift, 2.0**own.exponent
        arrays = [self._floating("shift", shift), self._floating("factor", factor)]
        lines = [
            f"for (int i = 0; i < {d}; i++) {{",
            f"    out[i] = {n}_rounded(x[i], {arrays[0]}[i], {arrays[1]}[i]);",
        ]
        signature = f"void {n}_quantize(const float *x, int16_t *out)"
        self._public(signature, "a sample as whole numbers, to out", [*lines, "}"])
        q, units = len(own.unit), self._floating("unit", 2.0**-own.unit)
        lines = [f"for (int o = 0; o < {q}; o++) {{", f"    out[o] = (float)values[o] * {units}[o];", "}"]
        what = "values" if self.plan.classes is None else "scores"
        signature = f"void {n}_dequantize(const int32_t *values, float *out)"
        self._public(signature, f"{q} {what} as they are, to out", lines)

    def _floating(self, what: str, values: Any) -> str:
        return self._constant("float", what, [[c_number(one, "float") for one in values]], _BYTES["float"])

    def _about_size(self) -> str:
        return f"Constants: {self.nbytes} bytes, all but a few of them in 16 bits."
