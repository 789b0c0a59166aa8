"""What a model says about its own certainty, where it says anything."""

import numpy as np
import pytest

from fewkern.reporting.holdout import predict_held_out
from fewkern.reporting.subject import subject_of
from fewkern.reporting.uncertainty import uncertainty
from tests.reporting.helpers import QUICK, churn_model, price_model


@pytest.fixture
def sure(monkeypatch):
    """Give a fitted model methods of its own."""

    def add(model, **methods):
        for name, method in methods.items():
            monkeypatch.setattr(model, name, method, raising=False)
        return model

    return add


def looked_at(model, X, y):
    subject = subject_of(model, X, y)
    return uncertainty(subject, predict_held_out(subject, QUICK)), subject


def test_intervals(sure):
    model, X, y = price_model()

    def predict_interval(rows, coverage):
        assert coverage == 0.9
        center = model.predict(rows)
        return np.column_stack([center - 8000, center + 8000])

    found, subject = looked_at(sure(model, predict_interval=predict_interval), X, y)
    judged = predict_held_out(subject, QUICK)
    inside = np.abs(model.predict(X.iloc[judged.positions]) - judged.truth) <= 8000
    assert found.intervals.covered == pytest.approx(inside.mean())
    assert "in 9 of 10 cases, the model gives ± 8,000 around a typical prediction" in found.intervals.sentence
    assert f"{100 * inside.mean():.1f}% lie inside" in found.intervals.sentence
    assert found.sets is None


def test_sets_and_novelty(sure):
    model, frame, y = churn_model()
    methods = {
        "predict_set": lambda rows, coverage: model.predict_proba(rows) > 0.3,
        "novelty": lambda rows: np.linspace(0, 1, len(rows)),
        "novelty_threshold": lambda false_alarms: 1 - false_alarms,
    }
    found, subject = looked_at(sure(model, **methods), frame, y)
    judged = predict_held_out(subject, QUICK)
    member = model.predict_proba(frame.iloc[judged.positions]) > 0.3
    assert found.sets.sizes == tuple(np.bincount(member.sum(axis=1), minlength=3))
    truth = judged.truth[:, None] == model.classes_
    assert found.sets.covered == pytest.approx((member & truth).any(axis=1).mean())
    assert "commits itself to one class" in found.sets.sentence
    assert "in 5% of all cases (novelty above 0.95)" in found.novelty.sentence


def test_a_model_that_has_none_may_say_why(sure):
    def refuse(rows, coverage):
        raise AttributeError("this model came from an old file and has no held-out values")

    model, X, y = price_model()
    found, _ = looked_at(sure(model, predict_interval=refuse), X, y)
    assert found.intervals is None
    assert found.absent == ("this model came from an old file and has no held-out values",)
