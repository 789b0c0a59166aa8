"""Files made to do harm, and writing that is disturbed."""

import json
import multiprocessing
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

import fewkern
from fewkern import load, save
from fewkern.core.conformal import HeldOutScores, Intervals
from fewkern.core.explanation import Background
from fewkern.datasets import make_banana
from fewkern.density.mixture import ClassMixtures
from fewkern.io import ModelFileError, archive
from fewkern.io.archive import write_atomically
from fewkern.kernels import Function, Gaussian, Polynomial, Precomputed
from fewkern.tables.columns import CategoryColumn, DateColumn, NumberColumn
from tests.fuzz.lies import GONE, members, opened, put, tamper, zipped

X, y = make_banana(60)
fork = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def small():
    return fewkern.FeatureVectorDiscriminant(max_vectors=5, alpha=1e-2).fit(X, y)


@pytest.fixture
def file(small, tmp_path):
    return save(small, tmp_path / "model.npz")


def test_the_same_model_gives_the_same_bytes_and_numpy_opens_them(small, tmp_path):
    assert save(small, tmp_path / "a").read_bytes() == save(small, tmp_path / "b").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as content:
        assert json.loads(content["header"].tobytes())["format_version"] == archive.FORMAT_VERSION


def test_damage_that_the_zip_does_not_see_is_found_by_the_checksum(file):
    parts = members(file.read_bytes())
    name = next(name for name in parts if name != "header.npy")
    parts[name] = parts[name][:-1] + bytes([parts[name][-1] ^ 1])
    file.write_bytes(zipped(parts))
    with pytest.raises(ModelFileError, match="its content does not match its checksum"):
        load(file)
    parts = members(archive.pack({}, {"a0": np.arange(3.0)}))
    parts["a1.npy"] = parts.pop("a0.npy")
    with pytest.raises(ModelFileError, match="its content does not match its checksum"):
        opened(zipped(parts))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("expansion_.coef", lambda a: a * 0 + 1e303, r"gives NaN or infinity, or nearly so"),
        ("expansion_.kernel.length_scale", 0.0, r"values that are not finite"),
        ("expansion_.kernel", "gaussian", r"KernelExpansion.kernel is 'gaussian'"),
        ("expansion_.colour", "red", "unexpected keyword"),
        ("expansion_", GONE, "no attribute"),
        ("basis_.factor", lambda a: a[:, :-1], r"KernelBasis.factor has the shape"),
        ("basis_.center_square", 1.0, r"KernelBasis has only a part of a center"),
        ("classes_", lambda a: a[:1], r"FeatureVectorDiscriminant.classes_ is not a list of classes"),
        ("classes_", lambda a: np.arange(3), r"has the shape .* for 3 classes"),
        ("classes_", {"object": "Popen", "state": {}}, r"there is no class Popen"),
        ("feature_names_in_", {"strings": ["a"]}, r"feature_names_in_ does not name 2 features"),
        ("n_features_in_", 3, "_importances has the shape"),
        ("n_features_in_", 0, "is not an intact"),
        ("n_features_in_", "2", "is not an intact"),
        ("n_features_in_", 10**12, r"it declares 1,000,000,000,000 features, and a file of its size may have"),
        ("predict", "x", r"FeatureVectorDiscriminant has an attribute predict"),
        ("__class__", "x", r"FeatureVectorDiscriminant has an attribute __class__"),
        ("kernel", 3, r"The 'kernel' parameter of FeatureVectorDiscriminant must be"),
        ("vectors_", {"array": "a999"}, r"KeyError\('a999'\)"),
        ("vectors_", [1], r"an unknown entry in its header"),
        ("vectors_", {"strings": ["a"]}, r"FeatureVectorDiscriminant.vectors_ has the shape"),
    ],
)
def test_files_that_contradict_themselves(file, place, value, message):
    tamper(file, put(place, value))
    with pytest.raises(ModelFileError, match=message):
        load(file)


