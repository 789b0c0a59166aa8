"""Recursive support vector machines: orthogonal directions of maximum margin (RSVM, section III; methods part A)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.linalg import least_squares, sum_by_index
from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.core.path import Stop, peel
from fewkern.margins.embedding import Reflected, norm
from fewkern.margins.hinge import HingeProblem, HingeSolution, minimize_hinge

# Singular values below this fraction of the largest are dropped from a block of directions (methods A7).
_BLOCK_RANK_RTOL = 1e-3
# Problems whose share in a direction reaches this fraction of the largest count as equal.
_EQUAL_SHARE_RATIO = 0.999
# Largest relative error of a hyperplane that is used, and of dual coefficients that are not solved for again.
_MAX_RELATIVE_ERROR = 1e-5
# A problem whose optimal value is within this fraction of its cap has no direction left, and the recursion ends when no
# deflated sample is longer than this fraction of the longest sample. The tolerance of the interior point is far below,
# or noise would be returned as directions.
_END_RTOL = 1e-6


@dataclass(frozen=True)
class MarginProblem:
    r"""One hyperplane: :math:`\min \frac12 |w|^2 + \sum_k C_k (h_k - s_k (\langle w, x_{r_k} \rangle + b))_+`.

    ``rows`` are the samples of the terms; a sample occurs twice in a regression.
    """

    rows: Array
    signs: Array
    targets: Array
    C: Array

    def on(self, space: Reflected) -> HingeProblem:
        """The problem on the samples of ``space``."""
        return HingeProblem(space.A[self.rows], self.signs, self.targets, self.C)


def class_problems(codes: Array, n_classes: int, C: Array) -> list[MarginProblem]:
    """Two classes against each other (one problem), or each of several against the rest."""
    rows, one = np.arange(len(C)), np.ones(len(C))
    return [
        MarginProblem(rows, np.where(codes == k, 1.0, -1.0), one, C)
        for k in ([1] if n_classes == 2 else range(n_classes))
    ]


def tube_problem(y: Array, C: Array, epsilon: float) -> MarginProblem:
    """Epsilon-insensitive regression as hinges: two per sample, one from each side (methods A7)."""
    rows, one = np.arange(len(C)), np.ones(len(C))
    return MarginProblem(np.r_[rows, rows], np.r_[one, -one], np.r_[y - epsilon, -y - epsilon], np.r_[C, C])


@storable
@dataclass(frozen=True)
class MarginStep:
    """One step of the recursion: the problems it solved, and how many directions they gave."""

    problems: tuple[int, ...]
    objectives: tuple[float, ...]
    squared_norms: tuple[float, ...]
    biases: tuple[float, ...]
    iterations: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class MarginDirections:
    """Result of :func:`recursive_margin`."""

    directions: Array
    """``W``, one orthonormal column per component, in the coordinates of the features."""
    dual: Array
    """``B`` with ``W = X'B``: the coefficients of the samples; rows of samples that support no hyperplane are zero."""
    features: Array
    """Components of the training samples, ``X W``."""
    steps: tuple[MarginStep, ...]
    caps: tuple[float, ...]
    stop: Stop
    """FLAT, RANK, FADED, LIMIT, MAX_ITER, or PRECISION (a box constant so large that the next step, which is never
    separable, cannot be solved in this arithmetic)."""
    n_iter: int
    """Interior point iterations in all."""
    unsolved: float
    """Largest relative error of a hyperplane that did not converge within the iteration limit; zero if all did."""


