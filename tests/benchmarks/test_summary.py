"""What the results on many tables say: means, what they hang on, ratios, signs, ranks, and the picture of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.tables import picture
from benchmarks.tables.data import CLASSES, NUMBERS
from benchmarks.tables.picture import draw
from benchmarks.tables.published import records_before, standings, stored_records
from benchmarks.tables.summary import behind, beside, compare, is_ours, label, sign_test, summarise
from benchmarks.tables.text import print_task


def record(data, split, method, error, task=CLASSES, **others):
    unit = {"protocol": "3000", "set": data, "split": split, "method": method}
    return {**unit, "task": task, "error": error, "rows": 90, **others}


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


def test_means_ratios_and_what_is_missing():
    found = compare(RECORDS, CLASSES)
    assert (found.methods, found.tables, found.left_out) == (["feature-vectors", "boosting"], ["a", "b", "c"], {})
    ours, boosting = summarise(found)
    assert (ours.tables, boosting.tables) == (2, 3)
    # a: means over the splits 5.8 and 2.8, that is 6 / 3; b: the split that both have, 1 / 4
    assert ours.error == pytest.approx((5.8 + 0.8) / 2)
    assert boosting.error == pytest.approx((2.8 + 3.8 + 50) / 3)
    logs = np.log([2, 1 / 4])
    both = ours.beside
    assert both.ratio == pytest.approx((math.sqrt(1 / 2), math.sqrt(1 / 2) * np.std(logs, ddof=1) / math.sqrt(2)))
    assert both.median == pytest.approx(math.sqrt(1 / 2))
    assert both.difference == pytest.approx((0.0, np.std([3.0, -3.0], ddof=1) / math.sqrt(2)))
    assert (both.lower, both.higher, both.p) == (1, 1, 1.0)
    assert both.time == pytest.approx((math.sqrt(20 * 4 / 0.3), math.sqrt(20 * 4 / 0.3)))
    assert (ours.vectors, ours.seconds, ours.log_loss) == pytest.approx((27.5, 3.0, 0.3))
    assert ours.stated[0] == pytest.approx(0.1)
    assert math.isnan(boosting.vectors)
    assert (boosting.beside, boosting.behind) == (None, 0)
    assert behind(found, "feature-vectors") == [("a", pytest.approx(5.8), "boosting", pytest.approx(2.8))]
    assert ours.behind == 1


def test_tables_without_the_method_that_ratios_are_to_are_left_out():
    found = compare([*RECORDS, record("e", 0, "feature-vectors", 1.0), record("e", 1, "boosting", 1.0)], CLASSES)
    assert found.left_out == {"e": ["feature-vectors", "boosting"]}
    found = compare(RECORDS, CLASSES, versus="feature-vectors")
    assert (found.versus, found.left_out) == ("feature-vectors", {"c": ["feature-vectors"]})
    found = compare(RECORDS, CLASSES, versus="catboost")
    assert found.versus is None
    assert [row.beside for row in summarise(found)] == [None, None]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_of_means_is_shown_without_what_makes_it(sign):
    """One table of many, two smaller ones, and three that point the other way."""
    gaps = {"a": 40, "b": 4, "c": 3, "d": 0, "e": -1, "f": -2}
    records = [record(t, 0, "boosting", 50.0) for t in gaps]
    records += [record(t, 0, "forest", 50.0 - sign * gap) for t, gap in gaps.items()]
    both = beside(compare(records, CLASSES), "forest", "boosting")
    assert both.difference[0] == pytest.approx(-sign * 44 / 6)
    assert both.largest == [(t, 50.0 - sign * gaps[t], 50.0) for t in "abc"]
    assert both.without == pytest.approx((50 + sign, 50.0))
    assert (both.lower, both.higher) == ((3, 2) if sign > 0 else (2, 3))


def test_what_is_printed(capsys):
    print_task(compare(RECORDS, CLASSES), markdown=True, each=True)
    lines = capsys.readouterr().out.splitlines()
    cells = {tuple(line.strip("| ").split(" | ")) for line in lines if line.startswith("|")}
    head = ("method", "mean error", "less HistGradientBoosting's", "without 3", "median ratio", "ratio")
    assert (*head, "lower-higher", "p", "far behind") in cells
    errors = ("3.30 (2)", "+0.00 ± 3.00", "", "0.71", "0.71 ± 0.74", "1-1", "1.000", "1")
    assert ("fewkern, feature vectors", *errors) in cells
    assert ("c", "", "50.00") in {tuple(row) for row in cells}
    largest = "- fewkern, feature vectors : HistGradientBoosting: a 5.80 : 2.80, b 0.80 : 3.80"
    assert largest in lines
    print_task(compare(RECORDS, CLASSES, versus="none"), markdown=False, each=False)
    assert "less" not in capsys.readouterr().out.split("Sizes")[0]


@pytest.mark.parametrize(("lower", "higher", "p"), [(0, 0, 1.0), (1, 1, 1.0), (5, 0, 2 / 32), (1, 5, 14 / 64)])
def test_sign_test(lower, higher, p):
    assert sign_test(lower, higher) == pytest.approx(p)


def sizes(**errors):
    """Two tables of each task at two sizes; the method "svm" was stopped on one of them."""
    return [
        {**record(data, 0, name, error * (1 if size == "3000" else 0.5), task), "protocol": size, "rows": rows,
         "seconds": rows / 1000, "vectors": 40 if name == "balanced" else None}
        for size, rows in (("3000", 3000), ("all", 20000))
        for task, found in ((CLASSES, "ab"), (NUMBERS, "cd"))
        for data in found
        for name, error in errors.items()
        if (size, data, name) != ("all", "b", "svm")
    ]  # fmt: skip


def test_the_picture_has_what_every_size_has():
    figure = draw([*sizes(balanced=4.0, boosting=5.0, svm=6.0), {**record("e", 0, "boosting", 9.0), "seconds": 1.0}])
    assert len(figure.axes) == 6
    panel = figure.axes[0]
    assert panel.get_title() == "classification, 2 tables"
    lines = {line.get_color(): line for line in panel.get_lines()}
    ours, boosting, svm = (lines[picture._COLORS[name]] for name in ("balanced", "boosting", "svm"))
    np.testing.assert_allclose(ours.get_xydata(), [[3000, 4], [20000, 2]])
    np.testing.assert_allclose(boosting.get_ydata(), [5, 2.5])
    np.testing.assert_allclose(svm.get_xydata(), [[3000, 6]])
    np.testing.assert_allclose(figure.axes[2].get_lines()[0].get_ydata(), [3, 20])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["fewkern, balanced", "HistGradientBoosting", "SVM, grid"]


def test_stored_peers_stand_in_for_those_that_were_not_run():
    row = {"name": "a", "task": CLASSES, "n_train": "100", "hgb": "2.8", "rf": "", "xrfm": "4", "cpu_s_hgb": "0.5"}
    stored = stored_records([row], without=["svm"])
    assert [(r["method"], r["vectors"]) for r in stored] == [("boosting (stored)", None), ("xrfm (stored)", 80)]
    assert stored_records([row], without=["boosting", "xrfm"]) == []
    found = compare([r for r in RECORDS if r["method"] != "boosting"] + stored, CLASSES)
    assert found.versus == "boosting (stored)"
    assert beside(found, "feature-vectors", found.versus).ratio[0] == pytest.approx(4 / 3)
    assert label("boosting (stored)") == "HistGradientBoosting (stored)"


def test_ours_of_another_tree_stand_beside_those_of_this_one():
    before = records_before(RECORDS)
    assert {r["method"] for r in before} == {"feature-vectors (before)"}
    found = compare([*RECORDS, *({**r, "error": 2 * r["error"]} for r in before if "error" in r)], CLASSES)
    assert found.methods == ["feature-vectors", "feature-vectors (before)", "boosting"]
    assert beside(found, "feature-vectors", "feature-vectors (before)").difference[0] == pytest.approx(-3.3)
    assert (label(found.methods[1]), is_ours(found.methods[1])) == ("fewkern, feature vectors (before)", True)


def test_ranks_beside_published_methods():
    common = {"talent": "T", "task": "cls", "rows": "9", "dummy": "50"}
    rows = [
        {"name": "a", **common, "x": "5", "y": "9", "z": "", "best": "4"},
        {"name": "b", **common, "x": "3", "y": "2", "z": "1", "best": "1"},
    ]
    found, lacking = standings(compare([r for r in RECORDS if r["set"] != "c"], CLASSES), rows)
    assert lacking == ["z"]
    ranks = {s.method: (s.error, s.rank) for s in found}
    assert ranks["feature-vectors"] == pytest.approx((3.3, 1.5))  # second of 5, 5.8, 9; first of 0.8, 2, 3
    assert ranks["x"] == pytest.approx((4.0, 2.0))
    assert ranks["boosting"] == pytest.approx((3.3, 2.0))
    assert ranks["best of each table"][0] == 2.5
    assert found[0].method == "best of each table"
