"""Tables that several tests use."""

import numpy as np
import pandas as pd

from fewkern.datasets import make_banana


def banana(n=120):
    X, y = make_banana(n)
    return pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "side": np.where(y == 1, "right", "left")})


def messy(n=120):
    """Numbers with gaps, a category, a date, a flag, an index, a key, a constant, an empty column."""
    frame = banana(n)
    frame.insert(0, "nr", range(n))
    frame["colour"] = np.where(np.arange(n) % 3 == 0, "red", "blue")
    frame["when"] = pd.date_range("2020-01-01", periods=n).astype(str)
    frame["on"] = np.arange(n) % 2 == 0
    frame["name"] = [f"n{k}" for k in range(n)]
    frame["fixed"], frame["empty"] = 1, None
    frame.loc[[3, 5], "x0"] = np.nan
    frame.loc[7, "colour"] = None
    frame.loc[11, "side"] = None
    return frame


def mixed(n=120):
    return messy(n)[["colour", "x0", "x1", "side"]]


def patients(count=40, visits=8):
    """Visits of patients who differ from each other; the label is by chance, one per patient."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(count), visits)
    frame = pd.DataFrame(rng.normal(size=(count, 4))[patient] + 0.1 * rng.normal(size=(count * visits, 4)))
    frame.columns = list("abcd")
    frame["patient"] = [f"p{k:02d}" for k in patient]
    frame["ill"] = np.where(rng.random(count) < 0.5, "yes", "no")[patient]
    return frame.sample(frac=1, random_state=0, ignore_index=True)
