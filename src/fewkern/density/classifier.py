"""DensityClassifier: Bayes' rule on one density per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from fewkern.arrays.namespace import Array, asarray_like, is_foreign, move_fields, namespace, to_numpy
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.progress import Step, progress
from fewkern.arrays.validation import CallbackSupportMixin, fit_context, plain_label
from fewkern.base import ScoringClassifier, check_labelled, check_priors, constraints, held_out_scores
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.density.base import DensityEstimator
from fewkern.density.forward import ForwardDensity
from fewkern.density.mixture import ClassMixtures
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate

# Folds of the held-out log densities that calibrate the probabilities.
_FOLDS = 3


class DensityClassifier(CallbackSupportMixin, ScoringClassifier, BaseEstimator):
    r"""Classify by Bayes' rule, :math:`P(c \mid x) \propto \pi_c\, \hat p_c(x)`, with a density for every class.

    Use it where the densities are needed too: to detect samples unlike all classes, to draw samples of a class, or to
    change the priors without another fit. Where only the label counts, use :class:`KernelClassifier` or
    :class:`ForwardKernelFisher`, which are fitted to the boundary; see Notes.

    In many dimensions, estimated densities differ by factors that the samples do not support. So the odds are raised to
    one power, chosen on held-out samples such that the mean probability equals the accuracy.

    Parameters
    ----------
    estimator : density of fewkern or None, default None
        Cloned and fitted for every class; ``ForwardDensity(scale="std")`` by default: a shape for every class takes
        several times as long.
    priors : array-like of shape (n_classes,) or None, default None
        Probabilities of the classes; by default their shares of the weights. With other ones the (calibrated) odds
        change by the ratio of the two.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    densities_ : tuple of fitted densities, one per class
        The ``expansion_`` of each of them is a :class:`KernelMixture`.
    priors_ : array of shape (n_classes,)
    class_scores_ : ClassScores
        From the log densities to scores: the logarithm of the odds for two classes, of prior times density for more.
    expansion_ : ClassMixtures
        The densities of all classes, as one function with an output for each.
    held_out_scores_ : HeldOutScores or None
        Of the classes of held-out samples, which ``predict_set`` needs.
    n_vectors_ : int
        Kernels of all densities together.
    n_features_in_ : int

    Notes
    -----
    Cost of the density, once per class on all samples and three times on two thirds of them. Every class needs at
    least two different samples, and two among any two thirds, else nothing is calibrated.

    Isotropic kernels describe a class well in few dimensions, or where its features are nearly independent: on banana
    and waveform the error is that of the other classifiers. Where features are dependent it is far higher: by 6 points
    on german and diabetis, by 9 on image. ``ForwardDensity(scale="whiten")``, a full covariance per class, helps on
    some such sets (image: 11.6% to 7.8%) and harms on others (waveform: 10.2% to 19.0%). The held-out likelihood does
    not tell which, so compare it as ``estimator`` by cross-validation.

    Examples
    --------
    >>> from fewkern import DensityClassifier
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400)
    >>> model = DensityClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.n_vectors_ < 40
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = constraints("priors", estimator=[DensityEstimator, None])

    def __init__(self, *, estimator: Any = None, priors: Any = None) -> None:
        self.estimator = estimator
        self.priors = priors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DensityClassifier:
        """Fit a density to every class.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        """
        samples = check_labelled(self, X, y, sample_weight).on_host()
        degenerate = _degenerate_class(samples)
        if degenerate is not None:
            label = plain_label(to_numpy(self.classes_)[degenerate])
            raise ValueError(
                f"DensityClassifier: class {label!r} has fewer than two different samples "
                "of positive weight, too few for a density; add samples, or drop the class."
            )
        codes: Array = samples.codes
        mass = np.bincount(codes, weights=samples.weights)
        shares = (mass / np.sum(mass)).astype(samples.weights.dtype)
        priors = check_priors(self, samples)
        base = ForwardDensity(scale="std") if self.estimator is None else self.estimator
        with progress(self, "fitting densities", 1 + _FOLDS) as step:
            self.densities_ = _class_densities(base, samples)
            step(1)
            held_out = _held_out(base, samples, step)
        self.expansion_ = _mixtures(self.densities_)
        self.n_vectors_ = self.expansion_.n_vectors
        self.priors_ = shares if priors is None else priors
        scores = _joint_scores(shares)
        if held_out is not None:
            scores = calibrate(scores, held_out, long_tails=True)
        ratio = None if priors is None else priors / shares
        self.class_scores_ = scores if ratio is None else scores.with_priors(ratio)
        self.held_out_scores_ = None
        if held_out is not None:
            self.held_out_scores_ = held_out_scores(self.class_scores_, held_out.values, held_out.samples, ratio)
        if is_foreign(X):
            self.expansion_, self.class_scores_ = self.expansion_.like(X), move_fields(self.class_scores_, X)
            self.priors_ = asarray_like(self.priors_, X)
            for density, mixture in zip(self.densities_, self.expansion_.mixtures):
                density._keep(mixture)
        return self

    @rowwise
    def predict_joint_log_proba(self, X: Any) -> Array:
        r""":math:`\log(\pi_c\, \hat p_c(x))`, shape ``(n_samples, n_classes)``: before calibration."""
        values = self._values(X)
        log_priors = namespace(self.priors_).log(self.priors_)
        return values + asarray_like(log_priors, values, dtype=values.dtype)


def _classes(samples: Samples) -> list[Samples]:
    """The samples of every class."""
    return [samples.take(np.flatnonzero(samples.codes == c)) for c in range(samples.n_classes)]


def _degenerate_class(samples: Samples) -> int | None:
    """The first class without two different samples."""
    for c, own in enumerate(_classes(samples)):
        if own.n < 2 or np.all(own.X == own.X[0]):
            return c
    return None


def _class_densities(base: Any, samples: Samples) -> tuple[Any, ...]:
    return tuple(clone(base).fit(own.X, sample_weight=own.weights) for own in _classes(samples))


def _mixtures(densities: tuple[Any, ...]) -> ClassMixtures:
    return ClassMixtures(tuple(density.expansion_ for density in densities))


def _held_out(base: Any, samples: Samples, step: Step) -> HeldOut | None:
    """Log densities of samples by densities that did not see them; None where the classes are too small for that.

    The densities of all classes lack the same part: a density of fewer samples is lower, for any class.
    """
    turns, parts, values = _turns(samples), [], []
    for k in range(_FOLDS):
        part, rest = np.flatnonzero(turns == k), samples.take(np.flatnonzero(turns != k))
        if len(part) == 0 or _degenerate_class(rest) is not None:
            return None
        parts.append(part)
        values.append(_mixtures(_class_densities(base, rest))(samples.X[part]))
        step(k + 2)
    return HeldOut(np.concatenate(values), samples.take(np.concatenate(parts)))


def _turns(samples: Samples) -> Array:
    """A fold for every sample: those of a class are dealt out in turn."""
    turns = np.empty(samples.n, dtype=np.int64)
    for c in range(samples.n_classes):
        own = samples.codes == c
        turns[own] = np.arange(np.sum(own)) % _FOLDS
    return turns


def _joint_scores(priors: Array) -> ClassScores:
    """Log densities plus log priors; for two classes their difference, the log odds of the second."""
    log_priors = np.log(priors)
    if len(log_priors) > 2:
        return ClassScores(offset=log_priors)
    return ClassScores(np.array([[-1.0], [1.0]], dtype=priors.dtype), log_priors[1:] - log_priors[:1])
