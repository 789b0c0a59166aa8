"""The kernel matrix with chosen samples taken out, which every rule of selection looks at and changes."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import divide_where, solve_triangular, subtract_product
from fewkern.arrays.namespace import Array, asarray_like, device, eps, namespace, put, take_rows, to_numpy
from fewkern.core.expansion import KernelBasis, Projection
from fewkern.core.kernel import Gram
from fewkern.core.path import Stop

# Samples with k(x, x) below this share of the largest are zero vectors: no candidates, and not in the mean fitness.
_ZERO_DIAGONAL_SHARE = 1e-14
# Relative residual at which a sample depends on the chosen ones, in double and in single precision.
_BASIS_TOL, _BASIS_TOL_SINGLE = 1e-10, 1e-5
# A residual may fall this far below zero, as a share of k(x, x), before the kernel counts as indefinite.
_INDEFINITE_SHARE = 1e-8


@dataclass(frozen=True)
class Selection:
    """Chosen samples and the factor that goes with them: ``K ~ G G'``, ``K[S, S] = C C'`` with ``C = G[S]``."""

    gram: Gram
    """The kernel matrix that was looked at."""
    indices: Array
    """Chosen samples ``S``, in the order of their choice."""
    G: Array
    """Shape ``(n, L)``: the nested features (10') of all samples."""
    fitness: Array
    """Global fitness ``J_S``, eq. (7a), after every step."""
    residual: Array
    """``r_i = k_ii - |g_i|^2``, the squared distance of every image to the span of the chosen ones."""
    stop: Stop
    """LIMIT, FITNESS or RANK."""

    @property
    def n_vectors(self) -> int:
        """Number of chosen samples."""
        return int(self.indices.shape[0])

    @property
    def factor(self) -> Array:
        """Lower triangular ``C`` with ``K[S, S] = C C'``."""
        return namespace(self.G).tril(take_rows(self.G, self.indices))

    def basis(self, projection: Projection = "nested") -> KernelBasis:
        """The basis on the chosen samples."""
        return KernelBasis.from_selection(self.gram, self.indices, self.factor, projection)


@dataclass(frozen=True)
class Pivots:
    """A block of samples to remove, in order, and the Cholesky factor of their residual matrix."""

    samples: list[int]
    factor: Array
    panel: Array | None = None
    """Their columns of ``G``, where the search for them has computed these already."""

    def head(self, count: int) -> Pivots:
        """The first ``count`` of them."""
        if count >= len(self.samples):
            return self
        return Pivots(self.samples[:count], self.factor[:count, :count])


class Residual:
    """The kernel matrix with the chosen vectors taken out: ``R = K - G G'``, kept as its diagonal and ``G``."""

    def __init__(self, gram: Gram, weights: Array | None, capacity: int, start: Selection | None) -> None:
        d = gram.diag
        self.gram, self.xp, self.d = gram, namespace(d), d
        self.basis_tol = _BASIS_TOL_SINGLE if eps(d) > _BASIS_TOL else _BASIS_TOL
        xp = self.xp
        self._refuse_bad_diagonal()
        self.valid = d > _ZERO_DIAGONAL_SHARE * xp.max(d)
        w = xp.ones_like(d) if weights is None else weights
        w = xp.where(self.valid, w, xp.zeros_like(w))
        self.valid = self.valid & (w > 0)
        total = float(xp.sum(w))
        self.weight = w / total if total > 0 else w
        # divided by the diagonal once, so that scores and fitness are products
        self.inverse = divide_where(self.valid, xp.ones_like(d), d, 0.0)
        self.G = xp.empty((gram.n, max(capacity, 1)), dtype=d.dtype, device=device(d))
        self.chosen: list[int] = []
        self.r, self.J = xp.where(self.valid, d, xp.zeros_like(d)), 0.0
        if start is not None:
            self._reserve(start.n_vectors)
            self.G[:, : start.n_vectors] = start.G
            self.chosen = [int(i) for i in to_numpy(start.indices)]
            self.r, self.J = start.residual, float(start.fitness[-1]) if start.n_vectors else 0.0
        # smallest relative residual that a pivot had: rounding errors of later residuals are divided by it
        at = self.index(self.chosen)
        pivots = xp.linalg.diagonal(take_rows(self.G, at)) ** 2 * take_rows(self.inverse, at)
        self.least = float(xp.min(pivots)) if self.chosen else 1.0

    def _reserve(self, count: int) -> None:
        if count > self.G.shape[1]:
            xp = self.xp
            wider = xp.empty((self.gram.n, max(count, 2 * self.G.shape[1])), dtype=self.d.dtype, device=device(self.d))
            wider[:, : len(self.chosen)] = self.G[:, : len(self.chosen)]
            self.G = wider

    @property
    def score(self) -> Array:
        """``r_i / k_ii``, one minus the local fitness (7b); zero where the sample depends on the chosen ones."""
        return self.alive(self.r * self.inverse)

    def alive(self, score: Array) -> Array:
        """Scores with those of dependent samples set to zero."""
        xp = namespace(score)
        return xp.where(score > self.basis_tol, score, 0.0)

    def index(self, values: list[int]) -> Array:
        """Row numbers as an array beside the samples."""
        return asarray_like(values, self.d, dtype=self.xp.int64)

    def among(self, rows: Array, S: Array) -> Array:
        """``R[rows, S]``, with the exact diagonal where ``rows`` and ``S`` name the same sample."""
        xp, L = self.xp, len(self.chosen)
        R = self.gram.block(rows, S)
        if L:
            R = R - take_rows(self.G, rows)[:, :L] @ take_rows(self.G, S)[:, :L].T
        return xp.where(rows[:, None] == S[None, :], take_rows(self.r, rows)[:, None], R)

    def columns(self, S: Array, at_pivots: Array, rows: slice) -> Array:
        """``R[rows, S]``, given the rows ``S`` of ``G``."""
        R = self.gram.columns(S, rows)
        if self.chosen:
            subtract_product(R, self.G[rows, : len(self.chosen)], at_pivots)
        return R

    def remove(self, found: Pivots) -> list[float]:
        """Take a block of pivots out of every row; returns the fitness after every one of them."""
        xp, L, b = self.xp, len(self.chosen), len(found.samples)
        self._reserve(L + b)
        S = self.index(found.samples)
        at_pivots = take_rows(self.G[:, :L], S)
        gains = xp.zeros((b,), dtype=self.d.dtype, device=device(self.d))
        share = self.weight * self.inverse
        r = xp.empty_like(self.r)
        if found.panel is None:
            # A small triangle whose columns fall below their heads inverts accurately, and a product is all that
            # is left for the many rows.
            inverse = solve_triangular(found.factor, xp.eye(b, dtype=self.d.dtype, device=device(self.d)))
        for rows in row_blocks(self.gram.n, b, like=self.d):
            g = self.columns(S, at_pivots, rows) @ inverse.T if found.panel is None else found.panel[rows, :]
            self.G[rows, L : L + b] = g
            g = g * g
            gains = gains + share[rows] @ g
            r[rows] = self.r[rows] - xp.sum(g, axis=1)
        pivots = xp.linalg.diagonal(found.factor) ** 2 * take_rows(self.inverse, S)
        self.least = min(self.least, float(xp.min(pivots)))
        self._refuse_indefinite(r)
        self.chosen += found.samples
        r = xp.maximum(r, xp.zeros_like(r))
        put(r, (S,), xp.zeros_like(gains))
        self.r = xp.where(self.valid, r, 0.0)
        fitness = []
        for gain in to_numpy(gains):
            self.J = min(self.J + float(gain), 1.0)
            fitness.append(self.J)
        return fitness

    def _refuse_bad_diagonal(self) -> None:
        xp, d = self.xp, self.d
        if not bool(xp.all(xp.isfinite(d))):
            raise ValueError("feature vector selection: the kernel returned values that are not finite.")
        if bool(xp.any(d < -_INDEFINITE_SHARE * xp.max(xp.abs(d)))):
            raise ValueError(
                "feature vector selection: the kernel is not positive semi-definite (a negative k(x, x)); "
                "use a kernel that is."
            )

    def _refuse_indefinite(self, r: Array) -> None:
        xp = self.xp
        if not bool(xp.all(xp.isfinite(r))):
            raise ValueError("feature vector selection: the kernel returned values that are not finite.")
        slack = max(_INDEFINITE_SHARE, 1e3 * eps(r) / max(self.least, self.basis_tol))
        worst = float(xp.min(r * self.inverse))
        if worst < -slack:
            raise ValueError(
                "feature vector selection: the kernel is not positive semi-definite (a residual fell to "
                f"{worst:.2g} of k(x, x)); use a kernel that is."
            )