def test_a_file_without_a_model(file, tmp_path):
    with pytest.raises(TypeError, match="or an expansion, got Gaussian"):
        save(Gaussian(1.0), tmp_path / "m")
    for change, message in (
        (lambda header, _: header.update(model=header["model"]["state"]["kernel_"]), "it holds no model"),
        (lambda header, _: header.update(model={"object": "FeatureVectorPCA", "state": {}}), "PCA is not fitted"),
        (lambda header, _: header.pop("model"), "KeyError"),
    ):
        tamper(file, change)
        with pytest.raises(ModelFileError, match=message):
            load(file)


def test_a_model_is_tried_at_its_own_vectors(tmp_path):
    """Elsewhere kernels are zero, whatever stands before them; of a precomputed one the trial sample is all ones."""
    for kernel, samples in (("gaussian", X + 1e3), ("precomputed", Gaussian(1.0)(X, X))):
        path = save(fewkern.FeatureVectorDiscriminant(kernel=kernel, max_vectors=3).fit(samples, y), tmp_path / "m")
        assert load(path).predict(samples).shape == y.shape
        tamper(path, put("expansion_.coef", lambda a: a * 0 + 1e303))
        with pytest.raises(ModelFileError, match="gives NaN or infinity"):
            load(path)


def test_shapes_that_broadcast_by_chance(tmp_path):
    """As many trial rows as classes, and priors that are a column: the sum has the right shape, for these rows only."""
    labels = np.arange(60) % 4
    model = fewkern.FeatureVectorDiscriminant(max_vectors=6).fit(X + labels[:, None], labels)
    assert model.n_vectors_ >= 4
    model.class_scores_ = replace(model.class_scores_, offset=model.class_scores_.offset[:, None])
    with pytest.raises(ValueError, match=r"nothing was written \(.*offset"):
        save(model, tmp_path / "m")


# Models that what load asks of them does not suit: save reads a file back before it writes it.


def put_in(model, path, value):
    """Another value in a part of a model; dots lead into the parts of parts, which are frozen values."""

    def changed(whole, names):
        return replace(whole, **{names[0]: changed(getattr(whole, names[0]), names[1:])}) if names else value

    first, *rest = path.split(".")
    setattr(model, first, changed(getattr(model, first, None), rest))


def assert_not_written(model, tmp_path):
    with pytest.raises(ValueError, match="could not be read back, so nothing was written"):
        save(model, tmp_path / "not-written")
    assert not list(tmp_path.glob("not-written*"))


def fitted(task):
    if task == "learning":
        return fewkern.KernelRegressor(n_vectors=5).partial_fit(X, X[:, 0])
    if task == "classes":
        return fewkern.FeatureVectorDiscriminant(max_vectors=5).fit(X, y)
    if task == "components":
        return fewkern.FeatureVectorPCA(n_components=2, max_vectors=5, fit_inverse_transform=True).fit(X)
    if task == "densities":
        return fewkern.TableModel(task="density", holdout=0, max_vectors=3).fit({"a": X[:, 0], "b": X[:, 1]})
    return fewkern.FeatureVectorRegressor(n_vectors=5).fit(X, X[:, 0])


LARGE = HeldOutScores(np.ones(1) * 1e305, np.ones(1), 5.0)


