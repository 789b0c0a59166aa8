r"""How much a fitted function varies along each feature.

The share of feature ``a`` in the variation of a sum of kernels :math:`f` with outputs :math:`f_1, \dots, f_q` is

.. math:: I_a \propto \sum_c \frac{s_a^2}{\operatorname{var} f_c} \,
          \operatorname{mean}_i \left(\frac{\partial f_c}{\partial x_a}(x_i)\right)^2

over the samples :math:`x_i`, with :math:`s_a` the standard deviation of the feature: the squared slope in units of the
feature's spread and the output's. Units of either therefore do not matter, and a feature that is constant, or that the
kernel ignores, has share zero. A :class:`~fewkern.core.gaussians.GaussianExpansion` is a smooth function of its
prepared columns, so there slopes and spreads are those of the prepared columns.
"""

from __future__ import annotations

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array, is_sparse, namespace
from fewkern.arrays.numerics import column_spreads
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.samples import Samples

__all__ = ["differentiable", "feature_importances", "slopes"]

# Means over more samples than these do not change in the third digit.
MOST_ROWS = 2000


def differentiable(expansion: KernelExpansion | GaussianExpansion) -> bool:
    """Whether the function has derivatives: a kernel that supplies them, and dense vectors."""
    if isinstance(expansion, GaussianExpansion):
        return True
    return expansion.kernel.differentiable and not is_sparse(expansion.vectors)


def slopes(expansion: KernelExpansion | GaussianExpansion, X: Array, output: int) -> Array:
    """Partial derivatives ``(n, d)`` of one output at the rows of ``X``, which are prepared for a GaussianExpansion.

    A kernel is symmetric. So the derivative with respect to a sample is that with respect to a vector, with the two
    in each other's place.
    """
    xp, blocks = namespace(X), row_blocks(X.shape[0], max(expansion.n_vectors, int(X.shape[1])))
    if isinstance(expansion, GaussianExpansion):
        return xp.concat([expansion.derivatives(X[rows, :], output) for rows in blocks], axis=0)
    V, kernel = expansion.vectors, expansion.kernel
    parts = []
    for rows in blocks:
        K = kernel(V, X[rows, :])
        D = xp.broadcast_to(expansion.coef[:, output][:, None], K.shape)
        parts.append(kernel.pullback(V, X[rows, :], K, D))
    return xp.concat(parts, axis=0)


def feature_importances(expansion: KernelExpansion | GaussianExpansion, samples: Samples) -> Array:
    """Share of every feature in the variation of the function over the samples; all zero if it is constant.

    Parameters
    ----------
    expansion : KernelExpansion or GaussianExpansion
        :func:`differentiable`.
    samples : Samples
        Of more than ``MOST_ROWS`` rows, this number is used, at equal steps.

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
    outputs = column_spreads(expansion(X), weights)
    if isinstance(expansion, GaussianExpansion):
        X = expansion.basis.prepared(X)
    spread = column_spreads(X, weights)
    total = xp.zeros_like(spread)
    for output in range(expansion.n_outputs):
        if float(outputs[output]) > 0:
            total += share @ (slopes(expansion, X, output) * spread / outputs[output]) ** 2
    size = xp.sum(total)
    return total / size if float(size) > 0 else total
