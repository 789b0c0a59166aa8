import numpy as np
import pytest
from matplotlib import pyplot

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    ForwardKernelFisher,
    KernelRegressor,
    SparseKernelFisher,
)
from fewkern.base import path_of
from fewkern.core.path import Path
from fewkern.datasets import make_banana, make_sinc
from fewkern.plotting import PathDisplay
from tests.checks.everyone import ALL, every, fresh
from tests.plotting.reading import labels, legend, legend_is_outside


def test_the_chosen_curve_and_the_chosen_model():
    """Of a regressor: root mean square errors, in the units of the target."""
    model = FeatureVectorRegressor(max_vectors=10).fit(*make_sinc(60, noise=0.2))
    display = PathDisplay.from_estimator(model)
    k, r, L = model.path_.chosen
    curves = [line.get_ydata() for line in display.ax_.get_lines()]
    others = len(model.path_.axes["length_scale"]) - 1
    assert others >= 4
    assert len(curves) == others + 2
    np.testing.assert_allclose(curves[-2], np.sqrt(model.path_.error[k, r]))
    np.testing.assert_allclose(curves[-1], np.sqrt(model.path_.error[k, r, L]))
    assert labels(display) == ("number of vectors", "root mean squared leave-one-out\nerror")
    rmse = np.sqrt(model.held_out_error_)
    assert f"chosen: {L} vectors\n(RMSE {rmse:.3g} on held-out samples)" in legend(display)
    assert "other length scales" in legend(display)
    assert f"length scale {model.path_.setting['length_scale']:.3g}, alpha {model.alpha_:.3g}" in legend(display)
    assert legend_is_outside(display)
    # the picture ends a little above where the chosen curve begins, and a little below the least error
    low, high = display.ax_.get_ylim()
    assert curves[-2][0] < high < 1.5 * curves[-2][0]
    assert 0.5 * min(c.min() for c in curves) < low < min(c.min() for c in curves)


def test_the_error_of_a_classifier_is_that_of_its_scores():
    model = FeatureVectorDiscriminant(max_vectors=10).fit(*make_banana(80))
    display = PathDisplay.from_estimator(model)
    assert labels(display)[1] == "mean squared leave-one-out error\nof the class scores"
    assert f"chosen: {model.n_vectors_} vectors" in legend(display)


@pytest.mark.parametrize("estimator", [ForwardKernelFisher, SparseKernelFisher])
def test_a_kernel_fisher_machine_says_what_held_out_samples_say(estimator):
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = estimator().fit(X, X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4)
    lines = legend(PathDisplay.from_estimator(model))
    assert lines[-1].endswith(f"({100 * model.held_out_error_:.1f}% of held-out samples misclassified)")
    assert not any("moved" in line for line in lines)


def test_the_band_is_not_cut_off():
    display = PathDisplay.from_estimator(FeatureVectorDiscriminant().fit(*make_banana(150)))
    (band,) = (c for c in display.ax_.collections if c.get_label().startswith("±"))
    assert band.get_paths()[0].get_extents().y0 >= display.ax_.get_ylim()[0]


@pytest.mark.parametrize("height", [2.0, 9.0])
def test_the_legend_hides_no_label(height):
    figure, ax = pyplot.subplots(figsize=(5, height), layout="constrained")
    model = FeatureVectorDiscriminant(max_vectors=10).fit(*make_banana(80))
    display = PathDisplay.from_estimator(model, ax=ax)
    figure.canvas.draw()
    top, label = ax.get_legend().get_window_extent().y1, ax.xaxis.label.get_window_extent()
    assert label.y0 - label.height < top <= label.y0 + 2
    assert display.ax_.get_legend().get_window_extent().y0 >= 0


def test_sizes_that_are_not_an_axis():
    error, size = np.array([[0.3, 0.2], [0.4, 0.1]]), np.array([[1.0, 4.5], [2.0, 9.0]])
    axes = {"length_scale": (1.0, 2.0), "alpha": (0.1, 0.01)}
    display = PathDisplay(Path(axes, error, np.zeros((2, 2)), (1, 1), size, "cross-validated error")).plot()
    assert labels(display) == ("number of vectors (mean of the folds)", "cross-validated error")
    assert "chosen: 9 vectors" in legend(display)
    assert "length scale 2, alpha 0.01" in legend(display)


def test_one_axis_that_is_not_the_size():
    error = np.array([0.3, 0.2, 0.4])
    display = PathDisplay(Path({"length_scale": (0.1, 1.0, 10.0)}, error, np.full(3, np.nan), (1,))).plot()
    assert display.ax_.get_xlabel() == "length scale"
    assert display.ax_.get_xscale() == "log"
    # nothing was compared
    trace = Path({"alpha": (0.1,)}, np.zeros(1), np.zeros(1), (0,), objectives=(3.0, 2.0))
    assert PathDisplay(trace).plot().ax_.get_ylabel() == "what the fit minimizes"


@every(ALL)
def test_every_trace_can_be_drawn(model):
    X, y = make_banana(50)
    fitted = fresh(model).fit(X, y)
    if path_of(fitted) is None:
        with pytest.raises(ValueError, match=r"has no path of errors \(path_\)"):
            PathDisplay.from_estimator(fitted)
    else:
        assert PathDisplay.from_estimator(fitted).ax_.get_ylabel()


@pytest.mark.parametrize("kind", range(3))
def test_a_learned_model_says_where_its_vectors_come_from(kind):
    """Its errors are in ``path_``; sizes that a kind of model was not tried with are not drawn."""
    model = KernelRegressor(max_vectors=12).fit(*make_sinc(200, noise=0.2))
    error = np.full((3, 4), np.inf)
    error[kind], error[(kind + 1) % 3, 1:3] = [0.5, 0.3, 0.2, 0.19], [0.4, 0.35]
    axes = {"origin": (0.0, 1.0, 2.0), "n_vectors": (3.0, 6.0, 12.0, 24.0)}
    model.path_ = Path(axes, error, 0.1 * error, (kind, 2), measure=model.path_.measure)
    display = PathDisplay.from_estimator(model)
    assert labels(display) == ("number of vectors", "mean squared error of rows held\nout, standardized targets")
    words = ["that are samples", "moved to imitate a larger model", "moved to lower the error"]
    assert f"vectors {words[kind]}" in legend(display)
    assert f"vectors {words[(kind + 1) % 3]}" in legend(display)
    assert f"vectors {words[(kind + 2) % 3]}" not in legend(display)
    curves = [line.get_ydata() for line in display.ax_.get_lines()]
    assert [len(curve) for curve in curves] == [2, 4, 1]
    assert display.ax_.get_xscale() == "log"
