"""scikit-learn's classes that a file may hold, and how their parts are addressed.

The attributes of pipelines and scalers are plain numbers, and are written as they are. What other steps need is in
:mod:`fewkern.io.forms`. Other versions of scikit-learn may name attributes differently; a model that was read is tried
before it is returned, so such a file is refused, not misread.
"""

from __future__ import annotations

from collections import UserList
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeCV,
    SGDClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from fewkern.arrays.storable import storable

__all__ = ["CONTAINERS", "LINEAR_CLASSIFIERS", "LINEAR_MODELS", "SCALERS", "columns_by_name", "column_positions"]
__all__ += ["is_no_step"]

SCALERS: tuple[type, ...] = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
# Models that are ``X @ coef_.T + intercept_``, and classes by its sign or its largest column.
LINEAR_REGRESSORS: tuple[type, ...] = (LinearRegression, Ridge, RidgeCV, Lasso, ElasticNet, LinearSVR)
LINEAR_CLASSIFIERS: tuple[type, ...] = (LogisticRegression, LogisticRegressionCV, LinearSVC, SGDClassifier)
LINEAR_MODELS: tuple[type, ...] = (*LINEAR_REGRESSORS, *LINEAR_CLASSIFIERS)
# Steps that contain steps.
CONTAINERS = ("Pipeline", "ColumnTransformer")


def is_no_step(step: object) -> bool:
    """Whether a place in a pipeline is empty: None or "passthrough"."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _plain(columns: Any) -> Any:
    """The columns of a remainder are a list that warns of changes to come, in some versions of scikit-learn."""
    return columns.data if isinstance(columns, UserList) else columns


def columns_by_name(columns: Any) -> bool:
    """Whether a ColumnTransformer names these columns by texts."""
    columns = _plain(columns)
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    return isinstance(columns, str) or any(isinstance(column, str) for column in columns)


def column_positions(step: ColumnTransformer, columns: Any) -> Sequence[int]:
    """Positions of columns that are given as a list or a slice of names or numbers, a mask, one name or one number."""
    names, columns = list(getattr(step, "feature_names_in_", ())), _plain(columns)
    if isinstance(columns, str | int):
        columns = [columns]
    if isinstance(columns, slice):
        start = names.index(columns.start) if isinstance(columns.start, str) else columns.start
        # a slice of names includes the last one
        stop = names.index(columns.stop) + 1 if isinstance(columns.stop, str) else columns.stop
        return range(step.n_features_in_)[start : stop : columns.step]
    if any(isinstance(column, str) for column in columns):
        return [names.index(column) for column in columns]
    return [int(i) for i in np.arange(step.n_features_in_)[np.asarray(columns)]] if len(columns) else []


def _check_pipeline(pipeline: Pipeline) -> None:
    steps = pipeline.steps
    if not isinstance(steps, list) or not all(isinstance(s, tuple) and len(s) == 2 for s in steps):
        raise ValueError("Pipeline.steps is not a list of names and steps")
    # a folder named here would be unpickled from by the next fit
    if pipeline.memory is not None:
        raise ValueError("Pipeline.memory must be None in a file; set it again after loading")


for _scaler in SCALERS:
    storable(_scaler)
storable(check=_check_pipeline)(Pipeline)
