"""A slice of Table 1 of the KFD paper: the honest protocol within tolerance, and what one machine on all parts gives.

``python -m experiments kfd`` runs the whole tables; here the grids are coarser and the splits few.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import kfd
from experiments.kfd import Protocol, honest, one_machine
from fewkern import ForwardKernelFisher, SparseKernelFisher

pytestmark = pytest.mark.papers
SLICE = Protocol(widths=(0.35, 0.85, 2.0), penalties=(0.03, 0.01, 0.001, 0.0003), terms=40, choosing=2)


# Reference of the honest protocol over 100 splits (methods K10): error %, its standard deviation, retained %.
HONEST = {
    ("banana", "kFDA_.5"): (10.5, 0.5, 7.2),
    ("banana", "kFDA_OLS"): (10.7, 0.5, 7.0),
    ("heart", "kFDA_1"): (15.8, 3.0, 4.0),
    ("thyroid", "kFDA_.5"): (4.1, 1.9, 1.9),
    ("thyroid", "kFDA_OLS"): (4.0, 1.8, 7.1),
    ("titanic", "kFDA_1"): (22.5, 1.1, 6.8),
    ("titanic", "kFDA_.5"): (22.5, 1.1, 6.0),
}


@pytest.mark.parametrize(("name", "method"), list(HONEST))
def test_honest_errors_are_within_tolerance_of_the_reference(ida, name, method):
    ida(name)
    n = 10
    outcomes = [honest(f"ida/{name}", method, run, SLICE) for run in range(n)]
    error, spread, _ = HONEST[name, method]
    assert abs(np.mean([o["error"] for o in outcomes]) - error) <= 3 * spread / np.sqrt(n) + 0.1
    # "parsimonious": about a tenth of the samples at most, where the reference keeps 1.9 to 7.2 %
    assert np.mean([o["retained"] for o in outcomes]) <= 11


def test_one_machine_on_all_partitions_looks_better_than_it_is(ida):
    """The paper's protocol: its test parts hold the machine's own training samples, and it is chosen on them."""
    ida("thyroid")
    leaky = [one_machine("ida/thyroid", "kFDA_1", run, SLICE) for run in range(100)]
    fair = [honest("ida/thyroid", "kFDA_1", run, SLICE) for run in range(20)]
    assert len({o["retained"] for o in leaky}) == 1
    # published 1.0, reference of this protocol 1.3, honest 3.7
    assert np.mean([o["error"] for o in leaky]) <= 2.0
    assert np.mean([o["error"] for o in leaky]) < np.mean([o["error"] for o in fair]) - 1


def test_the_columns_selected_for_fewest_samples(ida):
    """Of the machines of the first training sets the smallest: thyroid, published 10.7 % and 2.1 % (3 of 140)."""
    ida("thyroid")
    for method, published in (("kFDA_1", 10.7), ("kFDA_.5", 2.1)):
        best = one_machine("ida/thyroid", method, 0, SLICE)
        small = [one_machine("ida/thyroid", method, run, SLICE, "fewest") for run in range(100)]
        fair = [honest("ida/thyroid", method, run, SLICE, "fewest") for run in range(10)]
        assert len({o["retained"] for o in small}) == 1
        assert small[0]["retained"] <= best["retained"]
        assert small[0]["retained"] <= published + 0.1
        # machines retrained with its settings are about as small
        assert np.mean([o["retained"] for o in fair]) <= 3 * small[0]["retained"]
        assert np.mean([o["error"] for o in small]) < np.mean([o["error"] for o in fair])


def test_strict_settings_come_from_the_training_part_of_the_split_alone(monkeypatch):
    asked = []
    data = SimpleNamespace(train=[np.array([0])] * 3, test=[np.array([1])] * 3)
    monkeypatch.setattr(kfd, "_data", lambda name: data)
    monkeypatch.setattr(kfd, "_choose", lambda *given: asked.append((given[2].unit, given[3])) or (1.0, 0.1))
    monkeypatch.setattr(kfd, "_Machine", lambda *given: SimpleNamespace(retained=5.0, wrong=np.array([0, 1])))
    settings = {"set": "set", "method": "kFDA_1", "protocol": "strict"}
    assert kfd.table(settings, 2) == {"error": 100.0, "retained": 5.0}
    assert asked == [(2, (2,))]


def test_the_unit_of_the_widths_is_that_of_the_training_set_that_is_named():
    data = SimpleNamespace(train=[np.arange(20), np.arange(20, 40)], samples=lambda rows: X)
    X = np.random.default_rng(0).normal(size=(40, 2)) * np.repeat([1.0, 10.0], 20)[:, None]
    small, large = (kfd._widths(data, replace(SLICE, unit=unit)) for unit in (0, 1))
    assert 5 < large[0] / small[0] < 20


def test_estimators_choose_everything_from_the_training_set_alone(ida):
    """Methods K6 (width and penalty by 5 folds), q = .5, reference on banana: 10.8% / 5.7%."""
    data = ida("banana")
    errors, kept = [], []
    for train, test in list(zip(data.train_idx, data.test_idx))[:3]:
        model = SparseKernelFisher(prefer="accurate").fit(data.X[train], data.y[train])
        errors.append(100 * (1 - model.score(data.X[test], data.y[test])))
        kept.append(model.n_vectors_ / 4)
    assert abs(np.mean(errors) - 10.8) <= 3 * 0.5 / np.sqrt(3) + 0.1
    assert np.mean(kept) < 12
    forward = ForwardKernelFisher(prefer="accurate").fit(data.X[data.train_idx[0]], data.y[data.train_idx[0]])
    assert forward.score(data.X[data.test_idx[0]], data.y[data.test_idx[0]]) > 0.87
