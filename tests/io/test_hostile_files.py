"""Files made to do harm, and writing that is disturbed."""

import copy
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
from fewkern.datasets import make_banana
from fewkern.density.mixture import ClassMixtures
from fewkern.io import ModelFileError, archive
from fewkern.io.archive import write_atomically
from fewkern.kernels import Function, Gaussian, Polynomial, Precomputed
from tests.fuzz.lies import GONE, members, opened, put, tamper, zipped

X, y = make_banana(60)
fork = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def small():
    return fewkern.FeatureVectorDiscriminant(max_vectors=5, alpha=1e-2).fit(X, y)


@pytest.fixture
def file(small, tmp_path):
    return save(small, tmp_path / "model.npz")


def test_the_same_model_gives_the_same_bytes(small, tmp_path):
    assert save(small, tmp_path / "a").read_bytes() == save(small, tmp_path / "b").read_bytes()


def test_numpy_can_open_the_file(file):
    with np.load(file, allow_pickle=False) as content:
        assert json.loads(content["header"].tobytes())["format_version"] == archive.FORMAT_VERSION


def test_damage_that_the_zip_does_not_see_is_found_by_the_checksum(file):
    parts = members(file.read_bytes())
    name = next(name for name in parts if name != "header.npy")
    parts[name] = parts[name][:-1] + bytes([parts[name][-1] ^ 1])
    file.write_bytes(zipped(parts))
    with pytest.raises(ModelFileError, match="its content does not match its checksum"):
        load(file)


def test_the_checksum_knows_the_names_of_arrays():
    parts = members(archive.pack({}, {"a0": np.arange(3.0)}))
    parts["a1.npy"] = parts.pop("a0.npy")
    with pytest.raises(ModelFileError, match="its content does not match its checksum"):
        opened(zipped(parts))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("expansion_.coef", lambda a: a[:-1], r"KernelExpansion.coef has the shape"),
        ("expansion_.coef", lambda a: a * np.nan, r"KernelExpansion.coef holds NaN or infinity"),
        ("expansion_.coef", lambda a: a.astype(int), r"KernelExpansion.coef has the type int64"),
        ("expansion_.coef", lambda a: a * 0 + 1e303, r"gives NaN or infinity, or nearly so"),
        ("expansion_.indices", lambda a: a - 1000, r"\.indices has negative row numbers"),
        ("expansion_.kernel.length_scale", 0.0, r"values that are not finite"),
        ("expansion_.kernel", "gaussian", r"KernelExpansion.kernel is 'gaussian'"),
        ("expansion_.colour", "red", r"unexpected keyword argument 'colour'"),
        ("expansion_", GONE, r"no attribute 'expansion_'"),
        ("basis_.factor", lambda a: a[:, :-1], r"KernelBasis.factor has the shape"),
        ("basis_.center_square", 1.0, r"KernelBasis has only a part of a center"),
        ("classes_", lambda a: a[:1], r"FeatureVectorDiscriminant.classes_ is not a list of classes"),
        ("classes_", lambda a: np.arange(3), r"has the shape .* for 3 classes"),
        ("classes_", {"object": "Popen", "state": {}}, r"there is no class Popen"),
        ("n_features_in_", 3, r"could not be broadcast"),
        ("n_features_in_", 10**12, r"it declares 1,000,000,000,000 features, and a file of its size may have"),
        ("n_features_in_", "2", r"FeatureVectorDiscriminant.n_features_in_ is '2'"),
        ("predict", "x", r"FeatureVectorDiscriminant has an attribute predict"),
        ("__class__", "x", r"FeatureVectorDiscriminant has an attribute __class__"),
        ("kernel", 3, r"The 'kernel' parameter of FeatureVectorDiscriminant must be"),
        ("vectors_", {"array": "a0", "more": 1}, r"an unknown entry 'array' in its header"),
        ("vectors_", {"array": "a999"}, r"KeyError\('a999'\)"),
        ("vectors_", [1], r"a bare list in its header"),
        ("vectors_", {"strings": [1]}, r"texts that are not texts"),
    ],
)
def test_what_the_checks_say(file, place, value, message):
    tamper(file, put(place, value))
    with pytest.raises(ModelFileError, match=message):
        load(file)


