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
from fewkern.io.describe import plan
from fewkern.io.onnx_graph import Graph
from fewkern.io.plan import ROUNDING, Bounds, Classes, Copy, Inputs, LogSum, Lookup, Number, Plan, Sum, Vector
from fewkern.io.save import write_atomically

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
    model : fitted estimator of fewkern
        Or a pipeline of scikit-learn that ends in one, with scalers, SimpleImputer, OneHotEncoder, OrdinalEncoder,
        ColumnTransformer or feature selection before it; a model that the command line saved; an expansion
        (``expansion_`` of an estimator).
    path : str, path or None, default None
        If given, also write the model to this file.
    dtype : {"float", "double"}, default "float"
        Type of the input, of all constants and of the outputs.
    coverage : float or None, default None
        If given, also write the intervals of a regressor (``predict_interval``) or the sets of a classifier
        (``predict_set``) of this coverage.
    false_alarms : float or None, default None
        If given, also write ``novelty``, and whether it is above ``novelty_threshold(false_alarms)``.

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


def _features(g: Graph, inputs: Inputs) -> str:
    """The features that the parts of a pipeline make of its inputs, ``X`` and ``T``."""
    columns = []
    for part in inputs.parts:
        value = _input(g, inputs, part if isinstance(part, Copy) else part.source)
        columns.append(value if isinstance(part, Copy) else _looked_up(g, part, value))
    return g.add("Concat", *columns, axis=1)


def _input(g: Graph, inputs: Inputs, source: Copy) -> str:
    """One input as a column of numbers: of ``X``, or the number of a category of ``T``."""
    text = source.column in inputs.texts
    place = sum((column in inputs.texts) == text for column in range(source.column))
    value = g.add("Gather", "T" if text else "X", g.axes(place), axis=1)
    if text:
        categories = _as_utf8(inputs.texts[source.column])
        codes = [float(i) for i in range(len(categories))]
        known: dict[str, Any] = {"keys_strings": categories, "values_floats": codes}
        value = g.add("LabelEncoder", value, domain="ai.onnx.ml", default_float=-1.0, **known)
        value = g.as_number(value)
    if source.missing is not None:
        value = g.add("Where", g.add("IsNaN", value), g.number(source.missing), value)
    return value


def _looked_up(g: Graph, part: Lookup, value: str) -> str:
    same = g.as_number(g.add("Equal", value, g.number(part.keys[None, :])))
    found = g.add("MatMul", same, g.number(part.values))
    known = g.add("ReduceMax", same, axes=[1], keepdims=1)
    unknown = g.constant(part.unknown[None, :].astype(g.dtype))
    return g.add("Where", g.add("Greater", known, g.number(0.5)), found, unknown)


def _write(g: Graph, described: Plan) -> None:
    columns = [_sum(g, part) if isinstance(part, Sum) else _log_sum(g, part) for part in described.sums]
    values = columns[0] if len(columns) == 1 else g.add("Concat", *columns, axis=1)
    if described.classes is not None:
        _write_classes(g, described, described.classes, values)
    if described.values is not None:
        name = "log_density" if described.values == "log_density" else "variable"
        g.result(name, values, g.dtype, ["n", described.n_values])
    if described.bounds is not None:
        _write_bounds(g, described.bounds, values)
    if described.novelty is not None:
        _write_novelty(g, described.novelty, described.novelty_threshold)


def _write_bounds(g: Graph, bounds: Bounds, values: str) -> None:
    scale = None
    if bounds.scale is not None and bounds.limits is not None:
        log = g.add("Max", _sum(g, bounds.scale), g.number(bounds.limits[0][None, :]))
        scale = g.add("Exp", g.add("Min", log, g.number(bounds.limits[1][None, :])))
    for name, factor in (("lower", bounds.lower), ("upper", bounds.upper)):
        distance = g.number(factor[None, :])
        if scale is not None:
            distance = g.add("Mul", distance, scale)
        g.result(name, g.add("Add", values, distance), g.dtype, ["n", len(factor)])


def _write_novelty(g: Graph, features: Sum, threshold: float) -> None:
    z = _sum(g, features)
    explained = g.add("ReduceSum", g.add("Mul", z, z), g.axes(1), keepdims=1)
    novelty = g.add("Clip", g.add("Sub", g.number(1.0), explained), g.number(0.0), g.number(1.0))
    g.result("novelty", novelty, g.dtype, ["n", 1])
    g.result("is_novel", g.add("Greater", novelty, g.number(threshold)), np.bool_, ["n", 1])


