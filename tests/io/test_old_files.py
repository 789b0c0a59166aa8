"""Files that earlier versions wrote still load, and answer as they did when they were written."""

from pathlib import Path

import numpy as np
import pytest

from fewkern import load
from tests.golden.cases import table

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "format1").glob("*.npz"))


@pytest.mark.parametrize("file", [f for f in FILES if f.stem != "table"], ids=lambda f: f.stem)
def test_format_1(file):
    model = load(file)
    new = table("three", 60)[3]
    with np.load(FOLDER / "format1-answers.npz") as answers:
        recorded = {key.split("|")[1]: answers[key] for key in answers.files if key.split("|")[0] == file.stem}
    assert recorded
    for method, expected in recorded.items():
        found = getattr(model, method)(new)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10, err_msg=method)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=method)


def test_format_1_has_no_held_out_values():
    """A model of an older version predicts, and says what it cannot say."""
    new = table("three", 60)[3]
    models = {type(model).__name__: model for model in map(load, (f for f in FILES if f.stem != "table"))}
    with pytest.raises(AttributeError, match=r"predict_interval: .*a file of an older version has none.*fit it again"):
        models["FeatureVectorRegressor"].predict_interval(new)
    with pytest.raises(AttributeError, match=r"predict_set: .*a file of an older version has none"):
        models["FeatureVectorClassifier"].predict_set(new)
    with pytest.raises(AttributeError, match=r"novelty: .*a file of an older version has none"):
        models["FeatureVectorClassifier"].novelty(new)


def test_format_1_table():
    from fewkern.datasets import make_banana

    X, y = make_banana(200, random_state=5)
    model = load(FOLDER / "format1" / "table.npz")
    sides = np.array(["left", "right"])[y]
    assert np.mean(model.predict({"x0": X[:, 0], "x1": X[:, 1]}) == sides) > 0.8
    assert model.task_ == "classify"
    assert model.target_ == "side"
    assert ("error, cross-validated", "12.00%") in model.summary()
    assert model.kept().shape == (22, 3)  # an old file does not know which rows they are
