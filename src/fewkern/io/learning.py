"""Recursive least squares for a model that goes on learning elsewhere: where it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.gaussians import GaussianBasis
from fewkern.io.plan import Vector
from fewkern.learn.classifier import KernelClassifier
from fewkern.learn.fitting import sums_before
from fewkern.learn.regressor import KernelRegressor


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
    """Of the softmax of a classifier."""

    @property
    def n_gaussians(self) -> int:
        return len(self.coef) - 1 - len(self.linear)


def learning(model: Any, caller: str) -> Learning:
    """Where a fitted model of the learner goes on, as its ``partial_fit`` does; errors speak for ``caller``."""
    name = type(model).__name__
    if not isinstance(model, (KernelClassifier, KernelRegressor)):
        raise TypeError(
            f"{caller}: update=True is for KernelClassifier and KernelRegressor, which have partial_fit, got {name}."
        )
    if getattr(model, "class_weight", None) is not None:
        raise ValueError(f"{caller}: update=True counts every sample once; fit this {name} without class_weight.")
    if not isinstance(model.basis_, GaussianBasis):
        raise ValueError(f"{caller}: update=True needs a model that was fitted to dense samples, not sparse ones.")
    sums = sums_before(model)
    assert sums is not None
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