def test_a_file_without_a_model(file):
    for change, message in (
        (lambda header, _: header["model"]["state"].clear(), "its FeatureVectorDiscriminant is not fitted"),
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


def part(path, value):
    """A change of one part of a model; dots lead into the parts of parts, which are frozen values."""

    def changed(whole, names):
        return replace(whole, **{names[0]: changed(getattr(whole, names[0]), names[1:])}) if names else value

    def apply(model):
        first, *rest = path.split(".")
        setattr(model, first, changed(getattr(model, first), rest))

    return apply


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (part("novelty_", "no"), "'str' object has no attribute 'blind'"),
        (lambda m: part("novelty_.basis.factor", 0 * m.novelty_.basis.factor)(m), "singular"),
        (
            lambda m: part(
                "novelty_.basis.factor", np.where(np.diag([0, 0, 0, 0, 1]), 1e-320, m.novelty_.basis.factor)
            )(m),
            "singular",
        ),
        (part("novelty_.basis.kernel", Gaussian(0.0)), "values that are not finite"),
        (part("novelty_.scores.values", np.zeros(0)), "HeldOutScores.levels has the shape"),
        (part("novelty_.scores", HeldOutScores(np.zeros(0), np.zeros(0), 5.0)), "HeldOutScores have no samples"),
        (part("novelty_.scores.effective", np.inf), "HeldOutScores have no samples"),
        (
            part("novelty_.scores", HeldOutScores(np.full(9, 1e305), np.arange(1, 10) / 10, 9.0)),
            "novelty_threshold gives NaN or infinity",
        ),
        (part("intervals_", [1.0]), "'list' object has no attribute 'most'"),
        (
            part("intervals_", Intervals((HeldOutScores(np.arange(2.0), np.array([1.0, 0.5]), 5.0),))),
            "HeldOutScores are not sorted",
        ),
        (part("intervals_", Intervals((HeldOutScores(np.ones(1) * 1e305, np.ones(1), 5.0),))), "gives NaN or infinity"),
        (part("_importances", np.ones(5)), "feature_importances_ is not one number per feature"),
        (part("_importances", np.full(2, np.nan)), "feature_importances_ gives NaN"),
        (part("vectors_", np.full((5, 2), np.nan)), "vectors_ holds NaN or infinity"),
        (part("vectors_", np.zeros((4, 2))), r"vectors_ has the shape \(4, 2\)"),
        (part("vectors_", "none"), "vectors_ is not an array"),
    ],
)
def test_what_a_regressor_promises_is_tried(apply, message, tmp_path):
    model = fewkern.FeatureVectorRegressor(n_vectors=5).fit(X, X[:, 0])
    load(save(model, tmp_path / "m"))
    apply(model)
    with pytest.raises(ValueError, match=f"nothing was written .*{message}"):
        save(model, tmp_path / "m")


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (part("background_.centers", np.ones((2, 1))), "Background.weights has the shape|Background.centers|matmul"),
        (
            lambda m: part("background_.weights", 2 * m.background_.weights)(m),
            "the weights of a background do not add up to one",
        ),
        (part("_sums", "x"), "the sums of KernelRegressor are not sums over rows"),
        (part("_sums.log_factor", np.inf), "has sums that it cannot learn from"),
        (part("vectors_", np.zeros((5, 0))), "has sums that it cannot learn from"),
        (lambda m: vars(m).pop("novelty_"), "has sums that it cannot learn from|no attribute 'novelty_'"),
        (part("_sums.basis", None), "Sums.basis|sums that it cannot learn from"),
        (part("_sums.statistics.square", np.full(1, np.nan)), "NaN"),
        (part("verbose", "loudly"), "The 'verbose' parameter of KernelRegressor must be"),
        (part("prefer", "no"), "The 'prefer' parameter of KernelRegressor must be"),
    ],
)
def test_explanations_and_learning_on_are_tried(apply, message, tmp_path):
    model = fewkern.KernelRegressor(n_vectors=5).partial_fit(X, X[:, 0])
    found = load(save(model, tmp_path / "m"))
    found.explain(X), found.merge(model), found.forget(X[:2], X[:2, 0]), found.partial_fit(X, X[:, 0])
    apply(model)
    with pytest.raises(ValueError, match=f"nothing was written .*({message})"):
        save(model, tmp_path / "m")


