"""FVS-LR: regression and classification on a few chosen samples, with nothing to tune."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import Array, device, float_dtype, namespace
from fewkern.backend.validation import (
    StrOptions,
    encode_labels,
    fit_context,
    labels_from_codes,
    validate_class_weights,
    validate_targets,
    validate_weights,
)
from fewkern.core.scores import ClassScores
from fewkern.vectors.automatic import AUTOMATIC_CONSTRAINTS, AutomaticBasis
from fewkern.vectors.calibration import fit_temperature, softmax

__all__ = ["FeatureVectorClassifier", "FeatureVectorRegressor"]


class FeatureVectorRegressor(RegressorMixin, AutomaticBasis):
    r"""Regression on a few chosen samples (FVS-LR), with width, number of vectors and ridge chosen by leave-one-out.

    .. math:: \min_{A, \beta} \sum_i w_i \| y_i - \beta - A^T z_i \|^2 + \text{ridge}\, \|A\|_F^2 \qquad (11)

    with :math:`z_i` the features of sample :math:`i` on the chosen vectors. With all samples chosen this is kernel
    ridge regression with a free constant.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times its
        value, searched by leave-one-out; a width given as a number is kept.
    max_vectors : int or "auto", default "auto"
        Budget of samples. "auto" looks at up to 100 vectors (at most half of the samples) and goes on while that
        pays: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at most.
    ridge : float or "auto", default "auto"
        Penalty on the squared length of the solution in feature space.
    prefer : {"balanced", "accurate", "sparse", "all"}, default "balanced"
        The smallest model within half a standard error ("sparse": one) of the least leave-one-out error; "accurate" is
        the one of least error, "all" takes every vector of the budget.
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
        The fitted function.
    vectors_, indices_, n_vectors_
        The samples that were kept, their rows in ``X``, their number (with those of the centre, if any).
    kernel_ : Kernel
    ridge_ : float
    fitness_ : array
        Global fitness after every vector.
    stop_ : str
        "size" if leave-one-out preferred a smaller model than the selection had to offer; else why the selection ended:
        "limit" (the budget) or "rank".
    trace_ : Trace
        Leave-one-out error for every width, ridge and number of vectors.
    loo_error_ : float
        Mean squared leave-one-out error of the chosen model, summed over the outputs.
    basis_ : KernelBasis

    Notes
    -----
    For every width and ridge the errors of all sizes come from one orthogonal factorisation: ``n L^2`` flops. Above
    10,000 samples the width is searched on 10,000 of them. Memory: one ``n L`` matrix per width.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003), sec. 4.

    Examples
    --------
    >>> from fewkern import FeatureVectorRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(200, noise=0.1)
    >>> model = FeatureVectorRegressor().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 20
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = {**AUTOMATIC_CONSTRAINTS}

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        max_vectors: Any = "auto",
        ridge: Any = "auto",
        prefer: str = "balanced",
        rule: str = "gain",
        centre: Any = "auto",
        tol: float | None = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.ridge = ridge
        self.prefer = prefer
        self.rule = rule
        self.centre = centre
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FeatureVectorRegressor:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
        """
        X = self._samples(X, reset=True, minimum=2)
        Y, self._single = validate_targets(self, X, y)
        self._fit_linear(X, Y, validate_weights(self, X, sample_weight))
        self.loo_error_ = float(self.trace_.error[self.trace_.chosen])
        return self

    def predict(self, X: Any) -> Array:
        """Values of shape ``(n_samples,)`` or ``(n_samples, n_outputs)``."""
        check_is_fitted(self)
        values = self.expansion_(self._samples(X, reset=False))
        return values[:, 0] if self._single else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class FeatureVectorClassifier(ClassifierMixin, AutomaticBasis):
    r"""Classification on a few chosen samples (FVS-LR on class indicators), with nothing to tune.

    Regression (11) on one 0/1 indicator per class; a sample goes to the class of largest value. The values estimate the
    posterior probabilities; ``predict_proba`` sharpens them by one number fitted to the leave-one-out values.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times its
        value, searched by leave-one-out; a width given as a number is kept.
    max_vectors : int or "auto", default "auto"
        Budget of samples. "auto" looks at up to 100 vectors (at most half of the samples) and goes on while that
        pays: to a tenth of the samples (``prefer="accurate"``: half of them), and 1000 at most.
    ridge : float or "auto", default "auto"
        Penalty on the squared length of the solution in feature space.
    prefer : {"balanced", "accurate", "sparse", "all"}, default "balanced"
        The smallest model within half a standard error ("sparse": one) of the least leave-one-out error; "accurate" is
        the one of least error, "all" takes every vector of the budget.
    rule : {"gain", "greedy", "random", "uniform"}, default "gain"
        How vectors are chosen, see :class:`FeatureVectorSelector`.
    centre : "auto", bool or int, default "auto"
        See :class:`FeatureVectorSelector`.
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class.
    tol : float or None, default None
        Relative residual at which a sample depends on the chosen ones (1e-10, in float32 1e-5).
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    expansion_ : KernelExpansion
        One output for two classes (positive: the second class), one per class otherwise.
    vectors_, indices_, n_vectors_
        The samples that were kept, their rows in ``X``, their number (with those of the centre, if any).
    kernel_ : Kernel
    ridge_ : float
    fitness_ : array
    stop_ : str
    trace_ : Trace
        Leave-one-out error for every width, ridge and number of vectors.
    loo_error_ : float
        Share of the samples that the model fitted without them gets wrong (weighted). It is a little optimistic: the
        settings were chosen on the same samples.
    temperature_ : float
        Factor on the values in ``predict_proba``.
    basis_ : KernelBasis

    Notes
    -----
    See :class:`FeatureVectorRegressor` for the cost. The settings are chosen by the squared leave-one-out error, not by
    the leave-one-out error rate, whose minimum is far too optimistic.

    References
    ----------
    G. Baudat and F. Anouar, "Feature vector selection and projection using kernels", Neurocomputing 55 (2003), sec. 4.

    Examples
    --------
    >>> from fewkern import FeatureVectorClassifier
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(400)
    >>> model = FeatureVectorClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 40
    (True, True)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **AUTOMATIC_CONSTRAINTS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        max_vectors: Any = "auto",
        ridge: Any = "auto",
        prefer: str = "balanced",
        rule: str = "gain",
        centre: Any = "auto",
        class_weight: Any = None,
        tol: float | None = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.max_vectors = max_vectors
        self.ridge = ridge
        self.prefer = prefer
        self.rule = rule
        self.centre = centre
        self.class_weight = class_weight
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FeatureVectorClassifier:
        """Fit.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        """
        X = self._samples(X, reset=True, minimum=2)
        self.classes_, codes = encode_labels(self, X, y)
        weights = validate_class_weights(self, X, codes, sample_weight)
        Y = indicators(codes, int(self.classes_.shape[0]), X)
        solution = self._fit_linear(X, Y, weights)
        held_out = class_values(solution.held_out)
        self.temperature_ = fit_temperature(held_out, codes, weights)
        xp = namespace(held_out)
        wrong = xp.astype(xp.argmax(held_out, axis=1) != codes, held_out.dtype)
        self.loo_error_ = float(xp.mean(wrong) if weights is None else (weights @ wrong) / xp.sum(weights))
        return self

    def decision_function(self, X: Any) -> Array:
        """Values of shape ``(n_samples,)`` for two classes, ``(n_samples, n_classes)`` otherwise."""
        check_is_fitted(self)
        values = self.expansion_(self._samples(X, reset=False))
        return values[:, 0] if int(self.classes_.shape[0]) == 2 else values

    def predict(self, X: Any) -> Array:
        """Class of every sample."""
        values = class_values(self._values(X))
        return labels_from_codes(self.classes_, namespace(values).argmax(values, axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``."""
        values = self._values(X)
        return softmax(self.temperature_ * class_values(values))

    def _class_scores(self) -> ClassScores:
        return ClassScores(factor=float(self.temperature_))

    def _values(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.expansion_(self._samples(X, reset=False))


def indicators(codes: Array, n_classes: int, X: Array) -> Array:
    """Targets: -1/+1 in one column for two classes, 0/1 indicators otherwise."""
    xp, dtype = namespace(codes), float_dtype(X)
    if n_classes == 2:
        return xp.astype(2 * codes - 1, dtype)[:, None]
    return xp.astype(codes[:, None] == xp.arange(n_classes, device=device(codes))[None, :], dtype)


def class_values(values: Array) -> Array:
    """One column per class: a single column ``f`` of -1/+1 becomes ``(-f, f) / 2``."""
    if values.shape[1] > 1:
        return values
    return namespace(values).concat([-values, values], axis=1) / 2
