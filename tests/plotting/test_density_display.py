"""Pictures of densities."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Ellipse
from scipy.integrate import trapezoid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import DensityClassifier, ForwardDensity, ParzenDensity
from fewkern.datasets import make_banana, make_gaussian_laplacian
from fewkern.plotting import DensityDisplay
from tests.plotting.reading import labels, legend, legend_is_outside

X = make_gaussian_laplacian(150, random_state=0)


@pytest.fixture(scope="module")
def three():
    """A density of three correlated features, and its samples."""
    Z = np.random.default_rng(0).normal(size=(150, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.5, 0.3], [0.0, 0.0, 2.0]])
    return pd.DataFrame(Z, columns=["age", "height (cm)", "price in $"])


@pytest.mark.parametrize("samples", [None, X[:, :1]])
def test_curve_is_the_density_and_the_kernels_add_up_to_it(samples):
    model = ForwardDensity().fit(X[:, :1])
    display = DensityDisplay.from_estimator(model, samples)
    *parts, curve = display.ax_.lines
    assert len(parts) == model.n_vectors_
    np.testing.assert_allclose(curve.get_ydata(), model.pdf(curve.get_xdata()[:, None]))
    np.testing.assert_allclose(np.sum([p.get_ydata() for p in parts], axis=0), curve.get_ydata(), rtol=1e-9)
    assert labels(display) == ("feature 0", "density")
    assert legend_is_outside(display)


@pytest.mark.parametrize("model", [ForwardDensity(), ForwardDensity(scale="whiten"), ParzenDensity()])
def test_the_tails_are_shown(model):
    """At the ends of the picture little of the density is left."""
    curve = DensityDisplay.from_estimator(model.fit(X[:, :1])).ax_.lines[-1].get_ydata()
    assert max(curve[0], curve[-1]) < 0.01 * curve.max()


@pytest.mark.parametrize("scale", ["none", "std", "whiten"])
def test_ellipses_are_one_standard_deviation(scale):
    Z = X @ np.array([[2.0, 0.7], [0.0, 0.5]])
    model = ForwardDensity(scale=scale).fit(Z)
    display = DensityDisplay.from_estimator(model, Z)
    ellipses = [p for p in display.ax_.patches if isinstance(p, Ellipse)]
    assert len(ellipses) == model.n_vectors_
    A = model.expansion_.transform
    A = np.diag(A) if A.ndim == 1 else A
    for ellipse, centre, width in zip(ellipses, model.vectors_, model.bandwidths_):
        corners = ellipse.get_patch_transform().transform([[1, 0], [0, 1], [-1, 0]])
        np.testing.assert_allclose(np.linalg.norm((corners - centre) @ A.T, axis=1), width, rtol=1e-9)


def test_many_kernels_are_dots_only():
    display = DensityDisplay.from_estimator(ParzenDensity().fit(X))
    assert not [p for p in display.ax_.patches if isinstance(p, Ellipse)]
    assert legend(display)[0] == "150 kernels"


@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_three_features_are_shown_in_pairs(three, scale):
    model = ForwardDensity(scale=scale).fit(three)
    display = DensityDisplay.from_estimator(model, three)
    assert display.axes_.shape == (3, 3)
    assert [panel is None for panel in display.axes_.ravel()] == [0, 1, 1, 0, 0, 1, 0, 0, 0]
    assert [display.axes_[2, j].get_xlabel() for j in range(3)] == ["age", "height\n(cm)", "price in $"]
    assert [display.axes_[i, 0].get_ylabel() for i in range(3)] == ["", "height\n(cm)", "price in $"]
    display.figure_.canvas.draw()
    # the curve on the diagonal is the density without the other features: shares of many drawn samples
    x, p = display.axes_[1, 1].lines[-1].get_data()
    shares = np.histogram(model.sample(20_000, random_state=0)[:, 1], bins=x[::60])[0] / 20_000
    middle = [trapezoid(p[i : i + 61], x[i : i + 61]) for i in range(0, len(x) - 60, 60)]
    np.testing.assert_allclose(shares, middle, atol=0.012)


def test_some_features_of_many(three):
    model = ForwardDensity().fit(three)
    for features in (["price in $", "age"], [2, 0]):
        display = DensityDisplay.from_estimator(model, three, features=features)
        assert labels(display) == ("price in $", "age")
        np.testing.assert_array_equal(display.X, three[["price in $", "age"]])
    assert labels(DensityDisplay.from_estimator(model, features=["age"]))[0] == "age"
    many = ParzenDensity(bandwidth=0.5).fit(np.random.default_rng(0).normal(size=(20, 7)))
    assert DensityDisplay.from_estimator(many).axes_.shape == (5, 5)


def test_a_pipeline_and_given_axes_for_many_features(three):
    _, (left, right) = plt.subplots(1, 2, layout="constrained")
    model = make_pipeline(StandardScaler(), ForwardDensity()).fit(three)
    display = DensityDisplay.from_estimator(model, three, ax=right)
    assert display.ax_ is right
    assert display.axes_[2, 0].get_xlabel() == "age"
    display.figure_.canvas.draw()
    assert display.axes_[0, 0].get_window_extent().x0 > left.get_window_extent().x1


@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_behind_a_scaler_the_density_is_that_of_the_samples(scale):
    Z = X @ np.array([[20.0, 7.0], [0.0, 500.0]]) + 1000.0
    model = make_pipeline(StandardScaler(), ForwardDensity(scale=scale)).fit(Z)
    mixture = DensityDisplay.from_estimator(model, Z).mixture
    jacobian = np.log(model[0].scale_).sum()
    np.testing.assert_allclose(mixture.log_density(Z), model.score_samples(Z) - jacobian, rtol=1e-6)


def test_what_cannot_be_drawn(three):
    model = ForwardDensity().fit(three)
    for features in (["weight"], [3], [0, "weight"], [], [0, 0]):
        with pytest.raises(ValueError, match=r"names or numbers of features, each once, got .* has age,"):
            DensityDisplay.from_estimator(model, features=features)
    with pytest.raises(ValueError, match="DensityClassifier has none; the densities_ of a DensityClassifier"):
        DensityDisplay.from_estimator(DensityClassifier().fit(*make_banana(40)))
