"""What ``partial_fit`` and ``merge`` of the regressor and the classifier have in common."""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fewkern.core.basis import KernelBasis
from fewkern.core.samples import Samples
from fewkern.vectors.automatic import keep_expansion
from fewkern.vectors.batches import Learned, begin, best_ridge, same_basis
from fewkern.vectors.search import RIDGES

__all__ = ["began", "begin_on", "continue_with", "keep_learned", "merged"]


def began(estimator: Any) -> bool:
    """Whether the model learns from batches; an error where it was fitted at once."""
    if getattr(estimator, "_learned", None) is not None:
        return True
    if hasattr(estimator, "expansion_"):
        name = type(estimator).__name__
        raise ValueError(
            f"{name}: this model was fitted by fit, which keeps no sums over its samples; begin a new one by "
            "partial_fit, with basis=model.basis_ to keep its vectors."
        )
    return False


def begin_on(estimator: Any, basis: KernelBasis, samples: Samples) -> Learned:
    """What is known after a first batch on a basis; a ridge "auto" is chosen on that batch."""
    ridge = best_ridge(basis, samples, RIDGES) if estimator.ridge == "auto" else float(estimator.ridge)
    return begin(basis, ridge, samples)


def continue_with(estimator: Any, basis: KernelBasis | None, samples: Samples) -> Learned:
    """What is known after another batch."""
    learned: Learned = estimator._learned
    if basis is not None and not same_basis(basis, learned.basis):
        raise ValueError(
            f"{type(estimator).__name__}: the vectors stay those of the first batch; basis= is another one. Begin "
            "a new model, or leave basis out."
        )
    return learned.with_batch(samples)


def keep_learned(estimator: Any, learned: Learned) -> None:
    """Assign what a model is after a batch."""
    estimator._learned = learned
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
    if not (began(one) and began(other)):
        raise ValueError(f"{name}: only models that were fitted by partial_fit can be merged.")
    if not same_basis(one._learned.basis, other._learned.basis) or one._learned.ridge != other._learned.ridge:
        raise ValueError(
            f"{name}: the models have different vectors or ridges; fit both by partial_fit with the same basis= and "
            "the same ridge."
        )
    if list(getattr(one, "classes_", ())) != list(getattr(other, "classes_", ())):
        raise ValueError(f"{name}: the models know different classes; give both the same classes= in the first batch.")
    model = copy(one)
    keep_learned(model, one._learned + other._learned)
    return model
