import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from fewkern.reporting.errors import calibration, confusion, curves, in_order, residuals, thresholds, worst_rows
from fewkern.reporting.evaluation import ClassLine
from fewkern.reporting.holdout import predict_held_out
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_model, price_model
from tests.reporting.test_evaluation import judged


def two_classes(n=300):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    truth = np.where(rng.random(n) < p**2, "yes", "no")
    return judged(truth, np.where(p > 0.5, "yes", "no"), np.column_stack([1 - p, p])), np.array(["no", "yes"])


def lines(found, classes):
    return tuple(ClassLine(c, int((found.truth == c).sum()), 0, 0) for c in classes)


def test_labels_are_in_the_order_of_their_numbers():
    assert in_order([10, 9, 1]) == [1, 9, 10]
    assert in_order(["10", "9", "b", "1", "a"]) == ["1", "9", "10", "a", "b"]
    assert in_order([True, False]) == [False, True]


def test_confusion():
    found = judged(["10", "9", "9", "1"], ["10", "10", "10", "1"])
    table = confusion(found, np.array(["1", "10", "9"]))
    assert table.labels == ("1", "9", "10")
    np.testing.assert_array_equal(
        table.counts, metrics.confusion_matrix(found.truth, found.predicted, labels=["1", "9", "10"])
    )
    assert table.pairs == [("9", "10", 2)]


def test_calibration_is_that_of_scikit_learn():
    found, classes = two_classes()
    curve = calibration(found, lines(found, classes), classes)
    k = int((found.truth == "yes").sum() <= 150)
    true, stated = calibration_curve(
        found.truth == classes[k], found.probabilities[:, k], n_bins=10, strategy="quantile"
    )
    assert curve.stated == pytest.approx(stated, abs=0.01)
    assert curve.true == pytest.approx(true, abs=0.05)
    assert sum(curve.counts) == 300
    gap = np.average(np.abs(np.array(curve.stated) - np.array(curve.true)), weights=curve.counts)
    assert curve.gap == pytest.approx(gap)
    assert curve.sentence.startswith(
        f"Predicted probabilities of 'yes' and observed frequencies differ by {100 * gap:.1f}% on average"
    )


def test_calibration_of_many_classes_is_that_of_the_answer():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 100)
    found = judged(rng.integers(0, 3, 100), P.argmax(axis=1), P)
    curve = calibration(found, (), np.arange(3))
    assert curve.of == "the predicted class"
    assert curve.stated[-1] == pytest.approx(np.sort(P.max(axis=1))[-10:].mean())


def test_too_few_rows_for_a_calibration():
    found, classes = two_classes(15)
    assert calibration(found, lines(found, classes), classes) is None


def test_thresholds():
    found, classes = two_classes()
    for line in thresholds(found, lines(found, classes), classes):
        said = found.probabilities[:, 1] >= line.at
        assert line.found / line.count == pytest.approx(metrics.recall_score(found.truth == "yes", said))
        assert line.found / line.called == pytest.approx(metrics.precision_score(found.truth == "yes", said))
        assert line.false_alarms == int((said & (found.truth == "no")).sum())


def test_curves():
    found, classes = two_classes()
    both = curves(found, lines(found, classes), classes)
    area = metrics.auc(both.false_alarms, both.hits)
    assert area == pytest.approx(metrics.roc_auc_score(found.truth == "yes", found.probabilities[:, 1]))
    assert both.share == pytest.approx(np.mean(found.truth == "yes"))
    one = judged(["no", "no"], ["no", "no"], [[1, 0], [1, 0]])
    assert curves(one, lines(one, classes), classes) is None


def test_what_stands_out_in_residuals():
    rng = np.random.default_rng(0)
    truth = np.linspace(1, 100, 300)
    said = residuals(judged(truth, truth + 9), "price").sentences
    assert said[1] == "On average they are too high by 9."
    said = residuals(judged(truth, truth + 0.2 * truth * rng.normal(size=300)), "price").sentences
    assert said[-1].startswith("They are least accurate where the predicted price is largest")
    calm = residuals(judged(truth, truth + rng.normal(size=300)), "price").sentences
    assert len(calm) == 1
    assert "off by less than 1, nine of ten by less than 1." in residuals(judged(truth, truth - 1), "x").sentences[0]


def test_worst_rows():
    model, X, y = price_model()
    subject = subject_of(model, X, y)
    found = predict_held_out(subject, QUICK)
    gaps = np.abs(found.predicted - found.truth)
    worst = worst_rows(found, subject.task)
    assert [w.position for w in worst] == found.positions[np.argsort(-gaps)[:10]].tolist()
    assert all(w.how[0] in "+−" for w in worst)
    model, frame, y = churn_model()
    subject = subject_of(model, frame, y)
    found = predict_held_out(subject, QUICK)
    worst = worst_rows(found, subject.task)
    assert all(w.truth != w.predicted for w in worst)
    shares = [float(w.how.rstrip("%")) for w in worst]
    assert shares == sorted(shares, reverse=True)
