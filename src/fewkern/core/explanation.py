r"""What every column contributes: to a value of a sum of Gaussians, and to the variation of a fitted function.

*One value.* The path integral of the gradient, in closed form.

The share of column ``i`` in :math:`f(x) - f(b)` is :math:`(x_i - b_i) \int_0^1 \partial_i f(b + t (x - b))\,dt`
(Aumann and Shapley; "integrated gradients"). For a Gaussian around :math:`v_j` with metric :math:`M` and own inverse
width :math:`s_j`, with :math:`\delta = x - b`, :math:`p = M \delta` and :math:`q_j = M (b - v_j)`, it is

.. math:: -w_j s_j^2\, \delta_i\, (p_i I_1 + q_{ij} I_0)

with the integrals of :func:`fewkern.arrays.numerics.line_integrals`; a linear part adds :math:`B_i \delta_i`. The
shares add up to :math:`f(x) - f(b)`. For several background points they are averaged.

*Importances.* The share of feature ``a`` in the variation of a sum of kernels :math:`f` with outputs
:math:`f_1, \dots, f_q` is

.. math:: I_a \propto \sum_c \frac{s_a^2}{\operatorname{var} f_c} \,
          \operatorname{mean}_i \left(\frac{\partial f_c}{\partial x_a}(x_i)\right)^2

over the samples :math:`x_i`, with :math:`s_a` the standard deviation of the feature: the squared slope in units of the
feature's spread and the output's. Units of either therefore do not matter, and a feature that is constant, or that the
kernel ignores, has share zero. A :class:`~fewkern.core.gaussians.GaussianExpansion` is a smooth function of its
prepared columns, so there slopes and spreads are those of the prepared columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from fewkern.arrays.blocks import in_blocks, row_blocks
from fewkern.arrays.namespace import Array, is_sparse, namespace, to_numpy
from fewkern.arrays.neighbors import MOST_ROWS, weighted_centers
from fewkern.arrays.numerics import column_spreads, line_integrals, squarable
from fewkern.arrays.storable import floats, storable
from fewkern.core.components import sees_components
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion, Preparation, gaussians, times_metric
from fewkern.core.radial import Gaussian
from fewkern.core.samples import Samples

# What is explainable.
Gaussians: TypeAlias = KernelExpansion | GaussianExpansion
# Elements of a block of rows times vectors: its arrays stay in the cache between the steps.
_BLOCK_ELEMENTS = 1 << 14
# Rounding of the sum of the weights of a background, in single precision.
_WEIGHTS_RTOL = 1e-4


def _check_background(read: Background) -> None:
    if not math.isclose(float(namespace(read.weights).sum(read.weights)), 1.0, rel_tol=_WEIGHTS_RTOL):
        raise ValueError("the weights of a background do not add up to one")


@storable(check=_check_background, centers=floats("k", "d"), weights=floats("k", above=0.0))
@dataclass(frozen=True)
class Background:
    """What a prediction is compared with: points with weights.

    Parameters
    ----------
    centers : array of shape (k, d)
        In prepared columns where the function prepares them.
    weights : array of shape (k,)
        Positive; they add up to one.
    """

    centers: Array
    weights: Array


@dataclass(frozen=True)
class Explanation:
    """What every feature contributes to the values of a model at some samples.

    Parameters
    ----------
    values : array of shape (n_samples, n_features), or (n_samples, n_features, n_outputs)
        The shares. Along the features they add up to the value of the model minus ``baseline``.
    baseline : float, or array of shape (n_outputs,)
        The mean value of the model over the background.
    feature_names : tuple of str
        One per feature.
    output_names : tuple or None
        Of several outputs: classes, or numbers.

    Examples
    --------
    >>> from fewkern import KernelRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1)
    >>> model = KernelRegressor(n_vectors=5).fit(X, y)
    >>> found = model.explain(X[:3])
    >>> found.values.shape
    (3, 1)
    >>> bool((abs(found.predictions - model.predict(X[:3])) < 1e-10).all())
    True
    """

    values: Array
    baseline: Any
    feature_names: tuple[str, ...]
    output_names: tuple[Any, ...] | None = None

    @property
    def predictions(self) -> Array:
        """Values of the model at the samples: ``baseline`` and the sum of the shares."""
        return namespace(self.values).sum(self.values, axis=1) + self.baseline


def _columns(basis: GaussianBasis, T: Array) -> Array:
    """Gaussians ``(n, m)`` of rows around the vectors; the middle of these is the origin: products cancel."""
    middle = namespace(T).sum(basis.vectors, axis=0) / max(basis.n_vectors, 1)
    return gaussians(T - middle, basis.vectors - middle, basis.scales, basis.directions, basis.inverse_widths)


def explainable(function: Any) -> bool:
    """Whether the function is a sum of Gaussians of the columns, the only kind that has the closed form."""
    if isinstance(function, GaussianExpansion):
        return not sees_components(function)
    return isinstance(function, KernelExpansion) and isinstance(function.kernel, Gaussian)


def fit_background(function: Any, samples: Samples) -> Background | None:
    """A few weighted centers of the samples; None where the function is not :func:`explainable`, or samples sparse."""
    if not explainable(function) or is_sparse(samples.X):
        return None
    some = samples.drawn(MOST_ROWS)
    return Background(*weighted_centers(_prepared(function, some.X), to_numpy(some.weights)))


def background_of(function: Gaussians, X: Array) -> Background:
    """The rows of ``X``, equally weighted, as the background of an :func:`explainable` function."""
    T = _prepared(function, X)
    n = int(T.shape[0])
    return Background(T, namespace(T).ones(n, dtype=T.dtype) / n)


def vectors_of(function: Gaussians) -> Background:
    """The vectors of an :func:`explainable` function, equally weighted, as its background; without any, the origin."""
    V = _host_form(function).basis.vectors
    xp, m = namespace(V), max(int(V.shape[0]), 1)
    return Background(V if V.shape[0] else xp.zeros((1, V.shape[1]), dtype=V.dtype), xp.ones(m, dtype=V.dtype) / m)


def shares(function: Gaussians, X: Array, background: Background) -> tuple[Array, Array]:
    """Shares ``(n, d, q)`` of the columns of ``X`` in the values of an :func:`explainable` function, and its baseline.

    Parameters
    ----------
    function : GaussianExpansion, or KernelExpansion with a Gaussian kernel
    X : array or sparse matrix of shape (n, d)
    background : Background

    Returns
    -------
    shares : array of shape (n, d, q)
        On the host, in double precision.
    baseline : array of shape (q,)
        Mean value of the function over the background.

    Notes
    -----
    Cost: ``n k m (d q + r)`` flops and two error functions for every sample, center and vector, with ``k`` centers.
    """
    form, T = _host_form(function), _prepared(function, X)
    xp = namespace(T)
    centers, weights = (xp.astype(to_numpy(one), xp.float64) for one in (background.centers, background.weights))
    (n, d), (m, q) = T.shape, form.coef.shape
    out = xp.zeros((n, d, q), dtype=T.dtype)
    starts = _columns(form.basis, centers)
    for rows in row_blocks(n, max(m, d), budget=_BLOCK_ELEMENTS):
        ends = _columns(form.basis, T[rows, :])
        for few in row_blocks(int(weights.shape[0]), max(m, d) * int(ends.shape[0]), budget=_BLOCK_ELEMENTS):
            each = _from_some(form, T[rows, :], centers[few, :], starts[few, :], ends)
            out[rows, ...] += xp.tensordot(weights[few], each, axes=1)
    return form.basis.preparation.by_column(out, 1), weights @ (
        starts @ form.coef + centers @ form.slopes + form.offset
    )


def _from_some(form: GaussianExpansion, T: Array, centers: Array, start: Array, end: Array) -> Array:
    """Shares ``(k, n, d, q)`` of the paths from centers; ``start`` and ``end``: the Gaussians there and at the rows."""
    xp, basis, squares = namespace(T), form.basis, form.basis.inverse_widths**2
    (n, d), (m, q), k = T.shape, form.coef.shape, int(centers.shape[0])
    way, before = T - centers[:, None, :], centers[:, None, :] - basis.vectors
    pulled, drawn = (times_metric(one, basis.scales, basis.directions) for one in (way, before))
    a = xp.sum(way * pulled, axis=2)[:, :, None] * squares
    c = way @ xp.matrix_transpose(squares[:, None] * drawn)
    g = (squares * xp.sum(before * drawn, axis=2))[:, None, :]
    zeroth, once = line_integrals(a, c, g, start[:, None, :], end)
    weights = squares[:, None] * form.coef
    each = xp.reshape(drawn[..., None] * weights[:, None, :], (k, m, d * q))
    slope = form.slopes - pulled[..., None] * (once @ weights)[:, :, None, :] - xp.reshape(zeroth @ each, (k, n, d, q))
    return way[..., None] * slope


def _prepared(function: Gaussians, X: Array) -> Array:
    """Rows in the columns in which the path is a straight line, on the host and in double precision."""
    X = X.toarray() if is_sparse(X) else to_numpy(X)
    if isinstance(function, GaussianExpansion):
        X = function.like(X).basis.prepared(X)
        return namespace(X).astype(X, namespace(X).float64)
    xp = namespace(X)
    X = xp.astype(X, xp.float64)
    assert isinstance(function.kernel, Gaussian)
    X = X / to_numpy(function.kernel.length_scale)
    # where a square would overflow, all Gaussians are zero: the row moves closer in its direction
    far = xp.max(xp.abs(X), axis=1, keepdims=True) / squarable(X)
    return X / xp.where(far > 1.0, far, xp.ones_like(far))


def _host_form(function: Gaussians) -> GaussianExpansion:
    """The function on the host and in double precision; length scales become units, which shares do not depend on."""
    host = to_numpy(function.offset)
    xp = namespace(host)
    if isinstance(function, GaussianExpansion):
        return function.like(host).in_precision(xp.float64)
    V, (m, q) = _prepared(function, function.vectors), function.coef.shape
    d = V.shape[1]
    # rows come prepared: in units of the length scale
    basis = GaussianBasis(Preparation(V, V), V, xp.ones(d), xp.zeros((d, 0)), xp.ones(m), xp.zeros((d, 0)))
    coef, offset = (xp.astype(to_numpy(array), xp.float64) for array in (function.coef, host))
    return GaussianExpansion(basis, coef, xp.zeros((d, q)), offset)


def differentiable(expansion: KernelExpansion | GaussianExpansion) -> bool:
    """Whether the function has derivatives in the columns: a kernel that supplies them, and dense vectors."""
    if isinstance(expansion, GaussianExpansion):
        return not sees_components(expansion)
    return expansion.kernel.differentiable and not is_sparse(expansion.vectors)


def slopes(expansion: KernelExpansion | GaussianExpansion, X: Array, output: int) -> Array:
    """Partial derivatives ``(n, d)`` of one output at the rows of ``X``, which are prepared for a GaussianExpansion.

    A kernel is symmetric. So the derivative with respect to a sample is that with respect to a vector, with the two
    in each other's place.
    """
    row_elements = max(expansion.n_vectors, int(X.shape[1]))
    if isinstance(expansion, GaussianExpansion):
        return in_blocks(lambda rows: expansion.derivatives(rows, output), X, row_elements)
    V, kernel = expansion.vectors, expansion.kernel

    def pulled(rows: Array) -> Array:
        K = kernel(V, rows)
        return kernel.pullback(V, rows, K, namespace(K).broadcast_to(expansion.coef[:, output][:, None], K.shape))

    return in_blocks(pulled, X, row_elements)


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
    if isinstance(expansion, GaussianExpansion):
        total = expansion.basis.preparation.by_column(total, 0)
    size = xp.sum(total)
    return total / size if float(size) > 0 else total
