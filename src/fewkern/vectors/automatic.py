"""What the estimators on an automatic basis do in ``fit``: search, move the vectors where that pays, assign."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

from fewkern.backend.linalg import cholesky_psd
from fewkern.backend.namespace import is_sparse
from fewkern.backend.progress import progress
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import as_kernel
from fewkern.core.samples import Samples
from fewkern.core.trace import TOLERANCE
from fewkern.vectors.leave_one_out import HeldOut
from fewkern.vectors.parameters import selecting
from fewkern.vectors.refine_choice import SIZES, RefineChoice, RefinePlan, Unrefined, choose_refined, unrefined_model
from fewkern.vectors.search import WIDTH_FACTORS, Found, Searching, automatic_model

__all__ = ["AutomaticParameters", "RefiningParameters", "fit_regression", "keep_model", "search_model"]


class AutomaticParameters(Protocol):
    """Parameters of the estimators whose width, ridge and number of vectors are chosen by leave-one-out."""

    kernel: Any
    n_vectors: Any
    max_vectors: Any
    ridge: Any
    prefer: str
    rule: str
    center: Any
    basis_tol: float | None
    random_state: Any
    verbose: Any


class RefiningParameters(AutomaticParameters, Protocol):
    """The same, of the estimators that may move their vectors."""

    refine: Any


def fit_regression(estimator: RefiningParameters, samples: Samples) -> HeldOut:
    """FVS-LR on the targets of the samples, its vectors moved where that pays; assigns the fitted attributes.

    Returns what the model says of samples that it has not seen.
    """
    plan = _searching(estimator, samples.n)
    found = search_model(estimator, samples, plan)
    whole, left_out = unrefined_model(samples, found)
    keep_model(estimator, samples, found, whole.expansion)
    _warn_of_jitter(estimator, whole)
    if not _moves_vectors(estimator, samples):
        return HeldOut(samples, left_out)
    refining = RefinePlan(plan, TOLERANCE[estimator.prefer], _sizes(estimator), estimator.refine is True)
    with progress("refining vectors", refining.n_folds, bool(estimator.verbose)) as step:
        choice = choose_refined(samples, whole, refining, step)
    if choice is None:  # too few samples for folds
        return HeldOut(samples, left_out)
    if choice.refined:
        _keep_refined(estimator, samples, found, choice)
    return HeldOut(samples.take(choice.rows), choice.held_out)


def _warn_of_jitter(estimator: RefiningParameters, model: Unrefined) -> None:
    if model.jitter > 0:
        warnings.warn(
            f"{type(estimator).__name__}: with ridge={model.ridge:.3g} the equations are singular in this precision; "
            f"{model.jitter:.3g} was added to the ridge. Use a larger ridge, fewer vectors or a larger basis_tol.",
            UserWarning,
            stacklevel=4,
        )


def search_model(estimator: AutomaticParameters, samples: Samples, plan: Searching | None = None) -> Found:
    """Width, vectors, ridge and size for the targets of the samples."""
    plan = _searching(estimator, samples.n) if plan is None else plan
    with progress("leave-one-out paths", len(WIDTH_FACTORS), bool(estimator.verbose)) as step:
        return automatic_model(samples, as_kernel(estimator.kernel), plan, step)


def keep_model(estimator: Any, samples: Samples, found: Found, expansion: KernelExpansion) -> None:
    """Assign the fitted attributes that the estimators on an automatic basis have in common."""
    estimator.ridge_, estimator.trace_, estimator.stop_ = found.ridge, found.trace, found.stop
    estimator.fitness_ = found.selection.fitness[: found.n_vectors]
    estimator.basis_ = samples.original(found.basis)
    _keep_expansion(estimator, samples.original(expansion))


def _keep_refined(estimator: Any, samples: Samples, found: Found, choice: RefineChoice) -> None:
    """Assign the attributes of a model whose vectors were moved."""
    expansion = samples.original(choice.expansion)
    kernel, vectors = expansion.kernel, expansion.vectors
    estimator.basis_ = KernelBasis(kernel, vectors, cholesky_psd(kernel(vectors, vectors)), expansion.indices)
    estimator.ridge_ = choice.ridge
    estimator.fitness_ = found.selection.fitness[: expansion.n_vectors]
    _keep_expansion(estimator, expansion)
    estimator.refined_ = True


def _keep_expansion(estimator: Any, expansion: KernelExpansion) -> None:
    estimator.expansion_, estimator.kernel_ = expansion, expansion.kernel
    estimator.n_vectors_, estimator.vectors_ = expansion.n_vectors, expansion.vectors
    estimator.indices_ = expansion.indices


def _searching(estimator: AutomaticParameters, n: int) -> Searching:
    how = selecting(estimator.rule, estimator.center, estimator.basis_tol, estimator.random_state)
    return Searching.automatic(
        how,
        n,
        n_vectors=estimator.n_vectors,
        max_vectors=estimator.max_vectors,
        ridge=estimator.ridge,
        prefer=estimator.prefer,
    )


def _moves_vectors(estimator: RefiningParameters, samples: Samples) -> bool:
    """Whether folds shall decide on moving the vectors; an error where that was asked for and cannot be."""
    if estimator.refine is False:
        return False
    kernel, name = as_kernel(estimator.kernel), type(estimator).__name__
    reason = None
    if not kernel.refinable:
        reason = f"the kernel {type(kernel).__name__} has no derivatives; use Gaussian or Polynomial"
    elif is_sparse(samples.X):
        reason = "moved vectors would not be sparse; pass X as a dense array"
    elif estimator.center not in (False, 0) and (estimator.center != "auto" or estimator.rule == "greedy"):
        reason = "a kernel that is centered at samples cannot move with its vectors; use center=False"
    if estimator.refine is True:
        if reason is not None:
            raise ValueError(f"{name}: refine=True cannot be done: {reason}, or refine=False.")
        return True
    # a width that was given as a number is taken as it is
    return reason is None and any(isinstance(value, str) for value in kernel.get_params().values())


def _sizes(estimator: RefiningParameters) -> tuple[int, ...]:
    """Numbers of vectors that refined models are tried with."""
    if estimator.n_vectors != "auto":
        return (int(estimator.n_vectors),)
    if estimator.max_vectors == "auto":
        return SIZES
    most = int(estimator.max_vectors)
    return (*(m for m in SIZES if m < most), most)
