"""Time of an explanation beside shap's KernelExplainer and shapiq's ProductKernelExplainer, of one function."""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import cpu_timed, header
from fewkern import FeatureVectorRegressor
from fewkern.kernels import Gaussian

# Rows that are explained in one call of ours; the others take them one by one, whatever they are given.
_BATCH = 1000


@dataclass(frozen=True)
class Setting:
    """What the time depends on; ``samples`` are the predictions per row that shap makes, "auto" 2 d + 2,048."""

    columns: int
    vectors: int
    background: int
    samples: int | str


SETTINGS = (
    Setting(5, 20, 16, "auto"),
    Setting(20, 20, 16, "auto"),
    Setting(20, 20, 16, 256),
    Setting(20, 20, 100, "auto"),
    Setting(20, 100, 16, "auto"),
    Setting(20, 100, 100, "auto"),
    Setting(50, 20, 16, "auto"),
    Setting(50, 100, 100, "auto"),
)


def fitted(setting: Setting, rng: Any) -> tuple[Any, Any, Any]:
    """A sum of Gaussians of one width, which all three can explain; rows; and background points among the rows."""
    X = rng.standard_normal((_BATCH, setting.columns))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(_BATCH)
    kernel = Gaussian(length_scale=float(np.sqrt(setting.columns)))
    model = FeatureVectorRegressor(n_vectors=setting.vectors, kernel=kernel, alpha=1e-3).fit(X, y)
    return model, X, X[rng.permutation(_BATCH)[: setting.background]]


def by_shap(model: Any, rows: Any, background: Any, samples: int | str) -> Any:
    """Shapley's values of rows by shap, with the same background."""
    import shap

    explainer = shap.KernelExplainer(model.predict, background)
    return explainer.shap_values(rows, nsamples=samples, silent=True)


def by_shapiq(model: Any, rows: Any) -> list[list[float]]:
    """Shapley's values of rows by shapiq, of a game in which an absent column leaves the product of the kernel."""
    from shapiq.explainer.product_kernel import ProductKernelComputer
    from shapiq.explainer.product_kernel.base import ProductKernelModel

    f = model.expansion_
    gamma = 0.5 / float(f.kernel.length_scale) ** 2
    function = ProductKernelModel(f.vectors, f.coef[:, 0], *f.vectors.shape, gamma=gamma, intercept=float(f.offset[0]))
    # ProductKernelExplainer takes models of scikit-learn; this is what it computes with
    computer = ProductKernelComputer(model=function, max_order=1, index="SV")
    kernels = [computer.compute_kernel_vectors(f.vectors, x) for x in rows]
    return [[computer.compute_shapley_value(one, j) for j in range(f.vectors.shape[1])] for one in kernels]


def best(work: Any, repeats: int = 1) -> float:
    """Least processor seconds of several calls: on a busy machine they, not the time on the clock, are comparable."""
    return min(cpu_timed(work)[1] for _ in range(repeats))


def row(setting: Setting, few: int) -> str:
    """One line of the table; the slow ones explain ``few`` rows."""
    model, X, background = fitted(setting, np.random.default_rng(0))
    ours = best(lambda: model.explain(X, background), 10) / len(X)
    alone = best(lambda: model.explain(X[:1], background), 20)
    theirs = best(lambda: by_shap(model, X[:few], background, setting.samples), 2) / few
    agree = np.corrcoef(
        model.explain(X[:few], background).values.ravel(),
        np.ravel(by_shap(model, X[:few], background, setting.samples)),
    )[0, 1]
    exact = best(lambda: by_shapiq(model, X[:few]), 2) / few
    numbers = [f"{setting.columns}", f"{model.n_vectors_}", f"{setting.background}", f"{setting.samples}"]
    numbers += [f"{1e6 * ours:.0f}", f"{1e3 * alone:.2f}", f"{1e3 * theirs:.1f}", f"{theirs / ours:,.0f}"]
    numbers += [f"{theirs / alone:,.0f}", f"{1e3 * exact:.1f}", f"{exact / ours:,.0f}", f"{agree:.2f}"]
    return f"| {' | '.join(numbers)} |"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks explain", description=__doc__)
    parser.add_argument("--rows", type=int, default=5, help="rows that the others explain (default: 5)")
    few = parser.parse_args(arguments).rows
    try:
        import shap  # noqa: F401 - both are asked for before anything is timed
        import shapiq  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"explain: needs {error.name}: pip install 'shap>=0.46' 'shapiq>=1.4'.") from error
    os.environ["TQDM_DISABLE"] = "1"
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        header("Explanations, processor time: us a row of ours in a batch of 1,000, ms alone and of the others", 1)
        print("| columns | vectors | background | samples of shap | ours, us | alone, ms | shap, ms | ratio | "
              "ratio alone | shapiq, ms | ratio | correlation |")  # fmt: skip
        print("|" + "---|" * 12)
        for setting in SETTINGS:
            print(row(setting, few), flush=True)


if __name__ == "__main__":
    main([])
