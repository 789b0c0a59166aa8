"""RecursiveSoftMargin: graph embedding with soft margins."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.margins.reducer import REDUCER_CONSTRAINTS, Reducer, fix_signs
from fewkern.margins.soft import SoftMargin, recursive_soft_margin
from fewkern.margins.sparse import sparse_soft_margin

__all__ = ["RecursiveSoftMargin"]


class RecursiveSoftMargin(Reducer):
    r"""Soft-margin version of every graph embedding method (RSM): a transformer.

    One direction after another, each in the complement of those before, minimises

    .. math::

        J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (1 - v_{ij} |w^T (x_i - x_j)|)_+ , \qquad
        S = X^T L X + \rho \tau I

    where the intrinsic graph gives :math:`L` (samples that belong together) and the penalty graph the pairs :math:`E`
    that should be apart. A far pair stops paying once it is apart, which is what makes the method robust where a
    scatter is not.

    Parameters
    ----------
    n_components : int or None, default None
        By default as many as the penalty scatter has rank, ``n_classes - 1`` for Fisher's graph; more exist.
    graph : str, rule, GraphPair or pair of matrices, default "fisher"
        See :mod:`fewkern.graphs`.
    delta_rel : float, default 5.0
        Weight of the hinges, in units of the value below which the direction does not depend on it any more.
    delta : float or None, default None
        The weight itself; overrides ``delta_rel``.
    rho : float, default 1e-2
        Ridge, in units of the mean diagonal of :math:`X^T L X`.
    metric : {"euclidean", "scatter"}, default "euclidean"
        Orthonormal directions, or orthonormal in the metric :math:`S`; "scatter" is better with more samples than
        features.
    sparsity : float, default 0.0
        Above zero, an l1 penalty in the original coordinates, as a part of the one at which all directions vanish.
    solver : {"auto", "explicit", "sorted"}, default "auto"
        The pairs one by one, exactly, or all of them through a sort; "auto" goes by their number.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`. Needs ``rho`` of at least 0.01.
    max_vectors : int or None, default None
        Budget of samples with a kernel; by default all samples (up to the numerical rank).
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        How the vectors of the basis are chosen, see :class:`FeatureVectorSelector`.
    tol : float or None, default None
        Relative residual at which a sample depends on the chosen ones (1e-10, in float32 1e-5).
    max_iter : int, default 100
        Concave-convex steps per direction.
    random_state : int, Generator, RandomState or None, default 0

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component. With the linear kernel its vectors are the components.
    components_, mean_ : arrays of shape (c, n_features) and (n_features,)
        Only with the linear kernel.
    n_components_ : int
        The ``c`` of the shapes.
    stop_ : str
        "limit", "rank", "flat" (no pair should be apart) or "penalty" (``sparsity`` leaves nothing of the next
        direction).
    steps_ : tuple of SoftMarginStep
        Per component: the objective after every concave-convex step, delta, and why it ended.
    n_iter_ : int
        Concave-convex steps in all.
    classes_ : array
        Only with a graph that needs classes.
    vectors_, indices_, n_vectors_, kernel_, basis_
        As in :class:`FeatureVectorSelector`.

    Notes
    -----
    Symbols: :math:`D = 2 \delta`, :math:`\tau` the mean diagonal of :math:`X^T L X` at the first step. Explicit
    pairs: :math:`O(m q^2)` per interior point iteration for ``m`` pairs. Sorted: :math:`O(n q^2 + q n \log n)` per
    Newton step and :math:`O(nq)` memory. Neighbour graphs are computed on the host; everything else runs on any Array
    API library.

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

    _parameter_constraints: dict[str, list[Any]] = {
        **REDUCER_CONSTRAINTS,
        "graph": "no_validation",  # type: ignore[dict-item]
        "delta_rel": [Interval(Real, 0, None, closed="neither")],
        "delta": [None, Interval(Real, 0, None, closed="neither")],
        "rho": [Interval(Real, 0, None, closed="left")],
        "metric": [StrOptions({"euclidean", "scatter"})],
        "sparsity": [Interval(Real, 0, 1, closed="left")],
        "solver": [StrOptions({"auto", "explicit", "sorted"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        graph: Any = "fisher",
        delta_rel: float = 5.0,
        delta: float | None = None,
        rho: float = 1e-2,
        metric: str = "euclidean",
        sparsity: float = 0.0,
        solver: str = "auto",
        kernel: Any = "linear",
        max_vectors: int | None = None,
        rule: str = "gain",
        tol: float | None = None,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.delta_rel = delta_rel
        self.delta = delta
        self.rho = rho
        self.metric = metric
        self.sparsity = sparsity
        self.solver = solver
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.rule = rule
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_classes()
        tags.input_tags.sparse = tags.input_tags.sparse and self.sparsity == 0
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RecursiveSoftMargin:
        """Find the directions.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Classes; not read by an unsupervised graph.
        sample_weight : array of shape (n_samples,) or None
            A pair counts as the product of its weights.
        """
        X = self._samples(X, reset=True, minimum=2)
        codes, weights = self._classes(X, y, sample_weight)
        features = self._features(X, weights)
        pair = self._graph(features, codes)
        how = SoftMargin(
            n_components=self.n_components,
            C=self.delta_rel if self.delta is None else self.delta,
            scale_C=self.delta is None,
            ridge=self.rho,
            metric=self.metric,
            solver=self.solver,
            max_iter=self.max_iter,
        )
        if self.sparsity > 0:
            if features.basis is not None or self.metric != "euclidean":
                raise ValueError(
                    "RecursiveSoftMargin: sparsity > 0 is an l1 penalty on the features of dense samples; it needs "
                    'kernel="linear", max_vectors=None, metric="euclidean" and a dense X.'
                )
            assert features.Z is not None
            if self.rho == 0 and features.Z.shape[0] <= features.Z.shape[1]:
                raise ValueError(
                    "RecursiveSoftMargin: sparsity > 0 with rho=0 needs more samples than features, got "
                    f"{tuple(features.Z.shape)}; use rho > 0."
                )
            result = sparse_soft_margin(features.Z, pair, self.sparsity, how)
        else:
            result = recursive_soft_margin(features.Z, pair, how)
        self._keep(features, fix_signs(result.directions, features))
        self.stop_, self.steps_ = result.stop, result.steps
        self.n_iter_ = max(1, sum(len(step.objectives) - 1 for step in result.steps))
        return self
