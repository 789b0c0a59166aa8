"""Downloads without a network: a stand-in for pooch serves what the test gives it."""

import dataclasses
import hashlib
import io
import logging
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import load_breast_cancer

from experiments.data import DataNotFoundError, data_file, download, fetch_faces, fetch_ida, fetch_set, fetch_uci
from experiments.data.download import cache_folder
from experiments.data.sets import CONTENT, SOURCES
from experiments.data.sources import content_sha256


def local(need):
    """The arrays of the folder FEWKERN_DATA."""
    path = data_file(need)
    if path is None:
        pytest.skip(f"{need}.npz is not in the folder that FEWKERN_DATA names")
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


@pytest.fixture
def internet(tmp_path, monkeypatch):
    """Content by address, and the addresses that were asked for; no folder has any set."""
    monkeypatch.delenv("FEWKERN_DATA", raising=False)
    served, asked = {}, []

    def retrieve(url, known_hash=None, fname=None, path=None):
        asked.append(url)
        if url not in served:
            raise ConnectionError(f"no route to {url}\nand a second line" + 20 * " of many words")
        content = served[url]
        got = hashlib.sha256(content).hexdigest()
        if known_hash is not None and known_hash != f"sha256:{got}":
            raise ValueError(f"SHA256 hash of file: expected {known_hash[7:]} but got {got}. Deleted it for safety.")
        target = Path(path, fname)
        target.write_bytes(content)
        return str(target)

    cache = tmp_path / "cache"
    pooch = types.ModuleType("pooch")
    pooch.retrieve = retrieve
    pooch.os_cache = lambda name: cache / name
    pooch.get_logger = lambda: logging.getLogger("pooch")
    monkeypatch.setitem(sys.modules, "pooch", pooch)
    monkeypatch.setattr(download, "cache_folder", cache_folder.__wrapped__)
    return types.SimpleNamespace(served=served, asked=asked, cache=cache / "fewkern")


def serve_sonar(internet, labels):
    """Two rows in the place of sonar, in the archive of its second mirror, which is known by its content alone."""
    X = np.linspace(0, 0.119, 120).round(4).reshape(2, 60)
    handle = io.BytesIO()
    with zipfile.ZipFile(handle, "w") as archive:
        rows = [",".join([*(f"{value:.4f}" for value in row), label]) for row, label in zip(X, labels)]
        archive.writestr("sonar.all-data", "\n".join(rows) + "\n")
    internet.served[SOURCES["uci/sonar"].mirrors[1][0].url] = handle.getvalue()
    return X


@pytest.fixture
def made_up(internet, monkeypatch):
    """A set of two rows in the place of sonar."""
    arrays = {"X": serve_sonar(internet, "MR"), "y": np.array([1, -1], dtype=np.int8)}
    monkeypatch.setitem(CONTENT, "uci/sonar", content_sha256(arrays))
    return arrays


def change_files(monkeypatch, need, **changed):
    """Change what is known of the files of a set."""
    mirrors = [tuple(dataclasses.replace(file, **changed) for file in mirror) for mirror in SOURCES[need].mirrors]
    monkeypatch.setitem(SOURCES, need, dataclasses.replace(SOURCES[need], mirrors=tuple(mirrors)))


