"""A fitted model goes where the new samples are."""

import numpy as np
import pytest

from fewkern import FeatureVectorClassifier, FeatureVectorPCA, FeatureVectorSelector, ParzenDensity
from fewkern.datasets import make_banana


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (FeatureVectorSelector(max_vectors=10), "transform"),
        (FeatureVectorSelector(max_vectors=10, rule="greedy"), "transform"),
        (FeatureVectorPCA(n_components=2, max_vectors=10), "transform"),
        (FeatureVectorClassifier(max_vectors=10), "predict_proba"),
        (ParzenDensity(), "score_samples"),
    ],
)
def test_fitted_here_used_there_and_back(model, method, foreign):
    to, back = foreign
    X, y = make_banana(60)
    here = getattr(model.fit(X, y), method)(X)
    there = getattr(model, method)(to(X))
    assert type(there) is type(to(X))
    np.testing.assert_allclose(back(there), here, atol=1e-10)
    again = getattr(model.fit(to(X), to(y)), method)(X)
    assert type(again) is np.ndarray
    np.testing.assert_allclose(again, here, atol=1e-8)
