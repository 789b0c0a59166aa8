"""``fewkern explain``: the prediction for one row of a table, column by column."""

import numpy as np
import pandas as pd

import fewkern
from tests.app.running import fails, run
from tests.tables.examples import banana, mixed


def test_a_row_column_by_column(tmp_path):
    frame = mixed(120)
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--target", "side", "--holdout", 0)
    result = run("explain", "fewkern-model.npz", "table.csv", "--row", 8, "--out", "row.png")
    lines = result.stdout.strip().splitlines()
    model = fewkern.load("fewkern-model.npz")
    assert len(lines) == len(model.encoder_.columns) + 2
    assert lines[0].startswith("baseline")
    assert lines[-1].startswith("score (positive: ")
    numbers = [float(line.split()[-1]) for line in lines]
    assert abs(sum(numbers[:-1]) - numbers[-1]) < 0.01
    sizes = np.abs(numbers[1:-1])
    assert (sizes[:-1] >= sizes[1:] - 1e-9).all()
    cells = pd.read_csv("table.csv", dtype=str).loc[7]
    assert any(line.startswith(f"{name} = {cells[name]} ") for line in lines for name in model.encoder_.columns)
    assert (tmp_path / "row.png").stat().st_size > 1000
    fails("explain", "fewkern-model.npz", "table.csv", "--row", 121, match="no row 121; the table has 120 rows")


def test_a_density_has_nothing_to_explain():
    banana().drop(columns="side").to_csv("numbers.csv", index=False)
    run("fit", "numbers.csv", "--task", "density", "--holdout", 0, "--out", "d.npz")
    fails("explain", "d.npz", "numbers.csv", "--row", 1, match="task 'density' predicts nothing")


def test_reports_count_rows_from_one_too(monkeypatch):
    banana().to_csv("table.csv", index=False)
    run("fit", "table.csv", "--holdout", 0)
    seen, report = [], fewkern.TableModel.report

    def watched(model, rows, *given, **named):
        seen.append(rows)
        return report(model, rows, *given, **named)

    monkeypatch.setattr(fewkern.TableModel, "report", watched)
    run("report", "fewkern-model.npz", "table.csv", "--out", "r.html")
    assert list(seen[0].index[:2]) == [1, 2]
