"""RecursiveSVM: several orthogonal directions of maximum margin."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fewkern.backend.linalg import squared_norms
from fewkern.backend.namespace import Array, asarray_like, is_sparse, namespace, take_rows
from fewkern.backend.validation import (
    Interval,
    StrOptions,
    encode_labels,
    fit_context,
    validate_class_weights,
    validate_targets,
    validate_weights,
)
from fewkern.margins.embedding import principal_space
from fewkern.margins.recursion import MarginDirections, Recursion, class_problems, recursive_margin, tube_problem
from fewkern.margins.reducer import REDUCER_CONSTRAINTS, Features, Reducer
from fewkern.margins.spaces import Constrained, Reflected, Space

__all__ = ["RecursiveSVM"]


class RecursiveSVM(Reducer):
    r"""Several orthogonal directions of maximum margin (RSVM): a transformer.

    Each direction is the normal of a support vector machine in the orthogonal complement of those before,

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i (1 - y_i (\langle w, \phi(x_i) \rangle + b))_+
        \quad \text{subject to } \langle w, w_j \rangle = 0,\ j < t,

    so two classes give more than one component, unlike linear discriminant analysis. With many classes every step
    solves one problem per class (or pair of classes) and takes out the span of their normals.

    Parameters
    ----------
    n_components : int or None, default None
        Most components; there are never more than directions with a margin, ``stop_`` says why it ended.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`.
    C : float, default 1.0
        Weight of the hinges. Very large ones, beyond 1e6 or so, may end with ``stop_`` "precision".
    class_weight : dict, "balanced" or None, default None
        "balanced" is recommended for unbalanced classes: only then do further directions exist until class means
        coincide. Not read in a regression.
    task : {"classification", "regression"}, default "classification"
        Hyperplanes between classes, or tubes of half-width ``epsilon`` around targets.
    multi_class : {"ovr", "ovo"}, default "ovr"
        With three classes or more: each against the rest, or all pairs (the ``n_classes - 1`` leading directions of
        them).
    epsilon : float, default 0.1
        Half-width of the tube in a regression.
    max_vectors : int or None, default None
        Budget of samples: the features are then those of a basis of so many chosen samples, and the cost is linear in
        the number of samples. By default every support vector is kept.
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        How the vectors of the basis are chosen, see :class:`FeatureVectorSelector`.
    residual_tol : float, default 1e-6
        Stop when no sample that is left is longer than this part of the longest one.
    flat_tol : float, default 1e-6
        Stop when the optimal value has come this near to that of ``w = 0``: no margin direction is left.
    tol : float or None, default None
        Relative residual at which a sample depends on the chosen ones (1e-10, in float32 1e-5).
    max_iter : int, default 100
        Interior point iterations per hyperplane.
    random_state : int, Generator, RandomState or None, default 0

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component. With the linear kernel its vectors are the components.
    components_, mean_ : arrays of shape (c, n_features) and (n_features,)
        Only with the linear kernel: orthonormal rows, and the mean that is subtracted.
    n_components_ : int
        The ``c`` of the shapes.
    stop_ : str
        "flat" (no margin direction is left), "rank", "faded" (nothing is left), "limit" or "precision" (``C`` is too
        large: the next problem cannot be solved).
    objective_, squared_norms_ : arrays of shape (n_steps,)
        Optimal value of every step (summed over the problems of a step) and the squared length of the normals.
    steps_ : tuple of MarginStep
        Per step: which problems it solved, with values, lengths, biases and iterations.
    cap_ : float
        Value at ``w = 0``, which ``objective_`` approaches.
    n_iter_ : int
        Interior point iterations in all.
    support_ : array
        Samples with a coefficient in some component.
    classes_ : array
        Only with classes.
    vectors_, indices_, n_vectors_, kernel_, basis_
        As in :class:`FeatureVectorSelector`.

    Notes
    -----
    Symbols: :math:`\phi_t` are the centred features left at step :math:`t`, :math:`\tilde w_t = \sum_i \alpha_i y_i
    \phi_t(x_i)` the normal, :math:`P_t` the optimal value. Laws: the components are orthonormal in feature space;
    :math:`P_{t+1} \ge P_t + \frac12 \|\tilde w_t\|^2` and :math:`P_t \le` cap, so the directions fade. An own
    interior point solves the problems, with any Array API library: :math:`O(n q^2)` per iteration on ``q`` features,
    10 to 30 iterations per component. Sparse samples with the linear kernel are never made dense.

    References
    ----------
    Q. Tao, D. Chu, J. Wang, "Recursive support vector machines for dimensionality reduction", IEEE Trans. Neural
    Networks 19 (2008).

    Examples
    --------
    >>> from fewkern import RecursiveSVM
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(200)
    >>> model = RecursiveSVM(kernel="gaussian", n_components=3).fit(X, y)
    >>> model.transform(X).shape, str(model.stop_)
    ((200, 3), 'limit')
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **REDUCER_CONSTRAINTS,
        "C": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "task": [StrOptions({"classification", "regression"})],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "residual_tol": [Interval(Real, 0, None, closed="left")],
        "flat_tol": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "linear",
        C: float = 1.0,
        class_weight: Any = None,
        task: str = "classification",
        multi_class: str = "ovr",
        epsilon: float = 0.1,
        max_vectors: int | None = None,
        rule: str = "gain",
        residual_tol: float = 1e-6,
        flat_tol: float = 1e-6,
        tol: float | None = None,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.task = task
        self.multi_class = multi_class
        self.epsilon = epsilon
        self.max_vectors = max_vectors
        self.rule = rule
        self.residual_tol = residual_tol
        self.flat_tol = flat_tol
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RecursiveSVM:
        """Find the directions.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes, or numbers with ``task="regression"``.
        sample_weight : array of shape (n_samples,) or None
        """
        X = self._samples(X, reset=True, minimum=2)
        # With more features than samples, sparse samples go through their Gram matrix, which is the smaller one.
        narrow = X.shape[1] <= X.shape[0]
        features = self._features(X, validate_weights(self, X, sample_weight), sparse_linear=narrow)
        problems, block_size = self._problems(X, y, sample_weight, features)
        result = recursive_margin(
            _space(features),
            problems,
            Recursion(self.n_components, block_size, self.residual_tol, self.flat_tol, max_iter=self.max_iter),
        )
        self._keep(features, result.directions, result.dual)
        self._keep_trace(features, result)
        return self

    def _problems(self, X: Array, y: Any, sample_weight: Any, features: Features) -> tuple[list[Any], int | None]:
        xp = namespace(features.mean)
        if self.task == "regression":
            targets = validate_targets(self, X, y)[0]
            if targets.shape[1] != 1:
                raise ValueError(f"RecursiveSVM: y must be one number per sample, got {targets.shape[1]} columns.")
            C = self.C * features.importance
            return [tube_problem(xp.astype(take_rows(targets[:, 0], features.rows), xp.float64), C, self.epsilon)], None
        self.classes_, codes = encode_labels(self, X, y)
        weighted = validate_class_weights(self, X, codes, sample_weight)
        box = features.importance if weighted is None else take_rows(weighted, features.rows)
        count = int(self.classes_.shape[0])
        block_size = count - 1 if count > 2 and self.multi_class == "ovo" else None
        own = take_rows(codes, features.rows)
        return class_problems(own, count, self.C * xp.astype(box, xp.float64), self.multi_class), block_size

    def _keep_trace(self, features: Features, result: MarginDirections) -> None:
        xp = namespace(result.dual)
        self.stop_ = result.stop
        self.steps_ = result.steps
        self.objective_ = asarray_like([sum(b.objectives) for b in result.steps], result.dual, dtype=xp.float64)
        self.squared_norms_ = asarray_like([sum(b.squared_norms) for b in result.steps], result.dual, dtype=xp.float64)
        self.cap_ = float(sum(result.caps))
        self.n_iter_ = max(1, sum(sum(b.iterations) for b in result.steps))
        self.support_ = take_rows(features.rows, xp.nonzero(xp.any(result.dual != 0, axis=1))[0])
        if self.n_components_ == 0:
            advice = 'use class_weight="balanced", another C or another kernel'
            if self.stop_ == "precision":
                advice = "the first problem could not be solved; use a smaller C, or max_vectors"
            elif self.task == "regression":
                advice = (
                    "do the targets differ by more than epsilon? Use a smaller epsilon, another C or another kernel"
                )
            warnings.warn(
                f"RecursiveSVM: no direction with a margin was found (stop_ is {self.stop_!r}); {advice}.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _space(features: Features) -> Space:
    """The samples for the recursion: explicit features, or sparse samples under constraints."""
    if features.Z is not None:
        # Only the span of the centred samples counts; what is outside of it would grow out of rounding.
        V = principal_space(features.Z)
        return Reflected.start(features.Z, V)
    assert is_sparse(features.X)
    X, mean = features.X, features.mean
    norms = squared_norms(X) - 2.0 * (X @ mean) + float(mean @ mean)
    return Constrained.start(X, mean, norms)
