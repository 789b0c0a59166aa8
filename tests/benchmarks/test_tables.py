"""Real tables: splits and columns, units that are kept and not done twice, what the summary says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from benchmarks import sensitivity, tables, tables_data, tables_measure
from benchmarks.tables_data import CLASSES, NUMBERS, TablesNotFoundError, kernel_columns, part
from benchmarks.tables_methods import METHODS, Fitted, Method
from benchmarks.tables_picture import draw
from benchmarks.tables_summary import behind, compare, standings, stored_records, summarise
from experiments.store import Store


def write_table(folder, name, rows=120, task=CLASSES, seed=0):
    """A table with two columns of numbers, one of them with gaps, and two of categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    X[rng.random(rows) < 0.1, 1] = np.nan
    X[:, 2], X[:, 3] = rng.integers(0, 2, rows), rng.integers(0, 20, rows)
    y = (X[:, 0] > 0).astype(np.int32) if task == CLASSES else X[:, 0].astype(float) + 0.1 * rng.normal(size=rows)
    (folder / "tables").mkdir(exist_ok=True)
    cat = np.array([False, False, True, True])
    np.savez(folder / "tables" / f"{name}.npz", X=X, y=y, cat=cat, task=task)
    return X.astype(float), y, cat


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two tables of classes, and one of numbers."""
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    tables_data._part.cache_clear()
    write_table(tmp_path, "first")
    write_table(tmp_path, "second", seed=1)
    write_table(tmp_path, "third", task=NUMBERS, seed=2)
    return tmp_path


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


ASKED = ["--methods", "feature-vectors", "boosting", "forest", "--splits", "0"]


@pytest.mark.parametrize(("rows", "train", "test"), [(120, 90, 30), (4001, 3000, 1001), (9000, 3000, 4000)])
def test_rows_of_a_split(rows, train, test):
    first, then = tables_data.permuted(rows, 3)
    order = np.random.default_rng(103).permutation(rows)
    np.testing.assert_array_equal(first, order[:train])
    np.testing.assert_array_equal(then, order[train : train + test])


def test_columns_know_nothing_of_the_test_part(folder):
    raw, _, cat = write_table(folder, "first")
    train, test = tables_data.permuted(len(raw), 0)
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
        part("tables", "nothing", 0)
    with pytest.raises(SystemExit, match="no such set: nothing"):
        tables.main(["--sets", "nothing"])
    monkeypatch.setenv("FEWKERN_DATA", str(folder / "tables"))
    with pytest.raises(SystemExit, match=r"names a folder without tables/"):
        tables.main([])
    monkeypatch.delenv("FEWKERN_DATA")
    with pytest.raises(SystemExit, match="FEWKERN_DATA is not set"):
        tables.main([])
    monkeypatch.setitem(METHODS, "xrfm", replace(METHODS["xrfm"], package="no_such_package"))
    assert "xrfm" not in tables.chosen_methods(["peers"])
    assert "xrfm: no_such_package is not installed" in capsys.readouterr().out


def test_a_stopped_run_goes_on(folder, methods, capsys):
    out = folder / "results" / "tables.jsonl"
    asked = [*ASKED, "--out", str(out), "--picture", str(folder / "picture.png")]
    tables.main([*asked, "--sets", "first"])
    assert out.read_text().count("\n") == 3
    with out.open("a") as file:
        file.write('{"protocol": "tables", "se')
    methods.clear()
    tables.main([*asked, "--sets", "first", "second", "third"])
    assert "6 units measured, 3 known" in capsys.readouterr().out
    assert (folder / "picture.png").stat().st_size > 1000
    methods.clear()
    tables.main([*asked, "--sets", "first", "second", "third"])
    assert methods == []
    assert "0 units measured, 9 known" in capsys.readouterr().out
    tables.main([*asked, "--sets", "first", "--fresh"])
    assert "3 units measured, 0 known" in capsys.readouterr().out
    assert len(Store(out, tables.FIELDS).read()) == 9
    tables.main([*asked, "--sets", "first", "third", "--retry"])
    assert "1 unit measured, 5 known" in capsys.readouterr().out


def test_a_unit_that_fails_is_kept(folder, methods, capsys):
    out = folder / "tables.jsonl"
    tables.main([*ASKED, "--sets", "third", "first", "--out", str(out), "--each", "--markdown"])
    failed = [record for record in Store(out, tables.FIELDS).read() if "failed" in record]
    assert [(r["set"], r["method"], r["failed"]) for r in failed] == [("third", "forest", "RuntimeError: out of trees")]
    printed = capsys.readouterr().out
    # the forest has no result on any table of numbers: the others are compared there
    for words in ("1 unit failed:", "third, split 0: forest: RuntimeError: out of trees", "Regression, 1 table,"):
        assert words in printed


def test_what_a_unit_says(folder, methods):
    here = part("tables", "first", 0)
    found = tables_measure.measure("tables", "first", 0, "feature-vectors")
    assert found["error"] == pytest.approx(100 * np.mean(here.y_test != 1))
    assert (found["rows"], found["columns"], found["vectors"]) == (90, here.X.shape[1], 5)
    assert (found["stated"], found["chosen"], found["log_loss"]) == (25.0, "width 2", None)
    here = part("tables", "third", 0)
    found = tables_measure.measure("tables", "third", 0, "boosting")
    assert found["error"] == pytest.approx(100 * np.mean(here.y_test**2) / here.y_test.var())
    assert found["stated"] == pytest.approx(25 / here.y.var())


@pytest.mark.parametrize("name", ["feature-vectors", "svm", "forest"])
@pytest.mark.parametrize("data", ["first", "third"])
@pytest.mark.filterwarnings("ignore")
def test_methods_fit_tables(folder, name, data):
    found = tables_measure.figures(METHODS[name], part("tables", data, 0))
    assert found["error"] < 30
    assert (found["vectors"] is None) == (name not in ("feature-vectors", "svm"))
    assert (found["log_loss"] is None) == (name == "svm" or data == "third")
    assert found["seconds"] > 0


def record(data, split, method, error, task=CLASSES, **others):
    return {"set": data, "split": split, "method": method, "task": task, "error": error, **others}


RECORDS = [
    record("a", 0, "feature-vectors", 3.8, vectors=10, seconds=1.0, stated=4.0, log_loss=0.1),
    record("a", 1, "feature-vectors", 7.8, vectors=20, seconds=3.0, stated=8.0, log_loss=0.3),
    record("a", 0, "boosting", 1.8, vectors=None, seconds=0.1),
    record("a", 1, "boosting", 3.8, vectors=None, seconds=0.1),
    record("b", 0, "feature-vectors", 0.8, vectors=40, seconds=4.0, stated=0.8, log_loss=0.4),
    record("b", 0, "boosting", 3.8, vectors=None, seconds=0.3),
    record("b", 1, "boosting", 99.0, vectors=None, seconds=0.3),
    record("c", 0, "boosting", 50.0, vectors=None, seconds=0.3),
    record("d", 0, "boosting", 50.0, NUMBERS, vectors=None, seconds=0.3),
    {"set": "c", "split": 0, "method": "feature-vectors", "failed": "no"},
]


def test_means_ratios_and_what_is_left_out():
    found = compare(RECORDS, CLASSES)
    assert (found.methods, found.tables) == (["feature-vectors", "boosting"], ["a", "b"])
    assert found.left_out == {"c": ["feature-vectors"]}
    ours, boosting = summarise(found)
    # a: means over the splits 5.8 and 2.8, that is 6 / 3; b: the split that both have, 1 / 4
    assert ours.error == pytest.approx((5.8 + 0.8) / 2)
    assert ours.ratio[0] == pytest.approx(math.sqrt(6 / 3 * 1 / 4))
    logs = np.log([2, 1 / 4])
    assert ours.ratio[1] == pytest.approx(ours.ratio[0] * np.std(logs, ddof=1) / math.sqrt(2))
    assert ours.difference == pytest.approx((0.0, np.std([3.0, -3.0], ddof=1) / math.sqrt(2)))
    assert (ours.vectors, ours.seconds, ours.log_loss) == pytest.approx((27.5, 3.0, 0.3))
    assert ours.stated[0] == pytest.approx(0.1)
    assert math.isnan(boosting.vectors)
    assert (boosting.ratio[0], boosting.behind) == (1.0, 0)
    assert behind(found, "feature-vectors") == [("a", pytest.approx(5.8), "boosting", pytest.approx(2.8))]
    assert ours.behind == 1
    assert len(draw([found]).axes) == 2


def test_stored_peers_stand_in_for_those_that_were_not_run():
    row = {"name": "a", "task": CLASSES, "n_train": "100", "hgb": "2.8", "rf": "", "xrfm": "4", "cpu_s_hgb": "0.5"}
    stored = stored_records([row], without=["svm"])
    assert [(r["method"], r["vectors"]) for r in stored] == [("boosting (stored)", None), ("xrfm (stored)", 80)]
    assert stored_records([row], without=["boosting", "xrfm"]) == []
    found = compare([r for r in RECORDS if r["method"] != "boosting"] + stored, CLASSES)
    assert found.baseline == "boosting (stored)"
    assert summarise(found)[0].ratio[0] == pytest.approx(4 / 3)
    assert "HistGradientBoosting (stored)" in [t.get_text() for t in draw([found]).legends[0].get_texts()]


def test_ranks_beside_published_methods():
    common = {"talent": "T", "task": "cls", "rows": "9", "dummy": "50"}
    rows = [
        {"name": "a", **common, "x": "5", "y": "9", "z": "", "best": "4"},
        {"name": "b", **common, "x": "3", "y": "2", "z": "1", "best": "1"},
    ]
    found, lacking = standings(compare(RECORDS, CLASSES), rows)
    assert lacking == ["z"]
    ranks = {s.method: (s.error, s.rank) for s in found}
    assert ranks["feature-vectors"] == pytest.approx((3.3, 1.5))  # second of 5, 5.8, 9; first of 0.8, 2, 3
    assert ranks["x"] == pytest.approx((4.0, 2.0))
    assert ranks["boosting"] == pytest.approx((3.3, 2.0))
    assert ranks["best of each table"][0] == 2.5
    assert found[0].method == "best of each table"


def test_whole_tables_are_those_that_were_not_cut(folder, methods, capsys):
    head = "name,talent,task,x,y,best,rows\n"
    (folder / "tables" / "talent.csv").write_text(head + "first,F,cls,10,20,10,120\nsecond,S,cls,10,20,10,7501\n")
    assert tables_data.names("talent") == ["first"]
    tables.main(["--talent", "--methods", "boosting", "--out", str(folder / "t.jsonl")])
    printed = capsys.readouterr().out
    assert "3 units measured" in printed
    assert "Beside published, tuned methods (1 table;" in printed


@dataclass(frozen=True)
class Policy:
    ladder: tuple[int, ...] = (5, 10)
    share: float = 0.2
    zero: int = 0
    name: str = "x"


class Machine:
    """A model whose error and vectors are what its policy says."""

    def get_params(self):
        return {}

    def fit(self, X, y):
        if self._policy.share > 0.3:
            raise ValueError("too large a share")
        self.n_vectors_, self.every = self._policy.ladder[0], round(1 / self._policy.share)
        return self

    def predict(self, X):
        return np.arange(len(X)) % self.every == 0


def test_sensitivity(folder, monkeypatch, capsys):
    monkeypatch.setattr(sensitivity, "default_policy", Policy)
    monkeypatch.setattr(sensitivity, "kernel_machine", lambda task, prefer: Machine())
    asked = ["--sets", "first", "second", "--out", str(folder / "s.jsonl")]
    sensitivity.main(asked)
    printed = capsys.readouterr().out
    assert "Not numeric, left out: name." in printed
    assert "10 units measured" in printed
    rows = {tuple(line.split()[:3]): line.split() for line in printed.splitlines()}
    assert " ".join(rows["ladder", "5", "10"][3:]).startswith("10 20 2 +0.00 1.00 ± 0.00 2.00 ")
    assert rows["share", "0.2", "0.4"][-1] == "2"
    assert "failed: share x 2, first: ValueError: too large a share" in printed
    sensitivity.main([*asked, "--fields", "ladder"])
    assert "0 units measured, 6 known" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no such numeric field: name"):
        sensitivity.main([*asked, "--fields", "name"])
