r"""How much a fitted function varies along each feature.

The share of feature ``a`` in the variation of a sum of kernels :math:`f` with outputs :math:`f_1, \dots, f_q` is

.. math:: I_a \propto \sum_c \frac{s_a^2}{\operatorname{var} f_c} \,
          \operatorname{mean}_i \left(\frac{\partial f_c}{\partial x_a}(x_i)\right)^2

over the samples :math:`x_i`, with :math:`s_a` the standard deviation of the feature: the squared slope in units of the
feature's spread and the output's. Units of either therefore do not matter, and a feature that is constant, or that the
kernel ignores, has share zero.
"""

from __future__ import annotations

from fewkern.backend.blocks import row_blocks
from fewkern.backend.columns import column_spreads
from fewkern.backend.namespace import Array, is_sparse, namespace
from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples

__all__ = ["differentiable", "feature_importances", "slopes"]

# Means over more samples than these do not change in the third digit.
MOST_ROWS = 2000


def differentiable(expansion: KernelExpansion) -> bool:
    """Whether the function has derivatives: a kernel that supplies them, and dense vectors."""
    return expansion.kernel.refinable and not is_sparse(expansion.vectors)


def slopes(expansion: KernelExpansion, X: Array, output: int) -> Array:
    """Partial derivatives ``(n, d)`` of one output at the rows of ``X``.

    A kernel is symmetric. So the derivative with respect to a sample is that with respect to a vector, with the two
    in each other's place.
    """
    V, kernel, xp = expansion.vectors, expansion.kernel, namespace(X)
    parts = []
    for rows in row_blocks(X.shape[0], max(expansion.n_vectors, int(X.shape[1]))):
        K = kernel(V, X[rows, :])
        D = xp.broadcast_to(expansion.coef[:, output][:, None], K.shape)
        parts.append(kernel.pullback(V, X[rows, :], K, D)[0])
    return xp.concat(parts, axis=0)


def feature_importances(expansion: KernelExpansion, samples: Samples) -> Array:
    """Share of every feature in the variation of the function over the samples; all zero if it is constant.

    Parameters
    ----------
    expansion : KernelExpansion
        :func:`differentiable`.
    samples : Samples
        Above ``MOST_ROWS``, so many of them at equal steps are looked at.

    Returns
    -------
    array of shape (d,)

    Notes
    -----
    Cost: ``n m d`` flops per output.
    """
    step = -(-samples.n // MOST_ROWS)
    X, weights = samples.X[::step, :], samples.weights[::step]
    xp = namespace(X)
    share = xp.astype(weights, xp.float64)  # as the spreads are
    share = share / xp.sum(share)
    spread, outputs = column_spreads(X, weights), column_spreads(expansion(X), weights)
    total = xp.zeros_like(spread)
    for output in range(expansion.n_outputs):
        if float(outputs[output]) > 0:
            total += share @ (slopes(expansion, X, output) * spread / outputs[output]) ** 2
    size = xp.sum(total)
    return total / size if float(size) > 0 else total
