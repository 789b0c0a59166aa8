"""Pictures of a fitted model: its vectors among the samples, its components, and the features that matter to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from fewkern.arrays.namespace import to_numpy
from fewkern.plotting import style
from fewkern.plotting.fitted import FittedModel, as_numbers, ask, fitted_model, take_rows
from fewkern.select.selector import FeatureVectorPCA

# Points of a grid along an axis, and the share of the samples' range that is added at its ends.
_POINTS, _MARGIN = 200, 0.08
# A vector that was moved further out than this many ranges of the samples is left out of the picture.
_FAR = 0.5
# Steps between the colors of a regression.
_LEVELS = 12


@dataclass(repr=False, eq=False)
class VectorsDisplay(style.Display):
    """Samples with the kept vectors circled, and the predictions between them.

    For a classifier of two features: the regions of the classes. For a regressor: the values as colors, or with one
    feature the curve.

    Parameters
    ----------
    X : array of shape (n, 1) or (n, 2)
    labels : array of shape (n,) or None
        Classes, or the numbers of a regression.
    vectors : array of shape (m, 1) or (m, 2)
    boundary : tuple of arrays or None
        A grid and the values on it: ``(xx, yy, values)`` with one value per class (last axis), or with one number, or
        ``(x, values)`` for one feature.
    names : list of str or None
        Labels of the axes.
    classes : array or None
        All classes, in the order of their values.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import KernelClassifier
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import VectorsDisplay
    >>> X, y = make_banana(200)
    >>> display = VectorsDisplay.from_estimator(KernelClassifier().fit(X, y), X, y)
    >>> display.ax_.get_xlabel()
    'feature 0'
    """

    X: Any
    labels: Any
    vectors: Any
    boundary: Any = None
    names: Sequence[str] | None = None
    classes: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Picture of a model of two features (of one, if it is a regressor), among the samples ``X``.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search
            The axes show the features in the units of ``X``, also where a scaler comes before the model.
        X : array or data frame
        y : array of shape (n,) or None, default None
        ax : matplotlib axes or None, default None
        """
        found = fitted_model(estimator, X)
        vectors, points = _vectors(found.model), as_numbers(found.X)
        regression, dim = is_regressor(found.model), points.shape[1]
        if dim not in ((1, 2) if regression else (2,)):
            raise ValueError(
                f"VectorsDisplay: the picture needs samples of two features{' or one' * regression}, got {dim}; "
                "ComponentsDisplay shows the components of more."
            )
        if dim == 1 and y is None:
            raise ValueError("VectorsDisplay: with one feature the targets are the second axis; pass y.")
        classes = getattr(found.model, "classes_", None) if is_classifier(found.model) else None
        y, classes = (None if values is None else to_numpy(values) for values in (y, classes))
        samples, kept = found.given_units(points), found.given_units(vectors)
        return cls(samples, y, kept, _values(found, points, vectors), found.labels, classes).plot(ax)

    def _draw(self, ax: Any) -> None:
        kept = f"{len(self.vectors)} {'vector' if len(self.vectors) == 1 else 'vectors'} kept"
        colored = self._draw_curve(ax, kept) if self.X.shape[1] == 1 else self._draw_plane(ax, kept)
        if self.names is not None:
            ax.set_xlabel(self.names[0], parse_math=False)
        (style.legend_below if colored else style.legend_beside)(ax)

    def _draw_curve(self, ax: Any, kept: str) -> bool:
        """One feature; there is no color bar."""
        axis, values = self.boundary
        style.draw_samples(ax, np.column_stack([self.X[:, 0], self.labels]), None)
        ax.plot(axis, values, color=style.ACCENT, lw=2, label="model")
        shown = self.vectors[(self.vectors[:, 0] >= axis[0]) & (self.vectors[:, 0] <= axis[-1]), 0]
        style.circle_vectors(ax, np.column_stack([shown, np.interp(shown, axis, values)]), kept)
        ax.set_ylabel("target")
        return False

    def _draw_plane(self, ax: Any, kept: str) -> bool:
        """Two features; returns whether there is a color bar."""
        colored = self.boundary is not None and self.boundary[2].ndim == 2
        if colored:
            self._draw_values(ax)
        else:
            self._draw_regions(ax)
            colored = style.draw_samples(ax, self.X, self.labels, self.classes)
        style.circle_vectors(ax, self.vectors, kept)
        if self.boundary is not None:
            # vectors far out would shrink the picture
            xx, yy = self.boundary[:2]
            ax.set(xlim=(xx.min(), xx.max()), ylim=(yy.min(), yy.max()))
        if self.names is not None:
            ax.set_ylabel(self.names[1], parse_math=False)
        return colored

    def _draw_values(self, ax: Any) -> None:
        """The numbers of a regression as colors, the same for the model and for the samples."""
        from matplotlib.ticker import MaxNLocator

        xx, yy, values = self.boundary
        given = values if self.labels is None else self.labels
        levels = MaxNLocator(_LEVELS).tick_values(float(np.min(given)), float(np.max(given)))
        drawn = ax.contourf(xx, yy, values, levels=levels, cmap="viridis", alpha=0.6, extend="both")
        ax.figure.colorbar(drawn, ax=ax, label="target")
        colors = {"color": style.QUIET}
        if self.labels is not None:
            colors = {"c": self.labels, "cmap": drawn.cmap, "norm": drawn.norm}
        ax.scatter(*self.X.T, s=26, **colors, edgecolors="white", linewidths=0.8)

    def _draw_regions(self, ax: Any) -> None:
        if self.boundary is None:
            return
        xx, yy, values = self.boundary
        for c in range(values.shape[2]):
            # how far a class is ahead of the best other one: its region is where this is positive
            lead = values[:, :, c] - np.delete(values, c, axis=2).max(axis=2)
            if lead.max() > 0:
                color = style.CLASSES[c % len(style.CLASSES)]
                ax.contourf(xx, yy, lead, levels=[0, lead.max()], colors=[color], alpha=0.12)
            if lead.min() < 0 < lead.max():
                ax.contour(xx, yy, lead, levels=[0], colors=[style.ACCENT], linewidths=1.2)


