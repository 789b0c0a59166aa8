"""A learned function in 16-bit fixed point: its numbers as integers, and the arithmetic that a C file does with them.

A number of column ``i`` is ``(x - shift) * 2**exponent``, and a missing one is ``MISSING``. Prepared columns and
directions fill 16 bits, each with a power of two of its own in the metric; squared distances have 32 bits. Their
exponentials are powers of two: whole octaves are shifts, and parts of an octave are interpolated in a table.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.core.scores import ClassScores
from fewkern.io.c_text import c_number
from fewkern.io.c_writer import CWriter
from fewkern.io.plan import Cell, Inputs, Lookup, Plan, Sum, Vector, scored, values_of

Integers = np.ndarray[Any, np.dtype[np.int64]]

MISSING = -(2**15)
"""A missing number."""
# The largest number, and the 1 of exponentials and probabilities.
_LARGEST, _ONE = 2**15 - 1, 2**15
# An exponential is zero from this many octaves on.
_OCTAVES = 16
# 64 entries per octave: linear interpolation between two of them is wrong by half a unit.
POWERS = np.rint(_ONE * 2.0 ** -(np.arange(65) / 64)).astype(np.int64)
# Rounding of more than this share of the spread is worth a warning.
_WORST = 0.02
# Rows on which the rounding is measured, in blocks that fit into the cache.
_ROWS, _BLOCK = 1000, 50
_BYTES = {"uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "float": 4}


@dataclass(frozen=True)
class Decay:
    """Exponentials ``exp(-rate * n)`` of integers: ``n >> shift``, times ``gain``, in 1/4096 octaves."""

    gain: Integers
    shift: Integers

    def __call__(self, n: Integers) -> Integers:
        left = n >> self.shift
        u = left * self.gain >> 15
        place, octaves = (u & 4095) >> 6, np.minimum(u >> 12, 31)
        upper = POWERS[place]
        value = upper - ((upper - POWERS[place + 1]) * (u & 63) >> 6)
        return np.where((left > 65535) | (u > 65535), 0, (value + ((1 << octaves) >> 1)) >> octaves)


@dataclass(frozen=True)
class Fixed:
    """The constants of a file."""

    columns: tuple[int, ...]
    """The input of every feature."""
    shift: Vector
    exponent: Integers
    """Power of two of every feature: ``(x - shift) * 2**exponent``."""
    fill: Integers | None
    """What takes the place of a missing number; None: no number may be missing."""
    bends: tuple[tuple[Integers, Integers], ...]
    directions: Integers
    """``(r, d)``; products lose ``turn_shift`` bits before they are added up, and their sums ``direction_shift``."""
    turn_shift: int
    direction_shift: Integers
    vectors: Integers
    square_shift: Integers
    decay: Decay
    """One rate per vector."""
    coef: Integers
    slopes: Integers
    """``(q, d)``."""
    offset: Integers
    product_shift: int
    """Bits that products with coefficients and slopes lose before they are added up."""
    unit: Integers
    """A value is the number of the file times ``2**-unit``."""
    probability: Decay | None

    def inputs(self, X: Vector) -> Integers:
        """Rows as integers."""
        out = np.full(X.shape, MISSING)
        for i, column in enumerate(self.columns):
            x = (np.clip(X[:, column], -1e200, 1e200) - self.shift[i]) * 2.0 ** self.exponent[i]
            near = np.floor(np.clip(x, -_LARGEST, _LARGEST) + 0.5)
            out[:, column] = np.where(np.isnan(near), MISSING, near)
        return out

    def __call__(self, X: Integers) -> Integers:
        """Values ``(n, q)`` of rows of integers, bit for bit those of the file."""
        return np.concatenate([self._values(X[i : i + _BLOCK]) for i in range(0, len(X), _BLOCK)])

    def _values(self, X: Integers) -> Integers:
        columns, lost = [], self.product_shift
        for i, (knots, values) in enumerate(self.bends):
            x = X[:, self.columns[i]]
            if self.fill is not None:
                x = np.where(x == MISSING, self.fill[i], x)
            k = np.searchsorted(knots, x, side="right")
            low, high = np.maximum(k - 1, 0), np.minimum(k, len(knots) - 1)
            gap = np.maximum(knots[high] - knots[low], 1)
            way = np.where((k == 0) | (k == len(knots)), 0, x - knots[low])
            columns.append(values[low] + (way * (values[high] - values[low]) + gap // 2) // gap)
        t = np.stack(columns, axis=1)
        more = (t[:, None, :] * self.directions >> self.turn_shift).sum(axis=2) >> self.direction_shift
        gaps = np.concatenate([t, more], axis=1)[:, None, :] - self.vectors
        kernels = self.decay((gaps * gaps >> self.square_shift).sum(axis=2))
        out = self.offset + (t[:, None, :] * self.slopes >> lost).sum(axis=2)
        return out + (kernels[:, :, None] * self.coef >> lost).sum(axis=1)


def fixed(described: Plan, caller: str) -> Fixed:
    """The numbers of a plan in fixed point; ``caller`` begins the error messages."""
    part, d = _learned(described, caller), described.n_features
    bends, coef, factor = part.bends, part.coef, part.factor
    assert bends is not None
    assert coef is not None
    assert factor is not None
    cells = () if described.inputs is None else described.inputs.parts
    columns = [_format(knots) for knots, _ in bends]
    shift, exponent = np.array([one[0] for one in columns]), np.array([one[1] for one in columns])
    reach = np.array([np.abs(values).max() for _, values in bends])
    directions = np.zeros((0, d)) if part.directions is None else part.directions
    slopes = np.zeros((len(part.offset), d)) if part.slopes is None else part.slopes
    narrow = np.ones(len(part.vectors)) if part.narrow is None else part.narrow
    # the metric: how far a coordinate can be from zero, and its bits behind the point; those of squared distances
    far = np.concatenate([factor * reach, np.abs(directions) @ reach]) * 1.001
    bits = _power(_LARGEST, np.maximum(far, np.abs(part.vectors).max(axis=0)))
    point = int(min(_power(2.0**31, _OCTAVES * np.log(2) / narrow.min()), 2 * bits.min() - 1))
    bits = np.minimum(bits, (31 + point) // 2)
    used = np.append(factor > 0, np.ones(len(directions), bool))
    scales = np.where(factor > 0, factor * 2.0 ** bits[:d], _LARGEST / np.maximum(reach, 1e-300))
    turn = _power(_LARGEST, np.abs(directions / scales).max(axis=1, initial=0.0))
    turn_shift = _excess(np.abs(directions / scales).sum(axis=1) * _LARGEST * 2.0**turn)
    # the values: bits of coefficients, which have 15 more as products with 16 bits
    slopes = slopes / scales * _ONE
    largest = np.maximum(np.abs(coef).max(axis=0), np.abs(slopes).max(axis=1))
    unit = _power(_LARGEST, np.maximum(largest, np.abs(part.offset) * 2.0**-20))
    if described.classes is not None:
        unit[:] = unit.min()
    sizes = np.abs(coef).sum(axis=0) + np.abs(slopes).sum(axis=1) + np.abs(part.offset)
    product_shift = _excess(sizes * 2.0 ** (unit + 15))
    value_unit = unit + 15 - product_shift
    factor_of = None if described.classes is None else described.classes.scores.factor
    return Fixed(
        described.columns,
        shift,
        exponent,
        _fills(cells, shift, exponent),
        tuple((_whole((k - shift[i]) * 2.0 ** exponent[i]), _whole(v * scales[i])) for i, (k, v) in enumerate(bends)),
        _whole(directions / scales * 2.0 ** turn[:, None]),
        turn_shift,
        turn - turn_shift - bits[d:],
        _whole(part.vectors * np.where(used, 2.0**bits, 0.0)),
        np.where(used, 2 * bits - point, 31),
        _decay(narrow, point),
        _whole(coef * 2.0**unit),
        _whole(slopes * 2.0 ** unit[:, None]),
        np.rint(part.offset * 2.0**value_unit).astype(np.int64),
        product_shift,
        value_unit,
        None if factor_of is None else _decay(np.array(factor_of), int(value_unit[0])),
    )


def _learned(described: Plan, caller: str) -> Sum:
    part = described.sums[0]
    texts = described.inputs is not None and any(isinstance(one, Lookup) for one in described.inputs.parts)
    if texts or not isinstance(part, Sum) or part.bends is None or part.coef is None:
        why = "which takes categories" if texts else "which is not one of them, or has no vectors"
        raise ValueError(
            f'{caller}: dtype="int16" is for KernelClassifier and KernelRegressor on columns of numbers, and got '
            f'{described.model}, {why}; use dtype="float".'
        )
    return scored(described, part)


def _whole(x: Vector) -> Integers:
    return np.clip(np.rint(x), -_LARGEST, _LARGEST).astype(np.int64)


def _power(room: float, x: Any) -> Any:
    """The largest power of two that keeps ``x`` within the room; of zero, 100."""
    return np.minimum(np.floor(np.log2(room / np.maximum(x, 1e-200))), 100).astype(np.int64)


def _excess(sizes: Vector) -> int:
    """Number of bits by which the largest of the numbers exceeds 32."""
    return max(0, 1 - int(_power(2.0**31, sizes.max(initial=0.0))))


def _format(knots: Vector) -> tuple[float, int]:
    """Shift and power of two of a column; no shift where that costs one bit at most."""
    middle, half = (knots[0] + knots[-1]) / 2, (knots[-1] - knots[0]) / 2 * (1 + 2**-14)
    plain, moved = int(_power(_LARGEST, max(abs(knots[0]), abs(knots[-1])))), int(_power(_LARGEST, half))
    if plain >= moved - 1 or len(knots) == 1:
        return 0.0, plain
    return float(np.rint(middle * 2.0**moved) * 2.0**-moved), moved


def _fills(cells: tuple[Cell, ...], shift: Vector, exponent: Integers) -> Integers | None:
    if not cells or any(one.missing is None for one in cells):
        return None
    return _whole((np.array([one.missing for one in cells]) - shift) * 2.0**exponent)


def _decay(rate: Vector, point: int) -> Decay:
    """Exponentials of ``-rate`` times numbers with ``point`` fractional bits."""
    longest = _OCTAVES * np.log(2) / rate * 2.0**point
    shift = np.clip(np.floor(np.log2(longest)) - 15, 0, 31)
    return Decay(np.minimum(2.0 ** (31 + shift) / longest, 65535).astype(np.int64), shift.astype(np.int64))


def rounding(described: Plan, found: Fixed) -> str:
    """Two lines on the rounding error, measured on rows of independently drawn columns; warns where it is large."""
    part, rng = _learned(described, ""), np.random.default_rng(0)
    assert part.bends is not None
    X = np.zeros((_ROWS, described.n_inputs))
    for column, (knots, _) in zip(found.columns, part.bends):
        X[:, column] = np.interp(rng.uniform(0, len(knots) - 1, _ROWS), np.arange(len(knots)), knots)
    T = np.stack([np.interp(X[:, column], *tables) for column, tables in zip(found.columns, part.bends)], axis=1)
    truth, values = values_of(part, T), found(found.inputs(X)) * 2.0**-found.unit
    gaps, spread = np.abs(values - truth), np.maximum(np.ptp(truth, axis=0), 1e-300)
    worst = int(np.argmax(gaps.max(axis=0) / spread))
    most, mean = float(gaps[:, worst].max()), float(gaps[:, worst].mean())
    if most > _WORST * spread[worst]:
        warnings.warn(
            f'to_c: with dtype="int16" rounding changes values of this {described.model} by up to {most:.1g} (they '
            f"spread over {spread[worst]:.2g}): columns with long tails, or coefficients that cancel; use "
            'dtype="float".',
            UserWarning,
            stacklevel=5,
        )
    text = f"Rounding changes values by {mean:.1g} on average and {most:.1g} at most"
    text += f"; they spread over {spread[worst]:.3g}."
    if described.classes is not None:
        a, b = (one > 0 if one.shape[1] == 1 else one.argmax(axis=1) for one in (values, truth))
        text += f" Rows whose class changes: {int((np.ravel(a) != np.ravel(b)).sum())}."
    return f"{text}\nMeasured on {_ROWS:,} rows whose columns were drawn from their ranges, one by one."


class FixedWriter(CWriter):
    """A plan in integers; only ``quantize`` and ``dequantize`` use floating point."""

    def __init__(self, described: Plan, name: str) -> None:
        numbers = fixed(described, "to_c")
        self.error = rounding(described, numbers)
        if described.classes is not None:  # weights and offset of scores are in the numbers
            scores = ClassScores(factor=described.classes.scores.factor)
            described = replace(described, classes=replace(described.classes, scores=scores))
        super().__init__(described, name, "int16_t")
        self.words["T"], self.numbers = "int32_t", numbers
        self.powers = self._whole("uint16_t", "powers", POWERS)

    def _inputs(self, inputs: Inputs) -> None:
        """Which input a feature is, and what is in place of a missing one, is in the numbers."""

    def _whole(self, kind: str, what: str, values: Any) -> str:
        rows = [[str(int(one)) for one in row] for row in np.atleast_2d(values)]
        return self._constant(kind, what, rows, _BYTES[kind])

    def _formats(self) -> list[str]:
        """How a sample becomes integers."""
        own = self.numbers
        names = self.plan.feature_names or [f"x[{column}]" for column in range(self.plan.n_inputs)]
        lines = [f"x holds the {self.plan.n_inputs} features of one sample as whole numbers, -32767 to 32767:"]
        for i, column in enumerate(own.columns):
            less = f"({names[column]} - {c_number(own.shift[i], 'float')[:-1]})" if own.shift[i] else names[column]
            by = "*" if own.exponent[i] >= 0 else "/"
            lines.append(f"  {column}  {less} {by} {2 ** abs(int(own.exponent[i]))}")
        lines.append(f"{self.name}_quantize does that. What lies beyond the ends counts as the ends.")
        missing = "A missing number is -32768." if own.fill is not None else "None may be missing."
        powers = ", 2^".join(map(str, own.unit))
        out = f"out holds {self._what()} times 2^{powers}: {self.name}_dequantize turns it into {self._what()}."
        return [*lines, missing, out]

    def _what(self) -> str:
        return "values" if self.plan.classes is None else "scores"

    def _sum(self, part: Sum, i: int) -> None:
        n, own, (m, d_metric) = self.name, self.numbers, part.vectors.shape
        q, d = len(own.offset), len(own.columns)
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
            lines.append(f"{n}_turn16(z, {turns}, {shifts}, {d}, {d_metric}, {own.turn_shift});")
        lines.append(f"{n}_start({self._whole('int32_t', 'offset', own.offset)}, {q}, out);")
        if own.slopes.any():
            slopes = self._whole("int16_t", "slopes", own.slopes)
            lines.append(f"{n}_linear16(z, {slopes}, {q}, {d}, {own.product_shift}, out);")
        arrays = {"vectors": "int16_t", "square_shift": "uint8_t", "coef": "int16_t"}
        vectors, squares, coef = (self._whole(kind, what, getattr(own, what)) for what, kind in arrays.items())
        gain = self._whole("uint16_t", "gain", own.decay.gain)
        shift = self._whole("uint8_t", "gain_shift", own.decay.shift)
        rate = f"{gain}[j], {shift}[j], {self.powers}"
        kernel = f"{n}_gaussian16(z, {vectors} + j * {d_metric}, {squares}, {d_metric}, {rate})"
        lines += [f"for (int j = 0; j < {m}; j++) {{", f"    const uint32_t k = {kernel};"]
        lines += [f"    {n}_add16(k, {coef} + j * {q}, {q}, {own.product_shift}, out);", "}"]
        self._function(f"static void {n}_sum{i}(const int16_t *x, int32_t *out)", lines)

    def _proba(self, scores: ClassScores) -> None:
        rate = self.numbers.probability
        assert rate is not None
        assert scores.shares is None
        self._copy("predict_proba16", "predict_proba", GAIN=rate.gain, SHIFT=rate.shift, POWERS=self.powers)

    def _more(self) -> None:
        own = self.numbers
        shift, factor = np.zeros(self.plan.n_inputs), np.ones(self.plan.n_inputs)
        shift[list(own.columns)], factor[list(own.columns)] = own.shift, 2.0**own.exponent
        self._copy("quantize", SHIFT=self._floating("shift", shift), FACTOR=self._floating("factor", factor))
        self._copy("dequantize", WHAT=self._what(), UNIT=self._floating("unit", 2.0**-own.unit))

    def _floating(self, what: str, values: Any) -> str:
        return self._constant("float", what, [[c_number(one, "float") for one in values]], _BYTES["float"])

    def _about_size(self) -> str:
        return f"Constants: {self.nbytes} bytes, all but a few of them in 16 bits.\n{self.error}"
