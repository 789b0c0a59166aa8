"""The error of every setting that an automatic choice compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import to_numpy
from fewkern.core.trace import Trace
from fewkern.plotting.style import ACCENT, CHOSEN, QUIET, axes_for

__all__ = ["TraceDisplay"]


class TraceDisplay:
    """Error against the number of vectors (or the width) along the chosen path, beside the best of the other paths.

    Parameters
    ----------
    trace : Trace
        ``trace_`` of any estimator.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import FeatureVectorClassifier
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import TraceDisplay
    >>> display = TraceDisplay.from_estimator(FeatureVectorClassifier().fit(*make_banana(200)))
    >>> display.ax_.get_xlabel()
    'number of vectors'
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> TraceDisplay:
        """Picture of ``estimator.trace_``; of a pipeline, that of its last step."""
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        check_is_fitted(last)
        trace = getattr(last, "trace_", None)
        if not isinstance(trace, Trace):
            raise ValueError(
                f"TraceDisplay: expected an estimator that compares settings, but {type(last).__name__} has no trace_; "
                "see the list of estimators with a trace_ in the documentation."
            )
        return cls(trace).plot(ax)

    def plot(self, ax: Any = None) -> TraceDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        if self.trace.error.ndim and max(self.trace.error.shape) > 1:
            self._draw_paths(ax)
        else:
            objectives = self.trace.objectives
            ax.plot(np.arange(1, len(objectives) + 1), objectives, color=ACCENT, lw=2)
            ax.set_xlabel("step")
            ax.set_ylabel("objective")
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_paths(self, ax: Any) -> None:
        trace = self.trace
        x, y, spread = (to_numpy(values).astype(float) for values in trace.curve)
        others = self._others()
        for i, (sizes, errors) in enumerate(others):
            ax.plot(sizes, errors, color=QUIET, lw=1, label=f"other {self._first}s" if i == 0 else None)
        seen = np.isfinite(y)
        band = np.where(np.isfinite(spread), spread, 0.0)
        if band.any():
            ax.fill_between(
                x[seen],
                (y - band)[seen],
                (y + band)[seen],
                color=ACCENT,
                alpha=0.15,
                lw=0,
                label="± one standard error",
            )
        ax.plot(x[seen], y[seen], color=ACCENT, lw=2, label=self._label())
        at = trace.chosen[-1]
        ax.plot([x[at]], [y[at]], "o", color=CHOSEN, ms=8, zorder=5, label=f"chosen: {self._chosen(x[at])}")
        low = min([float(y[seen].min())] + [float(errors.min()) for _, errors in others if len(errors)])
        high = float(y[seen][0]) if self._counts else float(y[seen].max())
        if high > low:
            ax.set_ylim(low - 0.05 * (high - low), low + 1.15 * (high - low))
        ax.set_xlabel("number of vectors" if self._counts else list(trace.axes)[-1])
        ax.set_ylabel(trace.measure)
        if not self._counts and x[seen].min() > 0:
            ax.set_xscale("log")
        ax.legend(frameon=False)

    @property
    def _first(self) -> str:
        return next(iter(self.trace.axes))

    @property
    def _counts(self) -> bool:
        """Whether the curve is over numbers of vectors."""
        return self.trace.size is not None or list(self.trace.axes)[-1] == "n_vectors"

    def _chosen(self, size: float) -> str:
        return f"{size:.3g} vectors" if self._counts else f"{size:.3g}"

    def _label(self) -> str:
        """The settings of the chosen path."""
        names = list(self.trace.setting)[: -1 if self.trace.size is None else None]
        return ", ".join(f"{name} {self.trace.setting[name]:.3g}" for name in names) or self.trace.measure

    def _others(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Sizes and least errors for every other value of the first axis, where there are several axes."""
        error = to_numpy(self.trace.error).astype(float)
        if error.ndim < 2:
            return []
        sizes = to_numpy(self.trace.size) if self.trace.size is not None else None
        found = []
        for i in range(error.shape[0]):
            if i == self.trace.chosen[0]:
                continue
            best = error[i].min(axis=tuple(range(error.ndim - 2))) if error.ndim > 2 else error[i]
            x = to_numpy(self.trace.curve[0]) if sizes is None else sizes[i]
            seen = np.isfinite(best)
            found.append((np.asarray(x, dtype=float)[seen], best[seen]))
        return found