def recursive_margin(
    space: Reflected,
    problems: Sequence[MarginProblem],
    n_components: int | None = None,
    step: Callable[[int], None] = lambda _: None,
) -> MarginDirections:
    r"""Directions of maximum margin, each in the orthogonal complement of the previous ones (methods A4).

    Step ``t`` solves, for every problem,

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i (1 - y_i (\langle w, \phi_t(x_i) \rangle + b))_+ \quad (4), \qquad
        \tilde w_t = \sum_i \alpha_i y_i \phi_t(x_i), \quad w_t = \tilde w_t / \|\tilde w_t\|, \qquad
        \phi_{t+1}(x) = \phi_t(x) - \langle \phi_t(x), w_t \rangle w_t \quad (6) .

    Several problems (many classes) give a block: their unit directions are orthonormalized by a singular value
    decomposition and removed together.

    Parameters
    ----------
    space : Reflected
        Centered samples: the bias makes the problems invariant to a shift, and only centered samples fade (methods A2).
    problems : sequence of MarginProblem
    n_components : int or None
        Largest number of directions; None: until another criterion stops the recursion.
    step : function
        Called with the number of directions so far.

    Returns
    -------
    MarginDirections

    Notes
    -----
    Cost of one component: 10 to 30 interior point iterations of :math:`O(n q^2)`, and :math:`O(nq)` for the reflection.
    A step starts from the multipliers of the one before it, which are feasible with :math:`w = 0`; where their sum has
    reached the cap, the flat stop needs no iteration at all.
    Laws: :math:`W^T W = I`; with :math:`P_t` the optimal value, :math:`P_{t+1} \ge P_t + \frac12 \|\tilde w_t\|^2`
    and :math:`P_t \le` cap, hence the directions must fade.
    """
    state = _MarginDeflation(space, problems, n_components)
    peeled = peel(state, state.limit, step)
    W = state.space.W
    dual = _coefficients(space, W, state.B, state.Z)
    return MarginDirections(W, dual, state.Z, tuple(state.steps), state.caps, peeled.stop, state.n_iter, state.unsolved)


class _MarginDeflation:
    """State of :func:`peel`: the deflated samples (6), and the problems that still have a direction."""

    def __init__(self, space: Reflected, problems: Sequence[MarginProblem], n_components: int | None) -> None:
        self.space, self.problems = space, problems
        # values at w = 0, which no step exceeds (methods A3.3)
        self.caps = tuple(problem.on(space).value_at_zero() for problem in problems)
        # a cap of zero: a bias alone satisfies every hinge (a constant target inside its tube)
        self.alive = [k for k, cap in enumerate(self.caps) if cap > 0.0]
        self.multipliers: list[Array | None] = [None] * len(problems)
        self.longest = space.largest_norm()
        full = space.dimension
        self.limit = full + 1 if n_components is None or n_components > full else n_components
        # dual coefficients and projections of the directions so far
        self.B = self.Z = np.zeros((space.A.shape[0], 0))
        self.steps: list[MarginStep] = []
        self.n_iter, self.unsolved = 0, 0.0

    def find(self) -> tuple[Array, Array, MarginStep] | Stop:
        """Steps 3 and 1: orthonormal directions, their dual coefficients, and the record of the step."""
        if self.space.dimension == 0:
            return Stop.RANK
        # Paper: an absolute bound (step 3). We: relative to the longest sample, because features have units; with a
        # Gaussian kernel it is the same.
        if self.space.largest_norm() <= _END_RTOL * self.longest:
            return Stop.FADED
        found: list[tuple[int, HingeSolution]] = []
        for k in list(self.alive):
            solution = self._hyperplane(k)
            if solution is None:
                self.alive.remove(k)  # nothing brings a flat problem back
                continue
            if solution.stop == Stop.MAX_ITER:
                self.unsolved = max(self.unsolved, solution.error)
            if solution.error > _MAX_RELATIVE_ERROR:
                return Stop.MAX_ITER if solution.stop == Stop.MAX_ITER else Stop.PRECISION
            found.append((k, solution))
        if not found:
            return Stop.FLAT
        U, B = self._block(found)
        size = min(self.limit - int(self.Z.shape[1]), self.space.dimension, int(U.shape[1]))
        step = MarginStep(
            problems=tuple(k for k, _ in found),
            objectives=tuple(s.primal for _, s in found),
            squared_norms=tuple(float(s.w @ s.w) for _, s in found),
            biases=tuple(s.bias for _, s in found),
            iterations=tuple(s.n_iter for _, s in found),
            size=size,
        )
        return U[:, :size], B[:, :size], step

    def _hyperplane(self, k: int) -> HingeSolution | None:
        """The next hyperplane of a problem, (4) and (5); None where it has none (flat stop, methods A3.4)."""
        problem, cap = self.problems[k].on(self.space), (1.0 - _END_RTOL) * self.caps[k]
        alpha = self.multipliers[k]
        if alpha is not None:
            # The multipliers of the last step stay feasible, and their w has been removed (methods A3.7): if their
            # value has reached the cap, so has the optimal value.
            w = problem.combination(alpha)
            if float(problem.targets @ alpha) - 0.5 * float(w @ w) >= cap:
                return None
        solution = minimize_hinge(problem, alpha)
        self.multipliers[k] = solution.alpha
        self.n_iter += solution.n_iter
        if solution.error > _MAX_RELATIVE_ERROR:
            return solution
        # Samples in small units are near the cap from the start; a flat problem has no direction either.
        length = norm(solution.w)
        short = length <= _END_RTOL**0.5 * float(np.sum(solution.alpha)) * self.longest
        return None if length == 0.0 or (solution.dual >= cap and short) else solution

    def _block(self, found: list[tuple[int, HingeSolution]]) -> tuple[Array, Array]:
        """Orthonormal directions of the hyperplanes, leading first, and their dual coefficients."""
        units, betas = [], []
        for k, solution in found:
            length, problem = norm(solution.w), self.problems[k]
            units.append(solution.w / length)
            betas.append(sum_by_index(problem.signs * solution.alpha / length, problem.rows, self.space.A.shape[0]))
        U, B = np.stack(units, axis=1), np.stack(betas, axis=1)
        return _orthonormal(U, B) if len(found) > 1 else (U, B)

    def remove(self, found: tuple[Array, Array, MarginStep]) -> list[Array]:
        """Step 2: the samples in the complement of the directions, (6)."""
        U, betas, step = found
        self.space, Z = self.space.without(U)
        # w_t = sum_i B_it phi(x_i): b_t = beta - B (Z' beta) over the components before this block (methods A2)
        B = betas - self.B @ (self.Z.T @ betas)
        self.B, self.Z = np.concatenate([self.B, B], axis=1), np.concatenate([self.Z, Z], axis=1)
        self.steps.append(step)
        return list(Z.T)


