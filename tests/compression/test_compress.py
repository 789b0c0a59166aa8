"""``fewkern.compress``: every source, errors, and the way to files, C and ONNX."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import fewkern
from fewkern import compress
from fewkern.compression import Agreement, CompressedClassifier
from fewkern.compression.sources import teacher
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.scores import ClassScores
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from tests.checks.everyone import assert_same_outputs
from tests.io.running import assert_exported, expected

RBF_PLUS = ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(0.1)
CLASSIFIERS = [
    SVC(C=10.0),
    NuSVC(nu=0.3, gamma=0.5),
    fewkern.FeatureVectorDiscriminant(n_vectors=20),
    fewkern.SparseKernelFisher(alpha=0.01),
    fewkern.ForwardKernelFisher(n_vectors=15),
]
REGRESSORS = [
    SVR(C=10.0, epsilon=0.01),
    NuSVR(C=10.0, gamma="auto"),
    KernelRidge(alpha=0.1, kernel="rbf"),
    KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3),
    GaussianProcessRegressor(RBF([1.0, 2.0]), alpha=0.1, optimizer=None),
    GaussianProcessRegressor(RBF_PLUS, optimizer=None, normalize_y=True),
    fewkern.FeatureVectorRegressor(n_vectors=30),
]
TRANSFORMERS = [
    KernelPCA(2, kernel="rbf", gamma=0.3),
    fewkern.FeatureVectorPCA(n_components=2, max_vectors=30),
    fewkern.GraphEmbedding(kernel="gaussian", n_components=1, max_vectors=20),
    fewkern.RecursiveSVM(kernel="gaussian", n_components=2, max_vectors=20),
    fewkern.RecursiveSoftMargin(kernel="gaussian", n_components=1, max_vectors=20),
]


def name(model):
    return type(model).__name__


def data(n=150):
    X, y = make_banana(n)
    return X, y, np.sin(X[:, 0]) + 0.2 * X[:, 1]


@pytest.fixture
def svc():
    X, y, _ = data()
    return SVC(C=10.0).fit(X, y)


KINDS = (is_classifier, is_regressor, is_outlier_detector)


def asked(model, X):
    """The values of a model, a row for every sample."""
    methods = ("decision_function", "predict") if any(kind(model) for kind in KINDS) else ("transform",)
    method = next(method for method in methods if hasattr(model, method))
    return np.reshape(getattr(model, method)(X), (len(X), -1))


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS, *TRANSFORMERS, OneClassSVM(nu=0.2)], ids=name)
def test_sums_of_kernels(model):
    X, y, target = data()
    if model in (REGRESSORS[2], REGRESSORS[5], REGRESSORS[6]):  # several outputs
        target = np.stack([target, X[:, 1] ** 2], axis=1)
    y = np.where(y == 1, "up", "down") if is_classifier(model) else target if is_regressor(model) else y
    model = clone(model).fit(X, y)
    found, truth = teacher(model), asked(model, X)
    scores = getattr(model, "class_scores_", ClassScores())
    np.testing.assert_allclose(scores.scores(found.values(X)), truth, atol=1e-9)
    if found.function is not None:
        np.testing.assert_allclose(found.function(X), found.values(X), atol=1e-9)
    short = compress(model, X, tolerance=0.05)
    assert [kind(short) for kind in KINDS] == [kind(model) for kind in KINDS]
    assert isinstance(short.expansion_, GaussianExpansion)
    assert short.n_vectors_ <= len(found.vectors) // 2
    assert short.agreement_.loss <= 0.05
    assert np.std(asked(short, X) - truth) < 0.2 * np.std(truth)
    assert hasattr(short, "background_") == hasattr(short, "explain")
    for method in ("predict_proba", "decision_function", "transform"):
        assert hasattr(short, method) == hasattr(model, method)
    if hasattr(short, "get_feature_names_out"):
        assert len(short.get_feature_names_out()) == truth.shape[1]
    if hasattr(model, "score_samples"):
        np.testing.assert_allclose(short.score_samples(X), model.score_samples(X), atol=0.5)
    if is_regressor(model):
        assert short.agreement_.decisions is None
        assert short.predict(X).shape == model.predict(X).shape
    elif hasattr(model, "classes_") and hasattr(short, "predict"):
        assert short.classes_.tolist() == model.classes_.tolist()
        assert np.mean(short.predict(X) == model.predict(X)) > 0.94
    if hasattr(model, "predict_proba"):
        assert np.abs(short.predict_proba(X) - model.predict_proba(X)).mean() < 0.1
        np.testing.assert_allclose(np.exp(short.predict_log_proba(X)), short.predict_proba(X), atol=1e-9)


def test_several_classes_of_an_svc_vote():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = SVC(C=10.0).fit(X, names[y])
    one, other, last = model.set_params(decision_function_shape="ovo").decision_function(X).clip(-1, 1).T
    model.set_params(decision_function_shape="ovr")
    found = teacher(model)
    np.testing.assert_allclose(found.values(X), np.stack([one + other, last - one, -other - last], axis=1), atol=1e-9)
    assert names[found.decisions(X, found.values(X))].tolist() == model.predict(X).tolist()
    assert model.decision_function_shape == "ovr"
    short = compress(model, X, n_vectors=6, tolerance=0.1)
    assert short.decision_function(X).shape == (150, 3)
    assert np.mean(short.predict(X) == model.predict(X)) > 0.96


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
def test_probabilities_of_an_svc_are_matched():
    X, y, _ = data()
    model = SVC(C=10.0, probability=True, random_state=0).fit(X, y)
    short = compress(model, X, n_vectors=10)
    assert np.abs(short.predict_proba(X) - model.predict_proba(X)).mean() < 0.05
    assert np.mean((short.predict_proba(X)[:, 1] > 0.5) == (short.decision_function(X) > 0)) == 1


def test_a_gaussian_process_of_two_classes():
    X, y, _ = data()
    model = GaussianProcessClassifier(ConstantKernel(20.0) * RBF([1.0, 1.5])).fit(X, np.where(y == 1, "up", "down"))
    short = compress(model, X, n_vectors=15)
    assert short.classes_.tolist() == ["down", "up"]
    for rows in (X, make_banana(150, random_state=1)[0]):
        assert np.abs(short.predict_proba(rows) - model.predict_proba(rows)).mean() < 0.02
    assert np.mean(short.predict(X) == model.predict(X)) > 0.96
    assert np.mean((teacher(model).values(X)[:, 0] > 0) == (model.predict(X) == "up")) == 1


def test_a_gaussian_process_of_several_classes():
    X, y = load_iris(return_X_y=True)
    model = GaussianProcessClassifier(ConstantKernel(10.0, "fixed") * RBF(1.0)).fit(X, y)
    found = teacher(model)
    values = found.values(X)
    np.testing.assert_allclose(values.sum(axis=1), 0.0, atol=1e-9)  # only differences between classes matter
    assert found.decisions(X, values).tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found.scores.probabilities(values), model.predict_proba(X), atol=1e-3)
    short = compress(model, X, n_vectors=12)
    assert np.mean(short.predict(X) == model.predict(X)) > 0.97
    assert np.abs(short.predict_proba(X) - model.predict_proba(X)).mean() < 0.02


def test_a_model_of_a_frame_is_asked_without_a_warning():
    X, y, _ = data(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    short = compress(SVR(C=10.0).fit(frame, y), frame, n_vectors=8, tolerance=0.3)
    assert short.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        short.predict(frame.rename(columns={"a": "c"}))


def test_a_model_of_no_more_vectors_is_returned(svc):
    X, _, _ = data()
    short = compress(svc, X, n_vectors=len(svc.support_))
    assert short.n_vectors_ == len(svc.support_)
    assert short.agreement_ == Agreement(0.0, 1.0, 1.0)
    assert short.expansion_.kernel == Gaussian(1.0 / np.sqrt(2.0 * svc._gamma))
    np.testing.assert_allclose(short.decision_function(X), svc.decision_function(X), atol=1e-9)


def test_the_same_seed_gives_the_same_model(svc):
    X, _, _ = data()
    one, other = (compress(svc, X, n_vectors=5, tolerance=0.5, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.vectors_, other.vectors_)


def test_verbose_says_how_far_it_is(svc, capsys):
    X = data()[0]
    compress(make_pipeline(svc), X, tolerance=0.9, verbose=True)
    assert re.fullmatch(r"compress: moving vectors: 1 of at most \d+, .* s, done\n", capsys.readouterr().err)
    compress(svc, X, n_vectors=3, tolerance=0.9)
    assert not capsys.readouterr().err


def test_a_pipeline_keeps_its_scaler():
    X, y, _ = data()
    frame = pd.DataFrame(1000 * X + 5, columns=["a", "b"])
    model = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(frame, y)
    short = compress(model, frame, n_vectors=10, tolerance=0.1)
    assert [name for name, _ in short.steps] == ["standardscaler", "svc"]
    assert isinstance(short[-1], CompressedClassifier)
    assert short[0] is model[0]
    assert np.mean(short.predict(frame) == model.predict(frame)) > 0.95
    without = compress(model, n_vectors=10, tolerance=0.2)
    assert np.mean(without.predict(frame) == model.predict(frame)) > 0.9


def test_a_tolerance_out_of_reach_is_a_warning(svc):
    X, _, _ = data()
    with pytest.warns(
        UserWarning, match=r"compress: 1 vectors do not agree with this SVC to the tolerance 0: .*% equal decisions"
    ):
        assert compress(svc, X, n_vectors=1, tolerance=0.0).n_vectors_ == 1


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="poly"),
        SVR(kernel="linear"),
        KernelRidge(kernel=lambda x, y: float(x @ y + 1) ** 2),
        KernelPCA(2),
        GaussianProcessRegressor(RBF(2.0) + RBF(4.0), alpha=0.1, optimizer=None),
        GaussianProcessClassifier(Matern(2.0, nu=2.5), optimizer=None),
        fewkern.FeatureVectorRegressor(kernel="polynomial", max_vectors=6),
    ],
    ids=name,
)
def test_other_kernels_are_imitated(model):
    X, y, target = data()
    model = clone(model).fit(X, target if is_regressor(model) else y)
    assert teacher(model).widths is None
    short = compress(model, X, n_vectors=5, tolerance=0.5)
    if hasattr(model, "predict_proba"):
        assert np.abs(short.predict_proba(X) - model.predict_proba(X)).mean() < 0.02
    else:
        truth = asked(model, X)
        exact = getattr(model, "kernel", None) == "linear" and is_regressor(model)
        assert np.std(asked(short, X) - truth) < (1e-3 if exact else 0.15) * np.std(truth)


@pytest.mark.parametrize("seed", [900, 902, 903])
def test_a_rare_class_is_kept(seed):
    """One sample in a hundred: a constant would decide 99% of them alike."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3500, 5))
    value = -((X[:, :2] - 1.5) ** 2).sum(axis=1) + 0.3 * rng.standard_normal(3500)
    y = value > np.quantile(value, 0.99)
    model = SVC(C=10.0).fit(X[:1500], y[:1500])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        short = compress(model, X[:1500])
    rare = model.predict(X)
    assert 8 < rare.sum() < 35
    assert np.mean(short.predict(X)[rare]) > 0.8


