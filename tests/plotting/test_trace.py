import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fewkern import FeatureVectorClassifier, FeatureVectorRegressor, FeatureVectorSelector
from fewkern.core.trace import Trace
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Gaussian
from fewkern.plotting import TraceDisplay
from tests.checks.everyone import ALL, every, fresh


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_chosen_curve_and_the_chosen_model():
    model = FeatureVectorRegressor(max_vectors=10).fit(*make_sinc(60, noise=0.2))
    display = TraceDisplay.from_estimator(model)
    k, r, L = model.trace_.chosen
    curves = [line.get_ydata() for line in display.ax_.get_lines()]
    assert len(curves) == 8 + 2
    np.testing.assert_array_equal(curves[-2], model.trace_.error[k, r])
    assert curves[-1].tolist() == [model.trace_.error[k, r, L]]
    assert f"chosen: {L} vectors" in legend(display)
    assert "other widths" in legend(display)


def test_a_fixed_kernel_on_given_axes():
    _, ax = pyplot.subplots()
    model = FeatureVectorClassifier(max_vectors=5, kernel=Gaussian(0.5), ridge=0.1).fit(*make_banana(50))
    display = TraceDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert "other widths" not in legend(display)


def test_models_without_an_error_are_not_drawn():
    TraceDisplay.from_estimator(FeatureVectorRegressor(max_vectors=8, ridge=0.0).fit(*make_sinc(8)))


def test_sizes_that_are_not_an_axis():
    error, size = np.array([[0.3, 0.2], [0.4, 0.1]]), np.array([[1.0, 4.5], [2.0, 9.0]])
    axes = {"width": (1.0, 2.0), "penalty": (0.1, 0.01)}
    display = TraceDisplay(Trace(axes, error, np.zeros((2, 2)), (1, 1), size, "cross-validated error")).plot()
    assert display.ax_.get_xlabel() == "number of vectors"
    assert display.ax_.get_ylabel() == "cross-validated error"
    assert "chosen: 9 vectors" in legend(display)
    assert "width 2, penalty 0.01" in legend(display)


def test_one_axis_that_is_not_the_size():
    error = np.array([0.3, 0.2, 0.4])
    display = TraceDisplay(Trace({"width": (0.1, 1.0, 10.0)}, error, np.full(3, np.nan), (1,))).plot()
    assert display.ax_.get_xlabel() == "width"
    assert display.ax_.get_xscale() == "log"


def test_nothing_to_compare_shows_the_objective():
    trace = Trace({"penalty": (0.1,)}, np.zeros(1), np.zeros(1), (0,), objectives=(3.0, 2.0))
    assert TraceDisplay(trace).plot().ax_.get_ylabel() == "objective"


def test_the_last_step_of_a_pipeline():
    model = make_pipeline(StandardScaler(), FeatureVectorClassifier(max_vectors=5)).fit(*make_banana(50))
    assert TraceDisplay.from_estimator(model).trace is model[-1].trace_


def test_estimators_without_a_trace():
    X, y = make_banana(50)
    with pytest.raises(NotFittedError):
        TraceDisplay.from_estimator(FeatureVectorRegressor())
    for model in (SVC(), FeatureVectorSelector(max_vectors=3)):
        with pytest.raises(ValueError, match="has no trace_"):
            TraceDisplay.from_estimator(model.fit(X, y))


@every(ALL)
def test_every_trace_can_be_drawn(model):
    X, y = make_banana(50)
    fitted = fresh(model).fit(X, y)
    if not hasattr(fitted, "trace_"):
        with pytest.raises(ValueError, match="has no trace_"):
            TraceDisplay.from_estimator(fitted)
    else:
        assert TraceDisplay.from_estimator(fitted).ax_.get_ylabel()
