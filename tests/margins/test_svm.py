"""RecursiveSVM and RecursiveSoftMargin as scikit-learn estimators."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from fewkern.margins import soft
from fewkern.margins.rules import RULES


@pytest.fixture(scope="module")
def binary():
    return make_classification(120, 8, n_informative=4, random_state=0)


def test_every_way_to_the_linear_kernel_is_the_same(binary):
    X, y = binary
    settings = {"n_components": 3, "class_weight": "balanced"}
    want = RecursiveSVM(**settings).fit(X, y)
    T = want.transform(X)
    through_gram = RecursiveSVM(kernel="precomputed", **settings).fit(X @ X.T, y)
    np.testing.assert_allclose(through_gram.transform(X @ X.T), T, atol=1e-5)
    through_basis = RecursiveSVM(max_vectors=8, **settings).fit(X, y)
    np.testing.assert_allclose(through_basis.transform(X), T, atol=1e-5)
    assert through_basis.components_.shape == want.components_.shape
    np.testing.assert_allclose(through_basis.mean_, want.mean_, atol=1e-12)


def test_sparse_samples_with_many_features_stay_sparse(monkeypatch):
    shape = (300, 3000)
    X = sp.random(*shape, density=0.01, random_state=0, format="csr")
    y = np.asarray(X[:, :30].sum(axis=1)).ravel() > np.median(np.asarray(X[:, :30].sum(axis=1)).ravel())
    y[:3] = [True, False, True]
    dense = RecursiveSVM(n_components=2, class_weight="balanced").fit(X.toarray(), y)
    full = shape[0] * shape[1]
    for kind in (sp.csr_matrix, sp.csr_array):
        original = kind.toarray

        def guarded(self, *args, original=original, **kwargs):
            assert self.shape[0] * self.shape[1] < full, "densified"
            return original(self, *args, **kwargs)

        monkeypatch.setattr(kind, "toarray", guarded)
    sparse = RecursiveSVM(n_components=2, class_weight="balanced").fit(X, y)
    monkeypatch.undo()
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), atol=1e-4)


def test_kernel_model_keeps_only_support_vectors():
    X, y = make_banana(150)
    model = RecursiveSVM(kernel=Gaussian(length_scale=1.0), C=10.0, n_components=1).fit(X, y)
    assert model.n_vectors_ == len(model.support_) < 100
    np.testing.assert_array_equal(model.vectors_, X[model.indices_])
    assert abs(model.transform(X).mean()) < 1e-8
    values, expected = model.transform(X)[:, 0], np.where(y == model.classes_[1], 1, -1)
    assert np.corrcoef(values, expected)[0, 1] > 0.7
    few = RecursiveSVM(kernel=Gaussian(length_scale=1.0), C=10.0, max_vectors=20, n_components=2).fit(X, y)
    assert few.n_vectors_ == 20
    assert not hasattr(few, "components_")


def test_targets_of_a_regression_are_one_column():
    with pytest.raises(ValueError, match="one number per sample"):
        RecursiveSVM(epsilon=0.1).fit(NOISE, NOISE[:, :2])


def test_soft_margin_graphs(iris):
    X, y = iris
    for graph in RULES:
        model = RecursiveSoftMargin(graph=graph, n_components=2).fit(X, y)
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-10)
    assert not hasattr(model.set_params(graph="udp").fit(X), "classes_")
    V = sp.csr_matrix((y[:, None] == y[None, :]).astype(float))
    apart = sp.csr_matrix((y[:, None] != y[None, :]).astype(float))
    own = RecursiveSoftMargin(graph=(V, apart), n_components=1, C=1e-6, scale_C=False).fit(X)
    like = RecursiveSoftMargin(n_components=1, C=1e-6, scale_C=False).fit(X, y)
    # equal classes: the same pairs, other scales; far below delta_0 only the direction counts
    assert abs(own.components_[0] @ like.components_[0]) > 0.999


@pytest.mark.parametrize("make", [RecursiveSVM, RecursiveSoftMargin])
def test_degenerate_samples(make):
    rng = np.random.default_rng(0)
    wide, y = rng.normal(size=(8, 50)), np.arange(8) % 2
    assert make(n_components=2).fit(wide, y).transform(wide).shape == (8, 2)
    one_each = make(n_components=1).fit(wide[:2], y[:2])
    difference = wide[1] - wide[0]
    np.testing.assert_allclose(
        np.abs(one_each.components_[0]), np.abs(difference / np.linalg.norm(difference)), atol=1e-6
    )
    X = rng.normal(size=(30, 3))
    X = np.column_stack([X, X[:, 0], np.full(30, 7.0)])
    labels = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    model = make().fit(X, labels)
    assert np.all(np.isfinite(model.transform(X)))
    assert np.abs(model.components_[:, 4]).max() < 1e-8


def test_zero_weight_is_absence_also_behind_matrices(binary):
    X, y = binary
    keep = np.arange(len(y)) % 5 != 0
    same = (y[:, None] == y[None, :]).astype(float)
    a = RecursiveSoftMargin(graph=(same, 1 - same), n_components=2).fit(X, sample_weight=keep.astype(float))
    b = RecursiveSoftMargin(graph=(same[np.ix_(keep, keep)], 1 - same[np.ix_(keep, keep)]), n_components=2).fit(X[keep])
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-6)


MIRRORED, NOISE = np.vstack([np.eye(4), -np.eye(4)] * 2), np.random.default_rng(0).normal(size=(20, 3))
BALANCED = r"no direction with a margin .* use class_weight=\"balanced\", another C"


@pytest.mark.parametrize(
    ("model", "X", "y", "stop", "message"),
    [
        (RecursiveSVM(), MIRRORED, np.repeat([0, 1], 8), "flat", BALANCED),
        (RecursiveSVM(), np.vstack([NOISE, NOISE]), np.repeat([0, 1], 20), "flat", BALANCED),
        (RecursiveSVM(), np.ones((10, 3)), np.arange(10) % 2, "rank", BALANCED),
        (RecursiveSVM(epsilon=0.1), NOISE, np.ones(20), "flat", "no direction .* Use a smaller epsilon"),
        (GraphEmbedding(graph=(None, sp.csr_matrix((20, 20)))), NOISE, None, "flat", None),
        # every pair is an edge of the neighbor graph, so none should be apart
        (RecursiveSoftMargin(graph="udp"), NOISE[:4], None, "flat", None),
    ],
)
def test_nothing_to_find_is_no_error(model, X, y, stop, message):
    with pytest.warns(ConvergenceWarning, match=message) if message else nullcontext():
        model.fit(X, y)
    assert (model.stop_, model.n_components_, model.transform(X).shape) == (stop, 0, (len(X), 0))


# Numbers of very different size: large boxes, long columns, few samples, poor graphs


def large_boxes():
    """A regression and two classes, and how many directions there are at least and at most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    for C, width in ((100.0, 0.5), (1000.0, 1.0)):
        yield RecursiveSVM(epsilon=0.1, C=C, kernel=Gaussian(length_scale=width)), X, y, (1, 39)
    X, y = load_breast_cancer(return_X_y=True)
    yield RecursiveSVM(C=1e4, kernel=Gaussian(length_scale=5.0)), scale(X)[:200], y[:200], (21, 199)


