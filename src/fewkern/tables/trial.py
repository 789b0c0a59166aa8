"""A model of a table that was read from a file is asked for everything that it can say, before it is returned."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fewkern.io.trial import check_answer, try_methods
from fewkern.tables.encoder import TableWarning
from fewkern.tables.tasks import TASKS

__all__ = ["check_loaded"]

# Attributes, and the class of what they hold; None where there may be nothing.
_PARTS = {
    "encoder_": ("TableEncoder",),
    "facts_": ("FitFacts",),
    "notes_": ("tuple",),
    "held_out_": ("HeldOutRows", "NoneType"),
    "judgement_": ("Judgement", "NoneType"),
    "model_": ("str",),
    "target_": ("str", "tuple", "NoneType"),
}
# Facts about the kept rows: dimensions and kinds of their arrays.
_KEPT = {"kept_rows": ((1,), "iu"), "kept_missing": ((2,), "b"), "kept_target": ((1, 2), "biufUO")}


def check_loaded(model: Any) -> None:
    """Raise a ValueError if the parts of a model from a file do not belong together."""
    if not any(name.endswith("_") for name in vars(model)):
        return  # not fitted
    _check_parts(model)
    features = len(model.encoder_.mean_)
    if getattr(model.estimator_, "n_features_in_", None) != features:
        raise ValueError(f"TableModel: the estimator was not fitted with the {features} features of the encoder.")
    if model.task_ not in TASKS:
        raise ValueError(f"TableModel: there is no task {model.task_!r}.")
    _try_table(model)


def _check_parts(model: Any) -> None:
    """Raise a ValueError if a part of a fitted model is missing, or is something else."""
    for name, kinds in _PARTS.items():
        if type(vars(model).get(name)).__name__ not in kinds:
            raise ValueError(f"TableModel: its {name} are missing.")
    if not isinstance(vars(model).get("estimator_"), BaseEstimator):
        raise ValueError("TableModel: its estimator_ is missing.")
    if not np.array_equal(model.feature_names_in_, model.encoder_.feature_names_in_):
        raise ValueError("TableModel: its columns are not those of its encoder_.")
    if not model.facts_.seconds:
        raise ValueError("TableModel: its facts_ name no times.")
    for name, (ndim, dtypes) in _KEPT.items():
        array = getattr(model.facts_, name)
        right = isinstance(array, np.ndarray) and array.ndim in ndim and array.dtype.kind in dtypes
        if array is not None and not right:
            raise ValueError(f"TableModel: {name} of its facts_ is not an array of its kind.")


def _try_table(model: Any) -> None:
    """Ask for predictions of one row, and for the summary; vectors and their coefficients must have one length."""
    estimator, count = model.estimator_, getattr(model.estimator_, "n_vectors_", None)
    if model.task_ == "density":
        shapes = [np.shape(estimator.weights_), np.shape(estimator.bandwidths_)]
    else:
        shapes = [np.shape(estimator.expansion_.coef)[:1]]
    right = type(count) is int and (not count or set(shapes) == {(count,)})
    if not right or (count and np.shape(estimator.vectors_) != (count, len(model.encoder_.mean_))):
        raise ValueError(f"TableModel: the estimator has {count!r} vectors, but arrays of other lengths.")
    row = model.encoder_.example()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        try_methods(model, row)
        if hasattr(model, "transform"):
            check_answer(model.transform(row), 1, "TableModel.transform")
    model.summary()
