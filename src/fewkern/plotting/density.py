"""A fitted density: a curve for one feature, contours for two, pairs of features for more, with the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fewkern.density.mixture import KernelMixture
from fewkern.plotting.fitted import FittedModel, as_numbers, fitted_model
from fewkern.plotting.style import ACCENT, CLASSES, QUIET, SAMPLES, Display, large_dots, legend_beside, open_frame

# More kernels than this are drawn as dots without their widths: a picture of a thousand ellipses shows nothing.
_MOST_KERNELS = 100
# Points of a grid: for a curve, for contours, and for contours in one of many panels.
_POINTS_1D, _POINTS_2D, _POINTS_PANEL = 600, 160, 80
# More features than this are too many panels.
_MOST_FEATURES = 5
# The picture leaves out this share of the mass at either end of a feature, and then adds a part of the rest.
_TAIL, _MARGIN = 1e-3, 0.08
# Standard deviations around a center that hold all of a kernel that can be seen.
_REACH = 5.0
# Regions of growing density are layers of one color: so they show on light and dark backgrounds.
_LAYERS, _LAYER_ALPHA = 9, 0.11
# Area of the dot at the center of the heaviest kernel.
_DOT = 160.0


@dataclass(repr=False, eq=False)
class DensityDisplay(Display):
    """The density, with the samples and the kernels: center, weight and width of each.

    With one feature every kernel is drawn as its part of the sum; with two as the ellipse of one standard deviation
    with a dot at its center, whose area goes with the weight. More features are shown in pairs, and each alone on the
    diagonal: the density of some features is that of the mixture without the others.

    Parameters
    ----------
    mixture : KernelMixture
        With NumPy arrays, of the features that are shown.
    X : array of shape (n, d) or None
        Samples to show.
    names : list of str or None
        One per feature.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        With three features and more, ``ax_`` is what holds the panels.
    axes_ : array of axes or None
        The panels, with three features and more.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fewkern import ForwardDensity
    >>> from fewkern.datasets import make_gaussian_laplacian
    >>> from fewkern.plotting import DensityDisplay
    >>> X = make_gaussian_laplacian(300, random_state=0)
    >>> display = DensityDisplay.from_estimator(ForwardDensity().fit(X), X)
    >>> display.ax_.get_xlabel()
    'feature 0'
    """

    mixture: KernelMixture
    X: Any = None
    names: Sequence[str] = ()
    axes_ = None

    def __post_init__(self) -> None:
        self.names = self.names or [f"feature {j}" for j in range(self.mixture.vectors.shape[1])]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, features: Sequence[Any] | None = None, ax: Any = None
    ) -> Self:
        """Picture of a fitted density, among the samples ``X`` if given.

        Parameters
        ----------
        estimator : fitted density, or Pipeline or search that ends in one
        X : array or data frame or None, default None
        features : sequence of int or str, or None, default None
            Numbers or names of the features to show; None shows all of them, and of more than five the first five.
        ax : matplotlib axes or None, default None
        """
        found = fitted_model(estimator, X)
        mixture = getattr(found.model, "expansion_", None)
        if not isinstance(mixture, KernelMixture):
            raise ValueError(
                f"DensityDisplay: expected a density of fewkern, but {type(found.model).__name__} has none; the "
                "densities_ of a DensityClassifier can be drawn one by one."
            )
        mixture = mixture_in_units(mixture.like(np.empty(0)), found)
        columns = _columns(features, found.names)
        samples = None if X is None else found.given_units(as_numbers(found.X))[:, columns]
        return cls(mixture.marginal(columns), samples, [found.labels[j] for j in columns]).plot(ax)

    def _size(self) -> tuple[float, float]:
        dim = len(self.names)
        return (2.1 * dim + 1, 2.1 * dim) if dim > 2 else super()._size()

    def _draw(self, ax: Any) -> None:
        """One or two features in one panel, more in several."""
        if len(self.names) > 2:
            self._draw_pairs(ax)
            return
        if len(self.names) == 1:
            self._draw_curve(ax, self.mixture, 0)
            ax.set_ylabel("density")
        else:
            self._draw_contours(ax, (0, 1), _POINTS_2D)
        legend_beside(ax)

    def _draw_pairs(self, ax: Any) -> None:
        """The features alone on the diagonal, pairs of them below it."""
        dim = len(self.names)
        ax.set_axis_off()
        places = ax.get_subplotspec().subgridspec(dim, dim)
        self.axes_ = np.full((dim, dim), None, dtype=object)
        for i in range(dim):
            for j in range(i + 1):
                self.axes_[i, j] = panel = ax.figure.add_subplot(places[i, j])
                if i == j:
                    self._draw_curve(panel, self.mixture.marginal([j]), j)
                    panel.set_yticks([])
                else:
                    self._draw_contours(panel, (j, i), _POINTS_PANEL)
                panel.label_outer()
                # units on a line of their own: the panels are small
                for axis in (panel.xaxis, panel.yaxis):
                    axis.set_label_text(axis.get_label_text().replace(" (", "\n("), fontsize="small")
                panel.tick_params(labelsize="small")
                open_frame(panel)
        corner = ax.figure.add_subplot(places[0, dim - 1])
        corner.set_axis_off()
        large_dots(corner.legend(*self.axes_[1, 0].get_legend_handles_labels(), frameon=False, loc="upper right"))

    def _draw_curve(self, ax: Any, mixture: KernelMixture, j: int) -> None:
        low, high = _ends(mixture)
        axis = np.linspace(low, high, _POINTS_1D)
        if self.X is not None:
            own = self.X[(self.X[:, j] >= low) & (self.X[:, j] <= high), j]
            ax.hist(own, bins="auto", density=True, color=QUIET, alpha=0.5, lw=0, label=f"{len(self.X)} samples")
        few = mixture.n_vectors <= _MOST_KERNELS
        for k in range(mixture.n_vectors if few else 0):
            own = {"vectors": mixture.vectors[[k]], "bandwidths": mixture.bandwidths[[k]]}
            alone = replace(mixture, **own, weights=np.ones(1), indices=None)
            part = float(mixture.weights[k]) * alone(axis[:, None])[:, 0]
            label = _count(mixture.n_vectors) if k == 0 else None
            ax.plot(axis, part, color=CLASSES[1], lw=1, alpha=0.8, label=label)
        ax.plot(axis, mixture(axis[:, None])[:, 0], color=ACCENT, lw=2, label="density")
        ax.set(xlim=(low, high), ylim=(0, None))
        ax.set_xlabel(self.names[j], parse_math=False)

    def _draw_contours(self, ax: Any, pair: tuple[int, int], points: int) -> None:
        mixture = self.mixture if len(self.names) == 2 else self.mixture.marginal(pair)
        ends = [_ends(self.mixture.marginal([j])) for j in pair]
        xx, yy = np.meshgrid(*[np.linspace(*end, points) for end in ends])
        values = mixture(np.column_stack([xx.ravel(), yy.ravel()]))[:, 0].reshape(xx.shape)
        # equal parts of the logarithm: the tails are where densities differ
        top = float(values.max())
        for level in top * np.geomspace(1e-3, 0.9, _LAYERS):
            ax.contourf(xx, yy, values, levels=[level, 1.01 * top], colors=[ACCENT], alpha=_LAYER_ALPHA)
        if self.X is not None:
            ax.scatter(*self.X[:, list(pair)].T, s=8, color=SAMPLES, alpha=0.5, lw=0, label=f"{len(self.X)} samples")
        _draw_kernels(ax, mixture, _DOT if points == _POINTS_2D else _DOT / 4)
        ax.set(xlim=ends[0], ylim=ends[1])
        ax.set_xlabel(self.names[pair[0]], parse_math=False)
        ax.set_ylabel(self.names[pair[1]], parse_math=False)


def _draw_kernels(ax: Any, mixture: KernelMixture, dot: float) -> None:
    """Centers, and an ellipse of one standard deviation around each if they are few."""
    from matplotlib.patches import Ellipse

    few = mixture.n_vectors <= _MOST_KERNELS
    # one standard deviation of a kernel of width one: the unit circle under the inverse of the scaling
    axes, lengths, _ = np.linalg.svd(np.linalg.inv(_matrix(mixture)))
    angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
    for center, width in zip(mixture.vectors, mixture.bandwidths) if few else ():
        size = 2 * float(width) * lengths
        ax.add_patch(Ellipse(center, *size, angle=angle, fill=False, edgecolor=CLASSES[1], lw=1.1, alpha=0.9))
    area = dot * mixture.weights / mixture.weights.max() if few else 4
    ax.scatter(*mixture.vectors.T, s=area, color=CLASSES[1], lw=0, zorder=4, label=_count(mixture.n_vectors))


def _count(n: int) -> str:
    return f"{n} kernels" if n > 1 else "1 kernel"


def _columns(features: Sequence[Any] | None, names: list[str]) -> list[int]:
    """Numbers of the features to show."""
    if features is None:
        return list(range(min(len(names), _MOST_FEATURES)))
    found = [names.index(feature) if feature in names else feature for feature in features]
    if not 1 <= len(set(found)) == len(found) or not set(found) <= set(range(len(names))):
        raise ValueError(
            f"DensityDisplay: features must be names or numbers of features, each once, got {list(features)!r}; the "
            f"density has {', '.join(names)}."
        )
    return found


def _matrix(mixture: KernelMixture) -> np.ndarray:
    return np.diag(mixture.transform) if mixture.transform.ndim == 1 else mixture.transform


def mixture_in_units(mixture: KernelMixture, found: FittedModel) -> KernelMixture:
    """The density in the units of the given features, where a scaler comes before the model."""
    bounds, periods = mixture.bounds, mixture.periods
    if bounds is not None and periods is not None:
        bounds, periods = found.given_units(bounds), periods / np.abs(found.factor)
    vectors, transform = found.given_units(mixture.vectors), mixture.transform * found.factor
    return replace(mixture, vectors=vectors, transform=transform, bounds=bounds, periods=periods)


def _ends(mixture: KernelMixture) -> tuple[float, float]:
    """Ends of the picture of one feature: nearly all of the mass lies between them, and nothing beyond a bound."""
    least, largest = -np.inf, np.inf
    if mixture.bounds is not None and mixture.periods is not None:
        if np.isfinite(mixture.periods[0]):
            return 0.0, float(mixture.periods[0])
        least, largest = mixture.bounds[:, 0]
    spread = mixture.bandwidths / np.abs(_matrix(mixture)[0, 0])
    centers = mixture.vectors[:, 0]
    axis = np.linspace((centers - _REACH * spread).min(), (centers + _REACH * spread).max(), _POINTS_1D)
    below = mixture.cdf(axis[:, None])
    low = axis[max(int(np.searchsorted(below, _TAIL)) - 1, 0)]
    high = axis[min(int(np.searchsorted(below, 1 - _TAIL)), len(axis) - 1)]
    margin = _MARGIN * (high - low)
    return float(max(low - margin, least)), float(min(high + margin, largest))
