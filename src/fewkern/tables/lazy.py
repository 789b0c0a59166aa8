"""What a model of a table can be asked, and how it answers for tables that stay where they are."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.frames import map_frame
from fewkern.tables.streams import as_dask_frame
from fewkern.tables.tasks import TASKS

__all__ = ["predict_lazily", "can"]

_MODELS_OF = {"predict": ("classify", "regress"), "transform": ("reduce",), "score_samples": ("density",)}


def can(method: str) -> Any:
    """For ``available_if``: whether the task and the estimator of a fitted model have a method."""

    def check(model: Any) -> bool:
        if not hasattr(model, "estimator_"):
            return True  # the method itself says that the model is not fitted
        tasks = _MODELS_OF.get(method, TASKS)
        if model.task_ not in tasks or not hasattr(model.estimator_, method):
            raise AttributeError(
                f"TableModel: this model (task {model.task_!r}, {type(model.estimator_).__name__}) has no {method}."
            )
        return True

    return check


def predict_lazily(model: Any, method: str, frame: Any, given: dict[str, Any]) -> Any:
    """A Dask series or data frame with what a method says of every row of a Dask data frame; ``given`` are options."""
    check_is_fitted(model)
    table = as_dask_frame(frame, type(model).__name__)
    return map_frame(partial(_answers, model, method, given), table, partial(_names, model))


def _answers(model: Any, method: str, given: dict[str, Any], part: Any) -> Any:
    """What a method says of a part of a table; nothing is warned of."""
    return getattr(model, method)(model.encoder_.encode(part), **given)


def _names(model: Any, count: int) -> list[Any]:
    """Names of the columns of answers: components, classes, or the ends of an interval."""
    if model.task_ == "reduce":
        return list(model.estimator_.get_feature_names_out())
    if model.task_ == "classify":
        return list(model.classes_)
    return list(model.targets) if len(model.targets) > 1 else ["low", "high"][:count]
