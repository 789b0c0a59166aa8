"""Which rows a report judges a model by, its baselines, and what the page says of both."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern
from fewkern import ReportSettings
from fewkern.reporting.comparison import decides_alone, judge_predictions
from fewkern.reporting.evaluation import predict_held_out, was_fitted_to
from fewkern.reporting.findings import find
from fewkern.reporting.formatting import number
from fewkern.reporting.judgement import judge
from fewkern.reporting.quality import quality
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_model, churn_table, customers, iris_model, judged


def beside(subject, found):
    return judge_predictions(found, subject.samples, subject.truth, 0)


def quality_of(truth, predicted, answer, linear=None, probabilities=None, classes=None):
    found = judged(truth, predicted, probabilities, classes=classes)
    answers = {"this model": found.predicted, f"always answering {answer!r}": np.full(len(truth), answer)}
    answers |= {} if linear is None else {"a linear model": linear}
    return quality(found, judge(found.truth, answers, classes=found.classes), "churn")


class TestHowRowsAreJudged:
    def test_rows_of_the_fit_are_held_out_from_a_copy(self):
        model, frame, y = churn_model()
        found = predict_held_out(subject_of(model, frame, y), QUICK)
        assert found.how == "refitted"
        assert len(found.truth) == 48
        assert not set(found.positions) & set(found.train)
        copy = clone(model).fit(frame.iloc[found.train], y.iloc[found.train])
        np.testing.assert_array_equal(found.predicted, copy.predict(frame.iloc[found.positions]))
        np.testing.assert_allclose(found.probabilities, copy.predict_proba(frame.iloc[found.positions]))

    def test_the_record_of_a_table_model(self):
        model, table = churn_table()
        subject = subject_of(model, table)
        assert predict_held_out(subject, ReportSettings(rows="fitted")).how == "held out"
        assert predict_held_out(subject, ReportSettings(rows="new")).how == "new"
        found = predict_held_out(subject, QUICK)
        assert found.how == "held out"
        np.testing.assert_array_equal(found.predicted, model.held_out_.predicted)
        assert len(found.train) == len(table) - len(found.positions)
        other, z = customers(seed=9)  # the record of another table is not used
        assert predict_held_out(subject_of(model, other.assign(churn=z)), QUICK).how == "new"
        bare, _ = churn_table(holdout=0)
        for rows in (table, pl.from_pandas(table)):
            assert predict_held_out(subject_of(bare, rows), QUICK).how == "refitted"

    @pytest.mark.parametrize("moved", [False, True])
    @pytest.mark.parametrize("kind", ["classes", "three classes", "numbers"])
    def test_rows_of_the_fit_are_recognized(self, moved, kind):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 2))
        value = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=120)
        y = {"classes": value > 0, "three classes": np.digitize(value, [-0.5, 0.5]), "numbers": value}[kind]
        if kind == "numbers":
            cls = fewkern.KernelRegressor if moved else fewkern.FeatureVectorRegressor
        else:
            cls = fewkern.KernelClassifier if moved else fewkern.FeatureVectorDiscriminant
        model = cls(max_vectors=6).fit(X, y)
        assert was_fitted_to(subject_of(model, X, y))
        new = rng.permutation(120)
        assert was_fitted_to(subject_of(model, X[new], y[new]))
        assert not was_fitted_to(subject_of(model, X + 0.01, y))

    def test_one_may_say_so(self):
        model, X, y = iris_model()
        assert predict_held_out(subject_of(model, X, y), ReportSettings(rows="new")).how == "new"
        assert predict_held_out(subject_of(model, X + 0.1, y), ReportSettings(rows="fitted")).how == "refitted"
        with pytest.raises(ValueError, match="rows must be 'auto', 'fitted' or 'new', got 'old'"):
            ReportSettings(rows="old")

    def test_too_few_rows_to_hold_any_out(self):
        X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
        model = fewkern.FeatureVectorDiscriminant(max_vectors=2).fit(X, y)
        found = predict_held_out(subject_of(model, X, y), QUICK)
        assert found.how == "fitted"
        assert (
            "which is optimistic"
            in quality(found, judge(y, {"this model": y, "0": 0 * y}, classes=[0, 1]), "y").sentences[0]
        )


class TestBaselines:
    def test_fitted_without_the_rows_that_are_judged(self):
        model, frame, y = churn_model()
        subject = subject_of(model, frame, y)
        found = predict_held_out(subject, QUICK)
        made = beside(subject, found)
        train, test = found.train, found.positions
        most = y.iloc[train].mode()[0]
        linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(
            subject.samples[train], y.iloc[train]
        )
        assert made.baseline_name == f"always answering {most!r}"
        assert made.baseline == np.mean(y.iloc[test] != most)
        assert made.linear == 1 - linear.score(subject.samples[test], y.iloc[test])

    def test_new_rows_are_dealt_into_folds(self):
        model, _, _ = churn_model()
        frame, y = customers(100, seed=5)
        subject = subject_of(model, frame, y)
        # better than chance, and not fitted to the rows themselves
        assert 0 < beside(subject, predict_held_out(subject, QUICK)).linear < 0.5

    def test_one_class_has_no_linear_model(self):
        subject = replace(subject_of(*iris_model()), truth=np.zeros(150, dtype=int))
        found = judged(np.zeros(10, dtype=int), np.zeros(10, dtype=int), classes=[0, 1, 2])
        assert beside(subject, replace(found, train=np.arange(10, 50))).baselines == {"always answering 0": 0.0}


def test_quality_of_two_classes():
    rng = np.random.default_rng(3)
    truth, P = np.where(rng.random(400) < 0.3, "yes", "no"), rng.dirichlet([1, 1], 400)
    predicted = np.where(rng.random(400) < 0.8, truth, "no")
    found = quality_of(truth, predicted, "no", predicted, P, ["no", "yes"])
    assert [c.recall for c in found.classes] == pytest.approx(metrics.recall_score(truth, predicted, average=None))
    precision = metrics.precision_score(truth, predicted, average=None)
    assert [c.precision for c in found.classes] == pytest.approx(precision)
    assert found.auc == pytest.approx(metrics.roc_auc_score(truth == "yes", P[:, 1]))
    right, rows = int((truth == predicted).sum()), int((truth == "yes").sum())
    hits = int(((truth == "yes") & (predicted == "yes")).sum())
    first, second, third = found.sentences
    assert first.startswith(f"It predicts churn correctly for {right} of 400 rows it had not seen: {right / 4:.1f}%")
    common = f"Always answering 'no' is right for {np.mean(truth == 'no'):.1%} of rows"
    assert second == f"{common}; a linear model is right for {right / 4:.1f}% of rows."
    assert third == f"It finds {hits} of {rows} rows of class 'yes'; {hits} of {hits} answers 'yes' are right."
    assert found.recommendation == "This model is better than always answering 'no'; use a linear model, it is as good."


def test_few_rows_are_a_rough_estimate_and_may_have_classes_that_the_model_does_not_know():
    found = quality_of(["no", "yes", "maybe"], ["no", "yes", "no"], "no", classes=["no", "yes"])
    assert [(c.label, c.count, c.found) for c in found.classes] == [("no", 1, 1), ("yes", 1, 1), ("maybe", 1, 0)]
    assert found.sentences[1] == "With 3 rows this is a rough estimate."


def test_quality_of_many_classes():
    found = quality_of([0, 0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 2, 1, 1], 2, classes=[0, 1, 2])
    last = "Recall is highest for 0 (2 of 2 rows) and lowest for 2 (1 of 3 rows), most often predicted as 1 instead"
    assert found.sentences[-1] == f"{last} (2 times)."


def test_quality_of_numbers():
    rng = np.random.default_rng(0)
    truth = rng.normal(10, 5, 200)
    found = quality_of(truth, truth + rng.normal(size=200), 10.0, truth + 3 * rng.normal(size=200))
    own, text = found.judgement, " ".join(found.sentences)
    assert text.startswith("On 200 rows it had not seen, its predictions of churn are off by 0.")
    assert f"(RMSE {number(own.value)}; 95% CI {number(own.low)} to {number(own.high)})" in text
    assert f"The model explains {own.r2:.0%} of the variance of churn (R² {own.r2:.2f})" in text
    assert f"Always answering 10.0 has an RMSE of {own.baseline:.2f}; a linear model has an RMSE of" in text
    same = np.full(10, 3.0)
    assert not any("variance" in sentence for sentence in quality_of(same, same, 3.0).sentences)


@pytest.mark.parametrize("names", [[True, False], [1.0, 2.0], pd.Categorical(["a", "b"])])
def test_labels_may_be_of_any_type(names):
    y = pd.Series(list(names) * 30, dtype="category" if isinstance(names, pd.Categorical) else None)
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.arange(60)[:, None] % 2
    subject = subject_of(fewkern.FeatureVectorDiscriminant(max_vectors=4).fit(X, y), X, y)
    found = predict_held_out(subject, QUICK)
    assert beside(subject, found).value < 0.5


@pytest.mark.parametrize("classify", [True, False])
def test_a_column_that_decides_alone(classify):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 0] = X[:, 0] > 0 if classify else X[:, 0]
    y = np.where(X[:, 0] > 0, "yes", "no") if classify else 3 * X[:, 0]
    noisy = np.where(rng.random(300) < 0.2, "no", y) if classify else y + 0.5 * rng.normal(size=300)

    def decides(column, y):
        return decides_alone((column[::2], column[1::2]), (y[::2], y[1::2]), classify)

    assert decides(X[:, :1], y)
    assert not decides(X[:, 1:], y)
    assert not decides(X[:, :1], noisy)
    assert not decides(X[:, :1], np.full(300, y[0]))  # nothing to decide


def test_a_leak_is_asked_about():
    frame, y = customers()
    leaky = frame.assign(left=(y == "yes").astype(float))
    columns = ["age", "noise", "left"]
    model = fewkern.FeatureVectorDiscriminant(max_vectors=12).fit(leaky[columns], y)
    found = find(subject_of(model, leaky[columns], y), QUICK)
    assert found.leak.startswith("Column 'left' alone predicts churn almost perfectly. Is it known before")
    model, frame, y = churn_model()
    assert find(subject_of(model, frame, y), QUICK).leak == ""
