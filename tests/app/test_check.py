"""``fewkern check``: what is printed and written."""

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons

from tests.app.running import run


def test_findings_errors_and_rows_are_printed_and_all_rows_written(tmp_path):
    X, y = make_moons(200, noise=0.15, random_state=0)
    y[11] = 1 - y[11]
    table = pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "side": np.where(y == 1, "right", "left")})
    table.to_csv("t.csv", index=False)
    shown = run("check", "t.csv", "--target", "side", "--show", "1").stdout
    assert shown.startswith("side: 200 rows, classes\n")
    assert "rows one by one" in shown
    assert "the last fifth of the rows" in shown
    assert "least credible first:\n  row 12: " in shown
    assert shown.count("  row ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    run("check", "t.csv", "--out", "ranked.csv")
    ranked = pd.read_csv("ranked.csv")
    assert ranked["row"][0] == 12
    assert ranked["score"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(ranked.sort_values("row", ignore_index=True)[list(table.columns)], table)