def _coefficients(space: Reflected, W: Array, B: Array, Z: Array) -> Array:
    r"""``B`` with :math:`X^T B = W`, on the samples that have a coefficient.

    Rounding grows in the recursion for ``B`` as the normals get short beside their terms. Where ``X X' B`` differs from
    the features ``Z``, ``B`` is solved for again, by least squares with :math:`1^T B = 0`.
    """
    size = float(np.max(np.abs(Z))) if 0 not in Z.shape else 0.0
    if size == 0.0:
        return B
    off = float(np.max(np.abs(space.A @ (space.A.T @ B) - Z)))
    if off <= _MAX_RELATIVE_ERROR * size:
        return B
    rows = np.flatnonzero(np.any(B != 0, axis=1))
    columns = space.A[rows].T
    # the row of ones, in the units of the others
    ones = np.full_like(columns[:1, :], float(np.max(np.abs(columns))))
    target = np.concatenate([space.Q.T @ W, np.zeros_like(W[:1, :])], axis=0)
    found = least_squares(np.concatenate([columns, ones], axis=0), target)
    found = found - np.mean(found, axis=0)
    return np.stack([sum_by_index(found[:, t], rows, int(B.shape[0])) for t in range(int(B.shape[1]))], axis=1)


def _orthonormal(U: Array, B: Array) -> tuple[Array, Array]:
    """Orthonormal basis of the unit columns ``U``, leading first, and the dual coefficients ``B`` in step with it."""
    left, s, right = np.linalg.svd(U, full_matrices=False)
    rank = int(np.count_nonzero(s > _BLOCK_RANK_RTOL * s[0]))
    # the sign of a direction is that of the first problem with the largest share (up to rounding) in it
    size = np.abs(right)
    lead = np.argmax(size >= _EQUAL_SHARE_RATIO * np.max(size, axis=1)[:, None], axis=1)
    turn = np.where(right[np.arange(len(lead)), lead] < 0, -1.0, 1.0)
    left, s = left * turn[None, :], s * turn
    return left[:, :rank], B @ (right[:rank, :].T / s[None, :rank])
