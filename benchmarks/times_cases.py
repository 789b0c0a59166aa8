"""What ``python -m benchmarks times`` times: a script that imports the fewkern of whichever tree it is run for.

It knows nothing else of the repository, since the other tree may not have it. It reads names of cases, a line each, and
answers a line of JSON each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time
from typing import Any

import numpy as np

# A fit or a prediction: timed. What prepares it is not.
Work = Callable[[], Any]


def table(rows: int, columns: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Columns of normal numbers, and a sine, a product, an absolute value, a linear part and noise of them."""
    rng = np.random.default_rng(rows + columns)
    X = rng.normal(size=(rows, columns))
    y = 2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.5 * X[:, 4] + 0.5 * rng.normal(size=rows)
    return X, y


def classes(rows: int, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The same, cut into classes of equal size."""
    X, y = table(rows)
    return X, np.digitize(y, np.quantile(y, np.arange(1, count) / count))


def fit(kind: str, *data: np.ndarray, **settings: Any) -> Work:
    """A fit of an estimator of fewkern; the package is asked for it when it is timed."""
    import fewkern

    return lambda: getattr(fewkern, kind)(**settings).fit(*data)


def categories() -> tuple[np.ndarray, np.ndarray]:
    """Two of the columns are codes of 6 and of 40 levels, some of which are not known."""
    X, y = table(1500)
    X[:, 0], X[:, 1] = np.floor(3 + X[:, 0]).clip(0, 5), np.floor(20 + 8 * X[:, 1]).clip(0, 39)
    X[::30, :2] = np.nan
    return X, y


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:500], y[:500]


def wide() -> tuple[np.ndarray, np.ndarray]:
    X, y = table(200, 500)
    return X, (y > np.median(y)).astype(int)


@cache
def fitted() -> Any:
    """A model that predicts, is saved and is loaded."""
    return fit("KernelRegressor", *table(1500), n_vectors=64)()


def shortened() -> Work:
    from sklearn.svm import SVC

    import fewkern

    X, y = classes(300)
    long = SVC(C=10).fit(X, y)
    return lambda: fewkern.compress(long, X)


def stored() -> Work:
    import fewkern

    model = fitted()

    def there_and_back() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(10):
                found = fewkern.load(fewkern.save(model, Path(folder) / "model"))
        return found

    return there_and_back


def imported() -> Work:
    """In a process of its own."""
    return lambda: subprocess.run([sys.executable, "-P", "-c", "from fewkern import FeatureVectorSelector"], check=True)


CASES: dict[str, Callable[[], Work]] = {
    "classifier, 300 rows": lambda: fit("KernelClassifier", *classes(300)),
    "classifier, 1,500 rows": lambda: fit("KernelClassifier", *classes(1500)),
    "classifier, 10,000 rows": lambda: fit("KernelClassifier", *classes(10_000)),
    "classifier, digits": lambda: fit("KernelClassifier", *digits()),
    "classifier, 500 columns": lambda: fit("KernelClassifier", *wide()),
    "classifier, 60 classes": lambda: fit("KernelClassifier", *classes(1500, 60)),
    "regressor, 300 rows": lambda: fit("KernelRegressor", *table(300)),
    "regressor, 1,500 rows": lambda: fit("KernelRegressor", *table(1500)),
    "regressor, 10,000 rows": lambda: fit("KernelRegressor", *table(10_000)),
    "regressor, categories": lambda: fit("KernelRegressor", *categories(), categorical_features=[0, 1]),
    "selector, 20,000 x 20": lambda: fit("FeatureVectorSelector", table(20_000, 20)[0], max_vectors=200),
    "SparseKernelFisher": lambda: fit("SparseKernelFisher", *classes(400)),
    "RecursiveSVM": lambda: fit("RecursiveSVM", *classes(6000), kernel="gaussian", max_vectors=100, n_components=3),
    "ForwardDensity": lambda: fit("ForwardDensity", np.sin(2 * table(2000)[0][:, :4])),
    "compress": shortened,
    "predict, 200,000 rows": lambda: lambda: fitted().predict(table(200_000)[0]),
    "save and load, 10 times": stored,
    "import": imported,
}


def processor_seconds() -> float:
    """Of this process and those that it started and that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def answer(case: str, prepared: dict[str, Work]) -> dict[str, Any]:
    """Processor seconds of a case, in this process and those that it starts; why it cannot run, if so."""
    try:
        if case not in prepared:
            prepared[case] = CASES[case]()
        before = processor_seconds()
        model = prepared[case]()
        seconds = processor_seconds() - before
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return {"seconds": seconds, "vectors": getattr(model, "n_vectors_", None)}


def main() -> None:
    import warnings

    import fewkern

    warnings.simplefilter("ignore")
    prepared: dict[str, Work] = {}
    print(json.dumps(fewkern.__file__), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.rstrip("\n"), prepared)), flush=True)


if __name__ == "__main__":
    main()
