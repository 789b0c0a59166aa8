"""What ``partial_fit`` and ``merge`` of the regressor and the classifier have in common."""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fewkern.core.basis import KernelBasis
from fewkern.core.samples import Samples
from fewkern.vectors.automatic import Fitted, keep_expansion
from fewkern.vectors.batches import Learned, begin, best_ridge, same_basis
from fewkern.vectors.searching import RIDGES

__all__ = ["begin_on", "continue_with", "keep_learned", "keep_sums", "learned_before", "learned_from", "merged"]


def learned_before(estimator: Any) -> Learned | None:
    """What a model has learned from, by ``fit`` or ``partial_fit``; None if it is not fitted."""
    for name in ("_learned", "_fitted_to"):
        found: Learned | None = getattr(estimator, name, None)
        if found is not None:
            return found
    if hasattr(estimator, "expansion_"):
        raise ValueError(
            f"{type(estimator).__name__}: this model was fitted by fit and came from a file, which holds no sums over "
            "its samples; begin a new one by partial_fit, with basis=model.basis_ to keep its vectors."
        )
    return None


def learned_from(estimator: Any, fitted: Fitted) -> Learned:
    """What is known after a fit that chose the vectors."""
    assert fitted.sums is not None
    return Learned(estimator.basis_, estimator.ridge_, fitted.sums)


def keep_sums(estimator: Any, fitted: Fitted, error: float, factor: float = 1.0) -> None:
    """Assign what ``partial_fit`` needs after ``fit``. It is not part of a file: it may be larger than the model."""
    learned = learned_from(estimator, fitted).judged(fitted.judged.weight, error, factor)
    estimator._learned, estimator._fitted_to = None, learned


def begin_on(estimator: Any, basis: KernelBasis, samples: Samples) -> Learned:
    """What is known after a first batch on a basis; a ridge "auto" is chosen on that batch."""
    ridge = best_ridge(basis, samples, RIDGES) if estimator.ridge == "auto" else float(estimator.ridge)
    return begin(basis, ridge, samples)


def continue_with(estimator: Any, learned: Learned, basis: KernelBasis | None, samples: Samples) -> Learned:
    """What is known after another batch."""
    if basis is not None and not same_basis(basis, learned.basis):
        raise ValueError(
            f"{type(estimator).__name__}: the vectors stay those of the first batch; basis= is another one. Begin "
            "a new model, or leave basis out."
        )
    known = int(learned.statistics.cross.shape[1])
    if samples.n_outputs != known:
        raise ValueError(
            f"{type(estimator).__name__}: y has {samples.n_outputs} output(s), but the first batch had {known}; pass "
            "as many in every batch, or begin a new model."
        )
    return learned.with_batch(samples)


def keep_learned(estimator: Any, learned: Learned) -> None:
    """Assign what a model is after a batch."""
    estimator._learned, estimator._fitted_to = learned, None
    estimator.ridge_, estimator.basis_ = learned.ridge, learned.basis
    keep_expansion(estimator, learned.expansion())
    estimator.held_out_error_ = learned.mean_error


def merged(one: Any, other: Any) -> Any:
    """A model like ``one`` that has learned what both have."""
    name = type(one).__name__
    for model in (one, other):
        check_is_fitted(model)
    if type(one) is not type(other):
        raise TypeError(f"{name}: only another {name} can be merged with it, got {type(other).__name__}.")
    mine, theirs = learned_before(one), learned_before(other)
    assert mine is not None
    assert theirs is not None
    if not same_basis(mine.basis, theirs.basis) or mine.ridge != theirs.ridge:
        raise ValueError(
            f"{name}: the models have different vectors or ridges; fit both by partial_fit with the same basis= and "
            "the same ridge."
        )
    if list(getattr(one, "classes_", ())) != list(getattr(other, "classes_", ())):
        raise ValueError(f"{name}: the models know different classes; give both the same classes= in the first batch.")
    model = copy(one)
    keep_learned(model, mine + theirs)
    return model
