"""``fewkern compress``: a short model of a table."""

import numpy as np

import fewkern
from tests.app.running import run
from tests.tables.examples import mixed


def test_a_classifier_of_a_table(tmp_path):
    frame = mixed(200)
    frame.to_csv("table.csv", index=False)
    run("fit", "table.csv", "--target", "side", "--model", "discriminant", "--prefer", "accurate", "--holdout", 0)
    result = run("compress", "fewkern-model.npz", "table.csv", "--vectors", 6, "--tolerance", 0.3)
    assert "written: fewkern-short.npz" in result.stdout
    assert "equal decisions" in result.stdout
    long, short = fewkern.load("fewkern-model.npz"), fewkern.load("fewkern-short.npz")
    assert short.estimator_.n_vectors_ == 6 == short.facts_.vectors
    assert short.facts_.bytes < long.facts_.bytes
    assert np.mean(short.predict(frame) == long.predict(frame)) > 0.9
    run("info", "fewkern-short.npz")
    run("export", "fewkern-short.npz", "short.c")
    assert (tmp_path / "short.c").exists()
    said = run("compress", "fewkern-model.npz", "table.csv", "--vectors", 1, "--tolerance", 0).stderr
    assert "note: compress: 1 vectors do not agree" in said
