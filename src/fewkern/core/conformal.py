"""Held-out errors of a model, and the intervals, sets and p-values that follow from them (conformal prediction).

If a new score is exchangeable with ``n`` held-out ones, it is among the smallest ``k`` of the ``n + 1`` with
probability ``k / (n + 1)``: the score of rank ``ceil((n + 1) coverage)`` is exceeded with probability ``1 - coverage``
at most. That is a theorem for a model that had no part in the held-out samples. The scores here are those of models of
leave-one-out or of folds, which differ from the model that predicts: no theorem holds for them, and how often they keep
the promise is measured (docs/guide/trust.md, ``python -m benchmarks tails``).
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.linalg import class_sums
from fewkern.arrays.namespace import Array, asarray_like, eps, namespace, take_rows, to_numpy
from fewkern.arrays.storable import floats, storable
from fewkern.core.expansion import KernelBasis, KernelExpansion
from fewkern.core.gaussians import GaussianExpansion, Preparation

# Largest number of scores kept, and how many of them are the smallest and the largest; the others are evenly spaced
# in rank. A level that falls between two of these is rounded outward, by one share of the spacing at most.
_KEPT, _TAIL = 2000, 500
# Slack of a level, so that rounding does not ask for the next larger score.
_SLACK = 1e-9


def _check_scores(scores: HeldOutScores) -> None:
    values = to_numpy(scores.values)
    if not 1 <= scores.effective < float("inf") or not len(values):
        raise ValueError("HeldOutScores have no samples")
    levels = to_numpy(scores.levels)
    if (values[1:] < values[:-1]).any() or (levels[1:] < levels[:-1]).any():
        raise ValueError("HeldOutScores are not sorted")


@storable(values=floats("k"), levels=floats("k", above=0.0), check=_check_scores)
@dataclass(frozen=True)
class HeldOutScores:
    """Scores of held-out samples in ascending order: how large, or how small, the score of a new sample may be.

    Parameters
    ----------
    values : array of shape (k,)
        Ascending. Of many scores only some are kept, evenly spaced in rank, and the smallest and largest ones all.
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
    >>> scores.lower_quantile(0.1), scores.lower_quantile(0.05)
    (1.0, -inf)
    """

    values: Array
    levels: Array
    effective: float

    @classmethod
    def of(cls, scores: Array, weights: Array | None = None, groups: Array | None = None) -> HeldOutScores:
        """From the scores of ``n`` samples; ``groups`` are whole numbers, equal for samples left out together."""
        xp, n = namespace(scores), int(scores.shape[0])
        w = xp.ones_like(scores) if weights is None else weights
        order = xp.argsort(scores, stable=True)
        values = take_rows(scores, order)
        shares = xp.cumulative_sum(take_rows(w, order)) / xp.sum(w)
        units = w if groups is None else class_sums(w[:, None], groups, int(xp.max(groups)) + 1)[:, 0]
        effective = float(xp.sum(units)) ** 2 / float(xp.sum(units * units))
        if n > _KEPT:
            middle = _KEPT - 2 * _TAIL
            spaced = [_TAIL + (i + 1) * (n - 2 * _TAIL) // middle - 1 for i in range(middle)]
            rows = [*range(_TAIL), *spaced, *range(n - _TAIL, n)]
            kept = asarray_like(rows, order, dtype=order.dtype)
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

    def lower_quantile(self, share: float) -> float:
        """The score below which a new sample falls with probability ``share`` at most: the mirror image of a quantile.

        Minus infinity below ``1 - most``.
        """
        if share < (1.0 - self.most) * (1 - _SLACK):
            return -float("inf")
        levels = to_numpy(self.levels)
        # the share of the samples that are smaller, at most
        smaller = share / self.most - 1.0 / self.effective
        position = min(int((levels <= smaller + _SLACK).sum()), len(levels) - 1)
        if len(levels) == _KEPT and _TAIL <= position < _KEPT - _TAIL:
            position -= 1  # among scores that were left out
        return float(self.values[position])

    def central(self, coverage: float) -> tuple[float, float]:
        """Two scores between which a new one lies, as often too small as too large: ``(1 - coverage) / 2`` at most.

        Fewer samples than that takes (``2 / (1 - coverage) - 1``) do not bound each side by itself. Then the scores
        are opposite numbers, which the size of a new score does not exceed with probability ``coverage``.
        """
        high = (1.0 + coverage) / 2.0
        if high <= self.most * (1 + _SLACK):
            return self.lower_quantile(1.0 - high), self.quantile(high)
        half = self.sizes().quantile(coverage)
        return -half, half

    def sizes(self) -> HeldOutScores:
        """The absolute values of the scores."""
        xp = namespace(self.values)
        values = xp.abs(self.values)
        order = xp.argsort(values, stable=True)
        shares = xp.cumulative_sum(take_rows(self.shares, order))
        return HeldOutScores(take_rows(values, order), shares, self.effective)

    @property
    def shares(self) -> Array:
        """Share of the samples that every kept score stands for."""
        xp = namespace(self.levels)
        return self.levels - xp.concat([xp.zeros_like(self.levels[:1]), self.levels[:-1]])

    @property
    def root_mean_square(self) -> float:
        """Root mean square of the scores."""
        xp = namespace(self.values)
        return float(xp.sqrt(xp.sum(self.shares * self.values * self.values)))

    def below(self, values: Array, *, ties: bool) -> Array:
        """Share of the samples with a score below each of ``values``; with ``ties``, also of those with that score."""
        xp = namespace(values)
        known, levels = (asarray_like(to_numpy(one), values, dtype=values.dtype) for one in (self.values, self.levels))
        flat = xp.reshape(values, (-1,))
        positions = xp.searchsorted(known, flat, side="right" if ties else "left")
        levels = xp.concat([xp.zeros_like(levels[:1]), levels])
        return xp.reshape(take_rows(levels, positions), values.shape)

    def cdf(self, values: Array) -> Array:
        """Probability that a new score is at most each of ``values``: a tie counts as the mean of its ranks."""
        share = (self.below(values, ties=False) + self.below(values, ties=True)) / 2.0
        return self.most * share + (1.0 - self.most) / 2.0

    def pvalues(self, values: Array) -> Array:
        """Probability that a new score is as large as each of ``values`` or larger: at least ``1 - most``."""
        found = 1.0 - self.most * self.below(values, ties=False)
        return found * (1.0 - max(_SLACK, 16 * eps(values)))  # a whole rank is not above itself by rounding


@storable(limits=floats("two", "q"))
@dataclass(frozen=True)
class Intervals:
    r"""How far targets lie from the predictions of a regression, one distribution per output.

    At ``x`` it is that of the held-out residuals, target less prediction, times the scale :math:`s(x)`. Without a scale
    it is the same everywhere. The scale is :math:`\exp g(x)`, with ``g`` a sum of kernels (or of Gaussians beside a
    linear part) that was fitted to the logarithms of the held-out residuals, kept within the ``limits`` that occurred
    there.

    Parameters
    ----------
    residuals : tuple of HeldOutScores
        Per output: held-out residuals with their sign, over the scale.
    scale : KernelExpansion, GaussianExpansion or None
        ``g``, one value per output.
    limits : array of shape (2, q) or None
        Least and largest value of ``g``.
    """

    residuals: tuple[HeldOutScores, ...]
    scale: KernelExpansion | GaussianExpansion | None = None
    limits: Array | None = None

    @property
    def most(self) -> float:
        """The largest coverage that the held-out samples support."""
        return min(one.most for one in self.residuals)

    def ends(self, coverage: float) -> tuple[list[float], list[float]]:
        """Lower and upper ends of the intervals, per output: from the prediction, in units of the scale."""
        lower, upper = zip(*(one.central(coverage) for one in self.residuals))
        return list(lower), list(upper)

    def quantiles(self, q: float) -> list[float]:
        """Quantile of every output: from the prediction, in units of the scale. Rounded away from the median."""
        if q == 0.5:
            return [(one.lower_quantile(q) + one.quantile(q)) / 2.0 for one in self.residuals]
        return [one.quantile(q) if q > 0.5 else one.lower_quantile(q) for one in self.residuals]

    def spreads(self) -> list[float]:
        """Root mean square of the residuals of every output, in units of the scale."""
        return [one.root_mean_square for one in self.residuals]

    def times_scale(self, X: Array, values: Array, factors: list[float]) -> Array:
        """One factor per output times the scale at ``X``, shape ``(n, q)``, as the predicted ``values``."""
        factor = asarray_like(factors, values, dtype=values.dtype)
        return factor[None, :] * self.scales(X, values)

    def scales(self, X: Array, values: Array) -> Array:
        """The scale at ``X``, shape ``(n, q)``, as the predicted ``values``; one where there is none."""
        xp = namespace(values)
        if self.scale is None or self.limits is None:
            return xp.ones_like(values)
        limits = asarray_like(self.limits, values)
        return xp.exp(xp.maximum(xp.minimum(self.scale(X), limits[1, :]), limits[0, :]))

    def cdf(self, X: Array, values: Array, targets: Array) -> Array:
        """Probability that the target is at most ``targets`` where ``values`` are predicted, shape ``(n, q)``."""
        xp = namespace(values)
        distances = (targets - values) / self.scales(X, values)
        columns = [one.cdf(distances[:, c]) for c, one in enumerate(self.residuals)]
        return xp.stack(columns, axis=1)


def _check_novelty(novelty: Novelty) -> None:
    columns = int(novelty.basis.vectors.shape[1])
    if novelty.preparation is not None and novelty.preparation.n_prepared != columns:
        raise ValueError(f"the preparation of a Novelty makes {novelty.preparation.n_prepared} columns, not {columns}")


@storable(check=_check_novelty)
@dataclass(frozen=True)
class Novelty:
    """Vectors that stand for the training samples, and the share of a new sample that they leave unexplained.

    Parameters
    ----------
    basis : KernelBasis
        On samples, in the order of their choice; on prepared ones, if there is a preparation.
    scores : HeldOutScores
        Of the training samples, each without the help of itself (or of its group).
    preparation : Preparation or None
        Applied to every sample before the kernel.
    """

    basis: KernelBasis
    scores: HeldOutScores
    preparation: Preparation | None = None

    def __call__(self, X: Array) -> Array:
        """Share of ``k(x, x)`` that the vectors do not explain, in [0, 1]."""
        return self.basis.unexplained(X if self.preparation is None else self.preparation(X))

    def pvalues(self, X: Array) -> Array:
        """Probability that a sample of the same kind is as novel as each of ``X``, or more."""
        return self.scores.pvalues(self(X))

    @property
    def vectors(self) -> Array:
        """The samples that the basis holds, in the units of the columns."""
        return self.basis.vectors if self.preparation is None else self.preparation.inverse(self.basis.vectors)

    @property
    def blind(self) -> str | None:
        """Why the share is uninformative; None where it is not."""
        kernel = self.basis.kernel
        name = type(kernel).__name__
        if kernel.pairwise:
            return f"the kernel {name} does not give k(x, x) of new samples"
        rank = kernel.rank(int(self.basis.vectors.shape[1]))
        if rank is not None and self.basis.n_vectors >= rank:
            return f"{rank} vectors explain every sample with the kernel {name}"
        return None
