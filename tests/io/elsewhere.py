"""Run what was exported to JavaScript and SQL: node, and sqlite3."""

import json
import math
import shutil
import sqlite3
import subprocess
from contextlib import closing

import numpy as np
import pytest

NODE = shutil.which("node")
_PROGRAM = """
import * as model from "./model.mjs";
import {{ readFileSync }} from "node:fs";
const rows = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(rows.map((x) => ({{ {calls} }}))));
"""
# By the names of ONNX.
_CALLS = {
    "label": "predict",
    "variable": "predict",
    "probabilities": "predictProba",
    "decision": "decision",
    "log_density": "logDensity",
    "set": "predictSet",
    "novelty": "novelty",
    "is_novel": "isNovel",
}


def plain_rows(X):
    """Rows of an array or a data frame as JSON has them: null where a cell is missing."""
    if hasattr(X, "to_dict"):
        return X.astype(object).where(X.notna(), None).to_dict("records")
    return [[None if np.isnan(one) else one for one in row] for row in np.asarray(X, float).tolist()]


def run_js(folder, text, rows, names):
    """Outputs of a module at rows, by the names of ONNX; skips where there is no node."""
    if NODE is None:
        pytest.skip("node is not installed")
    exports = text.rsplit("export", 1)[1]
    calls = {name: _CALLS[name] for name in names if name in _CALLS}
    if "transform" in exports:
        calls["variable"] = "transform"
    if "lower" in names:
        calls["interval"] = "interval"
    (folder / "model.mjs").write_text(text, encoding="ascii")
    body = ", ".join(f"{name}: model.{function}(x)" for name, function in calls.items())
    (folder / "run.mjs").write_text(_PROGRAM.format(calls=body))
    done = subprocess.run(
        [NODE, str(folder / "run.mjs")], input=json.dumps(rows), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    out = {name: np.array([row[name] for row in found]) for name in calls if name != "set"}
    if "set" in calls:
        out["set"] = [row["set"] for row in found]
    if "interval" in out:
        both = out.pop("interval")
        out |= {"lower": both[..., 0], "upper": both[..., 1]}
    return {n: v[:, None] if n not in ("label", "set") and v.ndim == 1 else v for n, v in out.items()}


def run_sql(expressions, columns, rows):
    """Values of expressions at rows of a table, from SQLite; exp is registered where it was built without it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT exp(1.0)")
        except sqlite3.OperationalError:
            connection.create_function("exp", 1, math.exp)
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        connection.execute(f"CREATE TABLE data ({quoted})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO data VALUES ({marks})", rows)
        asked = ",\n".join(expressions)
        return connection.execute(f"SELECT {asked} FROM data ORDER BY rowid").fetchall()
