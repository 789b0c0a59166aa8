"""Targets of the kernel Fisher classifiers, and the way from the discriminant to probabilities."""

import numpy as np
import pytest

from fewkern.core.scores import class_values, softmax
from fewkern.fisher.fitting import fit_posterior
from fewkern.fisher.problem import fisher_targets
from fewkern.kernels import Gaussian
from fewkern.select.leave_one_out import HeldOut
from tests.fisher import helpers
from tests.fisher.helpers import classes, labelled
from tests.oracles import kfd


@pytest.mark.parametrize("C", [2, 3, 7])
def test_targets_satisfy_their_definition(C):
    _, codes, w = classes(60, C)
    t = fisher_targets(codes, C, w)
    np.testing.assert_allclose(t.priors, [w[codes == c].sum() / w.sum() for c in range(C)])
    np.testing.assert_allclose(t.priors @ t.theta, 0, atol=1e-12)
    np.testing.assert_allclose((t.theta * t.priors[:, None]).T @ t.theta, np.eye(C - 1), atol=1e-12)
    assert t.scale == pytest.approx(np.prod(t.priors) ** (-1 / C))


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
    np.testing.assert_allclose(t.values(t.posteriors(F)), F, atol=1e-12)
    np.testing.assert_allclose(t.posteriors(F).sum(axis=1), 1)
    np.testing.assert_array_equal(t.posteriors(F).argmax(axis=1), t.midpoint_rule().codes(F))
    small = 0.01 * F  # no posterior is negative there
    np.testing.assert_allclose(t.posteriors(small), t.midpoint_rule().probabilities(small))
    np.testing.assert_allclose(t.midpoint_rule().probabilities(t.rows(codes)), np.eye(C)[codes], atol=1e-12)


def test_two_classes_have_the_papers_targets_and_threshold():
    _, codes, _ = classes(50, 2)
    t = fisher_targets(codes, 2, np.ones(50))
    np.testing.assert_allclose(t.rows(codes)[:, 0], kfd.targets(codes))
    n1, n2 = np.sum(codes == 1), np.sum(codes == 0)
    threshold = 50 / 2 * (1 / n1 - 1 / n2)
    np.testing.assert_allclose(t.posteriors(np.array([[threshold]])), [[0.5, 0.5]])


@pytest.mark.parametrize("C", [2, 3, 6])
def test_logistic_scores_are_stationary(C):
    """The gradient of -sum w log p / sum w + ridge |V|^2 / 2 is zero, for slopes of targets of unit scale."""
    _, codes, w = classes(200, C, seed=2)
    t = fisher_targets(codes, C, w)
    F = 0.3 * t.rows(codes) + np.random.default_rng(3).standard_normal((200, C - 1))
    found = fit_posterior(HeldOut(F, labelled(F, codes, w)), t)
    pull = (w / w.sum())[:, None] * (softmax(class_values(found.scores(F))) - np.eye(C)[codes])
    slopes = class_values(found.weights)
    np.testing.assert_allclose((F / t.scale).T @ pull + 1e-3 * slopes * t.scale, 0, atol=1e-8)
    np.testing.assert_allclose(pull.sum(axis=0), 0, atol=1e-8)
    assert C == 2 or abs(found.offset.sum()) < 1e-12


def test_reversed_scores_fall_back_to_the_midpoint_rule():
    _, codes, w = classes(80, 2)
    t = fisher_targets(codes, 2, w)
    noise = np.random.default_rng(0).standard_normal((80, 1))
    for sign in (1.0, -1.0):
        found = fit_posterior(HeldOut(sign * t.rows(codes) + noise, labelled(noise, codes, w)), t)
        assert (found is not None) == (sign > 0)
        found = found or t.midpoint_rule()
        # a larger discriminant never makes the second class less likely
        P = found.probabilities(np.linspace(-5, 5, 11)[:, None])[:, 1]
        assert np.all(np.diff(P) >= 0)
        assert P[-1] > P[0]


def test_a_direction_without_signal_is_not_used():
    """Three classes; held-out values separate the third from the others and reverse the first two."""
    _, codes, w = classes(300, 3)
    t = fisher_targets(codes, 3, w)
    noise = np.random.default_rng(0).standard_normal((300, 2))
    F = t.rows(codes) * [-0.05, 1.0] + 0.1 * noise
    found = fit_posterior(HeldOut(F, labelled(noise, codes, w)), t)
    ahead = np.array([[-1.0, 0.0], [1.0, 0.0]])
    scores = found.scores(ahead)
    # the first direction sets class 1 against class 0: the link must not turn it round
    assert scores[1, 1] - scores[1, 0] >= scores[0, 1] - scores[0, 0] - 1e-3
    assert np.mean(found.codes(t.rows(codes)) == 2) == pytest.approx(np.mean(codes == 2))
