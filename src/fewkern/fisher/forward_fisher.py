"""kFDA_OLS: a kernel Fisher discriminant by forward selection."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

from fewkern.backend.namespace import Array, namespace
from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.fisher.base import FISHER_CONSTRAINTS, FisherClassifier, Fitted
from fewkern.fisher.forward import ForwardPath, forward_columns
from fewkern.fisher.targets import LinearModel

__all__ = ["ForwardKernelFisher"]

# Sizes that are compared go up to this.
FORWARD_LIMIT = 100


class ForwardKernelFisher(FisherClassifier):
    r"""Kernel Fisher discriminant by orthogonal least squares forward selection (kFDA_OLS), two classes and many.

    Kernel columns are taken one by one, each time that of largest error reduction ratio

    .. math:: \mathrm{err}_j = \|p_j^T R\|^2 / (p_j^T p_j\, \|Y\|^2),

    :math:`p_j` being the column orthogonalised against those taken, :math:`R` what they leave of the targets.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule is searched, see :class:`SparseKernelFisher`.
    n_vectors : int or "auto", default "auto"
        Number of columns; "auto" compares 1, 2, ... by cross-validation.
    max_vectors : int or None, default None
        Budget for "auto"; None is 100.
    min_residual : float, default 0.0
        Stop once this share of the targets' sum of squares is left.
    prefer, width_by, posterior, priors, class_weight, cv, random_state, verbose
        As in :class:`SparseKernelFisher`.

    Attributes
    ----------
    classes_, expansion_, vectors_, indices_, n_vectors_, kernel_, link_, priors_, trace_, n_iter_
        As in :class:`SparseKernelFisher`; ``indices_`` in the order of choice.
    ratios_ : tuple of float
        Error reduction ratio of the constant, then of every vector; they add up to one minus the share left.

    Notes
    -----
    ``n m`` flops per vector for ``m`` candidates: every distinct sample up to 3000 of them, else 500 chosen by
    the gain rule of :class:`FeatureVectorSelector`. The original article was not at hand: that the constant is forced
    and the coefficients are not regularised is our reading.

    References
    ----------
    S. Billings and K. Lee, "Nonlinear Fisher discriminant analysis using a minimum squared error cost function and the
    orthogonal least squares algorithm", Neural Networks 15 (2002).

    Examples
    --------
    >>> from fewkern import ForwardKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(300)
    >>> model = ForwardKernelFisher(n_vectors=10).fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_
    (True, 10)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **FISHER_CONSTRAINTS,
        "n_vectors": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "min_residual": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_vectors: Any = "auto",
        max_vectors: int | None = None,
        min_residual: float = 0.0,
        prefer: str = "accurate",
        width_by: str = "leave_one_out",
        posterior: str = "logistic",
        priors: Any = None,
        class_weight: Any = None,
        cv: Any = 5,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.min_residual = min_residual
        self.prefer = prefer
        self.width_by = width_by
        self.posterior = posterior
        self.priors = priors
        self.class_weight = class_weight
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ForwardKernelFisher:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        """
        self._fit(X, y, sample_weight)
        left = (1.0, *self.trace_.objectives)
        self.ratios_ = tuple(before - after for before, after in pairwise(left))
        return self

    def _settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        if self.n_vectors != "auto":
            return (int(self.n_vectors),)
        return tuple(range(1, (self.max_vectors or FORWARD_LIMIT) + 1))

    def _default_setting(self) -> int:
        return min(9, (self.max_vectors or FORWARD_LIMIT) - 1)

    def _budget(self) -> int | None:
        return None

    def _path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterable[LinearModel]:
        path = forward_columns(K, Y, limit=int(settings[-1]), tol=self.min_residual, weights=weights)
        return (_model(path, size) for size in range(1, int(path.order.shape[0]) + 1))

    def _machine(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        xp = namespace(K)
        path = forward_columns(K, Y, limit=int(setting), tol=self.min_residual, weights=weights)
        size = int(path.order.shape[0])
        model = _model(path, size)
        F = xp.take(K, model.support, axis=1) @ model.coef + model.offset[None, :]
        left = xp.maximum(1.0 - xp.sum(path.Q**2, axis=1), xp.full_like(weights, 1e-3))
        sums, objectives = 1.0, []
        for ratio in path.ratios:
            sums -= ratio
            objectives.append(max(sums, 0.0))
        return Fitted(model, Y - (Y - F) / left[:, None], tuple(objectives), path.stop)


def _model(path: ForwardPath, size: int) -> LinearModel:
    coef, offset = path.coefficients(size)
    return LinearModel(path.order[:size], coef, offset)
