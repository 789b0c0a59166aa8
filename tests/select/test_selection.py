from collections import Counter
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from fewkern import FeatureVectorSelector
from fewkern.core.kernel import Gram
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Linear, LinearSpline, Polynomial, Precomputed
from fewkern.select import rules
from fewkern.select.selection import approximate_center
from tests.oracles import fvs
from tests.oracles.fvs import choose

RULES = sorted(rules.RULES)
KERNELS = {
    "gaussian": Gaussian(length_scale=0.8),
    "polynomial": Polynomial(degree=3, gamma=1.0, coef0=1.0),
    "linear": Linear(),
    "spline": LinearSpline(origin=-10.0),
}


def make_gram(kernel, X, centred=False):
    gram = Gram(kernel, X)
    return Gram(kernel, X, approximate_center(gram)) if centred else gram


def whole(gram):
    return gram.columns(np.arange(gram.n))


def residual(gram, found):
    """Squared distance of every image to the span of the chosen ones."""
    return gram.diag - np.sum(found.G**2, axis=1)


@pytest.fixture
def X(rng):
    return rng.standard_normal((50, 3))


@pytest.fixture(params=["one by one", "in blocks"])
def gain_mode(request, monkeypatch):
    """Rule "gain" as for few samples, and as for many."""
    if request.param == "in blocks":
        monkeypatch.setattr("fewkern.select.rules.MEAN_ROWS", 30)


@pytest.mark.usefixtures("gain_mode")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_factor_residual_and_fitness_are_their_definitions(X, rng, kernel, rule, centred, weighted):
    X[[0, 7, 20]] = 0.0  # zero vectors of two kernels
    gram, weights = make_gram(kernel, X, centred), rng.integers(0, 3, 50).astype(float) if weighted else None
    found, K = choose(gram, limit=8, rule=rule, block=5, weights=weights), whole(gram)
    S, top = found.indices, np.max(np.diag(K))
    np.testing.assert_allclose(found.factor @ found.factor.T, K[np.ix_(S, S)], atol=1e-10 * top)
    np.testing.assert_allclose(found.G[S], found.factor, atol=1e-10 * np.sqrt(top))
    np.testing.assert_allclose(residual(gram, found), fvs.residuals(K, S), atol=1e-9 * top)
    expected = [fvs.global_fitness(K, S[: j + 1], weights) for j in range(len(S))]
    np.testing.assert_allclose(found.fitness, expected, atol=1e-9)
    assert np.all(np.diag(K)[S] > 0)
    assert not weighted or np.all(weights[S] > 0)
    assert (len(S), found.stop) == ((8, "limit") if kernel != KERNELS["linear"] else (3, "rank"))


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_greedy_order_is_that_of_the_papers_recursion(X, kernel, centred):
    gram = make_gram(kernel, X, centred)
    S, fitness = fvs.literal_selection(whole(gram), limit=50)
    found = choose(gram, limit=len(S), rule="greedy")
    assert found.indices.tolist() == S
    np.testing.assert_allclose(found.fitness, fitness, atol=1e-8)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("block", [1, 2, 7, 64, 1000])
def test_greedy_order_does_not_depend_on_the_block(rng, block, centred):
    X = rng.standard_normal((120, 2))
    one = choose(make_gram(Gaussian(length_scale=0.7), X, centred), limit=40, rule="greedy", block=1)
    other = choose(make_gram(Gaussian(length_scale=0.7), X, centred), limit=40, rule="greedy", block=block)
    assert other.indices.tolist() == one.indices.tolist()
    np.testing.assert_allclose(other.fitness, one.fitness, atol=1e-10)


def test_ties_go_to_the_lowest_index():
    """Isolated samples have residual exactly one, whatever the block."""
    X = 1000.0 * np.arange(30)[:, None]
    for block in (1, 4, 64):
        found = choose(Gram(Gaussian(length_scale=1.0), X), rule="greedy", block=block)
        assert found.indices.tolist() == list(range(30))


def test_first_vector_of_many_samples_is_the_best_of_a_draw(rng, monkeypatch):
    monkeypatch.setattr("fewkern.select.rules._FIRST_EXACT", 20)
    X = rng.standard_normal((200, 2))
    gram = Gram(Gaussian(length_scale=1.0), X)
    columns, asked = gram.columns, []
    monkeypatch.setattr(gram, "columns", lambda S, *rows: asked.append(len(S)) or columns(S, *rows))
    best = choose(gram, limit=1, rule="greedy").indices[0]
    assert sum(asked) <= 61
    fitness = np.mean(whole(gram) ** 2, axis=0)
    assert np.mean(fitness > fitness[best]) < 0.05


