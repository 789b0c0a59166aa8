"""Pictures of predictions: how far they can be trusted, and what every feature contributes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.explanation import Explanation
from fewkern.plotting import style
from fewkern.plotting.fitted import as_numbers, fitted_model, take_rows

# Bars of a histogram over the whole range of novelties.
_BARS = 40


@dataclass(repr=False, eq=False)
class IntervalsDisplay(style.Display):
    """Predictions of a regressor with their intervals, against the measured values.

    A point on the diagonal was predicted exactly. A bar that crosses the diagonal holds the measured value.

    Parameters
    ----------
    predicted, truth : arrays of shape (n,)
    intervals : array of shape (n, 2)
        Lower and upper ends.
    coverage : float
        Share of new samples that the intervals are meant to hold.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np
    >>> from fewkern.plotting import IntervalsDisplay
    >>> truth, predicted = np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.5, 2.9])
    >>> ends = np.column_stack([predicted - 0.3, predicted + 0.3])
    >>> display = IntervalsDisplay(predicted, truth, ends, coverage=0.9).plot()
    >>> display.ax_.get_xlabel()
    'measured'
    """

    predicted: Any
    truth: Any
    intervals: Any
    coverage: float

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, coverage: float = 0.9, ax: Any = None) -> Self:
        """Picture of ``predict_interval`` of a fitted regressor, at samples that it was not fitted to.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_interval``, or Pipeline or search that ends in one
        X : array or data frame
        y : array of shape (n,)
        coverage : float, default 0.9
        ax : matplotlib axes or None, default None
        """
        model, seen = _with_method(cls, estimator, X, "predict_interval")
        intervals = to_numpy(model.predict_interval(seen, coverage=coverage))
        if intervals.ndim != 2:
            raise ValueError(f"IntervalsDisplay: the picture shows one target, but the model has {intervals.shape[1]}.")
        return cls(to_numpy(model.predict(seen)), np.asarray(to_numpy(y), dtype=float), intervals, coverage).plot(ax)

    @property
    def inside(self) -> np.ndarray:
        """Whether each measured value lies inside its interval."""
        low, high = self.intervals.T
        return np.asarray((low <= self.truth) & (self.truth <= high))

    def _draw(self, ax: Any) -> None:
        (low, high), inside = self.intervals.T, self.inside
        for held, color, word in ((True, style.ACCENT, "holds the value"), (False, style.CHOSEN, "misses it")):
            own = inside == held
            if own.any():
                ax.vlines(self.truth[own], low[own], high[own], color=color, lw=1, alpha=0.35)
                label = f"{100 * own.mean():.0f}%: the interval {word}"
                ax.scatter(self.truth[own], self.predicted[own], s=16, color=color, lw=0, label=label)
        ends = self.truth.min(), self.truth.max()
        ax.plot(ends, ends, color=style.QUIET, lw=1.5, zorder=0, label="predicted = measured")
        ax.set(xlabel="measured", ylabel=f"predicted, with intervals for {100 * self.coverage:g}%")
        style.legend_below(ax)


@dataclass(repr=False, eq=False)
class NoveltyDisplay(style.Display):
    """Histograms of novelty: how unlike the training samples others are, with the threshold.

    Parameters
    ----------
    novelty : dict of str to array
        Novelties in [0, 1] of groups of samples, by the name of the group.
    threshold : float
        Novelty that few samples of the same kind exceed.
    false_alarms : float
        How few.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np
    >>> from fewkern.plotting import NoveltyDisplay
    >>> display = NoveltyDisplay({"samples": np.array([0.01, 0.02, 0.3])}, threshold=0.1, false_alarms=0.05).plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()][0]
    'threshold (5% false alarms)'
    """

    novelty: dict[str, Any]
    threshold: float
    false_alarms: float

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, others: Any = None, *, false_alarms: float = 0.05, ax: Any = None
    ) -> Self:
        """Picture of ``novelty`` of a fitted model.

        Parameters
        ----------
        estimator : fitted model with ``novelty`` and ``novelty_threshold``, or Pipeline or search that ends in one
        X : array or data frame
            Samples of the kind that the model was fitted to.
        others : array or data frame or None, default None
            Samples that may be of another kind.
        false_alarms : float, default 0.05
        ax : matplotlib axes or None, default None
        """
        groups = {"samples": X} if others is None else {"samples": X, "other samples": others}
        novelty = {}
        for name, given in groups.items():
            model, seen = _with_method(cls, estimator, given, "novelty")
            novelty[name] = to_numpy(model.novelty(seen))
        threshold = float(fitted_model(estimator).model.novelty_threshold(false_alarms))
        return cls(novelty, threshold, false_alarms).plot(ax)

    def _draw(self, ax: Any) -> None:
        highest = max(self.threshold, *(float(np.max(values)) for values in self.novelty.values()))
        edges = np.linspace(0.0, min(1.05 * highest, 1.0) or 1.0, _BARS + 1)
        threshold = f"threshold ({100 * self.false_alarms:g}% false alarms)"
        ax.axvline(self.threshold, color="black", lw=1.5, ls="--", label=threshold)
        for color, (name, values) in zip(style.CLASSES, self.novelty.items()):
            label = f"{len(values)} {name}: {100 * float(np.mean(values > self.threshold)):.0f}% above it"
            weights = np.full(len(values), 1 / len(values))
            ax.hist(values, bins=edges, weights=weights, color=color, alpha=0.55, label=label)
        ax.set(xlabel="novelty: what the kept vectors do not explain of a sample", ylabel="share of the samples")
        style.percent_ticks(ax.yaxis)
        style.legend_below(ax)


def _with_method(display: type, estimator: Any, X: Any, method: str) -> tuple[Any, Any]:
    """The estimator if it has the method itself, else the model inside, each with the samples as it takes them."""
    found = fitted_model(estimator, X)
    if hasattr(estimator, method):
        return estimator, X
    if hasattr(found.model, method):
        return found.model, found.X
    raise ValueError(
        f"{display.__name__}: {type(found.model).__name__} has no {method}; use a model that has it, such as "
        "KernelRegressor."
    )


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
        colors = [style.CHOSEN if share > 0 else style.ACCENT for share in shares]
        ax.barh(places, shares, left=starts, height=0.7, color=colors)
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
        some = take_rows(X, rows)
        frame = estimator.encoder_.frame(some)
        return estimator.explain(some), [frame[name].iloc[0] for name in estimator.encoder_.columns]
    seen = fitted_model(estimator, X)
    if not hasattr(seen.model, "explain"):
        raise ValueError(
            f"explain: {type(seen.model).__name__} has no method explain; models of classes and numbers with a "
            "Gaussian kernel have one."
        )
    some = take_rows(seen.X, rows)
    found, first = seen.model.explain(some), seen.given_units(as_numbers(take_rows(some, [0])))
    return Explanation(found.values, found.baseline, tuple(seen.labels), found.output_names), first[0]


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
