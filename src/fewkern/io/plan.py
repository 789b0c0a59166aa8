"""One plain description of any fitted model, all that the writers know.

A model is one or more sums over its vectors (:class:`Sum`, or :class:`LogSum` for a density), whose values are what
the model gives (``Plan.values``) or lead to classes (``Plan.classes``). Everything is NumPy, in double precision.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.explanation import Background, vectors_of
from fewkern.core.gaussians import GaussianBasis
from fewkern.core.scores import ClassScores
from fewkern.learn.batches import sums_before
from fewkern.learn.estimators import KernelClassifier, KernelRegressor

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Number = Literal["float", "double"]
DTYPES: dict[str, Any] = {"float": np.float32, "double": np.float64}
# Rounding that may change an output by more than this fraction of the largest one is worth a warning.
ROUNDING = 1e-3


@dataclass(frozen=True)
class Sum:
    r"""Values :math:`\sum_j c_j k(z, v_j) + b` at ``z = factor (x - shift)``, with at most two parameters in ``k``.

    With ``bends``, ``x`` are the features after these piecewise linear maps. A "gaussian" may have three more parts:
    ``directions``, whose products with ``x`` are appended to ``z``; ``narrow``, which gives every
    vector a width of its own; and ``slopes``, which add a linear function of ``x``.

    ============ =====================================================================
    kind         k(z, v)
    ============ =====================================================================
    "gaussian"   :math:`\exp(-n_j \|z - v\|^2)`, with :math:`n_j` from ``narrow``, or 1
    "laplacian"  :math:`\exp(-\|z - v\|_1)`
    "polynomial" :math:`(z^T v + \text{constant})^{\text{degree}}`
    "spline"     the product over the features of :class:`fewkern.kernels.LinearSpline`
    "linear"     :math:`z^T v`, and the values are ``k + b``: one vector per output
    ============ =====================================================================
    """

    kind: Literal["gaussian", "laplacian", "polynomial", "spline", "linear"]
    vectors: Vector
    offset: Vector
    coef: Vector | None = None
    """``(m, q)``; None for "linear"."""
    shift: Vector | None = None
    """``(d,)``, exact in the numbers of the file; None: nothing is subtracted."""
    factor: Vector | None = None
    """``(d,)``, one number per feature; None: the samples are taken as they are."""
    degree: int = 1
    constant: Vector | None = None
    """``(m,)``; only of "polynomial"."""
    bends: tuple[tuple[Vector, Vector], ...] | None = None
    """A map of every feature: its knots, ascending and all different, and the values there. It is linear between the
    knots, and constant beyond the first and the last one."""
    gaps: Vector | None = None
    """``(d,)``: what the maps make of NaN; None: NaN stays."""
    directions: Vector | None = None
    """``(r, d)``; the vectors then have ``d + r`` entries."""
    narrow: Vector | None = None
    """``(m,)``."""
    slopes: Vector | None = None
    """``(q, d)``."""


@dataclass(frozen=True)
class LogSum:
    r"""The value :math:`\log \sum_j \exp(l_j - n_j \|z - v_j\|^2)` at ``z = factor (x - shift)``.

    ``level`` holds the :math:`l_j`, ``narrow`` the :math:`n_j`.
    """

    vectors: Vector
    level: Vector
    narrow: Vector
    shift: Vector
    factor: Vector
    """``(d,)``, or a matrix ``(d, d)``."""


@dataclass(frozen=True)
class Classes:
    """Labels, how values become scores and probabilities, and whether the model gives probabilities at all."""

    labels: np.ndarray[Any, Any]
    scores: ClassScores
    probable: bool


@dataclass(frozen=True)
class Bounds:
    """Intervals: ``value + lower * exp(g)`` and ``+ upper``, with ``g`` the scale within its limits, or zero."""

    lower: Vector
    """``(q,)``, and so is ``upper``."""
    upper: Vector
    scale: Sum | None = None
    limits: Vector | None = None
    """``(2, q)``."""


@dataclass(frozen=True)
class Cell:
    """A feature that is an input, with ``missing`` in place of NaN (None: NaN stays)."""

    column: int
    missing: float | None


@dataclass(frozen=True)
class Lookup(Cell):
    """Features that are row ``k`` of ``values`` where the input is ``keys[k]``, and ``unknown`` for other inputs."""

    keys: Vector
    values: Vector
    """``(number of keys, number of features)``."""
    unknown: Vector
    """NaN where Python would raise an error."""


@dataclass(frozen=True)
class Inputs:
    """How the inputs of a pipeline become the features of its model, one part after the other."""

    count: int
    parts: tuple[Cell, ...]
    texts: dict[int, tuple[str, ...]]
    """Inputs that are texts, and their categories: number ``k`` stands for the category ``k``."""
    trimmed: bool = False
    """Whether spaces around a text do not count."""


@dataclass(frozen=True)
class Plan:
    """A fitted model as plain arrays."""

    title: str
    model: str
    n_features: int
    feature_names: tuple[str, ...] | None
    sums: tuple[Sum | LogSum, ...]
    """One sum of many values, or several of one value each."""
    values: Literal["predict", "transform", "log_density"] | None
    """Which method of the model the values are; None if only its classes count."""
    classes: Classes | None
    notes: tuple[str, ...] = ()
    inputs: Inputs | None = None
    """None: the inputs are the features."""
    coverage: float | None = None
    """Coverage of the intervals or sets of classes that a file also computes."""
    bounds: Bounds | None = None
    set_threshold: float | None = None
    """A set holds the classes whose probability is at least one minus this, and the most probable one."""
    false_alarms: float | None = None
    """Share of usual samples whose novelty is above the threshold, where a file also computes that."""
    novelty: Sum | None = None
    """Features of a sample; its novelty is one minus the sum of their squares."""
    novelty_threshold: float = 0.0

    @property
    def n_inputs(self) -> int:
        return self.n_features if self.inputs is None else self.inputs.count

    @property
    def texts(self) -> dict[int, tuple[str, ...]]:
        """Inputs that are texts, and their categories."""
        return {} if self.inputs is None else self.inputs.texts

    @property
    def columns(self) -> tuple[int, ...]:
        """The input that every feature belongs to."""
        if self.inputs is None:
            return tuple(range(self.n_features))
        widths = [part.values.shape[1] if isinstance(part, Lookup) else 1 for part in self.inputs.parts]
        return tuple(part.column for part, width in zip(self.inputs.parts, widths) for _ in range(width))

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs: those of the fit, or x0, x1, ..."""
        return self.feature_names or tuple(f"x{i}" for i in range(self.n_inputs))

    @property
    def n_values(self) -> int:
        first = self.sums[0]
        return len(first.offset) if isinstance(first, Sum) else len(self.sums)

    @property
    def n_scores(self) -> int:
        weights = None if self.classes is None else self.classes.scores.weights
        return self.n_values if weights is None else weights.shape[1]


