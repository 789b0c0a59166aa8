"""The recursion of RSVM against libsvm on the Gram matrix, its stops, blocks and forms."""

import numpy as np
import pytest

from fewkern.margins.embedding import Reflected
from fewkern.margins.hinge import minimize_hinge
from fewkern.margins.recursion import class_problems, recursive_margin, tube_problem
from tests.oracles.margins import align, centred_features, gaussian_gram, recursive_svm_on_gram, svr_value


def two_classes(seed=0, n=60, d=4):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, d))
    X[:, 0] += y
    return X - X.mean(axis=0), y


def recurse(Z, y, C=1.0, weights=1.0, **settings):
    box = np.broadcast_to(C * weights, len(y)).astype(float)
    return recursive_margin(Reflected.start(Z), class_problems((y > 0).astype(int), 2, box), **settings)


def test_equals_libsvm_on_the_gram_matrix():
    X, y = two_classes(d=3)
    K = gaussian_gram(X, 4.0)
    Z = centred_features(K)
    ours = recurse(Z, y, 2.0, n_components=3)
    values, features = recursive_svm_on_gram(K, y, np.full(len(y), 2.0), 3)
    np.testing.assert_allclose([b.objectives[0] for b in ours.steps], values, rtol=1e-6)
    np.testing.assert_allclose(align(features, ours.features), features, atol=1e-4)


def test_the_flat_stop_needs_no_iteration():
    """All of the smaller class has reached its bound: the next value is the cap, and nothing is solved to see it."""
    X, y = two_classes(d=3)
    r = recurse(centred_features(gaussian_gram(X, 4.0)), y)
    assert r.stop == "flat"
    assert r.n_iter == sum(sum(step.iterations) for step in r.steps)
    assert r.steps[-1].objectives[0] <= r.caps[0]


def test_flat_stop_when_a_mean_lies_in_the_other_hull():
    rng = np.random.default_rng(1)
    inner, outer = rng.normal(size=(10, 3)) * 0.1, rng.normal(size=(60, 3))
    Z = np.vstack([inner, outer])
    y = np.r_[np.ones(10), -np.ones(60)]
    r = recurse(Z - Z.mean(axis=0), y)
    assert r.stop == "flat"
    assert r.directions.shape[1] < 3
    # balanced weights: only coinciding means are flat, so there are more directions
    weights = np.where(y > 0, 3.5, 35 / 60)
    assert recurse(Z - Z.mean(axis=0), y, weights=weights).directions.shape[1] > r.directions.shape[1]


def test_stops_by_rank_limit_and_length():
    X, y = two_classes(d=2)
    weights = np.where(y > 0, 2.0, 1.0)
    assert recurse(X, y, weights=weights, n_components=1).stop == "limit"
    line = np.outer(np.linspace(-1, 1, 20) + np.repeat([0, 1.0], 10), [1.0, 2.0])
    line -= line.mean(axis=0)
    gone = recurse(line, np.repeat([-1.0, 1.0], 10))
    assert (gone.stop, gone.directions.shape[1]) == ("faded", 1)
    one = recurse(line[:, :1], np.repeat([-1.0, 1.0], 10))
    assert (one.stop, one.directions.shape[1]) == ("rank", 1)


def test_precision_stop_when_the_box_is_too_large_for_a_second_step():
    X, y = two_classes(n=80, d=6)
    Z = centred_features(gaussian_gram(X, 1.0))
    r = recurse(Z, y, 1e12)
    assert r.stop == "precision"
    assert r.directions.shape[1] >= 1


def test_the_leading_direction_of_a_block_comes_first():
    codes = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 4)) + 2 * np.eye(4)[codes]
    space = Reflected.start(X - X.mean(axis=0))
    problems = class_problems(codes, 3, np.ones(60))[:2]
    normals = np.stack([minimize_hinge(problem.on(space)).w for problem in problems], axis=1)
    want = np.linalg.svd(normals / np.linalg.norm(normals, axis=0), full_matrices=False)[0]
    found = recursive_margin(space, problems, n_components=2)
    np.testing.assert_allclose(align(want, found.directions), want, atol=1e-6)
    np.testing.assert_allclose(space.A.T @ found.dual, found.directions, atol=1e-8)


def test_regression():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 4))
    Z -= Z.mean(axis=0)
    y = np.sin(2 * Z[:, 0]) + 0.5 * Z[:, 1] ** 2
    r = recursive_margin(Reflected.start(Z), [tube_problem(y, np.full(60, 1.5), 0.1)])
    assert r.steps[0].objectives[0] == pytest.approx(svr_value(Z @ Z.T, y, 1.5, 0.1), rel=1e-6)
    assert r.caps[0] == pytest.approx(
        min(1.5 * np.maximum(np.abs(y - b) - 0.1, 0).sum() for b in np.r_[y - 0.1, y + 0.1])
    )
    P = [b.objectives[0] for b in r.steps]
    w = [b.squared_norms[0] for b in r.steps]
    assert len(P) > 1
    assert all(P[t + 1] >= P[t] + w[t] / 2 - 1e-6 * r.caps[0] for t in range(len(P) - 1))
    np.testing.assert_allclose(Z.T @ r.dual, r.directions, atol=1e-5)
