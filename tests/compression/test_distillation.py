"""Laws of distillation, on any array library."""

import numpy as np
import pytest

from fewkern import KernelExpansion
from fewkern.backend.namespace import to_numpy
from fewkern.compression import distillation
from fewkern.compression.distillation import (
    Agreement,
    Answers,
    Teacher,
    distill_fewest,
    distill_to,
    pooled,
    steps,
)
from fewkern.core.scores import ClassScores
from fewkern.kernels import Gaussian


@pytest.fixture
def X(rng):
    return rng.standard_normal((200, 2))


def bumps(m, rng, q=1):
    """A function of ``m`` vectors."""
    vectors, coef = rng.standard_normal((m, 2)), rng.standard_normal((m, q))
    return KernelExpansion(Gaussian(width=1.0), vectors, coef, np.full(q, 0.3))


def test_a_short_teacher_is_returned_as_it_is(X, rng):
    teacher = Teacher(bumps(4, rng), ClassScores())
    for short in (distill_to(teacher, X, 4), distill_to(teacher, X, 9)):
        assert short.expansion is teacher.expansion
        assert short.agreement == Agreement(0.0, 1.0)
    assert distill_fewest(Teacher(bumps(1, rng)), X, 0.1).expansion.n_vectors == 1


def test_a_function_of_few_vectors_is_found(X, rng):
    """The same function written with many vectors: each of three appears ten times, with a tenth of its coefficient."""
    few = bumps(3, rng)
    many = KernelExpansion(few.kernel, np.tile(few.vectors, (10, 1)), np.tile(few.coef / 10, (10, 1)), few.offset)
    short = distill_to(Teacher(many), X, 6)
    np.testing.assert_allclose(short.expansion(X), few(X), atol=0.05)