@dataclass(frozen=True)
class Shares:
    """The values to explain, and what they are compared with."""

    part: Sum
    """A "gaussian", or the "linear" sum of a learner without vectors; of a classifier, its scores."""
    centers: Vector
    """``(k, d)``, where the path from them is straight: as ``x`` behind the bends, or as ``z`` where there are none."""
    weights: Vector
    """``(k,)``; they add up to one."""
    baseline: Vector
    """``(q,)``: mean values over the background."""


def shares(described: Plan, model: Any, caller: str) -> Shares:
    """How a plan is explained; ``model`` is the one inside of a pipeline, and ``caller`` begins error messages."""
    part = described.sums[0]
    if not isinstance(part, Sum) or (part.bends is None and part.kind != "gaussian"):
        raise ValueError(
            f"{caller}: explain=True is for sums of Gaussians, whose shares have a closed form, and this "
            f'{described.model} is none; leave explain out, or fit with kernel="gaussian".'
        )
    part, kept = scored(described, part), getattr(model, "background_", None)
    own = vectors_of(getattr(model, "expansion_", model))
    known = kept if isinstance(kept, Background) else own
    centers, weights = (np.asarray(to_numpy(one), float) for one in (known.centers, known.weights))
    if part.bends is None:  # z is x over the length scale and the root of two, less a middle
        first = np.asarray(to_numpy(own.centers), float)[0]
        centers = part.vectors[0] + (centers - first) * math.sqrt(0.5)
    return Shares(part, centers, weights, weights @ values_of(part, centers))


