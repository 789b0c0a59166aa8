"""Tables and figures of the FVS paper (Baudat and Anouar 2003).

The paper writes the Gaussian kernel as exp(-|x - y|^2 / sigma^2): its sigma is our width times sqrt(2).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC

from fewkern import FeatureVectorClassifier, FeatureVectorDiscriminant, FeatureVectorRegressor, FeatureVectorSelector
from fewkern.datasets import fetch_ida, make_crossing_circles, make_rings, make_sinc, make_two_gaussians
from fewkern.kernels import Gaussian, LinearSpline, Polynomial

Values = dict[str, Any]


def _gaussian(sigma: float) -> Gaussian:
    return Gaussian(width=sigma / np.sqrt(2))


def _paper_machine(sigma: float, vectors: int) -> FeatureVectorClassifier:
    """FVS-LR as the paper has it: its rule, centred at the nearest sample, no ridge, all vectors asked for."""
    return FeatureVectorClassifier(kernel=_gaussian(sigma), n_vectors=vectors, rule="greedy", center=True, ridge=0.0)


def _bayes(X: Any) -> Any:
    """Which of the two Gaussians is more likely."""
    first = -0.5 * ((X[:, 0] + 1) ** 2 + X[:, 1] ** 2)
    second = -0.5 * ((X[:, 0] - 1) ** 2 + X[:, 1] ** 2 / 0.1) - 0.5 * np.log(0.1)
    return (second > first).astype(int)


def two_gaussians(settings: Values, run: int) -> Values:
    """Table 1: share of 100,000 test points classified correctly, and vectors kept."""
    X, y = make_two_gaussians(200, random_state=run)
    X_test, y_test = make_two_gaussians(100_000, random_state=10_000 + run)
    method = settings["method"]
    if method == "bayes":
        return {"rate": 100 * float(np.mean(_bayes(X_test) == y_test))}
    if method == "svm":
        model = SVC(gamma=1 / settings["sigma"] ** 2, C=settings["C"]).fit(X, y)
        return {"rate": 100 * model.score(X_test, y_test), "vectors": len(model.support_)}
    model = _paper_machine(settings["sigma"], settings["vectors"]) if method == "fvs" else FeatureVectorClassifier()
    model.fit(X, y)
    return {"rate": 100 * model.score(X_test, y_test), "vectors": len(model.basis_.indices)}


@cache
def _ida(name: str) -> Any:
    return fetch_ida(name)


def _split(name: str, run: int) -> tuple[Any, Any, Any, Any]:
    z = _ida(name)
    train, test = z.train_idx[run], z.test_idx[run]
    return z.X[train], z.y[train], z.X[test], z.y[test]


def benchmark(settings: Values, run: int) -> Values:
    """Table 2: test error in per cent, and vectors (or axes) kept."""
    X, y, X_test, y_test = _split(settings["set"], run)
    method = settings["method"]
    if method == "linear":
        model = LinearRegression().fit(X, y)
        return {"error": 100 * float(np.mean(np.sign(model.predict(X_test)) != y_test))}
    if method == "kpca":
        axes = KernelPCA(settings["vectors"], kernel="rbf", gamma=1 / settings["sigma"] ** 2).fit(X)
        model = LinearRegression().fit(axes.transform(X), y)
        predicted = np.sign(model.predict(axes.transform(X_test)))
        return {"error": 100 * float(np.mean(predicted != y_test)), "vectors": settings["vectors"]}
    if method == "automatic":
        model = FeatureVectorClassifier(prefer=settings.get("prefer", "balanced")).fit(X, y)
    else:
        model = _paper_machine(settings["sigma"], settings["vectors"]).fit(X, y)
    return {"error": 100 * (1 - model.score(X_test, y_test)), "vectors": len(model.basis_.indices)}


def boundary_figure(settings: Values, run: int) -> Values:
    """Figs. 2, 4 and 5a: samples, vectors, and the boundary."""
    kind = settings["data"]
    if kind == "two gaussians":
        X, y = make_two_gaussians(200, random_state=run)
        model: Any = _paper_machine(settings["sigma"], settings["vectors"]).fit(X, y)
    elif kind == "rings":
        X, y = make_rings(200, random_state=run)
        kernel = Polynomial(degree=2, gamma=1.0, coef0=0.0)
        model = FeatureVectorDiscriminant(kernel=kernel, ridge=0.0, n_vectors=100, center=False).fit(X, y)
    else:
        X, y = make_crossing_circles(200, random_state=run)
        model = FeatureVectorDiscriminant(
            kernel=_gaussian(settings["sigma"]), n_vectors=settings["vectors"], rule="greedy", ridge=0.0
        ).fit(X, y)
    values: Values = {
        "points": X.round(3).tolist(),
        "labels": y.tolist(),
        "circles": model.basis_.vectors.round(3).tolist(),
        "boundary": _boundary(model, X),
        "vectors": len(model.basis_.indices),
    }
    if hasattr(model, "inertia_"):
        values["inertia"] = float(model.inertia_[0])
    return values


def _boundary(model: Any, X: Any) -> list[list[float]]:
    """Points on the zero line of the decision function, pieces divided by NaN."""
    from matplotlib.figure import Figure

    low, high = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
    xx, yy = np.meshgrid(*[np.linspace(a, b, 80) for a, b in zip(low, high)])
    values = model.decision_function(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape)
    lines = Figure().subplots().contour(xx, yy, values, levels=[0.0]).allsegs[0]
    points: list[list[float]] = []
    for line in lines:
        points += [*np.round(line, 3).tolist(), [float("nan"), float("nan")]]
    return points


def sinc_figure(settings: Values, run: int) -> Values:
    """Fig. 3: the noisy sinc, its approximation by a few vectors, and the distance to the true function."""
    X, y = make_sinc(100, noise=settings["noise"], random_state=run)
    if settings.get("curve") == "true":
        return {"x": X[:, 0].round(4).tolist(), "y": np.sinc(X[:, 0]).round(4).tolist()}
    if settings.get("curve") == "samples":
        return {"points": np.column_stack([X[:, 0], y]).round(3).tolist(), "labels": [""] * len(y)}
    rmse = {}
    curve = None
    for vectors in range(2, 13):
        model = FeatureVectorRegressor(
            kernel=LinearSpline(), n_vectors=vectors, rule="greedy", center=True, ridge=0.0
        ).fit(X, y)
        predicted = model.predict(X)
        rmse[vectors] = float(np.sqrt(np.mean((predicted - np.sinc(X[:, 0])) ** 2)))
        if vectors == settings["vectors"]:
            curve = predicted.round(4).tolist()
    return {"x": X[:, 0].round(4).tolist(), "y": curve, **{f"rmse with {v} vectors": rmse[v] for v in (5, 6)}}


def circles_curve(settings: Values, run: int) -> Values:
    """Fig. 5b: test rate of FVS-LDA against the number of vectors."""
    X, y = make_crossing_circles(200, random_state=run)
    X_test, y_test = make_crossing_circles(200, random_state=10_000 + run)
    sizes = list(range(5, 56, 5))
    rates = []
    for vectors in sizes:
        model = FeatureVectorDiscriminant(
            kernel=_gaussian(settings["sigma"]), n_vectors=vectors, rule="greedy", ridge=0.0
        ).fit(X, y)
        rates.append(100 * model.score(X_test, y_test))
        if vectors == 35:
            inertia = float(model.inertia_[0])
    return {"x": sizes, "y": rates, "inertia with 35 vectors": inertia, "rate with 35 vectors": rates[sizes.index(35)]}


def curves(settings: Values, run: int) -> Values:
    """Fig. 6: test error and fitness against the number of vectors."""
    X, y, X_test, y_test = _split(settings["set"], run)
    sizes = settings["sizes"]
    if settings["curve"] == "fitness":
        model = FeatureVectorSelector(
            kernel=_gaussian(settings["sigma"]), max_vectors=max(sizes), rule="greedy", center=True
        ).fit(X)
        return {"x": sizes, "y": [float(model.fitness_[min(s, len(model.fitness_)) - 1]) for s in sizes]}
    errors = [1 - _paper_machine(settings["sigma"], size).fit(X, y).score(X_test, y_test) for size in sizes]
    return {"x": sizes, "y": errors}
