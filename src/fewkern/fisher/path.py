"""The regularisation path of kFDA_q: from one sample to many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewkern.backend.namespace import Array, namespace, take_rows, to_numpy
from fewkern.backend.validation import encode_labels, random_generator, validate_class_weights
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import as_kernel
from fewkern.fisher.lq import lq_path, max_penalty
from fewkern.fisher.sparse import SparseKernelFisher
from fewkern.fisher.targets import fisher_targets, least_squares_scores

__all__ = ["FisherPath", "fisher_path"]


@dataclass(frozen=True)
class FisherPath:
    """Machines at falling penalties: what :func:`fisher_path` returns.

    Examples
    --------
    >>> from fewkern import fisher_path
    >>> from fewkern.datasets import make_banana
    >>> path = fisher_path(*make_banana(100), penalties=(0.1, 0.01))
    >>> path.penalties, len(path.expansions)
    ((0.1, 0.01), 2)
    """

    penalties: tuple[float, ...]
    expansions: tuple[KernelExpansion, ...]
    """Class scores of the midpoint rule: one output for two classes (positive: the second), else one per class."""
    n_vectors: tuple[int, ...]
    objectives: tuple[float, ...]
    """Value of (5) at every solution."""
    errors: tuple[float, ...]
    """Share of the training weight that is misclassified."""
    statuses: tuple[str, ...]
    q: float
    classes: Array


def fisher_path(
    X: Any,
    y: Any,
    *,
    kernel: Any = "gaussian",
    q: float = 0.5,
    penalties: Sequence[float] | None = None,
    n_penalties: int = 20,
    ratio: float = 1e-3,
    sample_weight: Any = None,
    penalize_bias: bool = False,
    start: Any = "auto",
    max_vectors: int | None = None,
    tol: float | None = None,
    max_iter: int = 1000,
    random_state: Any = 0,
) -> FisherPath:
    r"""Machines of :class:`SparseKernelFisher` along the penalty :math:`\rho`.

    The exact solutions for ``q = 1`` follow one another warm; a solution for ``q < 1`` starts from the one for
    ``q = 1`` at the same penalty, never from its neighbour, because zeros are absorbing.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule is the number that the rule gives: nothing is searched here.
    q : float, default 0.5
    penalties : sequence of float or None, default None
        None: ``n_penalties`` values falling geometrically to ``ratio`` times the one that keeps nothing for ``q = 1``.
    n_penalties, ratio
    sample_weight : array of shape (n_samples,) or None
    penalize_bias, start, max_vectors, tol, max_iter, random_state
        See :class:`SparseKernelFisher`.

    Returns
    -------
    FisherPath

    Notes
    -----
    Kernel columns (and, with a candidate basis, their products) are computed once for the whole path.

    Examples
    --------
    >>> from fewkern import fisher_path
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(150)
    >>> path = fisher_path(X, y, penalties=[0.1, 0.001])
    >>> path.n_vectors[0] < path.n_vectors[1]
    True
    """
    model = SparseKernelFisher(
        kernel=kernel, max_vectors=max_vectors, random_state=random_state, q=q, start=start, penalize_bias=penalize_bias
    )
    model._validate_params()
    X = model._samples(X, reset=True, minimum=2)
    model.classes_, codes = encode_labels(model, X, y)
    task = model._task(X, codes, validate_class_weights(model, X, codes, sample_weight))
    resolved = as_kernel(kernel).resolve(X)
    seed = int(random_generator(random_state).integers(2**31))
    candidates, _ = model._candidates(task, resolved, seed)
    targets = fisher_targets(task.codes, task.n_classes, task.weights)
    K, Y = task.columns(resolved, candidates), targets.rows(task.codes)
    if penalties is None:
        top = max_penalty(K, Y, weights=task.weights, penalize_bias=penalize_bias)
        penalties = [top * ratio ** (i / max(n_penalties - 1, 1)) for i in range(n_penalties)]
    penalties = sorted((float(p) for p in penalties), reverse=True)
    fits = lq_path(
        K,
        Y,
        penalties=penalties,
        q=q,
        weights=task.weights,
        penalize_bias=penalize_bias,
        start=start,
        tol=tol,
        max_iter=max_iter,
    )
    xp = namespace(K)
    M, c = least_squares_scores(targets)
    expansions, errors = [], []
    for fit in fits:
        scores = (xp.take(K, fit.support, axis=1) @ fit.coef + fit.offset[None, :]) @ M + c[None, :]
        wrong = xp.astype(xp.argmax(scores, axis=1) != task.codes, K.dtype)
        errors.append(float(xp.sum(wrong * task.weights) / xp.sum(task.weights)))
        weights, offset = (M[:, 1:] - M[:, :1], c[1:] - c[:1]) if task.n_classes == 2 else (M, c)
        kept = take_rows(candidates, fit.support)
        expansions.append(
            KernelExpansion(resolved, resolved.pick(X, kept), fit.coef @ weights, fit.offset @ weights + offset, kept)
        )
    return FisherPath(
        penalties=tuple(penalties),
        expansions=tuple(expansions),
        n_vectors=tuple(expansion.n_vectors for expansion in expansions),
        objectives=tuple(fit.objective for fit in fits),
        errors=tuple(errors),
        statuses=tuple(fit.status for fit in fits),
        q=float(q),
        classes=to_numpy(model.classes_),
    )
