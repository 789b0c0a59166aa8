"""The method ``explain`` of the estimators whose fitted function is a sum of Gaussians."""

from __future__ import annotations

from typing import Any

from fewkern.arrays.namespace import Array, asarray_like, to_numpy
from fewkern.base import check_samples
from fewkern.core.explanation import Background, Explanation, background_of, explainable, shares, vectors_of

__all__ = ["explain"]


def explain(self: Any, X: Any, background: Any = None) -> Explanation:
    """What every feature contributes to the predictions for some samples, in closed form.

    The shares of a sample add up to its prediction (of a classifier, its ``decision_function``; of
    :class:`~fewkern.FeatureVectorPCA`, its components) minus the baseline, the mean prediction over the background. A
    share is the integral of the slope along the feature on the straight way from a point of the background to the
    sample (Aumann and Shapley; "integrated gradients"), averaged over the background.
    :class:`~fewkern.KernelRegressor` and :class:`~fewkern.KernelClassifier` go that way in prepared columns.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    background : array, data frame or sparse matrix of shape (n_points, n_features), or None, default None
        Samples to compare with, equally weighted. None takes what the model keeps, ``background_``: at most 16 weighted
        centers of the training samples (means of groups, not samples). Of sparse samples, and where the model was given
        its basis, the vectors, equally weighted.

    Returns
    -------
    Explanation
        Its ``values`` have shape ``(n_samples, n_features)``, or ``(n_samples, n_features, n_outputs)`` for three or
        more classes and for several targets. They are dense, also for sparse samples.
    """
    X = check_samples(self, X)
    function = _function(self)
    kept = getattr(self, "background_", None)
    if background is not None:
        points = background_of(function, check_samples(self, background))
    else:
        points = kept if isinstance(kept, Background) else vectors_of(function)
    found = shares(function, X, points)
    values, baseline = (asarray_like(one, function.coef, dtype=function.coef.dtype) for one in found)
    names = getattr(self, "feature_names_in_", None)
    columns = tuple(f"feature {j}" for j in range(int(X.shape[1]))) if names is None else tuple(map(str, names))
    if function.n_outputs == 1:
        return Explanation(values[:, :, 0], float(baseline[0]), columns)
    classes = getattr(self, "classes_", None)
    outputs: Array = range(function.n_outputs) if classes is None else to_numpy(classes).tolist()
    return Explanation(values, baseline, columns, tuple(outputs))


def _function(estimator: Any) -> Any:
    """What an estimator predicts; of a classifier, the scores of its classes."""
    function, scores = estimator.expansion_, getattr(estimator, "class_scores_", None)
    if not explainable(function):
        raise ValueError(
            f"{type(estimator).__name__}.explain: shares have a closed form for Gaussian kernels only, and this model "
            f'has {getattr(function, "kernel", type(function).__name__)}; fit it with kernel="gaussian".'
        )
    return function if scores is None else scores.of(function)
