"""The reducers on graphs: GraphEmbedding, and RecursiveSoftMargin with hinges in place of the penalty scatter."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.namespace import asarray_like
from fewkern.arrays.partitions import is_collection
from fewkern.arrays.progress import progress
from fewkern.arrays.validation import Interval, StrOptions, fit_context
from fewkern.base import check_labelled, check_weighted, constraints, warn_of_fewer_components
from fewkern.core.path import Stop
from fewkern.core.samples import Population, Samples
from fewkern.margins.embedding import embedding_of_sums, graph_embedding
from fewkern.margins.reducer import REDUCER, Reducer, features_of_all
from fewkern.margins.rules import Graph, GraphRule, as_graph, build_pair
from fewkern.margins.soft import MAX_STEPS, SoftMargin, SoftMarginStep, recursive_soft_margin
from fewkern.populations import labelled_population, weighted_population

# A soft margin on a graph that a rule builds uses at most this many samples, which have 12 million pairs.
_MAX_SOFT_MARGIN_SAMPLES = 5_000


# Constraints of the parameters of both.
_GRAPH_REDUCER: dict[str, list[Any]] = {
    **REDUCER,
    "graph": "no_validation",  # type: ignore[dict-item]
    "alpha": [Interval(Real, 0, None, closed="left")],
}


def set_params(self: Any, **params: Any) -> Any:
    """Set parameters; ``graph__neighbors=...`` works also while ``graph`` is a name."""
    if any(key.startswith("graph__") for key in params):
        self.graph = as_graph(params.pop("graph", self.graph), type(self).__name__)
    return Reducer.set_params(self, **params)


def tags_of_graph(self: Any) -> Any:
    """Targets are required where the graph needs classes."""
    tags, graph = Reducer.__sklearn_tags__(self), as_graph(self.graph, type(self).__name__)
    tags.target_tags.required = isinstance(graph, GraphRule) and graph.supervised
    return tags


def _checked_rows(estimator: Any, graph: Graph, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Checked rows in memory, with classes where the graph needs them."""
    if isinstance(graph, GraphRule) and graph.supervised:
        return check_labelled(estimator, X, y, sample_weight)
    return check_weighted(estimator, X, sample_weight, minimum=2)


def _population(estimator: Any, graph: Graph, X: Any, y: Any, sample_weight: Any) -> Population:
    """Checked rows: wherever they are if the scatters of the graph are sums over rows, else in memory."""
    if isinstance(graph, GraphRule) and graph.additive:
        if graph.supervised:
            return labelled_population(estimator, X, y, sample_weight)
        return weighted_population(estimator, X, sample_weight, minimum=2)
    if is_collection(X):
        given = repr(estimator.graph) if isinstance(estimator.graph, (str, GraphRule)) else "that was given"
        raise TypeError(
            f"{type(estimator).__name__}: X is a Dask collection, and the graph {given} is one of pairs of samples, "
            'which must be in memory; use graph="fisher" or "pca", or pass some of the rows in memory.'
        )
    return _checked_rows(estimator, graph, X, y, sample_weight)


