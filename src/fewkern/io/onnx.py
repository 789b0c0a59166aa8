"""A fitted model as an ONNX graph of standard operators."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from fewkern.arrays.progress import missing_package
from fewkern.core.scores import ClassScores
from fewkern.density.mixture import product_bound, square_limit
from fewkern.io.archive import write_atomically
from fewkern.io.describe import plan
from fewkern.io.onnx_graph import Graph, Value
from fewkern.io.plan import ROUNDING, Bounds, Cell, Classes, Inputs, LogSum, Lookup, Number, Plan, Sum, Vector

# Up to this many features a squared distance is the sum of squared differences, which loses no digits. Above, the
# square is expanded into a matrix product, because n x m x d differences would not fit into memory.
_DIFFERENCES = 16


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: Number = "float",
    coverage: float | None = None,
    false_alarms: float | None = None,
) -> Any:
    """A fitted model as ONNX, for ONNX Runtime and others.

    The input is ``X`` of shape ``(n, n_features)``, with any ``n``. A pipeline that encodes texts has the input ``T``
    for them, and ``X`` for its other columns, both in the order of the table. The outputs are, all but ``label``
    with two dimensions:

    ================= ==========================================================================
    ``label``         class of every sample, as in ``classes_`` (classifiers)
    ``probabilities`` probability of every class (classifiers that have ``predict_proba``)
    ``decision``      scores: one column for two classes, else one per class (classifiers)
    ``variable``      values of a regression, components or features of a transformer
    ``log_density``   log density, one column
    ``lower``         lower bound of every value (regressors, with ``coverage``)
    ``upper``         upper bound of every value
    ``set``           whether a class is in the set, one column per class (classifiers, with ``coverage``)
    ``novelty``       novelty, one column (with ``false_alarms``)
    ``is_novel``      whether it is above the threshold
    ================= ==========================================================================

    Parameters
    ----------
    model, coverage, false_alarms
        As in :func:`to_c`.
    path : str, path or None, default None
        If given, also write the model to this file.
    dtype : {"float", "double"}, default "float"
        Type of the input, of all constants and of the outputs.

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    Operator set 13. Needs the package onnx (``pip install onnx``). The metadata of the file name the model,
    its classes and its features. The kernels ``Precomputed`` and ``Function`` have no form in ONNX. Laplacian
    and LinearSpline take memory for ``n m d`` numbers, and a model with prepared columns for one number per row, column
    and knot, so pass large tables in parts.

    Examples
    --------
    >>> from fewkern import KernelClassifier, to_onnx
    >>> from fewkern.datasets import make_banana
    >>> model = KernelClassifier().fit(*make_banana(200))
    >>> try:
    ...     outputs = [output.name for output in to_onnx(model).graph.output]
    ... except ImportError:  # without the extra "export"
    ...     outputs = ["label", "probabilities", "decision"]
    >>> outputs
    ['label', 'probabilities', 'decision']
    """
    try:
        import onnx
    except ImportError as error:
        raise missing_package("to_onnx", "onnx") from error
    described = plan(model, dtype, "to_onnx", coverage, false_alarms)
    graph = Graph(onnx, described, dtype)
    if described.inputs is not None:
        graph.sample = _features(graph, described.inputs)
    _write(graph, described)
    proto = graph.model(described)
    onnx.checker.check_model(proto, full_check=True)
    if path is not None:
        write_atomically(path, lambda handle: handle.write(proto.SerializeToString()))
    return proto


def _features(g: Graph, inputs: Inputs) -> Value:
    """The features that the parts of a pipeline make of its inputs, ``X`` and ``T``."""
    columns = []
    for part in inputs.parts:
        value = _input(g, inputs, part)
        columns.append(_looked_up(g, part, value) if isinstance(part, Lookup) else value)
    return g.add("Concat", *columns, axis=1)


def _input(g: Graph, inputs: Inputs, source: Cell) -> Value:
    """One input as a column of numbers: of ``X``, or the number of a category of ``T``."""
    text = source.column in inputs.texts
    place = sum((column in inputs.texts) == text for column in range(source.column))
    value = g.add("Gather", Value(g, "T" if text else "X"), g.axes(place), axis=1)
    if text:
        categories = _as_utf8(inputs.texts[source.column])
        codes = [float(i) for i in range(len(categories))]
        known: dict[str, Any] = {"keys_strings": categories, "values_floats": codes}
        value = g.as_number(g.add("LabelEncoder", value, domain="ai.onnx.ml", default_float=-1.0, **known))
    if source.missing is not None:
        value = g.add("Where", g.add("IsNaN", value), source.missing, value)
    return value


def _looked_up(g: Graph, part: Lookup, value: Value) -> Value:
    same = g.as_number(g.add("Equal", value, part.keys[None, :]))
    found, known = same @ part.values, same.largest()
    unknown = g.constant(part.unknown[None, :].astype(g.dtype))
    return g.add("Where", known > 0.5, found, unknown)


def _write(g: Graph, described: Plan) -> None:
    columns = [_sum(g, part) if isinstance(part, Sum) else _log_sum(g, part) for part in described.sums]
    values = columns[0] if len(columns) == 1 else g.add("Concat", *columns, axis=1)
    if described.classes is not None:
        _write_classes(g, described, described.classes, values)
    if described.values is not None:
        name = "log_density" if described.values == "log_density" else "variable"
        g.result(name, values, g.dtype, described.n_values)
    if described.bounds is not None:
        _write_bounds(g, described.bounds, values)
    if described.novelty is not None:
        z = _sum(g, described.novelty)
        explained = (z * z).sum(1, keepdims=True)
        novelty = (g.number(1.0) - explained).clip(0.0, 1.0)
        g.result("novelty", novelty, g.dtype, 1)
        g.result("is_novel", novelty > described.novelty_threshold, np.bool_, 1)


def _write_bounds(g: Graph, bounds: Bounds, values: Value) -> None:
    scale = None
    if bounds.scale is not None and bounds.limits is not None:
        least, most = bounds.limits[:, None, :]
        scale = _sum(g, bounds.scale).at_least(least).at_most(most).exp()
    for name, factor in (("lower", bounds.lower), ("upper", bounds.upper)):
        distance = g.number(factor[None, :])
        g.result(name, values + (distance if scale is None else distance * scale), g.dtype, len(factor))


def _prepared(g: Graph, part: Sum | LogSum) -> Value:
    """``z``, clipped where its square would overflow."""
    x = _bent(g, part) if isinstance(part, Sum) and part.bends is not None else g.sample
    if part.factor is None:
        return x
    if part.shift is None:  # behind a preparation, so it is bounded
        z = x * part.factor
        if isinstance(part, Sum) and part.directions is not None:
            z = g.add("Concat", z, x @ part.directions.T, axis=1)
        return z
    largest = float(np.finfo(g.dtype).max)
    z = x - part.shift
    if part.factor.ndim == 2:
        bound = product_bound(part.factor, largest)
        z = z.at_most(bound).at_least(-bound) @ part.factor.T
    else:
        z = z * part.factor
    if isinstance(part, Sum) and part.kind != "gaussian":
        return z
    limit = square_limit(part.vectors.shape[1], largest)
    return z.clip(-limit, limit)


def _bent(g: Graph, part: Sum) -> Value:
    """The features after their piecewise linear maps, with a number of their own in place of NaN."""
    assert part.bends is not None
    found = _bent_in_groups(g, part.bends)
    if part.gaps is None:
        return found
    return g.add("Where", g.add("IsNaN", g.sample), g.number(part.gaps[None, :]), found)


def _bent_in_groups(g: Graph, bends: tuple[tuple[Vector, Vector], ...]) -> Value:
    """The features after their piecewise linear maps, those with equally many pieces together."""
    counts = [max(len(knots) - 1, 1) for knots, _ in bends]
    groups = [[a for a, count in enumerate(counts) if count == own] for own in sorted(set(counts))]
    parts = []
    for group in groups:
        x = g.sample if len(groups) == 1 else g.add("Gather", g.sample, g.axes(*group), axis=1)
        parts.append(_bent_alike(x, [bends[a] for a in group]))
    if len(parts) == 1:
        return parts[0]
    order = np.argsort([a for group in groups for a in group])
    return g.add("Gather", g.add("Concat", *parts, axis=1), g.axes(*order), axis=1)


def _bent_alike(x: Value, bends: list[tuple[Vector, Vector]]) -> Value:
    """Piecewise linear maps with equally many pieces: sums of ramps, one ramp per piece."""
    # a constant is a piece of length zero
    K, V = (np.stack([np.resize(table, max(len(table), 2)) for table in tables], axis=1) for tables in zip(*bends))
    gaps, rises = np.diff(K, axis=0), np.diff(V, axis=0)
    slopes = np.divide(rises, gaps, out=np.zeros_like(gaps), where=gaps > 0)
    ramps = (x.pairs() - K[None, :-1, :]).at_least(0.0).at_most(gaps[None, :, :])
    return (ramps * slopes[None, :, :]).sum(1) + V[:1]


def _squared_distances(g: Graph, z: Value, vectors: Vector, narrow: Vector | None = None) -> Value:
    """Squared distances ``(n, m)``; times ``narrow``, one factor per vector, where that is given."""
    if vectors.shape[1] <= _DIFFERENCES:
        gap = z.pairs() - vectors[None, :, :]
        distances = (gap * gap).sum(2)
    else:
        squares = (vectors**2).sum(axis=1)
        # the expanded square is a difference of numbers as large as the squared length of a vector
        largest = float(squares.max()) * (1.0 if narrow is None else float(narrow.max()))
        if float(np.finfo(g.dtype).eps) * largest > ROUNDING:
            warnings.warn(
                f"to_onnx: some vectors lie far apart for the length scale of the kernel, and with {g.dtype.__name__} "
                f'and more than {_DIFFERENCES} features distances near them lose digits; use dtype="double", or to_c.',
                UserWarning,
                stacklevel=6,
            )
        own = (z * z).sum(1, keepdims=True)
        distances = (z @ (-2.0 * vectors.T) + own + squares[None, :]).at_least(0.0)
    return distances if narrow is None else distances * narrow[None, :]


def _sum(g: Graph, part: Sum) -> Value:
    z = _prepared(g, part)
    product = z @ part.vectors.T if part.coef is None else _kernel(g, part, z) @ part.coef
    if part.slopes is not None and part.bends is not None:
        product = product + _bent(g, part) @ part.slopes.T
    return product + part.offset


def _kernel(g: Graph, part: Sum, z: Value) -> Value:
    """The matrix ``k(z, v)``."""
    if part.kind == "gaussian":
        return (-_squared_distances(g, z, part.vectors, part.narrow)).exp()
    if part.kind == "polynomial":
        base = z @ part.vectors.T + part.constant
        return base if part.degree == 1 else g.add("Pow", base, float(part.degree))
    x, y = z.pairs(), g.number(part.vectors[None, :, :])
    if part.kind == "laplacian":
        return (-g.add("Abs", x - y).sum(2)).exp()
    if part.kind != "spline":
        raise ValueError(f"to_onnx: kernels of the kind {part.kind!r} are not written.")
    low = x.at_most(y).at_least(0.0)
    xy = x * y
    slope = (x + y) * 0.5 - low / 3.0
    bent = low * (xy - low * slope)
    return g.add("ReduceProd", xy + 1.0 + bent, axes=[2], keepdims=0)


def _log_sum(g: Graph, part: LogSum) -> Value:
    exponent = _squared_distances(g, _prepared(g, part), part.vectors) * -part.narrow
    exponent = exponent.at_least(-0.4 * float(np.finfo(g.dtype).max)) + part.level
    # the largest stays outside of the sum; runtimes differ in whether their ReduceLogSumExp does that
    top = exponent.largest()
    return g.add("Log", (exponent - top).exp().sum(1, keepdims=True)) + top


def _write_classes(g: Graph, described: Plan, classes: Classes, values: Value) -> None:
    scores = values
    if classes.scores.weights is not None:
        scores = scores @ classes.scores.weights
    if classes.scores.offset is not None:
        scores = scores + classes.scores.offset
    each = scores
    if described.n_scores == 1:
        each = g.add("Concat", -scores, scores, axis=1) * 0.5
    labels = _labels(classes.labels)
    best = g.add("ArgMax", each, axis=1, keepdims=0)
    g.result("label", g.add("Gather", g.constant(labels), best, axis=0), labels.dtype)
    if classes.probable:
        probabilities = _probabilities(g, classes.scores, scores, each)
        g.result("probabilities", probabilities, g.dtype, len(classes.labels))
        if described.set_threshold is not None:
            top = probabilities.largest()
            # there is no Equal or GreaterOrEqual for all types in this operator set: neither less probable nor below
            apart = g.number(1.0) - probabilities > described.set_threshold
            left_out = g.add("And", apart, top > probabilities)
            g.result("set", g.add("Not", left_out), np.bool_, len(classes.labels))
    g.result("decision", scores, g.dtype, described.n_scores)


def _labels(labels: Any) -> Any:
    """Labels in a type that runtimes know: int64 (uint64 where they are larger), double, bool or string."""
    whole = np.uint64 if labels.dtype.kind == "u" and labels.max() > np.iinfo(np.int64).max else np.int64
    kinds = {"b": np.bool_, "i": whole, "u": whole, "f": np.float64}
    if labels.dtype.kind in kinds:
        return labels.astype(kinds[labels.dtype.kind])
    return np.array(_as_utf8(labels), dtype=object)


def _as_utf8(labels: Iterable[Any]) -> list[str]:
    """The labels as texts, once it is sure that all of them can be written."""
    texts = [str(label) for label in labels]
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"to_onnx: the label {text!r} cannot be written as UTF-8; rename the class.") from None
    return texts


def _probabilities(g: Graph, link: ClassScores, scores: Value, each: Value) -> Value:
    if link.shares is None:
        return g.add("Softmax", each * link.factor, axis=1)
    if each is not scores:
        # one score s stands for (t - s, t + s) / 2, with t a line in s
        each = each + (scores * link.shares[0] + link.shares[1]) * 0.5
    positive = each.at_least(0.0)
    return positive / positive.sum(1, keepdims=True)
