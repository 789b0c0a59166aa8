"""Real tables: splits and columns, units that are kept and not done twice, what the summary says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from benchmarks.tables import command, main
from benchmarks.tables import data as tables_data
from benchmarks.tables import measure as tables_measure
from benchmarks.tables.data import CLASSES, NUMBERS, TablesNotFoundError, kernel_columns, part
from benchmarks.tables.methods import METHODS, Fitted, Method, _Named, fit_ours
from experiments.store import Store
from tests.benchmarks.conftest import write_table


@dataclass
class Says:
    """A model that answers the same on every row."""

    answer: float
    held_out_error_: float = 0.25
    chosen_: str = "width 2"

    def predict(self, X):
        return np.full(len(X), self.answer)


@pytest.fixture
def methods(monkeypatch):
    """Quick methods in place of those that fit; one of them fails on tables of numbers."""
    calls = []

    def fit(name, answer, vectors):
        def model(here):
            if len(here.y) == tables_measure._WARM_ROWS:
                return None
            calls.append(name)
            if name == "forest" and here.task == NUMBERS:
                raise RuntimeError("out of trees\nmore of it")
            return Fitted(Says(answer), vectors)

        return model

    for name, answer, vectors in (("feature-vectors", 1, 5), ("boosting", 0, None), ("forest", 1, None)):
        made = Method(METHODS[name].label, fit(name, answer, vectors), ours=METHODS[name].ours)
        monkeypatch.setitem(METHODS, name, made)
    tables_measure.warm_up.cache_clear()
    yield calls
    tables_measure.warm_up.cache_clear()


ASKED = ["--methods", "feature-vectors", "boosting", "forest", "--splits", "0", "--jobs", "0"]


@pytest.mark.parametrize(
    ("protocol", "rows", "train", "test"),
    [
        ("1000", 120, 90, 30), ("1000", 9000, 1000, 4000), ("3000", 4001, 3000, 1001), ("3000", 9000, 3000, 4000),
        ("all", 9000, 7200, 1800), ("all", 60001, 48000, 10000),
    ],
)  # fmt: skip
def test_rows_of_a_split(protocol, rows, train, test):
    first, then = tables_data.PROTOCOLS[protocol].rows(rows, 3)
    order = np.random.default_rng(103).permutation(rows)
    np.testing.assert_array_equal(first, order[:train])
    np.testing.assert_array_equal(then, order[train : train + test])


def test_all_rows_of_the_tables_that_have_many(folder, monkeypatch):
    monkeypatch.setattr(tables_data, "MANY_ROWS", 96)
    for name in ("many_rows", "large"):
        (folder / name).mkdir()
    for name, rows in (("first", 119), ("second", 120)):
        write_table(folder, name, rows, kind="many_rows")
    X, y = np.arange(400).reshape(200, 2) % 7, np.arange(200) % 2
    np.savez(folder / "large" / "adult.npz", X=X, y=2 * y - 1, is_categorical=[False, True], n_train=5)
    np.savez(folder / "large" / "letter.npz", X=X.astype(np.uint8), y=y)
    np.savez(folder / "large" / "mnist.npz", X=X, y=y)
    assert tables_data.names("all") == ["adult", "letter", "second"]
    assert tables_data.names("all", categories=True) == ["adult", "second"]
    adult, letter = part("all", "adult", 0), part("all", "letter", 0)
    assert (adult.raw.shape, adult.X.shape, letter.X.shape) == ((160, 2), (160, 1 + 7), (160, 2))
    assert (adult.task, adult.categories.tolist(), set(adult.y)) == (CLASSES, [False, True], {-1, 1})
    assert len(part("all", "first", 0).y) == 95  # also where it was asked for by name


def test_published_splits(folder, methods, capsys):
    (folder / "uci_splits").mkdir()
    X, y = np.arange(40.0).reshape(20, 2) ** 1.5, np.arange(20.0)
    np.savez(folder / "uci_splits" / "yacht.npz", X=X, y=y, test_idx=[[3, 4, -1], [0, 7, 9]])
    here = part("uci", "yacht", 0)
    np.testing.assert_array_equal(here.y, np.setdiff1d(np.arange(20), [3, 4]))
    np.testing.assert_array_equal(here.raw_test, X[[3, 4]])
    np.testing.assert_allclose(here.X.mean(axis=0), 0, atol=1e-12)
    assert (here.task, tables_data.splits("uci", "yacht")) == (NUMBERS, tuple(range(20)))
    asked = ["--uci", "--methods", "boosting", "feature-vectors", "--splits", "0", "1", "--jobs", "0"]
    main([*asked, "--results", str(folder / "t.jsonl")])
    # boosting says 0 here, ours 1: roots of means of squares on two splits, and figures of a paper
    found = [np.sqrt(np.mean(np.square(rows))) for rows in ([3, 4], [0, 7, 9])]
    words = f"{np.mean(found):.3f} ± {np.std(found, ddof=1) / np.sqrt(2):.3f} (2)"
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("yacht"))
    assert words in row
    assert row.split()[-4:] == ["0.655", "0.476", "0.673", "0.67"]


def test_large_published_sets_have_fewer_splits(folder, monkeypatch):
    monkeypatch.setattr(tables_data, "FEW_SPLITS_ROWS", 19)
    (folder / "uci_splits").mkdir()
    np.savez(folder / "uci_splits" / "kin8nm.npz", X=np.ones((20, 2)), y=np.ones(20), test_idx=[[3]])
    assert tables_data.splits("uci", "kin8nm") == (0, 1, 2, 3, 4)


def test_columns_know_nothing_of_the_test_part(folder):
    raw, _, cat = write_table(folder, "first")
    train, test = tables_data.PROTOCOLS["3000"].rows(len(raw), 0)
    before = kernel_columns(raw, cat, train)[train]
    raw[test] = [1e6, np.nan, 7, 99]
    after = kernel_columns(raw, cat, train)
    np.testing.assert_array_equal(after[train], before)
    assert np.isfinite(after).all()


def test_columns_of_kernel_methods():
    """A number; gaps with a column of their own; a few gaps; a constant; nothing; two, three and twenty levels."""
    rows = np.arange(100)
    gaps, few = np.where(rows < 10, np.nan, rows), np.where(rows < 1, np.nan, rows)
    numbers = [rows, gaps, few, np.full(100, 3.0), np.full(100, np.nan)]
    raw = np.stack([*numbers, rows % 2, rows % 3, rows % 20], axis=1).astype(float)
    columns = kernel_columns(raw, np.array([False] * 5 + [True] * 3), rows)
    assert columns.shape == (100, 1 + 2 + 1 + 1 + 3 + 15)
    np.testing.assert_allclose(columns.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(columns.std(axis=0), 1)
    filled = np.where(rows < 10, 54.5, rows)  # the median of 10 to 99
    np.testing.assert_allclose(columns[:, 1], (filled - filled.mean()) / filled.std())


def test_what_is_missing_is_said_in_a_line(folder, monkeypatch, capsys):
    with pytest.raises(TablesNotFoundError, match=r"nothing\.npz is missing"):
        part("3000", "nothing", 0)
    with pytest.raises(SystemExit, match=r"nothing\.npz is missing"):
        main(["--sets", "nothing"])
    monkeypatch.setenv("FEWKERN_DATA", str(folder / "tables"))
    with pytest.raises(SystemExit, match=r"names a folder without tables/"):
        main([])
    monkeypatch.delenv("FEWKERN_DATA")
    with pytest.raises(SystemExit, match="FEWKERN_DATA is not set"):
        main([])
    monkeypatch.setitem(METHODS, "xrfm", replace(METHODS["xrfm"], package="no_such_package"))
    assert "xrfm" not in command.chosen_methods(["peers"])
    assert "xrfm: no_such_package is not installed" in capsys.readouterr().out


def test_a_stopped_run_goes_on(folder, methods, capsys):
    out = folder / "results" / "tables.jsonl"
    asked = [*ASKED, "--results", str(out), "--picture", str(folder / "picture.png")]
    main([*asked, "--sets", "first"])
    assert out.read_text().count("\n") == 3
    with out.open("a") as file:
        file.write('{"protocol": "3000", "se')
    methods.clear()
    main([*asked, "--sets", "first", "second", "third"])
    assert "6 units measured, 3 known" in capsys.readouterr().out
    assert (folder / "picture.png").stat().st_size > 1000
    methods.clear()
    main([*asked, "--sets", "first", "second", "third"])
    assert methods == []
    assert "0 units measured, 9 known" in capsys.readouterr().out
    main([*asked, "--sets", "first", "--fresh"])
    assert "3 units measured, 0 known" in capsys.readouterr().out
    assert len(Store(out, command.FIELDS).read()) == 9
    main([*asked, "--sets", "first", "third", "--retry"])
    assert "1 unit measured, 5 known" in capsys.readouterr().out


def test_results_of_other_runs_are_added_or_stand_beside(folder, methods, capsys):
    kept, other = folder / "kept.jsonl", folder / "other.jsonl"
    main([*ASKED, "--sets", "first", "--results", str(kept)])
    main([*ASKED, "--sets", "first", "second", "--results", str(other)])
    capsys.readouterr()
    main([*ASKED, "--sets", "first", "second", "--results", str(kept), "--before", str(other), "--show"])
    printed = capsys.readouterr().out
    assert "fewkern, feature vectors (before)" in printed
    assert "RandomForest (before)" not in printed
    main([*ASKED, "--sets", "first", "second", "--results", str(kept), "--add", str(other)])
    assert "0 units measured, 6 known" in capsys.readouterr().out


def test_other_numbers_of_threads_are_other_units(folder, methods, capsys):
    asked = [*ASKED, "--sets", "first", "--results", str(folder / "t.jsonl")]
    main(asked)
    main([*asked, "--threads", "2"])
    assert "3 units measured, 0 known" in capsys.readouterr().out.split("2 thread(s)")[1]


def test_a_unit_that_fails_is_kept(folder, methods, capsys):
    out = folder / "tables.jsonl"
    main([*ASKED, "--sets", "third", "first", "--results", str(out), "--each", "--markdown"])
    failed = [record for record in Store(out, command.FIELDS).read() if "failed" in record]
    assert [(r["set"], r["method"], r["failed"]) for r in failed] == [("third", "forest", "RuntimeError: out of trees")]
    printed = capsys.readouterr().out
    for words in ("1 unit failed:", "third, split 0: forest: RuntimeError: out of trees", "Regression, 1 table,"):
        assert words in printed


def test_what_a_unit_says(folder, methods):
    here = part("3000", "first", 0)
    found = tables_measure.measure("3000", "first", 0, "feature-vectors", 1)
    assert found["error"] == pytest.approx(100 * np.mean(here.y_test != 1))
    assert (found["rows"], found["columns"], found["vectors"]) == (90, here.X.shape[1], 5)
    assert (found["stated"], found["chosen"], found["log_loss"]) == (25.0, "width 2", None)
    here = part("3000", "third", 0)
    found = tables_measure.measure("3000", "third", 0, "boosting", 1)
    assert found["error"] == pytest.approx(100 * np.mean(here.y_test**2) / here.y_test.var())
    assert found["stated"] == pytest.approx(25 / here.y.var())


@pytest.mark.parametrize("name", ["feature-vectors", "svm", "forest"])
@pytest.mark.parametrize("data", ["first", "third"])
@pytest.mark.filterwarnings("ignore")
def test_methods_fit_tables(folder, name, data):
    found = tables_measure.figures(METHODS[name], part("3000", data, 0))
    assert found["error"] < 30
    assert (found["vectors"] is None) == (name not in ("feature-vectors", "svm"))
    assert (found["log_loss"] is None) == (name == "svm" or data == "third")
    assert found["seconds"] > 0


class Columns:
    """Keeps what it is given; our estimators, and those of peers."""

    n_vectors_ = 3
    classes_ = np.arange(2)

    def set_params(self, categorical_features):
        self.categories = categorical_features
        return self

    def fit(self, X, y):
        self.X = X
        return self

    def predict(self, X):
        self.X_test = X
        return np.zeros(len(X))

    predict_proba = predict


def test_ours_get_the_columns_as_they_are_where_they_take_them(folder):
    here = part("3000", "first", 0)
    model = Columns()
    fitted = fit_ours(model, here, raw=True)
    fitted.predict(here)
    np.testing.assert_array_equal(model.X, here.raw)
    np.testing.assert_array_equal(model.X_test, here.raw_test)
    np.testing.assert_array_equal(model.categories, [False, False, True, True])
    fit_ours(model, here).predict(here)
    np.testing.assert_array_equal(model.X, here.X)
    np.testing.assert_array_equal(model.X_test, here.X_test)


def test_peers_get_categories_as_words():
    raw = np.array([[1.5, 2.0, np.nan], [np.nan, np.nan, 3.0]])
    model = Columns()
    named = _Named(np.array([False, True, False]), model).fit(raw, raw[:, 0])
    assert model.X[:, 1].tolist() == ["2.0", "nan"]
    np.testing.assert_array_equal(model.X[:, [0, 2]].astype(float), raw[:, [0, 2]])
    named.predict_proba(raw[:1])
    assert model.X_test[0, 1] == "2.0"
    assert _Named(np.zeros(3, dtype=bool), model).fit(raw, raw[:, 0]).machine.X is raw


def test_whole_tables_are_those_that_were_not_cut(folder, methods, capsys):
    head = "name,talent,task,x,y,best,rows\n"
    (folder / "tables" / "talent.csv").write_text(head + "first,F,cls,10,20,10,120\nsecond,S,cls,10,20,10,7501\n")
    assert tables_data.names("talent") == ["first"]
    main(["--talent", "--methods", "boosting", "--jobs", "0", "--results", str(folder / "t.jsonl")])
    printed = capsys.readouterr().out
    assert "3 units measured" in printed
    assert "Beside published, tuned methods (1 table;" in printed
