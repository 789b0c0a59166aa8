"""Laws of imitation, on any array library."""

import numpy as np
import pytest

from fewkern import KernelExpansion
from fewkern.arrays.namespace import to_numpy
from fewkern.compression import distillation
from fewkern.compression.distillation import Agreement, Goal, Teacher, distill, ladder, steps
from fewkern.compression.teaching import LEAST_CLASS_ROWS, Lesson, border_weights, crossings, held_out
from fewkern.core.scores import ClassScores
from fewkern.kernels import Gaussian


@pytest.fixture
def X(rng):
    return rng.standard_normal((200, 2))


def bumps(m, rng, q=1):
    """A function of ``m`` vectors."""
    vectors, coef = rng.standard_normal((m, 2)), rng.standard_normal((m, q))
    return KernelExpansion(Gaussian(length_scale=1.0), vectors, coef, np.full(q, 0.3))


def taught_by(function, scores=None):
    return Teacher(function, function.vectors, scores, widths=1.0, function=function)


def distilled(teacher, X, sizes, tolerance, **settings):
    """The short function, and its agreement."""
    found = distill(teacher, X, None, Goal(sizes, tolerance), **settings)
    return found.function, found.agreement


def test_a_short_teacher_is_returned_as_it_is(X, rng):
    teacher = taught_by(bumps(4, rng), ClassScores())
    for size in (4, 9):
        assert distilled(teacher, X, (size,), 0.0) == (teacher.function, Agreement(0.0, 1.0, 1.0))


def test_a_function_of_few_vectors_is_found(X, rng):
    """The same function written with many vectors: each of three appears ten times, with a tenth of its coefficient."""
    few = bumps(3, rng)
    many = KernelExpansion(few.kernel, np.tile(few.vectors, (10, 1)), np.tile(few.coef / 10, (10, 1)), few.offset)
    short, _ = distilled(taught_by(many), X, (6,), 0.0)
    assert np.std(short(X) - few(X)) < 0.02 * np.std(few(X))


