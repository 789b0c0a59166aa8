"""Laws of imitation, on any array library."""

import numpy as np
import pytest

from fewkern import KernelExpansion
from fewkern.compression.distillation import (
    IMITATION,
    Agreement,
    Goal,
    Teacher,
    crossings,
    distill,
    held_out,
    ladder,
)
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
    return distill(teacher, X, None, Goal(sizes, tolerance), **settings)[:2]


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


@pytest.mark.parametrize("tolerance", [0.3, 0.1, 0.03])
def test_the_first_size_within_the_tolerance_is_taken(tolerance, X, rng):
    assert (ladder(3), ladder(20)) == ((3,), (4, 8, 16, 20))
    teacher, told = taught_by(bumps(60, rng)), []
    short, agreed = distilled(teacher, X, ladder(30), tolerance, step=told.append)
    place = ladder(30).index(short.n_vectors)
    assert told == list(range(1, place + 2))
    assert agreed.loss <= tolerance
    if place:
        assert distilled(teacher, X, (ladder(30)[place - 1],), 0.0)[1].loss > tolerance


def test_agreement_is_what_new_rows_say(X, rng):
    """Decisions of rows as they are, and the error over the spread of the teacher's values."""
    long, new = bumps(20, rng), rng.standard_normal((300, 2))
    long = KernelExpansion(long.kernel, long.vectors, long.coef, long.offset - np.median(long(X)))
    teacher = taught_by(long, ClassScores())
    short, found, rare = distill(teacher, X, new, Goal((2,), 0.0, 3))
    values, truth = short(new)[:, 0], teacher.function(new)[:, 0]
    same = (values > 0) == (truth > 0)
    assert found.error == pytest.approx(np.sqrt(np.mean((values - truth) ** 2)) / np.std(truth))
    assert found.decisions == pytest.approx(same.mean())
    assert found.least == pytest.approx(min(same[truth > 0].mean(), same[truth <= 0].mean()))
    assert rare == (2,)
    assert str(Agreement(0.25, 2 / 3, 0.0)) == (
        "66.67% equal decisions (0.00% in the least class), relative error of the values 0.25"
    )


def test_a_class_that_is_decided_at_one_sample_is_measured_there(rng):
    """Crossings of thirty columns are all of the other class: they say nothing of the one that has been lost."""
    X = rng.standard_normal((150, 30))
    teacher = Teacher(
        lambda rows: rows[:, :1] + 9.0, None, ClassScores(), lambda rows: np.any(rows != X[0], axis=1) * 1
    )
    _, found, rare = distill(teacher, X, None, Goal((1,), 0.0, 2))
    assert found.decisions > 0.9
    assert found.least == 0
    assert rare == (0,)


def test_a_constant_teacher_is_found(X):
    constant = KernelExpansion(Gaussian(1.0), X[:2], np.zeros((2, 1)), np.full(1, 5.0))
    short, found = distilled(taught_by(constant), X, (1,), 0.0)
    assert found.error < 1e-6
    np.testing.assert_allclose(short(X), 5.0, atol=1e-6)


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
    assert np.bincount(codes[held]).tolist() == [20, IMITATION.least_class_rows + 2, 2]
    assert len(held_out(None, 300, rng)[1]) == 30
    few = np.repeat([0, 1, 2], [200, 1, 2])  # in both parts
    taught, held = held_out(few, 203, rng)
    assert [np.bincount(few[part])[1:].tolist() for part in (taught, held)] == [[1, 2], [1, 1]]
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


@pytest.mark.parametrize(
    ("turn", "width", "unit", "tolerance"),
    [
        (lambda X: X[:, ::-1], 1.0, 1.0, 0.1),  # the order of the features, but for the crossings, which are random
        (lambda X: 1e-6 * X, 1e-6, 1.0, 0.02),
        (lambda X: 1e6 * X, 1e6, 1.0, 0.02),
        (lambda X: X, 1.0, 1e-4, 0.02),
    ],
    ids=["order", "small", "large", "values"],
)
def test_order_and_units_hardly_matter(turn, width, unit, tolerance, X, rng):
    few = bumps(20, rng)
    turned = KernelExpansion(Gaussian(width), turn(few.vectors), unit * few.coef, unit * few.offset)
    one, _ = distilled(taught_by(few), X, (5,), 0.0)
    other, _ = distilled(Teacher(turned, turned.vectors, widths=width), turn(X), (5,), 0.0)
    assert np.sqrt(np.mean((other(turn(X)) / unit - one(X)) ** 2)) < tolerance * np.std(few(X))


def test_a_constant_feature(rng):
    X = np.column_stack([rng.standard_normal(100), np.full(100, 3.0)])
    few = KernelExpansion(Gaussian(1.0), X[:20], rng.standard_normal((20, 1)), np.zeros(1))
    for widths in (1.0, None):
        short, _ = distilled(Teacher(few, few.vectors, widths=widths), X, (8,), 0.0)
        np.testing.assert_allclose(short(X), few(X), atol=0.1 * np.std(few(X)))
