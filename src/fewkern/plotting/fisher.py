"""The regularization path of a sparse kernel Fisher discriminant."""

from __future__ import annotations

from typing import Any

from fewkern.plotting.style import ACCENT, CHOSEN, axes_for, count_ticks, percent

__all__ = ["FisherPathDisplay"]


class FisherPathDisplay:
    """Number of vectors and training error along the penalty.

    Parameters
    ----------
    alphas, n_vectors, errors : arrays of the same length

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.fisher import fisher_path
    >>> from fewkern.plotting import FisherPathDisplay
    >>> path = fisher_path(SparseKernelFisher(), *make_banana(120), alphas=5)
    >>> display = FisherPathDisplay.from_path(path)
    >>> display.ax_.get_ylabel()
    'number of vectors'
    """

    def __init__(self, alphas: Any, n_vectors: Any, errors: Any) -> None:
        self.alphas = alphas
        self.n_vectors = n_vectors
        self.errors = errors

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None) -> FisherPathDisplay:
        """Picture of what :func:`fewkern.fisher.fisher_path` returns."""
        return cls(path.alphas, path.n_vectors, path.errors).plot(ax)

    def plot(self, ax: Any = None) -> FisherPathDisplay:
        """Draw on ``ax`` (new axes by default); the error has an axis of its own on the right."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        ax.plot(self.alphas, self.n_vectors, "o-", color=ACCENT, lw=2, ms=5)
        ax.set_xscale("log")
        # from the sparsest machine on
        ax.set_xlim(1.2 * max(self.alphas), min(self.alphas) / 1.2)
        ax.set_xlabel("penalty: the smaller, the more vectors are kept")
        ax.set_ylabel("number of vectors", color=ACCENT)
        ax.set_ylim(bottom=0)
        count_ticks(ax.yaxis)
        self.error_ax_ = right = ax.twinx()
        right.plot(self.alphas, self.errors, "s--", color=CHOSEN, lw=1.5, ms=5)
        right.set_ylabel("training samples classified wrongly", color=CHOSEN)
        right.set_ylim(bottom=0)
        percent(right.yaxis)
        ax.spines["top"].set_visible(False)
        right.spines["top"].set_visible(False)
        return self
