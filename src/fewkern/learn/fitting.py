"""The fit that both estimators of the learner share: from all rows to a function, with its errors and its novelty."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.columns import counts_of
from fewkern.arrays.namespace import asarray_like, device, is_sparse, on_host, to_numpy
from fewkern.arrays.neighbors import weighted_centers
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import seed_from
from fewkern.base import BudgetWarning
from fewkern.core.components import ComponentPreparation
from fewkern.core.conformal import Novelty
from fewkern.core.expansion import KernelExpansion
from fewkern.core.explanation import Background
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion, Preparation
from fewkern.core.kernels import Gaussian, Kernel
from fewkern.core.path import Path
from fewkern.core.radial import feature_units
from fewkern.core.samples import Population, Samples, with_targets
from fewkern.core.statistics import feature_statistics
from fewkern.learn.batches import Basis, Sums
from fewkern.learn.compare import Kind
from fewkern.learn.components import Components, find_components, is_wide
from fewkern.learn.copies import without_copies
from fewkern.learn.learner import Learned, Settings, learn, preparation_of
from fewkern.learn.policy import POLICY, Policy
from fewkern.learn.preparation import with_open_ends
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import LEAST_VECTORS, MOST_NOVELTY_ROWS, novelty_of

# Share of the rows that are copies of others, above which a warning says so.
_WARNED_COPIES_SHARE = 0.05
# More vectors pay if the last ones lowered the error by more than this number of standard errors.
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
    """All rows, where the function sees components; predictions among these are by regressions on other rows."""

    @property
    def basis(self) -> Basis:
        """Vectors and features, where the rows are."""
        return self.sums.basis

    def behind(self, matrix: np.ndarray[Any, Any]) -> Fitted:
        """The same function of all columns; the ``matrix`` turns them into the components that it sees."""

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
    if fitted.copies > _WARNED_COPIES_SHARE * samples.n:
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
    """The learner, on at most ``rows.search`` rows; ``components`` are what they hold, if not columns.

    Preparation, start and choice are on the host; rows of a device move vectors there. All of it is in double
    precision: the many steps would make another model of every rounding error. For the same reason BLAS has one thread
    on the host. Sums over all rows and predictions are made where the rows are.
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
    """Rows on a device that are not among the ``samples``; None where rows are few, since the host is then as fast."""
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
    """What the learner finds, on the host alone if the memory of the device is too small."""
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
