"""Tables as people have them become one matrix: levels as codes, gaps as NaN, and clear errors for the rest."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from fewkern import FeatureVectorRegressor, KernelClassifier, KernelRegressor
from fewkern.arrays.columns import all_levels
from fewkern.arrays.validation import validate_samples

pd = pytest.importorskip("pandas", reason="pandas is not installed")


class Table(BaseEstimator):
    """An estimator that takes tables."""

    def __init__(self, categorical_features="from_dtype"):
        self.categorical_features = categorical_features

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


def fitted(X, **given):
    table = Table(**given)
    return table, validate_samples(table, X, reset=True)


def frame():
    return pd.DataFrame(
        {
            "size": [1.5, np.nan, 3.0, 4.0],
            "town": pd.Categorical(["Rome", "Bonn", None, "Rome"], categories=["Rome", "Oslo", "Bonn"]),
            "new": pd.array([True, pd.NA, False, True], dtype="boolean"),
            "rooms": pd.array([1, 2, pd.NA, 4], dtype="Int64"),
            "seen": [True, None, False, True],
        }
    )


EXPECTED = np.array(
    [[1.5, 1, 1, 1, 1], [np.nan, 0, np.nan, 2, np.nan], [3, np.nan, 0, np.nan, 0], [4, 1, 1, 4, 1]], dtype=float
)


def test_levels_are_codes_in_their_order_and_gaps_are_nan():
    table, X = fitted(frame())
    np.testing.assert_array_equal(X, EXPECTED)
    assert [None if own is None else own.tolist() for own in table.categories_] == [None, ["Bonn", "Rome"], *[None] * 3]
    assert table.feature_names_in_.tolist() == list(frame().columns)
    assert table.n_features_in_ == 5


def test_frames_without_categories_are_numbers():
    table, X = fitted(frame().drop(columns="town"))
    np.testing.assert_array_equal(X, np.delete(EXPECTED, 1, axis=1))
    assert table.categories_ is None


@pytest.mark.parametrize("given", [["town"], [1], [False, True, False, False, False], np.array([1])])
def test_categories_by_name_by_position_and_by_mask(given):
    X = frame()
    X["town"] = X["town"].astype(object)  # texts
    np.testing.assert_array_equal(fitted(X, categorical_features=given)[1], EXPECTED)


def test_none_makes_no_category_and_an_empty_list_neither():
    X = np.array([[1.0, 2.0], [3.0, np.nan]])
    for given in (None, [], "from_dtype"):
        table, found = fitted(X, categorical_features=given)
        assert table.categories_ is None
        np.testing.assert_array_equal(found, X)


def test_polars_frames_say_the_same():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X = pl.DataFrame(
        {
            "size": [1.5, None, 3.0, 4.0],
            "town": pl.Series(["Rome", "Bonn", None, "Rome"], dtype=pl.Categorical),
            "new": [True, None, False, True],
            "rooms": [1, 2, None, 4],
            "seen": [True, None, False, True],
        }
    )
    np.testing.assert_array_equal(fitted(X)[1], EXPECTED)


def test_arrays_of_codes_lists_and_objects_say_the_same():
    numbers = np.array([[5.0, 10.0], [6.0, 30.0], [7.0, np.nan], [8.0, 10.0]])
    table, X = fitted(numbers, categorical_features=[1])
    np.testing.assert_array_equal(X, [[5, 0], [6, 1], [7, np.nan], [8, 0]])
    np.testing.assert_array_equal(validate_samples(table, [[1.0, 20.0], [2.0, 30.0]], reset=False), [[1, 2], [2, 1]])
    texts = [[5.0, "b"], [6.0, None], [None, "a"]]
    np.testing.assert_array_equal(fitted(texts, categorical_features=[1])[1], [[5, 1], [6, np.nan], [np.nan, 0]])


def test_unknown_levels_are_one_more_and_never_an_error():
    table, _ = fitted(frame())
    new = frame()
    new["town"] = ["Oslo", "Bonn", "Lima", None]
    np.testing.assert_array_equal(validate_samples(table, new, reset=False)[:, 1], [2, 0, 2, np.nan])


def test_whole_numbers_with_gaps_are_the_levels_that_they_were():
    table, X = fitted(pd.DataFrame({"a": pd.Categorical([3, 1, 3])}))
    assert X[:, 0].tolist() == [1, 0, 1]
    new = pd.DataFrame({"a": [3.0, np.nan, 1.0]})  # pandas makes floats of whole numbers with gaps
    np.testing.assert_array_equal(validate_samples(table, new, reset=False)[:, 0], [1, np.nan, 0])


def test_intervals_are_categories_by_what_they_are_called():
    ages = pd.Series([1, 30, 70, 31])
    X = pd.DataFrame({"age": pd.cut(ages, [0, 18, 65, 99])})
    table, found = fitted(X)
    assert found[:, 0].tolist() == [0, 1, 2, 1]
    assert table.categories_[0].tolist() == ["(0, 18]", "(18, 65]", "(65, 99]"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            ["Rome", "Bonn", "Rome", None],
            r"Table: the column 'town' holds texts, not numbers; if it is a category.*skrub",
        ),
        (pd.to_datetime(["2024-01-01"] * 4), "Table: the column 'town' holds dates or times.*skrub.DatetimeEncoder"),
        (pd.to_timedelta([1, 2, 3, 4], unit="D"), "Table: the column 'town' holds dates or times"),
        ([{}, {}, {}, {}], "Table: the column 'town' holds other things, not numbers"),
        ([1.0, "a", 2.0, 3.0], "Table: the column 'town' holds several kinds, not numbers"),
        ([1.0, np.inf, 2.0, 3.0], "infinity"),
    ],
)
def test_columns_that_are_neither_are_named(column, message):
    X = frame()
    X["town"] = column
    with pytest.raises(ValueError, match=message):
        fitted(X)
    X["other"] = pd.Categorical(["a", "b", "a", "b"])  # beside a category columns are read one by one
    with pytest.raises(ValueError, match=message):
        fitted(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["town", "street"], "names 'street', but X has no such column; its columns are size, town"),
        ([1, 5], "names column 5, but X has the columns 0 to 4"),
        ([-1], "names column -1"),
        ([True, False], "is a mask of 2 columns, but X has 5"),
        ([[1]], "must be .from_dtype., None, or names"),
        ([1.5], "must be .from_dtype., None, or names"),
    ],
)
def test_categories_that_are_not_there(given, message):
    with pytest.raises(ValueError, match=f"Table: categorical_features {message}"):
        fitted(frame(), categorical_features=given)


def test_arrays_have_no_names_and_sparse_matrices_no_categories():
    with pytest.raises(ValueError, match="names 'town', but X has no such column; it is an array"):
        fitted(np.zeros((3, 2)), categorical_features=["town"])
    import scipy.sparse as sp

    with pytest.raises(ValueError, match="names columns of a table, and X is sparse or none"):
        fitted(sp.csr_array(np.eye(3)), categorical_features=[0])
    with pytest.raises(ValueError, match="NaN or infinity"):
        fitted(sp.csr_array(np.array([[1.0, np.nan]])))


def test_levels_of_several_kinds():
    with pytest.raises(ValueError, match=r"the levels of the column 'town' are of several kinds \(int, str\)"):
        fitted(pd.DataFrame({"town": pd.Categorical([1, "a", 1])}))


def test_levels_of_another_kind_than_in_the_fit():
    table, _ = fitted(frame())
    new = frame()
    new["town"] = pd.Categorical([1, 2, 1, 2])
    with pytest.raises(ValueError, match="levels of the column 'town' are numbers, but they were texts in the fit"):
        validate_samples(table, new, reset=False)


def test_other_columns_than_in_the_fit():
    table, _ = fitted(frame())
    with pytest.raises(ValueError, match="feature names should match"):
        validate_samples(table, frame().rename(columns={"town": "city"}), reset=False)
    with pytest.raises(ValueError, match="feature names should match"):
        validate_samples(table, frame()[["town", "size", "new", "rooms", "seen"]], reset=False)
    table, _ = fitted(np.zeros((3, 2)), categorical_features=[1])
    with pytest.raises(ValueError, match="X has 3 features, but Table is expecting 2"):
        validate_samples(table, np.zeros((2, 3)), reset=False)


def test_too_few_rows():
    with pytest.raises(ValueError, match="at least 2 sample"):
        KernelRegressor().fit(frame()[:1], [1.0])


def test_others_go_on_refusing_gaps():
    X = np.array([[1.0], [np.nan], [2.0]])
    with pytest.raises(ValueError, match="NaN or infinity"):
        FeatureVectorRegressor().fit(X, [1.0, 2.0, 3.0])
    for estimator in (KernelRegressor(), KernelClassifier()):
        with pytest.raises(ValueError, match="the samples contain infinity"):
            estimator.fit(np.array([[1.0], [np.inf], [2.0]]), [0, 1, 1])


def test_codes_stay_where_the_samples_are():
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    X = strict.asarray([[5.0, 10.0], [6.0, 30.0], [7.0, float("nan")]])
    table, found = fitted(X, categorical_features=[1])
    np.testing.assert_array_equal(np.asarray(found), [[5, 0], [6, 1], [7, np.nan]])
    new = validate_samples(table, strict.asarray([[1.0, 20.0], [1.0, 30.0]]), reset=False)
    np.testing.assert_array_equal(np.asarray(new), [[1, 2], [1, 1]])


def test_levels_of_parts():
    texts, numbers, none = np.array(["b", "c"], dtype=object), np.array([1.0, 2.0]), np.zeros(0)
    assert all_levels("Table", [[None, texts], [None, none], [None, np.array(["a"], dtype=object)]])[1].tolist() == [
        *"abc"
    ]
    with pytest.raises(ValueError, match="levels of column 1 are texts in some parts"):
        all_levels("Table", [[None, texts], [None, numbers]])
