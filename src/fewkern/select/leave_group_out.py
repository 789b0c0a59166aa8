r"""Leave whole groups out, in closed form: what leave-one-out is for samples that come one by one.

With the orthogonal ``Q`` of :mod:`fewkern.select.leave_one_out` and ``t = Q'y``, the residuals of a group ``g`` by the
model without it are ``e = (I - Q_g Q_g')^{-1} (y_g - Q_g t)``. From one column of ``Q`` to the next, with ``M`` the
inverse, ``q`` the new column on the group and ``u = M q``,

.. math:: d = 1 - q^T u, \qquad e \leftarrow e + u\,(q^T e - t_l) / d, \qquad M \leftarrow M + u u^T / d

so that all sizes of a path cost ``s^2`` per column for a group of ``s`` samples. The group is turned first, so that it
has no more rows than columns: with ``Q_g = U T``, the rows of ``T`` and ``U'y`` take its place, and ``y - U U'y`` stays
as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fewkern.arrays.linalg import class_sums
from fewkern.arrays.namespace import Array, asarray_like, device, eps, namespace, take_rows, to_numpy


@dataclass(frozen=True)
class Block:
    """Groups of similar size, filled up to the same one."""

    ids: Array
    """Numbers of the groups, shape ``(b,)``."""
    rows: Array
    """Samples of every group, shape ``(b * s,)``; what fills up is sample 0."""
    mask: Array
    """Shape ``(b, s)``: one for a sample, zero for what fills up."""

    def take(self, A: Array) -> Array:
        """The rows of ``A`` that belong to the groups, shape ``(b, s, columns)``; zero for what fills up."""
        b, s = self.mask.shape
        found = namespace(A).reshape(take_rows(A, self.rows), (b, s, A.shape[1]))
        return found * namespace(A).astype(self.mask, A.dtype)[:, :, None]


@dataclass(frozen=True)
class GroupBlocks:
    """Samples by their groups, in blocks of groups of similar size."""

    groups: Array
    """Group of every sample: ``0`` to ``n_groups - 1``, all of them there."""
    n_groups: int
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, groups: Array) -> GroupBlocks:
        """Of whole numbers, equal for samples of one group."""
        members: dict[int, list[int]] = {}
        for i, g in enumerate(to_numpy(groups).tolist()):
            members.setdefault(int(g), []).append(i)
        number = {g: k for k, g in enumerate(sorted(members))}
        by_size: dict[int, list[int]] = {}
        for g, rows in members.items():
            # up to the next power of two: at most half of a block is padding
            by_size.setdefault((len(rows) - 1).bit_length(), []).append(g)
        xp = namespace(groups)
        blocks = []
        for same in by_size.values():
            size = max(len(members[g]) for g in same)
            padded = [members[g] + [0] * (size - len(members[g])) for g in same]
            masks = [[1.0] * len(members[g]) + [0.0] * (size - len(members[g])) for g in same]
            rows = asarray_like([i for one in padded for i in one], groups, dtype=xp.int64)
            ids = asarray_like([number[g] for g in same], groups, dtype=xp.int64)
            blocks.append(Block(ids, rows, asarray_like(masks, groups, dtype=xp.float64)))
        codes = asarray_like([number[int(g)] for g in to_numpy(groups).tolist()], groups, dtype=xp.int64)
        return cls(codes, len(number), tuple(blocks))

    def sums(self, A: Array) -> Array:
        """Sums of the rows of ``A`` over every group."""
        return class_sums(A, self.groups, self.n_groups)

    def per_sample(self, A: Array) -> Array:
        """The row of ``A`` that belongs to the group of every sample."""
        return take_rows(A, self.groups)

    def one_per_group(self, A: Array) -> Array:
        """The row of ``A`` of one sample of every group."""
        xp = namespace(A)
        firsts = xp.concat([xp.reshape(b.rows, b.mask.shape)[:, 0] for b in self.blocks])
        order = xp.argsort(xp.concat([b.ids for b in self.blocks]))
        return take_rows(A, take_rows(firsts, order))


def group_errors(Q: Array, Y: Array, groups: GroupBlocks) -> Array:
    """Squared residuals, summed over every group and the outputs, on the leading columns: ``(n_groups, columns)``.

    Parameters
    ----------
    Q : array of shape (n, columns)
        Of the weighted problem; the first column is that of the constant.
    Y : array of shape (n, q)
        Targets times the roots of the weights.
    groups : GroupBlocks
    """
    xp, found = namespace(Q), []
    for _, _, outside, inside in _by_block(Q, Y, groups):
        errors = [xp.sum(e * e, axis=(1, 2)) for e, _ in inside]
        found.append(xp.stack(errors, axis=1) + xp.sum(outside * outside, axis=(1, 2))[:, None])
    order = xp.argsort(xp.concat([block.ids for block in groups.blocks]))
    return take_rows(xp.concat(found, axis=0), order)


def group_residuals(Q: Array, Y: Array, groups: GroupBlocks) -> tuple[Array, Array]:
    """Residuals ``(n, q)`` of the samples by the model without their group, and where there is no such model.

    That is where a column of ``Q`` is determined by one group alone.
    """
    xp = namespace(Q)
    residuals, alones, rows = [], [], []
    for block, U, outside, inside in _by_block(Q, Y, groups):
        *_, (e, alone) = inside
        flat = xp.reshape(outside + xp.matmul(U, e), (-1, Y.shape[1]))
        kept = xp.nonzero(xp.reshape(block.mask, (-1,)))[0]
        residuals.append(take_rows(flat, kept))
        alones.append(take_rows(xp.reshape(alone[:, None] & (block.mask > 0), (-1,)), kept))
        rows.append(take_rows(block.rows, kept))
    order = xp.argsort(xp.concat(rows))
    return take_rows(xp.concat(residuals, axis=0), order), take_rows(xp.concat(alones), order)


def _by_block(Q: Array, Y: Array, groups: GroupBlocks) -> Iterator[tuple[Block, Array, Array, Iterator[Any]]]:
    """Of every block, turned by ``U`` with ``Q_g = U T``: ``y - U U'y``, and the residuals of ``U'y`` by column."""
    xp, t = namespace(Q), Q.T @ Y
    for block in groups.blocks:
        own = block.take(Y)
        U, T = xp.linalg.qr(block.take(Q), mode="reduced")
        inner = xp.matmul(xp.matrix_transpose(U), own)
        yield block, U, own - xp.matmul(U, inner), _leave_out(T, inner, t)


def _leave_out(Q: Array, Y: Array, t: Array) -> Iterator[tuple[Array, Array]]:
    """Residuals ``(b, s, q)`` after every column, and the groups (so far) that alone determine a column.

    Those groups are predicted by the constant from there on.
    """
    xp, (b, s, columns) = namespace(Q), Q.shape
    M = xp.zeros((b, s, s), dtype=Q.dtype, device=device(Q)) + xp.eye(s, dtype=Q.dtype, device=device(Q))
    alone = xp.zeros((b,), dtype=xp.bool, device=device(Q))
    e = by_constant = Y
    for column in range(columns):
        q = Q[:, :, column]
        u = xp.matmul(M, q[:, :, None])[:, :, 0]
        d = 1.0 - xp.sum(q * u, axis=1)
        alone = alone | (d <= 1e3 * eps(Q))
        d = xp.where(alone, xp.ones_like(d), d)
        u = xp.where(alone[:, None], xp.zeros_like(u), u)
        step = (xp.matmul(q[:, None, :], e)[:, 0, :] - t[column, :][None, :]) / d[:, None]
        e = xp.where(alone[:, None, None], by_constant, e + u[:, :, None] * step[:, None, :])
        M = M + u[:, :, None] * (u / d[:, None])[:, None, :]
        if column == 0:
            by_constant = e
        yield e, alone
