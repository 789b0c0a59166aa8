"""Samples of two features, the vectors that were kept, and the boundary between the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import to_numpy
from fewkern.plotting.style import ACCENT, CLASSES, QUIET, axes_for

__all__ = ["VectorsDisplay"]


class VectorsDisplay:
    """Samples in the plane with the chosen vectors circled, and the class boundary where there is one.

    Parameters
    ----------
    X : array of shape (n, 2)
    labels : array of shape (n,) or None
    vectors : array of shape (m, 2)
    boundary : (xx, yy, values) or None
        Grid and the value of every class on it.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import FeatureVectorClassifier
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import VectorsDisplay
    >>> X, y = make_banana(200)
    >>> display = VectorsDisplay.from_estimator(FeatureVectorClassifier().fit(X, y), X, y)
    >>> len(display.ax_.collections) > 0
    True
    """

    def __init__(self, X: Any, labels: Any, vectors: Any, boundary: Any = None) -> None:
        self.X = X
        self.labels = labels
        self.vectors = vectors
        self.boundary = boundary

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None) -> VectorsDisplay:
        """Picture of a model with two features, among the samples ``X``."""
        check_is_fitted(estimator)
        X = np.asarray(to_numpy(X), dtype=float)
        if X.shape[1] != 2:
            raise ValueError(f"VectorsDisplay: the picture needs samples of two features, got {X.shape[1]}.")
        boundary = None
        if is_classifier(estimator):
            low, high = X.min(axis=0), X.max(axis=0)
            margin = 0.08 * (high - low)
            xx, yy = np.meshgrid(
                *[np.linspace(a - m, b + m, 200) for a, b, m in zip(low, high, margin)],
            )
            values = to_numpy(estimator.decision_function(np.column_stack([xx.ravel(), yy.ravel()])))
            if values.ndim == 1:
                values = np.column_stack([-values, values])
            boundary = xx, yy, values.reshape(*xx.shape, -1)
        labels = None if y is None else to_numpy(y)
        return cls(X, labels, to_numpy(estimator.vectors_), boundary).plot(ax)

    def plot(self, ax: Any = None) -> VectorsDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        if self.boundary is not None:
            xx, yy, values = self.boundary
            for c in range(values.shape[2]):
                # how far a class is ahead of the best other one: its region is where this is positive
                lead = values[:, :, c] - np.delete(values, c, axis=2).max(axis=2)
                if lead.max() > 0:
                    ax.contourf(xx, yy, lead, levels=[0, lead.max()], colors=[CLASSES[c % len(CLASSES)]], alpha=0.12)
                if lead.min() < 0 < lead.max():
                    ax.contour(xx, yy, lead, levels=[0], colors=[ACCENT], linewidths=1.2)
        if self.labels is None:
            ax.scatter(*self.X.T, s=10, color=QUIET, lw=0)
        else:
            for c, label in enumerate(np.unique(self.labels)):
                own = self.X[self.labels == label]
                ax.scatter(*own.T, s=12, color=CLASSES[c % len(CLASSES)], alpha=0.6, lw=0, label=str(label))
        ax.scatter(
            *self.vectors.T,
            s=70,
            facecolors="none",
            edgecolors="black",
            linewidths=1.4,
            label=f"{len(self.vectors)} kept",
        )
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return self
