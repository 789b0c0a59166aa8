"""The text of a C file for a model that goes on learning where it runs, by recursive least squares."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.gaussians import GaussianBasis
from fewkern.core.scores import ClassScores
from fewkern.io.c_text import c_lines
from fewkern.io.c_writer import CWriter
from fewkern.io.plan import DTYPES, Plan, Sum, Vector
from fewkern.learn.batches import sums_before
from fewkern.learn.classifier import KernelClassifier
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
    """Where a fitted model of the learner goes on, as its ``partial_fit`` does; ``caller`` begins error messages."""
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
        (size, q), d, m = own.coef.shape, self.plan.n_features, own.n_gaussians
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
        self._function(
            f"static void {n}_sum0(const {t} *x, {t} *out)",
            [
                f"{t} row[{size}];",
                f"{n}_row(x, row);",
                f"for (int o = 0; o < {q}; o++) {{",
                "    out[o] = 0;",
                "}",
                f"for (int j = 0; j < {size}; j++) {{",
                f"    {n}_add(row[j], {n}_coef + j * {q}, {q}, out);",
                "}",
            ],
        )

    def _more(self) -> None:
        classes, (size, q) = self.plan.classes, self.learning.coef.shape
        words = {"SIZE": size, "RIDGE": self._number(self.learning.ridge)}
        if classes is None:
            self._public("update", **words)
        else:
            self._public("update_class", "update", TARGET="y == o" if q > 1 else "y > o ? 1 : -1", **words)
        self._public("error", WHAT="squared error" if classes is None else "share of errors")
        self._public("state")
        self._public("merge", **words)

    def _about_size(self) -> str:
        own = self.learning
        memory = (own.state.size + own.coef.size) * np.dtype(DTYPES[self.dtype]).itemsize
        return f"{super()._about_size()} What changes: {memory} bytes."
