"""Centring by an approximate centre (FVS paper, Appendix A)."""

from __future__ import annotations

from fewkern.backend.namespace import Array, device, namespace, take_rows
from fewkern.core.gram import Centre, Gram

__all__ = ["approximate_centre"]


def approximate_centre(gram: Gram, neighbours: int = 1, rows: Array | None = None) -> Centre:
    r"""The ``neighbours`` samples whose images lie nearest to the mean image, equally weighted.

    The distance of image :math:`j` to the mean is, up to a constant,
    :math:`k_{jj} - \tfrac{2}{N}\sum_i k_{ij}`; the mean may be taken over some ``rows`` only. One neighbour costs one
    more kernel at prediction.
    """
    xp = namespace(gram.diag)
    distance = gram.diag - 2.0 * gram.mean_columns(rows)
    nearest = xp.argsort(distance, stable=True)[:neighbours]
    weights = xp.full((neighbours,), 1.0 / neighbours, dtype=gram.diag.dtype, device=device(gram.diag))
    row = gram.columns(nearest) @ weights
    return Centre(nearest, weights, row, float(xp.sum(take_rows(row, nearest) * weights)))
