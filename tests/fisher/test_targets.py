"""Targets of the kernel Fisher classifiers."""

import numpy as np
import pytest

from fewkern.fisher.targets import fisher_targets, least_squares_scores
from fewkern.kernels import Gaussian
from tests.fisher import helpers
from tests.fisher.helpers import classes
from tests.oracles import kfd


@pytest.mark.parametrize("C", [2, 3, 7])
def test_targets_satisfy_their_definition(C):
    _, codes, w = classes(60, C)
    t = fisher_targets(codes, C, w)
    np.testing.assert_allclose(t.priors, [w[codes == c].sum() / w.sum() for c in range(C)])
    np.testing.assert_allclose(t.priors @ t.theta, 0, atol=1e-12)
    np.testing.assert_allclose((t.theta * t.priors[:, None]).T @ t.theta, np.eye(C - 1), atol=1e-12)
    assert t.scale == pytest.approx(np.prod(t.priors) ** (-1 / C))


def test_two_classes_have_the_papers_targets():
    _, codes, _ = classes(50, 2)
    t = fisher_targets(codes, 2, np.ones(50))
    np.testing.assert_allclose(t.rows(codes)[:, 0], kfd.targets(codes))


@pytest.mark.parametrize("C", [2, 3])
def test_rotated_targets_give_the_same_machine(C):
    X, codes, _ = classes(60, C)
    K = Gaussian(length_scale=2.0)(X, X)
    t = fisher_targets(codes, C, np.ones(60))
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((C - 1, C - 1)))[0]
    # several targets at q = 1 are solved to a duality gap of 1e-5, all else to rounding
    for q, atol in ((1.0, 1e-4), (0.5, 1e-8)):
        a, b = (helpers.fit(K, t.rows(codes) @ R, penalty=0.01, q=q) for R in (np.eye(C - 1), Q))
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_allclose(a.coef @ Q, b.coef, rtol=1e-6, atol=atol)


def test_a_class_without_a_sample_is_refused():
    with pytest.raises(ValueError, match="fisher_targets: class number 1 has no sample"):
        fisher_targets(np.array([0, 0, 2]), 3, np.ones(3))


@pytest.mark.parametrize("C", [2, 4])
def test_a_discriminant_comes_back_from_its_posteriors(C):
    _, codes, w = classes(40, C)
    t = fisher_targets(codes, C, w)
    F = np.random.default_rng(0).standard_normal((40, C - 1))
    np.testing.assert_allclose(t.values(least_squares_scores(t)(F)), F, atol=1e-12)
