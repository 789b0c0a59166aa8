r"""Recursive support vector machines: orthogonal directions of maximum margin (RSVM; methods part A)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fewkern.backend.linalg import least_squares, sum_by_index
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.storable import storable
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.margins.hinge import HingeSolution, hinge_at_zero, minimize_hinge
from fewkern.margins.spaces import Reflected, Space

__all__ = ["MarginBlock", "MarginDirections", "MarginProblem", "class_problems", "recursive_margin", "tube_problem"]

# Singular values below this part of the largest one are dropped from a block of directions (methods A7).
BLOCK_RANK = 1e-3
# A hyperplane with a larger relative error than this is not one.
SOLVED = 1e-5


@dataclass(frozen=True)
class MarginProblem:
    r"""One hyperplane: :math:`\min \frac12 |w|^2 + \sum_k C_k (h_k - s_k (\langle w, x_{r_k} \rangle + b))_+`.

    ``rows`` names the samples of the terms; a sample may occur twice (regression) or not at all (one class against
    one).
    """

    rows: Array
    signs: Array
    targets: Array
    C: Array

    def cap(self) -> float:
        """Value at ``w = 0``, which no step exceeds (methods A3.3)."""
        return hinge_at_zero(self.signs, self.targets, self.C)


def class_problems(codes: Array, n_classes: int, C: Array, strategy: str = "ovr") -> list[MarginProblem]:
    """Two classes against each other (one problem), each against the rest ("ovr"), or all pairs ("ovo").

    Parameters
    ----------
    codes : integer array of shape (n,)
        Classes as 0, 1, ...
    n_classes : int
    C : array of shape (n,)
        Box constants; samples with 0 are left out.
    strategy : {"ovr", "ovo"}
        Read only with three classes or more.
    """
    xp = namespace(C)
    if n_classes == 2:
        pairs: list[tuple[int, int | None]] = [(1, 0)]
    elif strategy == "ovr":
        pairs = [(k, None) for k in range(n_classes)]
    else:
        pairs = [(k, j) for k in range(n_classes) for j in range(k)]
    problems = []
    for up, down in pairs:
        taking_part = C > 0 if down is None else (C > 0) & ((codes == up) | (codes == down))
        rows = xp.nonzero(taking_part)[0]
        box = take_rows(C, rows)
        signs = xp.where(take_rows(codes, rows) == up, xp.ones_like(box), -xp.ones_like(box))
        problems.append(MarginProblem(rows, signs, xp.ones_like(box), box))
    return problems


def tube_problem(y: Array, C: Array, epsilon: float) -> MarginProblem:
    """Epsilon-insensitive regression as hinges: every sample pushes from above and from below (methods A7)."""
    xp = namespace(C)
    rows = xp.nonzero(C > 0)[0]
    y, C = take_rows(y, rows), take_rows(C, rows)
    one = xp.ones_like(C)
    return MarginProblem(
        xp.concat([rows, rows]),
        xp.concat([one, -one]),
        xp.concat([y - epsilon, -y - epsilon]),
        xp.concat([C, C]),
    )


@storable
@dataclass(frozen=True)
class MarginBlock:
    """One step of the recursion: the directions taken out together and the problems that gave them."""

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
    blocks: tuple[MarginBlock, ...]
    caps: tuple[float, ...]
    stop: str
    """ "flat" (no margin direction is left), "rank", "eps", "limit", or "precision" (a box constant so large that the
    next step, which is never separable, cannot be solved in this arithmetic)."""


@dataclass(frozen=True)
class _Found:
    U: Array
    betas: Array
    block: MarginBlock


@dataclass(frozen=True)
class _Record:
    w: Array
    b: Array
    z: Array


def recursive_margin(
    space: Space,
    problems: Sequence[MarginProblem],
    n: int,
    *,
    max_components: int | None = None,
    block_size: int | None = None,
    eps: float = 1e-6,
    flat_tol: float = 1e-6,
    tol: float = 1e-9,
    max_iter: int = 100,
) -> MarginDirections:
    r"""Directions of maximum margin, each in the complement of those before (methods A4).

    Step ``t`` solves, for every problem,

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i (1 - y_i (\langle w, \phi_t(x_i) \rangle + b))_+ , \qquad
        \tilde w_t = \sum_i \alpha_i y_i \phi_t(x_i), \quad w_t = \tilde w_t / \|\tilde w_t\|, \qquad
        \phi_{t+1}(x) = \phi_t(x) - \langle \phi_t(x), w_t \rangle w_t .

    Several problems (many classes) give a block: their unit directions are orthonormalised by a singular value
    decomposition and taken out together.

    Parameters
    ----------
    space : Space
        Centred samples; the bias makes the problem blind to a shift, and only centred samples can ever fade
        (methods A2).
    problems : sequence of MarginProblem
    n : int
        Number of samples.
    max_components : int or None
    block_size : int or None
        Most directions to take from one block, leading singular vectors first.
    eps : float
        Stop when no sample that is left is longer than this part of the longest one.
    flat_tol : float
        A problem whose value has come this near to its cap has no direction left.
    tol, max_iter
        Of the interior point. ``tol`` must be far below ``flat_tol``, or noise is returned as directions.

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
    xp = namespace(space.like)
    caps = tuple(problem.cap() for problem in problems)
    # a cap of zero: every hinge is content with a bias alone (a constant target inside its tube)
    alive = [k for k, cap in enumerate(caps) if cap > 0.0]
    longest = space.largest_norm()
    blocks: list[MarginBlock] = []
    state = {"space": space}
    zero = xp.zeros((n, 0), dtype=space.like.dtype, device=device(space.like))
    so_far = {"B": zero, "Z": zero}
    last: dict[int, Array] = {}
    full = space.dimension
    limit = full + 1 if max_components is None or max_components > full else max_components

    def solve(k: int) -> HingeSolution | None:
        """The next hyperplane of a problem; None where it has none (flat stop, methods A3.4)."""
        problem, cap = problems[k], (1.0 - flat_tol) * caps[k]
        own = state["space"].subset(problem.rows)
        signs, alpha = problem.signs, last.get(k)
        if alpha is not None:
            # Multipliers of the last step stay feasible, and their w is taken out (methods A3.7): where their value has
            # reached the cap, so has the optimal one.
            w = own.transposed_times(signs * alpha)
            if float(problem.targets @ alpha) - 0.5 * float(w @ w) >= cap:
                return None
        solution = minimize_hinge(own, signs, problem.targets, problem.C, start=alpha, tol=tol, max_iter=max_iter)
        last[k] = solution.alpha
        # Samples in small units are near the cap from the start; a flat problem has no direction either.
        length = float(xp.linalg.vector_norm(solution.w))
        short = length <= flat_tol**0.5 * float(xp.sum(solution.alpha)) * longest
        return None if length == 0.0 or (solution.dual >= cap and short) else solution

    def find(count: int) -> _Found | Stop:
        left = state["space"]
        if left.dimension == 0:
            return Stop("rank")
        # Paper: an absolute bound. We: relative to the longest sample, because features have units; with a Gaussian
        # kernel it is the same.
        if left.largest_norm() <= eps * longest:
            return Stop("eps")
        found, units, betas = [], [], []
        for k in list(alive):
            solution = solve(k)
            if solution is None:
                alive.remove(k)  # nothing brings a flat problem back
                continue
            if solution.error > SOLVED:
                return Stop("precision")
            length = float(xp.linalg.vector_norm(solution.w))
            found.append((k, solution))
            units.append(solution.w / length)
            betas.append(sum_by_index(problems[k].signs * solution.alpha / length, problems[k].rows, n))
        if not found:
            return Stop("flat")
        U, B = xp.stack(units, axis=1), xp.stack(betas, axis=1)
        if len(found) > 1:
            U, B = _orthonormal(U, B)
        room = min(limit - count, left.dimension, block_size or len(found))
        U, B = U[:, :room], B[:, :room]
        block = MarginBlock(
            problems=tuple(k for k, _ in found),
            objectives=tuple(s.primal for _, s in found),
            squared_norms=tuple(float(s.w @ s.w) for _, s in found),
            biases=tuple(s.bias for _, s in found),
            iterations=tuple(s.n_iter for _, s in found),
            size=int(U.shape[1]),
        )
        return _Found(U, B, block)

    def remove(found: _Found) -> list[_Record]:
        state["space"], W, Z = state["space"].without(found.U)
        # w_t = sum_i B_it phi(x_i): b_t = beta - B (Z' beta) over the components before this block (methods A2)
        B = found.betas - so_far["B"] @ (so_far["Z"].T @ found.betas)
        so_far["B"] = xp.concat([so_far["B"], B], axis=1)
        so_far["Z"] = xp.concat([so_far["Z"], Z], axis=1)
        blocks.append(found.block)
        return [_Record(W[:, j], B[:, j], Z[:, j]) for j in range(found.block.size)]

    peeled = peel(find, remove, limit)
    W = (
        xp.stack([r.w for r in peeled.records], axis=1)
        if peeled.records
        else xp.zeros((space.coordinates, 0), dtype=space.like.dtype, device=device(space.like))
    )
    B = _coefficients(space, W, so_far["B"], so_far["Z"])
    return MarginDirections(W, B, so_far["Z"], tuple(blocks), caps, peeled.stop)


