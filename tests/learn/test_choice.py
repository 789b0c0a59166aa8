"""Which of the candidates is taken, by errors that are written down."""

import numpy as np
import pytest

from fewkern.learn.compare import Comparison, Kind
from fewkern.learn.policy import POLICY

N = 400


def comparison(errors, noise=0.0, variance=1.0):
    """Mean errors of candidates; ``noise`` makes the difference of any two differ from row to row."""
    rng = np.random.default_rng(0)
    found = {}
    for key, mean in errors.items():
        wave = rng.standard_normal(N)
        found[key] = mean + noise * (wave - wave.mean())
    predicted = {key: np.full((N, 1), float(key[1])) for key in errors}
    return Comparison(POLICY, np.arange(N), np.ones(N), np.zeros(N, int), {}, predicted, found, variance)


def models(kind=Kind.DISTILLED, **sizes):
    return {(kind, int(name[1:])): error for name, error in sizes.items()}


@pytest.mark.parametrize(("loss", "size"), [(0.9, 40), (1.1, 80)])
def test_a_halving_may_cost_a_share_of_gain_times_error(loss, size):
    """The best one has an error of .5: a gain of .5, so that .25 times the tolerance may be lost, or 1e-3 more."""
    step = loss * POLICY.judge.tolerance * (0.25 + 1e-3)
    assert comparison(models(m80=0.5, m40=0.5 + step)).choose(1.0) == (Kind.DISTILLED, size)


@pytest.mark.parametrize(("loss", "size"), [(0.9, 40), (1.1, 80)])
def test_many_samples_must_be_clearly_better(loss, size):
    step = loss * POLICY.judge.samples_price * POLICY.judge.tolerance * (0.25 + 1e-3)
    assert comparison(models(Kind.STILL, m80=0.5, m40=0.5 + step)).choose(1.0) == (Kind.STILL, size)


def test_a_weak_signal_is_not_given_up():
    """Of a signal of two hundredths no more than the share and the least error are lost."""
    assert comparison(models(m80=0.98, m4=0.99)).choose(1.0) == (Kind.DISTILLED, 80)


def test_what_prefer_means():
    losses = {0.0: 80, 1.0: 40, 2.0: 20}
    step = POLICY.judge.tolerance * (0.25 + 1e-3)
    found = comparison(models(m80=0.5, m40=0.5 + 0.9 * step, m20=0.5 + 3 * step))
    for leniency, size in losses.items():
        assert found.choose(leniency) == (Kind.DISTILLED, size)


def test_a_larger_model_must_prove_itself():
    errors = models(m80=0.5, m40=0.55)
    assert comparison(errors).choose(1.0) == (Kind.DISTILLED, 80)
    # the standard error of a difference of two waves is noise times the root of 2 / N
    proven = 0.05 / POLICY.judge.proof / np.sqrt(2 / N)
    assert comparison(errors, noise=1.1 * proven).choose(1.0) == (Kind.DISTILLED, 40)
    assert comparison(errors, noise=0.8 * proven).choose(1.0) == (Kind.DISTILLED, 80)


def test_vectors_moved_by_the_labels_must_prove_themselves():
    errors = {(Kind.MOVED, 8): 0.5, (Kind.DISTILLED, 8): 0.55}
    assert comparison(errors).choose(1.0) == (Kind.MOVED, 8)
    assert comparison(errors, noise=3 * 0.05 / POLICY.judge.proof / np.sqrt(2 / N)).choose(0.0) == (Kind.DISTILLED, 8)


def test_values_held_out_are_of_candidates_that_other_rows_chose():
    found = comparison(models(m80=0.5, m40=0.9))
    rows, values = found.held_out(1.0)
    assert rows.tolist() == list(range(N))
    assert (values == 80).all()


def test_few_moved_vectors_may_stand_for_many_samples():
    """They do not prove to be better, but they are as good, and few: 80 samples were taken in their place."""
    errors = {(Kind.STILL, 300): 0.5, (Kind.STILL, 80): 0.51, (Kind.MOVED, 4): 0.505, (Kind.MOVED, 400): 0.499}
    assert comparison(errors, noise=0.5).choose(1.0) == (Kind.MOVED, 4)
