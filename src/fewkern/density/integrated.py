r"""Forward selection on the integrated squared error (FCR-ISE).

The paper regresses on Parzen's estimate and can at best return it. Here one kernel at a time enters as in the paper,
in a convex combination with a one-parameter closed form, individual widths and a leave-one-out score, but what falls is

.. math:: Q(g, \sigma) = g'Bg - 2 g'v, \qquad B_{ij} = K(x_{(i)}, x_{(j)}, \sqrt{\sigma_i^2+\sigma_j^2}), \qquad
          v_j(\sigma) = \frac{\sum_{i\ne(j)} w_i K(x_i, x_{(j)}, \sigma)}{1 - w_{(j)}},

an unbiased estimate of the integrated squared error to the true density, up to a constant.

========================== =======================================================================
symbol                     name
========================== =======================================================================
:math:`g, \sigma_j`        ``weights``, ``widths`` of the model
:math:`\omega_q`           ``table_widths``: widths at which a candidate may enter
:math:`V_{cq}`             ``V``: ``v`` of candidate ``c`` at width ``q``
:math:`\langle K_j, \psi_{cq}\rangle`  ``P`` of kernel ``j``
========================== =======================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from fewkern.backend.blocks import row_blocks
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.storable import storable
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.density.mixture import normal_kernel, squared_distances
from fewkern.density.simplex import active_set

__all__ = [
    "IntegratedFit",
    "IntegratedStep",
    "Size",
    "forward_integrated",
    "leave_one_out_terms",
    "one_standard_error",
    "width_table",
]

Size = Literal["loo", "loo-1se", "max"]

_TABLE = (1.25, 1.5, 1.75, 2.0, 2.25, 2.6, 3.0, 3.6, 4.3, 5.2, 6.2, 7.5, 9.0)
_WIDEST = 9.0
_HALF_WIDTHS = (0.15, 0.06, 0.024)
_NO_WEIGHT = 1e-8


@storable
@dataclass(frozen=True)
class IntegratedStep:
    """The model after one step of the path."""

    indices: tuple[int, ...]
    widths: tuple[float, ...]
    weights: tuple[float, ...]
    objective: float
    """:math:`Q`, up to the factor that keeps it in range."""
    loo: float
    """Leave-one-out estimate of :math:`Q`, in the same unit."""
    exchanged: int
    """Kernels that were replaced by a better one in this step."""


@dataclass(frozen=True)
class IntegratedFit:
    """The selected model; ``trace`` holds every step, ``selected`` the number of the one that was taken."""

    indices: Array
    widths: Array
    weights: Array
    trace: tuple[IntegratedStep, ...]
    loo_terms: tuple[Array, ...]
    """Leave-one-out terms of the samples, for every step."""
    selected: int
    stop: str


def width_table(gamma: float, unit: float) -> list[float]:
    """Widths at which a candidate may enter: the floor ``gamma`` and a fixed ladder above it, times ``unit``."""
    return [gamma * unit] + [factor * unit for factor in _TABLE if factor > 1.05 * gamma]


def leave_one_out_terms(Phi: Array, own: Array, B: Array, v: Array, g: Array, w: Array, centre_weights: Array) -> Array:
    r"""Closed-form leave-one-out terms :math:`t_i` of ``Q`` for fixed centres, widths and support.

    .. math:: g^{(-i)} = g + M\, \frac{w_i (v - \varphi_i)}{1 - w_i - w_{(\cdot)}}, \qquad
              t_i = g^{(-i)\prime} B g^{(-i)} - 2 g^{(-i)\prime} \varphi_i,
              \qquad M = B^{-1} - \frac{B^{-1} 1 1' B^{-1}}{1' B^{-1} 1}

    Parameters
    ----------
    Phi : array of shape (n, s)
        Kernels at the samples.
    own : boolean array of shape (n, s)
        Where a sample is the centre; there :math:`\varphi_{ij}` is replaced by :math:`v_j`.
    B, v, g
        Of the model.
    w : array of shape (n,)
        Weights of the samples.
    centre_weights : array of shape (s,)
        Weights of the samples that are the centres.

    Notes
    -----
    The constraint of non-negative weights is not seen: too pessimistic for more than about 30 kernels.
    """
    xp = namespace(Phi)
    Phi = xp.where(own, v[None, :] + xp.zeros_like(Phi), Phi)
    inverse = xp.linalg.pinv(B, rtol=1e-13)
    ones = xp.sum(inverse, axis=1)
    M = inverse - ones[:, None] * ones[None, :] / xp.sum(ones)
    # what is left when both the sample and the centre are taken out; with two samples nothing is
    left = 1.0 - w[:, None] - centre_weights[None, :]
    change = w[:, None] * (v[None, :] - Phi) / xp.where(left > 1e-12, left, xp.full_like(left, math.inf))
    G = g[None, :] + change @ M
    return xp.sum((G @ B) * G, axis=1) - 2.0 * xp.sum(G * Phi, axis=1)


def one_standard_error(terms: list[Array], w: Array) -> int:
    """First of several models whose weighted mean of ``terms`` is within one standard error of the least.

    The error is that of the paired differences to the best model.
    """
    xp = namespace(w)
    means = [float(w @ t) for t in terms]
    best = min(range(len(means)), key=means.__getitem__)
    share = float(xp.sum(w * w))  # 1 / N_eff
    for k in range(best):
        gap = terms[k] - terms[best]
        centred = gap - float(w @ gap)
        error = math.sqrt(float(w @ (centred * centred)) * share)
        if means[k] <= means[best] + error:
            return k
    return best


@dataclass(frozen=True)
class _Kernel:
    """One kernel of the model with all that a step asks of it."""

    candidate: int
    row: int
    width: float
    D: Array
    """Squared distances of the samples to the centre."""
    D_candidates: Array
    P: Array
    """Inner products with every candidate at every table width."""
    v: float


@dataclass
class _Path:
    """The growing model. Only this module writes to it."""

    X: Array
    w: Array
    unit: float
    candidates: Array
    centres: Array
    table_widths: Array
    low: float
    high: float
    V: Array
    own_products: Array
    kernels: list[_Kernel] = field(default_factory=list)
    g: list[float] = field(default_factory=list)

    @property
    def dim(self) -> int:
        return int(self.X.shape[1])

    def number(self, D: float, width: float) -> float:
        """One kernel value, in Python numbers."""
        return (self.unit / width) ** self.dim * math.exp(-0.5 * D / width**2)

    def products(self, D_candidates: Array, width: float) -> Array:
        spread = (width**2 + self.table_widths**2) ** 0.5
        return normal_kernel(D_candidates[:, None], spread[None, :], self.dim, self.unit)

    def target(self, D: Array, row: int, width: float) -> float:
        """``v`` at one centre and width, the own sample left out."""
        # The own term must go: with it a kernel of width zero gains without bound.
        weight = float(self.w[row])
        total = float(self.w @ normal_kernel(D, width, self.dim, self.unit))
        return (total - weight * self.number(0.0, width)) / (1.0 - weight)

    def kernel(self, candidate: int, width: float, v: float) -> _Kernel:
        xp = namespace(self.X)
        row = int(self.candidates[candidate])
        centre = self.centres[candidate : candidate + 1, :]
        D = squared_distances(self.X, centre)[:, 0]
        D = xp.where(xp.arange(D.shape[0], device=device(D)) == row, xp.zeros_like(D), D)
        D_candidates = squared_distances(self.centres, centre)[:, 0]
        return _Kernel(candidate, row, width, D, D_candidates, self.products(D_candidates, width), v)

    def cross(self, a: _Kernel, b: _Kernel) -> float:
        return self.number(float(a.D_candidates[b.candidate]), math.hypot(a.width, b.width))

    def gram(self, kernels: list[_Kernel]) -> tuple[Array, Array]:
        """``B`` and ``v`` of a model."""
        xp = namespace(self.X)
        widths = asarray_like([k.width for k in kernels], self.X, dtype=self.X.dtype)
        chosen = asarray_like([k.candidate for k in kernels], self.X, dtype=xp.int64)
        D = xp.stack([xp.take(k.D_candidates, chosen) for k in kernels])
        # symmetric to the last bit, with an exact diagonal
        D = xp.where(chosen[:, None] == chosen[None, :], xp.zeros_like(D), (D + D.T) / 2)
        spread = (widths[:, None] ** 2 + widths[None, :] ** 2) ** 0.5
        v = asarray_like([k.v for k in kernels], self.X, dtype=self.X.dtype)
        return normal_kernel(D, spread, self.dim, self.unit), v

    def fitted(self, kernels: list[_Kernel]) -> tuple[list[_Kernel], list[float], float]:
        """Kernels that keep a weight, their weights by the simplex programme, and ``Q``."""
        B, v = self.gram(kernels)
        solution = active_set(B, v)
        pairs = [(k, g) for k, g in zip(kernels, [float(x) for x in solution.weights]) if g > _NO_WEIGHT]
        total = sum(g for _, g in pairs)
        return [k for k, _ in pairs], [g / total for _, g in pairs], 2.0 * solution.objective

    def insertion(self, kernels: list[_Kernel], g: list[float], banned: set[int]) -> tuple[int, int, float]:
        r"""Best candidate and table width of :math:`(1-a) y + a \psi`, and its gain.

        :math:`Q(a) - Q(0) = a^2 A_2 - 2 a A_1`, least at :math:`a = A_1 / A_2`, kept between zero and one.
        """
        xp = namespace(self.X)
        if kernels:
            weights = asarray_like(g, self.X, dtype=self.X.dtype)
            B, v = self.gram(kernels)
            yy, yv = float(weights @ (B @ weights)), float(weights @ v)
            y_psi = xp.zeros_like(self.V)
            for kernel, weight in zip(kernels, g):
                y_psi = y_psi + weight * kernel.P
            A1 = yy - y_psi - (yv - self.V)
            A2 = yy - 2.0 * y_psi + self.own_products[None, :]
            positive = A2 > 1e-14 * self.own_products[None, :]
            a = xp.where(positive, A1 / xp.where(positive, A2, xp.ones_like(A2)), xp.zeros_like(A1))
            a = xp.clip(a, 0.0, 1.0)
            gain = a * a * A2 - 2.0 * a * A1
        else:
            gain = self.own_products[None, :] - 2.0 * self.V
        free = xp.ones((self.V.shape[0],), dtype=xp.bool, device=device(self.V))
        for candidate in banned:
            free = free & (xp.arange(free.shape[0], device=device(self.V)) != candidate)
        gain = xp.where(free[:, None], gain, xp.full_like(gain, math.inf))
        flat = int(xp.argmin(xp.reshape(gain, (-1,))))  # first minimiser in candidate-major order
        candidate, q = divmod(flat, int(gain.shape[1]))
        return candidate, q, float(gain[candidate, q])

    def enter(self, candidate: int, q: int) -> _Kernel:
        return self.kernel(candidate, float(self.table_widths[q]), float(self.V[candidate, q]))

    def tune(self, j: int) -> _Kernel:
        r"""The width of kernel ``j``, the rest fixed: bracket and parabola in :math:`\log\sigma`, never uphill."""
        kernel, share = self.kernels[j], self.g[j]
        rest = [(k, g) for i, (k, g) in enumerate(zip(self.kernels, self.g)) if i != j]
        gaps = [(float(kernel.D_candidates[k.candidate]), k.width, g) for k, g in rest]

        def loss(t: float) -> tuple[float, float]:
            width = math.exp(t)
            v = self.target(kernel.D, kernel.row, width)
            cross = sum(g * self.number(D, math.hypot(width, other)) for D, other, g in gaps)
            return share * self.number(0.0, math.sqrt(2.0) * width) + 2.0 * cross - 2.0 * v, v

        lowest, highest = math.log(self.low), math.log(self.high)
        t = math.log(kernel.width)
        value, v = loss(t)
        for half in _HALF_WIDTHS:
            left, right = max(t - half, lowest), min(t + half, highest)
            trials = {t: (value, v)}
            for s in (left, right):
                if s not in trials:
                    trials[s] = loss(s)
            vertex = _parabola(left, t, right, trials)
            if vertex is not None and vertex not in trials:
                trials[vertex] = loss(vertex)
            t = min(trials, key=lambda s: trials[s][0])
            value, v = trials[t]
        width = min(max(math.exp(t), self.low), self.high)
        return _Kernel(
            kernel.candidate, kernel.row, width, kernel.D, kernel.D_candidates,
            self.products(kernel.D_candidates, width), v,
        )  # fmt: skip

    def exchange(self, objective: float) -> tuple[int, float]:
        """Replace each kernel in turn by the best insertion into the rest, where that lowers ``Q``."""
        count = 0
        for candidate in [k.candidate for k in self.kernels]:
            rest = [k for k in self.kernels if k.candidate != candidate]
            if not rest or len(rest) == len(self.kernels):
                continue
            rest, g, _ = self.fitted(rest)
            entering, q, gain = self.insertion(rest, g, {k.candidate for k in rest})
            if gain >= 0:
                continue
            kernels, g, value = self.fitted([*rest, self.enter(entering, q)])
            if value < objective - 1e-12 * abs(objective):
                self.kernels, self.g, objective = kernels, g, value
                count += 1
        return count, objective

    def loo_terms(self) -> Array:
        xp = namespace(self.X)
        B, v = self.gram(self.kernels)
        g = asarray_like(self.g, self.X, dtype=self.X.dtype)
        widths = asarray_like([k.width for k in self.kernels], self.X, dtype=self.X.dtype)
        rows = asarray_like([k.row for k in self.kernels], self.X, dtype=xp.int64)
        centre_weights = take_rows(self.w, rows)
        parts = []
        for block in row_blocks(int(self.X.shape[0]), len(self.kernels)):
            Phi = normal_kernel(xp.stack([k.D[block] for k in self.kernels], axis=1), widths, self.dim, self.unit)
            numbers = xp.arange(block.start, block.stop, dtype=xp.int64, device=device(self.X))
            own = numbers[:, None] == rows[None, :]
            parts.append(leave_one_out_terms(Phi, own, B, v, g, self.w[block], centre_weights))
        return xp.concat(parts)


def _parabola(left: float, middle: float, right: float, values: dict[float, tuple[float, float]]) -> float | None:
    """Lowest point of the parabola through three points, where it is a minimum inside them."""
    if not left < middle < right:
        return None
    f0, f1, f2 = values[left][0], values[middle][0], values[right][0]
    slope_left, slope_right = (f1 - f0) / (middle - left), (f2 - f1) / (right - middle)
    bend = (slope_right - slope_left) / (right - left)
    if not bend > 0:
        return None
    vertex = (left + middle) / 2 - slope_left / (2 * bend)
    return min(max(vertex, left), right)


def _table(X: Array, w: Array, candidates: Array, widths: list[float], unit: float) -> Array:
    """``v`` of every candidate at every table width, in row blocks: nothing of size n x c is stored."""
    xp = namespace(X)
    m = int(X.shape[1])
    centres = take_rows(X, candidates)
    sums = [xp.zeros((candidates.shape[0],), dtype=X.dtype, device=device(X)) for _ in widths]
    for rows in row_blocks(int(X.shape[0]), int(candidates.shape[0])):
        D = squared_distances(X[rows, :], centres)
        numbers = xp.arange(rows.start, rows.stop, dtype=candidates.dtype, device=device(X))
        D = xp.where(numbers[:, None] == candidates[None, :], xp.zeros_like(D), D)
        for q, width in enumerate(widths):
            sums[q] = sums[q] + w[rows] @ xp.exp(D * (-0.5 / width**2))
    own = take_rows(w, candidates)
    columns = [(unit / width) ** m * (total - own) / (1.0 - own) for width, total in zip(widths, sums)]
    return xp.stack(columns, axis=1)


def forward_integrated(
    X: Array,
    w: Array,
    unit: float,
    candidates: Array,
    *,
    gamma: float = 1.5,
    max_vectors: int = 20,
    patience: int = 5,
    size: Size = "loo",
    steps: int | None = None,
    exchange: bool = True,
) -> IntegratedFit:
    """FCR-ISE: one step inserts a kernel, refits all weights, tunes all widths, exchanges, and scores by leave-one-out.

    Parameters
    ----------
    X : array of shape (n, m)
    w : array of shape (n,)
        Positive, sum one.
    unit : float
        Reference width: that of Parzen's estimate.
    candidates : integer array of shape (c,)
        Rows that may become centres.
    gamma : float
        Least width, in units of ``unit``: the one smoothing parameter.
    max_vectors : int
    patience : int
        The path ends after this many steps without a better leave-one-out score.
    size : "loo", "loo-1se" or "max"
        Which step is taken: least score, the first within one standard error of it, or the last one.
    steps : int or None
        End after this many steps.
    exchange : bool
        Whether kernels are exchanged.

    Notes
    -----
    Table ``O(n c G m)`` once; a step ``O(c G s + n s)`` and the exchange ``O(c G s^2)``. Memory ``O(c G s + n s)``.
    """
    xp = namespace(X)
    widths = width_table(gamma, unit)
    table_widths = asarray_like(widths, X, dtype=X.dtype)
    path = _Path(
        X,
        w,
        unit,
        candidates,
        take_rows(X, candidates),
        table_widths,
        low=gamma * unit,
        high=max(_WIDEST, gamma) * unit,
        V=_table(X, w, candidates, widths, unit),
        own_products=normal_kernel(xp.zeros_like(table_widths), math.sqrt(2.0) * table_widths, int(X.shape[1]), unit),
    )
    best, since = math.inf, 0
    all_terms: list[Array] = []

    def find(count: int) -> tuple[int, int] | Stop:
        # "max" means a number of kernels, which leave-one-out has no say in
        if size != "max" and since >= patience:
            return Stop("leave-one-out score no longer falls")
        if len(path.kernels) >= max_vectors:
            return Stop("limit")
        candidate, q, gain = path.insertion(path.kernels, path.g, {k.candidate for k in path.kernels})
        if count and not gain < 0:
            return Stop("no candidate lowers the error")
        return candidate, q

    def remove(found: tuple[int, int]) -> list[IntegratedStep]:
        nonlocal best, since
        path.kernels, path.g, _ = path.fitted([*path.kernels, path.enter(*found)])
        for j in range(len(path.kernels)):
            path.kernels[j] = path.tune(j)
        path.kernels, path.g, objective = path.fitted(path.kernels)
        exchanged, objective = path.exchange(objective) if exchange else (0, objective)
        terms = path.loo_terms()
        all_terms.append(terms)
        loo = float(w @ terms)
        best, since = (loo, 0) if loo < best else (best, since + 1)
        return [
            IntegratedStep(
                tuple(k.row for k in path.kernels),
                tuple(k.width for k in path.kernels),
                tuple(path.g),
                objective,
                loo,
                exchanged,
            )
        ]

    # kernels may leave again, so there can be more steps than kernels
    peeled = peel(find, remove, 3 * max_vectors if steps is None else steps)
    trace = peeled.records
    if size == "max":
        selected = len(trace) - 1
    elif size == "loo":
        selected = min(range(len(trace)), key=lambda k: trace[k].loo)
    else:
        selected = one_standard_error(all_terms, w)
    step = trace[selected]
    return IntegratedFit(
        asarray_like(step.indices, candidates, dtype=candidates.dtype),
        asarray_like(step.widths, X, dtype=X.dtype),
        asarray_like(step.weights, X, dtype=X.dtype),
        trace,
        tuple(all_terms),
        selected,
        peeled.stop,
    )
