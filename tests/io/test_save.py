import os
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import fewkern
from fewkern import load, save
from fewkern.datasets import make_banana
from fewkern.io.save import write_atomically
from fewkern.kernels import Function, Gaussian, Laplacian, Linear, LinearSpline, Polynomial
from tests.fuzz.lies import closed, opened

MODELS = [
    fewkern.FeatureVectorSelector(max_vectors=6),
    fewkern.FeatureVectorSelector(max_vectors=6, rule="greedy", projection="symmetric"),
    fewkern.FeatureVectorRegressor(max_vectors=6),
    fewkern.FeatureVectorDiscriminant(max_vectors=6, class_weight={0: 1.0, 1: 2.0}),
    fewkern.FeatureVectorDiscriminant(max_vectors=6),
    fewkern.KernelClassifier(max_vectors=6),
    fewkern.KernelRegressor(max_vectors=6),
    fewkern.FeatureVectorPCA(n_components=2, max_vectors=6, fit_inverse_transform=True),
]
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


@pytest.fixture
def data():
    return make_banana(60)


@pytest.fixture
def file(data, tmp_path):
    return save(fewkern.FeatureVectorDiscriminant(max_vectors=6).fit(*data), tmp_path / "model.npz")


def assert_same(one, other, X):
    for method in METHODS:
        if hasattr(one, method):
            np.testing.assert_array_equal(getattr(other, method)(X), getattr(one, method)(X), err_msg=method)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_round_trip(model, data, tmp_path):
    X, y = data
    fitted = clone(model).fit(X, y)
    path = save(fitted, tmp_path / "model")
    assert path.name == "model.npz"
    again = load(path)
    assert type(again) is type(fitted)
    assert repr(again.get_params()) == repr(fitted.get_params())
    assert_same(fitted, again, X)
    hidden = {"_warm", "_fitted_to"}
    assert set(vars(again)) == set(vars(fitted)) - hidden
    assert again.n_features_in_ == 2
    if hasattr(fitted, "inverse_"):
        T = fitted.transform(X)
        np.testing.assert_array_equal(again.inverse_transform(T), fitted.inverse_transform(T))
    if hasattr(fitted, "path_"):
        np.testing.assert_array_equal(again.path_.error, fitted.path_.error)
        assert again.path_.chosen == fitted.path_.chosen
    again.fit(X, y)


@pytest.mark.parametrize(
    "kernel", [Gaussian([0.5, 1.0]), Laplacian(0.5), Polynomial(2), Linear(), LinearSpline(), "precomputed"], ids=str
)
def test_every_kernel(kernel, data, tmp_path):
    X, y = data
    X = Gaussian(1.0)(X, X) if kernel == "precomputed" else X
    fitted = fewkern.FeatureVectorDiscriminant(kernel=kernel, max_vectors=5).fit(X, y)
    assert_same(fitted, load(save(fitted, tmp_path / "m.npz")), X)


@pytest.mark.parametrize("dtype", [object, str])
def test_string_classes_and_feature_names(dtype, data, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X)
    frame.columns = ["längs", "quer"]
    fitted = fewkern.FeatureVectorDiscriminant(max_vectors=5).fit(frame, np.array(["ja", "nein"], dtype=dtype)[y])
    again = load(save(fitted, tmp_path / "m.npz"))
    assert again.classes_.tolist() == ["ja", "nein"]
    assert again.classes_.dtype == fitted.classes_.dtype
    assert list(again.feature_names_in_) == ["längs", "quer"]
    assert_same(fitted, again, frame)


def test_sparse_vectors(data, tmp_path):
    X, y = data
    X = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
    fitted = make_pipeline(MaxAbsScaler(), fewkern.FeatureVectorDiscriminant(kernel="linear")).fit(X, y)
    again = load(save(fitted, tmp_path / "m.npz"))
    assert sp.issparse(again[-1].vectors_)
    assert_same(fitted, again, X)


def test_arrays_of_other_libraries_become_numpy(data, tmp_path, foreign):
    to, _ = foreign
    X, y = data
    fitted = fewkern.FeatureVectorDiscriminant(max_vectors=5).fit(to(X), to(y))
    again = load(save(fitted, tmp_path / "m.npz"))
    assert type(again.vectors_) is np.ndarray
    np.testing.assert_array_equal(again.predict(X), np.asarray(fitted.predict(to(X))))


def test_a_function_of_the_user_is_refused(data, tmp_path):
    X, y = data
    for kernel in (lambda A, B: A @ B.T, Function(lambda A, B: A @ B.T)):
        fitted = fewkern.FeatureVectorRegressor(kernel=kernel).fit(X, y)
        with pytest.raises(TypeError, match="a function of your own as kernel, or a generator as random_state"):
            save(fitted, tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_generator_as_random_state_is_refused_with_its_name(data, tmp_path):
    fitted = fewkern.FeatureVectorSelector(random_state=np.random.default_rng(0), max_vectors=3).fit(data[0])
    with pytest.raises(TypeError, match=r"FeatureVectorSelector.random_state is a Generator, which cannot be saved"):
        save(fitted, tmp_path / "m.npz")


def test_other_models_are_refused(tmp_path):
    with pytest.raises(
        TypeError, match="save: expected a fitted estimator of fewkern, a pipeline with one, or an expansion, got Ridge"
    ):
        save(Ridge(), tmp_path / "m.npz")


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 2)), MaxAbsScaler(), RobustScaler()])
def test_pipelines_of_scalers(scaler, data, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=["long", "wide"])
    for steps, samples in (
        ([scaler, fewkern.FeatureVectorDiscriminant(max_vectors=5)], X),
        (
            ["passthrough", make_pipeline(scaler, StandardScaler()), fewkern.FeatureVectorRegressor(max_vectors=5)],
            frame,
        ),
        ([scaler, None, fewkern.FeatureVectorPCA(n_components=2, max_vectors=5)], X),
        ([scaler, fewkern.ForwardDensity()], frame),
    ):
        fitted = make_pipeline(*steps).fit(samples, y)
        again = load(save(fitted, tmp_path / "m.npz"))
        assert repr(again) == repr(fitted)
        assert_same(fitted, again, samples)
        again.fit(samples, y)


