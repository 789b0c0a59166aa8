"""Dask collections with categories and gaps: the same model as in memory, and lazy predictions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from fewkern import KernelClassifier, KernelRegressor

SAMPLE, BLOCK = 300, 128


def table(n=500):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n)),
            "town": pd.Categorical(np.array(["Bonn", "Oslo", "Rome", None], dtype=object)[rng.integers(0, 4, n)]),
            "rooms": pd.array(rng.integers(1, 6, n), dtype="Int64"),
        }
    )
    X.loc[5, "rooms"] = pd.NA
    y = X["town"].cat.codes.to_numpy() + np.nan_to_num(X["size"].to_numpy()) + 0.1 * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize("partitions", [1, 4])
def test_frames_give_the_model_of_the_table(partitions):
    X, y = table()
    frame = dd.from_pandas(X, npartitions=partitions)
    model = KernelRegressor(max_vectors=12).fit(frame, da.from_array(y, chunks=100))
    truth = KernelRegressor(max_vectors=12).fit(X, y)
    assert model.categories_[1].tolist() == ["Bonn", "Oslo", "Rome"]
    assert model.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_allclose(model.predict(X), truth.predict(X), rtol=1e-9)
    found = model.predict(frame)
    assert isinstance(found, dd.Series)
    np.testing.assert_allclose(found.compute(), truth.predict(X), rtol=1e-9)


def test_arrays_with_categories_by_position():
    X, y = table()
    codes = np.column_stack([X["size"], X["town"].cat.codes + 10.0, y])[:, :2]
    labels = np.where(y > 1, "high", "low")
    model = KernelClassifier(categorical_features=[1], max_vectors=8).fit(da.from_array(codes, chunks=(120, 1)), labels)
    truth = KernelClassifier(categorical_features=[1], max_vectors=8).fit(codes, labels)
    np.testing.assert_array_equal(model.predict(codes), truth.predict(codes))
    assert model.categories_[1].tolist() == [9, 10, 11, 12]
    lazy = model.predict_proba(da.from_array(codes, chunks=(120, 2)))
    np.testing.assert_allclose(lazy.compute(), truth.predict_proba(codes), rtol=1e-9)


def test_levels_that_only_some_partitions_have():
    X, y = table()
    X = X.sort_values("town", na_position="last")
    frame = dd.from_map(
        lambda k: X.iloc[k * 100 : (k + 1) * 100].assign(town=lambda t: t["town"].astype(str)), range(5)
    )
    model = KernelRegressor(max_vectors=8, categorical_features=["town"]).fit(frame, y)
    assert model.categories_[1].tolist() == ["Bonn", "Oslo", "Rome"]


def test_what_is_wrong_with_a_partition_is_said():
    X, y = table()
    with pytest.raises(ValueError, match="column 'town' holds texts"):
        KernelRegressor().fit(dd.from_pandas(X.astype({"town": object}), npartitions=3), y)
    with pytest.raises(ValueError, match="infinity"):
        KernelRegressor().fit(dd.from_pandas(X.assign(size=np.inf), npartitions=3), y)
