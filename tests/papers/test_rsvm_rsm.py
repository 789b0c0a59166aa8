"""Figures of the RSVM and RSM papers, as corrected (methods A5, B7, B8)."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from experiments import plan, rsvm
from experiments.data import DataNotFoundError, fetch_faces, fetch_ida
from experiments.systems import embedding, soft_margin
from experiments.verdict import entries
from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM, graphs
from fewkern.kernels import Gaussian
from tests.oracles.margins import nearest_accuracy


def read(fetch, name):
    """A data set, or a skipped test where it is not on this machine."""
    try:
        return fetch(name)
    except DataNotFoundError as error:
        pytest.skip(str(error))


def ida(name):
    z = read(fetch_ida, name)
    return z.X[z.train_idx[0]], z.y[z.train_idx[0]]


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
def test_rsvm_exact_values(name, sigma, C, cap, values):
    X, y = ida(name)
    model = RecursiveSVM(kernel=Gaussian(length_scale=np.sqrt(sigma / 2)), C=C).fit(X, y)
    assert model.cap_ == pytest.approx(cap, rel=1e-4)
    np.testing.assert_allclose(model.objectives_, values, rtol=1e-4)
    assert model.n_components_ == len(values)  # T*
    assert model.stop_ == "flat"


@pytest.mark.papers
def test_rsvm_squared_lengths_on_heart():
    X, y = ida("heart")
    model = RecursiveSVM(kernel=Gaussian(length_scale=np.sqrt(60)), C=3.162).fit(X, y)
    np.testing.assert_allclose(model.squared_norms_, [68.604, 101.262, 38.340, 19.021], rtol=1e-4)


@pytest.mark.papers
@pytest.mark.parametrize(("name", "sigma", "C"), [("waveform", 20, 1.0), ("breast-cancer", 50, 15.19)])
def test_balanced_weights_give_more_directions(name, sigma, C):
    X, y = ida(name)
    kernel = Gaussian(length_scale=np.sqrt(sigma / 2))
    plain = RecursiveSVM(kernel=kernel, C=C, n_components=30).fit(X, y)
    balanced = RecursiveSVM(kernel=kernel, C=C, class_weight="balanced", n_components=30).fit(X, y)
    assert balanced.n_components_ >= plain.n_components_ + 2


@pytest.mark.papers
def test_rsvm_with_neighbours_on_all_splits_of_heart():
    """Methods A5: T* from 4 to 5, 15.98 % at 3 components and 51 neighbours, 18.8 % at the paper's 3 neighbours."""
    z = read(fetch_ida, "heart")
    X, y = z.X, z.y.astype(int)
    counts, good, bad = [], [], []
    for train, test in zip(z.train_idx, z.test_idx):
        model = RecursiveSVM(kernel=Gaussian(length_scale=np.sqrt(60)), C=3.162).fit(X[train], y[train])
        A, B = model.transform(X[train]), model.transform(X[test])
        counts.append(model.n_components_)
        good.append(np.mean(majority(A[:, :3], y[train], B[:, :3], 51) != y[test]))
        bad.append(np.mean(majority(A, y[train], B, 3) != y[test]))
    assert (min(counts), np.median(counts), max(counts)) == (4, 4, 5)
    assert 100 * np.mean(good) == pytest.approx(15.98, abs=0.1)
    assert 100 * np.mean(bad) == pytest.approx(18.8, abs=0.2)


def majority(A, labels, B, k):
    """k nearest neighbours, labels -1 and 1; a tie goes to the nearest one."""
    nearest = np.argsort(((B[:, None] - A[None]) ** 2).sum(axis=2), axis=1, kind="stable")[:, :k]
    votes = labels[nearest].sum(axis=1)
    return np.where(votes == 0, labels[nearest[:, 0]], np.sign(votes))


def faces(name, count):
    z = read(fetch_faces, f"{name}_32x32")
    X, y = z.X, z.y
    place = np.zeros(len(y), int)
    for k in np.unique(y):
        place[y == k] = np.arange(np.sum(y == k))
    train = place < count
    return X[train], y[train], X[~train], y[~train]


def accuracies(model, data, dims=None):
    X, y, T, t = data
    model = model.fit(X, y)
    A, B = model.transform(X), model.transform(T)
    return [nearest_accuracy(A[:, :k], y, B[:, :k], t) for k in (dims or range(1, A.shape[1] + 1))]


