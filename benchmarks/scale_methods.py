"""What ``python -m benchmarks scale`` measures: a table of any number of rows, the methods, and one fit in a process.

``python -m benchmarks.scale_methods NAME ROWS [FOLDER]`` makes one fit and prints what it took, as JSON. With a folder
the table lies there in files, and is fitted through Dask.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil

__all__ = ["METHODS", "Method", "Table", "measure"]

Task = Literal["classes", "numbers", "density"]
Values = dict[str, Any]

FEATURES, PART_ROWS, TEST_ROWS = 20, 100_000, 20_000
# Number of the part that new rows come from: no table has so many.
_TEST_PART = 10_000_019
_LUMPS = 8
_LEAF_ROWS = 20_000


@dataclass(frozen=True)
class Table:
    """Rows in eight lumps; a curved surface of six of the twenty features divides two classes, one label in 20 turned.

    The number is the height above the surface, with noise.
    """

    X: Any
    height: Any
    label: Any

    def target(self, task: Task) -> Any:
        """What is learned beside the samples."""
        return {"classes": self.label, "numbers": self.height, "density": None}[task]


def part(number: int, rows: int) -> Table:
    """Rows of the endless table: the same ones for the same numbers."""
    lumps = np.random.default_rng(11).standard_normal((_LUMPS, FEATURES))
    rng = np.random.default_rng([7, number])
    X = 0.8 * rng.standard_normal((rows, FEATURES)) + lumps[rng.integers(0, _LUMPS, rows)]
    height = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.5 * X[:, 3] ** 2 - 0.7 + 0.3 * X[:, 4] + 0.2 * X[:, 5]
    label = (height > 0) ^ (rng.random(rows) < 0.05)
    return Table(X, height + 0.2 * rng.standard_normal(rows), label.astype(np.int64))


def _sizes(rows: int) -> Iterator[tuple[int, int, int]]:
    """Number, first row and length of every part of a table."""
    for number, first in enumerate(range(0, rows, PART_ROWS)):
        yield number, first, min(PART_ROWS, rows - first)


def in_memory(rows: int) -> Table:
    """A table, made part by part: the memory that it takes is that of its rows."""
    X, height, label = np.empty((rows, FEATURES)), np.empty(rows), np.empty(rows, np.int64)
    for number, first, count in _sizes(rows):
        some = part(number, count)
        X[first : first + count], height[first : first + count] = some.X, some.height
        label[first : first + count] = some.label
    return Table(X, height, label)


def in_files(rows: int, folder: Path) -> Table:
    """A table as Dask arrays over files; those that are there stay."""
    import dask.array as da
    from dask import delayed

    folder.mkdir(parents=True, exist_ok=True)
    columns: list[list[Any]] = [[], [], []]
    for number, _, count in _sizes(rows):
        path = folder / f"part-{number:05d}-{count}.npz"
        if not path.exists():
            some, temporary = part(number, count), path.with_suffix(".tmp.npz")
            np.savez(temporary, X=some.X, height=some.height, label=some.label)
            temporary.rename(path)
        for column, (key, shape, kind) in zip(
            columns, [("X", (count, FEATURES), float), ("height", (count,), float), ("label", (count,), np.int64)]
        ):
            column.append(da.from_delayed(delayed(_read)(path, key), shape, kind))
    return Table(*(da.concatenate(column) for column in columns))


def _read(path: Path, key: str) -> Any:
    with np.load(path) as found:
        return found[key]


@dataclass(frozen=True)
class Method:
    """A fit in the comparison."""

    label: str
    task: Task
    build: Callable[[], Any]
    version: str
    """Results of another version are measured again: raise it when a method changes."""
    ours: bool = True
    package: str | None = None
    streams: bool = False
    """Whether it takes Dask collections."""

    @property
    def installed(self) -> bool:
        return self.package is None or importlib.util.find_spec(self.package) is not None


def _fewkern(name: str) -> Callable[[], Any]:
    def build() -> Any:
        import fewkern

        return getattr(fewkern, name)()

    return build


def _histograms(kind: str) -> Callable[[], Any]:
    def build() -> Any:
        from sklearn import ensemble

        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0)

    return build


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


def _nystroem() -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # at standard scale the mean squared distance of two samples is twice the number of features
    features = Nystroem(gamma=0.5 / FEATURES, n_components=300, random_state=0)
    return make_pipeline(StandardScaler(), features, SGDClassifier(loss="log_loss", random_state=0))


@dataclass
class _Machine:
    """xRFM, which needs a part held out. Its leaves hold 20,000 rows: a matrix of its default, 60,000, takes 14 GB."""

    machine: Any = None

    def fit(self, X: Any, y: Any) -> _Machine:
        from xrfm import xRFM

        cut = len(y) - len(y) // 5
        self.machine = xRFM(max_leaf_size=_LEAF_ROWS, device="cpu", n_threads=1, random_state=0, verbose=False)
        self.machine.fit(X[:cut].astype(np.float32), y[:cut], X[cut:].astype(np.float32), y[cut:])
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(self.machine.predict(X.astype(np.float32))).ravel()


METHODS = {
    "classifier": Method("KernelClassifier", "classes", _fewkern("KernelClassifier"), "2", streams=True),
    "regressor": Method("KernelRegressor", "numbers", _fewkern("KernelRegressor"), "2", streams=True),
    "discriminant": Method(
        "FeatureVectorDiscriminant", "classes", _fewkern("FeatureVectorDiscriminant"), "1", streams=True
    ),
    "fisher": Method("SparseKernelFisher", "classes", _fewkern("SparseKernelFisher"), "1", streams=True),
    "density": Method("ForwardDensity", "density", _fewkern("ForwardDensity"), "1", streams=True),
    "boosting": Method("HistGradientBoostingClassifier", "classes", _histograms("Classifier"), "1", ours=False),
    "boosting-regressor": Method("HistGradientBoostingRegressor", "numbers", _histograms("Regressor"), "1", ours=False),
    "lightgbm": Method("LightGBM", "classes", _lightgbm, "1", ours=False, package="lightgbm"),
    "nystroem": Method("Nystroem(300) + SGDClassifier", "classes", _nystroem, "1", ours=False),
    "xrfm": Method("xRFM", "classes", _Machine, "1", ours=False, package="xrfm"),
}


def quality(model: Any, task: Task, test: Table) -> float:
    """On new rows: error rate in %, squared error over the variance in %, or minus the mean log density."""
    if task == "density":
        return -float(np.mean(model.score_samples(test.X)))
    found = np.asarray(model.predict(test.X))
    if task == "classes":
        return 100 * float(np.mean(found != test.label))
    return 100 * float(np.mean((found - test.height) ** 2) / np.var(test.height))


def _peak() -> float:
    """Largest resident memory of this process so far, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(name: str, rows: int, folder: Path | None) -> Values:
    """Processor seconds of a fit, the memory that it took beside the table, and how good the model is.

    Call it in a process of its own: memory that was once taken counts. What is imported at the first use (a fit of 200
    rows) does not count.
    """
    method = METHODS[name]
    small = in_memory(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method.build().fit(*_arguments(small, method.task))
        table = in_memory(rows) if folder is None else in_files(rows, folder)
        before = psutil.Process().memory_info().rss / 2**20
        model, start, wall = method.build(), time.process_time(), time.perf_counter()
        model.fit(*_arguments(table, method.task))
        seconds, passed = time.process_time() - start, time.perf_counter() - wall
    memory = _peak() - before
    found = quality(model, method.task, part(_TEST_PART, TEST_ROWS))
    return {
        "seconds": round(seconds, 3),
        "wall": round(passed, 3),
        "memory": round(memory, 1),
        "quality": round(found, 3),
        "vectors": int(getattr(model, "n_vectors_", 0)),
    }


def _arguments(table: Table, task: Task) -> tuple[Any, ...]:
    return (table.X,) if task == "density" else (table.X, table.target(task))


def main(arguments: list[str]) -> None:
    name, rows, *folder = arguments
    if not folder:
        print(json.dumps(measure(name, int(rows), None)))
        return
    import dask

    with dask.config.set(scheduler="synchronous"):  # one thread, as in memory
        print(json.dumps(measure(name, int(rows), Path(folder[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
