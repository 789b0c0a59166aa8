"""What the API pages show: every attribute of a fitted estimator is described, and no summary is cut."""

import inspect
import re
import warnings
from pydoc import locate

import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import fewkern
from fewkern.datasets import make_banana
from tests.test_api_page import listed

ESTIMATORS = [
    name
    for name in fewkern.__all__
    if isinstance(getattr(fewkern, name), type) and issubclass(getattr(fewkern, name), BaseEstimator)
]
# scikit-learn's, and described in its manual
KNOWN = {"n_features_in_", "feature_names_in_"}


def described(text):
    """Names of the section "Attributes" of a docstring."""
    section = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n(?=[A-Z][a-z ]+\n-+\n)|\Z)", text, re.DOTALL | re.MULTILINE)[1]
    heads = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(",")}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_fitted_attribute_is_described(name):
    X, y = make_banana(80, random_state=0)
    cls = getattr(fewkern, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "class": y})
        given = {"TableModel": (table, "class"), "TableEncoder": (table,)}.get(name, (X, y))
        model = cls().fit(*given)
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    assert fitted - KNOWN - described(inspect.getdoc(cls)) == set()


def test_every_summary_is_a_whole_sentence():
    """Sphinx ends a summary at the first full stop that a space follows."""
    for name in listed():
        first = inspect.getdoc(locate(f"fewkern.{name}")).split("\n\n")[0].replace("\n", " ")
        summary = re.split(r"(?<=\.)\s+(?=[A-Z0-9])", first)[0]
        assert summary.endswith("."), summary
        assert summary.count("(") == summary.count(")"), summary


def test_every_public_method_is_described():
    missing = [
        f"{name}.{key}"
        for name in ESTIMATORS
        for key, value in inspect.getmembers(getattr(fewkern, name), callable)
        if not key.startswith("_") and not (inspect.getdoc(value) or "").strip()
    ]
    assert missing == []
