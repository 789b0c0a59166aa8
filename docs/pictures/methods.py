"""One picture per method."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorSelector,
    ForwardDensity,
    GraphEmbedding,
    KernelClassifier,
    ParzenDensity,
    RecursiveSoftMargin,
    RecursiveSVM,
    SparseKernelFisher,
)
from fewkern.datasets import make_banana, make_gaussian_laplacian
from fewkern.fisher import fisher_path
from fewkern.kernels import Gaussian
from fewkern.plotting import DensityDisplay, PathDisplay, VectorsDisplay
from fewkern.plotting.style import ACCENT, CHOSEN, CLASSES, QUIET
from pictures.canvas import panels, picture, scatter, square


@picture
def recursive_svm() -> Any:
    """Two components of one problem with two classes, and the samples in their plane."""
    X, y = make_banana(300, noise=0.2, random_state=0)
    model = RecursiveSVM(kernel=Gaussian(0.8), class_weight="balanced", n_components=2).fit(X, y)
    fig, axes = panels(3)
    xx, yy, grid = square(X)
    values = model.transform(grid).reshape(*xx.shape, 2)
    colors = LinearSegmentedColormap.from_list("classes", [CLASSES[0], "white", CLASSES[1]])
    for k, ax in enumerate(axes[:2]):
        largest = np.abs(values[:, :, k]).max()
        ax.contourf(xx, yy, values[:, :, k], levels=np.linspace(-largest, largest, 15), cmap=colors, alpha=0.5)
        scatter(ax, X, y)
        ax.set(title=f"component {k + 1}", xlabel="feature 1", ylabel="feature 2")
    scatter(axes[2], model.transform(X), y)
    axes[2].set(title="the samples on both", xlabel="component 1", ylabel="component 2")
    return fig


@picture
def recursive_soft_margin() -> Any:
    """Four classes, one far away: the scatter serves the far class, margins serve the close ones."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    X = np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 10.0], [40.0, 15.0]])[y] + rng.standard_normal((len(y), 2))
    fig, axes = panels(3)
    scatter(axes[0], X, y)
    axes[0].set(title="samples", xlabel="feature 1", ylabel="feature 2")
    models = {
        "GraphEmbedding": GraphEmbedding(n_components=1),
        "RecursiveSoftMargin": RecursiveSoftMargin(n_components=1, C=50),
    }
    for ax, style, (name, model) in zip(axes[1:], ("--", "-"), models.items()):
        T = model.fit_transform(X, y)[:, 0]
        bins = np.linspace(T.min(), T.max(), 60)
        for c in range(4):
            ax.hist(T[y == c], bins=bins, color=CLASSES[c], alpha=0.6)
        ax.set(title=name, xlabel="component 1", yticks=[])
        along = model.components_[0] * np.sign(model.components_[0].sum()) / np.linalg.norm(model.components_[0])
        start = np.array([15.0, 2.0])
        axes[0].plot(*np.stack([start, start + 10 * along]).T, style, color="black", label=name)
    axes[0].set_aspect("equal", adjustable="datalim")
    axes[0].legend(frameon=False, loc="lower right", fontsize="small")
    return fig


@picture
def selection() -> Any:
    """Chosen samples among all of them, how much they explain, and the error of every number of them."""
    X, y = make_banana(400, random_state=0)
    kernel = Gaussian(1.0)
    fig, axes = panels(3)
    chosen = FeatureVectorSelector(kernel=kernel, max_vectors=15).fit(X)
    axes[0].scatter(*X.T, s=8, color=QUIET, lw=0)
    axes[0].scatter(*chosen.vectors_.T, s=50, facecolors="none", edgecolors="black", linewidths=1.3)
    axes[0].set(title="15 chosen of 400 samples", xlabel="feature 1", ylabel="feature 2")
    for rule, color in {"gain": ACCENT, "greedy": CHOSEN, "uniform": QUIET}.items():
        fitness = FeatureVectorSelector(kernel=kernel, max_vectors=30, rule=rule).fit(X).fitness_
        axes[1].semilogy(np.arange(1, len(fitness) + 1), 1 - fitness, color=color, lw=2, label=rule)
    axes[1].set(title="what they leave unexplained", xlabel="number of vectors", ylabel="1 - global fitness")
    axes[1].legend(frameon=False)
    PathDisplay.from_estimator(FeatureVectorDiscriminant().fit(X, y), ax=axes[2])
    axes[2].set(title="how many are needed", xlim=(0, 60), ylabel="leave-one-out error")
    axes[2].legend(*axes[2].get_legend_handles_labels(), frameon=False, fontsize=7, loc="upper right")
    return fig


@picture
def moved_vectors() -> Any:
    """Five vectors that are samples, as in the paper, and five that the learner has moved."""
    X, y = make_banana(600, random_state=0)
    X_test, y_test = make_banana(5000, random_state=1)
    fig, axes = panels(2)
    kinds = {"samples": FeatureVectorDiscriminant, "moved": KernelClassifier}
    for ax, (kind, estimator) in zip(axes, kinds.items()):
        model = estimator(n_vectors=5).fit(X, y)
        xx, yy, grid = square(np.concatenate([X, model.vectors_]))
        values = model.decision_function(grid)
        boundary = xx, yy, np.stack([-values, values], axis=1).reshape(*xx.shape, 2)
        VectorsDisplay(X, y, model.vectors_, boundary).plot(ax)
        ax.get_legend().remove()
        title = f"5 {kind}, test error {1 - model.score(X_test, y_test):.1%}"
        ax.set(title=title, xlabel="feature 1", ylabel="feature 2")
    return fig


@picture
def kernel_fisher() -> Any:
    """Samples that two penalties retain, and their number along the path."""
    X, y = make_banana(300, random_state=0)
    kernel = Gaussian(0.8)
    fig, axes = panels(3)
    for ax, q, color in zip(axes, (1, 0.5), (ACCENT, CHOSEN)):
        model = SparseKernelFisher(kernel=kernel, q=q, prefer="sparse").fit(X, y)
        VectorsDisplay.from_estimator(model, X, y, ax=ax)
        ax.get_legend().remove()
        ax.set(title=f"q = {q:g}: {model.n_vectors_} of {len(X)} kept", xlabel="feature 1", ylabel="feature 2")
        path = fisher_path(SparseKernelFisher(kernel=kernel, q=q), X, y, alphas=15)
        axes[2].semilogx(path.alphas, path.n_vectors, "o-", ms=3, color=color, label=f"q = {q:g}")
    axes[2].invert_xaxis()
    axes[2].set(title="along the penalty", xlabel="penalty", ylabel="samples kept")
    axes[2].legend(frameon=False)
    return fig


@picture
def density() -> Any:
    """One kernel for every sample, and a few."""
    X = make_gaussian_laplacian(500, random_state=3)
    fig, axes = panels(2)
    for ax, (name, model) in zip(axes, {"Parzen": ParzenDensity(), "ForwardDensity": ForwardDensity()}.items()):
        DensityDisplay.from_estimator(model.fit(X), X, ax=ax)
        ax.get_legend().remove()
        ax.set(title=f"{name}: {model.n_vectors_} kernels", xlabel="feature 1", ylabel="feature 2")
    return fig
