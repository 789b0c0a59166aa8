"""What both estimators of the learner do in ``fit``, ``partial_fit`` and ``merge``."""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import asarray_like, is_sparse, namespace, to_numpy
from fewkern.arrays.neighbors import weighted_centers
from fewkern.arrays.optimize import fit_logistic, indicators
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import seed_from
from fewkern.arrays.validation import Interval
from fewkern.base import CONSTRAINTS, BudgetWarning
from fewkern.core.conformal import Novelty
from fewkern.core.expansion import KernelExpansion
from fewkern.core.explanation import Background
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.core.kernels import Gaussian
from fewkern.core.path import Path
from fewkern.core.population import Population
from fewkern.core.samples import Samples, with_targets
from fewkern.core.scores import ClassScores, class_values
from fewkern.core.statistics import feature_statistics
from fewkern.learn.batches import Basis, Sums, best_ridge, same_basis
from fewkern.learn.climb import Kind
from fewkern.learn.learner import Learned, Settings, learn
from fewkern.learn.logistic import choose_logistic
from fewkern.learn.policy import POLICY, Policy
from fewkern.learn.preparation import fit_preparation, with_open_ends
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.search import automatic_model, automatic_space, nested_values
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import LEAST_VECTORS, fit_temperature, novelty_of

PARAMETERS: dict[str, list[Any]] = {
    "n_vectors": [None, Interval(Integral, 1, None, closed="left")],
    **{name: CONSTRAINTS[name] for name in ("max_vectors", "prefer", "random_state", "verbose")},
}
"""Parameters that both estimators of the learner have, and what they accept."""

# Vectors for the novelty at most: beyond 20 more of them hardly matter, and files hold them beside those of the model.
_MOST_FOR_NOVELTY = 80
# A fall of the error at the last size that is larger than this share of the whole fall says that more vectors pay.
_OPEN_FALL = 0.02
# And it must be this number of its standard errors.
_CLEAR = 2.0


@dataclass(frozen=True)
class Fitted:
    """The function of an estimator, and its predictions for rows that it has not seen."""

    expansion: GaussianExpansion | KernelExpansion
    sums: Sums
    held_out: HeldOut
    """At settings that other rows chose."""
    novelty: Novelty | None
    path: Path | None
    origin: str
    background: Background | None = None
    """What explanations compare with."""
    learned: Learned | None = None
    loss: str = "squared"
    """What the coefficients minimize."""
    open_end: int | None = None
    """Number of vectors at which the search ended while the error was still falling."""

    @property
    def basis(self) -> Basis:
        """Vectors and features, where the rows are."""
        return self.sums.basis

    @property
    def host_basis(self) -> Basis:
        """The same where the rows held out are: on the host."""
        basis = self.sums.basis
        return basis.like(self.held_out.values) if isinstance(basis, GaussianBasis) else basis


def fit_population(estimator: Any, population: Population) -> Fitted:
    """Choose vectors on a sample of the rows, and take the coefficients from all."""
    samples = with_targets(population.sample)
    fitted = _fit_sparse(estimator, samples) if is_sparse(samples.X) else _fit_dense(estimator, samples)
    if fitted.open_end is not None:
        _warn_open_end(estimator, fitted.open_end, samples.n)
    statistics = feature_statistics(population, fitted.basis)
    sums = replace(fitted.sums, statistics=statistics)
    return replace(fitted, sums=sums, expansion=sums.expansion())


@one_thread()
def as_logistic(fitted: Fitted, population: Population) -> Fitted:
    """The same vectors with the coefficients of logistic regression, where rows held out ask for it.

    All rows must be in the sample that chose the vectors; of more rows least squares needs sums only.
    """
    found, samples = fitted.learned, population.sample
    if found is None or found.comparison is None or population.n > found.samples.n:
        return fitted
    codes = to_numpy(found.samples.codes)
    place = to_numpy(fitted.held_out.samples.codes)
    if len(np.unique(codes)) < samples.n_classes:
        return fitted
    scores = class_values(fitted.held_out.values)
    factor = fit_temperature(scores, fitted.held_out.samples.codes, fitted.held_out.samples.weights)
    logs = to_numpy(ClassScores(factor=factor).log_probabilities(fitted.held_out.values))
    weights = to_numpy(fitted.held_out.samples.weights)
    log_loss = float(-(weights @ logs[np.arange(len(place)), place]) / weights.sum())
    to_beat = log_loss, fitted.held_out.error_rate()
    chosen = choose_logistic(found.rows, codes, found.comparison, found.key, found.ridge, to_beat)
    if chosen is None:
        return fitted
    like = samples.weights
    Z = to_numpy(fitted.basis.features(found.samples.X)).astype(np.float64)
    own, weights = indicators(codes, samples.n_classes), to_numpy(found.samples.weights)
    W, b = fit_logistic(Z, own, weights, chosen.ridge, chosen.coefficients)
    expansion = fitted.basis.expand(*(asarray_like(part, like, dtype=like.dtype) for part in (W, b)))
    held = HeldOut(chosen.scores.astype(found.samples.weights.dtype), found.samples.take(chosen.held))
    return replace(fitted, expansion=expansion, held_out=held, loss="logistic")