@pytest.mark.parametrize(("model", "X", "y", "between"), list(large_boxes()))
def test_coefficients_belong_to_the_directions(model, X, y, between):
    model.fit(X, y)
    assert between[0] <= model.n_components_ <= between[1]
    assert np.abs(model.transform(X)).max() < 10
    V, coef = model.vectors_, model.expansion_.coef
    np.testing.assert_allclose(coef.T @ model.kernel_(V, V) @ coef, np.eye(model.n_components_), atol=1e-3)


@pytest.mark.parametrize("C", [10.0, 100.0, 1e4])
def test_never_more_directions_than_there_are(C):
    X = np.random.default_rng(3).normal(size=(12, 12))
    model = RecursiveSVM(C=C, class_weight="balanced").fit(X, np.arange(12) % 2)
    assert model.n_components_ <= 11
    # nothing outside of the span of the centred samples
    span = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:11]
    W = model.components_
    np.testing.assert_allclose(W - W @ span.T @ span, 0, atol=1e-8)
    kernel = RecursiveSVM(C=C, kernel=Gaussian(length_scale=3.0), class_weight="balanced").fit(X, np.arange(12) % 2)
    assert kernel.n_components_ <= 11


def test_small_units_are_not_flat():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += y
    small = RecursiveSVM().fit(1e-5 * X, y)
    # a box so small for the data that all multipliers are at their bound: the difference of the means
    assert small.n_components_ == 1
    want = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(small.components_[0], want / np.linalg.norm(want), atol=1e-6)


@pytest.mark.filterwarnings("ignore:RecursiveSoftMargin. n_components=5 was asked for")
@pytest.mark.parametrize("metric", ["euclidean", "scatter"])
@pytest.mark.parametrize("seed", range(4))
def test_a_penalty_that_sees_two_directions(metric, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5))
    V = np.zeros((60, 60))
    V[0, 1] = V[1, 0] = V[2, 3] = V[3, 2] = 1
    near = np.triu(rng.random((60, 60)) < 0.1, 1) * 1.0
    near = near + near.T
    near[V > 0] = 0
    for pair in ((near, V), (None, V)):
        model = RecursiveSoftMargin(graph=pair, n_components=5, metric=metric).fit(X)
        assert np.isfinite(model.components_).all()
        if pair[0] is None or metric == "scatter":
            # directions lie in the span of the two gaps; otherwise the ridge turns them out of it
            assert model.n_components_ == 2
            assert model.stop_ == "flat"


def test_a_huge_weight_of_the_smoothed_hinge_leaves_the_value_at_zero(monkeypatch):
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr(soft, "_MAX_LISTED_PAIRS", 0)
    (step,) = RecursiveSoftMargin(n_components=1, C=1e12, scale_C=False).fit(scale(X), y).steps_
    assert step.objectives[-1] < 1e-2 * step.at_zero
