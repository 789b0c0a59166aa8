"""How good a model is: the numbers against scikit-learn's and SciPy's, and what is said of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern
from fewkern import ReportSettings
from fewkern.reporting.comparison import baselines, decides_alone
from fewkern.reporting.evaluation import (
    Counted,
    Score,
    compare,
    judge,
    predict_held_out,
    recommend,
    score,
    was_fitted_to,
)
from fewkern.reporting.findings import find
from fewkern.reporting.quality import quality
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_model, churn_table, customers, iris_model, judged


def constant(truth, answer, linear=None):
    truth = np.asarray(truth)
    name = "always the mean" if truth.dtype.kind == "f" else f"always {answer!r}"
    rules = {name: np.full(len(truth), answer, dtype=truth.dtype)}
    return rules if linear is None else rules | {"a linear model": np.asarray(linear)}


def beside(subject, found):
    return baselines(found, subject.samples, subject.truth, 0)


def test_an_error_rate_has_wilsons_interval():
    found = score("x", np.arange(40) < 7)
    p, n, z = 7 / 40, 40, stats.norm.ppf(0.975)
    middle, half = (
        (p + z**2 / (2 * n)) / (1 + z**2 / n),
        z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)),
    )
    assert (found.value, found.low, found.high) == pytest.approx((p, middle - half, middle + half))
    assert score("x", np.zeros(5, dtype=bool)).high > 0.4  # no error is not certainty


def test_a_mean_error_has_students_interval():
    errors = np.random.default_rng(0).exponential(size=30)
    found = score("x", errors)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 29, errors.mean(), stats.sem(errors)))
    assert score("x", errors[:1]).high == np.inf


class TestRowsThatBelongTogether:
    groups = np.repeat(np.arange(20), 10)

    def test_intervals_count_groups(self):
        errors = np.repeat(np.random.default_rng(0).exponential(size=20), 10)
        one_each = errors[::10]
        found = Counted(groups=self.groups).interval(errors)
        assert found == pytest.approx(stats.t.interval(0.95, 19, one_each.mean(), stats.sem(one_each)))
        wrong = np.repeat(np.arange(20) < 5, 10)
        low, high = Counted(groups=self.groups).interval(wrong)
        assert high - low == pytest.approx(score("x", wrong[::10]).high - score("x", wrong[::10]).low, rel=0.1)

    def test_a_row_without_weight_does_not_count(self):
        counted, wrong = Counted(weights=np.repeat([1.0, 0.0], 100)), np.arange(200) >= 100
        assert counted.mean(wrong) == (0.0, 0.0)
        scores, _ = judge(np.zeros(200), {"x": wrong.astype(float)}, True, counted)
        assert scores[0].value == 0.0

    def test_groups_decide_whether_a_difference_is_chance(self):
        own, other = np.zeros(200), np.repeat([1.0] * 2 + [0.0] * 18, 10)
        assert compare(own, other) == "better"
        assert compare(own, other, Counted(groups=self.groups)) == "perhaps better"


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
        assert predict_held_out(subject_of(*churn_table(holdout=0)), QUICK).how == "refitted"

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
        assert "which is optimistic" in quality(found, constant(y, 0), "y").sentences[0]


class TestBaselines:
    def test_fitted_without_the_rows_that_are_judged(self):
        model, frame, y = churn_model()
        subject = subject_of(model, frame, y)
        found = predict_held_out(subject, QUICK)
        rules = beside(subject, found)
        train, test = found.train, found.positions
        most = y.iloc[train].mode()[0]
        assert set(rules[f"always {most!r}"]) == {most}
        linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(
            subject.samples[train], y.iloc[train]
        )
        np.testing.assert_array_equal(rules["a linear model"], linear.predict(subject.samples[test]))

    def test_new_rows_are_dealt_into_folds(self):
        model, _, _ = churn_model()
        frame, y = customers(100, seed=5)
        subject = subject_of(model, frame, y)
        rules = beside(subject, predict_held_out(subject, QUICK))
        # better than chance, and not fitted to the rows themselves
        assert 0.5 < np.mean(rules["a linear model"] == y) < 1.0

    def test_one_class_has_no_linear_model(self):
        subject = replace(subject_of(*iris_model()), truth=np.zeros(150, dtype=int))
        found = judged(np.zeros(10, dtype=int), np.zeros(10, dtype=int), classes=[0, 1, 2])
        assert list(beside(subject, replace(found, train=np.arange(10, 50)))) == ["always 0"]


class TestClassQuality:
    def setup_method(self):
        rng = np.random.default_rng(3)
        self.truth = np.where(rng.random(400) < 0.3, "yes", "no")
        hit = rng.random(400) < 0.8
        self.predicted = np.where(hit, self.truth, np.where(self.truth == "yes", "no", "yes"))
        p = np.clip(0.5 + 0.4 * np.where(self.predicted == "yes", 1, -1) + 0.1 * rng.normal(size=400), 0, 1)
        self.P = np.column_stack([1 - p, p])
        found = judged(self.truth, self.predicted, self.P, classes=["no", "yes"])
        self.found = quality(found, constant(self.truth, "no", self.predicted), "churn")

    def test_numbers(self):
        found = self.found
        assert found.scores[0].value == pytest.approx(1 - metrics.accuracy_score(self.truth, self.predicted))
        assert found.scores[1].value == pytest.approx(np.mean(self.truth == "yes"))
        recall = metrics.recall_score(self.truth, self.predicted, average=None)
        precision = metrics.precision_score(self.truth, self.predicted, average=None)
        assert [c.recall for c in found.classes] == pytest.approx(recall)
        assert [c.precision for c in found.classes] == pytest.approx(precision)
        assert found.auc == pytest.approx(metrics.roc_auc_score(self.truth == "yes", self.P[:, 1]))

    def test_sentences(self):
        right = int((self.truth == self.predicted).sum())
        yes, found = int((self.truth == "yes").sum()), int(((self.truth == "yes") & (self.predicted == "yes")).sum())
        said = self.found.sentences
        first = f"It predicts churn correctly for {right} of 400 rows it had not seen: {right / 4:.1f}%"
        assert said[0].startswith(first)
        common = f"{np.mean(self.truth == 'no'):.1%}"
        assert said[1] == f"Always predicting 'no' is right for {common} of rows; this model is clearly better."
        assert said[2] == f"A linear model is right for {right / 4:.1f}% of rows; this model is no better."
        assert said[3] == f"It finds {found} of {yes} rows of class 'yes' ({found / yes:.0%})."


def of_two(truth, said):
    return quality(judged(truth, said, classes=["no", "yes"]), constant(truth, "no"), "churn")


def test_never_predicted():
    found = of_two(["no"] * 299 + ["yes"], ["no"] * 300)
    assert found.verdicts == ("no better",)
    assert found.sentences[1] == "Always predicting 'no' is right for 99.7% of rows; this model is no better."
    assert found.sentences[2] == "It never predicts 'yes': it finds none of the 1 row of this class."


def test_a_little_better_may_be_chance():
    found = of_two(["no"] * 6 + ["yes"] * 2, ["no"] * 7 + ["yes"])
    assert found.verdicts == ("perhaps better",)
    assert found.sentences[1] == "With 8 rows this is a rough estimate."
    assert "this model is slightly better, which may be chance" in found.sentences[2]


@pytest.mark.parametrize(("hits", "verdict"), [(4, "perhaps better"), (5, "better")])
def test_verdict_is_mcnemars_exact_test(hits, verdict):
    """One-sided, at the level of 5%: 0.5 ** 4 = 0.06, 0.5 ** 5 = 0.03."""
    said = ["no"] * 50 + ["yes"] * hits + ["no"] * (10 - hits)
    assert of_two(["no"] * 50 + ["yes"] * 10, said).verdicts == (verdict,)


def test_a_class_that_the_model_does_not_know():
    found = of_two(["no", "yes", "maybe"], ["no", "yes", "no"])
    assert [(c.label, c.count, c.found) for c in found.classes] == [("no", 1, 1), ("yes", 1, 1), ("maybe", 1, 0)]


def test_many_classes():
    truth, said = [0, 0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 2, 1, 1]
    found = quality(judged(truth, said, classes=[0, 1, 2]), constant(truth, 2), "class")
    assert found.sentences[0].startswith("It names the right class for 5 of 7 rows")
    last = "Recall is highest for 0 (2 of 2 rows) and lowest for 2 (1 of 3 rows), most often predicted as 1 instead"
    assert found.sentences[-1] == f"{last} (2 times)."


class TestRegressionQuality:
    def test_numbers_and_sentences(self):
        rng = np.random.default_rng(0)
        truth = rng.normal(10, 5, 200)
        found = judged(truth, truth + rng.normal(size=200))
        made = quality(found, constant(truth, 10.0, truth + 3 * rng.normal(size=200)), "price")
        own = made.scores[0]
        assert own.value == pytest.approx(metrics.mean_absolute_error(truth, found.predicted))
        assert own.rmse == pytest.approx(metrics.root_mean_squared_error(truth, found.predicted))
        assert own.r2 == pytest.approx(metrics.r2_score(truth, found.predicted))
        assert made.verdicts == ("better", "better")
        text = " ".join(made.sentences)
        assert text.startswith("On 200 rows it had not seen, its predictions of price are off by")
        assert f"(R² {own.r2:.2f})" in text
        assert f"(95% CI {own.low:.3f} to {own.high:.3f}; RMSE {own.rmse:.2f})" in text
        assert (
            f"Always predicting the mean has an RMSE of {made.scores[1].rmse:.2f}; this model is clearly better."
            in text
        )

    def test_a_constant_target(self):
        truth = np.full(10, 3.0)
        made = quality(judged(truth, truth), constant(truth, 3.0), "y")
        assert np.isnan(made.scores[0].r2)
        assert not any("variance" in sentence for sentence in made.sentences)


@pytest.mark.parametrize("names", [[True, False], [1.0, 2.0], pd.Categorical(["a", "b"])])
def test_labels_may_be_of_any_type(names):
    y = pd.Series(list(names) * 30, dtype="category" if isinstance(names, pd.Categorical) else None)
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.arange(60)[:, None] % 2
    subject = subject_of(fewkern.FeatureVectorDiscriminant(max_vectors=4).fit(X, y), X, y)
    found = predict_held_out(subject, QUICK)
    assert quality(found, beside(subject, found), "y").scores[0].value < 0.5


@pytest.mark.parametrize(
    ("scores", "verdicts", "advice"),
    [
        ((0.1, 0.4, 0.3), ("better", "better"), "Use this model: it is clearly better than always predicting 'no' and"),
        ((0.1, 0.4), ("better",), "Use this model: it is clearly better than always predicting 'no'."),
        ((0.1, 0.4, 0.1), ("better", "no better"), "Use a linear model: it is as good, and simpler."),
        ((0.2, 0.4, 0.1), ("better", "worse"), "Use a linear model: it is clearly better, and simpler."),
        ((0.1, 0.4, 0.12), ("better", "perhaps better"), "A linear model is nearly as good, and simpler."),
        ((0.3, 0.4, 0.5), ("perhaps better", "better"), "Do not rely on it yet: only more rows can tell"),
        ((0.4, 0.4), ("no better",), "Do not use this model: it is no better than always predicting 'no'."),
        ((0.4, 0.4, 0.1), ("no better", "worse"), "than always predicting 'no'. A linear model does better."),
    ],
)
def test_recommendations(scores, verdicts, advice):
    names = ("this model", "always 'no'", "a linear model")
    assert advice in recommend(tuple(Score(name, value, 0.0, 1.0) for name, value in zip(names, scores)), verdicts)


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
