"""Laws of columns: what no name, order or unit changes, and what becomes of rare, unknown and missing levels."""

import warnings

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor
from fewkern.core.samples import Samples
from fewkern.learn.learner import Settings, learn
from fewkern.learn.levels import fit_columns, without_names
from fewkern.learn.policy import POLICY

pd = pytest.importorskip("pandas", reason="pandas is not installed")
TOWNS = np.array([f"town {k:02d}" for k in range(12)])


def table(n=400, seed=0):
    """Numbers with gaps, a category that matters, a flag, and numbers to predict."""
    rng = np.random.default_rng(seed)
    town, flag = rng.choice(12, n, p=np.arange(1, 13) / 78), rng.random(n) < 0.3
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n),
            "town": pd.Categorical(TOWNS[town]),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(2.0, n)),
            "flag": pd.Categorical(np.where(flag, "yes", "no")),
        }
    )
    effect = np.random.default_rng(99).standard_normal(12)[town]
    y = np.sin(2 * X["size"].to_numpy()) + effect + flag + np.nan_to_num(X["age"].to_numpy(), nan=4.0) / 2
    return X, y + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def known():
    X, y = table()
    return X, y, KernelRegressor(n_vectors=16).fit(X, y)


def test_a_table_as_it_is(known):
    _, _, model = known
    new, truth = table(2000, seed=1)
    assert np.mean((model.predict(new) - truth) ** 2) < 0.08  # the noise is 0.04
    assert model.held_out_error_ == pytest.approx(0.06, rel=0.4)
    assert model.n_features_in_ == 4
    assert model.vectors_.shape == (model.n_vectors_, 4)


# what changes nothing


def test_names_of_levels_change_nothing(known):
    X, y, model = known
    names = {town: f"{k}" for town, k in zip(TOWNS, np.random.default_rng(5).permutation(12))}
    other = X.assign(town=X["town"].map(names).astype("category"), flag=X["flag"].map({"no": "z", "yes": "a"}))
    again = KernelRegressor(n_vectors=16).fit(other.astype({"flag": "category"}), y)
    np.testing.assert_allclose(again.predict(other), model.predict(X), atol=1e-4)  # rounding, after many steps


def test_the_order_of_rows_changes_nothing(known):
    X, y, model = known
    order = np.random.default_rng(3).permutation(len(y))
    again = KernelRegressor(n_vectors=16).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-6)


def test_the_order_of_columns_and_units_change_nothing(known):
    """Sums over columns are rounded differently, and the steps of the search amplify that."""
    X, y, model = known
    turned, scaled = X[["flag", "age", "town", "size"]], X.assign(size=1e3 * X["size"] - 512.0, age=1e-4 * X["age"])
    for other in (turned, scaled):
        again = KernelRegressor(n_vectors=16).fit(other, y)
        assert np.sqrt(np.mean((again.predict(other) - model.predict(X)) ** 2)) < 0.05 * y.std()


def test_a_frame_says_what_an_array_of_codes_says(known):
    X, y, model = known
    codes = np.column_stack([X["size"], X["town"].cat.codes, X["age"], X["flag"].cat.codes])
    again = KernelRegressor(n_vectors=16, categorical_features=[1, 3]).fit(codes, y)
    np.testing.assert_array_equal(again.predict(codes), model.predict(X))


def test_two_levels_are_a_column_of_zeros_and_ones():
    X, y = table()
    rare = (X["flag"] == "yes").astype(float)
    one = KernelRegressor().fit(X[["size", "flag"]], y)
    other = KernelRegressor().fit(np.column_stack([X["size"], rare]), y)
    np.testing.assert_allclose(
        one.predict(X[["size", "flag"]]), other.predict(np.column_stack([X["size"], rare])), atol=1e-8
    )


def test_levels_are_ordered_by_their_rows_and_not_by_their_names():
    rng = np.random.default_rng(0)
    code, x = rng.choice(4, 60, p=[0.4, 0.3, 0.2, 0.1]).astype(float), rng.standard_normal(60)
    y = code + rng.standard_normal(60)
    of = lambda codes: without_names(  # noqa: E731
        Samples.of(np.column_stack([x, codes]), None, targets=y[:, None]), (None, 4)
    )
    np.testing.assert_array_equal(of(code), of(3 - code))
    np.testing.assert_array_equal(of(code)[:, 0], x)
    assert np.bincount(of(code)[:, 1].astype(int)).tolist() == sorted(np.bincount(code.astype(int)))[::-1]


# rare, unknown and missing levels


def positions(codes, y, count):
    Y = ((y - y.mean()) / y.std())[:, None]
    preparation, _ = fit_columns(codes[:, None], Y, np.ones(len(y)), (count,), POLICY)
    return preparation.levels.tables()