def _policy(estimator: Any) -> Policy:
    return getattr(estimator, "_policy", POLICY)


@one_thread()
def _fit_dense(estimator: Any, samples: Samples) -> Fitted:
    """The learner, on at most twice ``search_rows`` rows.

    It runs on the host, in double precision, wherever the rows are: the search is small, and its many steps would make
    another model of every rounding error. For the same reason it has one thread of BLAS: two took twice as long, even
    on 5,000 rows. Sums over all rows and predictions are made where the rows are.
    """
    policy = _policy(estimator)
    some = samples.drawn(2 * policy.search_rows).on_host()
    settings = Settings(
        estimator.n_vectors, estimator.max_vectors, estimator.prefer, seed_from(estimator.random_state), policy
    )
    with progress(estimator, "growing and moving vectors, by folds", None) as step:
        found = learn(some, settings, step)
    basis = found.basis.in_precision(some.weights.dtype)
    sums = Sums.of(basis, found.ridge, found.samples)
    held_out = sums.left_out(found.samples)
    if found.held_out is not None:
        place, values = found.held_out
        held_out = HeldOut(values.astype(some.weights.dtype), found.samples.take(place))
    return Fitted(
        sums.expansion(),
        replace(sums, basis=basis.like(samples.X)),
        held_out,
        _novelty(found, basis, policy),
        _path(found),
        str(found.key[0]),
        Background(*weighted_centers(basis.prepared(found.samples.X), found.samples.weights)),
        found,
        open_end=_open_end(found, settings),
    )


def _novelty(found: Learned, basis: GaussianBasis, policy: Policy) -> Novelty:
    """Samples that stand for all, in prepared columns; moved vectors may ignore a column, these do not."""
    X, dtype = found.samples.X, basis.vectors.dtype
    preparation = with_open_ends(found.preparation, X.astype(np.float64))

    def geometry(rest: Samples) -> Any:
        own = fit_preparation(rest.X, to_numpy(rest.weights), policy)
        columns = with_open_ends(own, rest.X.astype(np.float64))
        return Gaussian(unit="range").resolve(columns(rest.X)), columns

    samples = replace(found.samples, X=preparation(X).astype(dtype, copy=False))
    kernel = Gaussian(unit="range").resolve(samples.X)
    selection = choose_basis(
        samples,
        kernel,
        SelectionRule(seed=0),
        min(max(LEAST_VECTORS, basis.n_vectors), _MOST_FOR_NOVELTY),
    )
    novelty = novelty_of(found.samples, selection, selection.basis(), geometry)
    return replace(novelty, preparation=preparation)


def _path(found: Learned) -> Path | None:
    """Held-out error of every kind and size that was compared."""
    if found.comparison is None:
        return None
    errors, weights = found.comparison.table()
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


def _open_end(found: Learned, settings: Settings) -> int | None:
    """The largest size, where it was chosen and the error fell clearly on the way to it."""
    if found.comparison is None or settings.n_vectors is not None:
        return None
    errors, weights = found.comparison.table()
    share, (kind, size) = weights / weights.sum(), found.key
    same = sorted(m for k, m in errors if k is kind)
    if size < max(m for _, m in errors) or len(same) < 2 or size >= found.samples.n:
        return None
    fall = errors[kind, same[-2]] - errors[kind, size]
    mean = float(share @ fall)
    whole = found.comparison.variance - float(share @ errors[kind, size])
    clear = max(_OPEN_FALL * whole, _CLEAR * math.sqrt(float(share**2 @ (fall - mean) ** 2)))
    return size if mean > clear else None


def _warn_open_end(estimator: Any, size: int, n: int) -> None:
    warnings.warn(
        f"{type(estimator).__name__}: the held-out error was still falling at the largest number of vectors that was "
        f"tried, {size}. Use max_vectors={min(2 * size, n)} or more; path_ has the errors.",
        BudgetWarning,
        stacklevel=5,
    )


