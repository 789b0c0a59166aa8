"""Pictures of kernel Fisher discriminants: the search for their settings, and the regularisation path."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.plotting.style import ACCENT, QUIET, axes_for

__all__ = ["FisherPathDisplay", "FisherSearchDisplay"]

_CHOSEN = "#d95f02"


class FisherSearchDisplay:
    """Cross-validated error against the number of vectors, for the chosen width and for the others.

    Parameters
    ----------
    sizes, errors : lists of arrays
        Mean number of vectors and error along the path of every width.
    widths : tuple of float
    chosen : (int, int) or None
        Width and position on its path that were taken; None where nothing had to be chosen.
    objectives : array
        What the last fit minimised, after every step; drawn where nothing had to be chosen.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import FisherSearchDisplay
    >>> display = FisherSearchDisplay.from_estimator(SparseKernelFisher().fit(*make_banana(150)))
    >>> display.ax_.get_ylabel()
    'cross-validated error'
    """

    def __init__(self, sizes: Any, errors: Any, widths: Any, chosen: Any, objectives: Any) -> None:
        self.sizes = sizes
        self.errors = errors
        self.widths = widths
        self.chosen = chosen
        self.objectives = objectives

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> FisherSearchDisplay:
        """Picture of ``estimator.trace_``."""
        check_is_fitted(estimator, "trace_")
        trace = estimator.trace_
        sizes, errors = ([np.asarray(row) for row in rows] for rows in (trace.sizes, trace.errors))
        return cls(sizes, errors, trace.widths, trace.chosen if errors else None, np.asarray(trace.objectives)).plot(ax)

    def plot(self, ax: Any = None) -> FisherSearchDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        if self.chosen is None:
            ax.plot(np.arange(1, len(self.objectives) + 1), self.objectives, color=ACCENT, lw=2)
            ax.set_xlabel("step")
            ax.set_ylabel("objective")
        else:
            self._paths(ax)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _paths(self, ax: Any) -> None:
        i, j = self.chosen
        shown = False
        for k, (size, error) in enumerate(zip(self.sizes, self.errors)):
            if k != i:
                ax.plot(size, error, color=QUIET, lw=1, label=None if shown else "other widths")
                shown = True
        label = f"width {self.widths[i]:.3g}" if self.widths else "path"
        ax.plot(self.sizes[i], self.errors[i], "o-", color=ACCENT, lw=2, ms=4, label=label)
        size, error = self.sizes[i][j], self.errors[i][j]
        ax.plot([size], [error], "o", color=_CHOSEN, ms=8, zorder=5, label=f"chosen: {size:.3g} vectors on average")
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(left=0)
        ax.set_xlabel("number of vectors (mean over the folds)")
        ax.set_ylabel("cross-validated error")
        ax.legend(frameon=False)


class FisherPathDisplay:
    """Number of vectors and training error along the penalty.

    Parameters
    ----------
    penalties, n_vectors, errors : arrays of the same length

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import fisher_path
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import FisherPathDisplay
    >>> display = FisherPathDisplay.from_path(fisher_path(*make_banana(120), n_penalties=5))
    >>> display.ax_.get_ylabel()
    'number of vectors'
    """

    def __init__(self, penalties: Any, n_vectors: Any, errors: Any) -> None:
        self.penalties = penalties
        self.n_vectors = n_vectors
        self.errors = errors

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None) -> FisherPathDisplay:
        """Picture of what :func:`fewkern.fisher_path` returns."""
        return cls(path.penalties, path.n_vectors, path.errors).plot(ax)

    def plot(self, ax: Any = None) -> FisherPathDisplay:
        """Draw on ``ax`` (new axes by default); the error has an axis of its own on the right."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        ax.plot(self.penalties, self.n_vectors, "o-", color=ACCENT, lw=2, ms=4)
        ax.set_xscale("log")
        # from the sparsest machine on
        ax.set_xlim(max(self.penalties), min(self.penalties))
        ax.set_xlabel("penalty")
        ax.set_ylabel("number of vectors", color=ACCENT)
        self.error_ax_ = right = ax.twinx()
        right.plot(self.penalties, self.errors, "s--", color=_CHOSEN, lw=1.5, ms=4)
        right.set_ylabel("training error", color=_CHOSEN)
        ax.spines["top"].set_visible(False)
        right.spines["top"].set_visible(False)
        return self
