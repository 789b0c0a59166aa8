"""DensityClassifier: Bayes' rule on one density per class."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone

from fewkern.backend.namespace import Array, asarray_like, namespace, to_numpy
from fewkern.backend.validation import fit_context, plain_label
from fewkern.base import ScoringClassifier, check_labelled, check_priors, constraints
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.density.base import DensityEstimator
from fewkern.density.forward import ForwardDensity
from fewkern.density.mixture import ClassMixtures

__all__ = ["DensityClassifier"]


class DensityClassifier(ScoringClassifier, BaseEstimator):
    r"""Classify by Bayes' rule, :math:`P(c \mid x) \propto \pi_c\, \hat p_c(x)`, with a density for every class.

    Parameters
    ----------
    estimator : density of fewkern or None, default None
        Cloned and fitted for every class; :class:`ForwardDensity` by default.
    priors : array-like of shape (n_classes,) or None, default None
        Probabilities of the classes; by default their shares of the weights.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied by those of the samples: they change the default priors.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    densities_ : tuple of fitted densities, one per class
        The ``expansion_`` of each of them is a :class:`KernelMixture`.
    priors_ : array of shape (n_classes,)
    class_scores_ : ClassScores
        From the log densities to scores: the logarithm of the odds for two classes, of prior times density for more.
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

    _parameter_constraints: dict[str, list[Any]] = constraints(
        "priors", "class_weight", estimator=[DensityEstimator, None]
    )

    def __init__(self, *, estimator: Any = None, priors: Any = None, class_weight: Any = None) -> None:
        self.estimator = estimator
        self.priors = priors
        self.class_weight = class_weight

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
        samples = check_labelled(self, X, y, sample_weight)
        xp = namespace(samples.weights)
        base = ForwardDensity() if self.estimator is None else self.estimator
        densities, shares = [], []
        for c in range(samples.n_classes):
            own = samples.take(xp.nonzero(samples.codes == c)[0])
            self._need_two_samples(own, c)
            densities.append(clone(base).fit(own.X, sample_weight=own.weights))
            shares.append(float(xp.sum(own.weights)) / float(xp.sum(samples.weights)))
        self.densities_ = tuple(densities)
        priors = check_priors(self, samples)
        default = asarray_like(shares, samples.weights, dtype=samples.weights.dtype)
        self.priors_ = default if priors is None else priors
        self.expansion_ = ClassMixtures(tuple(density.expansion_ for density in densities))
        self.class_scores_ = _joint_scores(self.priors_)
        self.n_vectors_ = self.expansion_.n_vectors
        return self

    def _need_two_samples(self, own: Samples, c: int) -> None:
        if own.n < 2 or bool(namespace(own.X).all(own.X == own.X[:1, :])):
            label = plain_label(to_numpy(self.classes_)[c])
            raise ValueError(
                f"DensityClassifier: class {label!r} has fewer than two different samples "
                "of positive weight, too few for a density; add samples, or drop the class."
            )

    def predict_joint_log_proba(self, X: Any) -> Array:
        r""":math:`\log(\pi_c\, \hat p_c(x))`, shape ``(n_samples, n_classes)``."""
        values = self._values(X)
        log_priors = namespace(self.priors_).log(self.priors_)
        return values + asarray_like(log_priors, values, dtype=values.dtype)


def _joint_scores(priors: Array) -> ClassScores:
    """Log densities plus log priors; for two classes their difference, the log odds of the second."""
    log_priors = namespace(priors).log(priors)
    if log_priors.shape[0] > 2:
        return ClassScores(offset=log_priors)
    odds = asarray_like([[-1.0], [1.0]], log_priors, dtype=log_priors.dtype)
    return ClassScores(odds, log_priors[1:] - log_priors[:1])
