"""Methods that say something of every sample: of samples in memory, in files, and in Dask collections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.mapped import is_mapped, mapped_blocks
from fewkern.arrays.namespace import Array, to_numpy
from fewkern.arrays.partitions import is_collection, map_rows

__all__ = ["rowwise"]


def rowwise(method: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Any]:
    """A method that says something of every sample: of a Dask collection it does so when that is computed.

    An array gives an array, a data frame a series or a data frame.
    """

    @wraps(method)
    def of_any(self: Any, X: Any) -> Any:
        if is_mapped(X):
            return np.concatenate([method(self, np.asarray(block)) for block in mapped_blocks(X)])
        if not is_collection(X):
            return method(self, X)
        check_is_fitted(self)
        return map_rows(partial(method, self), X, self.n_features_in_, partial(_output_names, self))

    return of_any


def _output_names(estimator: Any, count: int) -> list[Any]:
    """Names of the columns that a method returns: those of the classes, or of the components."""
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) == count:
        return list(to_numpy(classes))
    names = estimator.get_feature_names_out() if hasattr(estimator, "get_feature_names_out") else ()
    return list(names) if len(names) == count else list(range(count))
