"""A slice of Table 1 of the KFD paper: the honest protocol within tolerance, and what one machine on all parts gives.

``python -m benchmarks kfd_tables`` runs the whole table; here the grids are coarser and the splits few.
"""

import numpy as np
import pytest

from benchmarks.kfd_tables import HONEST, Protocol, honest, one_machine
from fewkern import ForwardKernelFisher, SparseKernelFisher

pytestmark = pytest.mark.papers
SLICE = Protocol(widths=(0.35, 0.85, 2.0), penalties=(0.03, 0.01, 0.001, 0.0003), terms=40, choosing=2)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("banana", "kFDA_.5"),
        ("banana", "kFDA_OLS"),
        ("heart", "kFDA_1"),
        ("thyroid", "kFDA_.5"),
        ("thyroid", "kFDA_OLS"),
        ("titanic", "kFDA_1"),
        ("titanic", "kFDA_.5"),
    ],
)
def test_honest_errors_are_within_tolerance_of_the_reference(ida, name, method):
    ida(name)
    n = 10
    outcome = honest(name, method, n, SLICE)
    error, spread, _ = HONEST[name][method]
    assert abs(outcome.errors.mean() - error) <= 3 * spread / np.sqrt(n) + 0.1
    # "parsimonious": a tenth of the samples at most (the reference keeps 1.6 to 7.2 % on these sets)
    assert outcome.retained.mean() <= 11


def test_one_machine_on_all_partitions_looks_better_than_it_is(ida):
    """The paper's protocol: its test parts hold the machine's own training samples, and it is chosen on them."""
    ida("thyroid")
    leaky = one_machine("thyroid", "kFDA_1", SLICE)
    fair = honest("thyroid", "kFDA_1", 20, SLICE)
    assert len(set(leaky.retained)) == 1
    # published 1.0, reference of this protocol 1.3, honest 3.7
    assert leaky.errors.mean() <= 2.0
    assert leaky.errors.mean() < fair.errors.mean() - 1


def test_estimators_choose_everything_from_the_training_set_alone(ida):
    """Reference of the cheap choice (width by leave-one-out, penalty by 5 folds), q = .5: banana 10.8 % / 5.7 %."""
    data = ida("banana")
    errors, kept = [], []
    for train, test in list(zip(data.train_idx, data.test_idx))[:3]:
        model = SparseKernelFisher(posterior="least_squares").fit(data.X[train], data.y[train])
        errors.append(100 * (1 - model.score(data.X[test], data.y[test])))
        kept.append(model.n_vectors_ / 4)
    assert abs(np.mean(errors) - 10.8) <= 3 * 0.5 / np.sqrt(3) + 0.1
    assert np.mean(kept) < 12
    forward = ForwardKernelFisher().fit(data.X[data.train_idx[0]], data.y[data.train_idx[0]])
    assert forward.score(data.X[data.test_idx[0]], data.y[data.test_idx[0]]) > 0.87
