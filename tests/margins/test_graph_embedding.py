"""GraphEmbedding as a scikit-learn estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, KernelPCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from fewkern import GraphEmbedding, graphs
from fewkern.kernels import Gaussian
from fewkern.margins.rules import RULES
from tests.oracles.margins import align


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_pca_and_kernel_pca(iris):
    X, _ = iris
    ours, theirs = GraphEmbedding(graph="pca", n_components=3).fit_transform(X), PCA(3).fit_transform(X)
    np.testing.assert_allclose(align(theirs, ours), theirs, atol=1e-8)
    kernel = GraphEmbedding(graph="pca", kernel=Gaussian(length_scale=2.0), n_components=3).fit(X)
    theirs = KernelPCA(3, kernel="rbf", gamma=1 / 8).fit(X)
    np.testing.assert_allclose(align(theirs.transform(X), kernel.transform(X)), theirs.transform(X), atol=1e-5)


def test_every_graph_fits_and_goes_back(iris):
    X, y = iris
    for name in RULES:
        for recursive in (False, True):
            model = GraphEmbedding(graph=name, recursive=recursive, n_components=2).fit(X, y)
            T = model.transform(X)
            np.testing.assert_allclose(model.transform(model.inverse_transform(T)), T, atol=1e-8)
            assert model.eigenvalues_.shape == (2,)
            assert np.all(np.diff(model.eigenvalues_) <= 1e-9 * model.eigenvalues_[0])


def test_more_directions_than_classes(iris):
    X, y = iris
    assert GraphEmbedding().fit(X, y).n_components_ == 2
    model = GraphEmbedding(recursive=True, n_components=4).fit(X, y)
    assert (model.n_components_, model.stop_) == (4, "limit")
    with pytest.warns(UserWarning, match="n_components=4 was asked for, but these samples give only 2"):
        assert GraphEmbedding(n_components=4).fit(X, y).stop_ == "flat"


def test_no_n_by_n_matrix_for_class_graphs():
    """Fifty thousand samples would need 20 GB for one."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 50_000)
    X = rng.normal(size=(50_000, 5)) + 3 * np.eye(5)[y]
    assert GraphEmbedding().fit(X, y).n_components_ == 3


def test_parameters_of_a_graph_in_a_grid_search(iris):
    X, y = iris
    search = GridSearchCV(
        make_pipeline(GraphEmbedding(graph="lpp", n_components=2), KNeighborsClassifier()),
        {"graphembedding__graph__neighbors": [2, 10]},
        cv=3,
    ).fit(X, y)
    chosen = search.best_estimator_[0].graph
    assert chosen == graphs.LPP(search.best_params_["graphembedding__graph__neighbors"])
    assert len(set(np.round(search.cv_results_["mean_test_score"], 6))) == 2
    model = GraphEmbedding(graph=graphs.MFA())
    assert model.get_params()["graph__between"] == 100
    assert clone(model).set_params(graph__within=7).graph == graphs.MFA(within=7)
    assert model.graph == graphs.MFA()
    assert GraphEmbedding().set_params(graph="lpp", graph__neighbors=9).graph == graphs.LPP(9)
    with pytest.raises(ValueError, match=r"MFA has no parameter 'neighbors'; it has \['between', 'within'\]"):
        model.set_params(graph__neighbors=3)
