"""Reports about learned models: Gaussians in a learned metric, on prepared columns."""

from dataclasses import replace

import numpy as np
import pandas as pd

import fewkern
from fewkern.reporting.evaluation import was_fitted_to
from fewkern.reporting.kept import rows_of_vectors, vectors
from fewkern.reporting.subject import subject_of

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"age": RNG.uniform(18, 80, 200), "paid": np.exp(3 * RNG.normal(size=200)), "old": np.arange(200) % 2}
)
LABELS = np.where(np.log(FRAME["paid"]) * (1 - 2 * FRAME["old"]) + FRAME["age"] / 40 > 1, "yes", "no")


def learned(frame=FRAME, n_vectors=8):
    return fewkern.KernelClassifier(n_vectors=n_vectors).fit(frame, LABELS)


def test_a_linear_function_beside_the_vectors():
    model = learned()
    assert vectors(subject_of(model, FRAME, LABELS), "class", ("age",), 0).is_linear
    model.expansion_ = replace(model.expansion_, slopes=0 * model.expansion_.slopes)
    assert not vectors(subject_of(model, FRAME, LABELS), "class", ("age",), 0).is_linear


def test_vectors_that_are_samples_are_found_again():
    """The first eight rows, some of them beyond the last knots of the preparation."""
    model, rows = learned(), [5, 3, 11, 7, 2, 23, 42, 100]
    own = model.expansion_.basis
    basis = replace(own, vectors=own.prepared(FRAME.to_numpy(dtype=float)[rows]), indices=np.array(rows))
    model.basis_, model.expansion_ = basis, replace(model.expansion_, basis=basis)
    model.vectors_, model.indices_ = model.expansion_.vectors, basis.indices
    subject = subject_of(model, FRAME, LABELS)
    assert not subject.moved
    assert rows_of_vectors(subject) == rows
    assert was_fitted_to(subject)
    assert not was_fitted_to(subject_of(model, FRAME.assign(age=FRAME["age"] + 1.0), LABELS))
    found = vectors(subject, "class", ("age", "paid", "old"), 0)
    assert {int(row[0]) for row in found.table[1]} == set(rows)


def test_whether_rows_are_those_of_the_fit():
    """The samples of the novelty give it away; another table, however alike, is new."""
    model = learned()
    assert was_fitted_to(subject_of(model, FRAME.iloc[::-1], LABELS[::-1]))
    assert not was_fitted_to(subject_of(model, FRAME.iloc[:20] + 0.5, LABELS[:20]))
    small = FRAME.astype(np.float32)
    assert was_fitted_to(subject_of(learned(small, 5), small, LABELS))
    model.novelty_ = None
    assert was_fitted_to(subject_of(model, FRAME, LABELS))
    # the residuals of least squares add up to zero on the rows of the fit; those of logistic regression say nothing
    assert was_fitted_to(subject_of(model, FRAME.iloc[:100], LABELS[:100])) == (model.loss_ == "logistic")