def files_under(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("need", sorted(CONTENT))
def test_the_folder_holds_what_a_download_would(need):
    assert content_sha256(local(need)) == CONTENT[need]


def test_a_download_is_kept(made_up, internet):
    for _ in range(2):  # the second time from the cache
        data = fetch_uci("sonar")
        np.testing.assert_array_equal(data.X, made_up["X"])
        np.testing.assert_array_equal(data.y, made_up["y"])
        assert data_file("uci/sonar") == internet.cache / "uci" / "sonar.npz"
        assert len(internet.asked) == 2  # both mirrors, once
    assert np.load(data_file("uci/sonar"))["y"].dtype == np.int8


def test_one_other_value_is_refused(made_up, internet):
    serve_sonar(internet, "RM")
    with pytest.raises(
        DataNotFoundError,
        match=r"sonar is not on this machine: .* holds other data than it did \(expected content of SHA-256 "
        rf"{CONTENT['uci/sonar']}, got [0-9a-f]{{64}}\); try again later .*, or put uci/sonar.npz in a folder .*_DATA",
    ) as caught:
        fetch_uci("sonar")
    assert caught.value.__suppress_context__
    assert files_under(internet.cache) == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of local sets."""
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    for kind in ("uci", "ida"):
        (tmp_path / kind).mkdir()
    return tmp_path


def test_local_sets(folder):
    arrays = {"X": np.eye(3, dtype=np.float32), "y": np.array([1, -1, 1], dtype=np.int8)}
    np.savez(folder / "ida" / "banana.npz", **arrays, train_idx=[[0, 1]], test_idx=[[2]], split_no=[1])
    data = fetch_ida("banana")
    assert data.X.dtype == float
    assert data.y.tolist() == [1, -1, 1]
    assert data.train_idx.tolist() == [[0, 1]]
    assert fetch_set("ida/banana").X.tolist() == data.X.tolist()


def test_sets_that_are_not_here(folder, monkeypatch):
    for error, message, fetch, name in (
        (ValueError, r"expected one of \[.*\], got 'iris'", fetch_ida, "iris"),
        (ValueError, r"fetch_set: expected kind/name with a kind of .*, got 'sonar'", fetch_set, "sonar"),
        (DataNotFoundError, rf"heart is not .* now {folder}, which has no file ida/heart.npz", fetch_ida, "heart"),
    ):
        with pytest.raises(error, match=message):
            fetch(name)
    monkeypatch.setenv("FEWKERN_DATA", "~/nowhere")
    with pytest.raises(DataNotFoundError, match="it is now ~/nowhere, which is not a folder"):
        fetch_ida("heart")


@pytest.mark.parametrize(
    "arrays",
    [{"X": np.eye(3)}, {"X": np.eye(3), "y": np.zeros(2)}, {"X": np.array([["a"], ["b"]]), "y": np.zeros(2)}, {}],
    ids=["no y", "other lengths", "text", "nothing"],
)
def test_a_file_with_other_arrays(folder, arrays):
    np.savez(folder / "uci" / "sonar.npz", **arrays)
    message = r"fetch_uci: expected numbers X, as many y, .* in .*sonar.npz, got .*; delete it to have it downloaded"
    with pytest.raises(DataNotFoundError, match=message):
        fetch_uci("sonar")
    (folder / "uci" / "sonar.npz").write_bytes(b"PK\x03\x04 cut short")
    damaged = r"fetch_uci: expected arrays in .*sonar.npz, got a file that is damaged"
    with pytest.raises(DataNotFoundError, match=damaged):
        fetch_uci("sonar")


def test_another_file_is_refused(internet):
    page = b"<!DOCTYPE html>\n<title>Log in first</title>\n"
    (plain,), (zipped,) = SOURCES["uci/sonar"].mirrors
    internet.served.update({plain.url: page, zipped.url: page})
    both = r"is not the file it was \(SHA256 .*expected e90434\w* but got \w*\);.*not the archive"
    with pytest.raises(DataNotFoundError, match=both):
        fetch_uci("sonar")
    # no checksum of the file is known
    (face,) = SOURCES["faces/orl_32x32"].mirrors[0]
    internet.served[face.url] = page
    with pytest.raises(DataNotFoundError, match=r"ORL_32x32.mat is not the file it was \(\w+: .*FEWKERN_DATA"):
        fetch_faces("orl_32x32")
    assert files_under(internet.cache) == []


def test_ida_sets_come_together(internet, monkeypatch):
    needs = [need for need in SOURCES if need.startswith("ida/")]
    assert len(needs) == 13
    # benchmarks.mat with the same three rows in every set
    rows = {"x": np.array([[0.5, 1.0], [2.0, -1.0], [3.0, 0.0]]), "t": np.array([[1.0], [-1.0], [1.0]])}
    splits = {"train": np.array([[1.0, 3.0], [2.0, 3.0]]), "test": np.array([[2.0], [1.0]])}
    handle = io.BytesIO()
    savemat(handle, {need.partition("/")[2].replace("-", "_"): {**rows, **splits} for need in needs})
    (file,) = SOURCES["ida/banana"].mirrors[0]
    internet.served[file.url] = handle.getvalue()
    with pytest.raises(DataNotFoundError, match=r"banana .* not the file it was \(SHA256 .* 47c19e4b.*FEWKERN_DATA"):
        fetch_ida("banana")
    change_files(monkeypatch, "ida/breast-cancer", sha256=None)
    data = fetch_ida("breast-cancer")
    np.testing.assert_array_equal(data.X, rows["x"])
    assert data.y.tolist() == [1, -1, 1]
    assert (data.train_idx.tolist(), data.test_idx.tolist()) == ([[0, 2], [1, 2]], [[1], [0]])
    assert data.split_no.tolist() == [1, 2]
    asked = len(internet.asked)
    assert all(data_file(need) is not None for need in needs)
    np.testing.assert_array_equal(fetch_ida("waveform").train_idx, data.train_idx)
    assert len(internet.asked) == asked


@pytest.mark.parametrize("need", ["uci/sonar", "faces/orl_32x32", "large/mnist", "ida/heart"])
def test_no_network(need, internet):
    kind, _, name = need.partition("/")
    with pytest.raises(
        DataNotFoundError,
        match=rf"^fetch_{kind}: {name} is not on this machine: http.* cannot be downloaded \(ConnectionError: no route "
        rf"to [^\n]*\); try again later or with another network connection, or put {need}.npz in a folder .*_DATA "
        r"\(it is not set\)\.$",
    ):
        fetch_set(need)
    # every mirror was asked
    assert internet.asked == [mirror[0].url for mirror in SOURCES[need].mirrors]
    assert data_file(need) is None


def test_no_pooch(monkeypatch):
    monkeypatch.delenv("FEWKERN_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert cache_folder.__wrapped__() is None
    install = r"install pooch \(pip install 'fewkern\[experiments\]'\), or put .*_DATA"
    for need in ("ida/heart", "faces/yale_32x32", "uci/sonar", "large/mnist"):
        with pytest.raises(DataNotFoundError, match=install):
            fetch_set(need)


def test_a_cache_that_cannot_be_written_is_no_reason_to_refuse(made_up, internet):
    internet.cache.parent.mkdir(parents=True)
    internet.cache.write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match=r"uci/sonar was downloaded but cannot be kept in .* downloaded again"):
        np.testing.assert_array_equal(fetch_uci("sonar").X, made_up["X"])


def test_wdbc_is_that_of_scikit_learn(monkeypatch):
    from_folder = fetch_uci("wdbc")
    monkeypatch.delenv("FEWKERN_DATA", raising=False)
    assert data_file("uci/wdbc").name == "breast_cancer.csv"
    data = fetch_uci("wdbc")
    np.testing.assert_array_equal(data.X, load_breast_cancer().data)
    assert np.sum(data.y == 1) == 212
    for key, value in from_folder.items():
        np.testing.assert_array_equal(data[key], value)
        assert data[key].dtype == value.dtype


def test_every_set_has_its_checksum():
    assert all((need in CONTENT) != need.startswith("ida/") for need in SOURCES)
    for need, source in SOURCES.items():
        assert all(file.sha256 for mirror in source.mirrors for file in mirror) or need in CONTENT


def test_with_pooch_itself(tmp_path, monkeypatch):
    """Errors of the real one, from an address where nobody listens."""
    pytest.importorskip("pooch", reason="pooch is not installed (pip install 'fewkern[experiments]')")
    monkeypatch.delenv("FEWKERN_DATA", raising=False)
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path)
    change_files(monkeypatch, "faces/orl_32x32", url="http://127.0.0.1:9/ORL_32x32.mat")
    with pytest.raises(DataNotFoundError, match=r"127.0.0.1:9/ORL_32x32.mat cannot be downloaded \(ConnectionError"):
        fetch_faces("orl_32x32")
    assert "fewkern" in str(cache_folder.__wrapped__())
