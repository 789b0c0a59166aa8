"""Models of a sparse kernel Fisher discriminant along its penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.arrays.sampling import seed_from
from fewkern.base import check_labelled
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import resolve_kernel
from fewkern.core.path import Stop
from fewkern.fisher.classifiers import SparseKernelFisher
from fewkern.fisher.fitting import class_expansion
from fewkern.fisher.lq import lq_path, max_penalty
from fewkern.fisher.problem import Candidates, fisher_targets, penalized_problem


@dataclass(frozen=True)
class FisherPath:
    """Models at falling penalties: what :func:`~fewkern.fisher.fisher_path` returns.

    Examples
    --------
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.fisher import fisher_path
    >>> path = fisher_path(SparseKernelFisher(), *make_banana(100), alphas=(0.1, 0.01))
    >>> path.alphas, len(path.expansions)
    ((0.1, 0.01), 2)
    """

    alphas: tuple[float, ...]
    expansions: tuple[KernelExpansion, ...]
    """Class scores of the midpoint rule: one output for two classes (positive: the second), else one per class."""
    n_vectors: tuple[int, ...]
    objectives: tuple[float, ...]
    """Value of (5) at every solution."""
    errors: tuple[float, ...]
    """Share of the training weight that is misclassified."""
    stops: tuple[Stop, ...]
    """How every fit ended."""
    q: float
    classes: Array


def fisher_path(
    model: SparseKernelFisher, X: Any, y: Any, sample_weight: Any = None, *, alphas: int | Sequence[float] = 20
) -> FisherPath:
    r"""Models of :class:`~fewkern.SparseKernelFisher` along the penalty :math:`\rho`.

    The exact solutions for ``q = 1`` follow one another warm; a solution for ``q < 1`` starts from the one for
    ``q = 1`` at the same penalty, never from its neighbor, because zeros are absorbing.

    Parameters
    ----------
    model : SparseKernelFisher
        Its parameters are used; it is not fitted. A length scale given as a rule is the number that the rule gives:
        nothing is searched here.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    sample_weight : array of shape (n_samples,) or None
    alphas : int or sequence of float, default 20
        A number of penalties falls geometrically to a thousandth of the one that keeps nothing for ``q = 1``.

    Returns
    -------
    FisherPath

    Notes
    -----
    Kernel columns (and, with a candidate basis, their products) are computed once for the whole path.

    Examples
    --------
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.fisher import fisher_path
    >>> path = fisher_path(SparseKernelFisher(q=1), *make_banana(150), alphas=[0.1, 0.001])
    >>> path.n_vectors[0] < path.n_vectors[1]
    True
    """
    model = clone(model)
    model._validate_params()
    given = check_labelled(model, X, y, sample_weight)
    samples = given.on_host()
    kernel = resolve_kernel(model.kernel, samples.X)
    candidates = Candidates.of(samples, kernel, None, seed_from(model.random_state))
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    problem = penalized_problem(candidates.K, targets.rows(samples.codes), samples.weights)
    if isinstance(alphas, int):
        top, last = max_penalty(problem), max(alphas - 1, 1)
        alphas = [top * 1e-3 ** (i / last) for i in range(alphas)]
    falling = sorted((float(p) for p in alphas), reverse=True)
    fits = tuple(lq_path(problem, falling, float(model.q)))
    scores = targets.midpoint_rule()
    shares = samples.weights / np.sum(samples.weights)
    errors = [float(shares @ (scores.codes(fit.values(candidates.K)) != samples.codes)) for fit in fits]
    return FisherPath(
        alphas=tuple(falling),
        expansions=tuple(class_expansion(samples, candidates, fit, scores)[0].like(given.X) for fit in fits),
        n_vectors=tuple(fit.size for fit in fits),
        objectives=tuple(fit.objective for fit in fits),
        errors=tuple(errors),
        stops=tuple(fit.ending.stop for fit in fits),
        q=float(model.q),
        classes=to_numpy(model.classes_),
    )