def test_more_vectors_agree_more(X, rng):
    teacher = taught_by(bumps(60, rng, q=2))
    errors = [distilled(teacher, X, (m,), 0.0)[1].error for m in (1, 3, 9, 27)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 < errors[0]


@pytest.mark.parametrize("tolerance", [0.3, 0.1, 0.03])
def test_the_first_size_within_the_tolerance_is_taken(tolerance, X, rng):
    teacher, told = taught_by(bumps(60, rng)), []
    short, agreed = distilled(teacher, X, ladder(30), tolerance, step=told.append)
    place = ladder(30).index(short.n_vectors)
    assert told == list(range(1, place + 2))
    assert agreed.loss <= tolerance
    if place:
        assert distilled(teacher, X, (ladder(30)[place - 1],), 0.0)[1].loss > tolerance


def test_a_tolerance_out_of_reach_gives_the_last_size(X, rng):
    short, agreed = distilled(taught_by(bumps(9, rng)), X, ladder(4), 0.0)
    assert short.n_vectors == 4
    assert agreed.loss > 0


def test_sizes_are_those_of_the_learner_and_then_doubled():
    assert ladder(1) == (1,)
    assert ladder(3) == (3,)
    assert ladder(20) == (4, 8, 16, 20)
    assert ladder(500) == (4, 8, 16, 32, 64, 128, 256, 500)


def test_many_vectors_take_few_steps():
    assert steps(1) == steps(distillation.STEP_VECTORS) == distillation.MAX_STEPS
    assert steps(2 * distillation.STEP_VECTORS) == distillation.MAX_STEPS // 2
    assert steps(1000) == distillation.LEAST_STEPS


def agreement(function, short, X, scores=None, codes=None):
    """Where a third of the samples are of class 0."""
    counts = None if scores is None else np.array([10, 20])
    return distillation._Test(X, function(X), scores, codes, counts).agreement(short)


def test_agreement():
    two = KernelExpansion(Gaussian(1.0), np.array([[0.0], [4.0]]), np.array([[1.0], [-1.0]]), np.zeros(1))
    X = np.array([[0.0], [0.5], [3.5], [4.0]])
    half = KernelExpansion(two.kernel, two.vectors[:1], two.coef[:1], np.array([0.1]))
    assert agreement(two, two, X) == Agreement(0.0)
    found = agreement(two, half, X, ClassScores(), np.array([1, 1, 0, 0]))
    assert found.decisions == pytest.approx(2 / 3)  # all of class 0 are lost
    assert (found.least, found.loss) == (0.0, 1.0)
    assert agreement(two, half, X).loss == found.error > 0.5
    assert str(found).startswith("66.67% equal decisions (0.00% in the least class), relative error of the values")


def test_a_constant_teacher_has_an_error(X):
    constant = KernelExpansion(Gaussian(1.0), X[:2], np.zeros((2, 1)), np.full(1, 5.0))
    other = KernelExpansion(Gaussian(1.0), X[:2], np.zeros((2, 1)), np.full(1, 4.0))
    assert agreement(constant, other, X).error == pytest.approx(0.2)


def test_samples_near_a_border_count_most():
    values = np.array([[-0.01, 0.0], [0.0, 1.0], [2.0, 0.0], [4.0, 0.0]])
    weights = border_weights(values)
    assert weights[0] > 0.99 > weights[1] > weights[2] > weights[3] > 0
    assert border_weights(0 * values).tolist() == [1.0] * 4


def test_a_lesson_has_samples_and_crossings_of_which_samples_count_most(X, rng):
    lesson = Lesson.of(taught_by(bumps(5, rng)), X, 250, rng)
    assert lesson.X.shape == (250, 2)
    np.testing.assert_array_equal(lesson.X[:166], X[:166])
    assert lesson.weights.sum() == pytest.approx(250)
    assert lesson.weights[0] > 3 * lesson.weights[-1]


def test_crossings_have_values_that_occur_and_rare_classes_take_part(rng):
    X = np.arange(200.0).reshape(100, 2)
    codes = np.zeros(100, dtype=int)
    codes[7] = 1
    found = crossings(X, X, codes, 1000, 1, rng)
    for column in range(2):
        assert set(found[:, column]) <= set(X[:, column])
    assert 0.3 < np.mean((found == X[7]).any(axis=1)) < 0.5  # a quarter of its crossings have none of its values
    near = crossings(X, X, None, 1000, 50, rng)
    assert np.abs(near[:, 0] - near[:, 1] + 1).mean() < 20


def test_one_sample_in_ten_is_held_out_and_enough_of_every_class(rng):
    codes = np.repeat([0, 1, 2], [200, 30, 6])
    taught, held = held_out(codes, 236, rng)
    assert sorted([*taught, *held]) == list(range(236))
    assert np.bincount(codes[held]).tolist() == [20, LEAST_CLASS_ROWS + 2, 2]
    assert len(held_out(None, 300, rng)[1]) == 30
    taught, held = held_out(None, 6, rng)  # too few
    assert sorted(taught) == sorted(held) == list(range(6))


def test_a_rough_function_gets_no_more_vectors_than_help(X, rng):
    """Noise beside a smooth function: 32 vectors are no better than few."""
    few, steps = bumps(3, rng), []
    noise = lambda x: few(x) + 0.3 * np.std(few(X)) * np.sin(1e4 * x[:, :1])  # noqa: E731
    short, agreed = distilled(Teacher(noise, None, widths=1.0), X, ladder(32), 0.02, step=steps.append)
    assert steps == [1, 2, 3, 4]
    assert short.n_vectors <= 16
    assert 0.2 < agreed.error < 0.35


def test_the_order_of_the_features_hardly_matters(X, rng):
    """But for the crossings, which are random."""
    few = bumps(20, rng)
    swapped = KernelExpansion(few.kernel, few.vectors[:, ::-1], few.coef, few.offset)
    (one, _), (other, _) = distilled(taught_by(few), X, (6,), 0.0), distilled(taught_by(swapped), X[:, ::-1], (6,), 0.0)
    np.testing.assert_allclose(other(X[:, ::-1]), one(X), atol=0.1 * np.std(few(X)))


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_units_of_the_features_hardly_matter(X, rng, size):
    few = bumps(20, rng)
    scaled = KernelExpansion(Gaussian(length_scale=size), size * few.vectors, few.coef, few.offset)
    one, _ = distilled(taught_by(few), X, (5,), 0.0)
    other, _ = distilled(Teacher(scaled, scaled.vectors, widths=size), size * X, (5,), 0.0)
    np.testing.assert_allclose(other(size * X), one(X), atol=0.02 * np.std(few(X)))


def test_the_unit_of_the_values_does_not_matter(X, rng):
    few = bumps(20, rng)
    small = KernelExpansion(few.kernel, few.vectors, 1e-4 * few.coef, 1e-4 * few.offset)
    one, other = (distilled(taught_by(f), X, (5,), 0.0)[1].error for f in (few, small))
    assert other == pytest.approx(one, rel=0.05)


def test_a_constant_feature(rng):
    X = np.column_stack([rng.standard_normal(100), np.full(100, 3.0)])
    few = KernelExpansion(Gaussian(1.0), X[:20], rng.standard_normal((20, 1)), np.zeros(1))
    for widths in (1.0, None):
        short, _ = distilled(Teacher(few, few.vectors, widths=widths), X, (8,), 0.0)
        np.testing.assert_allclose(short(X), few(X), atol=0.1 * np.std(few(X)))


def test_other_array_libraries(X, rng, foreign):
    there, _ = foreign
    long = bumps(20, rng)
    here, first = distilled(taught_by(long, ClassScores()), X, (4,), 0.0)
    moved, second = distilled(taught_by(long.like(there(X)), ClassScores()), there(X), (4,), 0.0)
    assert type(moved.vectors) is type(there(X))
    # a search of many steps makes rounding errors larger
    near = 0.02 * np.std(long(X))
    np.testing.assert_allclose(to_numpy(moved(there(X))), here(X), rtol=0, atol=near)
    assert second.decisions == pytest.approx(first.decisions, abs=0.002)
