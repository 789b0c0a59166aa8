"""Gaussians on prepared columns in files, in C and in ONNX."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor, load, save, to_c, to_onnx
from fewkern.core.gaussians import GaussianExpansion, Preparation
from fewkern.io import ModelFileError
from fewkern.io.describe import plan
from tests.core.functions import function, table
from tests.fuzz.lies import put, tamper
from tests.io.running import assert_exported

TOLERANCE = {"double": 1e-12, "float": 1e-3}


def single(values):
    """The nearest numbers of single precision, as doubles: samples that lose nothing in a file of floats."""
    return values.astype(np.float32).astype(float)


def around(X, rng, n=60):
    """Samples between and beyond those of ``X``, and some of these."""
    low, high = X.min(axis=0), X.max(axis=0)
    new = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), (n, X.shape[1]))
    return single(np.concatenate([new, X[:10]]))


SHAPES = {
    "all": {},
    "no-directions": {"directions": 0},
    "no-linear-part": {"linear": 0},
    "one-width": {"own_widths": False},
    "bare": {"directions": 0, "linear": 0, "own_widths": False},
    "one-vector": {"vectors": 1},
    "many-directions": {"directions": 14},
}


@pytest.mark.parametrize("given", [*SHAPES.values(), None], ids=[*SHAPES, "no-vectors"])
def test_c_and_onnx_say_what_the_function_says(given, rng, tmp_path):
    X = single(table(rng))
    f = function(rng, X, outputs=2, **(given or {}))
    if given is not None:
        again = load(save(f, tmp_path / "f"))
        np.testing.assert_array_equal(again(X), f(X))
    if given is None:
        basis = replace(f.basis, vectors=f.basis.vectors[:0], inverse_widths=f.basis.inverse_widths[:0])
        f = GaussianExpansion(basis, f.coef[:0], f.slopes, f.offset)
    assert_exported(tmp_path, f, around(X, rng), TOLERANCE)


def test_a_jump_adds_nothing_as_in_python(rng, tmp_path):
    """Two knots at one place with different values: the rise between them is dropped, by all alike."""
    X = rng.normal(size=(30, 5))
    f = function(rng, X)
    knots = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 3.0])[:, None] * np.ones(5)
    values = np.array([0.0, 1.0, 1.5, 2.0, 2.0, 4.0])[:, None] * np.ones(5)
    f = replace(f, basis=replace(f.basis, preparation=Preparation(knots, values)))
    assert_exported(tmp_path, f, rng.uniform(-1, 4, (40, 5)), {"double": 1e-12})


def test_knots_that_float_cannot_tell_apart(rng, tmp_path):
    """Far from the origin knots fall together: the map then jumps, and beyond the jump nothing is missing."""
    X = rng.normal(size=(30, 5)) + 1e9
    new = single(X.mean(axis=0) + 1e4 * rng.choice([-1.0, 1.0], (20, 5)))
    assert_exported(tmp_path, function(rng, X), new, {"float": 1e-3})


def test_tables_that_columns_share_are_written_once(rng):
    X = np.column_stack([rng.integers(0, 2, 50) for _ in range(40)]).astype(float)
    f = function(rng, X, directions=0, linear=0)
    text = to_c(f)
    knots, values, places = (re.search(rf"model_{name}0\[(\d+)\]", text)[1] for name in ("knots", "values", "places"))
    assert (knots, values, places) == ("2", "2", "120")
    # vectors, coefficients, own widths, metric, offset; tables
    assert f"Constants: {8 * (7 * 42 + 40 + 1 + 4) + 4 * 120} bytes of double and int." in text


@pytest.fixture(scope="module")
def noisy():
    """A regression whose noise grows along one column, fitted; exact in float32."""
    rng = np.random.default_rng(3)
    X = single(np.column_stack([rng.uniform(-3, 3, 400), rng.exponential(size=400) * 50]))
    y = np.sin(X[:, 0]) + 0.4 * np.exp(0.5 * X[:, 0]) * rng.normal(size=400)
    model = KernelRegressor(max_vectors=10).fit(X, y)
    assert isinstance(model.intervals_.scale, GaussianExpansion)
    return X, y, model


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(4)
    X = single(np.column_stack([rng.normal(size=300), rng.exponential(size=300), rng.integers(0, 2, 300)]))
    y = np.array(["ash", "birch", "cedar"])[np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.3, 1.0])]
    return X, y, KernelClassifier(max_vectors=12).fit(X, y)


@pytest.mark.parametrize("which", ["noisy", "classes"])
def test_intervals_sets_and_novelty(which, rng, tmp_path, request):
    """Intervals whose scale is learned, and novelty of prepared columns."""
    X, _, model = request.getfixturevalue(which)
    new = around(X, rng)
    novelty, threshold = model.novelty(new), model.novelty_threshold(0.1)
    assert len(set(novelty > threshold)) == 2
    clear = new[np.abs(novelty - threshold) > 1e-3]
    assert_exported(tmp_path, model, clear, {"double": 1e-9, "float": 1e-3}, coverage=0.8, false_alarms=0.1)


def test_what_the_sums_of_a_file_share_is_written_once(noisy):
    _, _, model = noisy
    text = to_c(model, coverage=0.8, false_alarms=0.1)
    assert len(re.findall(r"static const double model_knots", text)) == 2  # of the model, of its novelty
    assert len(re.findall(r"static const double model_vectors", text)) == 2  # of the model, of its novelty
    nodes = [node.op_type for node in to_onnx(model, coverage=0.8, false_alarms=0.1).graph.node]
    assert nodes.count("Unsqueeze") == 3  # a sample for both preparations, and distances of two sums


def test_coefficients_that_cancel_are_warned_of(rng):
    X = table(rng)
    f = function(rng, X)
    twin = replace(f.basis, vectors=np.repeat(f.basis.vectors[:1], 2, axis=0), inverse_widths=np.ones(2))
    f = GaussianExpansion(twin, np.array([[1e7], [-1e7]]), 0 * f.slopes, f.offset)
    with pytest.warns(UserWarning, match="rounding may change the outputs of this GaussianExpansion"):
        plan(f, "float", "to_c")
    plan(f, "double", "to_c")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("coef", lambda a: a[:-1]),
        ("slopes", lambda a: a[:-1]),
        ("basis", {"enum": "Stop", "value": "rank"}),
        ("basis.vectors", lambda a: a[:, :-1]),
        ("basis.scales", lambda a: a - 1e3),
        ("basis.inverse_widths", lambda a: -a),
        ("basis.directions", lambda a: a[:-1]),
        ("basis.linear", lambda a: a[:-1]),
        ("basis.preparation", 3.0),
        ("basis.preparation.knots", lambda a: a[::-1]),
        ("basis.preparation.values", lambda a: a[::-1]),
    ],
)
def test_hostile_files(classes, place, value, tmp_path):
    path = save(classes[2], tmp_path / "model")
    tamper(path, put(f"expansion_.{place}", value))
    with pytest.raises(ModelFileError):
        load(path)


def test_parts_that_do_not_belong_together(noisy, classes, tmp_path):
    """Each part is in order, but not with the others."""
    wide, other = classes[2], noisy[2].expansion_.basis
    mixed = replace(wide.expansion_.basis, preparation=other.preparation)
    model = copy.copy(wide)
    model.novelty_ = replace(wide.novelty_, preparation=other.preparation)
    for wrong in (replace(wide.expansion_, basis=mixed), replace(wide.expansion_, basis=other), model):
        with pytest.raises(ValueError, match="nothing was written"):
            save(wrong, tmp_path / "m")