def test_no_class_of_several_is_lost():
    """Four classes, one of them rare: agreement is that of the class that agrees least, on new samples, too."""
    rng = np.random.default_rng(41)
    centers = np.array([[0, 0], [3, 0], [0, 3], [3, 3]])
    y = rng.choice(4, 6000, p=[0.45, 0.4, 0.13, 0.02])
    X = centers[y] + 0.7 * rng.standard_normal((6000, 2))
    model = SVC(C=10.0).fit(X[:2000], y[:2000])
    short = compress(model, X[:2000], tolerance=0.1)
    truth, found = model.predict(X[2000:]), short.predict(X[2000:])
    least = min(np.mean(found[truth == c] == c) for c in range(4))
    assert short.agreement_.least >= 0.9
    assert least > short.agreement_.least - 0.09  # two standard errors of the difference: 80 rows of that class
    assert short.agreement_.least <= short.agreement_.decisions


def test_a_class_with_too_few_samples_is_named(svc):
    X, y, _ = data()
    model = SVC(C=10.0).fit(X, np.where(np.arange(150) < 4, "odd", np.where(y > 0, "up", "down")))
    few = compress(svc, X, n_vectors=20, tolerance=0.5)  # no warning: both classes have samples
    assert few.agreement_.least > 0.5
    with pytest.warns(UserWarning, match=r"this SVC decides for 'odd' on fewer than 10 samples, too few to tell"):
        compress(model, X, n_vectors=20, tolerance=0.9)


