"""What both estimators of the learner share: their parameters, the fit, and methods to go on learning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.columns import counts_of
from fewkern.arrays.namespace import asarray_like, device, is_sparse, on_host, to_numpy
from fewkern.arrays.neighbors import weighted_centers
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import seed_from
from fewkern.arrays.validation import CallbackSupportMixin, StrOptions
from fewkern.base import CONSTRAINTS, BudgetWarning, constraints, explain, kept_importances
from fewkern.core.components import ComponentPreparation, sees_components
from fewkern.core.conformal import Novelty
from fewkern.core.expansion import KernelExpansion
from fewkern.core.explanation import Background
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion, Preparation
from fewkern.core.kernels import Gaussian, Kernel
from fewkern.core.path import LENIENCY, Path
from fewkern.core.radial import feature_units
from fewkern.core.samples import Population, Samples, with_targets
from fewkern.core.statistics import feature_statistics
from fewkern.learn.batches import Basis, Sums, best_ridge, rows_among, same_basis, sums_before
from fewkern.learn.compare import Kind
from fewkern.learn.components import Components, find_components, is_wide
from fewkern.learn.copies import without_copies
from fewkern.learn.learner import Learned, Settings, learn, preparation_of
from fewkern.learn.policy import POLICY, Policy
from fewkern.learn.preparation import with_open_ends
from fewkern.select.base import novelty, novelty_pvalue, novelty_threshold
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import LEAST_VECTORS, MOST_NOVELTY_ROWS, novelty_of

PARAMETERS = constraints(
    "max_vectors",
    "random_state",
    "verbose",
    n_vectors=CONSTRAINTS["max_vectors"],
    prefer=[StrOptions(set(LENIENCY))],
    categorical_features=["array-like", StrOptions({"from_dtype"}), None],
)
"""Parameters that both estimators of the learner have, and what they accept."""

# Share of the rows that are copies of others, above which a warning says so.
_MANY_COPIES = 0.05
# More vectors pay if the last ones lowered the error by more than this many standard errors of the fall.
_CLEAR = 2.0


@dataclass(frozen=True)
class Fitted:
    """The function of an estimator, and its predictions for rows that it has not seen."""

    expansion: GaussianExpansion | KernelExpansion
    sums: Sums
    held_out: HeldOut
    """Predictions at settings that other rows chose."""
    novelty: Novelty | None
    path: Path | None
    origin: str
    background: Background | None
    """What explanations compare with."""
    learned: Learned
    loss: str = "squared"
    """What the coefficients minimize."""
    copies: int = 0
    """Rows of the sample that are copies of others."""
    rows: Samples | None = None
    """All rows, where the function sees components: as regressions see them that were fitted to other rows."""

    @property
    def basis(self) -> Basis:
        """Vectors and features, where the rows are."""
        return self.sums.basis

    def behind(self, matrix: np.ndarray[Any, Any]) -> Fitted:
        """The same function of all columns, of which the ``matrix`` makes the components that it sees."""

        def moved(value: Any) -> Any:
            return replace(value, preparation=ComponentPreparation.of(value.preparation, matrix))

        assert isinstance(self.expansion, GaussianExpansion)
        expansion = replace(self.expansion, basis=moved(self.expansion.basis))
        sums = replace(self.sums, basis=moved(self.sums.basis))
        return replace(self, expansion=expansion, sums=sums, novelty=moved(self.novelty), background=None)


def policy_of(estimator: Any) -> Policy:
    """The numbers that steer the fits of an estimator."""
    return getattr(estimator, "_policy", POLICY)


def fit_population(estimator: Any, population: Population) -> Fitted:
    """Choose vectors on a sample of the rows, and take the coefficients from all."""
    samples, components = with_targets(population.sample), None
    policy = policy_of(estimator).sparse
    if is_sparse(samples.X) and is_wide(samples.X, samples.n_outputs, policy):
        assert isinstance(population, Samples)  # collections are dense
        components = find_components(with_targets(population), policy)
        population, samples = components.samples, components.samples.sample
    fitted = _fit_dense(estimator, population, samples, components)
    if components is not None:
        fitted = replace(fitted.behind(components.matrix), rows=components.samples)
    _warn_open_end(estimator, fitted.learned, samples.n)
    if fitted.copies > _MANY_COPIES * samples.n:
        warnings.warn(
            f"{type(estimator).__name__}: {fitted.copies} of {samples.n} rows are copies of others, equal in all "
            "columns and in y. They count as one row with the sum of their weights; n_copies_ is their number. Drop "
            "them, and pass sample_weight if they mean one.",
            UserWarning,
            stacklevel=4,
        )
    return fitted


def _fit_dense(
    estimator: Any, population: Population, samples: Samples, components: Components | None = None
) -> Fitted:
    """The learner, on at most ``search_rows`` rows; ``components`` are what they hold, if not columns.

    It runs on the host, in double precision, wherever the rows are: the search is small, and its many steps would make
    another model of every rounding error. For the same reason it has one thread of BLAS: two took twice as long, even
    on 5,000 rows. Sums over all rows and predictions are made where the rows are.
    """
    policy = policy_of(estimator)
    here = samples.on_host()
    if is_sparse(here.X):
        here = replace(here, X=here.X.toarray())
    distinct = without_copies(here, policy.copies)
    some = distinct.drawn(policy.rows.search)
    settings = Settings(
        estimator.n_vectors,
        estimator.max_vectors,
        estimator.prefer,
        seed_from(estimator.random_state),
        policy,
        counts_of(estimator),
    )
    with one_thread():
        with progress(estimator, "growing and moving vectors, by folds", None) as step:
            found = _learned(some, settings, step, components, _beyond(population, samples, policy))
        basis = found.basis.in_precision(some.weights.dtype)
        if found.held_out is None:
            held_out = Sums.of(basis, found.ridge, found.samples).left_out(found.samples)
        else:
            place, values = found.held_out
            held_out = HeldOut(values.astype(some.weights.dtype), found.samples.take(place))
        novelty = _novelty(found, basis, settings)
        background = Background(*weighted_centers(basis.prepared(found.samples.X), found.samples.weights))
    sums = _sums(population, basis.like(samples.X), found.ridge)
    fitted = Fitted(sums.expansion(), sums, held_out, novelty, _path(found), str(found.key[0]), background, found)
    return replace(fitted, copies=samples.n - distinct.n)


def _beyond(population: Population, samples: Samples, policy: Policy) -> Samples | None:
    """Rows of an accelerator beside the ``samples`` of them; none where these are few, and the host is as fast."""
    if not isinstance(population, Samples) or on_host(population.X) or samples.n <= policy.rows.still:
        return None
    if population.groups is not None:
        return None
    rest = np.setdiff1d(to_numpy(population.drawn(policy.rows.device).rows), to_numpy(samples.rows))
    place = np.searchsorted(to_numpy(population.rows), rest)
    return with_targets(population.take(asarray_like(place, population.rows)))


def _learned(
    some: Samples,
    settings: Settings,
    step: Callable[[int], None],
    components: Components | None,
    beyond: Samples | None,
) -> Learned:
    """What the learner finds; on the host alone where the memory of a device is too small."""
    try:
        return learn(some, settings, step, components, beyond)
    except RuntimeError as error:
        if beyond is None or type(error).__name__ != "OutOfMemoryError":
            raise
        warnings.warn(
            f"The memory of {device(beyond.X)} is too small for {beyond.n + some.n} rows; vectors were moved on the "
            f"host, on {some.n} of them. Pass fewer rows, or free memory.",
            UserWarning,
            stacklevel=6,
        )
    return learn(some, settings, step, components)


def _sums(population: Population, basis: Basis, alpha: float) -> Sums:
    return Sums(basis, alpha, feature_statistics(population, basis))


def _novelty(found: Learned, basis: GaussianBasis, settings: Settings) -> Novelty:
    """Samples that stand for all, in prepared columns; moved vectors may ignore a column, these do not."""

    policy = settings.policy.novelty

    def prepared(rest: Samples) -> tuple[Preparation, Any]:
        columns = with_open_ends(preparation_of(rest, settings), rest.X.astype(np.float64), policy.reach)
        return columns, columns(rest.X)

    def geometry(rest: Samples) -> tuple[Kernel, Preparation]:
        # the median distance, in units of the columns, hardly depends on a tenth of the rows
        columns, T = prepared(rest)
        if T.shape[1] != len(units):  # a category has fewer levels among them
            return Gaussian(unit="range").resolve(T), columns
        return replace(kernel, length_scale=kernel.length_scale * (feature_units(T, "range") / units)), columns

    some = found.samples.take(np.arange(min(found.samples.n, MOST_NOVELTY_ROWS)))  # in an order that looks random
    preparation, T = prepared(some)
    kernel, units = Gaussian(unit="range").resolve(T), feature_units(T, "range")
    samples = replace(some, X=T)
    count = min(max(LEAST_VECTORS, basis.n_vectors), policy.most_vectors)
    selection = choose_basis(samples, kernel, SelectionRule(seed=0), count)
    novelty = novelty_of(some, selection, selection.basis(), geometry)
    return replace(novelty, preparation=preparation)


def _path(found: Learned) -> Path | None:
    """Held-out error of every kind and size that was compared."""
    if found.comparison is None:
        return None
    errors, weights = found.comparison.errors, found.comparison.weights
    kinds, sizes = list(Kind), sorted({size for _, size in errors})
    shape = (len(kinds), len(sizes))
    error, spread, share = np.full(shape, np.inf), np.full(shape, np.inf), weights / weights.sum()
    for (kind, size), one in errors.items():
        at = kinds.index(kind), sizes.index(size)
        error[at] = share @ one
        spread[at] = np.sqrt(share**2 @ (one - error[at]) ** 2)
    chosen = kinds.index(found.key[0]), sizes.index(found.key[1])
    axes = {"origin": tuple(float(k) for k in range(len(kinds))), "n_vectors": tuple(float(m) for m in sizes)}
    return Path(axes, error, spread, chosen, measure="mean squared error of rows held out, standardized targets")


def _warn_open_end(estimator: Any, found: Learned, n: int) -> None:
    """Warn where the largest size was chosen, and the error fell clearly and by more than the share ``tolerance``."""
    comparison, (kind, size) = found.comparison, found.key
    if comparison is None or estimator.n_vectors is not None:
        return
    errors, share = comparison.errors, comparison.weights / comparison.weights.sum()
    same = sorted(m for k, m in errors if k is kind)
    if size < max(m for _, m in errors) or len(same) < 2 or size >= found.samples.n:
        return
    fall = errors[kind, same[-2]] - errors[kind, size]
    mean = float(share @ fall)
    whole = comparison.variance - float(share @ errors[kind, size])
    proof = _CLEAR * math.sqrt(float(share**2 @ (fall - mean) ** 2))
    if mean > max(comparison.policy.judge.tolerance * whole, proof):
        warnings.warn(
            f"{type(estimator).__name__}: the held-out error was still falling at the largest number of vectors that "
            f"was tried, {size}. Use max_vectors={min(2 * size, n)} or more; path_ has the errors.",
            BudgetWarning,
            stacklevel=5,
        )


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
