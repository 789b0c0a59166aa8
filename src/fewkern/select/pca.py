"""FVS-PCA: kernel principal components on a few chosen samples."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from fewkern.arrays.namespace import Array, is_sparse
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.progress import progress
from fewkern.arrays.validation import fit_context, validate_samples
from fewkern.base import CONSTRAINTS, check_samples, warn_of_fewer_components
from fewkern.core.kernels import resolve_kernel
from fewkern.core.samples import Samples
from fewkern.populations import weighted_population
from fewkern.select.axes import principal_axes, spread_of
from fewkern.select.base import MOST_VECTORS, SELECTION, VectorModel, novelty, novelty_threshold, selection_rule
from fewkern.select.regression import FeatureVectorRegressor
from fewkern.select.selection import choose_basis

__all__ = ["FeatureVectorPCA"]


def _learns_the_way_back(estimator: Any) -> bool:
    if not estimator.fit_inverse_transform:
        raise AttributeError(
            "FeatureVectorPCA: inverse_transform needs the way back to be learned: set fit_inverse_transform=True and "
            "fit again."
        )
    return True


class FeatureVectorPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, VectorModel):
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
    rule : str, default "gain"
        How vectors are chosen, see :class:`FeatureVectorSelector`.
    center : "auto", bool or int, default "auto"
        See :class:`FeatureVectorSelector`. It decides only which vectors are chosen; components
        are always centered.
    fit_inverse_transform : bool, default False
        Learn the way back to the samples, a :class:`FeatureVectorRegressor` from the components to the features.
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

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

    novelty, novelty_threshold = novelty, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **SELECTION,
        "n_components": CONSTRAINTS["n_components"],
        "max_vectors": CONSTRAINTS["max_vectors"],
        "fit_inverse_transform": ["boolean"],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "gaussian",
        max_vectors: int | None = None,
        rule: str = "gain",
        center: Any = "auto",
        fit_inverse_transform: bool = False,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.rule = rule
        self.center = center
        self.fit_inverse_transform = fit_inverse_transform
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureVectorPCA:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        population = weighted_population(self, X, sample_weight)
        samples = population.sample
        how = selection_rule(self.rule, self.center, None, self.random_state)
        kernel = resolve_kernel(self.kernel, samples.X)
        limit = MOST_VECTORS if self.max_vectors is None else self.max_vectors
        with progress(self, "choosing vectors", min(limit, samples.n)) as step:
            chosen = choose_basis(samples, kernel, how, limit, step)
        basis = chosen.basis()
        axes = principal_axes(spread_of(population, basis, chosen.G), self.n_components)
        self._keep(samples, chosen, basis, basis.expand(axes.W, -axes.mean @ axes.W))
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
        back.intervals_ = None  # nobody asks for those of the samples
        return back

    @rowwise
    def transform(self, X: Any) -> Array:
        """Scores on the components, shape ``(n_samples, n_components)``."""
        X = check_samples(self, X)
        return self.expansion_(X)

    @available_if(_learns_the_way_back)
    def inverse_transform(self, X: Any) -> Array:
        """Samples whose scores are nearly ``X``; needs ``fit_inverse_transform=True``."""
        back: FeatureVectorRegressor | None = getattr(self, "inverse_", None)
        if back is None:
            raise NotFittedError(
                "FeatureVectorPCA: the way back is not fitted; call fit again with fit_inverse_transform=True."
            )
        T = validate_samples(back, X, reset=False, accept_sparse=False)
        return back.expansion_(T)
