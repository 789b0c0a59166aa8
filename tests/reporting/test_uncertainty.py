"""What a model states about its own uncertainty, where it states anything."""

import numpy as np
import pytest

from fewkern.reporting.holdout import predict_held_out
from fewkern.reporting.subject import subject_of
from fewkern.reporting.uncertainty import uncertainty
from tests.reporting.helpers import QUICK, churn_model, price_model


@pytest.fixture
def sure(monkeypatch):
    """Give the estimator of a fitted pipeline methods of its own."""

    def add(model, **methods):
        for name, method in methods.items():
            monkeypatch.setattr(model[-1], name, method, raising=False)
        return model

    return add


def looked_at(model, X, y):
    subject = subject_of(model, X, y)
    return uncertainty(subject, predict_held_out(subject, QUICK)), subject


def test_intervals(sure):
    model, X, y = price_model()

    def predict_interval(samples, coverage):
        assert coverage == 0.9
        center = model[-1].predict(samples)
        return np.column_stack([center - 8000, center + 8000])

    found, subject = looked_at(sure(model, predict_interval=predict_interval), X, y)
    predictions = predict_held_out(subject, QUICK)
    inside = np.abs(model.predict(X.iloc[predictions.positions]) - predictions.truth) <= 8000
    assert found.intervals.covered == pytest.approx(inside.mean())
    assert found.intervals.sentence == (
        "With 90% coverage, a typical prediction interval is ±8,000. It contains the true value for "
        f"{100 * inside.mean():.1f}% of these 40 rows. The model was fitted to them; for new rows expect 90%."
    )
    assert found.sets is None


def test_sets_and_novelty(sure):
    model, frame, y = churn_model()
    methods = {
        "predict_set": lambda samples, coverage: model[-1].predict_proba(samples) > 0.3,
        "novelty": lambda samples: np.linspace(0, 1, len(samples)),
        "novelty_threshold": lambda false_alarms: 1 - false_alarms,
    }
    found, subject = looked_at(sure(model, **methods), frame, y)
    predictions = predict_held_out(subject, QUICK)
    member = model.predict_proba(frame.iloc[predictions.positions]) > 0.3
    assert found.sets.sizes == tuple(np.bincount(member.sum(axis=1), minlength=3))
    truth = predictions.truth[:, None] == model.classes_
    assert found.sets.covered == pytest.approx((member & truth).any(axis=1).mean())
    assert f"gives a single class for {np.mean(member.sum(axis=1) == 1):.0%} of rows" in found.sets.sentence
    assert found.novelty.sentence == (
        "At a false-alarm rate of 5% (novelty above 0.95), 5.0% of these rows are flagged as unlike the training data."
    )


def test_a_model_that_has_none_may_say_why(sure):
    def refuse(samples, coverage):
        raise AttributeError("this model came from an old file and has no held-out values")

    model, X, y = price_model()
    found, _ = looked_at(sure(model, predict_interval=refuse), X, y)
    assert found.intervals is None
    assert found.absent == ("this model came from an old file and has no held-out values",)
