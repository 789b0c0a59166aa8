"""FVS-LDA: discriminant analysis in feature space on a few chosen samples."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.linalg import class_sums
from fewkern.backend.namespace import Array, asarray_like, device, namespace
from fewkern.backend.validation import (
    Interval,
    encode_labels,
    fit_context,
    labels_from_codes,
    validate_class_weights,
)
from fewkern.core.scores import ClassScores
from fewkern.vectors.automatic import AUTOMATIC_CONSTRAINTS, AutomaticBasis
from fewkern.vectors.axes import Axes, discriminant_axes
from fewkern.vectors.calibration import softmax
from fewkern.vectors.regression import indicators

__all__ = ["FeatureVectorDiscriminant"]


class FeatureVectorDiscriminant(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, AutomaticBasis):
    r"""Kernel discriminant analysis on a few chosen samples (FVS-LDA): a transformer and a classifier.

    The axes maximise, on the features of the chosen vectors,

    .. math:: \frac{v^T B v}{v^T T v + \text{ridge}\,\|v\|^2}

    with :math:`B` the between-class and :math:`T` the total scatter; with all samples chosen this is generalised
    (kernel) discriminant analysis. New samples are classified by Bayes' rule with a common covariance on the axes.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times its
        value, searched by leave-one-out; a width given as a number is kept.
    n_components : int or None, default None
        Number of axes; at most, and by default, one less than there are classes.
    max_vectors : int or "auto", default "auto"
        Budget of samples. "auto" looks at up to 100 vectors (at most half of the samples) and goes on while that
        pays: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at most.
    ridge : float or "auto", default "auto"
        Penalty on the squared length of an axis in feature space.
    prefer : {"balanced", "accurate", "sparse", "all"}, default "balanced"
        The smallest model within half a standard error ("sparse": one) of the least leave-one-out error; "accurate" is
        the one of least error, "all" takes every vector of the budget.
    priors : array of shape (n_classes,) or None, default None
        Class probabilities; those of the samples by default.
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        How vectors are chosen, see :class:`FeatureVectorSelector`.
    centre : "auto", bool or int, default "auto"
        See :class:`FeatureVectorSelector`.
    tol : float or None, default None
        Relative residual at which a sample depends on the chosen ones (1e-10, in float32 1e-5).
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per axis.
    inertia_ : array of shape (n_components,)
        Between- over total scatter on every axis, in [0, 1]: the paper's "inertia".
    classes_, priors_, means_
        Classes, their probabilities, and their means on the axes.
    covariance_ : array of shape (n_components, n_components)
        Common within-class covariance on the axes.
    vectors_, indices_, n_vectors_, kernel_, ridge_, fitness_, trace_, basis_
        As in :class:`FeatureVectorClassifier`.

    Notes
    -----
    Discriminant analysis is regression on class indicators followed by a change of coordinates, so width, ridge and
    number of vectors are chosen by the leave-one-out error of that regression. Without a ridge, and with a Gaussian
    kernel and all vectors, the inertia is one whatever the labels.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003).

    Examples
    --------
    >>> from fewkern import FeatureVectorDiscriminant
    >>> from fewkern.datasets import make_rings
    >>> from fewkern.kernels import Polynomial
    >>> X, y = make_rings(200)
    >>> model = FeatureVectorDiscriminant(kernel=Polynomial(degree=2, gamma=1.0, coef0=0.0), ridge=0.0).fit(X, y)
    >>> model.n_vectors_, model.inertia_.round(6)
    (3, array([1.]))
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **AUTOMATIC_CONSTRAINTS,
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "priors": [None, "array-like"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_components: int | None = None,
        max_vectors: Any = "auto",
        ridge: Any = "auto",
        prefer: str = "balanced",
        priors: Any = None,
        rule: str = "gain",
        centre: Any = "auto",
        tol: float | None = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.max_vectors = max_vectors
        self.ridge = ridge
        self.prefer = prefer
        self.priors = priors
        self.rule = rule
        self.centre = centre
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FeatureVectorDiscriminant:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None
        """
        X = self._samples(X, reset=True, minimum=2)
        self.classes_, codes = encode_labels(self, X, y)
        count = int(self.classes_.shape[0])
        if self.n_components is not None and self.n_components > count - 1:
            raise ValueError(
                f"FeatureVectorDiscriminant: n_components must be at most {count - 1} (one less than the number of "
                f"classes), got {self.n_components}."
            )
        weights = validate_class_weights(self, X, codes, sample_weight)
        gram, found = self._search(X, indicators(codes, count, X), weights)
        self._keep(gram, found)
        Z = found.selection.G[:, : found.n_vectors]
        axes = discriminant_axes(Z, codes, count, found.ridge, self.n_components, weights)
        self._keep_axes(axes)
        self.inertia_ = axes.values
        self._fit_classes((Z - axes.mean) @ axes.W, codes, weights)
        return self

    def _fit_classes(self, T: Array, codes: Array, weights: Array | None) -> None:
        """Gaussian classes with a common covariance on the axes."""
        xp, count = namespace(T), int(self.classes_.shape[0])
        w = xp.ones((T.shape[0],), dtype=T.dtype, device=device(T)) if weights is None else weights
        sums = class_sums(w[:, None], codes, count)[:, 0]
        self.priors_ = sums / xp.sum(sums) if self.priors is None else self._given_priors(T)
        self.means_ = class_sums(w[:, None] * T, codes, count) / sums[:, None]
        inside = T - xp.take(self.means_, codes, axis=0)
        self.covariance_ = (inside.T * w[None, :]) @ inside / xp.sum(w)

    def _given_priors(self, like: Array) -> Array:
        priors = asarray_like(self.priors, like, dtype=like.dtype)
        xp, count = namespace(priors), int(self.classes_.shape[0])
        if priors.shape != (count,) or bool(xp.any(priors < 0)) or float(xp.sum(priors)) <= 0:
            raise ValueError(
                f"FeatureVectorDiscriminant: priors must be {count} numbers that are not negative and not "
                f"all zero, got {self.priors!r}."
            )
        return priors / xp.sum(priors)

    def transform(self, X: Any) -> Array:
        """Coordinates on the discriminant axes, each of unit variance over the training samples."""
        check_is_fitted(self)
        return self.expansion_(self._samples(X, reset=False))

    def _log_joint(self, X: Any) -> Array:
        T = self.transform(X)
        weights, offset = self._joint_map(T)
        return T @ weights + offset

    def _joint_map(self, T: Array) -> tuple[Array, Array]:
        """Matrix and offset that turn coordinates into log joint probabilities, beside the array ``T``."""
        xp = namespace(T)
        # a class that sits in one point has no spread: a ridge of the unit round-off keeps the inverse
        means, covariance, priors = (asarray_like(a, T) for a in (self.means_, self.covariance_, self.priors_))
        ridge = max(1e-10, float(xp.finfo(T.dtype).eps))
        precision = xp.linalg.inv(covariance + ridge * xp.eye(covariance.shape[0], dtype=T.dtype, device=device(T)))
        half = means @ precision
        tiny = xp.full_like(priors, 1e-300 if ridge < 1e-8 else 1e-30)
        return half.T, xp.log(xp.maximum(priors, tiny)) - xp.sum(half * means, axis=1) / 2

    def _class_scores(self) -> ClassScores:
        weights, offset = self._joint_map(self.expansion_.coef)
        if int(self.classes_.shape[0]) == 2:
            weights, offset = weights[:, 1:] - weights[:, :1], offset[1:] - offset[:1]
        return ClassScores(weights, offset)

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class for two classes, log joint probabilities otherwise."""
        joint = self._log_joint(X)
        return joint[:, 1] - joint[:, 0] if int(self.classes_.shape[0]) == 2 else joint

    def predict(self, X: Any) -> Array:
        """Class of every sample."""
        joint = self._log_joint(X)
        return labels_from_codes(self.classes_, namespace(joint).argmax(joint, axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``."""
        return softmax(self._log_joint(X))

    def _keep_axes(self, axes: Axes) -> None:
        self.expansion_ = self.basis_.expand(axes.W, -axes.mean @ axes.W)
        self.n_vectors_, self.vectors_ = self.expansion_.n_vectors, self.expansion_.vectors
        self.indices_ = self.expansion_.indices
        self._n_features_out = self.expansion_.n_outputs
