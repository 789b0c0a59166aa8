"""An order of rows and columns that depends on what they hold, and on nothing else.

Folds, draws and trees depend on the order of what they are given. The learner therefore puts rows and columns into an
order of its own first: permuting a table does not change the model, and a sorted table is nothing special. The order
looks at ranks only, so it does not change with the units of a column either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.arrays.sampling import row_keys

Host = np.ndarray[Any, Any]


def row_order(X: Host, Y: Host) -> Host:
    """Positions of the rows in an order that looks random and that no permutation of rows or columns changes."""
    keys = sum((_keys(X[:, a]) for a in range(X.shape[1])), np.zeros(X.shape[0]))
    for c in range(Y.shape[1]):  # the targets break ties between equal rows
        keys = keys + 0.5 * _keys(Y[:, c])
    return np.argsort(_keys(keys), kind="stable")


def column_order(X: Host) -> Host:
    """The same for the columns of rows that are in their order."""
    place = row_keys(np.arange(X.shape[0]))
    return np.argsort([float(_keys(X[:, a]) @ place) for a in range(X.shape[1])], kind="stable")


def _ranks(values: Host) -> Host:
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _keys(values: Host) -> Host:
    # multiples of 2^-32: their sums over columns are exact, in whatever order
    return np.floor(row_keys(_ranks(values)) * 2.0**32) * 2.0**-32
