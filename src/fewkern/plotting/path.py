"""Curves: errors of all settings that a fit compared, the path of a penalty, and accuracy by components."""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from fewkern.arrays.namespace import to_numpy
from fewkern.base import path_of
from fewkern.core.path import Path
from fewkern.plotting.fitted import fitted_model, take_rows
from fewkern.plotting.style import (
    ACCENT,
    CHOSEN,
    CLASSES,
    QUIET,
    Display,
    count_ticks,
    legend_below,
    legend_beside,
    percent_ticks,
)

# What the errors of a regression may be, which are shown in the units of the target, and of a classification.
_SQUARED = "mean squared leave-one-out error"
# Letters of a label that fit beside the axes.
_LABEL_LETTERS = 32
# Lines of a path of the learner, one per value of the axis "origin": what the vectors are, and a color.
_ORIGINS = {
    0.0: ("vectors that are samples", CLASSES[2]),
    1.0: ("vectors moved to imitate a larger model", CLASSES[3]),
    2.0: ("vectors moved to lower the error", ACCENT),
}
# Share of the picture's height below the least error, and above where the chosen curve begins.
_BELOW, _ABOVE = 0.05, 0.15


@dataclass(repr=False, eq=False)
class PathDisplay(Display):
    """Error against the number of vectors (or the bandwidth) along the chosen path, with the best of the other paths.

    For :class:`~fewkern.KernelClassifier` and :class:`~fewkern.KernelRegressor` there is one line for every kind of
    vectors that was compared.

    Parameters
    ----------
    path : Path
        ``path_`` of any estimator.
    measure : str or None
        What the errors are, in words; None takes those of the path.
    root : bool, default False
        Show square roots: a mean squared error then is in the units of the target.
    remark : str, default ""
        About the final model, after its size.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import KernelClassifier
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.plotting import PathDisplay
    >>> display = PathDisplay.from_estimator(KernelClassifier().fit(*make_banana(200)))
    >>> display.ax_.get_xlabel()
    'number of vectors'
    """

    path: Path
    measure: str | None = None
    root: bool = False
    remark: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Picture of ``path_`` of an estimator; of a Pipeline or a search, that of the model inside."""
        model = fitted_model(estimator).model
        path = path_of(model)
        if path is None:
            raise ValueError(
                f"PathDisplay: expected an estimator that compares settings, but {type(model).__name__} has no "
                "path of errors (path_)."
            )
        squared = path.measure == _SQUARED
        measure = f"{path.measure} of the class scores" if squared and is_classifier(model) else None
        return cls(path, measure, squared and is_regressor(model), _remark(model)).plot(ax)

    def _draw(self, ax: Any) -> None:
        path = self.path
        if not path.error.ndim or max(path.error.shape) == 1:
            ax.plot(np.arange(1, len(path.objectives) + 1), path.objectives, color=ACCENT, lw=2)
            ax.set(xlabel="step", ylabel="what the fit minimizes")
            count_ticks(ax.xaxis)
            return
        x, y, spread = (to_numpy(values).astype(float) for values in path.curve)
        seen = np.isfinite(y)
        band = np.where(np.isfinite(spread), spread, 0.0)
        x, error, low, high = x[seen], *(self._shown(values[seen]) for values in (y, y - band, y + band))
        label, color, form, width = self._label() or None, ACCENT, "-" if len(x) > 1 else "o", 2.0
        if self._origins:
            (label, color), form, width = _ORIGINS[path.setting["origin"]], "o-", 2.5
        others = self._others()
        for name, other, sizes, errors in others:
            ax.plot(sizes, errors, "o-" if self._origins else "-", color=other, lw=width - 1, ms=4, label=name)
        if band.any():
            ax.fill_between(x, low, high, color=color, alpha=0.15, lw=0, label="± one standard error")
        ax.plot(x, error, form, color=color, lw=width, ms=4 if self._origins else None, label=label)
        size = float(to_numpy(path.curve[0])[path.chosen[-1]])
        chosen = self._shown(y[[path.chosen[-1]]])
        ax.plot([size], chosen, "o", color=CHOSEN, ms=9, zorder=5, label=f"chosen: {self._chosen(size)}{self.remark}")
        # curves of other length scales may begin far above: they must not squeeze the one that was chosen
        least = min(low.min(), *(errors.min() for *_, errors in others), np.inf)
        most = high[0] if self._counts else high.max()
        if self._origins:
            most = max(high.max(), *(errors.max() for *_, errors in others), -np.inf)
        room = most - least
        if room > 0:
            bottom = least - _BELOW * room
            ax.set_ylim(max(bottom, 0.0) if least >= 0 else bottom, most + _ABOVE * room)
        self._say(ax, x)

    def _say(self, ax: Any, x: np.ndarray) -> None:
        """Labels, ticks and the legend, which is below the axes: its words are long."""
        measure = self.measure or self.path.measure
        ax.set_ylabel(textwrap.fill(f"root {measure}" if self.root else measure, _LABEL_LETTERS))
        if measure == "cross-validated error":
            percent_ticks(ax.yaxis)
        if not self._counts:
            ax.set_xlabel(_words(list(self.path.axes)[-1]))
        else:
            ax.set_xlabel("number of vectors" if self.path.size is None else "number of vectors (mean of the folds)")
        if self._origins or (not self._counts and x.min() > 0):
            ax.set_xscale("log")
            _plain_ticks(ax.xaxis)
        elif self._counts:
            count_ticks(ax.xaxis)
        legend_below(ax)

    def _shown(self, errors: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(errors, 0.0)) if self.root else errors

    @property
    def _first(self) -> str:
        return next(iter(self.path.axes))

    @property
    def _origins(self) -> bool:
        """Whether lines are kinds of vectors."""
        return self._first == "origin"

    @property
    def _counts(self) -> bool:
        """Whether the curve is over numbers of vectors."""
        return self.path.size is not None or list(self.path.axes)[-1] == "n_vectors"

    def _chosen(self, size: float) -> str:
        if not self._counts:
            return f"{size:.3g}"
        about = "" if float(size).is_integer() else "about "
        return f"{about}{size:.0f} {'vector' if size == 1 else 'vectors'}"

    def _label(self) -> str:
        """The settings of the chosen path."""
        names = list(self.path.setting)[: -1 if self.path.size is None else None]
        return ", ".join(f"{_words(name)} {self.path.setting[name]:.3g}" for name in names)

    def _others(self) -> list[tuple[str | None, str, np.ndarray, np.ndarray]]:
        """Label, color, sizes and least errors of every other value of the first axis, where there are several axes."""
        error = to_numpy(self.path.error).astype(float)
        if error.ndim < 2:
            return []
        found: list[tuple[str | None, str, np.ndarray, np.ndarray]] = []
        for i, value in enumerate(self.path.axes[self._first]):
            best = error[i].min(axis=tuple(range(error.ndim - 2)))
            x = to_numpy(self.path.curve[0] if self.path.size is None else self.path.size[i]).astype(float)
            seen = np.isfinite(best)
            if i != self.path.chosen[0] and seen.any():
                same = None if found else f"other {_words(self._first)}s", QUIET
                found.append((*(_ORIGINS[value] if self._origins else same), x[seen], self._shown(best[seen])))
        return found


@dataclass(repr=False, eq=False)
class FisherPathDisplay(Display):
    """Number of vectors and training error along the penalty of a sparse kernel Fisher discriminant.

    Parameters
    ----------
    alphas, n_vectors, errors : arrays of the same length

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.fisher import fisher_path
    >>> from fewkern.plotting import FisherPathDisplay
    >>> path = fisher_path(SparseKernelFisher(), *make_banana(120), alphas=5)
    >>> display = FisherPathDisplay.from_path(path)
    >>> display.ax_.get_ylabel()
    'number of vectors'
    """

    alphas: Any
    n_vectors: Any
    errors: Any

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None) -> Self:
        """Picture of what :func:`fewkern.fisher.fisher_path` returns."""
        return cls(path.alphas, path.n_vectors, path.errors).plot(ax)

    def _draw(self, ax: Any) -> None:
        """The error has an axis of its own on the right."""
        ax.plot(self.alphas, self.n_vectors, "o-", color=ACCENT, lw=2, ms=5)
        # from the sparsest machine on
        ends = (1.2 * max(self.alphas), min(self.alphas) / 1.2)
        ax.set(xscale="log", xlim=ends, xlabel="penalty: the smaller, the more vectors are kept", ylim=(0, None))
        ax.set_ylabel("number of vectors", color=ACCENT)
        count_ticks(ax.yaxis)
        self.error_ax_ = right = ax.twinx()
        right.plot(self.alphas, self.errors, "s--", color=CHOSEN, lw=1.5, ms=5)
        right.set_ylabel("training samples misclassified", color=CHOSEN)
        right.set_ylim(bottom=0)
        percent_ticks(right.yaxis)
        right.spines["top"].set_visible(False)


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
        """Fit clones of ``estimator`` to the training part of every fold, and classify the other part by components.

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
        from sklearn.model_selection import StratifiedKFold
        from sklearn.neighbors import KNeighborsClassifier

        y = to_numpy(y)
        classifier = KNeighborsClassifier() if classifier is None else classifier
        folds = []
        with warnings.catch_warnings():
            # the picture shows how many components there are
            warnings.filterwarnings("ignore", message=".*was asked for, but these samples give only")
            for train, test in StratifiedKFold(cv).split(np.zeros(len(y)), y):
                model = clone(estimator).fit(take_rows(X, train), y[train])
                A, B = (to_numpy(model.transform(take_rows(X, part))) for part in (train, test))
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
        percent_ticks(ax.yaxis)
        legend_beside(ax)


def _words(name: str) -> str:
    """The name of an axis in words."""
    return name.replace("_", " ")


def _remark(model: Any) -> str:
    """The held-out error of the fitted model."""
    error = getattr(model, "held_out_error_", None)
    if error is None:
        return ""
    if is_classifier(model):
        return f"\n({100 * float(error):.1f}% of held-out samples misclassified)"
    root = float(error) ** 0.5
    return f"\n(RMSE {f'{root:,.0f}' if root >= 1000 else f'{root:.3g}'} on held-out samples)"


def _plain_ticks(axis: Any) -> None:
    """Numbers such as 0.5 on a logarithmic axis, in place of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if high > 10 * low else MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
