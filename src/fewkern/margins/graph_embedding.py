"""GraphEmbedding: Fisher discriminant analysis and its relatives, as rows of one table."""

from __future__ import annotations

from numbers import Real
from typing import Any

from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.margins.embedding import Ratio, graph_embedding
from fewkern.margins.reducer import REDUCER_CONSTRAINTS, Reducer, fix_signs

__all__ = ["GraphEmbedding"]


class GraphEmbedding(Reducer):
    r"""Directions that maximise a ratio of two graph scatters: FDA, PCA, LPP, UDP, MFA, LFDA, LSDA; a transformer.

    .. math:: \max_w \frac{w^T X^T L' X w}{w^T S w}, \qquad S = X^T L X + \rho \tau I

    with the Laplacian :math:`L` of samples that belong together and :math:`L'` of those that should be apart.

    Parameters
    ----------
    n_components : int or None, default None
        By default as many as the penalty scatter has rank, ``n_classes - 1`` for Fisher's graph. With
        ``recursive=True`` there are more directions than classes.
    graph : str, rule, GraphPair or pair of matrices, default "fisher"
        See :mod:`fewkern.graphs`.
    recursive : bool, default False
        One by one, each orthogonal to those before: recursive FDA, the Foley-Sammon set of orthogonal discriminant
        vectors.
    rho : float, default 1e-2
        Ridge, in units of the mean diagonal of :math:`X^T L X`; towards zero the first Fisher directions go to the
        null space of the within-class scatter.
    against : {"intrinsic", "total"}, default "intrinsic"
        Denominator: :math:`S`, or :math:`S + X^T L' X`.
    scaling : {"scatter", "unit"}, default "scatter"
        Length of the directions: one in the metric of the denominator, or one. Recursive directions have unit length.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`.
    max_vectors : int or None, default None
        Budget of samples with a kernel; by default all samples (up to the numerical rank).
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        How the vectors of the basis are chosen, see :class:`FeatureVectorSelector`.
    tol : float or None, default None
        Relative residual at which a sample depends on the chosen ones (1e-10, in float32 1e-5).
    random_state : int, Generator, RandomState or None, default 0

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component. With the linear kernel its vectors are the components.
    components_, mean_ : arrays of shape (c, n_features) and (n_features,)
        Only with the linear kernel.
    ratios_ : array of shape (c,)
        What every component attains.
    n_components_ : int
        The ``c`` of the shapes.
    stop_ : str
        "limit", "rank", or "flat" (the penalty scatter sees nothing in what is left).
    classes_ : array
        Only with a graph that needs classes.
    vectors_, indices_, n_vectors_, kernel_, basis_
        As in :class:`FeatureVectorSelector`.

    Notes
    -----
    Symbols: :math:`\tau` is the mean diagonal of :math:`X^T L X`. The samples are first moved to a basis of their
    span, so more features than samples, constant and repeated features do no harm. Cost: :math:`O(n d \min(n, d))`,
    then :math:`O(q^3)` for rank ``q`` (times the number of components if recursive). Class graphs need no n x n
    matrix. Neighbour graphs are computed on the host; everything else runs on any Array API library.

    References
    ----------
    S. Yan et al., "Graph embedding and extensions", IEEE Trans. PAMI 29 (2007); Q. Ye, N. Ye, C. Zhao et al.,
    "Recursive soft margin subspace learning".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fewkern import GraphEmbedding
    >>> X, y = load_iris(return_X_y=True)
    >>> GraphEmbedding().fit(X, y).transform(X).shape
    (150, 2)
    >>> GraphEmbedding(recursive=True, n_components=4).fit(X, y).transform(X).shape
    (150, 4)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **REDUCER_CONSTRAINTS,
        "graph": "no_validation",  # type: ignore[dict-item]
        "recursive": ["boolean"],
        "rho": [Interval(Real, 0, None, closed="left")],
        "against": [StrOptions({"intrinsic", "total"})],
        "scaling": [StrOptions({"scatter", "unit"})],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        graph: Any = "fisher",
        recursive: bool = False,
        rho: float = 1e-2,
        against: str = "intrinsic",
        scaling: str = "scatter",
        kernel: Any = "linear",
        max_vectors: int | None = None,
        rule: str = "gain",
        tol: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.recursive = recursive
        self.rho = rho
        self.against = against
        self.scaling = scaling
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.rule = rule
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_classes()
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GraphEmbedding:
        """Find the directions.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Classes; not read by an unsupervised graph.
        sample_weight : array of shape (n_samples,) or None
        """
        X = self._samples(X, reset=True, minimum=2)
        codes, weights = self._classes(X, y, sample_weight)
        features = self._features(X, weights)
        pair = self._graph(features, codes)
        result = graph_embedding(
            features.Z,
            pair,
            Ratio(self.n_components, self.recursive, self.rho, self.against, self.scaling),
        )
        self._keep(features, fix_signs(result.directions, features))
        self.ratios_, self.stop_ = result.values, result.stop
        return self