def test_positions_are_shrunken_means():
    rng = np.random.default_rng(0)
    code = np.append(np.repeat(np.arange(5.0), 40), 5.0)
    y = 2.0 * code + rng.standard_normal(201)
    y[-1] = 100.0  # a level of one row
    first = positions(code, y, 8)[0]
    assert (np.diff(first[:5]) * np.sign(first[4] - first[0]) > 0).all()
    assert abs(first[5]) <= 3.5  # its mean is far out
    np.testing.assert_array_equal(first[6:], 0.0)  # levels without rows, an unknown one, a gap


def test_three_levels_of_one_mean_are_a_triangle():
    """What they do with another column tells them apart; all are equally far from each other."""
    rng = np.random.default_rng(0)
    code, x = np.tile([0.0, 1.0, 2.0], 200), rng.standard_normal(600)
    y = (code - 1) * x
    Y = ((y - y.mean()) / y.std())[:, None]
    preparation, _ = fit_columns(np.column_stack([x, code]), Y, np.ones(600), (None, 3), POLICY)
    P = np.stack(preparation.levels.tables(), axis=1)[:3]
    sides = [np.linalg.norm(P[i] - P[j]) for i, j in ((0, 1), (1, 2), (0, 2))]
    assert min(sides) > 0.8 * max(sides)


@pytest.mark.parametrize("estimator", [KernelRegressor, KernelClassifier])
def test_unknown_levels_and_gaps_have_predictions(estimator, known):
    X, y, _ = known
    labels = y if estimator is KernelRegressor else np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = estimator().fit(X, labels)
    odd = X[:6].assign(
        town=["nowhere", None, "town 01", np.nan, "", "town 02"], flag=["yes", "maybe", None, "no", "no", "no"]
    )
    odd.loc[[0, 1], "size"] = np.nan  # there were none in the fit
    assert np.isfinite(model.predict(odd)).all()
    found = model.explain(odd)
    assert found.values.shape[:2] == (6, 4)
    truth = model.predict(odd) if estimator is KernelRegressor else model.decision_function(odd)
    np.testing.assert_allclose(found.predictions, truth, atol=1e-8)
    assert found.feature_names == ("size", "town", "age", "flag")
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.shape == (4,)


def test_levels_of_few_rows_are_predicted_near_the_others():
    """Their means say little; half of the levels have two rows, half have thirty."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(60), [2, 30] * 30)
    effect, noise = rng.standard_normal(60), 2.0 * rng.standard_normal(len(code))
    y = effect[code] + noise
    model = KernelRegressor(categorical_features=[1]).fit(np.column_stack([np.ones(len(code)), code]), y)
    found = model.predict(np.column_stack([np.ones(60), np.arange(60)]))
    means = np.bincount(code, y) / np.bincount(code)
    rare, common = np.arange(0, 60, 2), np.arange(1, 60, 2)
    assert np.mean((found - effect)[rare] ** 2) < 0.6 * np.mean((means - effect)[rare] ** 2)
    assert np.mean((found - effect)[common] ** 2) < 1.4 * np.mean((means - effect)[common] ** 2)
    assert model.predict([[1.0, 99.0]])[0] == pytest.approx(y.mean(), abs=0.5)  # an unknown level


@pytest.mark.parametrize("levels", [300, 2000])
def test_an_irrelevant_category_of_many_levels_costs_little(levels):
    """Also where every row has a level of its own: means of targets must not be taken for knowledge."""
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((1200, 2)), 0.5 * rng.standard_normal(1200)
    code = rng.integers(0, 300, 1200) if levels == 300 else np.arange(1200)
    y = np.sin(2 * x[:, 0]) + x[:, 1] + noise
    X = np.column_stack([x, code])
    model = KernelRegressor(categorical_features=[2]).fit(X[:600], y[:600])
    error = np.mean((model.predict(X[600:]) - y[600:]) ** 2)
    plain = KernelRegressor().fit(x[:600], y[:600])
    assert error < 1.15 * np.mean((plain.predict(x[600:]) - y[600:]) ** 2)
    assert model.held_out_error_ == pytest.approx(error, rel=0.3)


def test_hundreds_of_levels_that_matter():
    rng = np.random.default_rng(0)
    code, x = rng.integers(0, 300, 5000), rng.standard_normal(5000)
    y = 100 * rng.standard_normal(300)[code] + 30 * np.sin(2 * x) + 30 * rng.standard_normal(5000)
    X = np.column_stack([x, code])
    model = KernelRegressor(categorical_features=[1]).fit(X[:3000], y[:3000])
    error = np.mean((model.predict(X[3000:]) - y[3000:]) ** 2)
    assert error < 1.25 * (30**2 + 30**2 / 10)  # the noise, and what ten rows say of a level
    assert model.held_out_error_ == pytest.approx(error, rel=0.25)


def test_columns_that_say_nothing():
    """All gaps, one level, one level in some folds only, one value."""
    rng = np.random.default_rng(0)
    X, y = table(120)
    other = X.assign(
        none=np.nan,
        empty=pd.Categorical([None] * 120),
        same=pd.Categorical(["a"] * 120),
        rare=pd.Categorical(["a"] * 119 + ["b"]),
        constant=1.0,
    )
    model = KernelRegressor().fit(other, y)
    assert np.mean((model.predict(other) - y) ** 2) < 0.3 * y.var()
    assert np.abs(model.feature_importances_[[4, 5, 6, 8]]).max() < 1e-10
    odd = other[:2].assign(none=1.0, empty=["x", "y"], same=["b", None], constant=[2.0, np.nan])
    np.testing.assert_allclose(model.predict(odd), model.predict(other[:2]), atol=1e-8)
    labels = rng.integers(0, 2, 120)
    assert KernelClassifier().fit(other, labels).predict(odd).shape == (2,)


def test_only_categories_and_only_gaps():
    code = np.tile([0.0, 1.0, 2.0], 30)[:, None]
    model = KernelRegressor(categorical_features=[0]).fit(code, code[:, 0] ** 2)
    np.testing.assert_allclose(model.predict([[0.0], [1.0], [2.0]]), [0, 1, 4], atol=0.1)
    assert KernelRegressor().fit(np.full((30, 2), np.nan), np.arange(30.0)).predict([[1.0, 2.0]])[0] == pytest.approx(
        14.5
    )


def test_more_levels_than_rows():
    X = np.column_stack([np.arange(12.0), np.arange(12.0)])
    model = KernelRegressor(categorical_features=[1]).fit(X, np.arange(12.0))
    assert np.isfinite(model.predict([[3.0, 40.0]])).all()


def test_gaps_say_what_they_say():
    """Whether a number is missing is all that matters here."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    missing = rng.random(600) < 0.3
    X[missing, 0] = np.nan
    y = 3.0 * missing + 0.3 * rng.standard_normal(600)
    model = KernelRegressor().fit(X[:400], y[:400])
    assert np.mean((model.predict(X[400:]) - y[400:]) ** 2) < 0.2


