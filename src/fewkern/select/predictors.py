"""FVS-LR and FVS-LDA: regression and discriminant analysis on a few chosen samples, with nothing to tune."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin

from fewkern.arrays.namespace import Array, take_rows
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.validation import fit_context
from fewkern.base import (
    CONSTRAINTS,
    KernelEstimator,
    ScoringClassifier,
    explain,
    held_out_scores,
    importances_of,
    kept_importances,
    warn_of_fewer_components,
)
from fewkern.core.samples import class_targets
from fewkern.core.statistics import feature_statistics
from fewkern.populations import labelled_population, measured_population
from fewkern.select.axes import discriminant_axes, gaussian_classes, gaussian_scores, spread_of
from fewkern.select.base import (
    AUTOMATIC,
    IntervalRegressor,
    keep_search,
    novelty,
    novelty_pvalue,
    novelty_threshold,
    search_model,
)
from fewkern.select.leave_one_out import solve_samples
from fewkern.select.search import nested_values
from fewkern.select.uncertainty import calibrate, fit_intervals, novelty_basis


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
        Budget for the automatic number of vectors. None tries up to 100 vectors (at most half of the samples) and
        goes on while the error falls: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at
        most. A BudgetWarning says if it is still falling there.
    alpha : float or "auto", default "auto"
        Penalty on the squared length of the solution in feature space. "auto" compares six values in units of the
        mean of ``k(x, x)``; zero means the least one beside which rounding is small.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        The model of least leave-one-out error, the smallest one within half a standard error of it, or within one.
    random_state : int, Generator, RandomState or None, default 0
        Draws the samples that compete to become vectors. Another seed, or another order of the rows, may give a model
        of another size that is as good.
    verbose : bool or int, default False
        Whether to show progress: a bar on a terminal, lines on stderr elsewhere.

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
        (where there are enough). None for sparse samples and kernels other than the Gaussian.

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

    _parameter_constraints: dict[str, list[Any]] = AUTOMATIC

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_vectors: int | None = None,
        max_vectors: int | None = None,
        alpha: Any = "auto",
        prefer: str = "balanced",
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.alpha = alpha
        self.prefer = prefer
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
            then held out, in every choice, interval and novelty score.

        Returns
        -------
        self
        """
        population, self._single = measured_population(self, X, y, sample_weight, groups)
        samples = population.sample
        found = search_model(self, samples, self.kernel, self.alpha)
        solution, left_out = solve_samples(samples, found.Z, found.ridge)
        expansion = found.basis.expand(solution.W, solution.offset)
        if population.n > samples.n:
            from_all = feature_statistics(population, found.basis).solve(found.ridge)
            expansion = found.basis.expand(*from_all.in_precision(found.Z.dtype))
        held_out = nested_values(samples, found) or left_out
        intervals = fit_intervals(held_out, novelty_basis(found.selection, found.n_vectors))
        if intervals.scale is not None:
            intervals = replace(intervals, scale=samples.original(intervals.scale))
        keep_search(self, samples, found, expansion)
        self.held_out_error_ = held_out.squared_error()
        self.intervals_ = intervals
        self._importances = importances_of(self.expansion_, None, samples)
        if solution.jitter > 0:
            warnings.warn(
                f"{type(self).__name__}: with alpha={self.alpha_:.3g} the equations are singular in this precision; "
                f"{solution.jitter:.3g} was added to it. Use a larger alpha or fewer vectors.",
                UserWarning,
                stacklevel=3,
            )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class FeatureVectorDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ScoringClassifier, KernelEstimator):
    r"""Axes on which classes lie apart, from a few chosen samples: a transformer and a classifier (FVS-LDA).

    It is linear discriminant analysis on the similarities to a few chosen samples, so the axes are curved in the space
    of the data. Along them samples of one class are close together and classes far apart: the axes maximize, on the
    features of the chosen vectors,

    .. math:: \frac{v^T B v}{v^T T v + \alpha\,\|v\|^2}

    with :math:`B` the between-class and :math:`T` the total scatter; with all samples chosen this is generalized
    (kernel) discriminant analysis. New samples are classified by Bayes' rule with a common covariance on the axes. A
    temperature, fitted to the coordinates of samples left out, makes the mean top-class probability equal the accuracy.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A length scale given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times
        its value, searched by leave-one-out. It is one length scale per feature, in units of that feature, so that the
        units of the data do not matter (``unit`` of :class:`~fewkern.kernels.Gaussian`). A length scale given as a
        number is kept.
    n_components : int or None, default None
        Number of axes; at most, and by default, one less than there are classes. If fewer exist than are asked for,
        there are fewer, with a warning.
    n_vectors : int or None, default None
        Number of vectors; None: chosen by leave-one-out.
    max_vectors : int or None, default None
        Budget for the automatic number of vectors. None tries up to 100 vectors (at most half of the samples) and
        goes on while the error falls: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at
        most. A BudgetWarning says if it is still falling there.
    alpha : float or "auto", default "auto"
        Penalty on the squared length of an axis in feature space, as in :class:`FeatureVectorRegressor`.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        The model of least leave-one-out error, the smallest one within half a standard error of it, or within one.
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class. Class probabilities are shares of the weight: to predict
        where classes are more or less frequent than among the samples, give every class its share there over its share
        among the samples. Axes and vectors are then those of such a population, too.
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Whether to show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per axis.
    feature_importances_
        As in :class:`FeatureVectorRegressor`, of the class scores.
    eigenvalues_ : array of shape (n_components,)
        Between- over total scatter on every axis, in [0, 1]: the paper's "inertia", the eigenvalues of the ratio.
    classes_, priors_, means_
        Classes, their probabilities, and their means on the axes.
    covariance_ : array of shape (n_components, n_components)
        Common within-class covariance on the axes.
    n_components_ : int
        Number of axes.
    held_out_scores_ : HeldOutScores or None
        Of the classes of held-out samples, which ``predict_set`` needs.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.
    class_scores_ : ClassScores
        How coordinates on the axes become classes and probabilities.
    vectors_, indices_, n_vectors_, kernel_, alpha_, fitness_, stop_, path_, basis_, background_
        As in :class:`FeatureVectorRegressor`.

    Notes
    -----
    Discriminant analysis is regression on class indicators followed by a change of coordinates, so length scale, ridge
    and number of vectors are chosen by the leave-one-out error of that regression. Without a ridge, and with a Gaussian
    kernel and all vectors, the inertia is one whatever the labels.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003).

    Examples
    --------
    >>> from fewkern import FeatureVectorDiscriminant
    >>> from fewkern.datasets import make_rings
    >>> from fewkern.kernels import Polynomial
    >>> X, y = make_rings(200)
    >>> model = FeatureVectorDiscriminant(kernel=Polynomial(degree=2, gamma=1.0, coef0=0.0), alpha=0.0).fit(X, y)
    >>> model.n_vectors_, model.eigenvalues_.round(6)
    (3, array([1.]))
    """

    feature_importances_ = kept_importances
    explain = explain
    novelty, novelty_pvalue, novelty_threshold = novelty, novelty_pvalue, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **AUTOMATIC,
        "n_components": CONSTRAINTS["n_components"],
        "class_weight": CONSTRAINTS["class_weight"],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "gaussian",
        n_vectors: int | None = None,
        max_vectors: int | None = None,
        alpha: Any = "auto",
        prefer: str = "balanced",
        class_weight: Any = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.alpha = alpha
        self.prefer = prefer
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> FeatureVectorDiscriminant:
        """Choose the vectors and fit the axes.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None
        groups : array of shape (n_samples,) or None
            Labels, equal for samples that belong together; whole groups are then held out.

        Returns
        -------
        self
        """
        population = labelled_population(self, X, y, sample_weight, groups)
        samples = class_targets(population.sample)
        found = search_model(self, samples, self.kernel, self.alpha)
        spread = spread_of(population, found.basis, found.Z)
        axes = discriminant_axes(spread, found.ridge, self.n_components)
        keep_search(self, samples, found, found.basis.expand(axes.W, -axes.mean @ axes.W))
        self.eigenvalues_ = axes.values
        self.priors_, self.means_, self.covariance_ = gaussian_classes(spread, axes)
        # every sample on the axes that the others give, the points of the classes held
        points = replace(samples, targets=take_rows(axes.points, samples.codes))
        left_out = solve_samples(points, found.Z, found.ridge)[1]
        scores = gaussian_scores(self.priors_, self.means_, self.covariance_)
        self.class_scores_ = calibrate(scores, left_out, long_tails=True)
        self.held_out_scores_ = held_out_scores(self.class_scores_, left_out.values, left_out.samples)
        self._importances = importances_of(self.expansion_, self.class_scores_, samples)
        self.n_components_ = self._n_features_out = self.expansion_.n_outputs
        warn_of_fewer_components(self)
        return self

    @rowwise
    def transform(self, X: Any) -> Array:
        """Coordinates on the discriminant axes, each of unit variance over the training samples."""
        return self._values(X)
