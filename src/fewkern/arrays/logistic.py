"""Logistic regression on a few columns, by scikit-learn on the host."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from fewkern.arrays.namespace import Array, asarray_like, to_numpy

__all__ = ["logistic_regression"]

# Largest entry of the gradient, per unit of weight, at which to stop; scikit-learn warns if the steps do not suffice.
# With a ridge r on the slopes their error is at most 1 / r times as large.
_TOL, _MAX_ITER = 1e-9, 1000


def logistic_regression(Z: Array, codes: Array, weights: Array, ridge: float) -> tuple[Array, Array]:
    r"""Slopes ``(k, C)`` and offsets ``(C,)`` whose softmax makes the classes ``codes`` most likely.

    Minimizes :math:`-\sum_i w_i \log p_i / \sum_i w_i + \tfrac12\,\text{ridge}\,\|V\|_F^2`, ``V`` being the slopes of
    all classes. The offsets are not penalized. Every class must occur.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.arrays.logistic import logistic_regression
    >>> Z, codes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> slopes, offsets = logistic_regression(Z, codes, np.ones(4), ridge=0.1)
    >>> bool(slopes[0, 1] > 0), bool(abs(slopes.sum()) < 1e-12)
    (True, True)
    """
    x, y = to_numpy(Z).astype(np.float64), to_numpy(codes)
    w = to_numpy(weights).astype(np.float64)
    two = int(y.max()) == 1
    # Two classes have one slope b in scikit-learn and (-b, b) / 2 here, whose square is half as large.
    model = LogisticRegression(C=(2.0 if two else 1.0) / ridge, tol=_TOL, max_iter=_MAX_ITER, solver="newton-cg")
    model.fit(x, y, w / w.sum())
    slopes, offsets = model.coef_.T, model.intercept_
    if two:
        slopes, offsets = np.hstack([-slopes, slopes]) / 2, np.concatenate([-offsets, offsets]) / 2
    return asarray_like(slopes, Z, dtype=Z.dtype), asarray_like(offsets, Z, dtype=Z.dtype)
