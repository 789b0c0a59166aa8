"""Targets, posteriors and cross-validation of the kernel Fisher classifiers."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from fewkern.backend.folds import stratified_folds
from fewkern.fisher.lq import lq_fit
from fewkern.fisher.targets import (
    CrossValidation,
    LinearModel,
    cross_validate,
    fisher_link,
    fisher_targets,
    gaussian_scores,
    least_squares_scores,
    logistic_scores,
)
from fewkern.kernels import Gaussian
from tests.oracles import kfd


def classes(n, C, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(C), rng.choice(C, n - C, p=np.arange(1, C + 1) / np.arange(1, C + 1).sum())]
    centres = 2 * rng.standard_normal((C, 3))
    return centres[codes] + rng.standard_normal((n, 3)), codes, rng.uniform(0.5, 2, n)


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


def test_least_squares_posterior_is_a_half_at_the_papers_threshold():
    _, codes, _ = classes(50, 2)
    t = fisher_targets(codes, 2, np.ones(50))
    n1, n2 = np.sum(codes == 1), np.sum(codes == 0)
    M, c = least_squares_scores(t)
    threshold = 50 / 2 * (1 / n1 - 1 / n2)
    np.testing.assert_allclose(np.array([[threshold]]) @ M + c, [[0.5, 0.5]])


def test_least_squares_posteriors_sum_to_one():
    X, codes, w = classes(60, 4)
    t = fisher_targets(codes, 4, w)
    M, c = least_squares_scores(t)
    np.testing.assert_allclose((X @ M + c).sum(axis=1), 1.0)


@pytest.mark.parametrize("C", [2, 3])
def test_rotated_targets_give_the_same_machine(C):
    X, codes, _ = classes(60, C)
    K = Gaussian(width=2.0)(X, X)
    t = fisher_targets(codes, C, np.ones(60))
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((C - 1, C - 1)))[0]
    # several targets at q = 1 are solved to a duality gap of 1e-5, all else to rounding
    for q, atol in ((1.0, 1e-4), (0.5, 1e-8)):
        a, b = (lq_fit(K, t.rows(codes) @ R, penalty=0.01, q=q) for R in (np.eye(C - 1), Q))
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_allclose(a.coef @ Q, b.coef, rtol=1e-6, atol=atol)


def test_gaussian_scores_are_lda_when_classes_are_balanced():
    X, _, _ = classes(90, 3)
    codes = np.arange(90) % 3
    X = X + codes[:, None]
    t = fisher_targets(codes, 3, np.ones(90))
    M, c = gaussian_scores(X, codes, t, np.ones(90))
    scores = X @ M + c
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, codes)
    np.testing.assert_allclose(P, lda.predict_proba(X), atol=1e-4)


def test_logistic_scores_maximise_the_likelihood():
    X, codes, w = classes(200, 3, seed=2)
    X = X + 4 * np.random.default_rng(3).standard_normal(X.shape)
    t = fisher_targets(codes, 3, w)
    M, c = logistic_scores(X, codes, t, w, ridge=1e-9)
    ours = X @ M + c
    sk = LogisticRegression(C=1e8, tol=1e-10, max_iter=10_000).fit(X, codes, w)
    theirs = X @ sk.coef_.T + sk.intercept_
    np.testing.assert_allclose(ours - ours[:, :1], theirs - theirs[:, :1], atol=0.02)


@pytest.mark.parametrize("rule", ["least_squares", "gaussian", "logistic"])
@pytest.mark.parametrize("C", [2, 3])
def test_probabilities_agree_with_scores_and_follow_the_priors(rule, C):
    X, codes, w = classes(80, C)
    t = fisher_targets(codes, C, w)
    F = (X @ np.ones((3, C - 1)) * np.arange(1, C)) / 3
    plain = fisher_link(rule, F, codes, t, w)
    new = np.full(C, 0.4 / (C - 1))
    new[1] = 0.6
    moved = fisher_link(rule, F, codes, t, w, priors=new)
    P, Q = (link.probabilities(F @ link.weights + link.offset) for link in (plain, moved))
    for link, values in ((plain, P), (moved, Q)):
        scores = F @ link.weights + link.offset
        best = (scores[:, 0] > 0).astype(int) if C == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(values.argmax(axis=1), best)
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
        assert values.min() >= 0
    expected = P * new / t.priors
    np.testing.assert_allclose(Q, expected / expected.sum(axis=1, keepdims=True), atol=1e-7)


def test_cross_validation_errors_are_those_of_refits():
    X, codes, w = classes(60, 2)
    K = Gaussian(width=1.5)(X, X)
    penalties = (0.1, 0.01)
    folds = stratified_folds(codes, 4)

    def path(Kt, Y, wt):
        fits = (lq_fit(Kt, Y, penalty=p, q=1, weights=wt) for p in penalties)
        return (LinearModel(f.support, f.coef, f.offset) for f in fits)

    found = cross_validate([lambda: K], codes, 2, w, folds, path, np.arange(60))
    for j, penalty in enumerate(penalties):
        wrong = 0.0
        for train, test in folds:
            train, test = np.array(train), np.array(test)
            t = fisher_targets(codes[train], 2, w[train])
            fit = lq_fit(K[np.ix_(train, train)], t.rows(codes[train]), penalty=penalty, q=1, weights=w[train])
            F = K[np.ix_(test, train)][:, fit.support] @ fit.coef + fit.offset
            M, c = least_squares_scores(t)
            wrong += w[test][(F @ M + c).argmax(axis=1) != codes[test]].sum() / w.sum()
        assert found.errors[0][j] == pytest.approx(wrong)


def test_hopeless_end_of_a_path_is_left():
    X, codes, w = classes(60, 2)
    K = Gaussian(width=1.5)(X, X)
    asked = []

    def path(Kt, Y, wt):
        for k in range(1, 10):
            asked.append(k)
            sign = 1.0 if k == 1 else -1.0
            fit = lq_fit(Kt, Y, penalty=0.01, q=1)
            support = np.arange(k) if k < fit.support.shape[0] else fit.support
            coef = sign * fit.coef
            yield (
                LinearModel(fit.support, coef, fit.offset)
                if k == 1
                else LinearModel(
                    np.r_[fit.support, support], np.vstack([coef, np.zeros((len(support), 1))]), fit.offset
                )
            )

    found = cross_validate([lambda: K], codes, 2, w, stratified_folds(codes, 3), path, np.arange(60))
    assert len(found.errors[0]) == 3
    assert max(asked) == 3


def test_choice_prefers_accuracy_or_few_vectors():
    cv = CrossValidation(errors=((0.30, 0.11, 0.10), (0.25, 0.10)), sizes=((2.0, 5.0, 20.0), (3.0, 12.0)), n=100)
    assert cv.best("accurate") == (1, 1)
    assert cv.best("sparse") == (0, 1)
    # two errors of about .1 on 100 samples differ by .042 from chance alone
    edge = CrossValidation(errors=((0.155, 0.14, 0.10),), sizes=((1.0, 2.0, 20.0),), n=100)
    assert edge.best("sparse") == (0, 1)
