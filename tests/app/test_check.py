"""``fewkern check``: what is printed and written."""

import pandas as pd

from tests.app.running import run
from tests.tables.examples import banana


def test_findings_errors_and_rows_are_printed_and_all_rows_written(tmp_path):
    table = banana(200)
    table.loc[11, "side"] = "left" if table["side"][11] == "right" else "right"
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