def _prepared(g: Graph, part: Sum | LogSum) -> str:
    """``z``, clipped where its square would overflow."""
    x = _bent(g, part.bends) if isinstance(part, Sum) and part.bends is not None else g.sample
    if part.factor is None:
        return x
    if part.shift is None:  # behind a preparation, so it is bounded
        z = g.add("Mul", x, g.number(part.factor))
        if isinstance(part, Sum) and part.directions is not None:
            z = g.add("Concat", z, g.add("MatMul", x, g.number(part.directions.T)), axis=1)
        return z
    largest = float(np.finfo(g.dtype).max)
    z = g.add("Sub", x, g.number(part.shift))
    if part.factor.ndim == 2:
        bound = product_bound(part.factor, largest)
        z = g.add("Max", g.add("Min", z, g.number(bound)), g.number(-bound))
        z = g.add("MatMul", z, g.number(part.factor.T))
    else:
        z = g.add("Mul", z, g.number(part.factor))
    if isinstance(part, Sum) and part.kind != "gaussian":
        return z
    limit = square_limit(part.vectors.shape[1], largest)
    return g.add("Clip", z, g.number(-limit), g.number(limit))


def _bent(g: Graph, bends: tuple[tuple[Vector, Vector], ...]) -> str:
    """The features after their piecewise linear maps, those with equally many pieces together."""
    key = tuple(table.tobytes() for tables in bends for table in tables)
    if key in g.bent:
        return g.bent[key]
    counts = [max(len(knots) - 1, 1) for knots, _ in bends]
    groups = [[a for a, count in enumerate(counts) if count == own] for own in sorted(set(counts))]
    parts = []
    for group in groups:
        x = g.sample if len(groups) == 1 else g.add("Gather", g.sample, g.axes(*group), axis=1)
        parts.append(_bent_alike(g, x, [bends[a] for a in group]))
    found = parts[0]
    if len(parts) > 1:
        order = np.argsort([a for group in groups for a in group])
        found = g.add("Gather", g.add("Concat", *parts, axis=1), g.axes(*order), axis=1)
    g.bent[key] = found
    return found


def _bent_alike(g: Graph, x: str, bends: list[tuple[Vector, Vector]]) -> str:
    """Piecewise linear maps with equally many pieces: sums of ramps, one ramp per piece."""
    # a constant is a piece of length zero
    K, V = (np.stack([np.resize(table, max(len(table), 2)) for table in tables], axis=1) for tables in zip(*bends))
    gaps, rises = np.diff(K, axis=0), np.diff(V, axis=0)
    slopes = np.divide(rises, gaps, out=np.zeros_like(gaps), where=gaps > 0)
    ramps = g.add("Sub", g.add("Unsqueeze", x, g.axes(1)), g.number(K[None, :-1, :]))
    ramps = g.add("Min", g.add("Max", ramps, g.number(0.0)), g.number(gaps[None, :, :]))
    ramps = g.add("Mul", ramps, g.number(slopes[None, :, :]))
    return g.add("Add", g.add("ReduceSum", ramps, g.axes(1), keepdims=0), g.number(V[:1]))


def _pairs(g: Graph, z: str, vectors: Any) -> tuple[str, str]:
    """Both sides with a third dimension, ready to broadcast to ``(n, m, d)``."""
    return g.add("Unsqueeze", z, g.axes(1)), g.number(vectors[None, :, :])


def _squared_distances(g: Graph, z: str, vectors: Vector, narrow: Vector | None = None) -> str:
    """Squared distances ``(n, m)``; times ``narrow``, one factor per vector, where that is given."""
    if vectors.shape[1] <= _DIFFERENCES:
        gap = g.add("Sub", *_pairs(g, z, vectors))
        distances = g.add("ReduceSum", g.add("Mul", gap, gap), g.axes(2), keepdims=0)
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
        own = g.add("ReduceSum", g.add("Mul", z, z), g.axes(1), keepdims=1)
        both = g.add("MatMul", z, g.number(-2.0 * vectors.T))
        total = g.add("Add", g.add("Add", both, own), g.number(squares[None, :]))
        distances = g.add("Max", total, g.number(0.0))
    return distances if narrow is None else g.add("Mul", distances, g.number(narrow[None, :]))


def _sum(g: Graph, part: Sum) -> str:
    z = _prepared(g, part)
    if part.coef is None:
        product = g.add("MatMul", z, g.number(part.vectors.T))
    else:
        product = g.add("MatMul", _kernel(g, part, z), g.number(part.coef))
    if part.slopes is not None and part.bends is not None:
        product = g.add("Add", product, g.add("MatMul", _bent(g, part.bends), g.number(part.slopes.T)))
    return g.add("Add", product, g.number(part.offset))


