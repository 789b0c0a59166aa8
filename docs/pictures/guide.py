"""Pictures of the user guide."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from fewkern import (
    FeatureVectorDiscriminant,
    ForwardDensity,
    KernelClassifier,
    KernelRegressor,
    compress,
)
from fewkern.datasets import make_banana, make_gaussian_laplacian, make_sinc, make_waveform
from fewkern.plotting import PathDisplay
from fewkern.plotting.style import ACCENT, CHOSEN, CLASSES, QUIET
from pictures.canvas import panels, picture, scatter, square


@picture
def guide_sizes() -> Any:
    """The error of every kind and number of vectors, and the one that was chosen."""
    X, y = make_banana(1000, random_state=0)
    fig, ax = panels(1, height=3.8)
    fig.set_figwidth(6.4)
    PathDisplay.from_estimator(KernelClassifier().fit(X, y), ax=ax)
    return fig


@picture
def guide_regression() -> Any:
    """A noisy wave, the fitted function and its vectors."""
    X, y = make_sinc(200, noise=0.2, random_state=0)
    model = KernelRegressor().fit(X, y)
    grid = np.linspace(-3, 3, 300)[:, None]
    fig, ax = panels(1, height=3.2)
    fig.set_figwidth(6.4)
    ax.plot(X[:, 0], y, ".", color=QUIET, label="200 samples")
    ax.plot(grid[:, 0], np.sinc(grid[:, 0]), "--", color="black", lw=1, label="without the noise")
    ax.plot(grid[:, 0], model.predict(grid), color=CHOSEN, lw=2, label="the model")
    kept = model.vectors_
    ax.plot(
        kept[:, 0], model.predict(kept), "o", mfc="none", mec="black", ms=9, label=f"its {model.n_vectors_} vectors"
    )
    ax.set(xlabel="x", ylabel="y", xlim=(-3.1, 3.1))
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


@picture
def guide_digits() -> Any:
    """Five classes on two axes, found without and with labels."""
    X, y = load_digits(n_class=5, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    discriminant = FeatureVectorDiscriminant(n_vectors=60).fit(X_train, y_train)
    fig, axes = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
    for ax, model, title in (
        (axes[0], PCA(2).fit(X_train), "PCA"),
        (axes[1], discriminant, "FeatureVectorDiscriminant"),
    ):
        T = model.transform(X_test)[:, :2]
        colors = plt.get_cmap("tab10")(y_test)
        for (u, v), digit, color in zip(T, y_test, colors):
            ax.text(u, v, str(digit), color=color, fontsize=8, ha="center", va="center")
        ax.plot(*T.T, alpha=0)  # the texts alone would set no limits
        ax.set(title=title, xticks=[], yticks=[], xlabel="component 1", ylabel="component 2")
    return fig


@picture
def guide_novelty() -> Any:
    """Samples below a low quantile of the density are flagged."""
    X = make_gaussian_laplacian(500, random_state=3)
    density = ForwardDensity().fit(X)
    limit = np.quantile(density.score_samples(X), 0.02)
    odd = np.random.default_rng(0).uniform(-12, 12, size=(12, 2))
    odd = odd[np.linalg.norm(odd - X.mean(axis=0), axis=1) > 8]
    fig, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    xx, yy, grid = square(1.05 * np.concatenate([X, odd]), 200)
    values = density.score_samples(grid).reshape(xx.shape)
    ax.contour(xx, yy, values, levels=[limit], colors=[ACCENT], linewidths=1.5, linestyles="solid")
    ax.contourf(xx, yy, values, levels=[limit, values.max()], colors=[ACCENT], alpha=0.08)
    ax.scatter(*X.T, s=8, color="#8a97a3", lw=0)
    ax.scatter(*odd.T, s=40, color=CHOSEN, marker="X")
    ax.set(xlabel="feature 1", ylabel="feature 2", title=f"{density.n_vectors_} kernels, limit at the 2% quantile")
    return fig


@picture
def guide_compress() -> Any:
    """An SVC and the short model that decides the same."""
    X, y = make_banana(1000, random_state=0)
    svc = SVC().fit(X, y)
    short = compress(svc, X)
    fig, axes = panels(2)
    xx, yy, grid = square(X)
    for ax, model, vectors, title in (
        (axes[0], svc, svc.support_vectors_, f"SVC: {len(svc.support_)} support vectors"),
        (axes[1], short, short.vectors_, f"compressed: {short.n_vectors_} vectors"),
    ):
        scatter(ax, X, y)
        values = model.decision_function(grid).reshape(xx.shape)
        ax.contour(xx, yy, values, levels=[0], colors="black", linewidths=1.5)
        size = 16 if len(vectors) > 50 else 70
        ax.scatter(*vectors.T, s=size, facecolors="none", edgecolors="black", linewidths=0.6 if size < 50 else 1.6)
        ax.set(title=title, xticks=[], yticks=[])
    return fig


@picture
def guide_calibration() -> Any:
    """How often predictions are right, against how sure they are."""
    X, y = make_waveform(600, random_state=0)
    X_test, y_test = make_waveform(6000, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelClassifier().fit(X, y)
    P = model.predict_proba(X_test)
    stated, right = P.max(axis=1), model.classes_[P.argmax(axis=1)] == y_test
    bins = np.quantile(stated, np.linspace(0, 1, 11))
    which = np.clip(np.searchsorted(bins, stated) - 1, 0, 9)
    fig, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.plot([0.45, 1], [0.45, 1], "--", color="black", lw=1)
    ax.plot(
        *np.array([(stated[which == b].mean(), right[which == b].mean()) for b in range(10)]).T, "o-", color=CLASSES[0]
    )
    ax.set(xlabel="how sure the model says it is", ylabel="how often it is right", title="waveform, 6,000 new samples")
    return fig
