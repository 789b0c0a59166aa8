"""What the estimators share that choose width, ridge and number of vectors by leave-one-out."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from fewkern.backend.namespace import Array, asarray_like, take_rows
from fewkern.backend.progress import progress
from fewkern.backend.validation import (
    Interval,
    StrOptions,
    random_generator,
)
from fewkern.core.basis import KernelBasis
from fewkern.core.gram import Gram
from fewkern.core.kernels import Kernel, as_kernel
from fewkern.vectors.base import KernelEstimator, build_gram, centre_count, selector
from fewkern.vectors.leave_one_out import Solution, solve
from fewkern.vectors.search import Search, search
from fewkern.vectors.selector import SELECTION_CONSTRAINTS

__all__ = ["AUTOMATIC_CONSTRAINTS", "WIDTH_FACTORS", "AutomaticBasis", "width_grid"]

WIDTH_FACTORS = (0.14, 0.22, 0.35, 0.55, 0.85, 1.3, 2.0, 3.5, 6.0)
RIDGES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Standard errors of the leave-one-out error that a smaller model may lose.
TOLERANCE: dict[str, float | None] = {"accurate": 0.0, "balanced": 0.5, "sparse": 1.0, "all": None}
# The width is searched on at most this many samples; number of vectors and ridge then on all of them.
SEARCH_ROWS = 10_000
# With max_vectors="auto" a path has AUTO_LIMIT vectors at first (at most half of the samples), and goes on while that
# pays: to a tenth of the samples, or half of them for "accurate", and AUTO_CEILING at most.
AUTO_LIMIT, AUTO_CEILING = 100, 1000
AUTO_SHARE = {"accurate": 0.5, "balanced": 0.1, "sparse": 0.1, "all": 0.1}

AUTOMATIC_CONSTRAINTS: dict[str, list[Any]] = {
    **SELECTION_CONSTRAINTS,
    "max_vectors": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "prefer": [StrOptions(set(TOLERANCE))],
}


class AutomaticBasis(KernelEstimator):
    """Base of the estimators whose width, ridge and number of vectors are chosen by leave-one-out."""

    max_vectors: Any
    ridge: Any
    prefer: str
    rule: str
    centre: Any
    tol: Any
    random_state: Any
    verbose: Any

    def _search(self, X: Array, Y: Array, weights: Array | None) -> tuple[Gram, Search]:
        """The kernel matrix, vectors, ridge and size that leave-one-out prefers."""
        rng = random_generator(self.random_state)
        seed = int(rng.integers(2**31))
        kernels = width_grid(as_kernel(self.kernel), X)
        if len(kernels) > 1 and X.shape[0] > SEARCH_ROWS:
            rows = asarray_like(sorted(rng.choice(X.shape[0], SEARCH_ROWS, replace=False).tolist()), Y)
            some = None if weights is None else take_rows(weights, rows)
            _, found = self._search_kernels(kernels, take_rows(X, rows), take_rows(Y, rows), some, seed)
            gram, best = self._search_kernels([kernels[found.kernel]], X, Y, weights, seed)
            return gram, replace(best, trace=replace(best.trace, widths=(found.trace.widths[found.kernel],)))
        return self._search_kernels(kernels, X, Y, weights, seed)

    def _search_kernels(
        self, kernels: list[Kernel], X: Array, Y: Array, weights: Array | None, seed: int
    ) -> tuple[Gram, Search]:
        n = int(X.shape[0])
        rng = random_generator(seed)
        centre = centre_count(self.centre, self.rule)
        grams = [build_gram(kernel, X, centre, rng) for kernel in kernels]
        limit = min(AUTO_LIMIT, max(1, n // 2)) if self.max_vectors == "auto" else min(self.max_vectors, n)
        ceiling = min(AUTO_CEILING, int(AUTO_SHARE[self.prefer] * n)) if self.max_vectors == "auto" else limit
        widths = [getattr(kernel, "width", None) for kernel in kernels]
        with progress("leave-one-out paths", len(kernels), bool(self.verbose)) as step:
            found = search(
                grams,
                Y,
                ridges=RIDGES if self.ridge == "auto" else (float(self.ridge),),
                select=selector(self, seed, weights),
                limit=limit,
                ceiling=ceiling,
                tolerance=TOLERANCE[self.prefer],
                weights=weights,
                widths=tuple(width for width in widths if isinstance(width, (int, float))),
                step=step,
            )
        return grams[found.kernel], found

    def _fit_linear(self, X: Array, Y: Array, weights: Array | None) -> Solution:
        """FVS-LR: search, solve eq. (11), and set the fitted attributes."""
        gram, found = self._search(X, Y, weights)
        L = found.n_vectors
        solution = solve(found.selection.G[:, :L], Y, found.ridge, weights)
        self._keep(gram, found)
        self.expansion_ = self.basis_.expand(solution.W, solution.offset)
        self.n_vectors_, self.vectors_ = self.expansion_.n_vectors, self.expansion_.vectors
        self.indices_ = self.expansion_.indices
        return solution

    def _keep(self, gram: Gram, found: Search) -> None:
        selection = found.selection
        whole = KernelBasis.from_selection(gram, selection.indices, selection.factor)
        self.basis_ = whole.head(found.n_vectors)
        self.kernel_ = gram.kernel
        self.ridge_ = found.ridge
        self.stop_ = "size" if found.n_vectors < int(selection.indices.shape[0]) else selection.stop
        self.fitness_ = selection.fitness[: found.n_vectors]
        self.trace_ = found.trace


def width_grid(kernel: Kernel, X: Array) -> list[Kernel]:
    """Widths around the one that a rule gives; a width given as a number is kept."""
    resolved: Any = kernel.resolve(X)
    if not isinstance(getattr(kernel, "width", None), str):
        return [resolved]
    return [replace(resolved, width=factor * resolved.width) for factor in WIDTH_FACTORS]