def test_agreement_is_measured_on_new_samples_where_they_are_given():
    X, y, _ = data()
    new = make_banana(500, random_state=7)[0]
    model = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(X, y)
    short = compress(model, X, X_new=new, n_vectors=6, tolerance=0.3)
    same, truth, agreed = short.predict(new) == model.predict(new), model.predict(new), short[-1].agreement_
    assert agreed.decisions == pytest.approx(np.mean(same))
    assert agreed.least == pytest.approx(min(np.mean(same[truth == c]) for c in np.unique(truth)))


VALUES_ONLY = [
    RandomForestClassifier(30, random_state=0),  # probabilities
    HistGradientBoostingClassifier(max_iter=20),  # a decision function
    LogisticRegression(),
    VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier())]),  # decisions
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", VALUES_ONLY, ids=name)
def test_any_classifier_is_imitated_by_its_values(model, classes):
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (1200, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] + 0.3 * X[:, 1] > 0).astype(int) + (classes == 3) * (X[:, 1] > 0.8)]
    model = clone(model).fit(X[:400], y[:400])
    short = compress(model, X[:400], n_vectors=16, tolerance=0.3)
    fresh = np.mean(short.predict(X[400:]) == model.predict(X[400:]))
    assert fresh > 0.93
    assert abs(fresh - short.agreement_.decisions) < 0.04
    assert short.classes_.tolist() == sorted(set(y))
    assert hasattr(short, "predict_proba") == hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        assert np.abs(short.predict_proba(X) - model.predict_proba(X)).mean() < 0.12


