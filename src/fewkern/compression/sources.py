"""From a fitted model, ours or scikit-learn's, to the function that it computes: one small function per kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product, Sum, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import asarray_like, is_sparse, to_numpy
from fewkern.backend.storable import stored_classes
from fewkern.compression.distillation import Teacher
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import Gaussian
from fewkern.core.scores import ClassScores

__all__ = ["check_fitted", "teacher"]


def teacher(model: Any) -> Teacher:
    """The function that a fitted model computes, as a sum of Gaussian kernels."""
    name = type(model).__name__
    read = next((read for cls, read in _SOURCES.items() if isinstance(model, cls)), None)
    if read is None and isinstance(model, BaseEstimator) and name in stored_classes():
        read = _own
    if read is None:
        raise TypeError(
            f"compress: cannot read a {name}; expected a fitted estimator of fewkern, a pipeline that ends in one, or "
            f"one of scikit-learn's {', '.join(cls.__name__ for cls in _SOURCES)}."
        )
    check_fitted(model)
    found = read(model)
    if is_sparse(found.expansion.vectors):
        raise ValueError(
            f"compress: this {name} was fitted to sparse samples, and moved vectors would not be sparse; fit it to a "
            "dense array."
        )
    return found


def check_fitted(model: Any, attribute: str | None = None) -> None:
    """Raise a NotFittedError, in the name of ``compress``, unless the model is fitted."""
    try:
        check_is_fitted(model, attribute)
    except NotFittedError:
        raise NotFittedError(f"compress: this {type(model).__name__} is not fitted; call fit first.") from None


def _other_kernel(model: Any, kernel: Any) -> ValueError:
    return ValueError(
        f"compress: this {type(model).__name__} has the kernel {kernel!r}, but only sums of Gaussian (rbf) kernels can "
        "be compressed; fit with that kernel."
    )


def _gaussian(model: Any, gamma: float) -> Gaussian:
    """The Gaussian ``exp(-gamma |x - y|^2)``."""
    if model.kernel != "rbf":
        raise _other_kernel(model, model.kernel)
    return Gaussian(width=1.0 / math.sqrt(2.0 * float(gamma)))


def _columns(coef: Any) -> Any:
    """Coefficients as a matrix, one column per output."""
    coef = np.asarray(coef, dtype=float)
    return coef[:, None] if coef.ndim == 1 else coef


def _machine(model: Any) -> KernelExpansion:
    """The values of a support vector machine with one output."""
    kernel = _gaussian(model, getattr(model, "_gamma", 1.0))
    coef, vectors = model.dual_coef_, model.support_vectors_
    if is_sparse(coef):
        coef = coef.toarray()
    return KernelExpansion(kernel, vectors, _columns(coef).T, np.asarray(model.intercept_, dtype=float))


def _support_vectors(model: Any) -> Teacher:
    return Teacher(_machine(model))


def _detector(model: Any) -> Teacher:
    return Teacher(_machine(model), ClassScores())


def _classifier(model: Any) -> Teacher:
    """One value for two classes; for more, one for every pair of classes, which vote."""
    machine, k = _machine(model), len(model.classes_)
    if k == 2:
        return Teacher(machine, ClassScores())
    # column j - 1 (or j) of a vector of class i belongs to the pair with class j above (or below) i
    owner = np.repeat(np.arange(k), model.n_support_)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    coef = np.stack(
        [np.where(owner == i, machine.coef[:, j - 1], np.where(owner == j, machine.coef[:, i], 0.0)) for i, j in pairs],
        axis=1,
    )
    return Teacher(replace(machine, coef=coef), ClassScores(), voting=k)


def _kernel_ridge(model: KernelRidge) -> Teacher:
    kernel = _gaussian(model, 1.0 / model.n_features_in_ if model.gamma is None else model.gamma)
    coef = _columns(model.dual_coef_)
    return Teacher(KernelExpansion(kernel, model.X_fit_, coef, np.zeros(coef.shape[1])))


def _kernel_pca(model: KernelPCA) -> Teacher:
    """Components of the centered images; their coefficients add up to zero, so the center is only a constant."""
    kernel = _gaussian(model, model.gamma_)
    kept = model.eigenvalues_ > 0
    coef = np.zeros_like(model.eigenvectors_)
    coef[:, kept] = model.eigenvectors_[:, kept] / np.sqrt(model.eigenvalues_[kept])
    free = KernelExpansion(kernel, model.X_fit_, coef, np.zeros(coef.shape[1]))
    return Teacher(replace(free, offset=-free(model.X_fit_).mean(axis=0)))


def _gaussian_process(model: GaussianProcessRegressor) -> Teacher:
    """The mean of the process."""
    check_fitted(model, "alpha_")  # a process gives predictions before it is fitted
    factor, width = _covariance(model, model.kernel_)
    if width is None:
        raise _other_kernel(model, model.kernel_)
    # the targets were standardized with normalize_y
    coef = factor * _columns(model.alpha_) * np.atleast_1d(model._y_train_std)
    offset = np.broadcast_to(np.asarray(model._y_train_mean, dtype=float), coef.shape[1:]).copy()
    return Teacher(KernelExpansion(Gaussian(width), model.X_train_, coef, offset))


def _process_classifier(model: GaussianProcessClassifier) -> Teacher:
    """The probabilities of the process; it starts from the means of the latent functions, one per class.

    Every class has learned a width of its own. An expansion has one: their geometric mean.
    """
    check_fitted(model, "base_estimator_")
    several = model.n_classes_ > 2
    if several and model.multi_class != "one_vs_rest":
        raise ValueError(
            f"compress: this GaussianProcessClassifier has multi_class={model.multi_class!r}, whose pairs of classes "
            'give no probabilities; fit with "one_vs_rest".'
        )
    processes = model.base_estimator_.estimators_ if several else [model.base_estimator_]
    found = [_covariance(model, process.kernel_) for process in processes]
    if any(width is None for _, width in found):
        raise _other_kernel(model, processes[0].kernel_)
    width = np.exp(np.mean([np.log(width) for _, width in found], axis=0))
    coef = np.stack([c * (p.y_train_ - p.pi_) for (c, _), p in zip(found, processes)], axis=1)
    kernel = Gaussian(width if width.ndim else float(width))
    start = KernelExpansion(kernel, processes[0].X_train_, coef, np.zeros(len(processes)))
    return Teacher(start, ClassScores(), probabilities=partial(_probabilities, model.base_estimator_))


def _probabilities(process: Any, X: Any) -> Any:
    return asarray_like(process.predict_proba(to_numpy(X)), X, dtype=X.dtype)


def _covariance(model: Any, kernel: Any) -> tuple[float, Any]:
    """Factor and width of a Gaussian, a constant, their product, and either with white noise added."""
    if type(kernel) is RBF:  # Matern is a subclass
        return 1.0, kernel.length_scale if kernel.anisotropic else float(kernel.length_scale)
    if isinstance(kernel, ConstantKernel):
        return float(kernel.constant_value), None
    if isinstance(kernel, Product):
        (a, one), (b, other) = (_covariance(model, part) for part in (kernel.k1, kernel.k2))
        if one is None or other is None:
            return a * b, one if other is None else other
    if isinstance(kernel, Sum):
        # noise is only of a sample with itself: a prediction does not see it
        rest = [part for part in (kernel.k1, kernel.k2) if not isinstance(part, WhiteKernel)]
        if len(rest) == 1:
            return _covariance(model, rest[0])
    raise _other_kernel(model, kernel)


def _own(model: Any) -> Teacher:
    expansion = getattr(model, "expansion_", None)
    if not isinstance(expansion, KernelExpansion):
        raise TypeError(
            f"compress: a {type(model).__name__} does not compute a sum of kernels with free coefficients, which is "
            "what can be compressed; a density takes fewer kernels by max_vectors, a selector by n_vectors."
        )
    if not isinstance(expansion.kernel, Gaussian):
        raise _other_kernel(model, expansion.kernel)
    return Teacher(expansion, getattr(model, "class_scores_", None))


_SOURCES: dict[type, Callable[[Any], Teacher]] = {
    SVC: _classifier,
    NuSVC: _classifier,
    SVR: _support_vectors,
    NuSVR: _support_vectors,
    OneClassSVM: _detector,
    KernelRidge: _kernel_ridge,
    KernelPCA: _kernel_pca,
    GaussianProcessRegressor: _gaussian_process,
    GaussianProcessClassifier: _process_classifier,
}