@pytest.mark.parametrize(
    ("task", "path", "value"),
    [
        ("values", "novelty_", "no"),
        ("values", "novelty_.basis.factor", np.zeros((5, 5))),
        ("values", "novelty_.basis.factor", np.diag([1, 1, 1, 1, 1e-320])),
        ("values", "novelty_.basis.kernel", Gaussian(0.0)),
        ("values", "novelty_.scores.values", np.zeros(0)),
        ("values", "novelty_.scores", HeldOutScores(np.zeros(0), np.zeros(0), 5.0)),
        ("values", "novelty_.scores.effective", np.inf),
        ("values", "novelty_.scores", HeldOutScores(np.full(9, 1e305), np.arange(1, 10) / 10, 9.0)),
        ("values", "intervals_", [1.0]),
        ("values", "intervals_", Intervals((HeldOutScores(np.arange(2.0), np.array([1.0, 0.5]), 5.0),))),
        ("values", "intervals_", Intervals((LARGE,))),
        ("values", "_importances", np.ones(5)),
        ("values", "_importances", np.full(2, np.nan)),
        ("values", "vectors_", np.full((5, 2), np.nan)),
        ("values", "vectors_", np.zeros((4, 2))),
        ("values", "vectors_", "none"),
        ("learning", "background_", Background(np.ones((2, 3)), np.ones(2) / 2)),
        ("learning", "background_.weights", np.ones(2)),
        ("learning", "_sums", "x"),
        ("learning", "_sums.log_factor", np.inf),
        ("learning", "vectors_", np.zeros((5, 0))),
        ("learning", "novelty_", GONE),
        ("learning", "_sums.basis", None),
        ("learning", "_sums.statistics.square", np.full(1, np.nan)),
        ("learning", "verbose", "loudly"),
        ("learning", "prefer", "no"),
        ("classes", "held_out_scores_", True),
        ("classes", "_n_features_out", 7),
        ("components", "inverse_", fewkern.KernelExpansion(Gaussian(1.0), X[:3], np.ones((3, 1)), np.zeros(1))),
        ("densities", "weights_", np.ones((3, 2)) / 3),
        ("densities", "bandwidths_", np.ones((3, 2))),
    ],
)
def test_what_a_model_promises_is_tried(task, path, value, tmp_path):
    model = fitted(task)
    load(save(model, tmp_path / "m"))
    if value is GONE:
        delattr(model, path)
    else:
        put_in(getattr(model, "estimator_", model), path, value)
    assert_not_written(model, tmp_path)


def test_a_model_that_was_loaded_goes_on_learning(tmp_path):
    found = load(save(fitted("learning"), tmp_path / "m"))
    found.explain(X), found.merge(fitted("learning")), found.forget(X[:2], X[:2, 0]), found.partial_fit(X, X[:, 0])
    # with balanced classes partial_fit refuses; merge and forget do what they say
    model = fewkern.KernelClassifier(n_vectors=5, class_weight="balanced").fit(X, y)
    again = load(save(model, tmp_path / "m", with_sums=True))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


MIXTURE = fewkern.KernelMixture(X[:3], np.ones(3) / 3, np.ones(3), np.ones(2))
EXPANSION = fewkern.KernelExpansion(Gaussian(1.0), X[:3], np.ones((3, 1)), np.zeros(1))


@pytest.mark.parametrize(
    "function",
    [
        replace(EXPANSION, kernel=Gaussian(0.0)),
        replace(EXPANSION, kernel=Gaussian(np.ones(3))),
        replace(EXPANSION, kernel=Polynomial(gamma=[1.0])),
        replace(EXPANSION, kernel=Gaussian("median")),
        replace(EXPANSION, kernel=Function(None)),
        replace(EXPANSION, vectors=X[:3] + 1e3, coef=np.full((3, 1), -1e304)),
        replace(MIXTURE, weights=np.zeros(3)),
        replace(MIXTURE, bandwidths=np.full(3, 1e-300)),
        replace(MIXTURE, transform=np.zeros((2, 2))),
        ClassMixtures(()),
        ClassMixtures((MIXTURE, MIXTURE.marginal([0]))),
    ],
)
def test_functions_that_are_saved_alone_are_tried(function, tmp_path):
    assert_not_written(function, tmp_path)


@pytest.mark.parametrize(
    "function",
    [
        MIXTURE,
        EXPANSION,
        ClassMixtures((MIXTURE, MIXTURE)),
        replace(EXPANSION, vectors=np.zeros((0, 2)), coef=np.zeros((0, 1))),
        fewkern.KernelExpansion(Precomputed(), np.array([[0], [4]]), np.ones((2, 1)), np.zeros(1)),
    ],
)
def test_functions_can_be_saved_alone(function, tmp_path):
    again, samples = load(save(function, tmp_path / "m")), np.ones((2, 5)) if function.vectors.shape[1] == 1 else X
    np.testing.assert_array_equal(again(samples), function(samples))


# Models of tables

