"""Pictures of features: importances, contributions to one prediction, and mean contributions to many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.core.explanation import Explanation
from fewkern.plotting import style
from fewkern.plotting.fitted import as_numbers, fitted_model


@dataclass
class WaterfallDisplay(style.Display):
    """One prediction, from the baseline to its value: a step for every feature, the largest on top.

    Parameters
    ----------
    shares : array of shape (n_features,)
    baseline : float
        Mean prediction over the background, where the first step begins.
    labels : list of str
        One per feature: its name and its value in this row.
    quantity : str
        What is explained, for the axis.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from fewkern import KernelRegressor
    >>> from fewkern.plotting import WaterfallDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = KernelRegressor(n_vectors=5).fit(X, y)
    >>> display = WaterfallDisplay.from_estimator(model, X, row=3)
    >>> bool(abs(display.value - model.predict(X)[3]) < 1e-8)
    True
    """

    shares: Any
    baseline: float
    labels: Sequence[str]
    quantity: str = "prediction"

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, row: int = 0, output: Any = None, ax: Any = None) -> Self:
        """Picture of the prediction for one row, by a model with the method ``explain``.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline, search or TableModel
        X : array, data frame or table
        row : int, default 0
            Which row of ``X``, counted from 0.
        output : object, default None
            The class, or the number of the target, where there are several; None takes the class of the largest score,
            or the first target.
        ax : matplotlib axes or None, default None
        """
        return cls.of_row(estimator, X, row=row, output=output).plot(ax)

    @classmethod
    def of_row(cls, estimator: Any, X: Any, *, row: int = 0, output: Any = None) -> Self:
        """The same, not drawn: ``shares``, ``baseline``, ``labels`` and ``value`` need no matplotlib."""
        if not 0 <= row < X.shape[0]:
            raise ValueError(f"explain: there is no row {row}; the table has {X.shape[0]} rows, counted from 0.")
        found, cells = _explained(estimator, X, slice(row, row + 1))
        shares, baseline = to_numpy(found.values)[0], found.baseline
        quantity = _quantity(estimator)
        if found.output_names is not None:
            at = _output(found, output, hasattr(estimator, "classes_"))
            shares, baseline = shares[:, at], to_numpy(found.baseline)[at]
            quantity = f"{quantity}: {found.output_names[at]}"
        labels = [f"{name} = {_cell(cell)}" for name, cell in zip(found.feature_names, cells)]
        return cls(shares, float(baseline), labels, quantity)

    @property
    def value(self) -> float:
        """The prediction."""
        return float(self.baseline + np.sum(self.shares))

    @property
    def order(self) -> np.ndarray:
        """The features, the one of the largest share first."""
        return np.argsort(-np.abs(self.shares), kind="stable")

    def _size(self) -> tuple[float, float]:
        return super()._size()[0], style.bars_height(len(self.shares))

    def _draw(self, ax: Any) -> None:
        shares, labels, _ = style.largest(np.asarray(self.shares), self.labels)
        ends = self.baseline + np.cumsum(shares)
        starts, places = ends - shares, np.arange(len(shares))
        ax.barh(
            places,
            shares,
            left=starts,
            height=0.7,
            color=[style.CHOSEN if share > 0 else style.ACCENT for share in shares],
        )
        for j in places[:-1]:  # a thin line from one step to the next
            ax.plot([ends[j], ends[j]], [j - 0.35, j + 1.35], color=style.QUIET, lw=0.8, zorder=0)
        low, high = min(starts.min(), ends.min()), max(starts.max(), ends.max())
        room = max(high - low, 1e-12)
        for j, share in enumerate(shares):
            place = max(starts[j], ends[j]) + 0.015 * room, j
            clear = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.5}
            ax.annotate(f"{share:+.3g}", place, va="center", fontsize=8, bbox=clear)
        ax.axvline(self.baseline, color=style.QUIET, lw=1, ls="--", zorder=0)
        ax.axvline(self.value, color="black", lw=1, ls="--", zorder=0)
        style.label_bars(ax, labels)
        ax.set_xlim(low - 0.06 * room, high + 0.2 * room)
        ax.set_xlabel(self.quantity, parse_math=False)
        ax.set_title(f"baseline {self.baseline:.4g}, this row {self.value:.4g}", fontsize="medium", loc="left")


@dataclass
class SharesDisplay(style.Display):
    """What every feature contributes to the predictions for some samples: the mean size of its share, as a bar.

    Parameters
    ----------
    sizes : array of shape (n_features,)
    names : list of str
        One per feature.
    quantity : str
        What is explained, for the axis.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from fewkern import KernelRegressor
    >>> from fewkern.plotting import SharesDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> display = SharesDisplay.from_estimator(KernelRegressor(n_vectors=5).fit(X, y), X)
    >>> display.sizes.shape, "bmi" in display.names
    ((10,), True)
    """

    sizes: Any
    names: Sequence[str]
    quantity: str = "prediction"

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Picture of the predictions for samples, by a model with the method ``explain``; outputs are averaged.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline, search or TableModel
        X : array, data frame or table
        ax : matplotlib axes or None, default None
        """
        found, _ = _explained(estimator, X, slice(None))
        sizes = np.abs(to_numpy(found.values)).mean(axis=0)
        return cls(sizes if sizes.ndim == 1 else sizes.mean(axis=1), found.feature_names, _quantity(estimator)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return super()._size()[0], style.bars_height(len(self.sizes))

    def _draw(self, ax: Any) -> None:
        style.draw_bars(ax, np.asarray(self.sizes), self.names, "{:.3g}")
        ax.set_xlabel(f"mean size of the share in the {self.quantity}", parse_math=False)


def _explained(estimator: Any, X: Any, rows: slice) -> tuple[Explanation, Sequence[Any]]:
    """Shares of some rows, by features or columns of a table, and the cells of the first of these rows."""
    if hasattr(estimator, "encoder_"):
        some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        frame = estimator.encoder_.frame(some)
        return estimator.explain(some), [frame[name].iloc[0] for name in estimator.encoder_.columns]
    seen = fitted_model(estimator, X)
    if not hasattr(seen.model, "explain"):
        raise ValueError(
            f"explain: {type(seen.model).__name__} has no method explain; models of classes and numbers with a "
            "Gaussian kernel have one."
        )
    some = seen.X.iloc[rows] if hasattr(seen.X, "iloc") else seen.X[rows]
    found = seen.model.explain(some)
    first = as_numbers(some[:1] if is_sparse(some) else some)[:1]
    return Explanation(found.values, found.baseline, tuple(seen.labels), found.output_names), seen.given_units(first)[0]


def _quantity(estimator: Any) -> str:
    """What is explained: a prediction, a component, or a score, positive for the second of two classes."""
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return "prediction" if hasattr(estimator, "predict") else "component"
    return f"score (positive: {to_numpy(classes)[1]})" if len(classes) == 2 else "score"


def _output(found: Explanation, output: Any, classes: bool) -> int:
    """Position of an output: the one that was asked for, or the class of the largest score, or the first target."""
    names = list(found.output_names or ())
    if output is None:
        return int(np.argmax(to_numpy(found.predictions)[0])) if classes else 0
    if output not in names:
        raise ValueError(f"WaterfallDisplay: output must be one of {names}, got {output!r}.")
    return names.index(output)


def _cell(cell: Any) -> str:
    """A cell as text, with four digits of a number."""
    text = f"{cell:.4g}" if isinstance(cell, (float, np.floating)) else str(cell)
    return "missing" if text in ("None", "nan", "NaT", "<NA>") else text


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
