r"""A kernel Fisher machine of two classes with as few vectors as the samples allow.

1. The width of least squared held-out error of forward selection, :mod:`fewkern.fisher.forward_folds`.
2. The number of columns at which that error is nearly least: enough to begin with.
3. So many columns, by the machine's own rule, and of these as few as a logistic regression needs
   (:mod:`fewkern.fisher.elimination`). How many is said by samples held out from both.
"""

# Paper: the discriminant is the least-squares function on the vectors that were kept. We: where the number of vectors
# is automatic, a logistic regression on their columns, because it needs about half as many for the same error.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fewkern.backend.folds import Fold
from fewkern.backend.namespace import Array, namespace, take_rows, to_numpy
from fewkern.backend.random import random_generator
from fewkern.core.kernels import Kernel
from fewkern.core.samples import Samples
from fewkern.core.trace import TOLERANCE, Trace
from fewkern.fisher.choice import Candidates, Chosen, Comparing, kernel_scale
from fewkern.fisher.elimination import eliminate, exchange, log_losses
from fewkern.fisher.families import LARGEST, Family, Fitted
from fewkern.fisher.forward_folds import Folded, FoldedPath, forward_folds
from fewkern.fisher.problem import Machine
from fewkern.fisher.targets import fisher_targets
from fewkern.vectors.grid import KernelGrid
from fewkern.vectors.search import class_grid

__all__ = ["choose_few"]

# Widths are compared on at most so many samples, with so many of them as candidates; a rule for the width, such as the
# median distance, looks at _RULE_ROWS.
_WIDTH_ROWS, _WIDTH_CANDIDATES, _RULE_ROWS = 2000, 150, 150
# A difference of this share of the error is none, however certain: the errors of nested machines differ by little, and
# always in the same direction.
_NEGLIGIBLE = 0.03
# Likewise for a size, in units of the tolerance of ``prefer``. It is twice as much, because the exchange that follows
# gives back a part of it.
_SLIGHT = 0.06


def choose_few(
    samples: Samples,
    kernel: Kernel,
    plan: Comparing,
    folds: Sequence[Fold],
    step: Callable[[int], None] | None = None,
) -> tuple[Chosen, Fitted] | None:
    """Width and number of vectors by held-out error, and the machine; None if no column differs from a constant.

    Parameters
    ----------
    samples : Samples
        Of two classes.
    kernel : Kernel
        A width given as a rule becomes a grid of widths.
    plan : Comparing
    folds : sequence of (training positions, held-out positions)
    step : callable or None
        Called with the number of widths done.
    """
    rng = random_generator(plan.seed)
    grid = class_grid(samples.some(_RULE_ROWS, rng), kernel, plan.seed)
    folded = Folded.of(samples, folds)
    at = _best_width(folded.some(_WIDTH_ROWS, rng), grid.kernels, rng, step)
    scale = kernel_scale(samples, grid.kernels[at])
    candidates = Candidates.of(samples, grid.kernels[at], plan.max_candidates, plan.seed)
    sizes = _compare_sizes(folded, candidates, plan)
    if sizes is None:
        return None
    size = sizes.choose(plan)
    fitted, setting = _fit(samples, candidates, plan.family, scale, (sizes.start, size))
    return Chosen(candidates, setting, sizes.trace(grid, at, size)), fitted


