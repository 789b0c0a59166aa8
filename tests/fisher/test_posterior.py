"""From the discriminant to probabilities."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from fewkern.fisher.posterior import fit_posterior, gaussian_scores, least_squares_scores, logistic_scores
from fewkern.fisher.targets import fisher_targets
from tests.fisher.helpers import classes, labelled


def test_least_squares_posterior_is_a_half_at_the_papers_threshold():
    _, codes, _ = classes(50, 2)
    t = fisher_targets(codes, 2, np.ones(50))
    n1, n2 = np.sum(codes == 1), np.sum(codes == 0)
    scores = least_squares_scores(t)
    threshold = 50 / 2 * (1 / n1 - 1 / n2)
    np.testing.assert_allclose(scores(np.array([[threshold]])), [[0.5, 0.5]])


def test_least_squares_posteriors_sum_to_one():
    X, codes, w = classes(60, 4)
    t = fisher_targets(codes, 4, w)
    np.testing.assert_allclose(least_squares_scores(t)(X).sum(axis=1), 1.0)


def test_gaussian_scores_are_lda_when_classes_are_balanced():
    X, _, _ = classes(90, 3)
    codes = np.arange(90) % 3
    X = X + codes[:, None]
    t = fisher_targets(codes, 3, np.ones(90))
    scores = gaussian_scores(X, codes, t, np.ones(90))(X)
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, codes)
    np.testing.assert_allclose(P, lda.predict_proba(X), atol=1e-4)


def test_logistic_scores_maximise_the_likelihood():
    X, codes, w = classes(200, 3, seed=2)
    X = X + 4 * np.random.default_rng(3).standard_normal(X.shape)
    t = fisher_targets(codes, 3, w)
    ours = logistic_scores(X, codes, t, w, ridge=1e-9)(X)
    sk = LogisticRegression(C=1e8, tol=1e-10, max_iter=10_000).fit(X, codes, w)
    theirs = X @ sk.coef_.T + sk.intercept_
    np.testing.assert_allclose(ours - ours[:, :1], theirs - theirs[:, :1], atol=0.02)


@pytest.mark.parametrize("rule", ["least_squares", "gaussian", "logistic"])
@pytest.mark.parametrize("C", [2, 3])
def test_probabilities_agree_with_scores_and_follow_the_priors(rule, C):
    X, codes, w = classes(80, C)
    t = fisher_targets(codes, C, w)
    F = (X @ np.ones((3, C - 1)) * np.arange(1, C)) / 3
    samples = labelled(X, codes, w)
    plain = fit_posterior(rule, F, samples, t)
    new = np.full(C, 0.4 / (C - 1))
    new[1] = 0.6
    moved = fit_posterior(rule, F, samples, t, new)
    P, Q = plain.probabilities(F), moved.probabilities(F)
    for scores, values in ((plain, P), (moved, Q)):
        np.testing.assert_array_equal(values.argmax(axis=1), scores.codes(F))
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
        assert values.min() >= 0
    expected = P * new / t.priors
    np.testing.assert_allclose(Q, expected / expected.sum(axis=1, keepdims=True), atol=1e-7)
