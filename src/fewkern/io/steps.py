"""scikit-learn's classes that a file may hold: what surrounds a model in a pipeline.

The attributes of pipelines and scalers are plain numbers, and are written as they are. What other steps need is in
:mod:`fewkern.io.forms`. Other versions of scikit-learn may name attributes differently; a model that was read is tried
before it is handed out, so such a file is refused, not misread.
"""

from __future__ import annotations

from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    Ridge,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from fewkern.arrays.storable import storable

__all__ = ["LINEAR_CLASSIFIERS", "LINEAR_MODELS", "SCALERS", "is_no_step"]

SCALERS: tuple[type, ...] = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
# Models that are ``X @ coef_.T + intercept_``, and classes by its sign or its largest column.
LINEAR_REGRESSORS: tuple[type, ...] = (
    *(LinearRegression, Ridge, RidgeCV, Lasso, LassoCV, ElasticNet, ElasticNetCV),
    *(HuberRegressor, LinearSVR, SGDRegressor),
)
LINEAR_CLASSIFIERS: tuple[type, ...] = (
    *(LogisticRegression, LogisticRegressionCV, LinearSVC, Perceptron, SGDClassifier),
)
LINEAR_MODELS: tuple[type, ...] = (*LINEAR_REGRESSORS, *LINEAR_CLASSIFIERS)


def is_no_step(step: object) -> bool:
    """Whether a place in a pipeline is empty: None or "passthrough"."""
    return step is None or (isinstance(step, str) and step == "passthrough")


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
