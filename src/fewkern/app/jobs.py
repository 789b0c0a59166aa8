"""What the commands do, without a terminal: tables in, models and figures out."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import fewkern
from fewkern.base import BudgetWarning
from fewkern.datasets import make_banana
from fewkern.table import TableEncoder, TableModel

__all__ = [
    "MODELS",
    "TASKS",
    "Fitted",
    "Job",
    "Problem",
    "Request",
    "compress_model",
    "export_model",
    "fit_table",
    "predict_table",
    "read_table",
]


# task -> model name -> estimator; the first model is the default of its task.
MODELS: dict[str, dict[str, Callable[..., Any]]] = {
    "classify": {
        "fvs": fewkern.FeatureVectorClassifier,
        "discriminant": fewkern.FeatureVectorDiscriminant,
        "fisher": fewkern.SparseKernelFisher,
        "forward-fisher": fewkern.ForwardKernelFisher,
    },
    "regress": {"fvs": fewkern.FeatureVectorRegressor},
    "reduce": {
        "pca": fewkern.FeatureVectorPCA,
        "embedding": fewkern.GraphEmbedding,
        "margins": fewkern.RecursiveSVM,
        "soft-margins": fewkern.RecursiveSoftMargin,
    },
    "density": {
        "forward": fewkern.ForwardDensity,
        "parzen": fewkern.ParzenDensity,
        "reduced": fewkern.ReducedSetDensity,
        "orthogonal": fewkern.OrthogonalForwardDensity,
    },
}
# Reducers that look at classes: with them, "reduce" takes a target.
_BY_CLASS = ("embedding", "margins", "soft-margins")
TASKS = tuple(MODELS)
# A column of whole numbers with at most this many different ones is taken for class labels.
_MOST_CLASSES = 20
_FEWEST_ROWS = 4


class Problem(ValueError):
    """A user error; shown in one line, without a traceback."""


@dataclass(frozen=True)
class Fitted:
    """A model, what to tell about it, and the held-out part for the report."""

    model: TableModel
    remarks: list[str]
    X: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any] | None
    held_out: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None
    """True and predicted targets of the held-out rows."""


def read_table(path: str | Path) -> Any:
    """A data frame from CSV, Parquet or NPZ (arrays ``X`` and, if any, ``y``)."""
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise Problem(f"there is no file {path}.")
    suffix = path.suffix.lower()
    try:
        if suffix in (".csv", ".tsv", ".txt"):
            frame = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
        elif suffix in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        elif suffix == ".npz":
            frame = _frame_from_arrays(path)
        else:
            raise Problem(f"{path.name}: expected a .csv, .tsv, .parquet or .npz file, got {suffix or 'no suffix'!r}.")
    except Problem:
        raise
    except Exception as error:  # every reader has exceptions of its own
        raise Problem(f"{path.name} cannot be read as a table: {error}") from error
    if not len(frame) or not len(frame.columns):
        raise Problem(f"{path.name} is an empty table: it needs a header and at least two rows.")
    frame.columns = [str(c) for c in frame.columns]
    return frame


def _frame_from_arrays(path: Path) -> Any:
    import pandas as pd

    with np.load(path, allow_pickle=False) as archive:
        if "X" not in archive.files or archive["X"].ndim != 2:
            raise Problem(f"{path.name}: expected a two-dimensional array named X, got arrays {archive.files}.")
        X = archive["X"]
        given = "feature_names" in archive.files and len(archive["feature_names"]) == X.shape[1]
        names = [str(n) for n in archive["feature_names"]] if given else [f"x{j}" for j in range(X.shape[1])]
        frame = pd.DataFrame(X, columns=names)
        if "y" in archive.files:
            if "y" in names:
                raise Problem(
                    f"{path.name}: a feature is named 'y', and so is the array of targets; rename the feature."
                )
            frame["y"] = archive["y"]
    return frame


def embedded_table() -> Any:
    """The table used when none is given: 2,000 generated points in two interlocked crescents."""
    import pandas as pd

    X, y = make_banana(2000, random_state=0)
    return pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "side": np.where(y == 1, "right", "left")})


def guess_task(column: Any) -> str:
    """ "classify" for text, booleans and few whole numbers, "regress" otherwise."""
    values = column.dropna()
    if getattr(column.dtype, "kind", "O") not in "iuf":
        return "classify"
    whole = bool(np.all(np.asarray(values, dtype=float) % 1 == 0))
    return "classify" if whole and values.nunique() <= _MOST_CLASSES else "regress"


@dataclass(frozen=True)
class Request:
    """What is asked for on the command line."""

    target: str | None = None
    task: str = "auto"
    model: str | None = None
    holdout: float = 0.2
    seed: int = 0
    verbose: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    """Parameters of the estimator."""

    def __post_init__(self) -> None:
        if self.task not in ("auto", *TASKS):
            raise Problem(f"--task: expected auto, {', '.join(TASKS)}, got {self.task!r}.")

    @property
    def supervised(self) -> bool:
        """Whether the task needs a target."""
        return self.task not in ("reduce", "density") or (self.task == "reduce" and self.model in _BY_CLASS)


@dataclass(frozen=True)
class Job:
    """A request whose task, model and target are settled, and the rows it is about."""

    request: Request
    frame: Any
    task: str
    model: str
    target: str | None
    y: np.ndarray[Any, Any] | None

    @property
    def features(self) -> Any:
        """The columns beside the target."""
        return self.frame if self.target is None else self.frame.drop(columns=[self.target])

    def build(self) -> Any:
        """The estimator, not fitted."""
        made = MODELS[self.task][self.model]
        accepted = inspect.signature(made).parameters
        for name in self.request.settings:
            if name not in accepted:
                raise Problem(f"--{name.replace('_', '-')}: the model {self.model!r} has no such setting.")
        settings = dict(self.request.settings)
        if self.task == "reduce" and self.y is not None and guess_task(self.frame[self.target]) == "regress":
            settings["task"] = "regression"
        offered = {"random_state": self.request.seed, "verbose": self.request.verbose}
        return made(**{key: value for key, value in offered.items() if key in accepted}, **settings)


def fit_table(frame: Any, request: Request) -> Fitted:
    """Fit a model to a table; with a target, also measure its error on rows it has not seen."""
    job, remarks = _settle(frame, request)
    try:
        encoder, notes = TableEncoder.learn(job.features)
        X = encoder.encode(job.features)
    except ValueError as error:
        raise Problem(str(error)) from error
    if job.task == "density" and encoder.levels:
        raise Problem(
            f"--task density: a density needs numbers, but {sorted(encoder.levels)} hold text; leave them out."
        )
    facts = {"rows": len(X), "features": X.shape[1], "model": job.model, "task": job.task, "target": job.target}
    job.build()  # settings that do not exist are named before anything is fitted
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # a remark says it
            held_out, measured, more = _judge(job)
            start = time.perf_counter()
            estimator = job.build().fit(X) if job.y is None else job.build().fit(X, job.y)
    except ValueError as error:
        raise Problem(str(error)) from error
    facts |= measured | {"seconds": time.perf_counter() - start} | _facts_of(estimator, job)
    # vectors that were moved are not those of the path
    moved = getattr(estimator, "refined_", False)
    if not moved and getattr(getattr(estimator, "trace_", None), "open_end", False):
        more.append(
            "the error was still falling at the budget of vectors: --prefer accurate or a larger --max-vectors may help"
        )
    model = TableModel(job.task, job.target, encoder, estimator, facts)
    return Fitted(model, remarks + notes + more, X, job.y, held_out)


def _settle(frame: Any, request: Request) -> tuple[Job, list[str]]:
    """Target, task and model, with remarks on what was guessed or left out."""
    target, remarks = request.target, []
    if request.supervised and target is None:
        target = str(frame.columns[-1])
        remarks.append(f"no --target given: took the last column, {target!r}")
    if target is not None:
        if target not in frame.columns:
            raise Problem(f"--target: there is no column {target!r}; the table has {list(frame.columns)}.")
        missing = int(frame[target].isna().sum())
        if missing:
            frame = frame[frame[target].notna()]
            remarks.append(f"{missing} rows without a target were left out")
    if len(frame) < _FEWEST_ROWS:
        raise Problem(f"the table has {len(frame)} usable rows; fitting needs at least {_FEWEST_ROWS}.")
    task = guess_task(frame[target]) if request.task == "auto" else request.task
    names = MODELS[task]
    if request.model is not None and request.model not in names:
        raise Problem(f"--model: for the task {task!r} expected {', '.join(names)}, got {request.model!r}.")
    model = request.model or next(iter(names))
    if task == "reduce" and request.supervised and guess_task(frame[target]) == "regress" and model != "margins":
        raise Problem(f"--model {model}: the target {target!r} holds numbers, not classes; use --model margins.")
    if target is not None and len(frame.columns) == 1:
        raise Problem("the table has no column besides the target.")
    y = _target_values(frame[target], task) if request.supervised else None
    return Job(request, frame, task, model, target, y), remarks


def _judge(job: Job) -> tuple[tuple[Any, Any] | None, dict[str, Any], list[str]]:
    """Targets and predictions of held-out rows, what they say of the model, and remarks."""
    share = job.request.holdout
    if not share or job.task == "reduce":
        return None, {}, []
    if job.task == "density":
        return None, _held_out_density(job), []
    held_out = _hold_out(job)
    if held_out is None:
        return None, {}, ["too few rows of a class to hold any out"]
    return held_out, _errors(*held_out, job.task) | {"held_out_rows": len(held_out[0])}, []


def _facts_of(estimator: Any, job: Job) -> dict[str, Any]:
    """What is worth telling about a fitted model."""
    facts: dict[str, Any] = _loo_facts(estimator, job.y, job.task)
    facts["vectors"] = int(estimator.n_vectors_) or None  # a linear reducer keeps none
    if job.task == "reduce":
        facts["components"] = int(estimator.n_components_)
    facts["bytes"] = int(estimator.expansion_.nbytes)
    facts["kernel"] = _describe_density(estimator) if job.task == "density" else _describe(estimator.kernel_)
    return facts


def _describe(kernel: Any) -> str:
    """A kernel in a few words, numbers to three digits."""
    words = [type(kernel).__name__]
    for name, value in kernel.get_params().items():
        if isinstance(value, (int, float)):
            words.append(f"{name} {value:.3g}")
        elif getattr(value, "ndim", 0) == 1:
            words.append(f"one {name} per feature, {float(value.min()):.3g} to {float(value.max()):.3g}")
    return ", ".join(words)


def _describe_density(estimator: Any) -> str:
    """The kernels of a density in a few words."""
    low, high = float(estimator.widths_.min()), float(estimator.widths_.max())
    return f"normal, width {low:.3g}" + (f" to {high:.3g}" if high > low else "") + " (of standardized columns)"


def _held_out_density(job: Job) -> dict[str, float]:
    """Mean log density of a part of the rows, in the units of the table, by a model that saw the others only."""
    from sklearn.model_selection import train_test_split

    features, request = job.features, job.request
    train, test = train_test_split(np.arange(len(features)), test_size=request.holdout, random_state=request.seed)
    inner, _ = TableEncoder.learn(features.iloc[train])
    model = job.build().fit(inner.encode(features.iloc[train]))
    values = _log_density(model, inner, features.iloc[test])
    return {"held_out_log_density": float(values.mean()), "held_out_rows": len(test)}


def _log_density(estimator: Any, encoder: TableEncoder, frame: Any) -> np.ndarray[Any, Any]:
    """Log density per unit of the columns of the table, not of the standardized ones."""
    return np.asarray(estimator.score_samples(encoder.encode(frame)) - np.log(encoder.scale).sum())


def _target_values(column: Any, task: str) -> np.ndarray[Any, Any]:
    if task in ("classify", "reduce"):
        if getattr(column.dtype, "kind", "O") in "iufb":
            return np.asarray(column)
        return np.array([str(v) for v in column], dtype=object)
    try:
        return np.asarray(column.astype(float))
    except (TypeError, ValueError) as error:
        raise Problem(f"--task regress: the target {column.name!r} holds text; use --task classify.") from error


def _hold_out(job: Job) -> tuple[Any, Any] | None:
    """Targets and predictions of a part of the rows, by a model that saw neither them nor their statistics."""
    from sklearn.model_selection import train_test_split

    y, features, share = np.asarray(job.y), job.features, job.request.holdout
    counts = np.unique(y, return_counts=True)[1] if job.task == "classify" else np.array([2])
    if job.task == "classify" and counts.min() < 3 and len(counts) < 3:
        # too few to be sure that both parts see both classes
        return None
    stratify = y if job.task == "classify" and counts.min() >= 2 and round(share * len(y)) >= len(counts) else None
    rows = np.arange(len(y))
    train, test = train_test_split(rows, test_size=share, random_state=job.request.seed, stratify=stratify)
    inner, _ = TableEncoder.learn(features.iloc[train])
    model = job.build().fit(inner.encode(features.iloc[train]), y[train])
    return y[test], model.predict(inner.encode(features.iloc[test]))


def _errors(truth: Any, predicted: Any, task: str) -> dict[str, float]:
    if task == "classify":
        return {"held_out_error": float(np.mean(truth != predicted))}
    residual = np.asarray(truth) - np.asarray(predicted)
    spread = float(np.var(truth))
    return {
        "held_out_rmse": float(np.sqrt(np.mean(residual**2))),
        "held_out_r2": 1.0 - float(np.mean(residual**2)) / spread if spread else float("nan"),
    }


def _loo_facts(estimator: Any, y: Any, task: str) -> dict[str, float]:
    if not hasattr(estimator, "held_out_error_"):
        return {}
    if task == "classify":
        return {"loo_error": float(estimator.held_out_error_)}
    spread = float(np.var(y))
    loo = float(estimator.held_out_error_)
    return {"loo_rmse": loo**0.5, "loo_r2": 1.0 - loo / spread if spread else float("nan")}


def predict_table(model: TableModel, frame: Any, probabilities: bool = False) -> Any:
    """Predictions, components or log densities for the rows of a table, as a data frame."""
    import pandas as pd

    try:
        X = model.encoder.encode(frame)
    except ValueError as error:
        raise Problem(str(error)) from error
    estimator = model.estimator
    if probabilities and not hasattr(estimator, "predict_proba"):
        raise Problem("--proba: this model gives no probabilities.")
    if model.task in ("classify", "regress"):
        out = pd.DataFrame({model.target: estimator.predict(X)}, index=frame.index)
        if probabilities:
            for label, column in zip(estimator.classes_, estimator.predict_proba(X).T):
                out[f"p({label})"] = column
        return out
    if model.task == "density":
        return pd.DataFrame({"log_density": _log_density(estimator, model.encoder, frame)}, index=frame.index)
    values = estimator.transform(X)
    return pd.DataFrame(values, columns=estimator.get_feature_names_out(), index=frame.index)


def compress_model(
    model: TableModel, frame: Any, n_vectors: int | None, tolerance: float
) -> tuple[TableModel, list[str]]:
    """A table model with a short estimator that does what its own does on the rows of a table, and remarks."""
    try:
        X = model.encoder.encode(frame)
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            short = fewkern.compress(model.estimator, X, n_vectors=n_vectors or "auto", tolerance=tolerance)
    except (TypeError, ValueError) as error:
        raise Problem(str(error)) from error
    # errors that were measured belong to the long model
    kept = {
        key: model.facts[key] for key in ("features", "model", "task", "target", "components") if key in model.facts
    }
    facts = kept | {
        "rows": len(X),
        "agreement": str(short.agreement_),
        "vectors": short.n_vectors_,
        "kernel": _describe(short.kernel_),
        "seconds": time.perf_counter() - start,
        "bytes": int(short.expansion_.nbytes),
    }
    return replace(model, estimator=short, facts=facts), [str(warning.message) for warning in caught]


def export_model(model: Any, path: Path, dtype: Any, name: str | None) -> None:
    """Write a model in the language that the suffix of ``path`` names."""
    given = {} if dtype is None else {"dtype": dtype}
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        if name is not None:
            raise Problem(f"{path.name}: --name is the beginning of names in C; a graph has none. Leave it out.")
        fewkern.to_onnx(model, path, **given)
    elif suffix == ".c":
        fewkern.to_c(model, path, name="model" if name is None else name, **given)
    else:
        raise Problem(f"{path.name}: expected a file that ends in .onnx or .c, got {suffix or 'no suffix'!r}.")
