r"""Intervals around the predictions of a regression, from held-out residuals.

The half width is a quantile of the held-out residuals, the same everywhere, unless these differ in size from place to
place: then it is in proportion to a scale :math:`s(x) = e^{g(x)}`, with ``g`` the ridge regression of
:math:`\log(|r_i| + \epsilon)` on the vectors of the search. Every scale that is compared comes from leave-one-out, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewkern.arrays.namespace import Array, device, namespace
from fewkern.core.basis import KernelBasis
from fewkern.core.conformal import HeldOutScores, Intervals
from fewkern.core.gaussians import GaussianBasis
from fewkern.core.samples import Samples
from fewkern.select.leave_one_out import HeldOut, Judging, loo_paths, solve

__all__ = ["fit_intervals"]

# Ridges that are compared for the scale, in units of the mean of |z|^2.
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
# Standard errors by which the likelihood must be greater with a scale: it is the exception that has to be proved.
_PROOF = 2.0
# Residuals are looked at through log(|r| + this share of their median): one that is zero by chance says little.
_BLUR = 0.1
# So many samples are enough for quantiles and a scale.
_MANY = 10_000
# With fewer samples no scale is fitted.
_FEW = 50
# With more outputs none is fitted either: each is a regression of its own.
_MANY_OUTPUTS = 10


def fit_intervals(held_out: HeldOut, basis: KernelBasis | GaussianBasis) -> Intervals:
    """Intervals from what a model says of held-out samples; a scale is linear in the features of the ``basis``."""
    held_out = held_out.some(_MANY)
    samples, columns = held_out.samples, range(held_out.samples.n_outputs)
    xp = namespace(held_out.values)
    sizes = xp.abs(held_out.values - samples.targets)
    scales: list[_Scale | None] = [None for _ in columns]
    if samples.n >= _FEW and len(columns) <= _MANY_OUTPUTS and basis.n_vectors > 0:
        Z = basis.features(samples.X)
        scales = [_fit_scale(Z, sizes[:, c], samples) for c in columns]
    if not any(scales):
        return Intervals(tuple(_scores(sizes[:, c], samples) for c in columns))
    found = [_constant(Z, sizes) if scale is None else scale for scale in scales]
    scores = tuple(_scores(sizes[:, c] / xp.exp(found[c].left_out), samples) for c in columns)
    limits = xp.stack([xp.stack([xp.min(s.left_out), xp.max(s.left_out)]) for s in found], axis=1)
    g = basis.expand(xp.stack([s.W for s in found], axis=1), xp.stack([s.offset for s in found]))
    return Intervals(scores, g, limits)


@dataclass(frozen=True)
class _Scale:
    """The logarithm of a scale, ``W'z + offset``, and its value at every sample when that is left out."""

    W: Array
    offset: Array
    left_out: Array


def _constant(Z: Array, sizes: Array) -> _Scale:
    """The scale 1."""
    xp = namespace(sizes)
    W = xp.zeros((Z.shape[1],), dtype=sizes.dtype, device=device(sizes))
    return _Scale(W, xp.sum(W), xp.zeros_like(sizes[:, 0]))


def _scores(sizes: Array, samples: Samples) -> HeldOutScores:
    return HeldOutScores.of(sizes, samples.weights, samples.groups)


def _fit_scale(Z: Array, sizes: Array, samples: Samples) -> _Scale | None:
    """The scale of one output, or None where the likelihood of the residuals is not clearly greater with it."""
    xp, w = namespace(Z), samples.weights
    unit = float(xp.mean(xp.sum(Z * Z, axis=1)))
    blur = _BLUR * _scores(sizes, samples).quantile(0.5)
    if not (unit > 0 and blur > 0):
        return None
    target = xp.log(sizes + blur)[:, None]
    ridges = tuple(unit * ridge for ridge in _RIDGES)
    errors = [float(path.error[-1]) for path in loo_paths(Z, target, ridges, w, Judging.of(samples))]
    solution = solve(Z, target, ridges[errors.index(min(errors))], w, samples.groups)
    scale = _Scale(solution.W[:, 0], solution.offset[0], solution.held_out[:, 0])
    share = w / xp.sum(w)
    gain = _loss(sizes, xp.zeros_like(sizes), share) - _loss(sizes, scale.left_out, share)
    mean = float(share @ gain)
    proof = _PROOF * math.sqrt(float((share * share) @ (gain - mean) ** 2))
    return scale if mean > proof else None


def _loss(sizes: Array, g: Array, share: Array) -> Array:
    """Negative log likelihood of every residual, of a Laplace distribution whose scale is ``exp(g)`` up to a factor."""
    xp = namespace(sizes)
    ratio = sizes / xp.exp(g)
    factor = float(share @ ratio)
    return g + math.log(factor) + ratio / factor