def test_any_regressor_is_imitated_by_its_values():
    rng = np.random.default_rng(6)
    X = rng.uniform(-2, 2, (1400, 3))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1] ** 2, X[:, 2]], axis=1)
    model = RandomForestRegressor(30, random_state=0).fit(X[:400], Y[:400])
    short = compress(model, X[:400], n_vectors=32, tolerance=0.4)
    truth = model.predict(X[400:])
    error = np.sqrt(np.mean((short.predict(X[400:]) - truth) ** 2) / np.mean((truth - truth.mean(axis=0)) ** 2))
    assert error < 0.3
    # what a forest says between its rows is smoother than at new ones: over five draws the ratio is 1.35 to 1.54
    assert 0.7 < (error + 0.01) / (short.agreement_.error + 0.01) < 1.6


def test_a_detector_and_a_pipeline_of_unknown_form():
    X, y, _ = data(400)
    detector = IsolationForest(n_estimators=50, random_state=0).fit(X)
    short = compress(detector, X, n_vectors=32, tolerance=0.5)
    assert is_outlier_detector(short)
    assert np.corrcoef(short.score_samples(X), detector.score_samples(X))[0, 1] > 0.9
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0)).fit(X, y)
    assert np.mean(compress(forest, X, n_vectors=16, tolerance=0.3).predict(X) == forest.predict(X)) > 0.9


@pytest.mark.parametrize("learner", [fewkern.KernelClassifier(), fewkern.KernelRegressor()], ids=name)
def test_the_learner_itself(learner):
    """A function of prepared columns is imitated in these."""
    X, y, target = data(300)
    X = np.exp(X)
    model = clone(learner).fit(X, y if is_classifier(learner) else target)
    short = compress(model, X, n_vectors=max(1, model.n_vectors_ // 2), tolerance=0.5)
    assert short.expansion_.basis.preparation.knots.tolist() == model.expansion_.basis.preparation.knots.tolist()
    if is_classifier(learner):
        assert np.mean(short.predict(X) == model.predict(X)) > 0.93
    else:
        assert np.corrcoef(short.predict(X), model.predict(X))[0, 1] > 0.97
    assert compress(model, X, n_vectors=model.n_vectors_).expansion_ is model.expansion_


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), SVC(C=10.0)),
        KernelRidge(kernel="rbf", gamma=0.3),
        KernelPCA(2, kernel="rbf", gamma=0.3),
        OneClassSVM(nu=0.2),
        RandomForestClassifier(30, random_state=0),
    ],
    ids=name,
)
def test_files_c_and_onnx(model, tmp_path):
    X, y, _ = data()
    short = compress(clone(model).fit(X, y), X, n_vectors=8, tolerance=0.9)
    if not isinstance(model, Pipeline):
        with pytest.raises(TypeError, match=f"{name(short)}: a compressed model cannot be fitted"):
            short.fit(X)
    fewkern.save(short, tmp_path / "m.npz")
    assert_same_outputs(short, fewkern.load(tmp_path / "m.npz"), X)
    truth = expected(short, X)
    if is_outlier_detector(short):
        truth = {"label": short.predict(X), "decision": short.decision_function(X)[:, None]}
    assert_exported(tmp_path, short, X, {"double": 1e-9}, truth)


