import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import fewkern
from fewkern import load, save
from fewkern.datasets import make_banana
from fewkern.io.archive import write_atomically
from fewkern.kernels import Function
from tests.fuzz.lies import tamper
from tests.fuzz.models import answers, subjects


@pytest.fixture
def data():
    return make_banana(60)


@pytest.fixture
def file(data, tmp_path):
    return save(fewkern.FeatureVectorDiscriminant(max_vectors=6).fit(*data), tmp_path / "model.npz")


def assert_same_again(model, samples, folder):
    """What was loaded has the same class, parameters and attributes, and says the same."""
    whole = load(save(model, folder / "m", with_sums="_fitted_to" in vars(model)))
    np.testing.assert_equal(answers(whole, samples), answers(model, samples))
    again = load(save(model, folder / "m"))
    assert type(again) is type(model)
    if not isinstance(model, BaseEstimator) or isinstance(model, Pipeline):  # of these, test_saved_pipelines
        return
    assert repr(again.get_params()) == repr(model.get_params())
    assert set(vars(again)) == set(vars(model)) - {"_warm", "_fitted_to", "_supports"}
    assert getattr(again, "kernel_", None) == getattr(model, "kernel_", None)
    if hasattr(model, "classes_"):
        assert again.classes_.dtype == model.classes_.dtype
    if hasattr(model, "path_"):
        np.testing.assert_array_equal(again.path_.error, model.path_.error)
        assert again.path_.chosen == model.path_.chosen


def test_round_trip(tmp_path):
    """Every estimator, kernel and step, functions alone, and tables."""
    for subject in subjects():
        assert_same_again(subject.model, subject.samples, tmp_path)


@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
def test_more_round_trips(data, tmp_path):
    """Units of widths, sparse vectors behind a scaler, classes of every type, names of columns, nested pipelines."""
    X, y = data
    frame = pd.DataFrame(X, columns=["längs", "quer"])
    some = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
    small, kernels = fewkern.FeatureVectorDiscriminant(max_vectors=5), fewkern.kernels
    scalers = ["passthrough", make_pipeline(MinMaxScaler((-1, 2)), RobustScaler()), None, StandardScaler()]
    for model, samples, target in (
        (fewkern.FeatureVectorSelector(kernel=kernels.Laplacian(unit="range"), max_vectors=5), X, None),
        (fewkern.FeatureVectorSelector(kernel=kernels.Gaussian(unit="common"), max_vectors=5), X, None),
        (clone(small).set_params(class_weight={0: 1.0, 1: 2.0}), X, y),
        (clone(small), frame, np.array(["ja", "nein"], dtype=str)[y]),
        (make_pipeline(MaxAbsScaler(), fewkern.FeatureVectorDiscriminant(kernel="linear")), some, y),
        (make_pipeline(*scalers, clone(small)), frame, y),
        (make_pipeline(*scalers, fewkern.ForwardDensity()), frame, y),
        (fewkern.FeatureVectorRegressor(max_vectors=10), X, X + np.exp(X[:, 1:]) * np.sin(99 * X)),
    ):
        assert_same_again(model.fit(samples, target), samples, tmp_path)
        load(tmp_path / "m.npz").fit(samples, target)


def test_arrays_of_other_libraries_become_numpy(data, tmp_path, foreign):
    to, _ = foreign
    X, y = data
    fitted = fewkern.FeatureVectorDiscriminant(max_vectors=5).fit(to(X), to(y))
    again = load(save(fitted, tmp_path / "m.npz"))
    assert type(again.vectors_) is np.ndarray
    np.testing.assert_array_equal(again.predict(X), np.asarray(fitted.predict(to(X))))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            fewkern.FeatureVectorRegressor(kernel=pairwise.rbf_kernel),
            "a function of your own as kernel, or a generator",
        ),
        (fewkern.FeatureVectorRegressor(kernel=Function(pairwise.rbf_kernel)), "a function of your own as kernel"),
        (
            fewkern.FeatureVectorSelector(random_state=np.random.default_rng(0), max_vectors=3),
            r"FeatureVectorSelector.random_state is a Generator, which cannot be saved",
        ),
        (Ridge(), "save: expected a fitted estimator of fewkern, a pipeline with one, or an expansion, got Ridge"),
        (
            make_pipeline(PCA(2), fewkern.FeatureVectorDiscriminant(max_vectors=3)),
            r"save: Pipeline.steps\[0\]\[1\] is a PCA, which cannot be saved. A file may hold",
        ),
    ],
)
def test_what_cannot_be_saved(model, message, data, tmp_path):
    with pytest.raises(TypeError, match=message):
        save(model.fit(*data), tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_fitted(tmp_path):
    for model in (fewkern.FeatureVectorSelector(), make_pipeline(StandardScaler(), fewkern.FeatureVectorSelector())):
        with pytest.raises(
            NotFittedError, match=r"save: this (Pipeline|FeatureVectorSelector) is not fitted; call fit"
        ):
            save(model, tmp_path / "m.npz")


def test_a_model_that_does_not_predict_is_not_written(file, data):
    """What load would refuse, save does not put in place of a file that loads."""
    before = file.read_bytes()
    model = fewkern.FeatureVectorRegressor(max_vectors=5).fit(*data)
    model.kernel_.length_scale = 0.0
    with pytest.raises(ValueError, match=r"could not be read back, so nothing was written \(.* not finite"):
        save(model, file)
    assert file.read_bytes() == before


def test_foreign_files(tmp_path):
    arrays = {"header": np.array([{"format": "fewkern model"}], dtype=object)}
    for name, write in (
        ("text", lambda handle: handle.write(b"a,b")),
        ("arrays", lambda handle: np.savez(handle, X=np.eye(2))),
        ("single", lambda handle: np.save(handle, np.eye(2))),
        ("pickled", lambda handle: np.savez(handle, **arrays)),
    ):
        write_atomically(tmp_path / name, write)
        with pytest.raises(ValueError, match=f"{name} is not an intact fewkern model file"):
            load(tmp_path / name)


@pytest.mark.parametrize("version", [0, 2, 99, True, 1.0, "1", None])
def test_other_formats_are_refused(file, version):
    tamper(file, lambda header, _: header.update(format_version=version, fewkern="9.9"))
    with pytest.raises(
        ValueError, match=rf"fewkern 9.9 wrote it in format {version!r}, and this fewkern reads format 1; ins"
    ):
        load(file)


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail(handle):
        handle.write(b"half of the new")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_folder_without_permission(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"cannot write m\.npz: you may not create files in the folder"):
        write_atomically(tmp_path / "m.npz", lambda handle: handle.write(b"new"))


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_any_new_file_or_of_the_old_one(file, tmp_path):
    other = tmp_path / "other"
    other.touch()
    assert file.stat().st_mode == other.stat().st_mode
    file.chmod(0o600)
    write_atomically(file, lambda handle: handle.write(b"new"))
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    target, link, pipe = tmp_path / "real.bin", tmp_path / "link.bin", tmp_path / "pipe"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, lambda handle: handle.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_atomically(pipe, lambda handle: handle.write(b"through"))
        assert read.result(timeout=10) == b"through"
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.bin", "pipe", "real.bin"]