def scored(described: Plan, part: Sum) -> Sum:
    """The only sum of a plan, with the scores of its classes in place of its values."""
    scores = None if described.classes is None else described.classes.scores
    if scores is None:
        return part
    if scores.weights is not None:
        W = scores.weights
        names = ("vectors", "slopes") if part.coef is None else ("slopes",)
        turned = {name: W.T @ getattr(part, name) for name in names if getattr(part, name) is not None}
        coef = None if part.coef is None else part.coef @ W
        part = replace(part, offset=part.offset @ W, coef=coef, **turned)
    return part if scores.offset is None else replace(part, offset=part.offset + scores.offset)


def values_of(part: Sum, T: Vector) -> Vector:
    """Values of the sum at prepared columns, or at ``z`` where it has no bends."""
    if part.coef is None:
        return T @ part.vectors.T + part.offset
    Z = T if part.bends is None or part.factor is None else T * part.factor
    if part.directions is not None:
        Z = np.concatenate([Z, T @ part.directions.T], axis=1)
    distances = ((Z[:, None, :] - part.vectors[None, :, :]) ** 2).sum(axis=2)
    values = np.exp(-distances * (1.0 if part.narrow is None else part.narrow)) @ part.coef + part.offset
    return values if part.slopes is None else values + T @ part.slopes.T


@dataclass(frozen=True)
class Learning:
    """Sums over rows as a triangle: all that recursive least squares needs of ``n`` coefficients and ``q`` targets."""

    state: Vector
    """Weight of the rows that were judged, sum of their errors, 1, weight of all rows, the upper triangle by rows,
    ``n q`` zeros (targets are relative to the first coefficients), and these."""
    coef: Vector
    """``(n, q)``: the constant, Gaussians, linear features."""
    linear: Vector
    """``(p, d)``: linear features of the prepared columns."""
    ridge: float
    """An entry of a row that is added for one coefficient at a time."""
    factor: float
    """Factor of the softmax of a classifier."""


def learning(model: Any, caller: str) -> Learning:
    """The sums from which a fitted learner continues, as its ``partial_fit`` does; ``caller`` begins error messages."""
    name = type(model).__name__
    if not isinstance(model, (KernelClassifier, KernelRegressor)):
        raise TypeError(
            f"{caller}: update=True is for KernelClassifier and KernelRegressor, which have partial_fit, got {name}."
        )
    if getattr(model, "class_weight", None) is not None:
        raise ValueError(f"{caller}: update=True counts every sample once; fit this {name} without class_weight.")
    if not isinstance(model.basis_, GaussianBasis):
        raise ValueError(
            f"{caller}: update=True needs vectors that {name} has chosen, not a {type(model.basis_).__name__}; leave "
            "basis out of partial_fit."
        )
    sums = sums_before(model)
    assert sums is not None
    if getattr(model, "loss_", None) == "logistic":
        warnings.warn(
            f"{caller}: update=True begins with coefficients of least squares on the same vectors, because those of "
            f"logistic regression, which this {name} has, cannot be updated: its predictions differ; those of a model "
            "fitted by partial_fit do not.",
            UserWarning,
            stacklevel=3,
        )
    found = sums.solution()
    C = np.asarray(to_numpy(found.factor), float)
    upper = C.T[np.triu_indices(len(C))]
    coef = np.concatenate([to_numpy(found.offset)[None, :], to_numpy(found.W)]).astype(float)
    return Learning(
        np.concatenate([[sums.weight, sums.error, 1.0, upper[0] ** 2], upper, np.zeros(coef.size), coef.ravel()]),
        coef,
        np.asarray(to_numpy(model.basis_.linear), float).T,
        float(np.sqrt(sums.alpha * (len(C) - 1))),
        sums.factor,
    )
