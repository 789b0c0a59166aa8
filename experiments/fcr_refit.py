"""FCR-SDC, refitted: weights and bandwidths of the kernels that the paper's algorithm selects, fitted together."""

from __future__ import annotations

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.density.constrained import ConstrainedRules, KernelEntry, forward_constrained, tune_bandwidth
from fewkern.density.problem import DensityProblem, RoundMixture, squared_distances
from fewkern.density.simplex import active_set

__all__ = ["LEAST_WEIGHT", "forward_refitted", "refit_jointly"]

# A kernel of less weight after a joint fit leaves.
LEAST_WEIGHT = 1e-8
# A kernel of a smaller share, or of nearly all of the model, keeps its bandwidth.
_LEAST_SHARE = 1e-12
# Sweeps over the bandwidths, each followed by a fit of the weights.
_SWEEPS = 5


def forward_refitted(problem: DensityProblem, gamma: float) -> RoundMixture:
    """The paper's selection, refitted."""
    target = problem.parzen(problem.Z)
    return refit_jointly(problem, target, forward_constrained(problem, target, ConstrainedRules(gamma)).mixture)


def refit_jointly(problem: DensityProblem, target: Array, mixture: RoundMixture) -> RoundMixture:
    """All weights by the simplex programme on the same least squares, then bandwidth steps, each with a refit."""
    # Paper: the mixing number of a step is never revised. We: weights and bandwidths of all kernels together, because
    # the selection is kept and the error falls.
    rows, bandwidths = np.asarray(mixture.rows), np.array(mixture.bandwidths)
    D = squared_distances(problem.Z, mixture.centers)
    for sweep in range(_SWEEPS + 1):
        F, w = problem.kernel(D, bandwidths), problem.w
        g = active_set(F.T @ (w[:, None] * F), F.T @ (w * target)).weights
        keep = g > LEAST_WEIGHT
        rows, bandwidths, D, g = rows[keep], bandwidths[keep], D[:, keep], g[keep] / np.sum(g[keep])
        if sweep < _SWEEPS:
            _tune_in_turn(problem, target, D, bandwidths, g)
    return problem.mixture(rows, bandwidths, g)


def _tune_in_turn(problem: DensityProblem, target: Array, D: Array, bandwidths: Array, g: Array) -> None:
    """One step for every entry of ``bandwidths`` in turn, with the weights fixed."""
    for j, share in enumerate(g.tolist()):
        if _LEAST_SHARE < share < 1 - _LEAST_SHARE:
            # the rest of the model as the y of (15): lambda y = F g without column j
            F = problem.kernel(D, bandwidths)
            rest = (F @ g - share * F[:, j]) / (1.0 - share)
            entry = KernelEntry(problem, target, rest, 1.0 - share, D[:, j])
            bandwidths[j] = tune_bandwidth(entry, float(bandwidths[j]), steps=1)
