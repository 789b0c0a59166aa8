import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import KernelPCA

from fewkern import FeatureVectorPCA
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Linear


@pytest.fixture
def X():
    return make_banana(90)[0]


def test_all_vectors_give_kernel_pca(X):
    ours = FeatureVectorPCA(n_components=5, kernel=Gaussian(0.8), max_vectors=90).fit(X)
    theirs = KernelPCA(5, kernel="rbf", gamma=1 / (2 * 0.8**2)).fit(X)
    new = make_banana(30, random_state=9)[0]
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(ours.transform(new)), np.abs(theirs.transform(new)), atol=1e-6)


def test_scores_have_mean_zero_and_the_eigenvalues_as_squares(X):
    model = FeatureVectorPCA(max_vectors=12).fit(X)
    T = model.transform(X)
    assert T.shape[1] <= 12
    np.testing.assert_allclose(T.mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(T.T @ T, np.diag(model.eigenvalues_), atol=1e-6)


def test_inverse_transform_finds_the_way_back(X):
    model = FeatureVectorPCA(n_components=8, kernel=Gaussian(1.5), max_vectors=30, fit_inverse_transform=True).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert back.shape == X.shape
    assert np.mean((back - X) ** 2) < 0.02 * np.mean((X - X.mean(axis=0)) ** 2)
    single = FeatureVectorPCA(n_components=3, fit_inverse_transform=True).fit(X[:, :1])
    assert single.inverse_transform(single.transform(X[:, :1])).shape == (90, 1)


def test_inverse_transform_in_other_array_libraries(X, foreign):
    to, back = foreign
    settings = {"n_components": 4, "kernel": Gaussian(1.5), "max_vectors": 20, "fit_inverse_transform": True}
    here, there = (FeatureVectorPCA(**settings).fit(A) for A in (X, to(X)))
    result = there.inverse_transform(there.transform(to(X)))
    assert type(result) is type(to(X))
    np.testing.assert_allclose(back(result), here.inverse_transform(here.transform(X)), atol=1e-4)


def test_inverse_transform_errors(X):
    with pytest.raises(AttributeError, match="has no attribute 'inverse_transform'"):
        FeatureVectorPCA(n_components=2).fit(X).inverse_transform(np.zeros((3, 2)))
    model = FeatureVectorPCA(n_components=2, kernel=Linear(), fit_inverse_transform=True)
    with pytest.raises(ValueError, match="it cannot go back to sparse samples"):
        model.fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="behind a precomputed kernel"):
        model.set_params(kernel="precomputed").fit(X @ X.T)
    fitted = FeatureVectorPCA(n_components=2, fit_inverse_transform=True).fit(X)
    with pytest.raises(ValueError, match="3 features"):
        fitted.inverse_transform(np.zeros((4, 3)))