@pytest.mark.usefixtures("gain_mode")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("block", [1, 64])
def test_stop_at_the_first_fitness_that_is_high_enough(X, rule, block):
    gram = Gram(Gaussian(length_scale=1.2), X)
    found = choose(gram, rule=rule, max_fitness=0.8, block=block)
    assert found.stop == "fitness"
    assert found.fitness[-1] >= 0.8 > found.fitness[-2]
    np.testing.assert_allclose(residual(gram, found), fvs.residuals(whole(gram), found.indices), atol=1e-10)


@pytest.mark.usefixtures("gain_mode")
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("features", "degree"), [(1, 3), (2, 2), (3, 3)])
def test_stop_at_the_true_rank(rng, rule, centred, features, degree):
    """(x'y + 1)^p spans C(n + p, p) dimensions, one less when centred."""
    X = rng.standard_normal((60, features))
    kernel = Polynomial(degree=degree, gamma=1.0, coef0=1.0)
    found = choose(make_gram(kernel, X, centred), rule=rule, block=7)
    assert found.stop == "rank"
    assert len(found.indices) == comb(features + degree, degree) - centred
    assert found.fitness[-1] == pytest.approx(1.0, abs=1e-9)


def test_more_vectors_than_were_reserved(rng):
    X = 100 * rng.standard_normal((300, 2))
    found = choose(Gram(Gaussian(length_scale=0.01), X))
    np.testing.assert_allclose(found.G @ found.G.T, np.eye(300), atol=1e-12)


@pytest.mark.usefixtures("gain_mode")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [0.7, 3.0])
def test_copies_of_a_chosen_sample_or_of_the_centre_are_never_chosen(rng, rule, dtype, width):
    distinct = rng.uniform(0, 20, (25, 2)).astype(dtype)
    X = np.concatenate([distinct, distinct, distinct[::-1]])
    for centred in (False, True):
        gram = make_gram(Gaussian(length_scale=width), X, centred)
        found = choose(gram, rule=rule)
        assert found.G.dtype == found.fitness.dtype == dtype
        own = [tuple(row) for row in X[found.indices]]
        assert len(set(own)) == len(own)
        assert not centred or tuple(X[int(gram.center.indices[0])]) not in own


@pytest.mark.usefixtures("gain_mode")
@pytest.mark.parametrize("rule", RULES)
def test_warm_continuation_keeps_what_it_started_from(X, rule):
    gram = Gram(Gaussian(length_scale=0.8), X)
    start = choose(gram, limit=7, rule=rule)
    again = choose(gram, limit=15, rule=rule, start=start)
    assert again.indices[:7].tolist() == start.indices.tolist()
    assert len(set(again.indices.tolist())) == 15
    np.testing.assert_allclose(residual(gram, again), fvs.residuals(whole(gram), again.indices), atol=1e-10)
    if rule == "greedy":
        assert again.indices.tolist() == choose(gram, limit=15, rule=rule).indices.tolist()
    after_rank = choose(gram, rule=rule, start=choose(gram, rule=rule))
    assert after_rank.stop == "rank"


def pairs_of_draws(K, weights=None):
    """Probability of every ordered pair of vectors under rule "random", by its definition."""
    n, d = len(K), np.diag(K)
    w = np.ones(n) if weights is None else weights
    law = {}
    for i in range(n):
        first = w[i] / w.sum()
        r = np.array([d[j] - K[i, j] ** 2 / d[i] for j in range(n)])
        r[i] = 0.0
        share = w * r / d
        for j in range(n):
            if share[j] > 0:
                law[i, j] = first * share[j] / share.sum()
    return law


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.5, 1.0])])
@pytest.mark.parametrize("block", [1, 3, 8])
def test_random_rule_in_blocks_has_the_law_of_one_draw_at_a_time(block, weights):
    X = np.array([[0.0, 1.0], [0.1, 1.2], [1.5, 0.3], [0.8, 0.8]])
    gram = Gram(Polynomial(degree=2, gamma=1.0, coef0=1.0), X)
    law = pairs_of_draws(whole(gram), weights)
    draws = 1000
    seen = Counter(
        tuple(choose(gram, 2, block, weights, seed=seed, rule="random").indices.tolist()) for seed in range(draws)
    )
    assert set(seen) <= set(law)
    statistic = sum((seen[pair] - draws * p) ** 2 / (draws * p) for pair, p in law.items())
    assert statistic < chi2.ppf(0.999, len(law) - 1)


