"""What an export needs to explain values: a sum of Gaussians, and the background that its values are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.explanation import Background, vectors_of
from fewkern.io.plan import Copy, Plan, Sum, Vector


@dataclass(frozen=True)
class Shares:
    """The values to explain, and what they are compared with."""

    part: Sum
    """A "gaussian", or the "linear" sum of a learner without vectors; of a classifier, its scores."""
    centers: Vector
    """``(k, d)``, where the way from them is straight: as ``x`` behind the bends, or as ``z`` where there are none."""
    weights: Vector
    """``(k,)``; they add up to one."""
    columns: tuple[int, ...]
    """The input that every feature belongs to."""
    baseline: Vector
    """``(q,)``: mean values over the background."""


def shares(described: Plan, model: Any, caller: str) -> Shares:
    """How a plan is explained; ``model`` is the one inside of a pipeline, and errors speak for ``caller``."""
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
    columns: list[int] = []
    for one in () if described.inputs is None else described.inputs.parts:
        columns += [one.column] if isinstance(one, Copy) else [one.source.column] * one.values.shape[1]
    columns = columns or list(range(described.n_features))
    return Shares(part, centers, weights, tuple(columns), weights @ values_of(part, centers))


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
