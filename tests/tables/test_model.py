"""One object for a table: fit, predict, judge, keep, save."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import fewkern
from fewkern import TableModel
from fewkern.datasets import make_sinc
from fewkern.tables import BY_CLASS, MODELS, fitting
from fewkern.tables.encoder import TableWarning
from tests.tables.examples import banana, messy

QUICK = {"max_vectors": 8, "holdout": 0}


@pytest.fixture(scope="module")
def model():
    return TableModel(max_vectors=8).fit(messy(), "side")


def test_a_messy_table(model):
    frame = messy()
    assert (model.task_, model.target_, model.model_) == ("classify", "side", "kernel")
    assert model.encoder_.names == [
        "x0", "x1", "colour=blue", "colour=red", "when (day)", "when (week sin)", "when (week cos)", "on",
    ]  # fmt: skip
    assert model.predict(frame).shape == (120,)
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)
    assert model.classes_.tolist() == ["left", "right"]
    known = frame["side"].notna()
    assert model.score(frame) == np.mean(model.predict(frame)[known] == frame["side"][known])
    assert model.score(frame[known], frame["side"][known]) == model.score(frame)
    # the columns that are not used need not be there
    few = frame[["when", "on", "x1", "colour", "x0"]]
    np.testing.assert_array_equal(model.predict(few), model.predict(frame))
    np.testing.assert_array_equal(model.predict(pl.from_pandas(few)), model.predict(frame))
    assert is_classifier(model)
    assert not is_regressor(model)


def test_rows_held_out_are_those_of_the_table(model):
    held, frame = model.held_out_, messy()
    assert held.truth.tolist() == frame["side"].iloc[held.rows].tolist()
    assert 11 not in held.rows
    assert len(held.probabilities) == len(held.rows) == model.judgement_.rows == 24
    assert model.judgement_.value == np.mean(held.truth != held.predicted)
    assert model.facts_.rows == 119


def test_held_out_rows_are_not_looked_at():
    """Neither columns nor model of the held-out error: a held-out row changes no other prediction."""
    frame = banana(60)
    settings = {"model": "discriminant", "holdout": 0.25, "max_vectors": 5}
    one = TableModel(**settings).fit(frame, "side").held_out_
    frame.loc[one.rows[0], "x0"] = 1e6
    other = TableModel(**settings).fit(frame, "side").held_out_
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.probabilities[1:], other.probabilities[1:])


def test_large_tables_are_fitted_once(monkeypatch):
    monkeypatch.setattr(fitting, "_KEEP_ROWS", 100)
    fitted = TableModel(model="discriminant", max_vectors=5).fit(banana(120), "side")
    assert len(fitted.facts_.seconds) == 1
    assert fitted.facts_.rows == 96
    assert not set(fitted.kept()["row"]) & set(fitted.held_out_.rows)
    assert any("fitted to 96 of 120 rows" in note for note in fitted.notes_)
    np.testing.assert_array_equal(fitted.predict(banana(120).iloc[fitted.held_out_.rows]), fitted.held_out_.predicted)
    everything = TableModel(max_vectors=5, holdout=0).fit(banana(120), "side")
    assert everything.facts_.rows == 120


def test_kept_vectors_are_rows_of_the_table(model):
    frame, moved = messy(), model.kept()
    assert model.estimator_.indices_ is None
    assert moved.columns.tolist() == ["x0", "x1", "colour", "when", "on", "coefficient"]
    assert len(moved) == model.estimator_.n_vectors_
    unmoved = TableModel(model="discriminant", **QUICK).fit(frame, "side")
    kept = unmoved.kept()
    assert kept.columns.tolist() == ["row", "x0", "x1", "colour", "when", "on", "side", "coefficient"]
    assert len(kept) == unmoved.estimator_.n_vectors_
    rows = frame.iloc[kept["row"].astype(int)]
    np.testing.assert_allclose(kept["x0"].astype(float), rows["x0"], rtol=1e-9)
    for name in ("when", "on", "side", "colour"):
        assert kept[name].fillna("none").tolist() == rows[name].fillna("none").tolist()


def test_kept_rows_of_many_targets():
    """pandas warns where columns come one by one, which takes a time that grows with the square of their number."""
    x = np.linspace(-9, 9, 60)
    frame = pd.DataFrame({"x": x} | {f"y{k}": np.sin(k + x) for k in range(120)})
    kept = TableModel(**QUICK).fit(frame, list(frame)[1:]).kept()
    assert kept.columns.tolist()[-120:] == [f"coefficient of y{k}" for k in range(120)]


def test_names_of_kept_vectors_do_not_collide():
    frame = banana().rename(columns={"x0": "row", "x1": "coefficient"})
    kept = TableModel(model="discriminant", **QUICK).fit(frame, "side").kept()
    assert kept.columns.tolist() == ["row_", "row", "coefficient", "side", "coefficient_"]


def test_regression():
    X, y = make_sinc(80, noise=0.1)
    frame = pd.DataFrame({"x": X[:, 0], "value": y})
    fitted = TableModel().fit(frame, "value")
    assert is_regressor(fitted)
    assert fitted.task_ == "regress"
    assert fitted.score(frame) > 0.8
    assert 0.8 < fitted.facts_.cross_validated_r2 < 1
    assert fitted.judgement_.verdict.startswith("better than always answering the mean, ")
    assert fitted.novelty_threshold(0.1) == fitted.estimator_.novelty_threshold(0.1)
    for method in ("predict_proba", "predict_set", "score_samples"):
        assert not hasattr(fitted, method)
    with pytest.raises(AttributeError, match="has no attribute 'transform'") as caught:
        fitted.transform(frame)
    assert "this model (task 'regress', KernelRegressor) has no transform" in str(caught.value.__cause__)


def test_the_distribution_of_a_number_and_pvalues():
    frame = banana(200).assign(price=lambda t: np.exp(t["x0"] / 2))[["x0", "x1", "price"]]
    model = TableModel(max_vectors=5).fit(frame, "price")
    estimator, X = model.estimator_, model.encoder_.encode(frame).values
    low, high = model.predict_interval(frame, 0.8).T
    np.testing.assert_array_equal(model.predict_quantile(frame, 0.1), low)
    np.testing.assert_array_equal(model.predict_std(frame), estimator.predict_std(X))
    np.testing.assert_allclose(model.cdf(frame, high), 0.9, atol=0.01)
    np.testing.assert_array_equal(model.novelty_pvalue(frame), estimator.novelty_pvalue(X))
    density = TableModel(task="density").fit(frame)
    assert not hasattr(density, "cdf")  # that of its estimator answers another question


def test_reduction():
    frame = messy()
    plain = TableModel(task="reduce", max_vectors=20).fit(frame)
    assert plain.transform(frame).shape == (120, 2)
    assert "columns 'side', 'colour' hold text and take part as categories" in " ".join(plain.notes_)
    shown = TableModel(task="reduce", max_vectors=20, n_components=3).fit(frame, "side")
    assert shown.transform(frame.drop(columns="side")).shape == (120, 3)
    assert shown.target_ == "side"
    with pytest.raises(AttributeError, match="a model that reduces has no score"):
        shown.score(frame)


def test_a_density_never_sees_a_value_in_place_of_a_missing_one():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    frame.loc[:59, "b"] = np.nan
    fitted = TableModel(task="density").fit(frame)
    assert "60 rows with missing values left out: a density is of complete rows" in fitted.notes_
    assert fitted.facts_.rows == 140
    complete = TableModel(task="density").fit(frame.iloc[60:])
    np.testing.assert_array_equal(fitted.score_samples(frame.iloc[60:]), complete.score_samples(frame.iloc[60:]))
    with pytest.warns(TableWarning, match="60 of 200 rows have a missing value and so no log density"):
        values = fitted.score_samples(frame)
    assert np.isnan(values[:60]).all()
    assert np.isfinite(values[60:]).all()
    assert fitted.score(frame.iloc[60:]) == np.mean(values[60:])
    assert fitted.kept().columns.tolist()[-2:] == ["weight", "bandwidth"]
    low, high = (f"{width:.3g}" for width in (fitted.kept()["bandwidth"].min(), fitted.kept()["bandwidth"].max()))
    assert dict(fitted.summary())["kernel"].startswith(f"normal, bandwidth {low}" + f" to {high}" * (high != low))
    with pytest.raises(ValueError, match="only 3 of 200 rows have no missing value"):
        TableModel(task="density").fit(frame.assign(b=frame["b"].where(frame.index >= 197)))


def test_the_habits_of_scikit_learn():
    frame = banana()
    X, y = frame[["x0", "x1"]], frame["side"]
    asked = TableModel(task="classify", **QUICK)
    assert clone(asked).get_params() == asked.get_params()
    assert cross_val_score(asked, X, y, cv=3).mean() > 0.7
    by_array = clone(asked).fit(X.to_numpy(), y.to_numpy())
    assert by_array.target_ == "target"
    assert by_array.score(X.to_numpy(), y) > 0.8
    assert clone(asked).fit(X, y).target_ == "side"
    with pytest.raises(NotFittedError):
        asked.predict(X)
    with pytest.raises(NotFittedError):
        asked.save("m.npz", keep_path=False)
    assert not hasattr(asked, "classes_")


def test_saved_models_come_back(model, tmp_path):
    frame = messy()
    again = fewkern.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert (again.summary(), again.notes_, again.get_params()) == (model.summary(), model.notes_, model.get_params())
    pd.testing.assert_frame_equal(again.kept(), model.kept())
    np.testing.assert_array_equal(again.held_out_.truth, model.held_out_.truth)
    small = model.save(tmp_path / "s", keep_path=False)
    assert small.stat().st_size < (tmp_path / "m.npz").stat().st_size
    np.testing.assert_array_equal(fewkern.load(small).predict_proba(frame), model.predict_proba(frame))
    assert model.estimator_.path_ is not None
    assert not hasattr(fewkern.load(small).estimator_, "path_")


@pytest.mark.parametrize(
    ("task", "name"),
    [(task, name) for task, names in MODELS.items() for name in names if (task, name) != ("classify", "kernel")],
)
def test_every_model_is_saved_and_comes_back(task, name, tmp_path):
    frame = banana(80)
    target = {"classify": "side", "regress": "x1"}.get(task, "side" if name in BY_CLASS else None)
    frame = frame if target else frame[["x0", "x1"]]
    fitted = TableModel(task=task, model=name, holdout=0.2 if task == "density" else 0).fit(frame, target)
    again = fewkern.load(fitted.save(tmp_path / "m"))
    method = {"reduce": "transform", "density": "score_samples"}.get(task, "predict")
    np.testing.assert_array_equal(getattr(again, method)(frame), getattr(fitted, method)(frame))
    assert len(again.summary()) >= 5
    assert (len(again.kept()) > 0) == bool(fitted.facts_.vectors)


def test_verbose_says_what_is_fitted(capsys):
    TableModel(max_vectors=5, verbose=True).fit(banana(60), "side")
    said = capsys.readouterr().err
    for step in ("1/2 held-out check on 12 rows", "2/2 all 60 rows"):
        assert f"{step}, KernelClassifier: growing and moving vectors, by folds: " in said


def test_summary_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        facts = dict(TableModel(max_vectors=5).fit(banana(), "side").summary())
    assert re.fullmatch(r"Gaussian, learned widths, [\d.]+ to [\d.]+ \(of prepared columns\)", facts["kernel"])
    assert "for the held-out check" in facts["fitted in"]
    assert "(24 rows the model did not see; 95% CI " in facts["held-out error"]
    assert "rows of class " in facts["found"]
    assert re.match(r"always answering 'left': [\d.]+%; a linear model: [\d.]+%", facts["baselines"])


@pytest.mark.parametrize(
    ("settings", "target", "message"),
    [
        ({"task": "guess"}, "side", "'task' parameter of TableModel must be a str among"),
        ({"model": "pca"}, "side", "for the task 'classify' expected kernel, .*got 'pca'"),
        ({"holdout": 1.0}, "side", "'holdout' parameter"),
        ({"prefer": "cheap"}, "side", "'prefer' parameter"),
        ({"task": "reduce", "prefer": "sparse"}, None, "prefer: the model 'pca' has no such setting"),
        ({}, "Side", r"target: there is no column 'Side'; did you mean 'side'\?"),
        ({}, [1, 2, 3], "target: expected one value for each of 120 rows, got 3 values"),
        ({}, np.zeros((120, 1, 1)), r"target: .* got an array of the shape \(120, 1, 1\)"),
        ({"drop": ["x0", "x1"]}, "side", "no usable column besides the target"),
        ({"task": "reduce", "model": "embedding"}, "x1", "the target 'x1' holds numbers, not classes"),
    ],
)
def test_problems(settings, target, message):
    with pytest.raises(ValueError, match=message):
        TableModel(**settings).fit(banana(), target)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (banana(3), "the table has 3 usable rows; fitting needs at least 4"),
        (banana()[["side"]], "no column besides the target"),
        (pd.DataFrame(index=range(5)), "the table has no columns"),
    ],
)
def test_tables_that_cannot_be_fitted(frame, message):
    with pytest.raises(ValueError, match=message):
        TableModel().fit(frame)
    assert len(TableModel(model="discriminant", **QUICK).fit(banana(4), "side").predict(banana(4))) == 4


@pytest.mark.parametrize(
    ("change", "y", "message"),
    [
        (lambda f: f.drop(columns="side"), None, "the table has no column 'side' to compare with"),
        (lambda f: f.assign(side=None), None, "no row of the table has a target 'side'"),
        (lambda f: f, ["left", "right"], "expected one value for each of 120 rows, got 2 values"),
    ],
)
def test_tables_without_a_truth(model, change, y, message):
    with pytest.raises(ValueError, match=message):
        model.score(change(messy()), y)


def test_sparse_input_is_refused_with_a_way_out():
    frame = banana()
    labels = sp.csr_matrix((frame["side"] == "left").to_numpy(dtype=float)[:, None])
    with pytest.raises(TypeError, match=r"target: expected one value per row, got a sparse array; pass .*\.ravel"):
        TableModel(**QUICK).fit(frame[["x0", "x1"]], labels)
    with pytest.raises(TypeError, match=r"got a sparse matrix; pandas.DataFrame.sparse.from_spmatrix makes one"):
        TableModel(**QUICK).fit(sp.csr_matrix((120, 2**31)), frame["side"])


def test_explain_adds_up_the_features_of_a_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=120), "color": rng.choice(["red", "green", "blue"], 120)})
    frame["price"] = 100 * frame["size"] ** 2 + 50 * (frame["color"] == "red")
    model = TableModel(holdout=0, n_vectors=10).fit(frame, "price")
    found = model.explain(frame)
    assert found.feature_names == ("size", "color")
    assert found.values.shape == (120, 2)
    np.testing.assert_allclose(found.predictions, model.predict(frame), atol=1e-9)
    red = frame["color"] == "red"
    assert found.values[red, 1].mean() - found.values[~red, 1].mean() == pytest.approx(50, rel=0.3)
    beside = model.explain(frame, background=frame[red])
    assert beside.baseline == pytest.approx(model.predict(frame[red]).mean())
    assert model.encoder_.features_of("color") == slice(1, 4)


def test_explain_numbers_components():
    table = messy(80)[["x0", "x1", "colour"]].dropna()
    model = TableModel(task="reduce").fit(table)
    found = model.explain(table)
    assert found.feature_names == ("x0", "x1", "colour")
    assert found.output_names == (0, 1)
    np.testing.assert_allclose(found.predictions, model.transform(table), atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*are among the samples that the model keeps")
@pytest.mark.parametrize("target", ["price", ["price", "x1"]])
def test_rows_are_forgotten_in_the_units_of_the_table(target, tmp_path):
    """Rows that spoil the model, gaps and categories included, leave it as it is without them."""
    frame = messy().assign(price=lambda t: t["x1"] * 1000).drop(columns="side")
    spoiled = frame.head(30).assign(price="9,000")
    model = TableModel(max_vectors=8, holdout=0).fit(frame, target, sample_weight=np.ones(120))
    before, (rows, features) = model.predict(frame), (model.facts_.rows, model.encoder_.encode(spoiled).values)
    targets = np.full(30, 9000.0) if target == "price" else np.column_stack([np.full(30, 9000.0), spoiled["x1"]])
    model.estimator_.partial_fit(features, targets)
    assert np.abs(model.predict(frame) - before).max() > 10
    model = fewkern.load(model.save(tmp_path / "m", with_sums=True))
    again = model.forget(spoiled.assign(w="1"), sample_weight="w")
    assert again is model
    np.testing.assert_allclose(model.predict(frame), before, atol=1e-5)
    assert model.facts_.rows == rows - 30
    assert not {"price", "row"} & set(model.kept().columns)
    assert model.held_out_ is None


@pytest.mark.filterwarnings("ignore:.*are among the samples that the model keeps")
def test_classes_are_forgotten_and_rows_without_one_are_ignored():
    frame = messy()
    fitted = TableModel(max_vectors=5, holdout=0).fit(frame, "side")
    if fitted.estimator_.loss_ == "logistic":
        with pytest.raises(ValueError, match="logistic regression, which do not come from sums"):
            fitted.forget(frame.head(20))
        fitted.estimator_.partial_fit(fitted.encoder_.encode(frame).values[:5], frame["side"][:5])
    expected = copy.deepcopy(fitted.estimator_).forget(
        fitted.encoder_.encode(frame).values[[*range(11), *range(12, 20)]], frame["side"].drop(11)[:19]
    )
    fitted.forget(frame.head(20))
    np.testing.assert_allclose(fitted.predict_proba(frame), expected.predict_proba(fitted.encoder_.transform(frame)))


def test_what_cannot_be_forgotten(tmp_path):
    frame = messy().assign(price=lambda t: t["x1"] * 1000).drop(columns="side")
    fitted = TableModel(max_vectors=5, holdout=0).fit(frame, "price")
    with pytest.raises(ValueError, match="the table has no column 'price' to compare with"):
        fitted.forget(frame.drop(columns="price"))
    with pytest.raises(ValueError, match="no rows could have the sums that would be left"):
        fitted.forget(frame.head(20).assign(price=1e9))
    with pytest.raises(ValueError, match="came from a file, which holds no sums over its samples"):
        fewkern.load(fitted.save(tmp_path / "m")).forget(frame.head(5))
    discriminant = TableModel(model="discriminant", **QUICK).fit(messy(), "side")
    assert not hasattr(discriminant, "forget")


def test_empty_tables_have_empty_answers(model):
    none = messy().head(0)
    assert model.predict(none).shape == (0,)
    assert model.predict_proba(none).shape == (0, 2)
    assert TableModel(task="density").fit(banana()[["x0", "x1"]]).score_samples(none).shape == (0,)
