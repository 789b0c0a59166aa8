"""Properties of feature vector selection and its linear stages (methods F10)."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import KernelPCA

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor
from fewkern.core.expansion import KernelBasis
from fewkern.core.kernel import Gram
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian, Polynomial, Precomputed
from fewkern.select.axes import Spread, discriminant_axes, principal_axes
from fewkern.select.leave_one_out import loo_paths, solve
from fewkern.select.rules import RULES
from fewkern.select.selection import SelectionRule, select_vectors
from tests.oracles import fvs

seeds = st.integers(0, 2**31 - 1)
rules = st.sampled_from(sorted(RULES))
blocks = st.integers(1, 20)
widths = st.floats(0.2, 3.0)


def samples(seed, n=40, d=2):
    return np.random.default_rng(seed).standard_normal((n, d))


def select(kernel, X, seed=0, limit=15, **settings):
    return fvs.choose(Gram(kernel, X), limit, seed=seed, **settings)


@given(seeds, rules, blocks, widths)
def test_fitness_grows_and_stays_between_zero_and_one(seed, rule, block, width):
    X = samples(seed)
    found = select(Gaussian(length_scale=width), X, seed, rule=rule, block=block)
    assert np.all(np.diff(found.fitness) >= 0)
    assert 0 < found.fitness[0] <= found.fitness[-1] <= 1
    assert len(set(found.indices.tolist())) == len(found.indices)
    np.testing.assert_allclose(np.mean(np.sum(found.G**2, axis=1)), found.fitness[-1], atol=1e-10)


@given(seeds, rules, blocks)
def test_scaling_the_images_changes_nothing(seed, rule, block):
    """k_ij -> a_i a_j k_ij leaves angles, so choices and fitness, as they are."""
    X = samples(seed)
    K = Gaussian(length_scale=1.0)(X, X)
    K = (K + K.T) / 2
    a = np.exp(np.random.default_rng(seed).uniform(-2, 2, len(X)))
    plain = select(Precomputed(), K, seed, rule=rule, block=block)
    scaled = select(Precomputed(), a[:, None] * a[None, :] * K, seed, rule=rule, block=block)
    assert plain.indices.tolist() == scaled.indices.tolist()
    np.testing.assert_allclose(plain.fitness, scaled.fitness, atol=1e-9)


@given(seeds, rules, blocks)
def test_rotation_and_translation_change_nothing_for_a_gaussian(seed, rule, block):
    rng = np.random.default_rng(seed)
    X = samples(seed, d=3)
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    moved = X @ Q + rng.uniform(-5, 5, 3)
    one, two = (select(Gaussian(length_scale=1.0), A, seed, rule=rule, block=block) for A in (X, moved))
    assert one.indices.tolist() == two.indices.tolist()
    np.testing.assert_allclose(one.fitness, two.fitness, atol=1e-9)


@given(seeds, blocks)
def test_order_of_greedy_follows_the_samples(seed, block):
    X = samples(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    one = select(Gaussian(length_scale=1.0), X, rule="greedy", block=block)
    two = select(Gaussian(length_scale=1.0), X[order], rule="greedy", block=block)
    assert order[two.indices].tolist() == one.indices.tolist()


@given(seeds, st.booleans())
def test_projections_agree_without_a_ridge(seed, centred):
    """Regression and discriminant analysis are the same in (9), (10) and (10')."""
    rng = np.random.default_rng(seed)
    X = samples(seed)
    Y = rng.standard_normal((40, 2))
    codes = np.arange(40) % 3
    gram = Gram(Gaussian(length_scale=0.8), X)
    found = select_vectors(gram, SelectionRule(), 6)
    make = partial(KernelBasis.from_selection, gram, found.indices, found.factor)
    features = [make(projection=p).features(X) for p in ("nested", "symmetric", "raw")]
    fits = [Z @ s.W + s.offset for Z in features for s in [solve(Z, Y, 0.0)]]
    errors = [loo_paths(Z, Y, (0.0,))[0].error[-1] for Z in features]
    axes = [discriminant_axes(Spread.of(Z, Samples.of(Z, codes=codes, n_classes=3))) for Z in features]
    for other in (1, 2):
        np.testing.assert_allclose(fits[other], fits[0], atol=1e-7)
        np.testing.assert_allclose(errors[other], errors[0], rtol=1e-7)
        np.testing.assert_allclose(axes[other].values, axes[0].values, atol=1e-8)
        scores = [np.abs((features[k] - axes[k].mean) @ axes[k].W) for k in (0, other)]
        np.testing.assert_allclose(scores[1], scores[0], atol=1e-4)


@given(seeds, st.sampled_from([1e-3, 1e-1, 1.0]), st.booleans())
def test_all_vectors_give_kernel_ridge_regression(seed, ridge, weighted):
    rng = np.random.default_rng(seed)
    X, new = samples(seed, 25), samples(seed + 1, 10)
    Y = rng.standard_normal((25, 2))
    w = rng.random(25) + 0.2 if weighted else None
    kernel = Gaussian(length_scale=0.4)
    model = FeatureVectorRegressor(kernel=kernel, n_vectors=25, alpha=ridge)
    predicted = model.fit(X, Y, sample_weight=w).predict(new)
    expected = fvs.kernel_ridge(kernel(X, X), Y, ridge, kernel(new, X), w)
    np.testing.assert_allclose(predicted, expected, atol=1e-6)


@given(seeds, st.sampled_from([0.0, 0.1]), st.integers(2, 3))
def test_all_vectors_give_generalised_discriminant_analysis(seed, ridge, classes):
    X = samples(seed, 60)
    codes = np.random.default_rng(seed).permutation(np.arange(60) % classes)
    kernel = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    model = FeatureVectorDiscriminant(kernel=kernel, alpha=ridge, n_vectors=60).fit(X, codes)
    inertia, T = fvs.generalised_discriminant(kernel(X, X), codes, ridge)
    np.testing.assert_allclose(model.eigenvalues_, inertia, atol=1e-8)
    if classes == 2 or inertia[0] - inertia[1] > 1e-2:
        np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(T), atol=1e-4)


@given(seeds, rules)
def test_eigenvalues_grow_with_the_vectors_up_to_those_of_kernel_pca(seed, rule):
    X = samples(seed)
    found = select(Gaussian(length_scale=1.0), X, seed, limit=20, rule=rule)
    limit = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X).eigenvalues_
    before = np.zeros(3)
    for L in (4, 8, 12, 20):
        values = principal_axes(Spread.of(found.G[:, :L], Samples.of(X)), 3).values
        assert np.all(values >= before - 1e-9)
        assert np.all(values <= limit + 1e-9)
        before = values