def test_uniform_rule_has_the_law_it_says():
    gram = Gram(Gaussian(length_scale=0.01), np.arange(5.0)[:, None])
    seen = Counter(tuple(choose(gram, 2, seed=seed, rule="uniform").indices.tolist()) for seed in range(1000))
    statistic = sum((seen[i, j] - 50) ** 2 / 50 for i in range(5) for j in range(5) if i != j)
    assert statistic < chi2.ppf(0.999, 19)


@pytest.mark.parametrize("mean_rows", [2000, 49])
def test_gain_takes_the_best_of_all_when_all_are_candidates(X, mean_rows, monkeypatch):
    monkeypatch.setattr(rules, "MEAN_ROWS", mean_rows)
    monkeypatch.setattr(rules, "_GAIN_DRAWS", 1000)
    gram, best = Gram(Gaussian(length_scale=0.8), X), []
    K = whole(gram)
    for _ in range(4):
        scores = [-1 if i in best else fvs.global_fitness(K, [*best, i]) for i in range(50)]
        best.append(int(np.argmax(scores)))
    found = choose(gram, limit=4, rule="gain", block=4)
    if mean_rows == 2000:
        assert found.indices.tolist() == best
    # in a sum over 49 of the 50 rows, another sample may gain as much
    assert found.fitness[-1] > 0.98 * fvs.global_fitness(K, best)


@pytest.mark.parametrize("rule", RULES)
def test_a_matrix_that_is_no_kernel_is_refused(rng, rule):
    K = rng.standard_normal((20, 20))
    one = np.eye(20)
    one[0, 0] = -0.1
    indefinite = K + K.T
    np.fill_diagonal(indefinite, 1.0)
    bad = np.ones((20, 20))
    bad[3, 5] = bad[5, 3] = np.nan
    for K, message in (
        (one, r"not positive semi-definite \(a negative k\(x, x\)\)"),
        (indefinite, r"not positive semi-definite \(a residual fell to -"),
        (np.diag([np.inf, *np.ones(19)]), "values that are not finite"),
        (bad, "values that are not finite"),
        (np.zeros((20, 20)), "every sample is a zero vector"),
    ):
        with pytest.raises(ValueError, match=message):
            choose(Gram(Precomputed(), K), rule=rule)


@pytest.mark.parametrize(("dtype", "gap"), [(np.float64, 1e-4), (np.float32, 1e-2)])
@pytest.mark.parametrize("rule", RULES)
def test_rounding_is_not_taken_for_an_indefinite_kernel(rule, dtype, gap):
    """Nearly equal rows give small pivots, by which later rounding errors are divided."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 2))
        X = np.concatenate([A, A + gap * rng.standard_normal(A.shape)]).astype(dtype)
        for kernel in (Gaussian(length_scale=1.0), Polynomial(3, 1.0, 1.0)):
            assert choose(Gram(kernel, X), seed=seed, rule=rule).stop == "rank"


# The estimator


@pytest.fixture
def banana():
    return make_banana(100)[0]


@pytest.mark.parametrize("center", [False, True, 3])
@pytest.mark.parametrize("projection", ["nested", "symmetric", "raw"])
def test_the_features_of_the_fit_are_those_of_transform(banana, projection, center):
    model = FeatureVectorSelector(
        kernel=Gaussian(length_scale=1.0), max_vectors=100, projection=projection, center=center
    )
    Z = model.fit_transform(banana)
    assert Z.shape == (100, model.n_vectors_)
    np.testing.assert_allclose(Z, model.transform(banana), atol=1e-4)


def test_greedy_is_centred_by_default_and_gain_is_not(banana):
    X = banana
    K = Gaussian(length_scale=1.0)(X, X)
    paper = FeatureVectorSelector(kernel=Gaussian(length_scale=1.0), rule="greedy", max_vectors=10).fit(X)
    c = fvs.centre_index(K)
    assert paper.basis_.center_indices.tolist() == [c]
    assert paper.indices_.tolist() == fvs.literal_selection(fvs.centred(K, c), 10)[0]
    assert FeatureVectorSelector().fit(X).basis_.center_vectors is None
