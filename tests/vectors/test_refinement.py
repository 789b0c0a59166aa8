"""Laws of refined vectors (specs: gradients, descent, invariances, weights, array libraries, row blocks)."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.kernels import Function, Gaussian, Laplacian, Linear, LinearSpline, Polynomial, Precomputed
from fewkern.vectors import refinement
from fewkern.vectors.objective import JITTER, Objective, Placement, evaluate, expand, refine_problem
from fewkern.vectors.refinement import free_widths, narrowed, refine

KERNELS = {
    "gaussian": Gaussian(1.3),
    "gaussian-widths": Gaussian(np.array([1.0, 2.0, 0.7])),
    "polynomial": Polynomial(degree=3, gamma=0.3, coef0=1.0),
    "polynomial-1": Polynomial(degree=1, gamma=0.5, coef0=0.2),
    "linear": Linear(),
}
OBJECTIVES = ["leave-one-out", "least squares"]


@pytest.fixture
def data(rng):
    """Forty samples, three features, two outputs with some structure, uneven weights."""
    X = rng.normal(size=(40, 3))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2], axis=1) + 0.1 * rng.normal(size=(40, 2))
    return X, Y, rng.uniform(0.2, 2.0, 40)


def start(X, kernel, m=5):
    # in a feature space of few dimensions more vectors would only meet the jitter
    few = isinstance(kernel, Linear) or getattr(kernel, "degree", 3) == 1
    m = min(m, 2) if few else m
    return Placement(X[:m] + 0.1, kernel, 0.3)


def values(model, X):
    return model.kernel(X, model.vectors) @ model.coef + model.offset


@pytest.mark.parametrize("tau", [0.0, 0.5])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_equals_finite_differences(data, name, objective, tau):
    X, Y, w = data
    at = start(X, KERNELS[name])
    problem = refine_problem(X, Y, w, objective=objective, tau=tau)
    found = evaluate(problem, at)
    h = 1e-5

    def slope(move):
        return (evaluate(problem, move(h)).value - evaluate(problem, move(-h)).value) / (2 * h)

    def along(i, j):
        unit = np.zeros_like(at.vectors)
        unit[i, j] = 1.0
        return lambda t: replace(at, vectors=at.vectors + t * unit)

    dV = [[slope(along(i, j)) for j in range(3)] for i in range(len(at.vectors))]
    np.testing.assert_allclose(found.vectors, dV, atol=2e-8)
    scales = np.eye(at.kernel.n_scales)
    ds = [slope(lambda t, s=s: replace(at, kernel=at.kernel.rescaled(t * s))) for s in scales]
    np.testing.assert_allclose(found.scales, ds, atol=2e-8)
    np.testing.assert_allclose(found.log_ridge, slope(lambda t: replace(at, ridge=at.ridge * np.exp(t))), atol=2e-8)


def test_a_sample_that_decides_its_own_value_is_held(rng):
    """Far from all others, with a vector of its own: without it nothing is known, and its leverage has no gradient."""
    X = np.vstack([rng.normal(size=(20, 2)), [[100.0, 100.0]]])
    Y = np.append(X[:20, 0] ** 2, 1e3)[:, None]
    problem = refine_problem(X, Y)
    at = Placement(X[[0, 1, 20]], Gaussian(1.0), 1e-5)
    h = 1e-4
    up, down = (evaluate(problem, replace(at, ridge=at.ridge * np.exp(t))).value for t in (h, -h))
    found = evaluate(problem, at)
    assert found.value < 1.0  # not the square of a thousand, over nothing
    np.testing.assert_allclose(found.log_ridge, (up - down) / (2 * h), rtol=1e-4)


def test_leave_one_out_is_what_fitting_without_each_sample_gives(data):
    X, Y, w = data
    at = start(X, Gaussian(1.3))
    problem = refine_problem(X, Y, w)
    errors = []
    for i in range(len(X)):
        kept = np.arange(len(X)) != i
        # the weights of the others stay as they are: scaled to the sum that they have in the whole
        scale = problem.weights[kept].sum() / kept.sum()
        rest = refine_problem(X[kept], Y[kept], w[kept])
        model = expand(rest, replace(at, ridge=at.ridge / scale))
        errors.append(np.sum((model(X[i : i + 1]) - Y[i]) ** 2))
    expected = np.mean(problem.weights * errors) / problem.variance
    # the jitter counts a little differently with other weights
    assert evaluate(problem, at).value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_objective_never_rises(data, name, objective):
    X, Y, w = data
    problem = refine_problem(X, Y, w, objective=objective)
    at = start(X, KERNELS[name])
    begun = evaluate(problem, at).value
    values = [begun]
    for _ in range(4):
        found = refine(problem, at, max_iter=3)
        assert found.start_objective == pytest.approx(values[-1], rel=1e-9)
        values.append(found.objective)
        at = found.placement
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(values))
    assert values[-1] < begun


def test_a_large_tau_keeps_the_span(rng):
    # samples on three points: three vectors explain everything, and nothing else does
    points = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    X = np.repeat(points, 20, axis=0)
    Y = rng.normal(size=(60, 1))
    at = Placement(points + 0.3, Gaussian(np.array([1.0, 1.0])), 0.1)
    free = refine(refine_problem(X, Y), at)
    held = refine(refine_problem(X, Y, tau=1e6), at)
    assert np.abs(held.vectors - points).max() < 1e-2 < np.abs(free.vectors - points).max()


def test_order_of_samples_and_features_does_not_matter(data, rng):
    X, Y, w = data
    kernel = free_widths(Gaussian(1.3), X)
    base = refine(refine_problem(X, Y, w), start(X, kernel), max_iter=10)
    rows = rng.permutation(len(X))
    mixed = refine(refine_problem(X[rows], Y[rows], w[rows]), start(X, kernel), max_iter=10)
    np.testing.assert_allclose(mixed.vectors, base.vectors, atol=1e-7)
    columns = np.array([2, 0, 1])
    turned = start(X, kernel)
    turned = replace(turned, vectors=turned.vectors[:, columns])
    mixed = refine(refine_problem(X[:, columns], Y, w), turned, max_iter=10)
    np.testing.assert_allclose(mixed.vectors, base.vectors[:, columns], atol=1e-7)
    np.testing.assert_allclose(mixed.kernel.width, base.kernel.width[columns], rtol=1e-7)


def test_scaling_and_shifting_a_feature_scales_its_width(data):
    X, Y, w = data
    factor, shift = np.array([1e5, 1.0, 1e-3]), np.array([7e5, 0.0, -3e-2])
    at = start(X, Gaussian(np.full(3, 1.3)))
    base = refine(refine_problem(X, Y, w), at, max_iter=10)
    moved = Placement(at.vectors * factor + shift, Gaussian(1.3 * factor), at.ridge)
    other = refine(refine_problem(X * factor + shift, Y, w), moved, max_iter=10)
    np.testing.assert_allclose(other.kernel.width, base.kernel.width * factor, rtol=1e-6)
    np.testing.assert_allclose((other.vectors - shift) / factor, base.vectors, atol=1e-6)
    np.testing.assert_allclose(values(other, X * factor + shift), values(base, X), atol=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weights_equal_repetition(data, objective):
    X, Y, _ = data
    # leaving one copy out is not leaving the sample out, so with leave-one-out only zero and one compare
    times = np.minimum(np.arange(40) % 3, 1 if objective == "leave-one-out" else 2)
    at = start(X, free_widths(Gaussian(1.3), X))
    rows = np.repeat(np.arange(40), times)
    # the weights sum to the number of rows, and the ridge is beside them
    scale = len(rows) / len(X)
    weighted = refine_problem(X, Y, times.astype(float), objective=objective, tau=0.3)
    repeated = refine_problem(X[rows], Y[rows], objective=objective, tau=0.3)
    a = evaluate(weighted, at)
    b = evaluate(repeated, replace(at, ridge=at.ridge * scale))
    assert a.value == pytest.approx(b.value, rel=1e-9)
    np.testing.assert_allclose(a.coef, b.coef, rtol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_every_array_library_gives_the_same(data, foreign, name):
    X, Y, w = data
    to, back = foreign
    kernel = KERNELS[name]
    at = start(X, kernel)
    if isinstance(kernel, Gaussian) and not isinstance(kernel.width, float):
        moved = Placement(to(at.vectors), Gaussian(to(kernel.width)), at.ridge)
    else:
        moved = replace(at, vectors=to(at.vectors))
    base = refine(refine_problem(X, Y, w, tau=0.1), at, max_iter=8)
    other = refine(refine_problem(to(X), to(Y), to(w), tau=0.1), moved, max_iter=8)
    assert type(other.vectors) is type(to(X))
    assert other.objective == pytest.approx(base.objective, rel=1e-7)
    np.testing.assert_allclose(back(other.vectors), base.vectors, atol=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", KERNELS)
def test_row_blocks_do_not_matter(data, name, objective):
    X, Y, w = data
    problem = refine_problem(X, Y, w, objective=objective, tau=0.3)
    at = start(X, KERNELS[name])
    whole = evaluate(problem, at)
    for block in (1, 60, 200):
        parts = evaluate(replace(problem, block=block), at)
        assert parts.value == pytest.approx(whole.value, rel=1e-11)
        np.testing.assert_allclose(parts.vectors, whole.vectors, atol=1e-11)
        np.testing.assert_allclose(parts.scales, whole.scales, atol=1e-11)
        np.testing.assert_allclose(parts.coef, whole.coef, rtol=1e-7)


def test_float32_is_kept_and_loses_little(data):
    X, Y, w = data
    at = start(X, free_widths(Gaussian(1.3), X))
    base = refine(refine_problem(X, Y, w), at, max_iter=10)
    single = replace(at, vectors=at.vectors.astype(np.float32))
    found = refine(refine_problem(X.astype(np.float32), Y.astype(np.float32), w), single, max_iter=10)
    assert found.vectors.dtype == found.coef.dtype == found.offset.dtype == np.float32
    assert found.objective == pytest.approx(base.objective, rel=1e-3)


def test_values_in_the_span_of_some_vectors_are_reached(rng):
    X = rng.uniform(-2, 2, size=(200, 2))
    teacher = Gaussian(np.array([0.9, 1.4]))
    centers = np.array([[-1.0, -1.0], [1.0, 0.5], [0.0, 1.0]])
    Y = teacher(X, centers) @ np.array([[1.0], [-2.0], [1.5]]) + 0.3
    begun = Placement(centers + 0.3, Gaussian(np.array([1.2, 1.2])), 1e-2)
    found = refine(refine_problem(X, Y, objective="least squares"), begun, max_iter=500, tol=1e-12)
    # the jitter and the least ridge leave their trace
    assert found.objective < 1e-6 < found.start_objective
    np.testing.assert_allclose(values(found, X), Y, atol=5e-3)


def test_a_model_distilled_to_its_own_vectors_stays_what_it_is(rng):
    X = rng.uniform(-2, 2, size=(100, 2))
    teacher = expand(refine_problem(X, np.sin(X[:, :1])), Placement(X[:6], Gaussian(1.5), 1e-2))
    found = refine(
        refine_problem(X, teacher(X), objective="least squares"), Placement(teacher.vectors, teacher.kernel, 1e-6)
    )
    np.testing.assert_allclose(values(found, X), teacher(X), atol=1e-3)


def test_expand_gives_the_coefficients_of_evaluate(data):
    X, Y, w = data
    problem = refine_problem(X, Y, w)
    at = start(X, Gaussian(1.3))
    model, found = expand(problem, at), evaluate(problem, at)
    np.testing.assert_allclose(model.coef, found.coef)
    np.testing.assert_allclose(model(X), at.kernel(X, at.vectors) @ found.coef + found.offset)


def test_a_sample_that_decides_its_own_value_is_no_trouble(rng):
    # the last sample is alone with its vector: its leverage is one
    X = np.concatenate([rng.normal(size=(20, 2)), [[50.0, 50.0]]])
    Y = rng.normal(size=(21, 1))
    found = evaluate(refine_problem(X, Y), Placement(X[-3:], Gaussian(1.0), 1e-6))
    assert np.isfinite(found.value)
    assert np.all(np.isfinite(found.vectors))


def test_vectors_that_meet_are_no_trouble(data):
    X, Y, w = data
    at = Placement(np.repeat(X[:2], 3, axis=0), Gaussian(1.0), 1e-6)
    found = refine(refine_problem(X, Y, w, tau=0.3), at, max_iter=20)
    assert np.all(np.isfinite(found.coef))
    assert found.objective <= found.start_objective


def test_constant_targets_give_a_constant(data):
    X, _, _ = data
    found = refine(refine_problem(X, np.full((40, 1), 3.0)), start(X, Gaussian(1.3)))
    np.testing.assert_allclose(values(found, X), 3.0, atol=1e-6)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), LinearSpline(-10.0), Precomputed(), Function(np.dot)])
def test_a_kernel_without_derivatives_says_so(kernel):
    V = np.eye(2)
    assert not kernel.refinable
    with pytest.raises(ValueError, match=f"{type(kernel).__name__}: this kernel has no derivative .* use Gaussian"):
        kernel.pullback(V, V, V, V)


@pytest.mark.parametrize("name", KERNELS)
def test_refinable_kernels_say_so(name):
    assert KERNELS[name].refinable


def test_refine_refuses_a_kernel_without_derivatives(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match="Laplacian: this kernel has no derivative"):
        refine(refine_problem(X, Y), Placement(X[:3], Laplacian(1.0), 0.1))


def test_sparse_samples_are_refused(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match="sparse samples cannot be moved"):
        refine_problem(sp.csr_matrix(X), Y)


# How a search sees placements


def chart(X, kernel, ridge=0.3, m=4):
    return refinement._Chart(refine_problem(X, X[:, :1]), Placement(X[:m], kernel, ridge))


def test_the_start_is_zero_and_comes_back(data):
    X, _, _ = data
    for kernel in KERNELS.values():
        found = chart(X, kernel)
        assert not np.any(found.start)
        assert len(found.start) == 4 * 3 + kernel.n_scales + 1
        at, _ = found.point(np.zeros(len(found.start)))
        np.testing.assert_array_equal(at.V, X[:4])
        assert at.ridge == pytest.approx(0.3)
        np.testing.assert_array_equal(at.s, np.zeros(kernel.n_scales))


def test_vectors_move_in_the_geometric_mean_of_width_and_spread(data):
    X, _, _ = data
    X = X * [1.0, 10.0, 1e150]
    widths = np.array([4.0, 0.5, 1e151])
    found = chart(X, Gaussian(widths))
    spread = X.std(axis=0)
    unit = np.sqrt(widths) * np.sqrt(spread)
    np.testing.assert_allclose(found.unit, unit, rtol=1e-9)
    theta = np.zeros(len(found.start))
    theta[5] = 1.0  # second vector, third feature
    moved = found.point(theta)[0].V
    np.testing.assert_allclose(moved[1, 2] - X[1, 2], unit[2], rtol=1e-9)
    # a kernel without a length
    np.testing.assert_allclose(chart(X, Linear()).unit, spread, rtol=1e-9)


def test_scales_and_ridge_are_logarithms_with_bounds(data):
    X, _, _ = data
    found = chart(X, Gaussian(np.array([1.0, 2.0, 0.7])))
    theta = np.zeros(16)
    theta[12:] = [1e9, -1e9, 0.01, 1e9]
    far, _ = found.point(theta)
    np.testing.assert_allclose(far.s, [refinement.LOG_SCALE_ABOVE, -refinement.LOG_SCALE_BELOW, 0.01], rtol=1e-4)
    # the ridge stays between a millionth and ten thousand times k(x, x)
    assert far.ridge == pytest.approx(1e4)
    theta[-1] = -1e9
    assert found.point(theta)[0].ridge == pytest.approx(1e-6)
    theta[-1] = 0.01
    assert found.point(theta)[0].ridge == pytest.approx(0.3 * np.exp(0.01), rel=1e-6)
    polynomial = chart(X, Polynomial(degree=2, gamma=1.0, coef0=0.0))
    size = np.mean((X**2).sum(axis=1) ** 2)
    theta = np.append(np.zeros(13), -1e9)
    assert polynomial.point(theta)[0].ridge == pytest.approx(1e-6 * size)


@pytest.mark.parametrize(("given", "ridge"), [(0.0, 1e-6), (1e9, 1e4), (0.5, 0.5)])
def test_a_ridge_outside_of_its_bounds_starts_at_them(data, given, ridge):
    found = chart(data[0], Gaussian(1.0), given)
    assert found.ridge == pytest.approx(ridge)
    assert np.all(found.low < 0)
    assert np.all(found.high > 0)


def test_the_gradient_of_a_chart_is_that_of_its_points(data):
    """Vectors in units, and bent scales and ridges far from the start."""
    X, Y, w = data
    problem = refine_problem(X, Y, w)
    at = Placement(X[:4], Gaussian(np.array([1.0, 2.0, 0.7])), 0.3)
    found, objective = refinement._Chart(problem, at), Objective(problem, at)
    theta = np.concatenate([0.1 * np.arange(12.0), [2.0, -3.0, 0.5, -4.0]])
    point, slope = found.point(theta)
    gradient = found.gradient(objective(point), slope)

    def slope(step):
        ahead, behind = (objective(found.point(theta + way)[0]).value for way in (step, -step))
        return (ahead - behind) / 2e-6

    np.testing.assert_allclose(gradient, [slope(1e-6 * unit) for unit in np.eye(16)], atol=1e-7)


def test_weights_sum_to_the_number_of_samples_and_the_variance_is_theirs(data):
    X, Y, w = data
    problem = refine_problem(X, Y, w)
    assert problem.weights.sum() == pytest.approx(40)
    mean = w @ Y / w.sum()
    assert problem.variance == pytest.approx(w @ ((Y - mean) ** 2).sum(axis=1) / w.sum())
    assert refine_problem(X, np.ones((40, 1))).variance == 1.0
    np.testing.assert_allclose(problem.spread, np.sqrt(w @ (X - w @ X / w.sum()) ** 2 / w.sum()))
    assert problem.tau == 0.0
    assert problem.objective == "leave-one-out"


def test_one_width_for_all_becomes_one_per_feature(data):
    X = data[0]
    np.testing.assert_array_equal(free_widths(Gaussian(1.5), X).width, [1.5] * 3)
    given = Gaussian(np.array([1.0, 2.0, 3.0]))
    assert free_widths(given, X) is given
    linear = Linear()
    assert free_widths(linear, X) is linear


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_values_of_the_objectives_are_their_definitions(data, objective):
    X, Y, w = data
    problem = refine_problem(X, Y, w, objective=objective, tau=0.4)
    at = Placement(X[:4] + 0.1, Gaussian(1.2), 0.2)
    w = w * 40 / w.sum()
    K, P = at.kernel(X, at.vectors), np.column_stack([np.ones(40), at.kernel(X, at.vectors)])
    Kv = at.kernel(at.vectors, at.vectors) + JITTER * np.eye(4)
    A = P.T @ (w[:, None] * P)
    A[1:, 1:] += 0.2 * Kv
    beta = np.linalg.solve(A, P.T @ (w[:, None] * Y))
    R = Y - P @ beta
    if objective == "leave-one-out":
        h = w * np.einsum("ij,ji->i", P, np.linalg.solve(A, P.T))
        J = w @ ((R / (1 - h)[:, None]) ** 2).sum(axis=1) / 40
    else:
        J = (w @ (R**2).sum(axis=1) + 0.2 * np.trace(beta[1:].T @ Kv @ beta[1:])) / 40
    fitness = np.trace(np.linalg.solve(Kv, K.T @ (w[:, None] * K))) / 40
    expected = J / problem.variance + 0.4 * (1 - fitness)
    found = evaluate(problem, at)
    assert found.value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(found.coef, beta[1:], rtol=1e-7)
    np.testing.assert_allclose(found.offset, beta[0], rtol=1e-7)


def test_a_leverage_near_one_leaves_a_little(data, monkeypatch):
    X, Y, _ = data
    # as many vectors as samples and no ridge to speak of: every sample decides its own value
    found = evaluate(refine_problem(X[:6], Y[:6]), Placement(X[:6], Gaussian(0.3), 1e-9))
    assert np.isfinite(found.value)
    assert np.all(np.isfinite(found.vectors))


def apart(kernel, X, w):
    """Mean squared distance of two samples in units of the widths, with weights."""
    gaps = ((X[:, None, :] - X[None, :, :]) / kernel.width) ** 2
    share = w / w.sum()
    return float(share @ gaps.sum(axis=2) @ share)


def test_a_search_starts_with_a_kernel_that_is_not_much_wider_than_the_samples_lie_apart(data):
    X, Y, w = data
    problem = refine_problem(X, Y, w)
    wide = Gaussian(np.array([50.0, 20.0, 30.0]))
    found = narrowed(wide, problem)
    np.testing.assert_allclose(found.width / wide.width, found.width[0] / 50.0, rtol=1e-12)
    assert apart(found, X, w) == pytest.approx(1.0)
    # the same with other units
    scaled = narrowed(Gaussian(wide.width * [1e5, 1, 1]), refine_problem(X * [1e5, 1, 1], Y, w))
    np.testing.assert_allclose(scaled.width, found.width * [1e5, 1, 1], rtol=1e-9)
    for kernel in (Gaussian(np.array([1.0, 20.0, 30.0])), Polynomial(degree=2, gamma=1e-3), Linear()):
        assert narrowed(kernel, problem) is kernel