def _fit_sparse(estimator: Any, samples: Samples) -> Fitted:
    """Sparse rows are not prepared, and vectors stay samples: FVS-LR, everything by leave-one-out."""
    how = SelectionRule(seed=seed_from(estimator.random_state))
    space = automatic_space(
        how,
        samples.n,
        n_vectors=estimator.n_vectors,
        max_vectors=estimator.max_vectors,
        ridge="auto",
        prefer=estimator.prefer,
    )
    with progress(estimator, "comparing kernel length scales", None) as step:
        found = automatic_model(samples, Gaussian(), space, step)
    basis = samples.original(found.basis)
    total = float(namespace(samples.weights).sum(samples.weights))
    sums = Sums.of(basis, found.ridge / total, samples)
    held_out = nested_values(samples, found) or sums.left_out(samples)
    novelty = novelty_of(samples, found.selection, basis)
    return Fitted(sums.expansion(), sums, held_out, novelty, found.path, str(Kind.STILL))


def keep(estimator: Any, fitted: Fitted) -> None:
    """Assign the attributes of a fitted model."""
    estimator.path_, estimator.origin_, estimator.novelty_ = fitted.path, fitted.origin, fitted.novelty
    estimator.background_ = fitted.background
    keep_function(estimator, fitted.sums, fitted.expansion)


def keep_function(estimator: Any, sums: Sums, expansion: GaussianExpansion | KernelExpansion) -> None:
    """Assign a fitted function and the attributes of its vectors."""
    estimator.alpha_, estimator.basis_, estimator.expansion_ = sums.alpha, sums.basis, expansion
    estimator.n_vectors_, estimator.vectors_ = expansion.n_vectors, expansion.vectors
    estimator.indices_ = expansion.indices


def keep_sums(estimator: Any, fitted: Fitted, error: float, factor: float = 1.0) -> None:
    """Assign what ``partial_fit`` needs after ``fit``. It is not part of a file: it may be larger than the model."""
    estimator._sums, estimator._fitted_to = None, fitted.sums.judged(fitted.held_out.weight, error, factor)


def sums_before(estimator: Any) -> Sums | None:
    """What a model has learned from, by ``fit`` or ``partial_fit``; None if it is not fitted."""
    for name in ("_sums", "_fitted_to"):
        found: Sums | None = getattr(estimator, name, None)
        if found is not None:
            return found
    if hasattr(estimator, "expansion_"):
        raise ValueError(
            f"{type(estimator).__name__}: this model was fitted by fit and came from a file, which holds no sums over "
            "its samples; begin a new one by partial_fit, with basis=model.basis_ to keep its vectors, or save the "
            "original with save(model, path, with_sums=True)."
        )
    return None


def begin(estimator: Any, basis: Basis, samples: Samples) -> Sums:
    """What is known after a first batch on a given basis; the ridge is chosen on that batch."""
    estimator.novelty_, estimator.path_, estimator.background_, estimator.origin_ = None, None, None, "given"
    return Sums.of(basis, best_ridge(basis, samples, _policy(estimator)), samples)


def continue_with(estimator: Any, sums: Sums, basis: Basis | None, samples: Samples) -> Sums:
    """What is known after another batch."""
    if basis is not None and not same_basis(basis, sums.basis):
        raise ValueError(
            f"{type(estimator).__name__}: the vectors stay those of the first batch; basis= is another one. Begin "
            "a new model, or leave basis out."
        )
    same_outputs(estimator, sums, samples)
    return sums.with_batch(samples)


def same_outputs(estimator: Any, sums: Sums, samples: Samples) -> None:
    """Refuse rows with more or fewer targets than those before."""
    known = int(sums.statistics.cross.shape[1])
    if samples.n_outputs != known:
        raise ValueError(
            f"{type(estimator).__name__}: y has {samples.n_outputs} output(s), but the first batch had {known}; pass "
            "as many in every batch, or begin a new model."
        )


def keep_batch(estimator: Any, sums: Sums) -> None:
    """Assign what a model is after a batch."""
    estimator._sums, estimator._fitted_to = sums, None
    keep_function(estimator, sums, sums.expansion())
    estimator.held_out_error_ = sums.mean_error


def merged(one: Any, other: Any) -> Any:
    """A model like ``one`` that has learned what both have."""
    name = type(one).__name__
    for model in (one, other):
        check_is_fitted(model)
    if type(one) is not type(other):
        raise TypeError(f"{name}: only another {name} can be merged with it, got {type(other).__name__}.")
    mine, theirs = sums_before(one), sums_before(other)
    assert mine is not None
    assert theirs is not None
    if not same_basis(mine.basis, theirs.basis):
        raise ValueError(f"{name}: the models have different vectors; fit both by partial_fit with the same basis=.")
    if list(getattr(one, "classes_", ())) != list(getattr(other, "classes_", ())):
        raise ValueError(f"{name}: the models know different classes; give both the same classes= in the first batch.")
    model = copy(one)
    keep_batch(model, mine + theirs)
    return model
