"""Reductions and densities."""

import numpy as np
import pytest
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
    expected = model.score_samples(X) - np.log(model[0].scale_).sum()
    np.testing.assert_allclose(found.mixture.log_density(X.to_numpy()), expected)
    assert [i for i, _ in found.lowest] == np.argsort(expected, kind="stable")[:10].tolist()
    assert 0 < found.times[1] < found.times[0] < found.times[2]
    assert "30 rows it had not seen are" in found.sentences[0]
    assert f"mixture of {model[-1].n_vectors_} kernels" in found.sentences[1]


def test_one_bell_curve_is_no_better_than_one():
    Z = np.random.default_rng(0).normal(size=(300, 1))
    found = density_shape(subject_of(fewkern.ParzenDensity().fit(Z), Z), QUICK)
    assert 0.8 < found.times[0] < 1.25
    assert "is no better than one normal distribution" in found.sentences[1]


def test_components():
    model = make_pipeline(StandardScaler(), fewkern.FeatureVectorPCA(n_components=2, max_vectors=30)).fit(X)
    found = reduction(subject_of(model, X, y), QUICK)
    T = model.transform(X)
    np.testing.assert_allclose(found.correlations, np.corrcoef(X.to_numpy().T, T.T)[:4, 4:])
    assert all(0.7 < share <= 1 for _, share in found.carried)
    assert found.weights is None
    assert found.sentences[0].startswith("2 components in place of 4 features: ")
    np.testing.assert_array_equal([miss for _, miss in found.worst], sorted((m for _, m in found.worst), reverse=True))


def test_a_linear_map_has_weights():
    model = fewkern.GraphEmbedding(n_components=1).fit(X, y)
    found = reduction(subject_of(model, X, y), QUICK)
    np.testing.assert_allclose(found.weights, model.components_.T)
    assert found.sentences[0].startswith("1 component in place of 4 features: ")


def test_without_components_there_is_nothing_to_report():
    Z = np.zeros((10, 2))
    with pytest.raises(ValueError, match="report: the model has no component"):
        reduction(subject_of(fewkern.GraphEmbedding(graph="pca").fit(Z), Z), QUICK)