NAN, NUMBER = float("nan"), NumberColumn("a", 0.0, 0.0, 1.0)
BROKEN_TABLES = [
    {"columns_": (NUMBER, NUMBER)},
    {"columns_": (NUMBER, "b")},
    {"columns_": (NUMBER, NumberColumn("b", NAN, 0.0, 1.0))},
    {"columns_": (NUMBER, CategoryColumn("b", ()))},
    {"columns_": (NUMBER, CategoryColumn("b", ("x", "y")))},
    {"columns_": (NUMBER, DateColumn("b", "ISO8601", ("century",), 0.0, 0.0, 1.0))},
    {"columns_": (NUMBER, DateColumn("b", "ISO8601", ("day",), 0.0, NAN, 1.0))},
    {"columns_": (NUMBER, DateColumn("b", "%Q", ("day",), 0.0, 0.0, 1.0))},
    {"columns_": (NUMBER, NumberColumn("c", 0.0, 0.0, 1.0))},
    {"feature_names_in_": None},
    {"feature_names_in_": np.array(["a", "x"], dtype=object)},
    {"mean_": np.array([0.0, NAN])},
    {"scale_": np.array([1.0, 0.0])},
    {"scale_": np.array([1.0, 5e-324]), "mean_": np.array([0.0, 1e-13])},
    {"estimator_": fewkern.ParzenDensity().fit(X[:, :1])},
    *({name: None} for name in ("facts_", "encoder_", "estimator_")),
    {"task_": "guess"},
    {"judgement_": "good"},
    {"target_": 3},
]


@pytest.mark.parametrize("changes", BROKEN_TABLES, ids=range(len(BROKEN_TABLES)))
def test_tables_whose_parts_do_not_belong_together(changes, tmp_path):
    model = fewkern.TableModel(holdout=0, max_vectors=3).fit({"a": X[:, 0], "b": X[:, 1]}, y)
    load(save(model, tmp_path / "m"))
    for name, value in changes.items():
        setattr(model if name in vars(model) else model.encoder_, name, value)
    assert_not_written(model, tmp_path)


def test_more_tables_whose_parts_do_not_belong_together(tmp_path):
    def model():
        return fewkern.TableModel(holdout=0, max_vectors=3).fit({"a": X[:, 0], "b": X[:, 1]}, y)

    for name, value in (("kept_rows", "all"), ("seconds", ())):
        made = model()
        made.facts_ = replace(made.facts_, **{name: value})
        assert_not_written(made, tmp_path)
    made = model()
    made.estimator_.expansion_ = made.estimator_.expansion_.then(np.ones((1, 1)))
    made.estimator_.n_vectors_, made.estimator_.vectors_ = 2, made.estimator_.vectors_[:2]
    assert_not_written(made, tmp_path)
    for names in (None, np.array(["a", "b"]), np.array(["a"], dtype=object)):
        encoder = fewkern.TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
        encoder.feature_names_in_ = names
        assert_not_written(encoder, tmp_path)


# writing


def test_a_writer_killed_halfway_through_the_bytes(file):
    """The kill comes after half of the content was written."""
    before = file.read_bytes()

    def half(handle):
        handle.write(before[: len(before) // 2])
        handle.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    process = fork.Process(target=write_atomically, args=(file, half))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert file.read_bytes() == before
    load(file)


def writing(models, path, count):
    for i in range(count):
        save(models[i % len(models)], path)


def test_concurrent_writers_and_readers(small, tmp_path):
    """Two processes and two threads write, one thread reads: it always finds one of the models, whole."""
    other = fewkern.FeatureVectorDiscriminant(max_vectors=3, alpha=1e-2).fit(X, y)
    path = save(small, tmp_path / "model.npz")
    allowed = {small.n_vectors_, other.n_vectors_}
    processes = [fork.Process(target=writing, args=([small, other], path, 20)) for _ in range(2)]
    threads = [threading.Thread(target=writing, args=([other, small], path, 20)) for _ in range(2)]
    for worker in (*processes, *threads):
        worker.start()
    while any(worker.is_alive() for worker in (*processes, *threads)):
        assert load(path).n_vectors_ in allowed
    for worker in (*processes, *threads):
        worker.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def test_a_folder_is_not_a_file(small, tmp_path):
    (tmp_path / "m.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder; give the name of a file"):
        save(small, tmp_path / "m.npz")
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist; make it first"):
        save(small, tmp_path / "none" / "m.npz")
    for missing in (tmp_path, tmp_path / "none.npz"):
        with pytest.raises(FileNotFoundError, match="load: there is no file"):
            load(missing)
