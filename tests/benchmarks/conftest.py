"""Small made-up tables in the folder that ``FEWKERN_DATA`` names."""

import numpy as np
import pytest

from benchmarks.tables import data as tables_data
from benchmarks.tables.data import CLASSES, NUMBERS


def write_table(folder, name, rows=120, task=CLASSES, seed=0, kind="tables"):
    """A table with two columns of numbers, one of them with gaps, and two of categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    X[rng.random(rows) < 0.1, 1] = np.nan
    X[:, 2], X[:, 3] = rng.integers(0, 2, rows), rng.integers(0, 20, rows)
    y = (X[:, 0] > 0).astype(np.int32) if task == CLASSES else X[:, 0].astype(float) + 0.1 * rng.normal(size=rows)
    (folder / kind).mkdir(exist_ok=True)
    cat = np.array([False, False, True, True])
    np.savez(folder / kind / f"{name}.npz", X=X, y=y, cat=cat, task=task)
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
