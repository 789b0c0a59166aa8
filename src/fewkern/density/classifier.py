"""DensityClassifier: Bayes' rule on one density per class."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.linalg import logsumexp
from fewkern.backend.namespace import Array, asarray_like, float_dtype, namespace, take_rows, to_numpy
from fewkern.backend.validation import (
    encode_labels,
    fit_context,
    labels_from_codes,
    validate_samples,
    validate_weights,
)
from fewkern.core.scores import ClassScores
from fewkern.density.base import DensityEstimator
from fewkern.density.forward import ForwardDensity

__all__ = ["DensityClassifier"]


class DensityClassifier(ClassifierMixin, BaseEstimator):
    r"""Classify by Bayes' rule, :math:`P(c \mid x) \propto \pi_c\, \hat p_c(x)`, with a density for every class.

    Parameters
    ----------
    estimator : density of fewkern or None, default None
        Cloned and fitted for every class; :class:`ForwardDensity` by default.
    priors : array-like of shape (n_classes,) or None, default None
        Probabilities of the classes; by default their shares of the samples (of the weights).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    densities_ : tuple of fitted densities, one per class
    priors_ : array of shape (n_classes,)
    n_vectors_ : int
        Kernels of all densities together.
    n_features_in_ : int

    Notes
    -----
    Cost of the density, once per class. Every class needs at least two different samples.

    Examples
    --------
    >>> from fewkern import DensityClassifier
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400)
    >>> model = DensityClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.n_vectors_ < 40
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [DensityEstimator, None],
        "priors": ["array-like", None],
    }

    def __init__(self, *, estimator: Any = None, priors: Any = None) -> None:
        self.estimator = estimator
        self.priors = priors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DensityClassifier:
        """Fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        """
        X = validate_samples(self, X, reset=True, accept_sparse=False, minimum=2)
        self.classes_, codes = encode_labels(self, X, y)
        weights = validate_weights(self, X, sample_weight)
        xp = namespace(X)
        one = xp.ones_like(X[:, 0]) if weights is None else weights
        base = ForwardDensity() if self.estimator is None else self.estimator
        densities, masses = [], []
        for c in range(int(self.classes_.shape[0])):
            rows = xp.nonzero(codes == c)[0]
            w = take_rows(one, rows)
            self._need_two_samples(X, rows, w, c)
            densities.append(clone(base).fit(take_rows(X, rows), sample_weight=w))
            masses.append(float(xp.sum(w)))
        self.densities_ = tuple(densities)
        self.priors_ = self._priors(masses, X)
        self.n_vectors_ = sum(density.n_vectors_ for density in densities)
        return self

    def _need_two_samples(self, X: Array, rows: Array, w: Array, c: int) -> None:
        xp = namespace(X)
        some = take_rows(X, rows[w > 0])
        if some.shape[0] < 2 or bool(xp.all(some == some[:1, :])):
            raise ValueError(
                f"DensityClassifier: class {to_numpy(self.classes_)[c].item()!r} has fewer than two different samples "
                "of positive weight, too few for a density; add samples, or drop the class."
            )

    def _priors(self, masses: list[float], X: Array) -> Array:
        if self.priors is None:
            return asarray_like([mass / sum(masses) for mass in masses], X, dtype=float_dtype(X))
        priors = [float(value) for value in to_numpy(self.priors)]
        if len(priors) != len(masses) or min(priors) <= 0 or abs(sum(priors) - 1) > 1e-6:
            raise ValueError(
                f"DensityClassifier: priors must be {len(masses)} positive numbers of sum one, one per class in sorted "
                f"order, got {self.priors!r}."
            )
        return asarray_like(priors, X, dtype=float_dtype(X))

    def predict_joint_log_proba(self, X: Any) -> Array:
        r""":math:`\log(\pi_c\, \hat p_c(x))`, shape ``(n_samples, n_classes)``."""
        check_is_fitted(self)
        X = validate_samples(self, X, reset=False, accept_sparse=False)
        xp = namespace(X)
        columns = [density.expansion_.log_density(X) for density in self.densities_]
        return xp.stack(columns, axis=1) + xp.log(self.priors_)

    def _class_scores(self) -> ClassScores:
        return ClassScores(offset=namespace(self.priors_).log(self.priors_))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of every class."""
        joint = self.predict_joint_log_proba(X)
        return joint - logsumexp(joint, axis=1)[:, None]

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``."""
        log_proba = self.predict_log_proba(X)
        return namespace(log_proba).exp(log_proba)

    def predict(self, X: Any) -> Array:
        """Class of every sample."""
        joint = self.predict_joint_log_proba(X)
        return labels_from_codes(self.classes_, namespace(joint).argmax(joint, axis=1))