def test_more_vectors_agree_more(X, rng):
    teacher = Teacher(bumps(60, rng, q=2))
    errors = [distill_to(teacher, X, m).agreement.error for m in (1, 3, 9, 27)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 < errors[0]


@pytest.mark.parametrize("tolerance", [0.3, 0.1, 0.05])
def test_the_fewest_vectors_meet_the_tolerance_and_one_in_five_less_do_not(tolerance, X, rng):
    teacher = Teacher(bumps(60, rng))
    short = distill_fewest(teacher, X, tolerance)
    m = short.expansion.n_vectors
    assert 1 < m < 30
    assert short.agreement.loss <= tolerance
    assert distill_to(teacher, X, m - max(1, m // distillation.RESOLUTION)).agreement.loss > tolerance


def test_a_tolerance_out_of_reach_gives_half_of_the_vectors(X, rng):
    short = distill_fewest(Teacher(bumps(9, rng)), X, 0.0)
    assert short.expansion.n_vectors == 4
    assert short.agreement.loss > 0


@pytest.fixture
def searched(monkeypatch):
    """Numbers of vectors, in the order in which they are moved."""
    sizes, refine = [], distillation.refine

    def recorded(problem, start, **how):
        sizes.append(start.vectors.shape[0])
        return refine(problem, start, **how)

    monkeypatch.setattr(distillation, "refine", recorded)
    return sizes


def test_folds_that_cannot_change_the_answer_are_not_looked_at(X, rng, searched):
    told = []
    short = distill_fewest(Teacher(bumps(40, rng)), X, 0.02, step=told.append)
    found = short.expansion.n_vectors
    assert searched[:3] == [1, 2, 4]  # one fold is enough to see that they are too few
    assert searched.count(found) == 4  # three folds, and all samples in the end
    assert max(searched.count(m) for m in searched if m != found) <= 3
    assert told == list(range(1, len(searched) + 1))


def test_a_size_that_is_given_takes_three_folds_and_all_samples(X, rng, searched):
    told = []
    distill_to(Teacher(bumps(40, rng)), X, 5, step=told.append)
    assert searched == [5, 5, 5, 5]
    assert told == [1, 2, 3, 4]


def test_many_vectors_take_few_steps():
    assert steps(1) == steps(distillation.MANY) == distillation.STEPS
    assert steps(2 * distillation.MANY) == distillation.STEPS // 2
    assert steps(1000) == distillation.LEAST_STEPS


def agreement(teacher, short, X):
    return Answers.of(teacher, X).agreement(short)


def test_agreement():
    two = KernelExpansion(Gaussian(1.0), np.array([[0.0], [4.0]]), np.array([[1.0], [-1.0]]), np.zeros(1))
    X = np.array([[0.0], [0.5], [3.5], [4.0]])
    half = KernelExpansion(two.kernel, two.vectors[:1], two.coef[:1], np.array([0.1]))
    assert agreement(Teacher(two), two, X) == Agreement(0.0)
    found = agreement(Teacher(two, ClassScores()), half, X)
    assert found.decisions == 0.5
    assert found.loss == 0.5
    assert agreement(Teacher(two), half, X).loss == found.error > 0.5
    assert str(found).startswith("50.00% equal decisions, relative error of the values 0.")


def test_agreement_of_several_folds():
    assert pooled([], 3) == Agreement(0.0)
    assert pooled([Agreement(3.0), Agreement(4.0)], 2).error == pytest.approx(np.sqrt(12.5))
    found = pooled([Agreement(3.0, 0.7)], 3)  # as if the two others agreed
    assert found.decisions == pytest.approx(0.9)
    assert found.error == pytest.approx(np.sqrt(3.0))


def test_a_constant_teacher_has_an_error(X):
    constant = KernelExpansion(Gaussian(1.0), X[:2], np.zeros((2, 1)), np.full(1, 5.0))
    other = KernelExpansion(Gaussian(1.0), X[:2], np.zeros((2, 1)), np.full(1, 4.0))
    assert agreement(Teacher(constant), other, X).error == pytest.approx(0.2)


def test_pairs_vote():
    """Three classes, pairs (0, 1), (0, 2), (1, 2); inside the margin a vote counts in part."""
    kernel, vectors = Gaussian(1.0), np.zeros((1, 1))
    pairs = KernelExpansion(kernel, vectors, np.zeros((1, 3)), np.array([3.0, 0.5, -2.0]))
    teacher, X = Teacher(pairs, ClassScores(), voting=3), np.zeros((1, 1))
    np.testing.assert_allclose(teacher.values(X), [[1.5, -2.0, 0.5]])
    assert teacher.decisions(X).tolist() == [0]


def test_samples_near_a_border_count_most():
    expansion = KernelExpansion(Gaussian(1.0), np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1))
    values = np.array([[0.01], [1.0], [-2.0], [-4.0]])
    weights = Teacher(expansion, ClassScores()).weights(values)
    assert weights[0] > 0.99 > weights[1] > weights[2] > weights[3] > 0
    assert Teacher(expansion).weights(values).tolist() == [1.0] * 4
    assert Teacher(expansion, ClassScores()).weights(0 * values).tolist() == [1.0] * 4


def test_the_order_of_the_features_does_not_matter(X, rng):
    """But for the company, which is random."""
    few = bumps(20, rng)
    swapped = KernelExpansion(few.kernel, few.vectors[:, ::-1], few.coef, few.offset)
    one, other = distill_to(Teacher(few), X, 4), distill_to(Teacher(swapped), X[:, ::-1], 4)
    size = np.std(few(X))
    np.testing.assert_allclose(other.expansion(X[:, ::-1]), one.expansion(X), atol=0.1 * size)


def test_many_samples_are_not_all_moved_on(X, rng, monkeypatch):
    monkeypatch.setattr(distillation, "MOVE_ROWS", 50)
    teacher = Teacher(bumps(30, rng))
    short = distill_to(teacher, X, 12)
    assert agreement(teacher, short.expansion, X).error < 0.1


def test_other_array_libraries(X, rng, foreign):
    there, _ = foreign
    long = bumps(20, rng)
    here = distill_to(Teacher(long, ClassScores()), X, 4)
    moved = distill_to(Teacher(long.like(there(X)), ClassScores()), there(X), 4)
    assert type(moved.expansion.vectors) is type(there(X))
    # a search of many steps makes rounding errors larger
    near = 0.02 * np.std(long(X))
    np.testing.assert_allclose(to_numpy(moved.expansion(there(X))), here.expansion(X), rtol=0, atol=near)
    assert moved.agreement.decisions == here.agreement.decisions
