"""Reports about learned models: Gaussians in a learned metric, on prepared columns."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

import fewkern
from fewkern.reporting.evaluation import was_fitted_to
from fewkern.reporting.kept import rows_of_vectors, vectors
from fewkern.reporting.subject import subject_of


@cache
def data():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {"age": rng.uniform(18, 80, n), "paid": np.exp(3 * rng.normal(size=n)), "old": np.arange(n) % 2}
    )
    y = np.where(np.log(frame["paid"]) * (1 - 2 * frame["old"]) + frame["age"] / 40 > 1, "yes", "no")
    return frame, y


@cache
def moved_model():
    frame, y = data()
    return fewkern.KernelClassifier(n_vectors=8, max_vectors=8).fit(frame, y)


def on_samples(model, frame):
    """The model with vectors that are rows of the table: the first eight, some of them beyond the last knots."""
    X = frame.to_numpy(dtype=float)
    own = model.expansion_.basis
    basis = replace(
        own, vectors=own.prepared(X[[5, 3, 11, 7, 2, 23, 42, 100]]), indices=np.array([5, 3, 11, 7, 2, 23, 42, 100])
    )
    made = fewkern.KernelClassifier(n_vectors=8, max_vectors=8).fit(frame, data()[1])
    made.basis_, made.expansion_ = basis, replace(model.expansion_, basis=basis)
    made.vectors_, made.indices_, made.n_vectors_ = made.expansion_.vectors, basis.indices, 8
    return made


def test_what_beside_the_vectors_decides():
    frame, y = data()
    plain = fewkern.KernelClassifier(n_vectors=8, max_vectors=8).fit(frame, y)
    for words in ("to them and from a linear function of its columns", "to them alone"):
        found = vectors(subject_of(plain, frame, y), "class", ("age",), 0)
        assert f"from its similarity {words}" in found.sentences[0]
        plain.expansion_ = replace(plain.expansion_, slopes=0 * plain.expansion_.slopes)


def test_vectors_that_are_samples_are_found_again():
    frame, y = data()
    model = on_samples(moved_model(), frame)
    subject = subject_of(model, frame, y)
    assert not subject.moved
    assert rows_of_vectors(subject) == [5, 3, 11, 7, 2, 23, 42, 100]
    assert was_fitted_to(subject)
    other = frame.assign(age=frame["age"] + 1.0)
    assert not was_fitted_to(subject_of(model, other, y))
    found = vectors(subject, "class", ("age", "paid", "old"), 0)
    assert "personal data" in found.sentences[1]
    assert {int(row[0]) for row in found.table[1]} == {5, 3, 11, 7, 2, 23, 42, 100}


def test_whether_rows_are_those_of_the_fit():
    """The samples of the novelty give it away; another table, however alike, is new."""
    frame, y = data()
    model = moved_model()
    assert was_fitted_to(subject_of(model, frame.iloc[::-1], y[::-1]))
    assert not was_fitted_to(subject_of(model, frame.iloc[:20] + 0.5, y[:20]))
    small = frame.astype(np.float32)
    assert was_fitted_to(subject_of(fewkern.KernelClassifier(n_vectors=5).fit(small, y), small, y))
    without = fewkern.KernelClassifier(n_vectors=5).fit(frame, y)
    without.novelty_ = None
    assert was_fitted_to(subject_of(without, frame, y))
    # the residuals of least squares add up to zero on the rows of the fit; those of logistic regression say nothing
    other = was_fitted_to(subject_of(without, frame.iloc[:100], y[:100]))
    assert other == (without.loss_ == "logistic")
