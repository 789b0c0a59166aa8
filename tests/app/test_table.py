import numpy as np
import pandas as pd
import pytest

from fewkern.app import jobs
from fewkern.datasets import make_banana
from fewkern.table import TableEncoder


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0, 8.0],
            "colour": pd.Series(["red", "blue", None, "red"], dtype=object),
            "fixed": [2, 2, 2, 2],
            "on": [True, False, True, True],
        }
    )


def test_numbers_are_standardised_and_categories_one_hot(frame):
    encoder, _ = TableEncoder.learn(frame)
    assert encoder.names == ["size", "colour=blue", "colour=red", "fixed", "on"]
    X = encoder.encode(frame)
    plain = np.array([[1.0, 0, 1, 2, 1], [3, 1, 0, 2, 0], [3, 0, 0, 2, 1], [8, 0, 1, 2, 1]])  # the median is 3
    spread = np.where(plain.std(axis=0) > 0, plain.std(axis=0), 1.0)
    np.testing.assert_allclose(X, (plain - plain.mean(axis=0)) / spread)


def test_new_rows_use_what_was_learned(frame):
    encoder, _ = TableEncoder.learn(frame)
    new = pd.DataFrame({"on": [1], "fixed": [5], "colour": ["green"], "size": [np.nan], "more": ["ignored"]})
    plain = encoder.encode(new)[0] * encoder.scale + encoder.mean
    np.testing.assert_allclose(plain, [3.0, 0, 0, 5, 1])


def test_nullable_columns_of_pandas():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": pd.array(["x", None, "y"], dtype="string")})
    encoder, remarks = TableEncoder.learn(frame)
    plain = encoder.encode(frame) * encoder.scale + encoder.mean
    np.testing.assert_allclose(plain, [[1, 1, 0], [2, 0, 0], [3, 0, 1]], atol=1e-12)
    assert len(remarks) == 2


def test_held_out_rows_are_not_looked_at(monkeypatch):
    """Neither the encoder nor the model of the held-out error sees a row that it is measured on."""
    X, y = make_banana(60)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(y == 1, "p", "q")})
    learned = []
    learn = TableEncoder.learn.__func__
    monkeypatch.setattr(TableEncoder, "learn", classmethod(lambda cls, f: learned.append(len(f)) or learn(cls, f)))
    fitted = jobs.fit_table(frame, jobs.Request("y", holdout=0.25, settings={"max_vectors": 5}))
    assert sorted(learned) == [45, 60]
    assert len(fitted.held_out[0]) == 15
    assert fitted.model.facts["held_out_error"] == np.mean(fitted.held_out[0] != fitted.held_out[1])


def test_numbers_of_features_add_up_to_those_of_columns(frame):
    encoder, _ = TableEncoder.learn(frame)
    np.testing.assert_array_equal(encoder.by_column(np.array([1.0, 2, 4, 8, 16])), [1, 6, 8, 16])
