"""The first two components of a transformer, and how far a classifier gets with the first few."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.plotting.model import FittedModel, fitted_model, numbers
from fewkern.plotting.style import ACCENT, Display, circle_vectors, draw_samples, legend_below, legend_beside, percent
from fewkern.select.selector import FeatureVectorPCA


@dataclass(repr=False, eq=False)
class ComponentsDisplay(Display):
    """Samples on the first two components, colored by class, with the kept samples circled.

    Parameters
    ----------
    T : array of shape (n, 1) or (n, 2)
        Components; with one only, the samples are spread out along the other axis by their number.
    labels : array of shape (n,) or None
        Classes, or numbers (more than 32 different ones), which get a bar of colors.
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

    T: Any
    labels: Any = None
    kept: Any = None
    names: Sequence[str] = ("component 1", "component 2")

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Picture of the samples ``X`` that ``estimator`` was fitted with, as it transforms them.

        Parameters
        ----------
        estimator : fitted transformer, or Pipeline or search that ends in one
        X : array or data frame
            With other samples than those of the fit, none is circled.
        y : array of shape (n,) or None, default None
        ax : matplotlib axes or None, default None
        """
        found = fitted_model(estimator, X)
        model = found.model
        if not hasattr(model, "transform"):
            raise ValueError(
                f"ComponentsDisplay: expected a transformer, but {type(model).__name__} has no components; "
                "VectorsDisplay shows what a model of two features keeps."
            )
        T = to_numpy(model.transform(found.X))
        if T.shape[1] == 0:
            raise ValueError("ComponentsDisplay: the model has no component to show.")
        names = _with_shares(model)
        if T.shape[1] == 1:
            T, names = np.column_stack([T[:, 0], np.arange(len(T))]), [names[0], "number of the sample"]
        return cls(T[:, :2], None if y is None else to_numpy(y), _kept(found), names).plot(ax)

    def _draw(self, ax: Any) -> None:
        colored = draw_samples(ax, self.T, self.labels)
        if self.kept is not None and len(self.kept) < len(self.T):
            circle_vectors(ax, self.T[self.kept], f"{len(self.kept)} samples kept")
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        (legend_below if colored else legend_beside)(ax)


def _kept(found: FittedModel) -> Any:
    """Rows of the kept samples; None if there are none, or if they are not those rows of ``X``."""
    indices, n = getattr(found.model, "indices_", None), found.X.shape[0]
    rows = np.zeros(0, dtype=int) if indices is None else to_numpy(indices)
    if not len(rows) or rows.max() >= n:  # moved vectors, a linear map, or other samples
        return None
    return rows if np.allclose(numbers(_rows(found.X, rows)), numbers(found.model.vectors_)) else None


def _with_shares(model: Any) -> list[str]:
    """Names of the components; of principal ones, with their shares of the variance that the model sees."""
    names = [f"component {k + 1}" for k in range(2)]
    if not isinstance(model, FeatureVectorPCA) or model.n_components is not None:
        return names  # the others are not known
    values = to_numpy(model.eigenvalues_)
    shares = values / values.sum()
    return [f"{name} ({100 * share:.0f}% of the variance)" for name, share in zip(names, shares)] + names[len(shares) :]


@dataclass(repr=False, eq=False)
class AccuracyDisplay(Display):
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

    accuracy: Any
    spread: Any

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, classifier: Any = None, cv: int = 5, ax: Any = None
    ) -> Self:
        """Fit clones of ``estimator`` on the training part of every fold, and classify what they make of the rest.

        Parameters
        ----------
        estimator : transformer, or Pipeline that ends in one
            It is not fitted.
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classifier : classifier or None, default None
            None takes the 5 nearest neighbors.
        cv : int, default 5
            Number of folds.
        ax : matplotlib axes or None, default None
        """
        from sklearn.base import clone
        from sklearn.model_selection import StratifiedKFold
        from sklearn.neighbors import KNeighborsClassifier

        y = to_numpy(y)
        classifier = KNeighborsClassifier() if classifier is None else classifier
        folds = []
        with warnings.catch_warnings():
            # the picture shows how many components there are
            warnings.filterwarnings("ignore", message=".*was asked for, but these samples give only")
            for train, test in StratifiedKFold(cv).split(np.zeros(len(y)), y):
                model = clone(estimator).fit(_rows(X, train), y[train])
                A, B = (to_numpy(model.transform(_rows(X, part))) for part in (train, test))
                fits = ((k, clone(classifier).fit(A[:, :k], y[train])) for k in range(1, A.shape[1] + 1))
                folds.append([fit.score(B[:, :k], y[test]) for k, fit in fits])
        # a fold may find fewer directions than another one
        count = min(map(len, folds))
        if count == 0:
            raise ValueError(
                "AccuracyDisplay: in some fold the model has no component; use another C or class weights."
            )
        table = np.array([scores[:count] for scores in folds])
        return cls(table.mean(axis=0), table.std(axis=0) / np.sqrt(cv)).plot(ax)

    def _draw(self, ax: Any) -> None:
        x = np.arange(1, len(self.accuracy) + 1)
        low, high = self.accuracy - self.spread, self.accuracy + self.spread
        ax.fill_between(x, low, high, color=ACCENT, alpha=0.15, lw=0, label="± one standard error")
        ax.plot(x, self.accuracy, "o-", color=ACCENT, lw=2, ms=5, label="mean of the folds")
        ax.set(xlabel="number of components", ylabel="held-out samples\nclassified correctly")
        ax.set_xticks(x if len(x) <= 12 else x[:: len(x) // 10])
        percent(ax.yaxis)
        legend_beside(ax)


def _rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, a sparse matrix or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return (X.tocsr() if is_sparse(X) else to_numpy(X))[rows]