# images, PCA dimension and accuracy of the paper; FDA (S_b, S_t) and RFDA (ridge 1e-8), ours; LPP, UDP, ours
FACES = [
    ("yale", 2, 25, 52.59, 60.0, (65.93, 14), 48.15, 47.41),
    ("yale", 3, 24, 59.17, 64.17, (70.0, 18), 50.0, 54.17),
    ("yale", 4, 47, 63.81, 71.43, (77.14, 22), 53.33, 54.29),
    ("orl", 2, 44, 71.56, 82.5, (83.12, 39), 61.88, 76.25),
    ("orl", 3, 63, 76.79, 84.29, (88.57, 37), 63.93, 79.29),
    ("orl", 4, 103, 85.83, 91.25, (95.42, 18), 72.92, 89.58),
]


@pytest.mark.papers
@pytest.mark.parametrize(("name", "count", "dim", "pca", "fda", "rfda", "lpp", "udp"), FACES)
def test_faces(name, count, dim, pca, fda, rfda, lpp, udp):
    data = faces(name, count)
    image = 100 / len(data[3])
    (found,) = accuracies(GraphEmbedding(graph="pca", n_components=dim), data, [dim])
    assert found == pytest.approx(pca, abs=0.01)  # exact, in all six entries
    classes = len(np.unique(data[1]))
    (found,) = accuracies(embedding("fda"), data, [classes - 1])
    assert found == pytest.approx(fda, abs=1.1 * image)
    (found,) = accuracies(GraphEmbedding(recursive=True, alpha=1e-8, n_components=rfda[1]), data, [rfda[1]])
    assert found == pytest.approx(rfda[0], abs=1.1 * image)
    assert max(accuracies(embedding("lpp", 200), data)) == pytest.approx(lpp, abs=2.1 * image)
    many = GraphEmbedding(graph=graphs.UDP(1), alpha=1.0, n_components=200)
    assert max(accuracies(many, data)) == pytest.approx(udp, abs=2.1 * image)


SOFT = [
    ("yale", 2, 0.1, 66.67),
    ("yale", 3, 0.1, 67.50),
    ("yale", 4, 0.1, 75.24),
    ("orl", 2, 1e-2, 83.12),
    ("orl", 3, 1e-2, 88.57),
]


@pytest.mark.papers
@pytest.mark.parametrize(("name", "count", "ridge", "want"), SOFT)
def test_soft_margin_on_faces(name, count, ridge, want):
    data = faces(name, count)
    classes = len(np.unique(data[1]))
    for delta in (1e-4, 1e-1) if name == "yale" else (1e-2,):
        (found,) = accuracies(RecursiveSoftMargin(alpha=ridge, C=delta, scale_C=False), data, [classes - 1])
        assert found == pytest.approx(want, abs=1.1 * 100 / len(data[3]))


@pytest.mark.papers
def test_other_graphs_on_yale():
    data = faces("yale", 4)
    settings = {"alpha": 1e-2, "C": 1e-2, "scale_C": False, "n_components": 30}
    for rule, want, images in ((graphs.LFDA(), 78.1, 3), (graphs.MFA(3, 100), 76.2, 3), (graphs.LSDA(15), 71.4, 3)):
        best = max(accuracies(RecursiveSoftMargin(graph=rule, **settings), data))
        assert best == pytest.approx(want, abs=(images + 0.1) * 100 / 105), rule


# Stories of methods B8, which has figures, not generators. Those of `experiments.stories` have their free lengths
# calibrated on the baseline alone, so that the method's figures are predictions; shape, sizes and ridge were picked
# among a few with these in view, see the notes of `rsm stories`. Here are fewer draws than there.


def test_recorded_stories():
    """All figures of methods B8, over all draws, as recorded by `python -m experiments rsm stories`.

    tests/experiments/test_record.py computes one draw of every story again.
    """
    (experiment,) = [e for e in plan.experiments() if e.id == "rsm stories"]
    found = [f for f in entries(experiment) if f.published is not None]
    assert len(found) == sum(len(row.published) for row in experiment.rows)
    for figure in found:
        # two standard deviations over draws; of a single run one point, or two and a half where it is run to the end
        to_the_end = figure.row.settings["story"] == "digits" and "early" not in figure.row.label
        tolerance = 2 * figure.deviation if figure.runs > 1 else 2.5 if to_the_end else 1.0
        assert figure.mean == pytest.approx(figure.published, abs=tolerance), (figure.row.label, figure.name)


def test_blocks_of_ten_classes_on_digits():
    """Methods A7: 1-NN on 600 training digits, nine directions of every class against the rest: 96.5 to 96.9 %."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:600], order[600:]
    X = X / 16.0
    data = (X[train], y[train], X[test], y[test])
    model = RecursiveSVM(C=1.0, n_components=9)
    assert accuracies(model, data, [9])[0] > 95.0


def test_an_early_stop_saves_steps():
    X, y = load_wine(return_X_y=True)
    early, full = (soft_margin(2, stop=stop, delta_rel=50.0).fit(scale(X), y).n_iter_ for stop in (1e-5, None))
    assert early < full


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
