"""What every estimator decides at its defaults, on tables of 120 to 11,000 rows: a record of decisions.

The record of ``cases.py`` is about exact results of small fits in fixed settings. This one is about choices: the width,
the ridge, the number of vectors, whether vectors were moved, and what all of it costs on rows that were not seen.
``python -m tests.golden decisions`` prints what differs from the record, the largest difference first.

The estimators are those of ``fewkern.__all__``: one that comes or goes needs no change here, only a new record.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

import fewkern

RECORD = Path(__file__).with_name("decisions.json")
LETTERS = np.array(list("abcdefghij"))
FRESH, SHOWN = 2000, 200
"""Rows that measure the error, and how many of them have their predictions in the record."""
DIGITS = 5
"""Significant digits of a number in the record."""

# Rows, features and classes. Every number of rows has both widths, every number of classes small and large tables.
# Regressors take the same rows and features with numbers for the classes; without a target only the features count.
TABLES = (
    (120, 3, 2),
    (120, 40, 3),
    (260, 3, 10),
    (260, 40, 2),
    (900, 3, 3),
    (900, 40, 10),
    (1600, 3, 10),
    (1600, 40, 2),
    (5200, 3, 2),
    (5200, 40, 3),
    (11000, 3, 10),
    (11000, 40, 2),
)
# The informative columns of a wide table; all others are noise.
INFORMATIVE = {3: (0, 1, 2), 40: (4, 11, 17, 26, 33)}
QUICK = TABLES[:3]
"""What the test suite fits; the command fits all."""
# Cases that are not in the record: each takes 5 to 60 s of one core, and its estimator has others of that kind. A
# TableModel fits the estimator of its task, which has cases of its own.
LEFT_OUT = {
    "DensityClassifier": ("1600x3", "5200", "11000"),
    "FeatureVectorDiscriminant": ("11000x40",),
    "FeatureVectorRegressor": ("11000x40",),
    "ForwardKernelFisher": ("1600x3", "5200x40", "11000x3"),
    "OrthogonalForwardDensity": ("1600x3", "5200", "11000"),
    "RecursiveSoftMargin": ("900x40",),
    "ReducedSetDensity": ("900x40", "1600x40", "5200x40", "11000x40"),
    "SparseKernelFisher": ("900x40", "1600x3", "5200x40", "11000"),
    "TableModel": ("1600", "5200", "11000"),
}

# What a fitted estimator says of its choices; each has some of these.
CHOICES = (
    "task_",
    "model_",
    "n_vectors_",
    "loss_",
    "kernel_",
    "bandwidth_",
    "alpha_",
    "n_components_",
    "stop_",
    "held_out_error_",
)


@dataclass(frozen=True)
class Case:
    """An estimator at its defaults, and the table that it is fitted to."""

    estimator: str
    rows: int
    features: int
    answer: str
    """"2 classes", "numbers" or "no target"."""

    @property
    def quick(self) -> bool:
        tables = QUICK[:1] if self.estimator == "TableModel" else QUICK  # it fits the estimator of its task twice
        return any((self.rows, self.features) == one[:2] for one in tables)

    @property
    def name(self) -> str:
        return f"{self.estimator}/{self.rows}x{self.features}/{self.answer}"


def estimators() -> dict[str, type]:
    """Public estimators by name, as the package lists them."""
    found = {name: getattr(fewkern, name) for name in fewkern.__all__}
    return {name: cls for name, cls in found.items() if isinstance(cls, type) and hasattr(cls, "fit")}


def answers(model: Any) -> tuple[str, ...]:
    """What an estimator learns from: "classes", "numbers" or "no target"; one for any task takes both targets."""
    tags = get_tags(model)
    if is_classifier(model):
        return ("classes",)
    if is_regressor(model):
        return ("numbers",)
    if tags.target_tags.required:
        return ("classes",)
    if tags.estimator_type is None and tags.transformer_tags is None:
        return ("classes", "numbers")
    return ("no target",)


def cases() -> Iterator[Case]:
    """The cases of the record."""
    for name, cls in estimators().items():
        for answer in answers(cls()):
            for rows, features, classes in TABLES:
                if not f"{rows}x{features}".startswith(LEFT_OUT.get(name, ())):
                    yield Case(name, rows, features, f"{classes} classes" if answer == "classes" else answer)


def table(rows: int, features: int, answer: str) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]:
    """``X, y`` to fit and fresh ones. All is drawn here, so that no generator of the package can move the record."""
    classes = int(answer.split()[0]) if answer.endswith("classes") else 3
    rng = np.random.default_rng([rows, features, classes])
    places, total = list(INFORMATIVE[features]), rows + FRESH
    X = rng.standard_normal((total, features)) * np.exp(rng.uniform(-1.0, 1.0, features))
    # Two clumps per class, bent along the first informative column.
    clump = rng.integers(2 * classes, size=total)
    centres = 1.8 * rng.standard_normal((2 * classes, len(places)))
    Z = centres[clump] + (0.7 if features == 3 else 0.9) * rng.standard_normal((total, len(places)))
    Z[:, 1] += 0.3 * Z[:, 0] ** 2
    X[:, places] = Z
    if answer == "no target":
        return X[:rows], None, X[rows:], None
    if answer == "numbers":
        y = np.sin(1.5 * Z[:, 0]) + 0.4 * Z[:, 1] * np.tanh(Z[:, 2]) + 0.3 * rng.standard_normal(total)
    else:
        y = LETTERS[clump % classes]
    return X[:rows], y[:rows], X[rows:], y[rows:]


def rounded(value: float) -> float | str:
    """To the digits of the record. JSON has no numbers that are not finite."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else str(float(value))


