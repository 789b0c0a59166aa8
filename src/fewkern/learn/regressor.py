"""The learner for numbers."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from fewkern.arrays.validation import fit_context
from fewkern.base import check_measured, importances_of
from fewkern.core.samples import Samples
from fewkern.learn.batches import Basis, keep_batch, sums_before
from fewkern.learn.fitting import PARAMETERS, LearningEstimator, fit_population, keep, keep_sums, learn_batch
from fewkern.populations import measured_population
from fewkern.select.base import IntervalRegressor
from fewkern.select.uncertainty import fit_intervals


class KernelRegressor(IntervalRegressor, RegressorMixin, LearningEstimator):
    r"""Predict numbers from a few vectors that are chosen, moved and sized automatically.

    .. math:: f(x) = b + B^T t(x) + \sum_j a_j \exp\bigl(-\tfrac12 s_j^2 \|A^T (t(x) - v_j)\|^2\bigr)

    with a monotone map :math:`t` of every column, a few vectors :math:`v_j` with widths :math:`1 / s_j` of their own, a
    learned metric :math:`A` and a linear part. Everything is chosen by the error on rows that are held out: whether the
    vectors are samples, imitate a larger model, or are moved by the gradient of the leave-one-out error, and how many
    they are.

    Parameters
    ----------
    n_vectors : int or None, default None
        Number of vectors; None lets rows held out decide.
    max_vectors : int or None, default None
        Largest number of vectors; None is 300, with ``prefer="accurate"`` 900, as far as the rows allow.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        The model of least held-out error; the smallest one that is not clearly worse: by half a standard error of the
        difference, and by 2% of the gain over a constant, times the relative error, for every halving of the size;
        or by three times as much.
    random_state : int, Generator, RandomState or None, default 0
        Rows are put into an order of their own first, so the order of the table does not matter.
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : GaussianExpansion
        The fitted function. A KernelExpansion where ``X`` is sparse.
    vectors_, indices_, n_vectors_
        The vectors that are kept, in the units of the columns; the rows of ``X`` that they are, or None if they were
        moved; their number.
    origin_ : {"samples", "distilled", "moved", "given"}
        What the vectors are: samples, moved to imitate a model on more samples, moved by the targets, or given.
    alpha_ : float
        Ridge per unit of weight.
    basis_ : GaussianBasis
        The features of a sample; ``partial_fit`` takes it.
    path_ : Path or None
        Held-out error of all that was compared; None with too few rows to hold any out.
    held_out_error_ : float
        Mean squared error, summed over the outputs, of rows held out, at settings that other rows chose.
    intervals_ : Intervals
        What :meth:`predict_interval` reads.
    novelty_ : Novelty or None
        What :meth:`novelty` reads.
    background_ : Background or None
        What :meth:`explain` compares with: at most 16 weighted centers of prepared rows, each the mean of at least
        five rows where there are enough, so that none is a row.
    feature_importances_
        Share of every column in the variation of the function.

    Notes
    -----
    Vectors are moved on at most 5,000 rows, settings chosen by at most five folds of them; coefficients come from all
    rows, in blocks. Cost of a fit: some hundred evaluations of the error, each ``4 n (m + p)^2`` flops with ``m``
    vectors and ``p <= 64`` linear features. Sparse ``X`` is not prepared, and its vectors stay samples. Kernels other
    than the Gaussian: :class:`FeatureVectorRegressor`.

    Examples
    --------
    >>> from fewkern import KernelRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(200, noise=0.1)
    >>> model = KernelRegressor().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 30
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = PARAMETERS

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> KernelRegressor:
        """Choose, move and size the vectors.

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
        fitted = fit_population(self, population)
        keep(self, fitted)
        self.intervals_ = fit_intervals(fitted.held_out, fitted.host_basis)
        self.held_out_error_ = fitted.held_out.squared_error()
        keep_sums(self, fitted, self.held_out_error_)
        self._importances = importances_of(self.expansion_, None, population.sample)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, basis: Basis | None = None) -> KernelRegressor:
        """Learn from one of several batches of samples.

        Vectors, metric and ridge are chosen on the first batch, as :meth:`fit` does, and stay. So let it be a few
        thousand samples of every kind, or give the vectors. The coefficients are those of all batches together.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        basis : GaussianBasis, KernelBasis or None
            Vectors to use instead of those that the first batch would choose: ``basis_`` of a fitted model.

        Returns
        -------
        self
        """
        before = sums_before(self)
        samples, single = check_measured(self, X, y, sample_weight, reset=before is None, minimum=1)
        if before is None:
            self._single = single
        sums = learn_batch(self, samples, before, basis)
        held_out = sums.left_out(samples)
        keep_batch(self, sums.judged(held_out.weight, held_out.squared_error()))
        self.intervals_ = fit_intervals(held_out, sums.basis)
        self._importances = importances_of(self.expansion_, None, samples)
        return self

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        return check_measured(self, X, y, sample_weight, reset=False, minimum=1)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
