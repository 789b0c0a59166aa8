"""The first two components of a reducer, and how far a classifier gets with the first few."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import is_sparse, to_numpy
from fewkern.plotting.style import ACCENT, CLASSES, QUIET, axes_for

__all__ = ["AccuracyDisplay", "ComponentsDisplay"]

# More different labels than these are taken for numbers.
_MOST_CLASSES = 32


class ComponentsDisplay:
    """Samples on the first two components, coloured by class, with the kept samples circled.

    Parameters
    ----------
    T : array of shape (n, 1) or (n, 2)
        Components; with one only, the samples are spread out along the other axis by their number.
    labels : array of shape (n,) or None
    kept : integer array or None
        Rows of the samples that the model keeps.
    names : list of str
        What the axes show.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from fewkern import GraphEmbedding
    >>> from fewkern.plotting import ComponentsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = ComponentsDisplay.from_estimator(GraphEmbedding().fit(X, y), X, y)
    >>> display.ax_.get_xlabel()
    'component 1'
    """

    def __init__(self, T: Any, labels: Any = None, kept: Any = None, names: list[str] | None = None) -> None:
        self.T = T
        self.labels = labels
        self.kept = kept
        self.names = names or ["component 1", "component 2"]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None) -> ComponentsDisplay:
        """Picture of the samples ``X`` that ``estimator`` was fitted with, as it transforms them."""
        check_is_fitted(estimator)
        T = to_numpy(estimator.transform(X))
        if T.shape[1] == 0:
            raise ValueError("ComponentsDisplay: the model has no component to show.")
        kept = getattr(estimator, "indices_", None)
        if kept is not None and not len(kept):
            kept = None  # a linear map keeps no sample
        names = ["component 1", "component 2"]
        if T.shape[1] == 1:
            T, names = np.column_stack([T[:, 0], np.arange(len(T))]), ["component 1", "sample"]
        return cls(T[:, :2], None if y is None else to_numpy(y), None if kept is None else to_numpy(kept), names).plot(
            ax
        )

    def plot(self, ax: Any = None) -> ComponentsDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        classes: Any = [] if self.labels is None else np.unique(self.labels)
        if self.labels is None:
            ax.scatter(*self.T.T, s=12, color=QUIET, lw=0)
        elif len(classes) > _MOST_CLASSES:
            # numbers, not classes
            drawn = ax.scatter(*self.T.T, s=14, c=np.asarray(self.labels, dtype=float), alpha=0.8, lw=0)
            ax.figure.colorbar(drawn, ax=ax, label="target")
        else:
            for c, label in enumerate(classes):
                own = self.T[self.labels == label]
                # colours come round again; shapes do not
                marker = "os^D"[(c // len(CLASSES)) % 4]
                color = CLASSES[c % len(CLASSES)]
                ax.scatter(*own.T, s=14, color=color, marker=marker, alpha=0.7, lw=0, label=str(label))
        if self.kept is not None and len(self.kept) < len(self.T):
            ax.scatter(
                *self.T[self.kept].T,
                s=70,
                facecolors="none",
                edgecolors="black",
                linewidths=1.2,
                label=f"{len(self.kept)} kept",
            )
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])
        if ax.get_legend_handles_labels()[1]:
            ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.spines[["top", "right"]].set_visible(False)
        return self


class AccuracyDisplay:
    """Cross-validated accuracy of a classifier on the first components, against their number.

    Parameters
    ----------
    accuracy, spread : arrays of shape (n_components,)
        Mean and standard error over the folds, for one component, two, and so on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from fewkern import GraphEmbedding
    >>> from fewkern.plotting import AccuracyDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = AccuracyDisplay.from_estimator(GraphEmbedding(recursive=True, n_components=4), X, y)
    >>> bool(display.accuracy.max() > 0.95)
    True
    """

    def __init__(self, accuracy: Any, spread: Any) -> None:
        self.accuracy = accuracy
        self.spread = spread

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, classifier: Any = None, cv: int = 5, ax: Any = None
    ) -> AccuracyDisplay:
        """Fit clones of ``estimator`` on the training part of every fold; 5 nearest neighbors classify by default."""
        from sklearn.base import clone
        from sklearn.model_selection import StratifiedKFold
        from sklearn.neighbors import KNeighborsClassifier

        X, y = X.tocsr() if is_sparse(X) else to_numpy(X), to_numpy(y)
        classifier = KNeighborsClassifier() if classifier is None else classifier
        folds = []
        for train, test in StratifiedKFold(cv).split(X, y):
            model = clone(estimator).fit(X[train], y[train])
            A, B = (to_numpy(model.transform(X[part])) for part in (train, test))
            scores = [
                clone(classifier).fit(A[:, :k], y[train]).score(B[:, :k], y[test]) for k in range(1, A.shape[1] + 1)
            ]
            folds.append(scores)
        # a fold may find fewer directions than another one
        count = min(map(len, folds))
        if count == 0:
            raise ValueError(
                "AccuracyDisplay: in some fold the model has no component; use another C or class weights."
            )
        table = np.array([scores[:count] for scores in folds])
        return cls(table.mean(axis=0), table.std(axis=0) / np.sqrt(cv)).plot(ax)

    def plot(self, ax: Any = None) -> AccuracyDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        x = np.arange(1, len(self.accuracy) + 1)
        low, high = self.accuracy - self.spread, self.accuracy + self.spread
        ax.fill_between(x, low, high, color=ACCENT, alpha=0.15, lw=0, label="± one standard error")
        ax.plot(x, self.accuracy, "o-", color=ACCENT, lw=2, ms=4, label="cross-validated accuracy")
        ax.set_xlabel("number of components")
        ax.set_ylabel("accuracy")
        ax.set_xticks(x if len(x) <= 12 else x[:: len(x) // 10])
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return self
