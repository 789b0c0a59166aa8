"""Arrays in files: no more than a block of them is converted at a time."""

import sys
from importlib import util

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    GraphEmbedding,
    base,
)
from fewkern.arrays import partitions
from fewkern.populations import Layout
from fewkern.select import selector

N, D = 30_000, 40
SAMPLE, BLOCK = 300, 1000
MODELS = {
    "regressor": FeatureVectorRegressor(max_vectors=4),
    "discriminant": FeatureVectorDiscriminant(max_vectors=4),
    "pca": FeatureVectorPCA(max_vectors=4, n_components=2),
    "selector": FeatureVectorSelector(max_vectors=4),
    "graph": GraphEmbedding(n_components=1),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same whole numbers as int16, with columns one after the other, and as float64."""
    folder = tmp_path_factory.mktemp("arrays")
    X = np.random.default_rng(0).integers(-100, 100, (N, D))
    np.save(folder / "whole.npy", X.astype(np.int16))
    np.save(folder / "columns.npy", np.asfortranarray(X.astype(float)))
    np.save(folder / "float.npy", X.astype(float))
    return {name: folder / f"{name}.npy" for name in ("whole", "columns", "float")}


def opened(path):
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["whole", "columns"])
def test_the_same_model_as_in_memory(files, name, kind):
    X = np.load(files["float"])
    y = X[:, 0] * 0.1 if name == "regressor" else X[:, 0] > 0
    here, there = clone(MODELS[name]).fit(X, y), clone(MODELS[name]).fit(opened(files[kind]), y)
    method = "predict" if hasattr(here, "predict") else "transform"
    assert isinstance(there.vectors_, np.ndarray)
    if name != "selector":  # in memory it looks at all rows
        np.testing.assert_array_equal(here.indices_, there.indices_)
        np.testing.assert_allclose(getattr(here, method)(X[:50]), getattr(there, method)(X[:50]), atol=1e-10)
    answers = getattr(there, method)(opened(files[kind]))
    assert isinstance(answers, np.ndarray)
    np.testing.assert_allclose(answers, getattr(there, method)(X), atol=1e-12)


@pytest.mark.parametrize("kind", ["whole", "columns"])
def test_no_more_than_a_block_is_converted(files, kind, monkeypatch):
    X, seen = opened(files[kind]), []

    def read(layout, first, block, *columns, whole=Layout.read):
        seen.append(len(block))
        return whole(layout, first, block, *columns)

    def checked(estimator, samples, whole=base.check_samples, **how):
        seen.append(len(samples))
        return whole(estimator, samples, **how)

    monkeypatch.setattr(Layout, "read", read)
    monkeypatch.setattr(selector, "check_samples", checked)
    FeatureVectorPCA(max_vectors=3, n_components=1).fit(X).transform(X)
    assert sum(seen) == 3 * N  # two passes of a fit, and one more
    assert max(seen) == 1000


def test_what_is_used_where_it_is(files, monkeypatch):
    X = opened(files["float"])
    assert np.may_share_memory(base.check_samples(FeatureVectorPCA(), X, reset=True), X)
    assert not partitions.is_mapped(X)
    assert partitions.is_mapped(opened(files["whole"]))
    assert not partitions.is_mapped(opened(files["whole"])[:500])
    assert not partitions.is_mapped(np.load(files["whole"]))
    monkeypatch.setattr(partitions, "find_spec", lambda name: None if name == "dask" else util.find_spec(name))
    X = opened(files["whole"])
    assert partitions.as_collection(X) is X  # without Dask it is copied, as any array is
    assert "dask" in sys.modules


def test_groups_need_memory(files):
    X = opened(files["whole"])[:1500]
    y, groups = np.arange(1500) % 2, np.arange(1500) % 7
    model = FeatureVectorDiscriminant(max_vectors=3).fit(X, y, groups=groups)
    assert model.n_vectors_ <= 3
