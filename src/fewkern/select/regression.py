"""FVS-LR: predict numbers from a few chosen samples, with nothing to tune."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from sklearn.base import RegressorMixin

from fewkern.arrays.validation import fit_context
from fewkern.base import KernelEstimator, explain, importances_of, kept_importances
from fewkern.core.explanation import fit_background
from fewkern.core.statistics import feature_statistics
from fewkern.populations import measured_population
from fewkern.select.base import (
    AUTOMATIC,
    IntervalRegressor,
    keep_vectors,
    novelty,
    novelty_pvalue,
    novelty_threshold,
    search_model,
    warn_open_end,
)
from fewkern.select.leave_one_out import solve_samples
from fewkern.select.search import nested_values
from fewkern.select.uncertainty import familiar_basis, fit_intervals

__all__ = ["FeatureVectorRegressor"]


class FeatureVectorRegressor(IntervalRegressor, RegressorMixin, KernelEstimator):
    r"""Predict numbers from a few chosen samples, with nothing to tune (FVS-LR).

    A few samples are chosen as vectors. A new sample is compared with them by the kernel, and the prediction is a
    weighted sum of these similarities and a constant. Kernel length scale, number of vectors and ridge are those of
    least leave-one-out error, which is known in closed form. In a formula,

    .. math:: \min_{A, \beta} \sum_i w_i \| y_i - \beta - A^T z_i \|^2 + \alpha\, \|A\|_F^2 \qquad (11)

    with :math:`z_i` the features of sample :math:`i` on the chosen vectors. With all samples chosen this is kernel
    ridge regression with a free constant. :class:`KernelRegressor` goes further: it moves the vectors, too. For vectors
    that another rule chooses, put a :class:`FeatureVectorSelector` before any linear regression.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A length scale given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times
        its value, searched by leave-one-out. It is one length scale per feature, in units of that feature, so that the
        units of the data do not matter (``unit`` of :class:`~fewkern.kernels.Gaussian`). A length scale given as a
        number is kept.
    n_vectors : int or None, default None
        Number of vectors; None: chosen by leave-one-out.
    max_vectors : int or None, default None
        Budget for the automatic number of vectors. None looks at up to 100 vectors (at most half of the samples) and
        goes on while that pays: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at most. A
        BudgetWarning says so where the error was still falling there.
    alpha : float or "auto", default "auto"
        Penalty on the squared length of the solution in feature space. "auto" compares six values in units of the
        mean of ``k(x, x)``; zero is the least beside which rounding is small.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        The model of least leave-one-out error, the smallest one within half a standard error of it, or within one.
    center : bool or int, default False
        See :class:`FeatureVectorSelector`. Centring keeps the sample at the centre in addition to ``n_vectors``.
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples that compete to become vectors. Another seed, or another order of the rows, may give a model
        of another size that is as good.
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The fitted function.
    feature_importances_ : array of shape (n_features,)
        Share of every feature in the variation of the function over the training samples: the mean squared slope, in
        units of the feature's spread. Needs dense samples and a kernel with derivatives (Gaussian, Polynomial, Linear).
    vectors_, indices_, n_vectors_
        The vectors that are kept, the rows of ``X`` that they are, their number.
    kernel_ : Kernel
        The kernel, with every parameter a number.
    alpha_ : float
        The ridge that was given or chosen.
    fitness_ : array of shape (n,)
        Share of the samples, in feature space, that the first vector explains, the first two, and so on up to one.
    stop_ : Stop
        "size" if leave-one-out preferred a smaller model than the selection had to offer; else why the selection ended:
        "limit" (the budget) or "rank".
    path_ : Path
        Leave-one-out error for every length scale that was looked at, every ridge and number of vectors.
    held_out_error_ : float
        Mean squared leave-one-out error, summed over the outputs, at settings that other samples chose.
    basis_ : KernelBasis
        The vectors that were chosen, and how they turn a sample into features.
    intervals_ : Intervals
        What :meth:`predict_interval` reads.
    novelty_ : Novelty
        What :meth:`novelty` reads.
    background_ : Background or None
        What :meth:`explain` compares with: at most 16 weighted centers of the samples, each the mean of five or more
        (where there are so many). None for sparse samples and kernels other than the Gaussian.

    Notes
    -----
    For every length scale and ridge the errors of all sizes come from one factorization: ``n L^2`` flops. Above 5,000
    samples length scale, ridge and size are searched on at most 10,000 of them; above 20,000 samples 20,000 choose
    everything, and the coefficients come from all. Memory: one ``n L`` matrix per length scale.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003), sec. 4.

    Examples
    --------
    >>> from fewkern import FeatureVectorRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(200, noise=0.1)
    >>> model = FeatureVectorRegressor().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 20
    (True, True)
    """

    feature_importances_ = kept_importances
    explain = explain
    novelty, novelty_pvalue, novelty_threshold = novelty, novelty_pvalue, novelty_threshold
    _keep = keep_vectors

    _parameter_constraints: dict[str, list[Any]] = AUTOMATIC

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_vectors: int | None = None,
        max_vectors: int | None = None,
        alpha: Any = "auto",
        prefer: str = "balanced",
        center: Any = False,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.alpha = alpha
        self.prefer = prefer
        self.center = center
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> FeatureVectorRegressor:
        """Choose the vectors and fit.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        groups : array of shape (n_samples,) or None
            Labels, equal for samples that belong together, such as the measurements of one person. Whole groups are
            then held out, by every choice and in all that is said of new samples.

        Returns
        -------
        self
        """
        population, self._single = measured_population(self, X, y, sample_weight, groups)
        samples = population.sample
        found = search_model(self, samples)
        solution, left_out = solve_samples(samples, found.Z, found.ridge)
        expansion = found.basis.expand(solution.W, solution.offset)
        if population.n > samples.n:
            from_all = feature_statistics(population, found.basis).solve(found.ridge)
            expansion = found.basis.expand(*from_all.in_precision(found.Z.dtype))
        held_out = nested_values(samples, found) or left_out
        intervals = fit_intervals(held_out, familiar_basis(found.selection, found.n_vectors))
        if intervals.scale is not None:
            intervals = replace(intervals, scale=samples.original(intervals.scale))
        self.alpha_, self.path_, self.stop_, self.fitness_ = found.ridge, found.path, found.stop, found.fitness
        self._keep(samples, found.selection, found.basis, expansion)
        self.held_out_error_ = held_out.squared_error()
        self.intervals_ = intervals
        self._importances = importances_of(self.expansion_, None, samples)
        self.background_ = fit_background(self.expansion_, samples)
        if solution.jitter > 0:
            warnings.warn(
                f"{type(self).__name__}: with alpha={self.alpha_:.3g} the equations are singular in this precision; "
                f"{solution.jitter:.3g} was added to it. Use a larger alpha or fewer vectors.",
                UserWarning,
                stacklevel=3,
            )
        warn_open_end(self, samples, found)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
