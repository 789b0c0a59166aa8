"""How far predictions can be trusted: intervals of a regressor, and samples unlike those of the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.plotting.fitted import fitted_model
from fewkern.plotting.style import ACCENT, CHOSEN, CLASSES, QUIET, Display, legend_below, percent_ticks

# Bars of a histogram over the whole range of novelties.
_BARS = 40


@dataclass(repr=False, eq=False)
class IntervalsDisplay(Display):
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
        for held, color, word in ((True, ACCENT, "holds the value"), (False, CHOSEN, "misses it")):
            own = inside == held
            if own.any():
                ax.vlines(self.truth[own], low[own], high[own], color=color, lw=1, alpha=0.35)
                label = f"{100 * own.mean():.0f}%: the interval {word}"
                ax.scatter(self.truth[own], self.predicted[own], s=16, color=color, lw=0, label=label)
        ends = self.truth.min(), self.truth.max()
        ax.plot(ends, ends, color=QUIET, lw=1.5, zorder=0, label="predicted = measured")
        ax.set(xlabel="measured", ylabel=f"predicted, with intervals for {100 * self.coverage:g}%")
        legend_below(ax)


@dataclass(repr=False, eq=False)
class NoveltyDisplay(Display):
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
        for color, (name, values) in zip(CLASSES, self.novelty.items()):
            label = f"{len(values)} {name}: {100 * float(np.mean(values > self.threshold)):.0f}% above it"
            weights = np.full(len(values), 1 / len(values))
            ax.hist(values, bins=edges, weights=weights, color=color, alpha=0.55, label=label)
        ax.set(xlabel="novelty: what the kept vectors do not explain of a sample", ylabel="share of the samples")
        percent_ticks(ax.yaxis)
        legend_below(ax)


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
