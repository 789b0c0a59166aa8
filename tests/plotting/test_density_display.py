"""Pictures of densities."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import Ellipse

from fewkern import ForwardDensity, ParzenDensity
from fewkern.datasets import make_gaussian_laplacian
from fewkern.plotting import DensityDisplay

X = make_gaussian_laplacian(150, random_state=0)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("samples", [None, X[:, :1]])
def test_curve_is_the_density_and_the_kernels_add_up_to_it(samples):
    model = ForwardDensity().fit(X[:, :1])
    display = DensityDisplay.from_estimator(model, samples)
    *parts, curve = display.ax_.lines
    assert len(parts) == model.n_vectors_
    np.testing.assert_allclose(curve.get_ydata(), model.pdf(curve.get_xdata()[:, None]))
    np.testing.assert_allclose(np.sum([p.get_ydata() for p in parts], axis=0), curve.get_ydata(), rtol=1e-9)


@pytest.mark.parametrize("scale", ["none", "std", "whiten"])
def test_ellipses_are_one_standard_deviation(scale):
    Z = X @ np.array([[2.0, 0.7], [0.0, 0.5]])
    model = ForwardDensity(scale=scale).fit(Z)
    display = DensityDisplay.from_estimator(model, Z)
    ellipses = [p for p in display.ax_.patches if isinstance(p, Ellipse)]
    assert len(ellipses) == model.n_vectors_
    A = model.expansion_.transform
    A = np.diag(A) if A.ndim == 1 else A
    for ellipse, centre, width in zip(ellipses, model.vectors_, model.widths_):
        corners = ellipse.get_patch_transform().transform([[1, 0], [0, 1], [-1, 0]])
        np.testing.assert_allclose(np.linalg.norm((corners - centre) @ A.T, axis=1), width, rtol=1e-9)


def test_many_kernels_are_dots_only():
    display = DensityDisplay.from_estimator(ParzenDensity().fit(X))
    assert not [p for p in display.ax_.patches if isinstance(p, Ellipse)]
    assert display.ax_.get_legend().texts[0].get_text() == "150 kernels"


def test_given_axes_are_used():
    _, ax = plt.subplots()
    assert DensityDisplay.from_estimator(ForwardDensity().fit(X), X, ax=ax).ax_ is ax


def test_three_features_are_an_error():
    model = ParzenDensity(width=0.5).fit(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(ValueError, match=r"one or two features, got 3; fit it to one or two columns"):
        DensityDisplay.from_estimator(model)
