"""No estimator decides otherwise unnoticed: the smallest tables. ``python -m tests.golden decisions`` does them all."""

import copy

import pytest

import fewkern
from tests.golden import decisions
from tests.golden.decisions import cases, difference, gap, problems, read

RECORD = read()


@pytest.mark.parametrize("case", [case for case in cases() if case.quick], ids=lambda case: case.name)
def test_decides_as_recorded(case):
    found = problems(decisions.run(case), RECORD.get(case.name))
    assert not found, f"{found}; if this is meant, run python -m tests.golden decisions --write and say why"


def test_every_public_estimator_is_in_the_record():
    public = {name for name in fewkern.__all__ if hasattr(getattr(fewkern, name), "fit")}
    assert {case.estimator for case in cases() if case.quick} == public
    assert {case.name for case in cases()} == RECORD.keys(), "python -m tests.golden decisions --write"


@pytest.mark.parametrize("change", [{"n_vectors": 12}, {"type": "Another"}, {"kernel": "Another"}, {"error": 0.2}])
def test_a_changed_entry_is_noticed(change):
    name = "FeatureVectorDiscriminant/260x40/2 classes"
    new = copy.deepcopy(RECORD[name])
    (new if "error" in change else new["decisions"]).update(change)
    assert problems(new, RECORD[name])
    assert difference(new, RECORD[name])[1]


def test_predictions_are_compared_by_their_spread_and_components_in_either_sign():
    assert gap([-0.0, -1.0, -2.0], [0.0, 1.0, 2.0]) > 1
    assert gap([-0.0, -1.0, -2.0], [0.0, 1.0, 2.0], either_sign=True) == 0
    assert gap("aabb", "aaab") == 0.25


def test_the_command_prints_differences_and_writes(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(decisions, "RECORD", tmp_path / "decisions.json")
    words = ["GraphEmbedding/120x3"]
    assert decisions.main(words) == 1
    assert decisions.main([*words, "--write"]) == 0
    assert decisions.main(words) == 0
    changed = read()
    changed["GraphEmbedding/120x3/2 classes"]["decisions"]["n_components"] = 7
    decisions.write(changed)
    assert decisions.main(words) == 1
    assert "GraphEmbedding/120x3/2 classes: n_components 7 -> 1" in capsys.readouterr().out
