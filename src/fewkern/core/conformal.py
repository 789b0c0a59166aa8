"""How wrong a model is on samples that it has not seen, as a promise for new ones (conformal prediction).

If a new sample is exchangeable with the held-out ones, its score is among the smallest ``k`` of the ``n + 1`` scores
with probability ``k / (n + 1)``. So the score of rank ``ceil((n + 1) coverage)`` is exceeded by a new sample with
probability ``1 - coverage`` at most. Nothing is assumed about the model or the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.linalg import class_sums
from fewkern.arrays.namespace import Array, asarray_like, move_fields, namespace, same_place, take_rows, to_numpy
from fewkern.arrays.storable import floats, storable
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.preparation import Preparation

__all__ = ["HeldOutScores", "Intervals", "Novelty"]

# Scores that are kept at most. A level that falls between two of them is rounded up, by this share at most.
_KEPT = 2000
# Slack of a level, so that rounding does not ask for the next larger score.
_SLACK = 1e-9


def _check_scores(scores: HeldOutScores) -> None:
    values = to_numpy(scores.values)
    if not 1 <= scores.effective < float("inf") or not len(values):
        raise ValueError("HeldOutScores have no samples")
    if (values[1:] < values[:-1]).any():
        raise ValueError("HeldOutScores are not sorted")


@storable(values=floats("k"), levels=floats("k", above=0.0), check=_check_scores)
@dataclass(frozen=True)
class HeldOutScores:
    """Scores of held-out samples in ascending order: how large the score of a new sample may be.

    Parameters
    ----------
    values : array of shape (k,)
        Ascending. Of many scores only some are kept, evenly spaced in rank, and the largest ones all.
    levels : array of shape (k,)
        Share of the samples whose score is at most that value, counted with their weights.
    effective : float
        Number of samples behind the scores; with weights ``w`` it is ``(sum w)^2 / sum w^2``, and groups that were left
        out as a whole count as one each.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.conformal import HeldOutScores
    >>> scores = HeldOutScores.of(np.array([3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 6.0, 9.0, 8.0]))
    >>> scores.quantile(0.9), scores.quantile(0.5), scores.quantile(0.95)
    (9.0, 5.0, inf)
    """

    values: Array
    levels: Array
    effective: float

    @classmethod
    def of(cls, scores: Array, weights: Array | None = None, groups: Array | None = None) -> HeldOutScores:
        """Of the scores of ``n`` samples; ``groups`` are whole numbers, equal for samples left out together."""
        xp, n = namespace(scores), int(scores.shape[0])
        w = xp.ones_like(scores) if weights is None else weights
        order = xp.argsort(scores, stable=True)
        values = take_rows(scores, order)
        shares = xp.cumulative_sum(take_rows(w, order)) / xp.sum(w)
        units = w if groups is None else class_sums(w[:, None], groups, int(xp.max(groups)) + 1)[:, 0]
        effective = float(xp.sum(units)) ** 2 / float(xp.sum(units * units))
        if n > _KEPT:
            half = _KEPT // 2
            spaced = [(i + 1) * (n - half) // half - 1 for i in range(half)]
            kept = asarray_like([*spaced, *range(n - half, n)], order, dtype=order.dtype)
            values, shares = take_rows(values, kept), take_rows(shares, kept)
        return cls(values, shares, effective)

    @property
    def most(self) -> float:
        """The largest coverage that this number of samples supports."""
        return self.effective / (self.effective + 1.0)

    def quantile(self, coverage: float) -> float:
        """The score that a new sample exceeds with probability ``1 - coverage`` at most; infinite above ``most``."""
        wanted = coverage / self.most
        if wanted > 1 + _SLACK:
            return float("inf")
        levels = to_numpy(self.levels)
        position = int((levels < wanted * (1 - _SLACK)).sum())
        return float(self.values[min(position, len(levels) - 1)])


@storable(limits=floats("two", "q"))
@dataclass(frozen=True)
class Intervals:
    r"""Half widths of the intervals around the predictions of a regression, one per output.

    The half width at ``x`` is the quantile of the held-out scores times the scale :math:`s(x)`. Without a scale it is
    the same everywhere. The scale is :math:`\exp g(x)`, with ``g`` a sum of kernels (or of Gaussians beside a
    linear part) that was fitted to the logarithms of the held-out residuals, kept within the ``limits`` that occurred
    there.

    Parameters
    ----------
    scores : tuple of HeldOutScores
        Per output: held-out residuals without their sign, over the scale.
    scale : KernelExpansion, GaussianExpansion or None
        ``g``, one value per output.
    limits : array of shape (2, q) or None
        Least and largest value of ``g``.
    """

    scores: tuple[HeldOutScores, ...]
    scale: KernelExpansion | GaussianExpansion | None = None
    limits: Array | None = None

    @property
    def most(self) -> float:
        """The largest coverage that the held-out samples can vouch for."""
        return min(one.most for one in self.scores)

    def half_widths(self, X: Array, values: Array, coverage: float) -> Array:
        """Half widths beside the predicted ``values``, shape ``(n, q)``."""
        xp = namespace(values)
        factor = asarray_like([one.quantile(coverage) for one in self.scores], values, dtype=values.dtype)
        if self.scale is None or self.limits is None:
            return factor[None, :] + xp.zeros_like(values)
        limits = self.limits
        if not same_place(limits, values):
            limits = move_fields(self, values).limits
        g = xp.maximum(xp.minimum(self.scale(X), limits[1, :]), limits[0, :])
        return factor[None, :] * xp.exp(g)


def _check_novelty(novelty: Novelty) -> None:
    columns = int(novelty.basis.vectors.shape[1])
    if novelty.preparation is not None and novelty.preparation.n_columns != columns:
        raise ValueError(f"the preparation of a Novelty has {novelty.preparation.n_columns} columns, not {columns}")


@storable(check=_check_novelty)
@dataclass(frozen=True)
class Novelty:
    """Vectors that stand for the training samples, and what they leave unexplained of samples that are none of them.

    Parameters
    ----------
    basis : KernelBasis
        On samples, in the order of their choice; on prepared ones, if there is a preparation.
    scores : HeldOutScores
        Of the training samples, each without the help of itself (or of its group).
    preparation : Preparation or None
        What every sample passes before the kernel sees it.
    """

    basis: KernelBasis
    scores: HeldOutScores
    preparation: Preparation | None = None

    def __call__(self, X: Array) -> Array:
        """Share of ``k(x, x)`` that the vectors do not explain, in [0, 1]."""
        return self.basis.unexplained(X if self.preparation is None else self.preparation(X))

    @property
    def vectors(self) -> Array:
        """The samples that the basis holds, in the units of the columns."""
        return self.basis.vectors if self.preparation is None else self.preparation.inverse(self.basis.vectors)

    @property
    def blind(self) -> str | None:
        """Why the share says nothing, if so."""
        kernel = self.basis.kernel
        name = type(kernel).__name__
        if kernel.pairwise:
            return f"the kernel {name} does not give k(x, x) of new samples"
        rank = kernel.rank(int(self.basis.vectors.shape[1]))
        if rank is not None and self.basis.n_vectors >= rank:
            return f"{rank} vectors explain every sample with the kernel {name}"
        return None
