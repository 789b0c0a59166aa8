"""The picture of the front page and of the README: an SVC and a model of ours, for light and dark pages."""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba
from sklearn.svm import SVC

from fewkern import KernelClassifier
from fewkern.datasets import make_banana
from fewkern.plotting.style import CLASSES
from pictures.canvas import picture

LIGHT = {"ink": "#1c2733", "page": "#ffffff", "ring": "#111111", "shade": 0.14}
DARK = {"ink": "#d5dde5", "page": "#131416", "ring": "#ffffff", "shade": 0.28}
# The dark blue of the classes is hard to see on black.
ON_DARK = ("#5aa9e6", "#ff9248")


@cache
def fitted() -> tuple[Any, Any, list[tuple[str, Any, Any]]]:
    """Samples, labels, and of both models the title, the vectors and the decision function."""
    X, y = make_banana(2000, random_state=0)
    X_test, y_test = make_banana(20_000, random_state=1)
    svc, ours = SVC().fit(X, y), KernelClassifier().fit(X, y)
    models = []
    for name, model, vectors, unit in (
        ("SVC", svc, svc.support_vectors_, "support vectors"),
        ("fewkern", ours, ours.vectors_, "vectors"),
    ):
        title = f"{name}: {len(vectors)} {unit}, {1 - model.score(X_test, y_test):.1%} error"
        models.append((title, vectors, model.decision_function))
    return X, y, models


def hero(style: dict[str, Any], colors: tuple[str, ...]) -> Any:
    """Both models with the vectors that they keep, circled."""
    X, y, models = fitted()
    fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained", sharex=True, sharey=True)
    fig.set_facecolor(style["page"])
    shown = np.concatenate([X, *(vectors for _, vectors, _ in models)])  # moved vectors may lie outside
    low, high = shown.min(axis=0) - 0.25, shown.max(axis=0) + 0.25
    xx, yy = np.meshgrid(*(np.linspace(a, b, 200) for a, b in zip(low, high)))
    for ax, (title, vectors, decide) in zip(axes, models):
        values = decide(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape)
        shades = [to_rgba(color, style["shade"]) for color in colors[:2]]
        ax.contourf(xx, yy, values, levels=[values.min() - 1, 0, values.max() + 1], colors=shades)
        ax.contour(xx, yy, values, levels=[0], colors=[style["ink"]], linewidths=1.6)
        for c in (0, 1):
            ax.scatter(*X[y == c].T, s=5, color=colors[c], alpha=0.45, lw=0, rasterized=True)
        few = len(vectors) < 50
        ax.scatter(
            *vectors.T,
            s=90 if few else 22,
            facecolors="none",
            edgecolors=style["ring"],
            linewidths=2.0 if few else 0.6,
            alpha=1.0 if few else 0.7,
        )
        ax.set_title(title, color=style["ink"], fontsize=12.5, fontweight="bold" if few else "normal")
        ax.set_axis_off()
    return fig


@picture
def hero_light() -> Any:
    """For a white page."""
    return hero(LIGHT, CLASSES)


@picture
def hero_dark() -> Any:
    """For a dark page."""
    return hero(DARK, ON_DARK)
