"""Feature importances of a fitted model, as bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.plotting.model import fitted_model
from fewkern.plotting.style import ACCENT, QUIET, axes_for, open_frame

__all__ = ["ImportancesDisplay"]

# Bars that are drawn; the features beyond are added up in one more.
_MOST_BARS = 20
# Height of a bar, and of the axis below them, in inches: many bars make the picture taller.
_BAR, _MARGIN = 0.28, 1.0


class ImportancesDisplay:
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

    def __init__(self, importances: Any, names: list[str]) -> None:
        self.importances = importances
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: Any, *, feature_names: Any = None, ax: Any = None) -> ImportancesDisplay:
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

    def plot(self, ax: Any = None) -> ImportancesDisplay:
        """Draw on ``ax`` (new axes by default)."""
        order = np.argsort(-self.importances, kind="stable")
        shown = order[:_MOST_BARS] if len(order) > _MOST_BARS + 1 else order
        values, names = list(self.importances[shown]), [self.names[j] for j in shown]
        rest = len(order) - len(shown)
        if rest:
            values.append(float(self.importances[order[len(shown) :]].sum()))
            names.append(f"{rest} others")
        new = ax is None
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        if new:
            ax.figure.set_figheight(max(2.4, _BAR * len(values) + _MARGIN))
        places = np.arange(len(values))
        bars = ax.barh(places, values, height=0.7, color=[ACCENT] * len(shown) + [QUIET] * bool(rest))
        ax.bar_label(bars, [f"{100 * value:.1f}%" for value in values], padding=3, fontsize=8)
        ax.set_yticks(places, names, parse_math=False)  # a name may have dollar signs
        ax.set_ylim(len(values) - 0.4, -0.6)
        ax.set_xlim(0, 1.12 * max(*values, 1e-9) if len(values) > 1 else 1.12)
        ax.set_xlabel("share in the variation of the model")
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        open_frame(ax)
        return self