def _best_width(folded: Folded, kernels: tuple[Kernel, ...], rng: Any, step: Callable[[int], None] | None) -> int:
    """Number of the kernel that needs the fewest columns for nearly the least squared held-out error.

    Some kernels are looked at, and the neighbors of the best of them.
    """
    if len(kernels) == 1:
        return 0
    samples = folded.samples
    rows = folded.find(samples.some(_WIDTH_CANDIDATES, rng))
    usable = namespace(rows).take(folded.train, rows, axis=1) > 0
    paths: dict[int, FoldedPath] = {}
    wanted = [len(kernels) // 3, 2 * len(kernels) // 3]
    while wanted:
        for k in wanted:
            K = kernels[k](samples.X, kernels[k].pick(samples.X, rows))
            paths[k] = forward_folds(K, folded, LARGEST, usable)
            if step is not None:
                step(len(paths))
        best = min(paths, key=lambda k: (paths[k].least, k))
        wanted = [k for k in (best - 1, best + 1) if 0 <= k < len(kernels) and k not in paths]
    bound = (1 + _NEGLIGIBLE) * paths[best].least
    good = [k for k in paths if paths[k].least <= bound]
    return min(good, key=lambda k: (paths[k].enough(bound), paths[k].least))


@dataclass(frozen=True)
class _Sizes:
    """Held-out errors of the machines of every size."""

    start: int
    """Number of columns that the elimination begins with."""
    losses: dict[int, Array]
    """By size: the share of every sample in the mean logarithmic loss, ``(n,)``."""

    @property
    def errors(self) -> dict[int, float]:
        """Mean logarithmic loss by size."""
        return {size: float(namespace(loss).sum(loss)) for size, loss in self.losses.items()}

    def choose(self, plan: Comparing) -> int:
        """The smallest size that is as good as the best one."""
        errors = self.errors
        best = min(errors, key=lambda size: (errors[size], size))
        tolerance = TOLERANCE[plan.prefer]

        def allowed(size: int) -> float:
            return tolerance * max(_spread(self.losses[size] - self.losses[best]), _SLIGHT * errors[best])

        return min(size for size in errors if errors[size] - errors[best] <= allowed(size))

    def trace(self, grid: KernelGrid, at: int, size: int) -> Trace:
        """The errors at the width that was taken, infinite elsewhere."""
        sizes = sorted(self.losses)
        error, spread = ([[math.inf] * len(sizes) for _ in grid.kernels] for _ in range(2))
        error[at] = [self.errors[s] for s in sizes]
        spread[at] = [_spread(self.losses[s]) for s in sizes]
        axes: dict[str, tuple[float, ...]] = {"width": grid.widths, "n_vectors": tuple(sizes)}
        chosen = (at, sizes.index(size))
        return Trace(axes, to_numpy(error), to_numpy(spread), chosen, measure="held-out logarithmic loss")


def _spread(shares: Array) -> float:
    """Standard error of a mean, from the shares of all samples in it."""
    xp = namespace(shares)
    return float(xp.sqrt(xp.sum((shares - xp.mean(shares)) ** 2)))


def _compare_sizes(folded: Folded, candidates: Candidates, plan: Comparing) -> _Sizes | None:
    """Forward selection in every fold to the size that is enough, then elimination; no size is beyond the budget."""
    xp = namespace(candidates.K)
    K = take_rows(candidates.K, folded.rows)
    path = forward_folds(K, folded, LARGEST, candidates.usable(folded))
    start = path.enough((1 + _NEGLIGIBLE) * path.least)
    if start == 0:
        return None
    Z = xp.stack([xp.take(K, path.order[f, :start], axis=1) for f in range(int(path.order.shape[0]))])
    signs = _signs(folded.samples, K)
    losses = {
        stage.size: folded.held_out(log_losses(stage.values, signs)) for stage in eliminate(Z, signs, folded.train)
    }
    budget = start if plan.max_vectors is None else max(plan.max_vectors, min(losses))
    return _Sizes(start, {size: loss for size, loss in losses.items() if size <= budget})


def _signs(samples: Samples, like: Array) -> Array:
    """1 for the second class, -1 for the first."""
    return 2 * namespace(like).astype(samples.codes, like.dtype) - 1


def _fit(
    samples: Samples, candidates: Candidates, family: Family, scale: float, sizes: tuple[int, int]
) -> tuple[Fitted, float]:
    """The machine on all samples: so many vectors by the rule of the family, and so many of them kept."""
    xp, K, (start, size) = namespace(candidates.K), candidates.K, sizes
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    Y = targets.rows(samples.codes)
    settings = family.settings(scale, targets.stretch)
    begun = family.reach(K, Y, samples.weights, settings, start)
    columns = xp.take(K, begun.support, axis=1)
    signs = _signs(samples, K)
    for stage in eliminate(columns[None, :, :], signs, samples.weights[None, :]):
        if stage.size <= size:
            break
    # two ways to so many columns, and the lower of the two minima
    ways = (xp.take(begun.support, stage.kept[0, :]), begun.forward[: stage.size])
    stage = min((exchange(K, way, signs, samples.weights) for way in ways), key=lambda found: found.objective).stage
    support = stage.kept[0, :]
    columns = xp.take(K, support, axis=1)
    held_out = stage.leave_one_out(columns[None, :, :], signs, samples.weights[None, :])
    coef, held_out = (xp.astype(found[0, :, None], K.dtype) for found in (stage.coef, held_out))
    told = family.tell(columns, Y, samples.weights, begun)
    machine = Machine(xp.take(support, told.order), xp.take(coef[1:, :], told.order, axis=0), coef[0, :])
    return Fitted(machine, held_out, told.objectives, told.ending), told.setting
