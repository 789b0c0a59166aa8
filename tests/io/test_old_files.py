"""Files that earlier versions wrote still load, and answer as they did when they were written."""

from pathlib import Path

import numpy as np
import pytest

from fewkern import load
from tests.golden.cases import table

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "format1").glob("*.npz"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
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
    models = {type(model).__name__: model for model in map(load, FILES)}
    with pytest.raises(AttributeError, match=r"predict_interval: .*a file of an older version has none.*fit it again"):
        models["FeatureVectorRegressor"].predict_interval(new)
    with pytest.raises(AttributeError, match=r"predict_set: .*a file of an older version has none"):
        models["FeatureVectorDiscriminant"].predict_set(new)
    with pytest.raises(AttributeError, match=r"novelty: .*a file of an older version has none"):
        models["FeatureVectorDiscriminant"].novelty(new)