def test_sums_that_no_batch_can_continue_are_kept(tmp_path):
    """With balanced classes partial_fit refuses; merge and forget do what they say."""
    labels = (X[:, 0] > 0).astype(int)
    model = fewkern.KernelClassifier(n_vectors=5, class_weight="balanced").fit(X, labels)
    again = load(save(model, tmp_path / "m", with_sums=True))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_sets_of_a_classifier_are_tried(tmp_path, small):
    model = copy.copy(small)
    model.held_out_scores_ = True
    with pytest.raises(ValueError, match=r"nothing was written \('bool' object has no attribute 'quantile'"):
        save(model, tmp_path / "m")


MIXTURE = fewkern.KernelMixture(X[:3], np.ones(3) / 3, np.ones(3), np.ones(2))
EXPANSION = fewkern.KernelExpansion(Gaussian(1.0), X[:3], np.ones((3, 1)), np.zeros(1))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (replace(EXPANSION, kernel=Gaussian(0.0)), "values that are not finite"),
        (replace(EXPANSION, kernel=Gaussian(np.ones(3))), "the length scales of other features"),
        (replace(EXPANSION, kernel=Polynomial(gamma=[1.0])), r"Polynomial\.gamma is \[1\.0\]"),
        (replace(EXPANSION, kernel=Gaussian("median")), "could not convert string|rule|resolve"),
        (replace(EXPANSION, kernel=Function(None)), "'NoneType' object is not callable"),
        (replace(EXPANSION, coef=np.full((3, 1), 1e304)), "gives NaN or infinity"),
        (replace(MIXTURE, weights=np.zeros(3)), "the weights of a KernelMixture do not add up to one"),
        (replace(MIXTURE, bandwidths=np.full(3, 1e-300)), r"gives NaN or infinity|KernelMixture"),
        (replace(MIXTURE, transform=np.zeros((2, 2))), r"gives NaN or infinity|[Ss]ingular"),
        (ClassMixtures(()), "mixtures of ClassMixtures do not have the same features"),
        (ClassMixtures((MIXTURE, MIXTURE.marginal([0]))), "mixtures of ClassMixtures do not have the same features"),
    ],
)
def test_functions_that_are_saved_alone_are_tried(function, message, tmp_path):
    with pytest.raises(ValueError, match=f"nothing was written .*({message})"):
        save(function, tmp_path / "m")


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


def test_a_kernel_is_no_model(file, tmp_path):
    with pytest.raises(TypeError, match="or an expansion, got Gaussian"):
        save(Gaussian(1.0), tmp_path / "m")
    tamper(file, lambda header, _: header.update(model=header["model"]["state"]["kernel_"]))
    with pytest.raises(ModelFileError, match="it holds no model"):
        load(file)


