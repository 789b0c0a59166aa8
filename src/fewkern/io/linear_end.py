"""Pipelines that end in a linear model of scikit-learn, on the features that a transformer of ours makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.storable import stored_classes
from fewkern.io.plan import Classes, Copy, Vector
from fewkern.io.preparation import prepare
from fewkern.io.steps import LINEAR_CLASSIFIERS, LINEAR_MODELS, SCALERS

__all__ = ["LinearEnd", "split_end"]


@dataclass(frozen=True)
class LinearEnd:
    """A transformer, steps that scale or select its features, and a linear model."""

    transformer: Any
    between: tuple[Any, ...]
    last: Any

    def affine(self, count: int, caller: str) -> tuple[Vector, Vector]:
        """Weights ``(count, n_outputs)`` and offset of the whole, as a function of ``count`` features."""
        features = prepare(list(self.between), count, caller)
        if not all(isinstance(origin, Copy) for origin in features.origins):
            raise TypeError(
                f"{caller}: between {type(self.transformer).__name__} and the linear model only scalers and "
                "feature selection have a form outside of Python; fit the pipeline without an encoder."
            )
        scaling = features.scaling
        coef = self.last.coef_.toarray() if is_sparse(self.last.coef_) else self.last.coef_
        weights = np.atleast_2d(np.asarray(coef, dtype=float)).T
        offset = np.broadcast_to(np.asarray(self.last.intercept_, dtype=float), weights.shape[1:])
        whole = np.zeros((count, weights.shape[1]))
        scaled = scaling.factor[:, None] * weights
        for row, origin in zip(scaled, features.origins):
            assert isinstance(origin, Copy)
            whole[origin.column] += row
        return whole, offset - scaling.shift @ scaled

    def classes(self) -> tuple[Classes | None, tuple[str, ...]]:
        """How the values become classes, None for a regression; and what to say of it."""
        if type(self.last) not in LINEAR_CLASSIFIERS:
            return None, ()
        has, known = hasattr(self.last, "predict_proba"), _is_logistic(self.last)
        notes = (f"The probabilities of this {type(self.last).__name__} are not written.",) if has and not known else ()
        return Classes(np.asarray(self.last.classes_), None, None, 1.0, None, known), notes


def _is_logistic(model: Any) -> bool:
    """Whether probabilities are the logistic function of one score, or the softmax function of several."""
    two = len(model.classes_) == 2
    if isinstance(model, SGDClassifier):
        return two and model.loss == "log_loss"
    if not isinstance(model, (LogisticRegression, LogisticRegressionCV)):
        return False
    # older versions of scikit-learn can be told to do it otherwise
    how = getattr(model, "multi_class", "auto")
    return how != "multinomial" if two else how != "ovr" and model.solver != "liblinear"


def split_end(steps: list[Any]) -> tuple[list[Any], Any]:
    """The steps before the model, and the model: the last step, or a linear one with the transformer before it."""
    *before, last = steps
    if type(last) not in LINEAR_MODELS:
        return before, last
    for i in reversed(range(len(before))):
        if type(before[i]).__name__ in stored_classes() and type(before[i]) not in SCALERS:
            return before[:i], LinearEnd(before[i], tuple(before[i + 1 :]), last)
    return before, last
