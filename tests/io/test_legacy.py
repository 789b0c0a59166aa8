"""Upgrades of old files, on classes made up for it."""

from dataclasses import dataclass

import pytest

from fewkern.arrays import storable as registry
from fewkern.arrays.storable import storable
from fewkern.io.archive import FORMAT_VERSION
from fewkern.io.legacy import renamed, upgrade
from fewkern.io.records import Record, build


@dataclass(frozen=True)
class Ruler:
    center: float
    marks: object


@dataclass(frozen=True)
class Scale:
    factor: float


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setattr(registry, "_CLASSES", registry.stored_classes())
    storable(Ruler)
    storable(Scale)


def temperature(state):
    """A number that became an object: ``temperature`` is now ``marks=Scale(factor)``."""
    return "Ruler", {"center": state["centre"], "marks": Record("Scale", {"factor": state["temperature"]})}


def old_rule(state):
    """One class with a name inside became one class per name."""
    return {"scale": "Scale"}[state["name"]], dict(state["params"])


UPGRADES = {
    1: {
        "Ruler": temperature,
        "Yardstick": renamed("Ruler", centre="center", colour=None),
        "Rule": old_rule,
    }
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Record("Ruler", {"centre": 1.0, "temperature": 3.0}), Ruler(1.0, Scale(3.0))),
        (Record("Yardstick", {"centre": 2.0, "marks": None, "colour": "red"}), Ruler(2.0, None)),
        (Record("Rule", {"name": "scale", "params": {"factor": 5.0}}), Scale(5.0)),
    ],
)
def test_upgrades_reach_every_record(old, new):
    for wrap in (lambda x: x, lambda x: [x], lambda x: (x, 1), lambda x: {"a": x}):
        assert build(upgrade(wrap(old), 1, UPGRADES)) == wrap(new)
    inner = Record("Yardstick", {"centre": 0.0, "marks": [old]})
    assert build(upgrade(inner, 1, UPGRADES)) == Ruler(0.0, [new])


def test_files_of_the_present_format_are_not_touched():
    old = Record("Yardstick", {"centre": 2.0})
    assert upgrade(old, FORMAT_VERSION, UPGRADES) is old


def test_steps_follow_each_other(monkeypatch):
    monkeypatch.setattr("fewkern.io.legacy.FORMAT_VERSION", 3)
    steps = {1: {"A": renamed("B", x="y")}, 2: {"B": renamed("Scale", y="factor")}}
    assert build(upgrade(Record("A", {"x": 1.0}), 1, steps)) == Scale(1.0)
    assert build(upgrade(Record("B", {"y": 1.0}), 2, steps)) == Scale(1.0)
