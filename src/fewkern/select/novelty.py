"""Novelty of the training samples, each without its own help: what is usual for a sample of the same kind."""

from __future__ import annotations

from fewkern.arrays.linalg import inverse_psd, solve_triangular
from fewkern.arrays.namespace import Array, device, namespace, put, take_rows, to_numpy
from fewkern.core.basis import KernelBasis, share_left
from fewkern.core.conformal import HeldOutScores
from fewkern.core.novelty import Novelty
from fewkern.core.samples import Samples
from fewkern.select.residual import Selection

__all__ = ["LEAST_VECTORS", "familiar_basis", "left_out_residual", "novelty_of"]

# Vectors for the novelty, where the selection has them: three vectors ignore most of what could be new about a sample.
# From 20 on, more hardly matter.
LEAST_VECTORS = 20


def familiar_basis(selection: Selection, n_vectors: int) -> KernelBasis:
    """On the first ``n_vectors`` chosen samples, or ``LEAST_VECTORS`` of them if those are fewer."""
    return selection.basis().head(max(n_vectors, min(LEAST_VECTORS, selection.n_vectors)))


def novelty_of(samples: Samples, selection: Selection, own: KernelBasis) -> Novelty:
    """On the vectors of a model, ``own``, which begin the selection, or on more of it where those are few."""
    basis = familiar_basis(selection, own.n_vectors)
    left = left_out_residual(selection, basis.n_vectors, samples.groups)
    diag = selection.gram.diag
    scores = HeldOutScores.of(share_left(diag, diag - left), samples.weights, samples.groups)
    return Novelty(own if own.n_vectors == basis.n_vectors else samples.original(basis), scores)


def left_out_residual(selection: Selection, n_vectors: int, groups: Array | None = None) -> Array:
    r"""Squared distance of every image to the span of the first vectors, those of the own group left out.

    With :math:`P = K_{SS}^{-1}` and the coefficients :math:`u = P k_S(x)`, taking the vectors ``g`` out adds
    :math:`u_g^T P_{gg}^{-1} u_g` to the residual. Without groups only the vectors are concerned: the residual of vector
    ``j`` by the others is :math:`1 / P_{jj}`.
    """
    Z, S = selection.G[:, :n_vectors], selection.indices[:n_vectors]
    xp = namespace(Z)
    residual = selection.gram.diag - xp.sum(Z * Z, axis=1)
    if n_vectors == 0:
        return residual
    factor = selection.factor[:n_vectors, :n_vectors]
    inverse = solve_triangular(factor, xp.eye(n_vectors, dtype=Z.dtype, device=device(Z)))
    if groups is None:
        put(residual, (S,), 1.0 / xp.sum(inverse * inverse, axis=0))
        return residual
    P, U = inverse.T @ inverse, Z @ inverse
    owners = take_rows(groups, S)
    for group in dict.fromkeys(to_numpy(owners).tolist()):
        own, rows = xp.nonzero(owners == group)[0], xp.nonzero(groups == group)[0]
        part = xp.take(take_rows(U, rows), own, axis=1)
        block = inverse_psd(xp.take(take_rows(P, own), own, axis=1))
        put(residual, (rows,), take_rows(residual, rows) + xp.sum((part @ block) * part, axis=1))
    return residual
