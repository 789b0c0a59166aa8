"""RecursiveSoftMargin: graph embedding with soft margins."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.progress import progress
from fewkern.arrays.validation import Interval, StrOptions, fit_context
from fewkern.base import constraints, warn_of_fewer_components
from fewkern.core.path import Stop
from fewkern.margins.reducer import REDUCER, Reducer, on_host
from fewkern.margins.soft import MAX_STEPS, SoftMargin, SoftMarginStep, recursive_soft_margin

__all__ = ["RecursiveSoftMargin"]

# Graphs of a rule are built on at most this many samples, which have 12 million pairs.
_MAX_SAMPLES = 5_000


class RecursiveSoftMargin(Reducer):
    r"""Directions that keep close classes apart, whatever far ones do: a transformer (RSM).

    It is :class:`GraphEmbedding` with soft margins: a pair of samples that is far enough apart counts no more, so a far
    class or an outlier cannot dominate. One direction after another, each in the complement of those before, minimizes

    .. math::

        J(w) = \tfrac12 w^T S w + D \sum_{(i,j) \in E} (1 - v_{ij} |w^T (x_i - x_j)|)_+ , \qquad
        S = X^T L X + \alpha\, \tau I

    where the intrinsic graph gives :math:`L` (samples that belong together) and the penalty graph the pairs :math:`E`
    that should be apart. A far pair stops paying once it is apart, which is what makes the method robust where a
    scatter is not.

    Parameters
    ----------
    n_components : int or None, default None
        By default as many as the penalty scatter has rank, ``n_classes - 1`` for Fisher's graph; more exist. If fewer
        exist than are asked for, there are fewer, with a warning, and ``stop_`` says why.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`. A kernel needs an ``alpha`` of at least 0.01.
    graph : str, rule, GraphPair or pair of matrices, default "fisher"
        See :mod:`fewkern.graphs`. Neighbors are those of the features: with the linear kernel the samples as they are,
        so that their units matter; with another kernel its features, which do not depend on units if its length scale
        is a rule.
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
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class. Read only by a graph that needs classes.
    max_vectors : int or None, default None
        Largest number of samples in the basis that gives the features of a kernel; the cost is quadratic in it. None:
        at most 500. The linear kernel has no basis unless a number is
        given, or sparse samples have more than 2,000 features (None: 2,000 vectors then).
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Say what runs: a progress bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component. With the linear kernel its vectors are the components.
    components_, mean_ : arrays of shape (c, n_features) and (n_features,)
        Only with the linear kernel.
    n_components_ : int
        The ``c`` of the shapes.
    stop_ : Stop
        "limit", "rank" or "flat" (no pair should be apart).
    steps_ : tuple of SoftMarginStep
        Per component: the objective after every concave-convex step, delta, and why it ended.
    n_iter_ : int
        Concave-convex steps in all.
    classes_ : array
        Only with a graph that needs classes.
    vectors_, indices_, n_vectors_
        The samples that were kept, their rows in ``X``, their number. With the linear kernel none is.
    kernel_ : Kernel
    basis_ : KernelBasis or None
        None where the features are the samples themselves.

    Notes
    -----
    Symbols: :math:`D = 2 \delta`, :math:`\tau` the mean diagonal of :math:`X^T L X` at the first step. Explicit
    pairs: :math:`O(m q^2)` per interior point iteration for ``m`` pairs. Sorted: :math:`O(n q^2 + q n \log n)` per
    Newton step and :math:`O(nq)` memory; with many features :math:`O(n^2 q)`, block by block, which is faster there.
    Above 5,000 samples the graph of a rule is that of 5,000 of them, drawn by the numbers of their rows, so that the
    cost is bounded; a graph that is given pair by pair is used as it is. Samples must be in memory; only
    :meth:`transform` takes Dask collections. The fit runs in NumPy; :meth:`transform` runs on any array library.

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
        **REDUCER,
        **constraints("verbose"),
        "graph": "no_validation",  # type: ignore[dict-item]
        "C": [Interval(Real, 0, None, closed="neither")],
        "scale_C": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left")],
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
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.max_vectors = max_vectors
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_classes()
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

        Returns
        -------
        self
        """
        self._reset_fitted()
        population = self._rows_in_memory(X, y, sample_weight)
        features = self._features(self._samples(on_host(population), _MAX_SAMPLES))
        pair = self._pair(features)
        with progress(self, "finding directions", self.n_components) as step:
            result = recursive_soft_margin(features.Z, pair, self._settings(), step)
        self._set_fitted(features, features.with_signs(result.directions), population.sample.weights)
        self.stop_, self.steps_ = result.stop, result.steps
        self.n_iter_ = max(1, sum(len(step.objectives) - 1 for step in result.steps))
        self._warn_at_limit(result.steps)
        warn_of_fewer_components(self)
        return self

    def _settings(self) -> SoftMargin:
        return SoftMargin(self.n_components, self.C, self.scale_C, self.alpha, self.metric)

    def _warn_at_limit(self, steps: tuple[SoftMarginStep, ...]) -> None:
        unfinished = [step.gain for step in steps if step.stop == Stop.MAX_ITER]
        if unfinished:
            warnings.warn(
                f"RecursiveSoftMargin: {len(unfinished)} of {len(steps)} directions did not converge in {MAX_STEPS} "
                f"concave-convex steps: the last step still gained {max(unfinished):.1e} of J(0) - J; use a smaller C.",
                ConvergenceWarning,
                stacklevel=4,
            )
