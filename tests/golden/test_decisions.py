"""No estimator decides otherwise unnoticed: the smallest tables. ``python -m tests.golden decisions`` does them all."""

import copy

import numpy as np
import pytest

import fewkern
from fewkern.kernels import Gaussian
from tests.golden import decisions
from tests.golden.decisions import DECISION, EXACT, cases, difference, estimators, gap, problems, read


@pytest.fixture(scope="module")
def record():
    return read()


@pytest.mark.parametrize("case", [case for case in cases() if case.quick], ids=lambda case: case.name)
def test_decides_as_recorded(case, record):
    found = problems(decisions.run(case), record.get(case.name))
    assert not found, f"{found}; if this is meant, run python -m tests.golden decisions --write and say why"


def test_every_public_estimator_is_in_the_record(record):
    public = {name for name in fewkern.__all__ if hasattr(getattr(fewkern, name), "fit")}
    assert set(estimators()) == public
    assert {case.estimator for case in cases() if case.quick} == public
    assert {case.name for case in cases()} == record.keys(), "python -m tests.golden decisions --write"


CHANGES = {
    "vectors": lambda result: result["decisions"].update(n_vectors=2 * result["decisions"]["n_vectors"]),
    "type": lambda result: result["decisions"].update(type="Another"),
    "kernel": lambda result: result["decisions"].update(kernel="Another"),
    "error": lambda result: result.update(error=1.2 * result["error"] + 0.03),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_entry_is_noticed(change, record):
    old = next(result for result in record.values() if _is_complete(result))
    new = copy.deepcopy(old)
    CHANGES[change](new)
    assert problems(new, old)
    assert difference(new, old)[1]


def _is_complete(result):
    return "error" in result and result["decisions"].get("n_vectors", 0) >= 10 and "kernel" in result["decisions"]


def test_differences_are_one_line_old_to_new_and_the_error_counts_most():
    old = {"decisions": {"n_vectors": 20, "ridge": 0.1, "stop": "size"}, "error": 0.1, "predictions": "aabb" * 50}
    vectors = {**old, "decisions": {**old["decisions"], "n_vectors": 19}}
    ridge = {**old, "decisions": {**old["decisions"], "ridge": 0.2}}
    error = {**old, "error": 0.2}
    assert difference(vectors, old)[1] == ["n_vectors 20 -> 19"]
    assert difference(ridge, old)[1] == ["ridge 0.1 -> 0.2"]
    assert difference(error, old)[1] == ["error 0.1 -> 0.2"]
    assert difference(error, old)[0] > difference(vectors, old)[0] > difference(ridge, old)[0] > 0


def test_rounding_is_no_decision_but_an_exact_difference():
    old = {"decisions": {"kernel.length_scale": [1.0, 2.0, 3.0]}, "error": 0.1, "predictions": "ab" * 100}
    new = {"decisions": {"kernel.length_scale": [1.0001, 2.0, 3.0]}, "error": 0.1005, "predictions": "bb" + "ab" * 99}
    assert difference(new, old, DECISION) == (0.0, [])
    assert len(difference(new, old, EXACT)[1]) == 3


def test_predictions_are_compared_by_their_spread_and_components_in_either_sign():
    old = [0.0, 1.0, 2.0]
    assert gap([0.0, 1.0, 2.0 + 1e-4], old) == pytest.approx(1e-4 / np.std(old))
    assert gap([-0.0, -1.0, -2.0], old) > 1
    assert gap([-0.0, -1.0, -2.0], old, either_sign=True) == 0
    assert gap("aabb", "aaab") == 0.25
    assert gap("aabb", old) == 1.0
    assert gap([0.0, "nan", 2.0], old) == 1.0


class _Fitted:
    """Has attributes that no estimator has yet."""

    chosen_ = {"loss": "logistic", "sizes": (10, 20, 40, 80)}
    preparation_ = [Gaussian(2.0), None]
    alpha_ = np.float64(0.123456789)
    n_vectors_ = np.int64(4)


def test_attributes_of_any_kind_become_plain_values():
    found = decisions.decisions(_Fitted())
    assert found["chosen.loss"] == "logistic"
    assert found["chosen.sizes"] == [10.0, 30.0, 80.0]
    assert found["preparation.0"] == "Gaussian"
    assert found["preparation.0.length_scale"] == 2.0
    assert found["alpha"] == 0.12346
    assert found["n_vectors"] == 4
    assert "ridge" not in found


def test_the_command_prints_differences_and_writes(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(decisions, "RECORD", tmp_path / "decisions.json")
    words = ["GraphEmbedding/120x3"]
    assert decisions.main(words) == 1
    assert "not in the record" in capsys.readouterr().out
    assert decisions.main([*words, "--write"]) == 0
    assert decisions.main(words) == 0
    changed = read()
    changed["GraphEmbedding/120x3/2 classes"]["decisions"]["n_components"] = 7
    decisions.write(changed)
    assert decisions.main([*words, "--diff"]) == 1
    assert "GraphEmbedding/120x3/2 classes: n_components 7 -> 1" in capsys.readouterr().out