def test_torch_samples(foreign):
    there, back = foreign
    X, y, _ = data()
    model = fewkern.FeatureVectorDiscriminant(kernel=Gaussian(1.0), n_vectors=20).fit(there(X), there(y))
    short = compress(model, there(X), n_vectors=8, tolerance=0.2)
    assert type(short.vectors_) is type(there(X))
    assert np.mean(back(short.predict(there(X))) == back(model.predict(there(X)))) > 0.9


def test_a_model_of_a_table_is_asked_for_its_columns():
    X, y = make_banana(200, random_state=0)
    kind, side = np.where(X[:, 0] > 0, "x", "z"), np.where(y > 0, "a", "b")
    table = pd.DataFrame(X * [1, 1000], columns=["u", "v"]).assign(kind=kind, side=side)
    long = fewkern.TableModel(holdout=0).fit(table, "side")
    short = compress(long, table, n_vectors=3, tolerance=0.05)
    assert isinstance(short, fewkern.TableModel)
    assert short.estimator_.n_vectors_ == 3
    assert np.mean(short.predict(table) == long.predict(table)) > 0.95


def test_the_best_model_of_a_search():
    X, y, _ = data(80)
    search = GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2)
    short = compress(make_pipeline(StandardScaler(), search).fit(X, y), X, n_vectors=6, tolerance=0.9)
    assert short.steps[-1][1].n_vectors_ == 6
    assert compress(search.fit(X, y), X, n_vectors=6, tolerance=0.9).source_ == "SVC"


X, y, _ = data(60)
PAIR = np.stack([y, 1 - y], axis=1)
FOREST = RandomForestClassifier(5, random_state=0)
ONE_VS_ONE = GaussianProcessClassifier(multi_class="one_vs_one", optimizer=None)


@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        *(
            (model, {}, NotFittedError, f"this {name(model)} is not fitted")
            for model in (
                SVC(),
                GaussianProcessRegressor(),
                GaussianProcessClassifier(),
                fewkern.FeatureVectorPCA(),
                make_pipeline(StandardScaler(), SVC()),
                GridSearchCV(SVC(), {"C": [1.0]}),
            )
        ),
        (StandardScaler(), {}, TypeError, "cannot read a StandardScaler; expected a fitted classifier, regressor"),
        (np.ones(3), {}, TypeError, "cannot read a ndarray"),
        (fewkern.ParzenDensity().fit(X), {}, TypeError, "a ParzenDensity does not compute a sum of kernels with free"),
        (clone(FOREST).fit(X, PAIR), {}, TypeError, "this RandomForestClassifier has several outputs; com"),
        (RidgeClassifier().fit(X, PAIR), {}, TypeError, "this RidgeClassifier has several outputs"),
        (FixedThresholdClassifier(clone(FOREST)).fit(X, y), {}, TypeError, "moves the threshold of another classifier"),
        (LocalOutlierFactor().fit(X), {}, TypeError, "this LocalOutlierFactor cannot score new samples; fit it"),
        (clone(FOREST).fit(X, y), {"X": None}, ValueError, "a RandomForestClassifier has no vectors; pass X, samples"),
        (fewkern.TableModel(holdout=0).fit(X, y), {"X": None}, ValueError, "a TableModel needs X, the rows of a table"),
        (
            ONE_VS_ONE.fit(X, np.arange(60) % 3),
            {},
            ValueError,
            "pairs of classes give no probabilities; fit with",
        ),
        (SVC(kernel="precomputed").fit(X @ X.T, y), {}, ValueError, "was fitted to kernel values; fit it to s"),
        (SVC().fit(sp.csr_array(X), y), {}, ValueError, "this SVC was fitted to sparse samples"),
        (None, {"X": sp.csr_array(X)}, TypeError, "dense data is required"),
        (None, {"X_new": X[:, :1]}, ValueError, "X has 1 features, but SVC is expecting 2 features"),
        (None, {"X": np.where(X > 1, np.nan, X)}, ValueError, "the samples contain NaN or infinity"),
        (None, {"n_vectors": 0}, ValueError, r"The 'n_vectors' parameter of compress must be .* Got 0 instead"),
        (None, {"tolerance": 1.5}, ValueError, "The 'tolerance' parameter of compress must be a float in the range"),
        (None, {"random_state": "abc"}, ValueError, "The 'random_state' parameter of compress must be"),
    ],
)
def test_refusals(svc, model, given, error, message):
    with pytest.raises(error, match=message) as raised:
        compress(svc if model is None else model, **{"X": X, **given})
    assert str(raised.value).startswith("compress: ") or model is None
