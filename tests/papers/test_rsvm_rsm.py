"""Figures of the RSVM and RSM papers, as corrected (methods A5, B7), computed; others are in test_recorded.py."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from experiments import rsvm
from experiments.data import DataNotFoundError, fetch_faces
from fewkern import RecursiveSoftMargin, RecursiveSVM, graphs
from fewkern.kernels import Gaussian
from tests.oracles.margins import nearest_accuracy


def first_split(data):
    return data.X[data.train_idx[0]], data.y[data.train_idx[0]]


# set, sigma of exp(-|x - y|^2 / sigma), C, cap, optimal values P_t: first split, methods A5
EXACT = [
    ("heart", 120, 3.162, 480.624, [176.426, 318.254, 423.178, 471.114]),
    ("waveform", 20, 1.0, 264.0, [82.557, 155.272, 214.946, 252.788, 263.802]),
    (
        "twonorm",
        40,
        3.162,
        1220.53,
        [85.806, 204.294, 363.387, 592.844, 837.583, 998.053, 1087.46, 1172.70, 1213.66],
    ),
    (
        "thyroid",
        3,
        10.0,
        780.0,
        [
            63.357, 148.127, 232.935, 310.579, 374.900, 459.389, 568.307, 656.863, 715.790, 756.422, 774.450, 779.995,
        ],
    ),
]  # fmt: skip


@pytest.mark.papers
@pytest.mark.parametrize(("name", "sigma", "C", "cap", "values"), EXACT, ids=[e[0] for e in EXACT])
def test_rsvm_exact_values(ida, name, sigma, C, cap, values):
    X, y = first_split(ida(name))
    model = RecursiveSVM(kernel=Gaussian(length_scale=np.sqrt(sigma / 2)), C=C).fit(X, y)
    assert model.cap_ == pytest.approx(cap, rel=1e-4)
    np.testing.assert_allclose(model.objectives_, values, rtol=1e-4)
    assert model.n_components_ == len(values)  # T*
    assert model.stop_ == "flat"
    if name == "heart":
        np.testing.assert_allclose(model.squared_norms_, [68.604, 101.262, 38.340, 19.021], rtol=1e-4)


@pytest.mark.papers
@pytest.mark.parametrize(("name", "sigma", "C"), [("waveform", 20, 1.0), ("breast-cancer", 50, 15.19)])
def test_balanced_weights_give_more_directions(ida, name, sigma, C):
    X, y = first_split(ida(name))
    kernel = Gaussian(length_scale=np.sqrt(sigma / 2))
    plain = RecursiveSVM(kernel=kernel, C=C, n_components=30).fit(X, y)
    balanced = RecursiveSVM(kernel=kernel, C=C, class_weight="balanced", n_components=30).fit(X, y)
    assert balanced.n_components_ >= plain.n_components_ + 2


def accuracies(model, data, dims):
    X, y, T, t = data
    model = model.fit(X, y)
    A, B = model.transform(X), model.transform(T)
    return [nearest_accuracy(A[:, :k], y, B[:, :k], t) for k in dims]


@pytest.mark.papers
def test_other_graphs_on_yale():
    try:
        faces = fetch_faces("yale_32x32")
    except DataNotFoundError as error:
        pytest.skip(str(error))
    place = np.array([np.sum(faces.y[:i] == y) for i, y in enumerate(faces.y)])
    train = place < 4  # the first four of everybody
    data = faces.X[train], faces.y[train], faces.X[~train], faces.y[~train]
    settings = {"alpha": 1e-2, "C": 1e-2, "scale_C": False, "n_components": 30}
    for rule, want, images in ((graphs.LFDA(), 78.1, 3), (graphs.MFA(3, 100), 76.2, 3), (graphs.LSDA(15), 71.4, 3)):
        best = max(accuracies(RecursiveSoftMargin(graph=rule, **settings), data, range(1, 31)))
        assert best == pytest.approx(want, abs=(images + 0.1) * 100 / 105), rule


def test_blocks_of_ten_classes_on_digits():
    """Methods A7: 1-NN on 600 training digits, nine directions of every class against the rest: 96.5 to 96.9 %."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:600], order[600:]
    X = X / 16.0
    data = (X[train], y[train], X[test], y[test])
    model = RecursiveSVM(C=1.0, n_components=9)
    assert accuracies(model, data, [9])[0] > 95.0


def test_strict_rows_take_width_and_margin_from_the_training_part(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    labels = np.where(X[:, 0] > 0, 1, -1)
    split = np.arange(60), np.arange(60, 90)
    data = SimpleNamespace(X=X, y=labels, train_idx=[split[0]], test_idx=[split[1]])
    monkeypatch.setattr(rsvm, "_ida", lambda name: data)
    seen = []
    monkeypatch.setattr(rsvm, "_tuned", lambda X, y, run: seen.append((X, y, run)) or {"C": 1.0, "sigma": 2.0})
    strict, given = ({"set": "any", "method": "svm", **more} for more in ({}, {"C": 1.0, "sigma": 2.0}))
    assert rsvm.benchmark(strict, 0) == rsvm.benchmark(given, 0)
    ((samples, classes, run),) = seen
    np.testing.assert_array_equal(samples, X[:60])
    np.testing.assert_array_equal(classes, labels[:60])
    assert run == 0


def test_strict_settings_separate_what_can_be_separated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where((X**2).sum(axis=1) > 1.4, 1, -1)
    found = rsvm._tuned(X, y, 0)
    assert found["C"] >= 1.0
    assert np.mean(SVC(C=found["C"], gamma=1 / found["sigma"]).fit(X, y).predict(X) == y) > 0.95
