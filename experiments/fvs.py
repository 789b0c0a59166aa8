"""Tables and figures of the FVS paper (Baudat and Anouar 2003).

The paper writes the Gaussian kernel as exp(-|x - y|^2 / sigma^2): its sigma is our width times sqrt(2).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from experiments import systems
from experiments.data import fetch_ida
from fewkern.datasets import make_crossing_circles, make_rings, make_sinc, make_two_gaussians
from fewkern.kernels import LinearSpline, Polynomial

Values = dict[str, Any]


def _bayes(X: Any) -> Any:
    """Log-odds of the second Gaussian: positive where it is more likely."""
    first = -0.5 * ((X[:, 0] + 1) ** 2 + X[:, 1] ** 2)
    second = -0.5 * ((X[:, 0] - 1) ** 2 + X[:, 1] ** 2 / 0.1) - 0.5 * np.log(0.1)
    return second - first


def two_gaussians(settings: Values, run: int) -> Values:
    """Table 1: share of 100,000 test points classified correctly, and vectors kept."""
    X, y = make_two_gaussians(200, random_state=run)
    X_test, y_test = make_two_gaussians(100_000, random_state=10_000 + run)
    method = settings["method"]
    if method == "bayes":
        return {"rate": 100 * float(np.mean((_bayes(X_test) > 0) == y_test))}
    if method == "svm":
        model = SVC(gamma=1 / settings["sigma"] ** 2, C=settings["C"]).fit(X, y)
        return {"rate": 100 * model.score(X_test, y_test), "vectors": len(model.support_)}
    if method == "fvs":
        model = systems.fvs_classifier(settings["sigma"], settings["vectors"]).fit(X, y)
    else:
        model = systems.automatic_classifier().fit(X, y)
    return {"rate": 100 * model.score(X_test, y_test), "vectors": len(systems.basis_of(model).indices)}


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
        model = systems.automatic_classifier().fit(X, y)
    else:
        model = systems.fvs_classifier(settings["sigma"], settings["vectors"]).fit(X, y)
    return {"error": 100 * (1 - model.score(X_test, y_test)), "vectors": len(systems.basis_of(model).indices)}


def boundary_figure(settings: Values, run: int) -> Values:
    """Figs. 2, 4a and 5a: samples, vectors, and the boundary."""
    kind = settings["data"]
    if kind == "two gaussians":
        X, y = make_two_gaussians(200, random_state=run)
        model: Any = systems.fvs_classifier(settings["sigma"], settings["vectors"]).fit(X, y)
    elif kind == "rings":
        X, y = make_rings(200, random_state=run)
        model = systems.polynomial_discriminant(_SQUARE).fit(X, y)
    else:
        X, y = make_crossing_circles(200, random_state=run)
        model = systems.fvs_discriminant(settings["sigma"], settings["vectors"]).fit(X, y)
    if settings.get("curve") == "bayes":
        return {"boundary": _zero_line(_bayes, X)}
    values: Values = {
        "points": X.round(3).tolist(),
        "labels": y.tolist(),
        "circles": systems.basis_of(model).vectors.round(3).tolist(),
        "boundary": _zero_line(model.decision_function, X),
        "vectors": len(systems.basis_of(model).indices),
    }
    if kind != "two gaussians":
        values["inertia"] = _inertia(model)
    return values


def _inertia(model: Any) -> float:
    """Between- over total scatter on the first axis of a discriminant, which may be the last step of a pipeline."""
    return float((model[-1] if isinstance(model, Pipeline) else model).eigenvalues_[0])


# The kernel (x'y)^2 of Fig. 4; its feature space has three dimensions in the plane.
_SQUARE = Polynomial(degree=2, gamma=1.0, coef0=0.0)


def _square_features(X: Any) -> Any:
    """phi(x) = (x_1^2, sqrt(2) x_1 x_2, x_2^2): (x'y)^2 = phi(x)' phi(y)."""
    return np.column_stack([X[:, 0] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1], X[:, 1] ** 2])


def feature_space(settings: Values, run: int) -> Values:  # noqa: ARG001 - there is one setting
    """Fig. 4b: the two circles in the feature space of (x'y)^2, and the discriminant axis there."""
    X, y = make_rings(200, random_state=run)
    model = systems.polynomial_discriminant(_SQUARE).fit(X, y)
    # f(x) = sum_j c_j (v_j'x)^2 + b = w' phi(x) + b
    direction = _square_features(model.expansion_.vectors).T @ model.expansion_.coef[:, 0]
    direction /= np.linalg.norm(direction)
    images = _square_features(X)
    centre = images.mean(axis=0)
    ends = [centre + t * direction for t in (-0.75, 0.75)]
    # the same for all samples of a circle if, and only if, the axis is that of the sum x_1^2 + x_2^2
    return {
        "space": images.round(4).tolist(),
        "labels": y.tolist(),
        "axis": np.round(ends, 4).tolist(),
        "spread along the axis": float(max(np.ptp((images @ direction)[y == c]) for c in (0, 1))),
    }


def _zero_line(function: Any, X: Any) -> list[list[float]]:
    """Points on the zero line of a function of the plane, pieces divided by NaN."""
    from matplotlib.figure import Figure

    low, high = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
    xx, yy = np.meshgrid(*[np.linspace(a, b, 80) for a, b in zip(low, high)])
    values = function(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape)
    lines = Figure().subplots().contour(xx, yy, values, levels=[0.0]).allsegs[0]
    points: list[list[float]] = []
    for line in lines:
        points += [*np.round(line, 3).tolist(), [float("nan"), float("nan")]]
    return points


def sinc_figure(settings: Values, run: int) -> Values:
    """Fig. 3: the noisy sinc, its approximation by a few vectors, and the distance to the true function."""
    X, y = make_sinc(100, noise=settings["noise"], random_state=run)
    x = X[:, 0].round(4).tolist()
    if settings.get("curve") == "true":
        return {"x": x, "y": np.sinc(X[:, 0]).round(4).tolist()}
    if settings.get("curve") == "samples":
        return {"points": np.column_stack([X[:, 0], y]).round(3).tolist(), "labels": [""] * len(y)}
    if settings.get("curve") == "one run":
        model = systems.fvs_regressor(LinearSpline(), settings["vectors"]).fit(X, y)
        chosen = systems.basis_of(model).indices
        return {
            "x": x,
            "y": model.predict(X).round(4).tolist(),
            "circles": np.column_stack([X[chosen, 0], y[chosen]]).round(3).tolist(),
            "vectors": len(chosen),
        }
    rmse = {}
    for vectors in range(2, 13):
        predicted = systems.fvs_regressor(LinearSpline(), vectors).fit(X, y).predict(X)
        rmse[vectors] = float(np.sqrt(np.mean((predicted - np.sinc(X[:, 0])) ** 2)))
        if vectors == settings["vectors"]:
            curve = predicted.round(4).tolist()
    return {"x": x, "y": curve, **{f"rmse with {v} vectors": rmse[v] for v in (4, 5, 6, 7, 8)}}


def circles_curve(settings: Values, run: int) -> Values:
    """Fig. 5b: test rate of FVS-LDA against the number of vectors."""
    X, y = make_crossing_circles(200, random_state=run)
    X_test, y_test = make_crossing_circles(200, random_state=10_000 + run)
    sizes = list(range(5, 56, 5))
    rates = []
    for vectors in sizes:
        model = systems.fvs_discriminant(settings["sigma"], vectors).fit(X, y)
        rates.append(100 * model.score(X_test, y_test))
        if vectors == 35:
            inertia = _inertia(model)
    return {"x": sizes, "y": rates, "inertia with 35 vectors": inertia, "rate with 35 vectors": rates[sizes.index(35)]}


def curves(settings: Values, run: int) -> Values:
    """Fig. 6: test error (%) of FVS-LR and of KPCA-LR, and fitness, against the number of vectors or axes."""
    X, y, X_test, y_test = _split(settings["set"], run)
    sizes, sigma = settings["sizes"], settings["sigma"]
    if settings["curve"] == "fitness":
        fitness = systems.fvs_selector(sigma, max(sizes)).fit(X).fitness_
        return {"x": sizes, "y": [float(fitness[min(s, len(fitness)) - 1]) for s in sizes]}
    if settings["curve"] == "kpca":
        axes = KernelPCA(max(sizes), kernel="rbf", gamma=1 / sigma**2).fit(X)
        A, B = axes.transform(X), axes.transform(X_test)
        errors = []
        for size in sizes:
            predicted = np.sign(LinearRegression().fit(A[:, :size], y).predict(B[:, :size]))
            errors.append(100 * float(np.mean(predicted != y_test)))
        return {"x": sizes, "y": errors}
    scores = [systems.fvs_classifier(sigma, size).fit(X, y).score(X_test, y_test) for size in sizes]
    return {"x": sizes, "y": [100 * (1 - score) for score in scores]}
