"""Transformers on a few chosen samples: the selection itself (FVS), and kernel principal components (FVS-PCA)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from fewkern.arrays.namespace import Array, is_sparse
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import seed_from
from fewkern.arrays.validation import Interval, StrOptions, fit_context, validate_samples
from fewkern.base import CONSTRAINTS, KernelEstimator, check_samples, constraints, explain, warn_of_fewer_components
from fewkern.core.expansion import Projection
from fewkern.core.kernels import resolve_kernel
from fewkern.core.samples import Samples
from fewkern.populations import weighted_population
from fewkern.select.axes import principal_axes, spread_of
from fewkern.select.base import keep_vectors, novelty, novelty_pvalue, novelty_threshold
from fewkern.select.paths import FIRST_VECTORS
from fewkern.select.predictors import FeatureVectorRegressor
from fewkern.select.rules import RULES
from fewkern.select.selection import Selection, SelectionRule, choose_basis
from fewkern.select.uncertainty import novelty_of


def _choose(estimator: Any, samples: Samples, **how: Any) -> Selection:
    """Choose vectors by the parameters of an estimator, and by those of the rule."""
    settings = SelectionRule(seed=seed_from(estimator.random_state), **how)
    limit = FIRST_VECTORS[1] if estimator.max_vectors is None else estimator.max_vectors
    kernel = resolve_kernel(estimator.kernel, samples.X)
    with progress(estimator, "choosing vectors", min(limit, samples.n)) as step:
        return choose_basis(samples, kernel, settings, limit, step)


class FeatureVectorSelector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""Choose a few samples that stand for all, and turn samples into features by comparing with them (FVS).

    The features are ordinary columns: any linear model on them is a kernel machine. scikit-learn's ``Nystroem`` does
    the same with samples drawn at random; here samples are chosen that explain the others.

    A sample :math:`x_i` is explained by the chosen set :math:`S` to the degree of its local fitness
    :math:`J_{Si} = k_{Si}^T K_{SS}^{-1} k_{Si} / k_{ii}` (7b); the set is judged by the mean of it, the global fitness
    :math:`J_S` (7a), which the selection raises step by step without ever looking at a target.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        See :mod:`fewkern.kernels`. A length scale by a rule is one per feature, in units of the feature's spread; for
        features that share a unit, such as pixels, ``Gaussian(unit="range")`` or ``"common"`` may be better.
    max_vectors : int or None, default None
        Largest number of vectors; None: at most 100. With the number of samples, selection stops only at
        ``max_fitness`` or at the numerical rank.
    max_fitness : float, default 1.0
        Stop once the global fitness reaches it.
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        "gain" compares random samples by how much they raise :math:`J_S`, "greedy" is the paper's rule
        (lowest local fitness, which chases outliers), "random" draws by residual (randomly pivoted Cholesky),
        "uniform" draws uniformly.
    projection : {"nested", "symmetric", "raw"}, default "nested"
        Features: :math:`C^{-1}k_S(x)` with :math:`K_{SS} = CC^T`, whose first ``l`` columns belong to the first ``l``
        vectors; :math:`K_{SS}^{-1/2}k_S(x)` (10); or the kernel columns :math:`k_S(x)` (9). With the first two,
        ``Z @ Z.T`` approximates the kernel matrix.
    center : "auto", bool or int, default "auto"
        Center the images at the given number of samples nearest to their mean (Appendix A; True is 1).
        "auto" centers for "greedy" only.
    random_state : int, Generator, RandomState or None, default 0

    Attributes
    ----------
    indices_ : array of shape (n_vectors,)
        Chosen samples, in the order of their choice.
    vectors_ : array of shape (n_vectors, n_features)
        The chosen samples themselves.
    n_vectors_ : int
        Their number.
    fitness_ : array of shape (n_vectors,)
        Share of the samples, in feature space, that the first vector explains, the first two, and so on (global
        fitness).
    stop_ : Stop
        Why the selection ended: "limit", "fitness" or "rank".
    kernel_ : Kernel
        With every parameter a number.
    basis_ : KernelBasis
        The vectors, and how they turn a sample into features.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.

    Notes
    -----
    ``n m`` kernel evaluations and ``n m^2`` flops in BLAS-3, memory ``n m`` numbers for ``m`` vectors: the kernel
    matrix is never formed. Sample weights enter the mean fitness and the draws; a sample of weight zero is absent.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003).

    Examples
    --------
    >>> from fewkern import FeatureVectorSelector
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400, random_state=0)
    >>> selector = FeatureVectorSelector(max_fitness=0.95).fit(X)
    >>> selector.n_vectors_ < 20, selector.stop_
    (True, 'fitness')
    >>> selector.transform(X).shape == (400, selector.n_vectors_)
    True
    """

    novelty, novelty_pvalue, novelty_threshold = novelty, novelty_pvalue, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **constraints("kernel", "max_vectors", "random_state"),
        "rule": [StrOptions(set(RULES))],
        "center": ["boolean", StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "max_fitness": [Interval(Real, 0, 1, closed="right")],
        "projection": [StrOptions({"nested", "symmetric", "raw"})],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        max_vectors: int | None = None,
        max_fitness: float = 1.0,
        rule: str = "gain",
        projection: Projection = "nested",
        center: Any = "auto",
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.max_fitness = max_fitness
        self.rule = rule
        self.projection = projection
        self.center = center
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureVectorSelector:
        """Choose the vectors.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        self
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Choose the vectors and return the features of ``X``, which the selection has computed already."""
        samples, selection = self._fit(X, sample_weight)
        # rows of weight zero, and those that were not drawn from a collection, took no part in the selection
        return self.basis_.rotate(selection.G) if samples.n == samples.n_all else self.transform(X)

    @fit_context(prefer_skip_nested_validation=True)
    def _fit(self, X: Any, sample_weight: Any) -> tuple[Samples, Selection]:
        population = weighted_population(self, X, sample_weight)
        samples = population if isinstance(population, Samples) else population.sample
        center = self.rule == "greedy" if self.center == "auto" else self.center
        selection = _choose(self, samples, rule=self.rule, center=int(center), max_fitness=self.max_fitness)
        self.kernel_ = selection.gram.kernel
        self.basis_ = samples.original(selection.basis(self.projection))
        self.novelty_ = novelty_of(samples, selection, self.basis_)
        self.indices_, self.vectors_ = self.basis_.indices, self.basis_.vectors
        self.n_vectors_ = self._n_features_out = selection.n_vectors
        self.fitness_ = selection.fitness
        self.stop_ = selection.stop
        return samples, selection

    @rowwise
    def transform(self, X: Any) -> Array:
        """Features ``Z`` of shape ``(n_samples, n_vectors_)``."""
        X = check_samples(self, X)
        return self.basis_.features(X)


def _has_inverse(estimator: Any) -> bool:
    if not estimator.fit_inverse_transform:
        raise AttributeError(
            "FeatureVectorPCA: inverse_transform is fitted only with fit_inverse_transform=True; set it and fit again."
        )
    return True


class FeatureVectorPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""Kernel PCA on a few chosen samples (FVS-PCA).

    Kernel PCA finds curved directions along which the samples vary most; scikit-learn's keeps every sample for that.
    This one keeps a few. It computes the principal components of the orthonormal features (10) of the chosen vectors,
    after exact centering of the features. With all samples chosen this is kernel PCA; with fewer, no eigenvalue exceeds
    that of kernel PCA, and all grow with the number of vectors.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components; all with a nonzero eigenvalue by default. If fewer exist than are asked for, there are
        fewer, with a warning.
    kernel : str, Kernel or callable, default "gaussian"
        See :mod:`fewkern.kernels`. A length scale by a rule is one per feature, in units of the feature's spread; for
        features that share a unit, such as pixels, ``Gaussian(unit="range")`` or ``"common"`` may be better.
    max_vectors : int or None, default None
        Largest number of vectors; None: at most 100. With the number of samples, selection stops only at the numerical
        rank.
    fit_inverse_transform : bool, default False
        Fit the inverse transform too, a :class:`FeatureVectorRegressor` from the components to the features.
    random_state : int, Generator, RandomState or None, default 0

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component.
    eigenvalues_ : array of shape (n_components,)
        Sums of squared scores, the scale of scikit-learn's ``KernelPCA.eigenvalues_``.
    n_components_ : int
        Number of components.
    vectors_, indices_, n_vectors_, kernel_, fitness_, stop_, basis_
        As in :class:`FeatureVectorSelector`.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.
    background_ : Background or None
        What :meth:`explain` compares with, as in :class:`FeatureVectorRegressor`.
    inverse_ : FeatureVectorRegressor
        From components back to samples; None without ``fit_inverse_transform``.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003), sec. 3.

    Examples
    --------
    >>> from fewkern import FeatureVectorPCA
    >>> from fewkern.datasets import make_banana
    >>> X, _ = make_banana(300)
    >>> pca = FeatureVectorPCA(n_components=2, max_vectors=30).fit(X)
    >>> pca.transform(X).shape, pca.n_vectors_
    ((300, 2), 30)
    """

    explain = explain
    novelty, novelty_pvalue, novelty_threshold = novelty, novelty_pvalue, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **constraints("kernel", "max_vectors", "random_state"),
        "n_components": CONSTRAINTS["n_components"],
        "fit_inverse_transform": ["boolean"],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "gaussian",
        max_vectors: int | None = None,
        fit_inverse_transform: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.fit_inverse_transform = fit_inverse_transform
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureVectorPCA:
        """Choose the vectors.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        population = weighted_population(self, X, sample_weight)
        samples = population.sample
        chosen = _choose(self, samples)
        basis = chosen.basis()
        axes = principal_axes(spread_of(population, basis, chosen.G), self.n_components)
        keep_vectors(self, samples, chosen, basis, basis.expand(axes.W, -axes.mean @ axes.W))
        self.fitness_, self.stop_ = chosen.fitness, chosen.stop
        self.eigenvalues_ = axes.values
        self.n_components_ = self._n_features_out = self.expansion_.n_outputs
        warn_of_fewer_components(self)
        self.inverse_ = None
        if self.fit_inverse_transform:
            self.inverse_ = self._fit_inverse(samples, (chosen.G - axes.mean) @ axes.W)
        return self

    def _fit_inverse(self, samples: Samples, T: Array) -> FeatureVectorRegressor:
        X = samples.X
        if is_sparse(X) or samples.pairwise:
            raise ValueError(
                "FeatureVectorPCA: fit_inverse_transform=True needs the samples as a dense array; it cannot go back to "
                "sparse samples or to those behind a precomputed kernel."
            )
        back = FeatureVectorRegressor(prefer="accurate", random_state=self.random_state)
        back.fit(T, X[:, 0] if X.shape[1] == 1 else X, samples.weights)
        back.intervals_ = back.background_ = None  # inverse_transform does not use them
        return back

    @rowwise
    def transform(self, X: Any) -> Array:
        """Scores on the components, shape ``(n_samples, n_components)``."""
        X = check_samples(self, X)
        return self.expansion_(X)

    @available_if(_has_inverse)
    def inverse_transform(self, X: Any) -> Array:
        """Samples whose scores are nearly ``X``; needs ``fit_inverse_transform=True``."""
        back: FeatureVectorRegressor | None = getattr(self, "inverse_", None)
        if back is None:
            raise NotFittedError(
                "FeatureVectorPCA: the inverse transform is not fitted; call fit again with fit_inverse_transform=True."
            )
        T = validate_samples(back, X, reset=False, accept_sparse=False)
        return back.expansion_(T)
