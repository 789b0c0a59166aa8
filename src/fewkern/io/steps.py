"""scikit-learn's classes that a file may hold: what surrounds a model in a pipeline.

The attributes of pipelines and scalers are plain numbers, and are written as they are. What other steps need is in
:mod:`fewkern.io.forms`. Other versions of scikit-learn may name attributes differently; a model that was read is tried
before it is handed out, so such a file is refused, not misread.
"""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
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

from fewkern.backend.storable import storable

__all__ = ["LINEAR_CLASSIFIERS", "LINEAR_MODELS", "SCALERS", "is_no_step", "unwrapped"]

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


def unwrapped(model: Any, caller: str) -> Any:
    """The best model that a search over parameters found, also one at the end of a pipeline; else ``model`` itself.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fewkern.io.steps import unwrapped
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=2).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3])
    >>> unwrapped(search, "save")
    Ridge(alpha=0.1)
    """
    if isinstance(model, Pipeline) and model.steps:
        name, last = model.steps[-1]
        best = unwrapped(last, caller)
        if best is last:
            return model
        found = Pipeline([*model.steps[:-1], (name, best)])
        return found.set_params(**{key: getattr(model, key) for key in vars(found) if key != "steps"})
    if not (hasattr(model, "param_distributions") or hasattr(model, "param_grid")):
        return model
    who = type(model).__name__
    if not hasattr(model, "best_estimator_"):
        reason = (
            "was not told to fit the best model (refit=False)" if hasattr(model, "cv_results_") else "is not fitted"
        )
        raise NotFittedError(f"{caller}: this {who} {reason}; call fit first, with refit=True.")
    return unwrapped(model.best_estimator_, caller)


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
