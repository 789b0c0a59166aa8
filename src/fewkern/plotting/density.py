"""A fitted density: a curve for one feature, contours for two, with the kernels that make it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import to_numpy
from fewkern.density.mixture import KernelMixture
from fewkern.plotting.style import ACCENT, CLASSES, QUIET, axes_for

__all__ = ["DensityDisplay"]

# More kernels than this are drawn as dots without their widths: a picture of a thousand ellipses shows nothing.
_MOST_KERNELS = 100
_POINTS_1D, _POINTS_2D = 600, 160


class DensityDisplay:
    """The density of one or two features, with the samples and the kernels: center, weight and width of each.

    In one dimension every kernel is drawn as its part of the sum; in two as the ellipse of one standard deviation
    with a dot at its center, whose area goes with the weight.

    Parameters
    ----------
    grid : tuple of arrays
        One axis for one feature, two for two.
    values : array
        Density on the grid.
    mixture : KernelMixture
        With NumPy arrays.
    X : array of shape (n, d) or None
        Samples to show.

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

    def __init__(self, grid: tuple[Any, ...], values: Any, mixture: KernelMixture, X: Any = None) -> None:
        self.grid = grid
        self.values = values
        self.mixture = mixture
        self.X = X

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> DensityDisplay:
        """Picture of a fitted density of one or two features, among the samples ``X`` if given."""
        check_is_fitted(estimator, "expansion_")
        mixture = estimator.expansion_.like(np.empty(0))
        dim = mixture.vectors.shape[1]
        if dim > 2:
            raise ValueError(
                f"DensityDisplay: a picture needs a density of one or two features, got {dim}; fit it to one or two "
                "columns."
            )
        X = None if X is None else np.asarray(to_numpy(X), dtype=float)
        low, high = _region(mixture, X)
        if dim == 1:
            axis = np.linspace(low[0], high[0], _POINTS_1D)
            return cls((axis,), mixture(axis[:, None])[:, 0], mixture, X).plot(ax)
        xx, yy = np.meshgrid(*[np.linspace(a, b, _POINTS_2D) for a, b in zip(low, high)])
        values = mixture(np.column_stack([xx.ravel(), yy.ravel()]))[:, 0].reshape(xx.shape)
        return cls((xx, yy), values, mixture, X).plot(ax)

    def plot(self, ax: Any = None) -> DensityDisplay:
        """Draw on ``ax`` (new axes by default)."""
        self.ax_ = ax = axes_for(ax)
        self.figure_ = ax.figure
        if len(self.grid) == 1:
            self._plot_curve(ax)
        else:
            self._plot_contours(ax)
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _plot_curve(self, ax: Any) -> None:
        (axis,) = self.grid
        if self.X is not None:
            ax.hist(
                self.X[:, 0], bins="auto", density=True, color=QUIET, alpha=0.5, lw=0, label=f"{len(self.X)} samples"
            )
        few = self.mixture.n_vectors <= _MOST_KERNELS
        for j in range(self.mixture.n_vectors if few else 0):
            part = float(self.mixture.weights[j]) * _single(self.mixture, j)(axis[:, None])[:, 0]
            label = _count(self.mixture.n_vectors) if j == 0 else None
            ax.plot(axis, part, color=CLASSES[1], lw=1, alpha=0.8, label=label)
        ax.plot(axis, self.values, color=ACCENT, lw=2, label="density")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("feature 0")
        ax.set_ylabel("density")

    def _plot_contours(self, ax: Any) -> None:
        from matplotlib import colormaps
        from matplotlib.patches import Ellipse

        xx, yy = self.grid
        # equal parts of the logarithm: the tails are where densities differ
        top = float(self.values.max())
        levels = top * np.geomspace(1e-3, 0.9, 9)
        shades = [colormaps["Blues"](shade) for shade in np.linspace(0.08, 0.85, len(levels))]
        ax.contourf(xx, yy, self.values, levels=[*levels, top * 1.01], colors=shades, alpha=0.8)
        if self.X is not None:
            ax.scatter(*self.X.T, s=6, color="#5a6b7b", alpha=0.5, lw=0, label=f"{len(self.X)} samples")
        mixture = self.mixture
        few = mixture.n_vectors <= _MOST_KERNELS
        inverse = np.linalg.inv(np.diag(mixture.transform) if mixture.transform.ndim == 1 else mixture.transform)
        # one standard deviation of a kernel of width one: the unit circle under the inverse of the scaling
        axes, lengths, _ = np.linalg.svd(inverse)
        angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
        for center, width in zip(mixture.vectors, mixture.widths) if few else ():
            size = 2 * float(width) * lengths
            ax.add_patch(
                Ellipse(
                    tuple(center), size[0], size[1], angle=angle, fill=False, edgecolor=CLASSES[1], lw=1.1, alpha=0.9
                )
            )
        area = 160 * mixture.weights / mixture.weights.max() if few else 4
        ax.scatter(*mixture.vectors.T, s=area, color=CLASSES[1], lw=0, zorder=4, label=_count(mixture.n_vectors))
        ax.set_xlim(xx.min(), xx.max())
        ax.set_ylim(yy.min(), yy.max())
        ax.set_xlabel("feature 0")
        ax.set_ylabel("feature 1")


def _count(n: int) -> str:
    return f"{n} kernels" if n > 1 else "1 kernel"


def _single(mixture: KernelMixture, j: int) -> KernelMixture:
    """Kernel ``j`` alone, with weight one."""
    return KernelMixture(mixture.vectors[j : j + 1], np.ones(1), mixture.widths[j : j + 1], mixture.transform)


def _region(mixture: KernelMixture, X: Any) -> tuple[Any, Any]:
    """Corners of the picture: the samples where there are any, otherwise 2.5 widths around the centers."""
    if X is not None:
        low, high = np.quantile(X, [0.002, 0.998], axis=0)
        margin = 0.1 * np.maximum(high - low, 1e-12)
        return low - margin, high + margin
    matrix = np.diag(mixture.transform) if mixture.transform.ndim == 1 else mixture.transform
    spread = np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))
    reach = 2.5 * mixture.widths[:, None] * spread
    return (mixture.vectors - reach).min(axis=0), (mixture.vectors + reach).max(axis=0)
