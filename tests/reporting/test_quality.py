"""Where a model errs, and what it states about its own uncertainty."""

import re

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from fewkern.reporting.evaluation import predict_held_out
from fewkern.reporting.formatting import percent
from fewkern.reporting.quality import errors, uncertainty, worst_rows
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_model, judged, price_model


def two_classes(n=300):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    truth = np.where(rng.random(n) < p**2, "yes", "no")
    return judged(truth, np.where(p > 0.5, "yes", "no"), np.column_stack([1 - p, p]), classes=["no", "yes"])


def test_confusion():
    found = judged(["10", "9", "9", "1"], ["10", "10", "10", "1"], classes=["1", "10", "9"])
    table = errors(found, "x")
    np.testing.assert_array_equal(
        table.counts, metrics.confusion_matrix(found.truth, found.predicted, labels=["1", "9", "10"])
    )
    assert table.confusions == [("9", "10", 2)]


def test_calibration_is_that_of_scikit_learn():
    found = two_classes()
    curve = errors(found, "x").calibration
    true, stated = calibration_curve(found.truth == "yes", found.probabilities[:, 1], n_bins=10, strategy="quantile")
    assert curve.stated == pytest.approx(stated, abs=0.01)
    assert curve.true == pytest.approx(true, abs=0.05)
    assert sum(curve.counts) == 300
    gap = np.average(np.abs(curve.stated - curve.true), weights=curve.counts)
    said = f"Probabilities of 'yes' differ from observed frequencies by {100 * gap:.1f}% on average"
    assert errors(found, "x").sentences[0] == f"{said}."
    assert errors(two_classes(15), "x").calibration is None  # too few rows


def test_calibration_of_many_classes_is_that_of_the_answer():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 100)
    found = errors(judged(rng.integers(0, 3, 100), P.argmax(axis=1), P, classes=[0, 1, 2]), "x")
    assert found.calibration.of == "the predicted class"
    assert found.calibration.stated[-1] == pytest.approx(np.sort(P.max(axis=1))[-10:].mean())
    assert found.thresholds == ()


def test_thresholds():
    found = two_classes()
    for line in errors(found, "x").thresholds:
        said = found.probabilities[:, 1] >= line.label
        assert line.recall == pytest.approx(metrics.recall_score(found.truth == "yes", said))
        assert line.precision == pytest.approx(metrics.precision_score(found.truth == "yes", said))
    one = judged(["no", "no"], ["no", "no"], [[1, 0], [1, 0]], classes=["no", "yes"])
    assert errors(one, "x").thresholds == ()


def test_what_stands_out_in_residuals():
    rng = np.random.default_rng(0)
    truth = np.linspace(1, 100, 300)

    def said(predicted):
        return errors(judged(truth, predicted), "price").sentences

    assert said(truth + 9)[1] == "On average they are 9 too high."
    uneven = said(truth + 0.2 * truth * rng.normal(size=300))
    assert uneven[-1].startswith("They are least accurate where the predicted price is largest")
    assert len(said(truth + rng.normal(size=300))) == 1
    assert "off by less than 1, 90% by less than 1." in said(truth - 1)[0]


def held_out(model, X, y):
    subject = subject_of(model, X, y)
    return subject, predict_held_out(subject, QUICK)


def test_worst_rows():
    _, found = held_out(*price_model())
    gaps = np.abs(found.predicted - found.truth)
    worst = worst_rows(found)
    assert [position for position, _ in worst] == found.positions[np.argsort(-gaps)[:10]].tolist()
    assert all(how[0] in "+−" for _, (_, _, how) in worst)
    _, found = held_out(*churn_model())
    worst = worst_rows(found)
    assert all(truth != predicted for _, (truth, predicted, _) in worst)
    shares = [float(how.rstrip("%")) for _, (_, _, how) in worst]
    assert shares == sorted(shares, reverse=True)


def test_intervals_are_those_of_the_model():
    model, X, y = price_model()
    subject, predictions = held_out(model, X, y)
    found = uncertainty(subject, predictions)
    samples, truth = model[:-1].transform(X.iloc[predictions.positions]), predictions.truth
    low, high = model[-1].predict_interval(samples, coverage=0.9).T
    np.testing.assert_array_equal(found.intervals.inside, (low <= truth) & (truth <= high))
    said = found.sentences[0]
    assert f"{percent(np.mean(truth < low))} of the true values lie below their interval" in said
    assert f"{percent(np.mean(truth > high))} above. It contains the true value for" in said
    assert said.endswith("of these 40 rows. The model was fitted to them; for new rows expect 90%.")
    assert found.set_sizes == ()


def test_sets_and_novelty_are_those_of_the_model():
    model, frame, y = churn_model()
    subject, predictions = held_out(model, frame, y)
    found = uncertainty(subject, predictions)
    member = model[-1].predict_set(subject.samples[predictions.positions], coverage=0.9)
    assert found.set_sizes == tuple(np.bincount(member.sum(axis=1), minlength=3))
    sets, novelty = found.sentences
    assert f"is a single class for {percent(np.mean(member.sum(axis=1) == 1), 0)} of rows" in sets
    above = model[-1].novelty(subject.samples) > model[-1].novelty_threshold(0.05)
    assert f"{percent(np.mean(above))} of these rows are flagged as unlike the training data" in novelty


def test_a_model_that_has_none_may_say_why(monkeypatch):
    def refuse(samples, coverage):
        raise AttributeError("this model came from an old file and has no held-out values")

    model, X, y = price_model()
    monkeypatch.setattr(model[-1], "predict_interval", refuse, raising=False)
    found = uncertainty(*held_out(model, X, y))
    assert found.intervals is None
    assert found.absent == ("this model came from an old file and has no held-out values",)


def test_the_crps_of_a_point_is_its_absolute_error(monkeypatch):
    model, X, y = price_model()

    def point(samples, q):
        return model[-1].predict(samples)

    monkeypatch.setattr(model[-1], "predict_quantile", point, raising=False)

    subject, predictions = held_out(model, X, y)
    (sentence,) = (text for text in uncertainty(subject, predictions).sentences if "CRPS" in text)
    crps, error = re.search(r"distributions is ([\d,.]+); .* score ([\d,.]+), their", sentence).groups()
    assert crps == error