# everything else that the estimators do


def test_rows_with_unknown_levels_or_odd_gaps_are_novel(known):
    X, _, model = known
    odd = X[:3].assign(town=["nowhere", "town 11", "town 11"])
    odd.loc[1, "size"] = np.nan
    found = model.novelty(odd)
    usual = np.quantile(model.novelty(table(500, seed=2)[0]), 0.8)
    assert found[0] > usual
    assert found[1] > usual


def test_batches_know_the_levels_of_the_first(known):
    X, y, _ = known
    model = KernelRegressor().partial_fit(X[:250], y[:250])
    more = X[250:].astype({"town": object})
    more.iloc[0, 1] = "nowhere"
    before = model.categories_
    model.partial_fit(more, y[250:])
    assert model.categories_ is before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = model.forget(more, y[250:])
    np.testing.assert_allclose(again.predict(X), KernelRegressor().partial_fit(X[:250], y[:250]).predict(X), atol=1e-6)
    one, other = (KernelRegressor().partial_fit(X[:250], y[:250]) for _ in range(2))
    merged = one.merge(other.partial_fit(more, y[250:]))
    assert merged.predict(X).shape == (400,)


def test_models_of_other_levels_are_not_merged(known):
    X, y, _ = known
    one = KernelRegressor().partial_fit(X, y)
    other = KernelRegressor().partial_fit(
        X.assign(town=X["town"].astype(str) + "!").astype({"town": "category"}), y, basis=one.basis_
    )
    with pytest.raises(ValueError, match="other levels"):
        one.merge(other)


def test_forget_warns_of_rows_that_are_kept():
    X, y = table(60)
    model = KernelRegressor(n_vectors=60).partial_fit(X, y)
    with pytest.warns(UserWarning, match=r"\d+ of these rows are among the samples that the model keeps"):
        model.forget(X[:5], y[:5])


def test_held_out_rows_are_not_in_the_positions_that_judge_them():
    """The positions of a fold are those of its fitted rows; the finished ones are those of all rows."""
    rng = np.random.default_rng(0)
    code, y = rng.integers(0, 40, 200), rng.standard_normal(200)
    samples = Samples.of(np.column_stack([rng.standard_normal(200), code]), None, targets=y[:, None])
    found = learn(samples, Settings(levels=(None, 40)))
    tables = {
        key: [one.geometry.warp.starts for one in fold]
        for key, fold in found.comparison.candidates.items()
        if key[0] == "moved"
    }
    first = next(iter(tables.values()))
    assert len(first) == 5
    assert np.abs(first[0] - first[1]).max() > 0.01


def test_novelty_where_a_level_is_in_one_row():
    """The folds of the novelty that lack it prepare the category in fewer columns."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), rng.integers(0, 2, 60)])
    X[7, 2] = 2
    model = KernelRegressor(categorical_features=[2]).fit(X, X[:, 0] + X[:, 2])
    assert model.novelty(X).shape == (60,)
