"""What the estimators on chosen vectors share: the search that parameters describe, novelty and intervals."""

from __future__ import annotations

import math
import warnings
from functools import partial
from numbers import Real
from typing import Any

from fewkern.arrays.namespace import Array, asarray_like, namespace
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import seed_from
from fewkern.arrays.validation import Interval, StrOptions
from fewkern.base import (
    CONSTRAINTS,
    BudgetWarning,
    check_probability,
    check_samples,
    constraints,
    need_held_out,
    no_set,
)
from fewkern.core.conformal import Intervals, Novelty
from fewkern.core.expansion import KernelBasis, KernelExpansion
from fewkern.core.explanation import fit_background
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.select.paths import WIDTH_FACTORS
from fewkern.select.search import SearchResult, automatic_model, automatic_space, n_paths
from fewkern.select.selection import Selection, SelectionRule
from fewkern.select.uncertainty import novelty_of

# Constraints of the parameters of the automatic choice of length scale, ridge and number of vectors.
AUTOMATIC = constraints(
    *("kernel", "max_vectors", "prefer", "random_state", "verbose"),
    n_vectors=CONSTRAINTS["max_vectors"],
    alpha=[StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
)


def search_model(estimator: Any, samples: Samples, kernel: Any, ridge: Any) -> SearchResult:
    """Length scale, vectors, ridge and size for the targets of the samples, by the parameters of an estimator."""
    space = automatic_space(
        SelectionRule(seed=seed_from(estimator.random_state)),
        samples.n,
        n_vectors=estimator.n_vectors,
        max_vectors=estimator.max_vectors,
        ridge=ridge,
        prefer=estimator.prefer,
    )
    kernel = as_kernel(kernel)
    n_kernels = len(WIDTH_FACTORS) if "length_scale" in kernel.rules else 1
    with progress(estimator, "comparing kernel length scales", n_paths(space, n_kernels, samples.n)) as step:
        return automatic_model(samples, kernel, space, step)


def keep_search(estimator: Any, samples: Samples, found: SearchResult, expansion: KernelExpansion) -> None:
    """Assign what a search has found, and the function on its vectors."""
    estimator.alpha_, estimator.path_ = found.ridge, found.path
    estimator.stop_, estimator.fitness_ = found.stop, found.fitness
    keep_vectors(estimator, samples, found.selection, found.basis, expansion)
    _warn_open_end(estimator, samples, found)


def _warn_open_end(estimator: Any, samples: Samples, found: SearchResult) -> None:
    """Warn where the error was still falling at the end of an automatic path, and more samples could be chosen."""
    length = found.full_selection.n_vectors
    ended = found.full_selection.stop is not Stop.LIMIT or length == samples.n
    if estimator.n_vectors is not None or ended or not found.path.open_end:
        return
    advice = 'prefer="accurate", or ' if estimator.max_vectors is None and estimator.prefer != "accurate" else ""
    warnings.warn(
        f"{type(estimator).__name__}: the leave-one-out error was still falling at the largest number of vectors that "
        f"was tried, {length}; the {estimator.n_vectors_} that are kept are too few for these samples. Use "
        f"{advice}max_vectors={min(2 * length, samples.n)} or more; path_ has the errors.",
        BudgetWarning,
        stacklevel=5,
    )


def keep_vectors(
    self: Any, samples: Samples, selection: Selection, basis: KernelBasis, expansion: KernelExpansion
) -> None:
    """Assign the attributes about vectors: ``basis`` is on the first of the ``selection``, ``expansion`` on these."""
    self.basis_ = samples.original(basis)
    self.novelty_ = novelty_of(samples, selection, self.basis_)
    self.expansion_ = samples.original(expansion)
    self.background_ = fit_background(self.expansion_, samples)
    self.kernel_, self.indices_ = self.expansion_.kernel, self.expansion_.indices
    self.vectors_, self.n_vectors_ = self.expansion_.vectors, self.expansion_.n_vectors


@rowwise
def novelty(self: Any, X: Any) -> Array:
    """How unlike the training samples every sample is, in [0, 1].

    It is the share of ``k(x, x)`` that vectors chosen among the training samples do not explain: 0 for a sample that is
    a combination of them in feature space, 1 for one that is orthogonal to all of them there. These vectors are
    samples, also where those of the model were moved, and at least 20 where there are enough: fewer may ignore
    features.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)

    Returns
    -------
    array of shape (n_samples,)
    """
    X = check_samples(self, X)
    return _informative_novelty(self, "novelty")(X)


def novelty_threshold(self: Any, false_alarms: float = 0.05) -> float:
    """The novelty that at most a share ``false_alarms`` of the held-out samples exceeds; likewise for new ones.

    It comes from the novelty of the training samples, each without its own help (or that of its group).

    Parameters
    ----------
    false_alarms : float, default 0.05
        Between 0 and 1.
    """
    found = _informative_novelty(self, "novelty_threshold")
    rate = check_probability(self, "false_alarms", false_alarms)
    if 1 - rate > found.scores.most:
        raise ValueError(
            f"{type(self).__name__}.novelty_threshold: {found.scores.effective:.0f} samples only support "
            f"false_alarms={1 - found.scores.most:.2g} or more, got {false_alarms!r}; fit to more samples."
        )
    return found.scores.quantile(1 - rate)


@rowwise
def novelty_pvalue(self: Any, X: Any) -> Array:
    """Probability that a sample of the same kind as the training samples is as novel as this one, or more.

    It is ``(1 + k) / (1 + n)`` if ``k`` of the ``n`` training samples are, each without its own help (or that of its
    group). About 5% of ordinary new samples have a p-value of 0.05 or less: those above
    ``novelty_threshold(0.05)``. The least possible value is ``1 / (1 + n)``.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)

    Returns
    -------
    array of shape (n_samples,)
    """
    X = check_samples(self, X)
    return _informative_novelty(self, "novelty_pvalue").pvalues(X)


def interval_quantiles(estimator: Any, coverage: float) -> Intervals:
    """The fitted quantiles of the residuals; a ValueError where there are too few for this coverage."""
    found: Intervals = need_held_out(estimator, "intervals_", "predict_interval")
    coverage = check_probability(estimator, "coverage", coverage)
    if coverage > found.most:
        count = math.ceil(coverage / (1 - coverage) - 1e-9)
        raise ValueError(
            f"{type(estimator).__name__}: intervals of coverage {coverage} need at least {count} held-out samples (or "
            f"groups), and this model has {found.residuals[0].effective:.0f}; ask for at most "
            f"{math.floor(1000 * found.most) / 1000}, or fit to more samples."
        )
    return found


class IntervalRegressor:
    """Predictions of every regression: the values of its expansion, and intervals around them."""

    expansion_: Any
    intervals_: Intervals | None
    _single: bool

    @rowwise
    def predict(self, X: Any) -> Array:
        """Values of shape ``(n_samples,)`` or ``(n_samples, n_outputs)``."""
        X = check_samples(self, X)
        return self._shaped(self.expansion_(X))

    def _shaped(self, values: Array) -> Array:
        """A flat array for targets that came as one column."""
        return values[:, 0] if self._single else values

    def _about(self, X: Any, method: str) -> tuple[Intervals, Array, Array]:
        """The fitted intervals, checked samples, and predictions for them; ``method`` is named in errors."""
        intervals: Intervals = need_held_out(self, "intervals_", method)
        X = check_samples(self, X)
        return intervals, X, self.expansion_(X)

    @partial(rowwise, columns=("lower", "upper"))
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Lower and upper bound of every target, which lies between them with a probability of about ``coverage``.

        The ends are quantiles of the errors on rows held out, with their sign: about as many targets lie below the
        interval as above it, also where large errors are mostly on one side. Where errors are clearly larger in some
        places than in others, so is the interval. This holds on average over new samples that are like the training
        samples, for every output by itself. With too few held-out rows for each side by itself (for 90%: fewer than
        19), the ends lie symmetrically about the prediction.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        coverage : float, default 0.9
            Between 0 and 1; at most ``n / (n + 1)`` for ``n`` rows (or groups) held out.

        Returns
        -------
        array of shape (n_samples, 2) or (n_samples, n_outputs, 2)

        Examples
        --------
        >>> from fewkern import FeatureVectorRegressor
        >>> from fewkern.datasets import make_sinc
        >>> model = FeatureVectorRegressor().fit(*make_sinc(200, noise=0.1))
        >>> X, y = make_sinc(1000, noise=0.1, random_state=1)
        >>> lower, upper = model.predict_interval(X, coverage=0.9).T
        >>> bool(0.85 < ((lower <= y) & (y <= upper)).mean() < 0.95)
        True
        """
        interval_quantiles(self, coverage)
        intervals, X, values = self._about(X, "predict_interval")
        ends = [values + intervals.times_scale(X, values, end) for end in intervals.ends(coverage)]
        bounds = namespace(values).stack(ends, axis=2)
        return bounds[:, 0, :] if self._single else bounds

    @rowwise
    def predict_quantile(self, X: Any, q: float) -> Array:
        """The number below which a target lies with probability ``q``.

        ``predict_interval(X, 0.9)`` goes from the quantile 0.05 to the quantile 0.95. For the median, ``q=0.5``, the
        mean absolute error is expected to be smaller than for ``predict``, which is the mean.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        q : float
            Between ``1 / (n + 1)`` and ``n / (n + 1)`` for ``n`` rows (or groups) held out.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)

        Examples
        --------
        >>> from fewkern import FeatureVectorRegressor
        >>> from fewkern.datasets import make_sinc
        >>> model = FeatureVectorRegressor().fit(*make_sinc(200, noise=0.1))
        >>> X, y = make_sinc(1000, noise=0.1, random_state=1)
        >>> bool(0.7 < (y < model.predict_quantile(X, 0.75)).mean() < 0.8)
        True
        """
        intervals, X, values = self._about(X, "predict_quantile")
        q, least = check_probability(self, "q", q), 1 - intervals.most
        if not least - 1e-9 <= q <= intervals.most + 1e-9:
            raise ValueError(
                f"{type(self).__name__}: {intervals.residuals[0].effective:.0f} held-out samples (or groups) support "
                f"quantiles from {math.ceil(1000 * least) / 1000} to {math.floor(1000 * intervals.most) / 1000}, "
                f"got q={q}; fit to more samples."
            )
        return self._shaped(values + intervals.times_scale(X, values, intervals.quantiles(q)))

    @rowwise
    def predict_std(self, X: Any) -> Array:
        """Standard deviation of the targets about the predictions: the root mean square of the errors on rows held out.

        It grows and falls with the scale of the errors, as intervals do.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
        """
        intervals, X, values = self._about(X, "predict_std")
        return self._shaped(intervals.times_scale(X, values, intervals.spreads()))

    @rowwise
    def cdf(self, X: Any, y: Any) -> Array:
        """Probability that a target is at most ``y``; the inverse of :meth:`predict_quantile`, up to ``1 / (n + 1)``.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : float, or array of shape (n_samples,) or (n_samples, n_outputs)
            One number for all samples, or one for each.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Between ``0.5 / (n + 1)`` and ``(n + 0.5) / (n + 1)`` for ``n`` rows (or groups) held out.

        Examples
        --------
        >>> import numpy as np
        >>> from fewkern import FeatureVectorRegressor
        >>> from fewkern.datasets import make_sinc
        >>> model = FeatureVectorRegressor().fit(*make_sinc(200, noise=0.1))
        >>> model.cdf([[0.0], [3.0]], 0.5).round(1)  # sinc(0) = 1, sinc(3) = 0
        array([0., 1.])
        """
        intervals, X, values = self._about(X, "cdf")
        shape = values.shape[:1] if self._single else values.shape
        return self._shaped(intervals.cdf(X, values, _targets(self, y, values, tuple(shape))))

    predict_set = no_set


def _targets(estimator: Any, y: Any, values: Array, shape: tuple[int, ...]) -> Array:
    """``y`` of a method as an array like ``values``; one number, or one of the given shape."""
    if isinstance(y, Real):
        y = namespace(values).ones_like(values) * float(y)
    else:
        y = asarray_like(y, values, dtype=values.dtype)
        if tuple(y.shape) != shape:
            raise ValueError(
                f"{type(estimator).__name__}: y must be a number or an array of shape {shape}, one for every target, "
                f"got shape {tuple(y.shape)}."
            )
    if bool(namespace(y).any(namespace(y).isnan(y))):
        raise ValueError(f"{type(estimator).__name__}: y has NaN; leave these samples out.")
    return namespace(y).reshape(y, values.shape)


def _informative_novelty(estimator: Any, method: str) -> Novelty:
    """The fitted novelty; a ValueError where the kernel makes it uninformative."""
    found: Novelty = need_held_out(estimator, "novelty_", method)
    reason = found.blind
    if reason is not None:
        raise ValueError(
            f"{type(estimator).__name__}.{method}: {reason}, so novelty is not informative; use the kernel Gaussian."
        )
    return found