def plain(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Names and plain values of what an attribute holds; of more than three numbers the least, median and largest."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, (bool, int)):
        yield name, value
    elif isinstance(value, str):  # of an enumeration, its word
        yield name, str.__str__(value)
    elif isinstance(value, float):
        yield name, rounded(value)
    elif isinstance(value, np.ndarray):
        several = value.ravel() if value.size <= 3 else np.quantile(value, [0.0, 0.5, 1.0])
        yield name, [rounded(float(number)) for number in several]
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from plain(entry, f"{name}.{key}")
    else:  # a kernel
        yield name, type(value).__name__
        for field in fields(value):
            yield from plain(getattr(value, field.name), f"{name}.{field.name}")


def decisions(model: Any, prefix: str = "") -> dict[str, Any]:
    """What a fitted estimator chose: whichever of its public attributes there are, by name, without the underscore."""
    found: dict[str, Any] = {f"{prefix}type": type(model).__name__}
    for attribute in CHOICES:
        value = getattr(model, attribute, None)
        if value is not None:
            found.update(plain(value, f"{prefix}{attribute[:-1]}"))
    setting = getattr(getattr(model, "path_", None), "setting", None)
    if isinstance(setting, dict):
        found.update(plain(setting, f"{prefix}setting"))
    if getattr(model, "estimator_", None) is not None:
        found.update(decisions(model.estimator_, f"{prefix}estimator."))
    for i, part in enumerate(getattr(model, "densities_", ())):
        found.update(decisions(part, f"{prefix}{i}."))
    return found


def run(case: Case) -> dict[str, Any]:
    """Fit the case on one core: what was decided, the error on fresh rows, and the predictions of some of them."""
    X, y, fresh, truth = table(case.rows, case.features, case.answer)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = estimators()[case.estimator]()
        model.fit(X) if y is None else model.fit(X, y)
        result: dict[str, Any] = {"decisions": decisions(model)}
        if hasattr(model, "predict"):
            said = np.asarray(model.predict(fresh))
        elif hasattr(model, "score_samples"):
            said = np.asarray(model.score_samples(fresh))
            result["log density"] = rounded(float(np.mean(said)))
        else:
            said = np.asarray(model.transform(fresh))
            result["decisions"]["columns"] = said.shape[1]
            result["decisions"]["squared size"] = rounded(float(np.mean(np.sum(said**2, axis=1))))
            said = said[:, 0]
    labels = said.dtype.kind in "UO"
    if truth is not None and hasattr(model, "predict"):
        wrong = np.mean(said != truth) if labels else np.mean((said - truth) ** 2) / np.var(truth)
        result["error"] = rounded(float(wrong))
    shown = said[:SHOWN]
    result["predictions"] = "".join(shown) if labels else [rounded(float(value)) for value in shown]
    return result


def read() -> dict[str, dict[str, Any]]:
    """The results of every case by its name."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def write(results: dict[str, dict[str, Any]]) -> None:
    """Replace the record: one line per case."""
    lines = [f"{json.dumps(name)}:{json.dumps(results[name], separators=(',', ':'))}" for name in sorted(results)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def gap(new: Any, old: Any, either_sign: bool = False) -> float:
    """How far predictions are from those of the record: share of other labels, or largest gap by the spread."""
    if type(new) is not type(old) or len(new) != len(old):
        return 1.0
    if isinstance(old, str):
        return float(np.mean([a != b for a, b in zip(new, old)]))
    a, b = np.asarray(new, dtype=float), np.asarray(old, dtype=float)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return 1.0
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    far = min(float(np.max(np.abs(sign * a - b), initial=0.0)) for sign in ((1, -1) if either_sign else (1,)))
    return far / max(float(np.std(b)) if b.size else 0.0, 1e-300)


# What counts as the same decision: rounding is less, another choice is more.
SETTING_RTOL = 1e-3
"""Of a length scale or a ridge; whole numbers and words must be equal."""
ERROR_ATOL = 5e-3
"""Of an error rate, of 1 - R2, and of the mean log density."""
LABELS_SHARE, VALUES_SPREAD = 0.01, 1e-3
"""Of predictions: the share of other labels, and the gap between numbers relative to their spread."""


def difference(new: dict[str, Any], old: dict[str, Any] | None) -> tuple[float, list[str]]:
    """How large the difference is, and what differs, old -> new.

    The size is what a user would notice most: the change of the error, the share of predictions that are others, a
    tenth of the relative change of the number of vectors. Other settings count little by themselves.
    """
    if old is None:
        return 0.0, ["not in the record"]
    size, parts = 0.0, []
    for name in ("error", "log density"):
        a, b = new.get(name), old.get(name)
        if a != b and (not _numbers(a, b) or abs(a - b) > ERROR_ATOL):
            size = max(size, abs(a - b) if _numbers(a, b) else 1.0)
            parts.append(f"{name} {b} -> {a}")
    labels, component = isinstance(old["predictions"], str), "columns" in old["decisions"]
    far = gap(new["predictions"], old["predictions"], either_sign=component)
    if far > (LABELS_SHARE if labels else VALUES_SPREAD):
        size = max(size, min(far, 1.0))
        parts.append(f"{100 * far:.3g}% of labels" if labels else f"predictions by {100 * far:.3g}% of their spread")
    ours, theirs = new["decisions"], old["decisions"]
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        a, b = ours.get(name), theirs.get(name)
        if not _same(a, b):
            counted = name.rpartition(".")[2] == "n_vectors" and _numbers(a, b)
            size = max(size, 0.1 * min(abs(a - b) / max(a, b, 1), 1.0) if counted else 1e-3)
            parts.append(f"{name} {json.dumps(b)} -> {json.dumps(a)}")
    return size, parts


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(one, other) for one, other in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= SETTING_RTOL * max(abs(a), abs(b))
    return type(a) is type(b) and a == b


def problems(new: dict[str, Any], old: dict[str, Any] | None) -> list[str]:
    """What differs by more than another machine may make differ.

    A search makes differences in the last digits grow, and one of two equally good models is taken here and the other
    there. The kind of the model, about how many vectors it keeps and how well it does must stay.
    """
    if old is None:
        return ["not in the record"]
    found = []
    for name, value in old["decisions"].items():
        now = new["decisions"].get(name)
        last = name.rpartition(".")[2]
        if last in ("type", "kernel", "task", "model", "columns") and now != value:
            found.append(f"{name} {value} -> {now}")
        if name in ("n_vectors", "estimator.n_vectors") and (
            not _numbers(now) or abs(now - value) > max(3, 0.3 * max(value, now))
        ):
            found.append(f"{name} {value} -> {now}")
    for name, allowed in (("error", max(0.02, 0.15 * old.get("error", 0.0))), ("log density", 0.1)):
        if name in old and (not _numbers(new.get(name)) or abs(new[name] - old[name]) > allowed):
            found.append(f"{name} {old[name]} -> {new.get(name)}")
    return found


def main(arguments: list[str]) -> int:
    """``decisions [--write] [NAME ...]``: only cases whose names contain one of the words, all without any."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    record, every = read(), [case.name for case in cases()]
    found = {case.name: run(case) for case in cases() if not words or any(word in case.name for word in words)}
    changed = [(*difference(result, record.get(name)), name) for name, result in found.items()]
    changed += [(0.0, ["in the record, but not here"], name) for name in sorted(record.keys() - set(every))]
    changed = sorted((entry for entry in changed if entry[1]), key=lambda entry: (-entry[0], entry[2]))
    for _, parts, name in changed:
        print(f"{name}: {', '.join(parts)}")
    print(f"{len(found)} cases, {len(changed)} differ")
    if "--write" in arguments:
        write({**{name: old for name, old in record.items() if name in every}, **found})
        print(f"{len(found)} cases written, {RECORD.stat().st_size / 1000:.0f} kB")
        return 0
    return int(bool(changed))
