"""Sets in a local folder: found, refused, missing."""

import numpy as np
import pytest

from experiments.data import DataNotFoundError, fetch_ida, fetch_large, fetch_set, fetch_uci


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    return tmp_path


def test_local_sets(folder):
    (folder / "ida").mkdir()
    arrays = {"X": np.eye(3, dtype=np.float32), "y": np.array([1, -1, 1], dtype=np.int8)}
    splits = {"train_idx": [[0, 1]], "test_idx": [[2]], "split_no": [1]}
    np.savez(folder / "ida" / "banana.npz", **arrays, **splits)
    data = fetch_ida("banana")
    assert data.X.dtype == float
    assert data.y.tolist() == [1, -1, 1]
    assert data.train_idx.tolist() == [[0, 1]]


def test_sets_that_are_not_here(folder, monkeypatch):
    for call in (fetch_ida, fetch_large):
        with pytest.raises(ValueError, match=r"expected one of \[.*\], got 'iris'"):
            call("iris")
    with pytest.raises(DataNotFoundError, match=r"heart is not on this machine: .* FEWKERN_DATA"):
        fetch_ida("heart")
    with pytest.raises(DataNotFoundError, match=rf"it is now {folder}, which has no file ida/heart.npz"):
        fetch_ida("heart")
    monkeypatch.setenv("FEWKERN_DATA", "~/nowhere")
    with pytest.raises(DataNotFoundError, match="it is now ~/nowhere, which is not a folder"):
        fetch_ida("heart")
    monkeypatch.delenv("FEWKERN_DATA")
    with pytest.raises(DataNotFoundError, match=r"adult is not on this machine: .* FEWKERN_DATA .it is not set"):
        fetch_large("adult")


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.eye(3)},
        {"X": np.eye(3), "y": np.zeros(2)},
        {"X": np.array([["a"], ["b"]]), "y": np.zeros(2)},
        {},
    ],
    ids=["no y", "other lengths", "text", "nothing"],
)
def test_a_file_with_other_arrays(folder, arrays):
    (folder / "uci").mkdir()
    np.savez(folder / "uci" / "sonar.npz", **arrays)
    message = r"fetch_uci: expected numbers X, as many y, .* in .*sonar.npz, got .*; delete it to have it downloaded"
    with pytest.raises(DataNotFoundError, match=message):
        fetch_uci("sonar")


def test_a_set_by_its_kind_and_name(folder):
    (folder / "uci").mkdir()
    np.savez(folder / "uci" / "sonar.npz", X=np.eye(2), y=np.array([1, -1]))
    assert fetch_set("uci/sonar").X.tolist() == fetch_uci("sonar").X.tolist()
    with pytest.raises(ValueError, match=r"fetch_set: expected kind/name with a kind of .*, got 'sonar'"):
        fetch_set("sonar")