def test_a_table_whose_parts_do_not_belong_together(tmp_path, small):
    from fewkern.tables.columns import CategoryColumn, DateColumn, NumberColumn

    def model(**changes):
        made = fewkern.TableModel(holdout=0, max_vectors=3).fit({"a": X[:, 0], "b": X[:, 1]}, y)
        for name, value in changes.items():
            setattr(made if name in vars(made) else made.encoder_, name, value)
        return made

    load(save(model(), tmp_path / "m"))
    a, nan = NumberColumn("a", 0.0, 0.0, 1.0), float("nan")
    for changes, message in (
        ({"columns_": (a, a)}, "two columns of the same name"),
        ({"columns_": (a, "b")}, "columns_ are not columns"),
        ({"columns_": (a, NumberColumn("b", nan, 0.0, 1.0))}, "median and range must be finite"),
        ({"columns_": (a, CategoryColumn("b", ()))}, "levels must be different, and at least one"),
        ({"columns_": (a, CategoryColumn("b", ("x", "y")))}, "mean_ and scale_ must be 3 finite numbers"),
        ({"columns_": (a, DateColumn("b", "ISO8601", ("century",), 0.0, 0.0, 1.0))}, "parts must be among day"),
        ({"columns_": (a, DateColumn("b", "ISO8601", ("day",), 0.0, nan, 1.0))}, "median and range must be finite"),
        ({"mean_": np.array([0.0, nan])}, "mean_ and scale_ must be 2 finite numbers"),
        ({"scale_": np.array([1.0, 0.0])}, "those of scale_ positive"),
        ({"estimator_": fewkern.ParzenDensity().fit(X[:, :1])}, "not fitted with the 2 features of the encoder"),
        ({"task_": "guess"}, "there is no task 'guess'"),
        ({"facts_": None}, "facts_ are missing"),
        ({"encoder_": None}, "encoder_ are missing"),
        ({"estimator_": None}, "estimator_ is missing"),
        ({"judgement_": "good"}, "judgement_ are missing"),
        ({"target_": 3}, "target_ are missing"),
        ({"columns_": (a, DateColumn("b", "%Q", ("day",), 0.0, 0.0, 1.0))}, "form must be a format of dates"),
        ({"feature_names_in_": np.array(["a", "x"], dtype=object)}, "its columns are not those of its encoder_"),
        ({"columns_": (a, NumberColumn("c", 0.0, 0.0, 1.0))}, "columns_ or notes_ are not those of the table"),
        ({"scale_": np.array([1.0, 5e-324]), "mean_": np.array([0.0, 1e-13])}, "a row of means are not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            save(model(**changes), tmp_path / "m")
    for name, value, message in (
        ("kept_rows", "all", "FitFacts.kept_rows is 'all'"),
        ("seconds", (), "could not be read back"),
    ):
        made = model()
        made.facts_ = replace(made.facts_, **{name: value})
        with pytest.raises(ValueError, match=message):
            save(made, tmp_path / "m")
    made = model()
    made.estimator_.expansion_ = made.estimator_.expansion_.then(np.ones((1, 1)))
    made.estimator_.n_vectors_, made.estimator_.vectors_ = 2, made.estimator_.vectors_[:2]
    with pytest.raises(ValueError, match=r"could not be read back.* arrays must be of the same length"):
        save(made, tmp_path / "m")


@pytest.mark.parametrize("name", ["weights_", "bandwidths_"])
def test_a_density_of_a_table_with_one_number_per_vector(name, tmp_path):
    made = fewkern.TableModel(task="density", holdout=0, max_vectors=3).fit({"a": X[:, 0], "b": X[:, 1]})
    load(save(made, tmp_path / "m"))
    setattr(made.estimator_, name, np.column_stack([getattr(made.estimator_, name)] * 2))
    with pytest.raises(ValueError, match=r"could not be read back.* 1-dimensional"):
        save(made, tmp_path / "m")


@pytest.mark.parametrize("names", [None, np.array(["a", "b"]), np.array(["a"], dtype=object)])
def test_an_encoder_that_does_not_know_its_columns(names, tmp_path):
    encoder = fewkern.TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
    load(save(encoder, tmp_path / "m"))
    encoder.feature_names_in_ = names
    with pytest.raises(ValueError, match="feature_names_in_ does not name the columns"):
        save(encoder, tmp_path / "m")


def test_a_table_that_lost_its_encoder(tmp_path):
    path = save(fewkern.TableModel(holdout=0, max_vectors=3).fit({"a": X[:, 0], "b": X[:, 1]}, y), tmp_path / "m")
    tamper(path, put("encoder_", GONE))
    with pytest.raises(ModelFileError, match="TableModel: its encoder_ are missing"):
        load(path)


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


def as_nobody(model, path, result):
    if os.getuid() == 0:
        os.setuid(65534)
    try:
        save(model, path)
    except PermissionError as error:
        result.put(str(error))
    else:
        result.put("")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_read_only_folder(small, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    path = save(small, folder / "model.npz")
    before, result = path.read_bytes(), fork.Queue()
    folder.chmod(0o555)
    for parent in folder.parents:
        if parent.name.startswith(("pytest-", "popen-", "test_")):
            parent.chmod(0o755)
    try:
        process = fork.Process(target=as_nobody, args=(small, path, result))
        process.start()
        message = result.get(timeout=60)
        process.join()
    finally:
        folder.chmod(0o755)
    assert message.startswith("cannot write model.npz: you may not make files in the folder")
    assert path.read_bytes() == before
    assert [p.name for p in folder.iterdir()] == ["model.npz"]


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
    seen = 0
    while any(worker.is_alive() for worker in (*processes, *threads)):
        assert load(path).n_vectors_ in allowed
        seen += 1
    for worker in (*processes, *threads):
        worker.join()
    assert seen
    assert [process.exitcode for process in processes] == [0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_private_file_stays_private(small, file):
    file.chmod(0o600)
    save(small, file)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_folder_is_not_a_file(small, tmp_path):
    (tmp_path / "m.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder; give the name of a file"):
        save(small, tmp_path / "m.npz")
    with pytest.raises(FileNotFoundError, match="load: there is no file"):
        load(tmp_path)
