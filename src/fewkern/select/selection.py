"""Feature vector selection (FVS paper, sec. 2) as pivoted Cholesky factorization.

The paper's rule "add the sample of lowest local fitness" is complete pivoting with score ``r_i / k_ii``, ``r`` the
residual diagonal, so the recursion of its Appendix C, which loses its digits after a hundred vectors, is not needed.
The rules (:mod:`fewkern.select.rules`) differ only in how they find the next block of pivots; removing them is one
product and one triangular solve for all samples, whatever the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fewkern.arrays.namespace import Array, asarray_like, device, namespace, take_rows, to_numpy
from fewkern.arrays.sampling import random_generator
from fewkern.core.expansion import KernelBasis, Projection
from fewkern.core.kernel import Center, Gram, Kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.select.rules import MEAN_ROWS, RULES, Pivots, Residual


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
class SelectionRule:
    """How vectors are chosen."""

    rule: str = "gain"
    """A name in :data:`fewkern.select.rules.RULES`."""
    center: int = 0
    """Number of samples nearest to the mean image at which images are centered (FVS, Appendix A); 0 is no centering."""
    max_fitness: float = 1.0
    """Stop once the global fitness :math:`J_S` (7a) reaches it."""
    seed: int = 0
    """Seed of the draws. "greedy" draws only above 5000 samples."""


def select_vectors(
    gram: Gram,
    how: SelectionRule,
    limit: int,
    weights: Array | None = None,
    start: Selection | None = None,
    step: Callable[[int], None] = lambda _: None,
) -> Selection:
    """Choose samples whose images span the images of all, best first.

    Parameters
    ----------
    gram : Gram
    how : SelectionRule
    limit : int
        Largest number of vectors.
    weights : array of shape (n,) or None
        Weights in the mean fitness and in the draws; a sample of weight zero is never chosen.
    start : Selection or None
        Go on from an earlier selection on the same ``gram``.
    step : callable
        Called with the number of vectors after every block.

    Returns
    -------
    Selection

    Notes
    -----
    ``n L`` kernel evaluations, ``n L^2`` flops in BLAS-3, memory ``n (L + 64)`` numbers. "greedy" needs ``n^2`` more
    kernel evaluations for its first vector up to 5000 samples, "gain" five times more up to 2000.
    """
    asked, limit = limit, min(limit, gram.n)
    # without a limit columns are reserved as they are needed
    state = Residual(gram, weights, limit if limit < gram.n else 1)
    fitness: list[float] = []
    if start is not None and start.n_vectors:
        fitness += state.remove(Pivots(to_numpy(start.indices).tolist(), start.factor, start.G))
    begun = len(state.chosen)
    # a continuation must not see the numbers again that chose what it starts from
    rng = random_generator([how.seed, begun] if begun else how.seed)
    rule = RULES[how.rule](state, rng)
    enough = how.max_fitness if how.max_fitness < 1 else math.inf  # a fitness of one is the rank, up to rounding
    stop = Stop.LIMIT
    while len(state.chosen) < limit and state.J < enough:
        if not bool(state.xp.any(state.score > 0)):
            stop = Stop.RANK
            break
        # A block is cut at the limit, so that the draws do not depend on it.
        fitness += state.remove(rule.block().head(limit - len(state.chosen)))
        step(len(state.chosen))
    # Paper: stops at the first fitness that is high enough. We: take a block, then cut it there.
    high = next((i + 1 for i, J in enumerate(fitness) if J >= enough), None)
    if high is not None:
        stop = Stop.FITNESS
    elif stop == Stop.LIMIT and limit < asked:  # every sample is chosen
        stop = Stop.RANK
    kept = len(fitness) if high is None else high
    return Selection(
        gram,
        state.index(state.chosen[:kept]),
        state.G[:, :kept],
        asarray_like(fitness[:kept], state.d, dtype=state.d.dtype),
        stop,
    )


def choose_basis(
    samples: Samples,
    kernel: Kernel,
    how: SelectionRule,
    limit: int | None,
    step: Callable[[int], None] = lambda _: None,
) -> Selection:
    """Choose the vectors of a basis; every method gets its basis from here.

    Parameters
    ----------
    samples : Samples
    kernel : Kernel
        Resolved: every parameter a number.
    how : SelectionRule
    limit : int or None
        Largest number of vectors; None is the numerical rank.
    step : callable
        Called with the number of vectors after every block.
    """
    gram = centered_gram(samples, kernel, how)
    return select_vectors(gram, how, gram.n if limit is None else limit, samples.weights, step=step)


def centered_gram(samples: Samples, kernel: Kernel, how: SelectionRule) -> Gram:
    """The kernel matrix, centered at the ``how.center`` samples nearest to the mean image (0: not)."""
    gram = Gram(kernel, samples.X)
    if not how.center:
        return gram
    rows = None
    if gram.n > MEAN_ROWS:
        drawn = sorted(int(i) for i in random_generator(how.seed).choice(gram.n, MEAN_ROWS, replace=False))
        rows = asarray_like(drawn, gram.diag, dtype=namespace(gram.diag).int64)
    return Gram(kernel, samples.X, approximate_center(gram, min(how.center, gram.n), rows))


def approximate_center(gram: Gram, neighbors: int = 1, rows: Array | None = None) -> Center:
    r"""The ``neighbors`` samples whose images lie nearest to the mean image, equally weighted (FVS, Appendix A).

    The distance of image :math:`j` to the mean is, up to a constant,
    :math:`k_{jj} - \tfrac{2}{N}\sum_i k_{ij}`; the mean may be taken over some ``rows`` only. One neighbor costs one
    more kernel evaluation per prediction.
    """
    xp = namespace(gram.diag)
    distance = gram.diag - 2.0 * gram.mean_columns(rows)
    nearest = xp.argsort(distance, stable=True)[:neighbors]
    weights = xp.full((neighbors,), 1.0 / neighbors, dtype=gram.diag.dtype, device=device(gram.diag))
    row = gram.columns(nearest) @ weights
    return Center(nearest, weights, row, float(xp.sum(take_rows(row, nearest) * weights)))
