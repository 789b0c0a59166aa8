"""Reductions and densities."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern
from fewkern.reporting.subject import subject_of
from fewkern.reporting.unsupervised import density_shape, reduction
from tests.reporting.helpers import QUICK

X, y = load_iris(return_X_y=True, as_frame=True)


def test_a_density_in_the_units_of_the_table():
    model = make_pipeline(StandardScaler(), fewkern.ForwardDensity()).fit(X)
    found = density_shape(subject_of(model, X), QUICK)
    rows = X.to_numpy()
    expected = model.score_samples(X) - np.log(model[0].scale_).sum()
    np.testing.assert_allclose(found.mixture.log_density(rows), expected)
    assert [i for i, _ in found.lowest] == np.argsort(expected, kind="stable")[:10].tolist()
    assert found.rows == 30
    assert found.gain[1] < found.gain[0] < found.gain[2]
    assert "30 rows it had not seen are" in found.sentences[0]
    assert f"mixture of {model[-1].n_vectors_} kernels" in found.sentences[1]


def test_one_bell_curve_is_no_better_than_one():
    Z = np.random.default_rng(0).normal(size=(300, 1))
    found = density_shape(subject_of(fewkern.ParzenDensity().fit(Z), Z), QUICK)
    assert abs(found.gain[0]) < 0.2
    assert "the difference may be chance" in found.sentences[0]


def test_components():
    model = make_pipeline(StandardScaler(), fewkern.FeatureVectorPCA(n_components=2, max_vectors=30)).fit(X)
    found = reduction(subject_of(model, X, y), QUICK)
    T = model.transform(X)
    np.testing.assert_allclose(found.components, T)
    expected = np.corrcoef(X.to_numpy().T, T.T)[:4, 4:]
    np.testing.assert_allclose(found.correlations, expected)
    shares = dict(found.carried)
    assert 0.7 < shares["this model"] <= 1
    assert 0.7 < shares["linear components (PCA)"] <= 1
    assert all(0.8 < share <= 1 for _, share in found.accuracy)
    assert found.weights is None
    assert found.sentences[0].startswith("2 components in place of 4 features: ")
    assert len(found.sentences) == 3


def test_all_of_linear_components_carry_everything():
    model = fewkern.GraphEmbedding(n_components=2).fit(X, y)
    found = reduction(subject_of(model, X, y), QUICK)
    np.testing.assert_allclose(found.weights, model.components_.T)


def test_a_target_of_numbers_has_no_accuracy():
    model = fewkern.FeatureVectorPCA(n_components=2, max_vectors=20).fit(X)
    values = np.random.default_rng(0).normal(size=150)
    assert reduction(subject_of(model, X, values), QUICK).accuracy == ()


def test_new_rows():
    model = fewkern.FeatureVectorPCA(n_components=2, max_vectors=20).fit(X[:100])
    found = reduction(subject_of(model, X[100:]), QUICK)
    assert found.components.shape == (50, 2)
    density = fewkern.ReducedSetDensity().fit(X[::2])
    assert density_shape(subject_of(density, X[1::2]), QUICK).rows == 75
