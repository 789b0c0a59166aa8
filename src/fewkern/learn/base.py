"""What both estimators of the learner share: their parameters, explanations, and methods to go on learning."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.validation import CallbackSupportMixin, StrOptions
from fewkern.base import CONSTRAINTS, constraints, explain, kept_importances
from fewkern.core.components import sees_components
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.core.path import LENIENCY
from fewkern.core.samples import Samples
from fewkern.learn.batches import Basis, Sums, best_ridge, rows_among, same_basis, sums_before
from fewkern.learn.fitting import Fitted, fit_population, policy_of
from fewkern.select.base import novelty, novelty_pvalue, novelty_threshold

PARAMETERS = constraints(
    "max_vectors",
    "random_state",
    "verbose",
    n_vectors=CONSTRAINTS["max_vectors"],
    prefer=[StrOptions(set(LENIENCY))],
    categorical_features=["array-like", StrOptions({"from_dtype"}), None],
)
"""Parameters that both estimators of the learner have, and what they accept."""


def _same_levels(one: Any, other: Any) -> bool:
    """Whether two models know the same levels of the same columns."""
    pairs = zip(one or (), other or (), strict=False)
    return (one is None) == (other is None) and all(
        a is b or (a is not None and b is not None and a.tolist() == b.tolist()) for a, b in pairs
    )


class LearningEstimator(CallbackSupportMixin, BaseEstimator):
    """What both estimators of the learner have: their parameters, explanations, novelty, and ways to go on learning."""

    feature_importances_ = kept_importances
    explain = explain
    novelty, novelty_pvalue, novelty_threshold = novelty, novelty_pvalue, novelty_threshold
    _sums: Any
    """:class:`Sums` after ``partial_fit``, None after ``fit``."""
    _fitted_to: Any
    """The same after ``fit``: sums for ``partial_fit`` are not part of the model."""
    _transient = ("_fitted_to",)

    def __init__(
        self,
        *,
        n_vectors: Any = None,
        max_vectors: Any = None,
        prefer: str = "balanced",
        categorical_features: Any = "from_dtype",
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.prefer = prefer
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.verbose = verbose

    def _keep_fit(self, fitted: Fitted, error: float, factor: float = 1.0) -> None:
        """Assign the attributes of a fit. Files leave out its sums, for ``partial_fit``: they may outgrow the model."""
        self._keep_choices(fitted)
        self.held_out_error_ = error
        self._sums, self._fitted_to = None, fitted.sums.judged(fitted.held_out.weight, error, factor)
        self._keep_function(fitted.sums, fitted.expansion)

    def _keep_batch(self, sums: Sums) -> None:
        """Assign the attributes of a model after a batch."""
        self._sums, self._fitted_to = sums, None
        self.held_out_error_ = sums.mean_error
        self._keep_function(sums, sums.expansion())

    def _keep_choices(self, fitted: Fitted) -> None:
        self.path_, self.origin_, self.novelty_ = fitted.path, fitted.origin, fitted.novelty
        self.background_, self.n_copies_ = fitted.background, fitted.copies

    def _keep_function(self, sums: Sums, expansion: GaussianExpansion | KernelExpansion) -> None:
        self.alpha_, self.basis_, self.expansion_ = sums.alpha, sums.basis, expansion
        self.n_vectors_, self.vectors_ = expansion.n_vectors, expansion.vectors
        self.indices_ = expansion.indices

    def _learn_batch(self, samples: Samples, before: Sums | None, basis: Basis | None) -> tuple[Sums, Samples]:
        """The sums after a batch, and its rows as these see them.

        Without any ``before`` the batch chooses the vectors, unless a ``basis`` is given.
        """
        if before is not None:
            if basis is not None and not same_basis(basis, before.basis):
                raise ValueError(
                    f"{type(self).__name__}: the vectors stay those of the first batch; basis= is another one. Begin "
                    "a new model, or leave basis out."
                )
            self._check_outputs(before, samples)
            return before.with_batch(samples), samples
        if basis is not None:
            self.novelty_, self.path_, self.background_, self.origin_ = None, None, None, "given"
            self.n_copies_ = 0
            return Sums.of(basis, best_ridge(basis, samples, policy_of(self)), samples), samples
        fitted = fit_population(self, samples)
        self._keep_choices(fitted)
        return fitted.sums, fitted.rows or samples

    def _check_outputs(self, sums: Sums, samples: Samples) -> None:
        """Refuse rows with more or fewer targets than those before."""
        known = int(sums.statistics.cross.shape[1])
        if samples.n_outputs != known:
            raise ValueError(
                f"{type(self).__name__}: y has {samples.n_outputs} output(s), but the first batch had {known}; pass "
                "as many in every batch, or begin a new model."
            )

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows of the same kind as those that the model has learned from."""
        raise NotImplementedError  # classifiers check labels, regressors numbers

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again that the model has learned from, by ``fit`` or ``partial_fit``.

        The coefficients become those of a fit to the other rows on the same vectors with the same ridge: the rows are
        subtracted from the sums that the model keeps. No other row is needed.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None
            The weights that they had.

        Returns
        -------
        self

        Notes
        -----
        Some traces of the rows remain: vectors, metric and ridge, which all rows chose, also where vectors were moved;
        ``held_out_error_``, intervals, probabilities, sets, ``novelty_`` and importances, which stay as they were.
        Where a row is itself one of the samples that the model keeps, a warning says so. If nothing may remain, fit a
        new model to the other rows.

        Sums do not show which rows they come from. Rows that were never learned are refused where no samples could have
        the sums that are left; otherwise their negative is learned.

        Coefficients of logistic regression (``loss_`` of a classifier) do not come from sums, and are refused. Those of
        ``partial_fit`` do.

        Examples
        --------
        >>> from fewkern import KernelRegressor
        >>> from fewkern.datasets import make_sinc
        >>> X, y = make_sinc(200, noise=0.1)
        >>> model = KernelRegressor().partial_fit(X, y)
        >>> before = model.predict(X)
        >>> X_off, y_off = X[::4] + 0.01, y[::4] + 10.0  # a sensor that was off
        >>> model = model.partial_fit(X_off, y_off)
        >>> bool(abs(model.predict(X) - before).max() > 1)
        True
        >>> bool(abs(model.forget(X_off, y_off).predict(X) - before).max() < 1e-8)
        True
        """
        check_is_fitted(self)
        samples, sums, name = self._batch(X, y, sample_weight), sums_before(self), type(self).__name__
        assert sums is not None
        if sees_components(sums.basis):
            raise ValueError(
                f"{name}.forget: this model sees components of sparse rows, and a regression on these rows is among "
                "them, which sums do not hold; fit a new model to the other rows."
            )
        self._check_outputs(sums, samples)
        known = sums.statistics.count
        if samples.n >= known:
            raise ValueError(
                f"{name}.forget: got {samples.n} rows, but the model has learned from {known}, and one must be left; "
                "fit a new model to what should stay."
            )
        left = sums.without(samples)
        if left is None:
            raise ValueError(
                f"{name}.forget: no rows could have the sums that would be left, so not all of these rows (with these "
                "targets and weights) are among those that the model has learned from; nothing was changed."
            )
        kept = self._kept_among(samples.X)
        self._keep_batch(left)
        if kept.any():
            warnings.warn(
                f"{name}.forget: {int(kept.sum())} of these rows are among the samples that the model keeps (vectors_, "
                "or those of novelty_), so it still contains them. Fit a new model without them if they must not be in "
                "it.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _kept_among(self, X: Any) -> Any:
        """Which rows of ``X`` the model keeps, as vectors or for the novelty; both are compared in prepared columns."""
        basis, novelty = self.basis_, self.novelty_
        kept = rows_among(basis.prepared(X) if isinstance(basis, GaussianBasis) else X, basis.vectors)
        if novelty is not None:
            kept |= rows_among(X if novelty.preparation is None else novelty.preparation(X), novelty.basis.vectors)
        return kept

    def merge(self, other: Self) -> Self:
        """A model that has learned from the batches of both; they must have the same vectors and classes.

        The ridge is that of this model: merging predicts what ``partial_fit`` of the other's batches would.

        Rows that both have learned count twice: those of a fit that both began with, for example. :meth:`forget` takes
        them out once.
        """
        name = type(self).__name__
        for model in (self, other):
            check_is_fitted(model)
        if type(self) is not type(other):
            raise TypeError(f"{name}: only another {name} can be merged with it, got {type(other).__name__}.")
        mine, theirs = sums_before(self), sums_before(other)
        assert mine is not None
        assert theirs is not None
        if not same_basis(mine.basis, theirs.basis):
            raise ValueError(
                f"{name}: the models have different vectors; fit both by partial_fit with the same basis=."
            )
        if not _same_levels(self.categories_, other.categories_):
            raise ValueError(
                f"{name}: the models know other levels of their categories; let both learn the same first batch, and "
                "then other ones."
            )
        if list(getattr(self, "classes_", ())) != list(getattr(other, "classes_", ())):
            raise ValueError(
                f"{name}: the models know different classes; give both the same classes= in the first batch."
            )
        model = copy(self)
        model._keep_batch(mine + theirs)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.array_api_support = True
        return tags
