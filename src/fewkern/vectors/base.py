"""What every kernel estimator shares: a kernel parameter, checks of the input, and the way to a basis."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from fewkern.backend.namespace import Array, asarray_like, namespace
from fewkern.backend.validation import random_generator, validate_samples
from fewkern.core.gram import Gram
from fewkern.core.kernels import Kernel, as_kernel
from fewkern.vectors.centering import approximate_centre
from fewkern.vectors.selection import Rule, Selection, select_vectors

__all__ = ["KernelEstimator", "build_gram", "selector"]

# Above this many samples the nearest to the mean image is found with means over so many random rows.
_CENTRE_ROWS = 2000


class KernelEstimator(BaseEstimator):
    """Base of the estimators with a ``kernel`` parameter."""

    kernel: Any

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters; ``kernel__width=...`` works also while ``kernel`` is a name or a function."""
        if any(key.startswith("kernel__") for key in params):
            kernel = params.pop("kernel", self.kernel)
            self.kernel = as_kernel(kernel)
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed" or getattr(self.kernel, "pairwise", False)
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        tags.array_api_support = True
        return tags

    def _samples(self, X: Any, *, reset: bool, minimum: int = 1) -> Array:
        pairwise = as_kernel(self.kernel).pairwise
        return validate_samples(self, X, reset=reset, minimum=minimum, pairwise=pairwise)


def build_gram(kernel: Kernel, X: Array, centre: int, rng: Any) -> Gram:
    """Gram matrix of a resolved kernel, centred at the ``centre`` samples nearest to the mean image (0: not)."""
    gram = Gram(kernel, X)
    if not centre:
        return gram
    rows = None
    if gram.n > _CENTRE_ROWS:
        drawn = sorted(int(i) for i in rng.choice(gram.n, _CENTRE_ROWS, replace=False))
        rows = asarray_like(drawn, gram.diag, dtype=namespace(gram.diag).int64)
    return Gram(kernel, X, approximate_centre(gram, min(centre, gram.n), rows))


def centre_count(centre: Any, rule: str) -> int:
    """Number of samples that make the centre; "auto" is the paper's one for the paper's rule, none otherwise."""
    return int(rule == "greedy") if centre == "auto" else int(centre)


def selector(estimator: Any, seed: Any, weights: Array | None = None) -> Any:
    """``select(gram, limit, start)`` with the settings of ``estimator``; the same ``seed`` (an int) for every gram."""

    def select(gram: Gram, limit: int, start: Selection | None = None, step: Any = None) -> Selection:
        rule: Rule = estimator.rule
        # a continuation must not see the numbers again that chose what it starts from
        begun = 0 if start is None else int(start.indices.shape[0])
        return select_vectors(
            gram,
            rng=random_generator([seed, begun] if begun else seed),
            limit=limit,
            rule=rule,
            max_fitness=getattr(estimator, "max_fitness", 1.0),
            tol=estimator.tol,
            weights=weights,
            n_candidates=getattr(estimator, "n_candidates", 10),
            start=start,
            step=step,
        )

    return select