def _coefficients(space: Space, W: Array, B: Array, Z: Array) -> Array:
    r"""``B`` with :math:`X^T B = W`, on the samples that have a coefficient.

    Rounding grows in the recursion for ``B`` as the normals get short beside their terms. Where ``X X' B`` is not the
    features ``Z`` any more, ``B`` is found again from the directions, by least squares with :math:`1^T B = 0`.
    """
    xp = namespace(W)
    size = float(xp.max(xp.abs(Z))) if 0 not in Z.shape else 0.0
    if size == 0.0:
        return B
    off = float(xp.max(xp.abs(space.times(space.transposed_times(B)) - Z)))
    # under constraints the samples are sparse and the kernel is linear: nobody needs coefficients there
    if off <= SOLVED * size or not isinstance(space, Reflected):
        return B
    rows = xp.nonzero(xp.any(B != 0, axis=1))[0]
    columns = take_rows(space.A, rows).T
    # the row of ones in the units of the others, so that it counts as much
    ones = xp.full_like(columns[:1, :], float(xp.max(xp.abs(columns))))
    target = xp.concat([space.Q.T @ W, xp.zeros_like(W[:1, :])], axis=0)
    found = least_squares(xp.concat([columns, ones], axis=0), target)
    found = found - xp.mean(found, axis=0)
    return xp.stack([sum_by_index(found[:, t], rows, int(B.shape[0])) for t in range(int(B.shape[1]))], axis=1)


def _orthonormal(U: Array, B: Array) -> tuple[Array, Array]:
    """Orthonormal basis of the unit columns ``U``, leading first, and the dual coefficients ``B`` in step with it."""
    xp = namespace(U)
    left, s, right = xp.linalg.svd(U, full_matrices=False)
    rank = int(xp.sum(xp.astype(s > BLOCK_RANK * s[0], xp.int64)))
    # Signs: the first problem with the largest share (up to rounding) in a direction keeps its own.
    size = xp.abs(right)
    lead = xp.argmax(xp.astype(size >= 0.999 * xp.max(size, axis=1)[:, None], xp.int64), axis=1)
    signs = [-1.0 if float(right[k, int(lead[k])]) < 0 else 1.0 for k in range(right.shape[0])]
    turn = asarray_like(signs, U, dtype=U.dtype)
    left, s = left * turn[None, :], s * turn
    return left[:, :rank], B @ (right[:rank, :].T / s[None, :rank])