def _vectors(model: Any) -> np.ndarray:
    """The vectors that a model keeps; of a linear map, none."""
    expansion = getattr(model, "expansion_", None)
    vectors = getattr(model, "vectors_", getattr(expansion, "vectors", None))
    if vectors is None:
        raise ValueError(
            f"VectorsDisplay: expected a model of fewkern, but {type(model).__name__} keeps no vectors; "
            "fewkern.compress makes a short model of scikit-learn's kernel models."
        )
    return as_numbers(vectors)


def _values(found: FittedModel, X: np.ndarray, vectors: np.ndarray) -> Any:
    """A grid over samples and vectors, and the predictions on it; None for a model without predictions."""
    model = found.model
    span = np.ptp(X, axis=0)
    near = vectors[(np.abs(vectors - X.mean(axis=0)) <= (_FAR + 1) * span).all(axis=1)]
    points = np.vstack([X, near])
    low, high = points.min(axis=0) - _MARGIN * span, points.max(axis=0) + _MARGIN * span
    axes = [np.linspace(a, b, _POINTS) for a, b in zip(low, high)]
    rows = np.column_stack([part.ravel() for part in np.meshgrid(*axes)])
    grid = np.meshgrid(*[(axis - a) / b for axis, a, b in zip(axes, found.shift, found.factor)])
    if is_regressor(model):
        values = ask(model.predict, rows)
        if values.ndim > 1:
            raise ValueError(f"VectorsDisplay: the picture shows one target, but the model has {values.shape[1]}.")
        return *grid, values.reshape(grid[0].shape)
    if not (is_classifier(model) or is_outlier_detector(model)):
        return None
    values = ask(model.decision_function, rows)
    if values.ndim == 1:
        values = np.column_stack([-values, values])
    return *grid, values.reshape(*grid[0].shape, -1)


@dataclass(repr=False, eq=False)
class ComponentsDisplay(style.Display):
    """Samples on the first two components, colored by class, with the kept samples circled.

    Parameters
    ----------
    T : array of shape (n, 1) or (n, 2)
        Components; with one only, the samples are spread out along the other axis by their number.
    labels : array of shape (n,) or None
        Classes, or numbers (more than 32 different ones), which get a color bar.
    kept : integer array or None
        Rows of the samples that the model keeps.
    names : list of str
        Labels of the axes.

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
        colored = style.draw_samples(ax, self.T, self.labels)
        if self.kept is not None and len(self.kept) < len(self.T):
            style.circle_vectors(ax, self.T[self.kept], f"{len(self.kept)} samples kept")
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        (style.legend_below if colored else style.legend_beside)(ax)


def _kept(found: FittedModel) -> Any:
    """Rows of the kept samples; None if there are none, or if they are not those rows of ``X``."""
    indices, n = getattr(found.model, "indices_", None), found.X.shape[0]
    rows = np.zeros(0, dtype=int) if indices is None else to_numpy(indices)
    if not len(rows) or rows.max() >= n:  # moved vectors, a linear map, or other samples
        return None
    return rows if np.allclose(as_numbers(take_rows(found.X, rows)), as_numbers(found.model.vectors_)) else None


def _with_shares(model: Any) -> list[str]:
    """Names of the components; of principal ones, with their shares of the variance."""
    names = [f"component {k + 1}" for k in range(2)]
    if not isinstance(model, FeatureVectorPCA) or model.n_components is not None:
        return names  # the others are not known
    values = to_numpy(model.eigenvalues_)
    shares = values / values.sum()
    return [f"{name} ({100 * share:.0f}% of the variance)" for name, share in zip(names, shares)] + names[len(shares) :]


@dataclass(repr=False, eq=False)
class ImportancesDisplay(style.Display):
    """Features as bars, the most important one on top.

    Parameters
    ----------
    importances : array of shape (n_features,)
        Shares, which add up to one.
    names : list of str
        One per feature.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fewkern import KernelClassifier
    >>> from fewkern.plotting import ImportancesDisplay
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), KernelClassifier()).fit(X, y)
    >>> display = ImportancesDisplay.from_estimator(model)
    >>> "proline" in [label.get_text() for label in display.ax_.get_yticklabels()]
    True
    """

    importances: Any
    names: Sequence[str]

    @classmethod
    def from_estimator(cls, estimator: Any, *, feature_names: Any = None, ax: Any = None) -> Self:
        """Picture of ``feature_importances_`` of a fitted model, or of the model inside a Pipeline or a search.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search
        feature_names : list of str or None, default None
            None takes the names of the columns that the model was fitted to.
        ax : matplotlib axes or None, default None
        """
        found = fitted_model(estimator)
        importances = to_numpy(found.model.feature_importances_)
        names = found.names if feature_names is None else [str(name) for name in feature_names]
        if len(names) != len(importances):
            raise ValueError(
                f"ImportancesDisplay: the model has {len(importances)} features, got {len(names)} names; give one name "
                "per feature that reaches the model."
            )
        return cls(importances, names).plot(ax)

    def _size(self) -> tuple[float, float]:
        return super()._size()[0], style.bars_height(len(self.importances))

    def _draw(self, ax: Any) -> None:
        style.draw_bars(ax, np.asarray(self.importances), self.names, "{:.1%}")
        ax.set_xlabel("share in the variation of the model")
        style.percent_ticks(ax.xaxis)
