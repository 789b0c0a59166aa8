"""``fewkern check``: what is printed and written."""

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons

from tests.app.test_commands import fails, run


def write(numbers=False):
    X, y = make_moons(200, noise=0.15, random_state=0)
    table = pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "side": np.where(y == 1, "right", "left")})
    if numbers:
        table["side"] = X[:, 0] + X[:, 1] ** 2
        table.loc[11, "side"] = 40.0
    else:
        table.loc[11, "side"] = "left" if y[11] == 1 else "right"
    table.to_csv("t.csv", index=False)
    return table


def test_findings_errors_and_rows_are_printed_and_nothing_is_written(tmp_path):
    write()
    shown = run("check", "t.csv", "--target", "side", "--show", "1").stdout
    assert shown.startswith("side: 200 rows, classes\n")
    assert "rows one by one" in shown
    assert "the last fifth of the rows" in shown
    assert "least credible first:\n  row 12: " in shown
    assert shown.count("  row ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_numbers():
    write(numbers=True)
    shown = run("check", "t.csv", "--target", "side").stdout
    assert "row 12 (40) is far from all others" in shown
    assert "  row 12: 40, expected " in shown


def test_all_rows_are_written():
    table = write()
    run("check", "t.csv", "--out", "ranked.csv")
    ranked = pd.read_csv("ranked.csv")
    assert ranked["row"][0] == 12
    assert ranked["score"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(ranked.sort_values("row", ignore_index=True)[list(table.columns)], table)


def test_errors():
    write()
    fails("check", "t.csv", "--target", "nothing", match="target: there is no column 'nothing'")
    fails("check", "t.csv", "--task", "density", match="the task must be 'auto', 'classify' or 'regress'")
    fails("check", "t.csv", "--out", "t.csv", match="that is the file to read")
