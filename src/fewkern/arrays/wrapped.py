"""Models inside scikit-learn's searches over parameters."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

__all__ = ["unwrapped"]


def unwrapped(model: Any, caller: str) -> Any:
    """The best model that a search over parameters found, also one at the end of a pipeline; else ``model`` itself.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fewkern.arrays.wrapped import unwrapped
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
