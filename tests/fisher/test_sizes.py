"""Which size is as good as the best one, and how many columns it begins with."""

from types import SimpleNamespace

import numpy as np
import pytest

from fewkern.fisher.beginning import Beginning
from fewkern.fisher.forward_folds import Folded
from fewkern.fisher.sizes import SEVERAL, Allowance, Sizes
from tests.fisher.helpers import labelled

ALLOWED = Allowance(slight=0.2, misses=0.1)


def sizes(losses, misses, n=100):
    """Machines of 1, 2, ... vectors whose losses differ by the same amount for every sample."""
    return Sizes(
        {k + 1: np.full(n, one / n) for k, one in enumerate(losses)},
        {k + 1: np.full(n, one / n) for k, one in enumerate(misses)},
    )


@pytest.mark.parametrize(
    ("losses", "misses", "chosen"),
    [
        ((1.0, 1.0, 1.0), (0.1, 0.1, 0.1), 1),  # all alike
        ((1.2, 1.05, 1.0), (0.1, 0.1, 0.1), 2),  # "balanced" may lose half of the allowance: 10 % of the loss
        ((1.0, 1.0, 1.0), (0.2, 0.14, 0.1), 2),  # ... and 5 of 100 samples
        ((1.5, 1.4, 1.0), (0.5, 0.4, 0.1), 3),  # nothing is as good as the best
    ],
)
def test_the_smallest_size_that_loses_little_of_both(losses, misses, chosen):
    assert sizes(losses, misses).choose("balanced", ALLOWED) == chosen


def test_many_samples_allow_less():
    """Four times as many as 2,000: half of the loss, and of the misses, that so many may lose."""
    for losses, misses in (((1.06, 1.04, 1.0), (0.1, 0.1, 0.1)), ((1.0, 1.0, 1.0), (0.14, 0.12, 0.1))):
        assert sizes(losses, misses, 2000).choose("balanced", ALLOWED) == 1
        assert sizes(losses, misses, 8000).choose("balanced", ALLOWED) == 2


def test_accurate_takes_the_best():
    assert sizes((1.05, 1.0, 1.1), (0.1, 0.1, 0.1)).choose("accurate", ALLOWED) == 2


def test_several_classes_begin_with_three_times_the_columns():
    """Two classes begin with those that the fold of all samples is left with."""
    order, forward = np.arange(20)[None, :], np.arange(20)[::-1]
    found = {
        n_classes: Beginning(
            SimpleNamespace(samples=SimpleNamespace(n_classes=n_classes)), None, 1.0, None, order, forward
        )
        for n_classes in (2, 3)
    }
    kept = Sizes({}, {}, columns={4: np.array([[1, 2, 3, 4], [5, 6, 7, 8]])})
    np.testing.assert_array_equal(found[3].on_all(kept, 4), forward[:12])
    np.testing.assert_array_equal(found[3].on_all(kept, 10), forward)
    np.testing.assert_array_equal(found[2].on_all(kept, 4), [5, 6, 7, 8])


def test_shares_of_single_precision_are_in_double():
    samples = labelled(np.zeros((31, 1), dtype=np.float32), np.arange(31) % 2)
    parts = Folded.of(samples, samples.folds(3))
    assert parts.test.dtype == np.float32
    assert parts.shares.dtype == np.float64
    assert parts.shares.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("n", [150, 178, 300, 1000])
def test_one_sample_more_is_no_difference_whatever_the_rounding(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        wrong = np.zeros(n)
        wrong[rng.choice(n, 7, replace=False)] = 1 / n
        fewer = wrong.copy()
        fewer[np.flatnonzero(wrong)[:1]] = 0
        found = Sizes({3: np.full(n, 0.1 / n), 90: np.full(n, 0.1 / n)}, {3: wrong, 90: fewer})
        assert found.choose("balanced", SEVERAL) == 3