class GraphEmbedding(Reducer):
    r"""Directions along which some pairs of samples come close and others move apart: a transformer.

    A graph defines the pairs. With "same class close, different classes apart" this is Fisher's discriminant (FDA);
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
    max_vectors : int or None, default None
        Largest number of samples in the basis that gives the features of a kernel; the cost is quadratic in it. None:
        at most 500. The linear kernel has no basis unless a number is given, or sparse samples have more than 2,000
        features (None: 2,000 vectors then).
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

    set_params, __sklearn_tags__ = set_params, tags_of_graph

    _parameter_constraints: dict[str, list[Any]] = {**_GRAPH_REDUCER, "recursive": ["boolean"]}

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "linear",
        graph: Any = "fisher",
        recursive: bool = False,
        alpha: float = 1e-2,
        max_vectors: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.graph = graph
        self.recursive = recursive
        self.alpha = alpha
        self.max_vectors = max_vectors
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GraphEmbedding:
        """Find the directions.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Classes; not read by an unsupervised graph.
        sample_weight : array of shape (n_samples,) or None
            :func:`sklearn.utils.class_weight.compute_sample_weight` with "balanced" makes every class count the same.

        Returns
        -------
        self
        """
        self._reset_fitted()
        graph = as_graph(self.graph, "GraphEmbedding")
        population = _population(self, graph, X, y, sample_weight)
        # the weights of a given graph are those of all rows
        samples: Any = population.sample if isinstance(graph, GraphRule) else population
        features = self._features(samples)
        if isinstance(graph, GraphRule) and graph.additive and population.n > samples.n:
            features, spread = features_of_all(features, population)
            result = embedding_of_sums(spread, graph, self.n_components, self.recursive, self.alpha)
        else:
            pair = build_pair(graph, features.Z, features.samples, "GraphEmbedding")
            result = graph_embedding(features.Z, pair, self.n_components, self.recursive, self.alpha)
        self._set_fitted(features, features.with_signs(result.directions), samples.weights)
        self.eigenvalues_, self.stop_ = asarray_like(result.values, samples.weights), result.stop
        warn_of_fewer_components(self)
        return self


class RecursiveSoftMargin(Reducer):
    r"""Directions that keep close classes apart, whatever far ones do: a transformer (RSM).

    It is :class:`GraphEmbedding` with soft margins: a pair of samples that is far enough apart no longer counts, so a
    far class or an outlier cannot dominate. Each direction, in the complement of those before, minimizes

    .. math::

        J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (1 - v_{ij} |w^T (x_i - x_j)|)_+ , \qquad
        S = X^T L X + \alpha\, \tau I

    where the intrinsic graph gives :math:`L` (samples that belong together) and the penalty graph the pairs :math:`E`
    that should be apart. The hinge of a pair is zero once it is apart, which makes the method robust where a scatter is
    not.

    Parameters
    ----------
    n_components : int or None, default None
        By default as many as the penalty scatter has rank, ``n_classes - 1`` for Fisher's graph; more exist. If fewer
        exist than are asked for, there are fewer, with a warning, and ``stop_`` says why.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`. A kernel needs an ``alpha`` of at least 0.01.
    graph, max_vectors, random_state
        As in :class:`GraphEmbedding`.
    C : float, default 5.0
        Weight of the hinges. All values below one give the same direction.
    scale_C : bool, default True
        ``C`` is in units of the value below which the direction does not depend on it, :math:`\delta_0`, which is
        computed for every direction. False makes ``C`` the paper's :math:`\delta`.
    alpha : float, default 1e-2
        In units of the mean diagonal of :math:`X^T L X`.
    metric : {"euclidean", "scatter"}, default "euclidean"
        Orthonormal directions, or orthonormal in the metric :math:`S`; "scatter" is better with more samples than
        features.
    verbose : bool or int, default False
        Whether to show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_, components_, mean_, n_components_, classes_, vectors_, indices_, n_vectors_, kernel_, basis_
        As in :class:`GraphEmbedding`.
    stop_ : Stop
        "limit", "rank" or "flat" (no pair should be apart).
    steps_ : tuple of SoftMarginStep
        Per component: the objective after every concave-convex step, delta, and why it ended.
    n_iter_ : int
        Concave-convex steps in all.

    Notes
    -----
    Symbols: :math:`D = 2 \delta`, :math:`\tau` the mean diagonal of :math:`X^T L X` at the first step. Explicit
    pairs: :math:`O(m q^2)` per interior point iteration for ``m`` pairs. Sorted: :math:`O(n q^2 + q n \log n)` per
    Newton step and :math:`O(nq)` memory. Above 5,000 samples the graph of a rule is that of 5,000 of them, drawn by the
    numbers of their rows, so that the cost is bounded; a graph that is given pair by pair is used as it is. Samples
    must be in memory; only :meth:`transform` takes Dask collections. The fit runs in NumPy; :meth:`transform` runs on
    any array library.

    References
    ----------
    Q. Ye, N. Ye, C. Zhao et al., "Recursive soft margin subspace learning".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fewkern import RecursiveSoftMargin
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RecursiveSoftMargin(n_components=3).fit(X, y)
    >>> model.transform(X).shape
    (150, 3)
    """

    set_params, __sklearn_tags__ = set_params, tags_of_graph

    _parameter_constraints: dict[str, list[Any]] = {
        **_GRAPH_REDUCER,
        **constraints("verbose"),
        "C": [Interval(Real, 0, None, closed="neither")],
        "scale_C": ["boolean"],
        "metric": [StrOptions({"euclidean", "scatter"})],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "linear",
        graph: Any = "fisher",
        C: float = 5.0,
        scale_C: bool = True,
        alpha: float = 1e-2,
        metric: str = "euclidean",
        max_vectors: int | None = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.graph = graph
        self.C = C
        self.scale_C = scale_C
        self.alpha = alpha
        self.metric = metric
        self.max_vectors = max_vectors
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RecursiveSoftMargin:
        """Find the directions.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Classes; not read by an unsupervised graph.
        sample_weight : array of shape (n_samples,) or None
            A pair counts as the product of its weights. For classes of equal weight see :class:`GraphEmbedding`.

        Returns
        -------
        self
        """
        self._reset_fitted()
        graph = as_graph(self.graph, "RecursiveSoftMargin")
        samples = _checked_rows(self, graph, X, y, sample_weight)
        if isinstance(graph, GraphRule) and not samples.pairwise:
            samples = samples.drawn(_MAX_SOFT_MARGIN_SAMPLES)
        features = self._features(samples)
        pair = build_pair(graph, features.Z, features.samples, "RecursiveSoftMargin")
        how = SoftMargin(self.n_components, self.C, self.scale_C, self.alpha, self.metric)
        with progress(self, "finding directions", self.n_components) as step:
            result = recursive_soft_margin(features.Z, pair, how, step)
        self._set_fitted(features, features.with_signs(result.directions), samples.weights)
        self.stop_, self.steps_ = result.stop, result.steps
        self.n_iter_ = max(1, sum(len(step.objectives) - 1 for step in result.steps))
        self._warn_at_limit(result.steps)
        warn_of_fewer_components(self)
        return self

    def _warn_at_limit(self, steps: tuple[SoftMarginStep, ...]) -> None:
        unfinished = [step.gain for step in steps if step.stop == Stop.MAX_ITER]
        if unfinished:
            warnings.warn(
                f"RecursiveSoftMargin: {len(unfinished)} of {len(steps)} directions did not converge in {MAX_STEPS} "
                f"concave-convex steps: the last step still gained {max(unfinished):.1e} of J(0) - J; use a smaller C.",
                ConvergenceWarning,
                stacklevel=4,
            )
