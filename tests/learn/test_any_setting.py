"""A fit with any legal settings, to any small table, ends in an answer, perhaps with a warning of ours, or an error in
words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewkern import KernelClassifier, KernelRegressor

sizes = st.none() | st.integers(1, 60)
parameters = st.fixed_dictionaries(
    {
        "n_vectors": sizes,
        "max_vectors": sizes,
        "prefer": st.sampled_from(["balanced", "sparse"]),
        "random_state": st.integers(0, 3),
    }
)
columns = st.sampled_from(["normal", "two values", "four values", "constant", "heavy", "copied", "tiny"])


def column(kind, n, X, rng):
    z = rng.standard_normal(n)
    if kind == "copied" and X:
        return X[0]
    return {
        "two values": (z > 0.5).astype(float),
        "four values": np.round(np.clip(z, -1, 2)),
        "constant": np.full(n, 3.0),
        "heavy": np.sinh(4 * z),
        "tiny": 1e-150 * z,
    }.get(kind, z)


@st.composite
def tables(draw):
    """X, weights and groups, and a generator for the targets."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, X = draw(st.integers(1, 60)), []
    for kind in draw(st.lists(columns, min_size=1, max_size=5)):
        X.append(column(kind, n, X, rng))
    rows = rng.integers(n, size=n) if draw(st.booleans()) else np.arange(n)  # some more than once, some not at all
    weights = rng.integers(0, 3, size=n).astype(float) if draw(st.booleans()) else None
    groups = rng.integers(0, max(2, n // 3), size=n) if draw(st.booleans()) else None
    return np.column_stack(X)[rows], rng, {"sample_weight": weights, "groups": groups}


def answers(model, X, y, labels):
    """Whether there is a model, whose answers are finite, or an error that names the estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # divisions by zero and the like
        warnings.simplefilter("ignore", UserWarning)  # ours
        try:
            model.fit(X, y, **labels)
        except ValueError as error:
            assert type(model).__name__ in str(error) or "minimum of" in str(error)  # noqa: PT017
            return False
        found = model.predict_proba(X) if isinstance(model, KernelClassifier) else model.predict(X)
        assert np.isfinite(found).all()
        assert np.isfinite(model.novelty(X)).all()
        assert model.n_vectors_ <= max(len(X), 1)
        if model.n_vectors is not None:
            assert model.n_vectors_ <= model.n_vectors
        elif model.max_vectors is not None:
            assert model.n_vectors_ <= model.max_vectors
    return True


@settings(max_examples=40, deadline=None)
@given(tables(), parameters, st.integers(1, 5), st.sampled_from([None, "balanced"]))
def test_classifier(table, given_settings, n_classes, class_weight):
    X, rng, labels = table
    y = (X[:, 0] + X[:, -1] + rng.standard_normal(len(X)) > 0) + rng.integers(0, n_classes, len(X))
    answers(KernelClassifier(**given_settings, class_weight=class_weight), X, y, labels)


@settings(max_examples=40, deadline=None)
@given(tables(), parameters, st.integers(1, 3), st.sampled_from(["noise", "column", "constant", "whole"]))
def test_regressor(table, given_settings, outputs, kind):
    X, rng, labels = table
    noise = rng.standard_normal((len(X), outputs))
    y = {"noise": noise, "column": X[:, :1] + 0 * noise, "constant": 1 + 0 * noise, "whole": np.round(noise)}[kind]
    answers(KernelRegressor(**given_settings), X, y, labels)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n_vectors", [50, 60])
def test_nearly_as_many_vectors_as_rows(n_vectors, seed):
    """Coefficients of a fold, which has fewer vectors, are no start for those of all rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int)
    model = KernelClassifier(n_vectors=n_vectors).fit(X, y)
    assert model.n_vectors_ == n_vectors
    assert model.score(X, y) > 0.8