def _kernel(g: Graph, part: Sum, z: str) -> str:
    """The matrix ``k(z, v)``."""
    if part.kind == "gaussian":
        return g.add("Exp", g.add("Neg", _squared_distances(g, z, part.vectors, part.narrow)))
    if part.kind == "laplacian":
        gap = g.add("Abs", g.add("Sub", *_pairs(g, z, part.vectors)))
        return g.add("Exp", g.add("Neg", g.add("ReduceSum", gap, g.axes(2), keepdims=0)))
    if part.kind == "polynomial":
        base = g.add("Add", g.add("MatMul", z, g.number(part.vectors.T)), g.number(part.constant))
        return base if part.degree == 1 else g.add("Pow", base, g.number(float(part.degree)))
    x, y = _pairs(g, z, part.vectors)
    low = g.add("Max", g.add("Min", x, y), g.number(0.0))
    xy = g.add("Mul", x, y)
    slope = g.add("Sub", g.add("Mul", g.add("Add", x, y), g.number(0.5)), g.add("Div", low, g.number(3.0)))
    bent = g.add("Mul", low, g.add("Sub", xy, g.add("Mul", low, slope)))
    factors = g.add("Add", g.add("Add", xy, g.number(1.0)), bent)
    return g.add("ReduceProd", factors, axes=[2], keepdims=0)


def _log_sum(g: Graph, part: LogSum) -> str:
    z = _prepared(g, part)
    exponent = g.add("Mul", _squared_distances(g, z, part.vectors), g.number(-part.narrow))
    exponent = g.add("Max", exponent, g.number(-0.4 * float(np.finfo(g.dtype).max)))
    exponent = g.add("Add", exponent, g.number(part.level))
    # the largest stays outside of the sum; runtimes differ in whether their ReduceLogSumExp does that
    top = g.add("ReduceMax", exponent, axes=[1], keepdims=1)
    total = g.add("ReduceSum", g.add("Exp", g.add("Sub", exponent, top)), g.axes(1), keepdims=1)
    return g.add("Add", g.add("Log", total), top)


def _write_classes(g: Graph, described: Plan, classes: Classes, values: str) -> None:
    scores = values
    if classes.scores.weights is not None:
        scores = g.add("MatMul", scores, g.number(classes.scores.weights))
    if classes.scores.offset is not None:
        scores = g.add("Add", scores, g.number(classes.scores.offset))
    each = scores
    if described.n_scores == 1:
        each = g.add("Mul", g.add("Concat", g.add("Neg", scores), scores, axis=1), g.number(0.5))
    labels = _labels(classes.labels)
    best = g.add("ArgMax", each, axis=1, keepdims=0)
    g.result("label", g.add("Gather", g.constant(labels), best, axis=0), labels.dtype, ["n"])
    if classes.probable:
        probabilities = _probabilities(g, classes.scores, scores, each)
        g.result("probabilities", probabilities, g.dtype, ["n", len(classes.labels)])
        if described.set_threshold is not None:
            top = g.add("ReduceMax", probabilities, axes=[1], keepdims=1)
            # there is no Equal or GreaterOrEqual for all types in this operator set: neither less probable nor below
            apart = g.add("Greater", g.add("Sub", g.number(1.0), probabilities), g.number(described.set_threshold))
            below = g.add("Greater", top, probabilities)
            g.result("set", g.add("Not", g.add("And", apart, below)), np.bool_, ["n", len(classes.labels)])
    g.result("decision", scores, g.dtype, ["n", described.n_scores])


def _labels(labels: Any) -> Any:
    """Labels in a type that ONNX has: int64, double, bool or string."""
    if labels.dtype.kind == "u" and labels.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"to_onnx: the label {labels.max()} does not fit into 64 bits with a sign, the largest whole numbers of "
            "ONNX; use text as labels."
        )
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
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


def _probabilities(g: Graph, link: ClassScores, scores: str, each: str) -> str:
    if link.shares is None:
        return g.add("Softmax", g.add("Mul", each, g.number(link.factor)), axis=1)
    if each != scores:
        # one score s stands for (t - s, t + s) / 2, with t a line in s
        whole = g.add("Add", g.add("Mul", scores, g.number(link.shares[0])), g.number(link.shares[1]))
        each = g.add("Add", each, g.add("Mul", whole, g.number(0.5)))
    positive = g.add("Max", each, g.number(0.0))
    return g.add("Div", positive, g.add("ReduceSum", positive, g.axes(1), keepdims=1))
