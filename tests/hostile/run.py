"""Fit every estimator on a hostile input and say how it ended."""

from __future__ import annotations

import linecache
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.utils

import fewkern
from tests.checks.everyone import ALL, fresh, outputs
from tests.hostile.inputs import CASES, KERNEL_CASES, Case

__all__ = ["Outcome", "Trial", "run", "trials"]

RESULTS = ("answered", "warned", "refused", "wrong")
# An error is clear if one of these packages has a ``raise`` for it.
_OURS = (Path(fewkern.__file__).parent, Path(sklearn.utils.__file__).parent)
# Other settings under which the inputs are tried, for the estimators that have all of the parameters.
_VARIANTS: dict[str, dict[str, Any]] = {
    "greedy": {"rule": "greedy", "center": True},
    "symmetric": {"projection": "symmetric", "rule": "greedy"},
    "q=1": {"q": 1.0},
    "q=0.5": {"q": 0.5},
    "unscaled": {"scale": "none"},
    "whitened": {"scale": "whiten"},
    "likelihood bandwidth": {"bandwidth": "likelihood"},
    "recursive": {"recursive": True, "n_components": None},
    "all components": {"C": 1e6, "n_components": None},
    "balanced": {"class_weight": "balanced"},
}
# Words of a message that say more of NumPy or scikit-learn than of what to do.
_FOREIGN_WORDS = ("np.int64(", "np.float64(", "np.str_(", "HistGradientBoosting")
# How the warnings of scikit-learn begin that a user with such labels should see.
_ABOUT_LABELS = ("A column-vector y was passed", "The number of unique classes is greater than 50%")
# OpenBLAS may set this flag for finite factors with a finite product (numpy issue 24067). A product that really is NaN
# shows up in an answer, which is checked.
_OF_BLAS = "invalid value encountered in matmul"


@dataclass(frozen=True)
class Trial:
    """One estimator, one variant of its settings, one input."""

    model: Any
    variant: str
    case: str

    @property
    def name(self) -> str:
        variant = f" ({self.variant})" if self.variant else ""
        return f"{type(self.model).__name__}{variant}, {self.case}"

    def build(self) -> tuple[Any, Case]:
        """The unfitted model and its input."""
        case = (CASES.get(self.case) or KERNEL_CASES[self.case])()
        known = self.model.get_params(deep=False)
        settings = {key: value for key, value in case.settings.items() if key in known}
        return fresh(self.model, **{**_VARIANTS.get(self.variant, {}), **settings}), case


@dataclass(frozen=True)
class Outcome:
    """How a trial ended."""

    trial: Trial
    result: str
    """One of ``RESULTS``."""
    detail: str = ""


def trials() -> Iterator[Trial]:
    """The whole table."""
    for model in ALL:
        known = set(model.get_params(deep=False))
        variants = ["", *(name for name, settings in _VARIANTS.items() if settings.keys() <= known)]
        for variant in variants:
            for case in CASES:
                yield Trial(model, variant, case)
        if "kernel" in known:
            for case in KERNEL_CASES:
                yield Trial(model, "", case)


def run(trial: Trial) -> Outcome:
    """Fit, ask everything, and judge."""
    model, case = trial.build()
    found: dict[str, np.ndarray] = {}
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(case.X, case.y, sample_weight=case.weights)
            found = outputs(model, case.X if case.new is None else case.new)
        except Exception as raised:
            error = raised
    bad = _bad_error(error) or _bad_warning(caught)
    if error is not None:
        return Outcome(trial, "wrong" if bad else "refused", bad or str(error))
    bad = bad or _bad_answer(model, found)
    if bad:
        return Outcome(trial, "wrong", bad)
    said = [str(one.message) for one in caught if str(one.message) != _OF_BLAS]
    return Outcome(trial, "warned" if said else "answered", said[0] if said else "")


def _bad_error(error: Exception | None) -> str:
    """What is wrong with a refusal; empty if it is clear: somebody meant it, and it talks of the user's input."""
    if error is None:
        return ""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    if not isinstance(error, (ValueError, TypeError)):
        return text
    meant = any(root in Path(last.filename).parents for root in _OURS)
    if not meant or not linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise"):
        return f"nobody meant this {text}"
    words = [word for word in _FOREIGN_WORDS if word in str(error)]
    return f"the message says {words[0]} {text}" if words else ""


def _bad_warning(caught: list[warnings.WarningMessage]) -> str:
    """The first warning that is not for users; empty if all are."""
    for one in caught:
        if str(one.message) == _OF_BLAS:
            continue
        if not issubclass(one.category, UserWarning):
            return f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
        if not any(name in str(one.message) for name in (*fewkern.__all__, *_ABOUT_LABELS)):
            return f"a warning that names nobody: {one.message}"
    return ""


def _bad_answer(model: Any, found: dict[str, np.ndarray]) -> str:
    for method, value in found.items():
        if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
            return f"{method} is not finite"
    if "predict_proba" in found and np.abs(found["predict_proba"].sum(axis=1) - 1).max() > 1e-5:
        return "probabilities do not add up to one"
    if "predict_proba" in found and not set(found["predict"].tolist()) <= set(model.classes_.tolist()):
        return "predicts a class that was not there"
    return ""
