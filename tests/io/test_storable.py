"""What may be in a file: the registry, and what it says of arrays."""

import dataclasses
import subprocess
import sys
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import pytest

import fewkern
from fewkern import FeatureVectorSelector
from fewkern.arrays import storable as registry
from fewkern.arrays.storable import floats, indices, samples, storable
from fewkern.datasets import make_banana
from fewkern.io.archive import Budget
from fewkern.io.fields import fits
from fewkern.io.save import Reader, Writer


@pytest.fixture
def known(monkeypatch):
    """A registry of the test's own."""
    monkeypatch.setattr(registry, "_CLASSES", registry.stored_classes())


@dataclasses.dataclass(frozen=True)
class Cloud:
    points: Any
    masses: Any
    rows: Any | None = None
    levels: Any | None = None
    name: str = ""
    sizes: tuple[float, ...] = ()


def build(name, state):
    return Reader({}, Budget(1000)).make(name, state)


def register():
    wanted = {"points": samples("n", "d"), "masses": floats("n", above=0.0), "rows": indices("n")}
    wanted["levels"] = floats("n", least=0.0)
    return storable(**wanted)(Cloud)


def cloud(**changes):
    return {"points": np.zeros((3, 2)), "masses": np.ones(3), **changes}


def test_a_name_belongs_to_one_class(known):
    register()
    register()  # the same class again, as after a reload
    other = type("Cloud", (), {"__module__": "elsewhere"})
    with pytest.raises(ValueError, match=r"files already know a class Cloud .* give .*Cloud another name"):
        storable(other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"masses": np.ones(4)}, r"Cloud.masses has the shape \(4,\)"),
        ({"masses": np.zeros(3)}, "Cloud.masses holds numbers that are not above 0.0"),
        ({"masses": np.array([1.0, np.nan, 1.0])}, "Cloud.masses holds NaN or infinity"),
        ({"masses": np.ones(3, dtype=int)}, "Cloud.masses has the type int64"),
        ({"masses": np.ones(3, dtype=np.float16)}, "Cloud.masses has the type float16"),
        ({"masses": [1.0, 1.0, 1.0]}, "Cloud.masses is not an array"),
        ({"rows": np.array([0, -1, 2])}, "Cloud.rows has negative row numbers"),
        ({"rows": np.zeros(3)}, "Cloud.rows has the type float64"),
        ({"levels": np.array([0.0, 1.0, -1.0])}, "Cloud.levels holds numbers below 0.0"),
        ({"name": 3}, "Cloud.name is 3"),
        ({"sizes": (1.0, "x")}, r"Cloud.sizes is \(1.0, 'x'\)"),
    ],
)
def test_arrays_and_fields_are_compared_with_what_the_class_says(known, changes, message):
    register()
    build("Cloud", cloud())
    build("Cloud", cloud(rows=np.arange(3), sizes=(1.0, 2), levels=np.zeros(3)))
    with pytest.raises(ValueError, match=message):
        build("Cloud", cloud(**changes))


def test_enumerations_come_back_as_such(known):
    @storable
    class Colour(StrEnum):
        RED = "red"

    writer = Writer()
    text = writer.write([Colour.RED, "red"], "here")
    found = Reader(writer.arrays, Budget(1000)).read(text)
    assert found == ["red", "red"]
    assert [type(item) for item in found] == [Colour, str]
    with pytest.raises(ValueError, match=r"'blue' is not a valid .*Colour"):
        build("Colour", {"value": "blue"})


def test_an_array_that_is_used_twice_is_stored_once():
    array = np.arange(3.0)
    writer = Writer()
    text = writer.write({"a": array, "b": array, "c": array.copy()}, "here")
    assert len(writer.arrays) == 2
    found = Reader(writer.arrays, Budget(1000)).read(text)
    assert found["a"] is found["b"]
    assert found["a"] is not found["c"]


@pytest.mark.parametrize("array", [np.array([1, "a"], dtype=object), np.array([["a"]], dtype=object), np.ones(1) * 1j])
def test_arrays_of_anything_but_numbers_and_texts_are_not_written(array):
    with pytest.raises(TypeError, match=r"save: here h.*; only numbers and strings can be saved"):
        Writer().write(array, "here")


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        (True, float, False),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        (["a"], Literal["a"], False),
        ("1", int | None, False),
        ((1, 2.0), tuple[int, float], True),
        ((1,), tuple[int, float], False),
        ([1], tuple[int, ...], False),
        ({"a": (1.0,)}, dict[str, tuple[float, ...]], True),
        ({1: (1.0,)}, dict[str, tuple[float, ...]], False),
        (np.ones(1), np.ndarray[Any, Any], True),
        ([1.0], np.ndarray[Any, Any], False),
        (object(), Any, True),
        (np.ones(1), Cloud, False),
    ],
)
def test_values_fit_type_hints(value, hint, expected):
    assert fits(value, hint) is expected


def test_a_parameter_that_the_file_does_not_know_gets_its_default():
    model = build("FeatureVectorSelector", {"max_vectors": 7})
    assert model.get_params()["max_vectors"] == 7
    assert model.get_params()["rule"] == FeatureVectorSelector().rule


def test_loading_needs_only_the_module_that_has_load(tmp_path):
    """The registry is complete whichever way load was imported, and knows what the command line saves."""
    X, y = make_banana(40)
    model = fewkern.TableModel(max_vectors=4, holdout=0).fit({"x0": X[:, 0], "x1": X[:, 1], "side": y})
    path = model.save(tmp_path / "m")
    code = f"from fewkern.io.save import load; print(load({str(path)!r}).estimator_.n_vectors_)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(model.estimator_.n_vectors_), done.stderr
