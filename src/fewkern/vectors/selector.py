"""FeatureVectorSelector: choose a few samples, and see all others through them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import Array, namespace, take_rows
from fewkern.backend.progress import progress
from fewkern.backend.validation import Interval, StrOptions, fit_context, random_generator, validate_weights
from fewkern.core.basis import KernelBasis
from fewkern.core.gram import Gram
from fewkern.core.kernels import Kernel, as_kernel
from fewkern.vectors.base import KernelEstimator, build_gram, centre_count, selector
from fewkern.vectors.selection import Selection

__all__ = ["FeatureVectorSelector"]

KERNEL_CONSTRAINT = [str, Kernel, callable]
SELECTION_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": KERNEL_CONSTRAINT,
    "rule": [StrOptions({"gain", "greedy", "random", "uniform"})],
    "centre": ["boolean", StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
    "tol": [None, Interval(Real, 0, 1, closed="neither")],
    "random_state": [None, Integral, object],
    "verbose": ["verbose"],
}


class FeatureVectorSelector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""Choose the samples that span the data in feature space, and project on them (FVS).

    A sample :math:`x_i` is explained by the chosen set :math:`S` to the degree of its local fitness
    :math:`J_{Si} = k_{Si}^T K_{SS}^{-1} k_{Si} / k_{ii}` (7b); the set is judged by the mean of it, the global fitness
    :math:`J_S` (7a), which the selection raises step by step without ever looking at a target.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        See :mod:`fewkern.kernels`.
    max_vectors : int or None, default 100
        Largest number of vectors; None stops only at ``max_fitness`` or at the numerical rank.
    max_fitness : float, default 1.0
        Stop once the global fitness reaches it.
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        "gain" compares ``n_candidates`` random samples by how much they raise :math:`J_S`, "greedy" is the paper's rule
        (lowest local fitness, which chases outliers), "random" draws by residual (randomly pivoted Cholesky),
        "uniform" draws blindly.
    projection : {"nested", "symmetric", "raw"}, default "nested"
        Features: :math:`C^{-1}k_S(x)` with :math:`K_{SS} = CC^T`, whose first ``l`` columns belong to the first ``l``
        vectors; :math:`K_{SS}^{-1/2}k_S(x)` (10); or the kernel columns :math:`k_S(x)` (9). With the first two,
        ``Z @ Z.T`` approximates the kernel matrix.
    centre : "auto", bool or int, default "auto"
        Centre the images at the given number of samples nearest to their mean (Appendix A; True is 1).
        "auto" centres for "greedy" only.
    n_candidates : int, default 10
        Samples compared for every vector by rule "gain".
    tol : float or None, default None
        A sample with a relative residual below it depends on the chosen ones (1e-10, in float32 1e-5).
    warm_start : bool, default False
        Go on from the last fit on the same samples, with a larger ``max_vectors`` or ``max_fitness``; with another
        kernel or centre the selection starts over.
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    indices_ : array of shape (n_vectors,)
        Chosen samples, in the order of their choice.
    vectors_ : array of shape (n_vectors, n_features)
    n_vectors_ : int
    fitness_ : array of shape (n_vectors,)
        Global fitness after every step.
    stop_ : str
        Why the selection ended: "limit", "fitness" or "rank".
    kernel_ : Kernel
        With every parameter a number.
    basis_ : KernelBasis

    Notes
    -----
    ``n m`` kernel evaluations and ``n m^2`` flops in BLAS-3, memory ``n m`` numbers for ``m`` vectors: the kernel
    matrix is never formed. Sample weights enter the mean fitness and the draws.

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

    _transient = ("_selection", "_gram", "_gram_key")  # what warm_start keeps is not part of the model
    _parameter_constraints: dict[str, list[Any]] = {
        **SELECTION_CONSTRAINTS,
        "max_vectors": [None, Interval(Integral, 1, None, closed="left")],
        "max_fitness": [Interval(Real, 0, 1, closed="right")],
        "projection": [StrOptions({"nested", "symmetric", "raw"})],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        max_vectors: int | None = 100,
        max_fitness: float = 1.0,
        rule: str = "gain",
        projection: str = "nested",
        centre: Any = "auto",
        n_candidates: int = 10,
        tol: float | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.max_fitness = max_fitness
        self.rule = rule
        self.projection = projection
        self.centre = centre
        self.n_candidates = n_candidates
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureVectorSelector:
        """Choose the vectors.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Choose the vectors and return the features of ``X``, which selection has computed already."""
        selection = self._fit(X, sample_weight)
        return self.basis_.rotate(selection.G)

    @fit_context(prefer_skip_nested_validation=True)
    def _fit(self, X: Any, sample_weight: Any) -> Selection:
        start = self._earlier() if self.warm_start else None
        X = self._samples(X, reset=start is None)
        weights = validate_weights(self, X, sample_weight)
        rng = random_generator(self.random_state)
        if start is not None:
            self._check_same_samples(X)
            gram: Gram = self._gram
        else:
            gram = build_gram(as_kernel(self.kernel).resolve(X), X, centre_count(self.centre, self.rule), rng)
        limit = gram.n if self.max_vectors is None else self.max_vectors
        with progress("choosing vectors", min(limit, gram.n), bool(self.verbose)) as step:
            selection = selector(self, int(rng.integers(2**31)), weights)(gram, limit, start, step)
        self.kernel_ = gram.kernel
        projection: Any = self.projection
        self.basis_ = KernelBasis.from_selection(gram, selection.indices, selection.factor, projection)
        self.indices_ = selection.indices
        self.vectors_ = self.basis_.vectors
        self.n_vectors_ = self._n_features_out = int(selection.indices.shape[0])
        self.fitness_ = selection.fitness
        self.stop_ = selection.stop
        if self.warm_start:
            self._selection: Selection = selection
            self._gram: Gram = gram
            self._gram_key: str = self._key()
        return selection

    def transform(self, X: Any) -> Array:
        """Features ``Z`` of shape ``(n_samples, n_vectors_)``."""
        check_is_fitted(self)
        return self.basis_.features(self._samples(X, reset=False))

    def _earlier(self) -> Selection | None:
        """The last selection, if it was made with the same kernel and centring."""
        return self._selection if getattr(self, "_gram_key", None) == self._key() else None

    def _key(self) -> str:
        return f"{as_kernel(self.kernel)!r} {centre_count(self.centre, self.rule)}"

    def _check_same_samples(self, X: Array) -> None:
        old = self._gram.X
        same = old.shape == X.shape
        if same and self.n_vectors_:
            gap = take_rows(X, self.indices_) - take_rows(old, self.indices_)
            same = not bool((abs(gap) > 0).sum() if hasattr(gap, "nnz") else namespace(gap).any(gap != 0))
        if not same:
            raise ValueError(
                f"{type(self).__name__}: warm_start=True goes on with the samples of the last fit, but these are "
                "others; use a new estimator, or warm_start=False."
            )
