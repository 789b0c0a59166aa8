"""GraphEmbedding: Fisher discriminant analysis and its relatives, as rows of one table."""

from __future__ import annotations

from numbers import Real
from typing import Any

from fewkern.arrays.namespace import asarray_like
from fewkern.arrays.partitions import is_collection
from fewkern.arrays.validation import Interval, fit_context
from fewkern.base import warn_of_fewer_components
from fewkern.margins.embedding import embedding_of_sums, graph_embedding
from fewkern.margins.reducer import REDUCER, Reducer, features_of_all, on_host

__all__ = ["GraphEmbedding"]


class GraphEmbedding(Reducer):
    r"""Directions along which some pairs of samples come close and others move apart: a transformer.

    A graph says which pairs. With "same class close, different classes apart" this is Fisher's discriminant (FDA);
    other graphs give PCA, LPP, UDP, MFA, LFDA and LSDA (:mod:`fewkern.graphs`). The directions maximize a ratio of
    scatters,

    .. math:: \max_w \frac{w^T X^T L' X w}{w^T S w}, \qquad S = X^T L X + \alpha\, \tau I

    with the Laplacian :math:`L` of samples that belong together and :math:`L'` of those that should be apart.

    Parameters
    ----------
    n_components : int or None, default None
        By default as many as the penalty scatter has rank, ``n_classes - 1`` for Fisher's graph. With
        ``recursive=True`` there are more directions than classes. If fewer exist than are asked for, there are fewer,
        with a warning, and ``stop_`` says why.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`.
    graph : str, rule, GraphPair or pair of matrices, default "fisher"
        See :mod:`fewkern.graphs`. Neighbors are those of the features: with the linear kernel the samples as they are,
        so that their units matter; with another kernel its features, which do not depend on units if its length scale
        is a rule.
    recursive : bool, default False
        One by one, each of unit length and orthogonal to those before: recursive FDA, the Foley-Sammon set of
        orthogonal discriminant vectors. Otherwise they are orthonormal in the metric :math:`S`.
    alpha : float, default 1e-2
        In units of the mean diagonal of :math:`X^T L X`; towards zero the first Fisher directions go to the null space
        of the within-class scatter.
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class. Read only by a graph that needs classes.
    max_vectors : int or None, default None
        Largest number of samples in the basis that gives the features of a kernel; the cost is quadratic in it. None:
        at most 500. The linear kernel has no basis unless a number is
        given, or sparse samples have more than 2,000 features (None: 2,000 vectors then).
    random_state : int, Generator, RandomState or None, default 0

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component. With the linear kernel its vectors are the components.
    components_, mean_ : arrays of shape (c, n_features) and (n_features,)
        Only with the linear kernel.
    eigenvalues_ : array of shape (c,)
        Penalty scatter over the denominator, for every component: the eigenvalues of the ratio.
    n_components_ : int
        The ``c`` of the shapes.
    stop_ : Stop
        "limit", "rank", or "flat" (the penalty scatter vanishes in the complement).
    classes_ : array
        Only with a graph that needs classes.
    vectors_, indices_, n_vectors_
        The samples that were kept, their rows in ``X``, their number. With the linear kernel none is.
    kernel_ : Kernel
    basis_ : KernelBasis or None
        None where the features are the samples themselves.

    Notes
    -----
    Symbols: :math:`\tau` is the mean diagonal of :math:`X^T L X`. The samples are first moved to a basis of their
    span, so more features than samples, constant and repeated features do no harm. Cost: :math:`O(n d \min(n, d))`,
    then :math:`O(q^3)` for rank ``q`` (times the number of components if recursive). Class graphs need no n x n
    matrix. The fit runs in NumPy; :meth:`transform` runs on any array library.

    Any number of rows, with the graphs "fisher" and "pca", in memory or as a Dask collection: above 20,000 rows the
    length scale and the basis of a kernel come from a sample of 20,000, and scatters and means from all rows, in one
    pass. Other rules are about pairs: above 20,000 rows they are built on 20,000 of them, which must be in memory. A
    graph that is given pair by pair is used as it is.

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
        **REDUCER,
        "graph": "no_validation",  # type: ignore[dict-item]
        "recursive": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "linear",
        graph: Any = "fisher",
        recursive: bool = False,
        alpha: float = 1e-2,
        class_weight: Any = None,
        max_vectors: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.graph = graph
        self.recursive = recursive
        self.alpha = alpha
        self.class_weight = class_weight
        self.max_vectors = max_vectors
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
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Classes; not read by an unsupervised graph.
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        self
        """
        self._reset_fitted()
        rows = self._rows_of_collection if is_collection(X) else self._rows_in_memory
        population = rows(X, y, sample_weight)
        host, like = on_host(population), population.sample.weights
        features = self._features(self._samples(host))
        rule = self._additive_rule()
        if rule is not None and host.n > features.samples.n:
            features, spread = features_of_all(features, host)
            result = embedding_of_sums(spread, rule, self.n_components, self.recursive, self.alpha)
        else:
            pair = self._pair(features)
            result = graph_embedding(features.Z, pair, self.n_components, self.recursive, self.alpha)
        self._set_fitted(features, features.with_signs(result.directions), like)
        self.eigenvalues_, self.stop_ = asarray_like(result.values, like), result.stop
        warn_of_fewer_components(self)
        return self