def test_a_pipeline_with_a_step_that_cannot_be_saved(data, tmp_path):
    model = fewkern.FeatureVectorDiscriminant(max_vectors=3)
    with pytest.raises(
        TypeError, match=r"save: Pipeline.steps\[0\]\[1\] is a PCA, which cannot be saved. A file may hold"
    ):
        save(make_pipeline(PCA(2), model).fit(*data), tmp_path / "m.npz")
    folder = str(tmp_path / "cache")
    with pytest.raises(ValueError, match=r"nothing was written \(Pipeline.memory must be None in a file"):
        save(make_pipeline(StandardScaler(), model, memory=folder).fit(*data), tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()


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


@pytest.mark.parametrize(("field", "value"), [("unit", "meter"), ("unit", 3), ("length_scale", np.ones(7))])
def test_a_kernel_that_contradicts_itself_is_not_written(tmp_path, data, field, value):
    model = fewkern.FeatureVectorSelector(max_vectors=5).fit(*data)
    setattr(model.kernel_, field, value)
    with pytest.raises(ValueError, match="could not be read back, so nothing was written"):
        save(model, tmp_path / "m.npz")


@pytest.mark.parametrize("kernel", [fewkern.kernels.Laplacian(unit="range"), fewkern.kernels.Gaussian(unit="common")])
def test_units_of_widths_are_kept(tmp_path, data, kernel):
    model = fewkern.FeatureVectorSelector(kernel=kernel, max_vectors=5).fit(*data)
    again = load(save(model, tmp_path / "m.npz"))
    assert (again.kernel, again.kernel_) == (model.kernel, model.kernel_)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_file_cut_short(file, share):
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"model.npz is not an intact fewkern model file"):
        load(file)


def test_damaged_bytes_are_noticed_or_harmless(file, data):
    """One byte after the other turned over: a ValueError, or the same model."""
    content = file.read_bytes()
    expected = load(file).predict(data[0])
    seen = set()
    for position in range(0, len(content), 61):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        file.write_bytes(damaged)
        try:
            again = load(file)
        except ValueError as error:
            seen.add(str(error).split(" is ")[0])
        else:
            np.testing.assert_array_equal(again.predict(data[0]), expected)
    assert seen == {"load: model.npz"}


def test_foreign_files(tmp_path):
    text = tmp_path / "text.npz"
    text.write_text("a,b\n1,2\n")
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, X=np.eye(2))
    single = tmp_path / "single.npz"
    with single.open("wb") as handle:
        np.save(handle, np.eye(2))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, header=np.array([{"format": "fewkern model"}], dtype=object))
    for path in (text, arrays, single, pickled):
        with pytest.raises(ValueError, match=f"{path.name} is not an intact fewkern model file"):
            load(path)


def rewrite(file, change):
    """The same file with another header; its checksum is right."""
    header, arrays = opened(file.read_bytes())
    change(header)
    file.write_bytes(closed(header, arrays))


@pytest.mark.parametrize("version", [0, 2, 99, True, 1.0, "1", None])
def test_other_formats_are_refused(file, version):
    rewrite(file, lambda header: header.update(format_version=version, fewkern="9.9"))
    with pytest.raises(
        ValueError, match=rf"fewkern 9.9 wrote it in format {version!r}, and this fewkern reads format 1; ins"
    ):
        load(file)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("model"),
        lambda header: header["model"].update(object="Popen"),
        lambda header: header["model"]["state"]["expansion_"]["state"].update(colour="red"),
        lambda header: header["model"]["state"]["vectors_"].update(array="a999"),
    ],
)
def test_headers_that_say_something_else(file, change):
    rewrite(file, change)
    with pytest.raises(ValueError, match=r"model.npz is not an intact fewkern model file"):
        load(file)


def test_nothing_is_pickled(file):
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            assert name.endswith(".npy")
            assert b"O" not in archive.read(name)[:64].split(b"descr")[1][:8]


def test_missing_file_and_folder(tmp_path, data):
    with pytest.raises(FileNotFoundError, match="load: there is no file"):
        load(tmp_path / "none.npz")
    model = fewkern.FeatureVectorSelector(max_vectors=3).fit(data[0])
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist; make it first"):
        save(model, tmp_path / "none" / "m.npz")


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


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_any_new_file(file, tmp_path):
    other = tmp_path / "other"
    other.touch()
    assert file.stat().st_mode == other.stat().st_mode


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
