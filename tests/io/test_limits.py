"""Files that ask for more than their size can justify: loading stays within its promise, and ends.

Each attack has a right checksum, and is loaded in a process of its own, which is ended after a minute.
"""

import io
import json
import multiprocessing
import queue
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import fewkern
from fewkern import load, save
from fewkern.datasets import make_banana
from fewkern.io import ModelFileError, archive
from tests.fuzz.lies import closed, find, in_pipelines, longer_than_declared, opened, zipped

fork = multiprocessing.get_context("fork")
X, y = make_banana(60)
ZEROS = 2**27
SECONDS = 60


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Models in files: one of dense and one of sparse vectors, one with categories, one of a table."""
    folder = tmp_path_factory.mktemp("files")
    grades = np.column_stack([X, np.arange(60) % 3])
    columns = make_column_transformer((OrdinalEncoder(), [2]), (StandardScaler(), [0, 1]))
    small = fewkern.FeatureVectorDiscriminant(max_vectors=4, kernel="linear")
    table = {"x0": X[:, 0], "word": np.where(X[:, 1] > 0, "up", "down")}
    models = {
        "dense": fewkern.FeatureVectorDiscriminant(max_vectors=4).fit(X, y),
        "sparse": small.fit(sp.csr_array(np.where(X > 0.5, X, 0.0)), y),
        "categories": make_pipeline(columns, fewkern.FeatureVectorDiscriminant(max_vectors=4)).fit(grades, y),
        "expansion": fewkern.FeatureVectorDiscriminant(max_vectors=4).fit(X, y).expansion_,
        "table": fewkern.TableModel(max_vectors=4, holdout=0).fit(table, y),
    }
    return {name: save(model, folder / name).read_bytes() for name, model in models.items()}


def objects(header, name):
    return [node["state"] for node in find(header["model"], "object") if node["object"] == name]


def bomb(method):
    def make(content):
        return longer_than_declared(content["dense"], "a0.npy", bytes(ZEROS), method)

    return make


def longer(content):
    return longer_than_declared(content["dense"], "a0.npy", b"more", zipfile.ZIP_STORED)


def wide(columns):
    def make(content):
        header, arrays = opened(content["sparse"])
        for node in find(header["model"], "shape"):
            node["shape"][1] = columns
        header["model"]["state"]["n_features_in_"] = columns
        return closed(header, arrays)

    return make


def shared_categories(count):
    def make(content):
        header, arrays = opened(content["categories"])
        arrays["shared"] = np.arange(2.0**16)
        (encoder,) = objects(header, "OrdinalEncoder")
        encoder["categories"] = {"tuple": [{"array": "shared"}] * count}
        return closed(header, arrays)

    return make


def named_again(content):
    """One array in a list, again and again."""
    header, arrays = opened(content["dense"])
    arrays["long"] = np.zeros(2**18)
    header["model"]["state"]["more_"] = {"tuple": [{"array": "long"}] * 1000}
    return closed(header, arrays)


def no_rows(content):
    """No vectors, but of a thousand million columns."""
    header, arrays = opened(content["expansion"])
    state = header["model"]["state"]
    for name, shape in (("vectors", (0, 10**9)), ("coef", (0, 1))):
        arrays[state[name]["array"]] = np.zeros(shape)
    state["indices"] = None
    return closed(header, arrays)


def long_names(content):
    """The name of a column of half a megabyte, in front of each of its categories."""
    header, arrays = opened(content["table"])
    (column,) = objects(header, "CategoryColumn")
    column["name"] = "x" * 500_000
    column["levels"] = {"tuple": [f"{i:x}" for i in range(60_000)]}
    return closed(header, arrays)


def overlapping(content):
    """Every member is the whole file."""
    lying = bytearray(content["dense"])
    at, size = zipfile.ZipFile(io.BytesIO(bytes(lying))).start_dir, len(lying)
    while lying[at : at + 4] == b"PK\x01\x02":
        lying[at + 20 : at + 24] = size.to_bytes(4, "little")
        at += 46 + sum(int.from_bytes(lying[at + k : at + k + 2], "little") for k in (28, 30, 32))
    return bytes(lying)


def pipelines(depth):
    def make(content):
        header, arrays = opened(content["dense"])
        header["model"] = in_pipelines(header["model"], depth)
        return closed(header, arrays)

    return make


def nested_densities(content):
    header, arrays = opened(content["dense"])
    node = None
    for _ in range(100):
        node = {"object": "DensityClassifier", "state": {"estimator": node}}
    header["model"]["state"]["kernel"] = node
    return closed(header, arrays)


def npy(shape, descr="<f8", data=b""):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


def of_members(compression=zipfile.ZIP_DEFLATED, header=None, **arrays):
    """A file of other members, without a checksum."""
    if not isinstance(header, bytes):
        text = json.dumps({"format": "fewkern model", "format_version": 1, "model": header}).encode()
        header = npy((len(text),), "|u1", text)
    parts = {f"{name}.npy": member for name, member in {"header": header, **arrays}.items()}
    return lambda _: zipped(parts, compression)


INTACT = "is not an intact fewkern model file"
ATTACKS = {
    "bzip2 that unpacks to 128 MiB": (bomb(zipfile.ZIP_BZIP2), "compressed by a method that fewkern does not use"),
    "lzma that unpacks to 128 MiB": (bomb(zipfile.ZIP_LZMA), "compressed by a method that fewkern does not use"),
    "deflate that unpacks to 128 MiB": (bomb(zipfile.ZIP_DEFLATED), "a member does not have its declared size"),
    "stored and longer than declared": (longer, "a member does not have its declared size"),
    "members that overlap": (overlapping, "its members are larger than the file"),
    "sparse rows of 10^9 columns": (wide(10**9), "it declares 1,000,000,000 features"),
    "categories that share an array, 60": (shared_categories(60), "it asks for more memory than a file of"),
    "categories that share an array, 10^4": (shared_categories(10**4), "it asks for more memory than a file of"),
    "an array named 10^3 times": (named_again, "it asks for more memory than a file of"),
    "10^9 columns and no rows": (no_rows, "it asks for more memory than a file of"),
    "a long name of many categories": (long_names, "it asks for more memory than a file of"),
    "6 pipelines": (pipelines(6), "it nests objects deeper than 16, or pipelines deeper than 5"),
    "20 pipelines": (pipelines(20), "it nests objects deeper than 16, or pipelines deeper than 5"),
    "100 estimators": (nested_densities, "it nests objects deeper than 16, or pipelines deeper than 5"),
    "zeros": (of_members(a0=npy((2**23,), data=bytes(2**26))), INTACT),
    "many members": (of_members(**{f"a{i}": bytes(2**22) for i in range(20)}), INTACT),
    "an array of 10^12 numbers": (of_members(a0=npy((10**12,))), INTACT),
    "a negative shape": (of_members(a0=npy((-1, -8), data=bytes(64))), INTACT),
    "no numbers, 10^12 columns": (of_members(a0=npy((0, 10**12))), INTACT),
    "a text of 10^9 characters": (of_members(a0=npy((1,), "<U1000000000")), INTACT),
    "an object": (of_members(a0=npy((1,), "|O", b"cos\nsystem\n")), INTACT),
    "a long header": (of_members(header=" " * 2**26), INTACT),
    "many lists": (of_members(zipfile.ZIP_STORED, [[]] * 300_000), INTACT),
    "deep lists": (of_members(zipfile.ZIP_STORED, npy((400_000,), "|u1", b"[" * 400_000)), INTACT),
    "a long number": (of_members(header=npy((50_000,), "|u1", b"1" * 50_000)), INTACT),
}
# What a file may have, at the end of what it may have.
ALLOWED = {
    "sparse rows of 10^6 columns": wide(10**6),
    "categories that share an array, once": shared_categories(1),
    "5 pipelines": pipelines(5),
}


def loading(path, results):
    """Load, and report the error and the most memory that this took."""
    tracemalloc.start()
    error = None
    try:
        load(path)
    except Exception as found:
        error = found
    results.put((None if error is None else (type(error).__name__, str(error)), tracemalloc.get_traced_memory()[1]))


def loaded(path):
    results = fork.Queue()
    process = fork.Process(target=loading, args=(path, results))
    process.start()
    try:
        return results.get(timeout=SECONDS)
    except queue.Empty:
        pytest.fail(f"loading did not end within {SECONDS} s")
    finally:
        process.kill()
        process.join()


def promised(path):
    return archive.MEMORY_BASE_BYTES + archive.MEMORY_FACTOR * path.stat().st_size


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused_within_the_promise(name, content, tmp_path):
    attack, message = ATTACKS[name]
    path = tmp_path / "attack.npz"
    path.write_bytes(attack(content))
    error, peak = loaded(path)
    assert peak <= promised(path)
    assert error is not None
    assert error[0] == ModelFileError.__name__
    assert message in error[1]


@pytest.mark.parametrize("name", ALLOWED)
def test_large_models_load_within_the_promise(name, content, tmp_path):
    path = tmp_path / "large.npz"
    path.write_bytes(ALLOWED[name](content))
    error, peak = loaded(path)
    assert peak <= promised(path)
    if name.startswith("categories"):  # the encoder has other categories than its columns
        assert error is None or "asks for more" not in error[1]
    else:
        assert error is None


def test_a_member_that_ends_early(content, tmp_path):
    path = tmp_path / "short.npz"
    raw = bytearray(content["dense"])
    with zipfile.ZipFile(io.BytesIO(bytes(raw))) as archived:
        at = archived.start_dir
    while b"a0.npy" != raw[at + 46 : at + 52]:
        at += 46 + sum(int.from_bytes(raw[at + k : at + k + 2], "little") for k in (28, 30, 32))
    size = int.from_bytes(raw[at + 24 : at + 28], "little")
    raw[at + 24 : at + 28] = (size + 1).to_bytes(4, "little")
    path.write_bytes(bytes(raw))
    with pytest.raises(ModelFileError, match="a member does not have its declared size"):
        load(path)


def test_what_compresses_too_well_is_written_uncompressed(tmp_path):
    """Zeros would unpack to more than so small a file may; and many categories are fine in a file of their size."""
    zeros = np.zeros((2000, 2000))
    model = fewkern.KernelExpansion(fewkern.kernels.Linear(), zeros, np.zeros((2000, 1)), np.zeros(1))
    path = save(model, tmp_path / "zeros")
    assert path.stat().st_size > zeros.nbytes
    encoder = OneHotEncoder(categories=[np.arange(300_000)], handle_unknown="ignore")
    numbers = np.arange(60)[:, None]
    last = fewkern.FeatureVectorDiscriminant(max_vectors=3, kernel="linear")
    path = save(make_pipeline(encoder, last).fit(numbers, y), tmp_path / "many")
    assert load(path).predict(numbers).shape == (60,)
