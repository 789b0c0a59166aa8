"""The leave-one-out error along the path of models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import to_numpy
from fewkern.fisher.base import FisherTrace
from fewkern.plotting.fisher import FisherSearchDisplay
from fewkern.plotting.style import ACCENT, QUIET, axes_for

__all__ = ["PathDisplay"]


class PathDisplay:
    """Leave-one-out error against the number of vectors, for the chosen width and ridge and for the other widths.

    Parameters
    ----------
    error, spread : arrays of shape (L + 1,)
        Error of the chosen path and its standard error, from no vector on.
    n_vectors : int
        The chosen number.
    others : list of (label, array)
        Best error of every other width at each number of vectors.
    label : str
        What the chosen path is.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import FeatureVectorClassifier
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import PathDisplay
    >>> display = PathDisplay.from_estimator(FeatureVectorClassifier().fit(*make_banana(200)))
    >>> display.ax_.get_xlabel()
    'number of vectors'
    """

    def __init__(self, error: Any, spread: Any, n_vectors: int, others: list[tuple[str, Any]], label: str) -> None:
        self.error = error
        self.spread = spread
        self.n_vectors = n_vectors
        self.others = others
        self.label = label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Any:
        """Picture of ``estimator.trace_``; that of a kernel Fisher classifier is a :class:`FisherSearchDisplay`."""
        check_is_fitted(estimator, "trace_")
        trace = estimator.trace_
        if isinstance(trace, FisherTrace):
            return FisherSearchDisplay.from_estimator(estimator, ax=ax)
        k, r, L = trace.chosen
        error, spread = to_numpy(trace.error), to_numpy(trace.spread)
        with np.errstate(invalid="ignore"):
            best = error.min(axis=1)
        others = [(f"width {w:.3g}", best[i]) for i, w in enumerate(trace.widths) if i != k and len(best) > 1]
        width = f"width {trace.widths[k]:.3g}, " if trace.widths else ""
        return cls(error[k, r], spread[k, r], L, others, f"{width}ridge {trace.ridges[r]:g}").plot(ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        for i, (_, curve) in enumerate(self.others):
            finite = np.isfinite(curve)
            ax.plot(np.flatnonzero(finite), curve[finite], color=QUIET, lw=1, label="other widths" if i == 0 else None)
        finite = np.isfinite(self.error)
        x, y, s = np.flatnonzero(finite), self.error[finite], self.spread[finite]
        ax.fill_between(x, y - s, y + s, color=ACCENT, alpha=0.15, lw=0, label="± one standard error")
        ax.plot(x, y, color=ACCENT, lw=2, label=self.label)
        top = float(self.error[self.n_vectors])
        ax.plot(
            [self.n_vectors], [top], "o", color="#d95f02", ms=8, label=f"chosen: {self.n_vectors} vectors", zorder=5
        )
        low = min([float(y.min())] + [float(c[np.isfinite(c)].min()) for _, c in self.others])
        start = float(self.error[0]) if np.isfinite(self.error[0]) else float(y.max())
        ax.set_ylim(low - 0.05 * (start - low), low + 1.15 * (start - low) if start > low else None)
        ax.set_xlim(0, max(float(x.max()), 1.0))
        ax.set_xlabel("number of vectors")
        ax.set_ylabel("mean squared leave-one-out error")
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return self
