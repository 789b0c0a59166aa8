"""The commands as typer sees them; the work is in ``jobs``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import matplotlib
import typer
from rich.console import Console
from rich.table import Table

from fewkern import __version__, load, save
from fewkern.app import jobs
from fewkern.app.report import write_report
from fewkern.io.save import write_atomically
from fewkern.table import TableModel

matplotlib.use("Agg")
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Kernel machines that keep only a few samples.",
    rich_markup_mode=None,
)
# soft_wrap: a path or a message is never broken in the middle when it is piped somewhere
out, err = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)


@contextmanager
def _problems() -> Iterator[None]:
    """Report user errors in one line on stderr, with exit code 1."""
    try:
        yield
    except (ValueError, OSError, TypeError, ImportError) as error:
        err.print(f"fewkern: {error}", style="red", markup=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        err.print("fewkern: stopped; nothing was written.", style="red")
        raise typer.Exit(130) from None


def _version(show: bool) -> None:
    if show:
        out.print(f"fewkern {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


@app.command()
def fit(
    table: Annotated[
        Path | None, typer.Argument(help="CSV, TSV, Parquet or NPZ; without one, a generated example is used.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column to predict (the last one by default).")] = None,
    task: Annotated[str, typer.Option(help=f"auto, {', '.join(jobs.TASKS)}.")] = "auto",
    model: Annotated[str | None, typer.Option(help="Which model; the default of the task if not given.")] = None,
    prefer: Annotated[str | None, typer.Option(help="balanced, accurate or sparse (where the model has it).")] = None,
    max_vectors: Annotated[int | None, typer.Option(min=1, help="Budget of samples to keep.")] = None,
    n_components: Annotated[int | None, typer.Option(min=1, help="Most components (--task reduce).")] = None,
    model_file: Annotated[Path, typer.Option("--out", help="Where the model goes.")] = Path("fewkern-model.npz"),
    picture: Annotated[
        Path | None, typer.Option(help="Where the picture of the path goes (beside the model by default).")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a self-contained HTML report.")] = None,
    holdout: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of rows held out to measure the error.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
) -> None:
    """Fit a model to a table, and say how good and how small it is."""
    with _problems():
        # before the work, not after it
        for path in filter(None, (model_file, picture, report)):
            if not path.parent.is_dir():
                raise jobs.Problem(f"cannot write {path}: the folder {path.parent} does not exist; make it first.")
        frame = jobs.embedded_table() if table is None else jobs.read_table(table)
        if table is None:
            out.print("No table given: fitting the embedded example (2,000 points in two interlocked crescents).")
            target = target or "side"
        given = {"prefer": prefer, "max_vectors": max_vectors, "n_components": n_components}
        settings = {key: value for key, value in given.items() if value is not None}
        request = jobs.Request(target, task, model, holdout, seed, sys.stderr.isatty(), settings)
        fitted = jobs.fit_table(frame, request)
        written = save(fitted.model, model_file)
        pictures = _write_picture(fitted, picture or written.with_suffix(".png"))
        if report is not None:
            write_report(report, fitted)
    for remark in fitted.remarks:
        err.print(f"note: {remark}", markup=False)
    _show(fitted.model)
    files = [str(written), *pictures, *([str(report)] if report else [])]
    out.print("written: " + ", ".join(files), markup=False)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file written by fit.")],
    table: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or NPZ with the same columns.")],
    target: Annotated[
        Path | None, typer.Option("--out", help="CSV or Parquet file (standard output if not given).")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add a column of probability per class.")] = False,
) -> None:
    """Predict for the rows of a table."""
    with _problems():
        result = jobs.predict_table(_table_model(model), jobs.read_table(table), proba)
        if target is None:
            sys.stdout.write(result.to_csv(index=False))
        elif target.suffix.lower() in (".parquet", ".pq"):
            write_atomically(target, lambda handle: result.to_parquet(handle, index=False))
        else:
            write_atomically(target, lambda handle: handle.write(result.to_csv(index=False).encode()))


@app.command()
def info(model: Annotated[Path, typer.Argument(help="A model file written by fit.")]) -> None:
    """Show what is in a model file."""
    with _problems():
        found = _table_model(model)
    _show(found)
    features = found.encoder.names
    shown = ", ".join(features[:8]) + (f", ... ({len(features)} in all)" if len(features) > 8 else "")
    out.print(f"features: {shown}", markup=False)


@app.command()
def plot(
    model: Annotated[Path, typer.Argument(help="A model file written by fit.")],
    picture: Annotated[Path, typer.Option("--out", help="PNG, PDF or SVG file.")] = Path("fewkern-path.png"),
) -> None:
    """Draw the path of a saved model."""
    with _problems():
        figure = _figure(_table_model(model))
        if figure is None:
            raise jobs.Problem(
                "this model has no path of errors to draw, and no density of one or two columns; the picture of "
                "components is drawn by fit, which has the samples."
            )
        _save_figure(figure, picture)
    out.print(f"written: {picture}", markup=False)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model file written by fit, or by fewkern.save.")],
    target: Annotated[Path, typer.Argument(help="Where the model goes: a file that ends in .onnx or .c.")],
    dtype: Annotated[
        str | None, typer.Option(help="Type of all numbers: float or double (by default float in ONNX, double in C).")
    ] = None,
    name: Annotated[str | None, typer.Option(help="C: begins the name of every function (default: model).")] = None,
) -> None:
    """Write a model as ONNX, or as one C file without dependencies."""
    with _problems(), warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        jobs.export_model(load(model), target, dtype, name)
    for remark in remarks:
        err.print(f"note: {remark.message}", markup=False)
    out.print(f"written: {target} ({target.stat().st_size:,} bytes)", markup=False)


@app.command()
def compress(
    model: Annotated[Path, typer.Argument(help="A model file written by fit.")],
    table: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet or NPZ with rows on which the models have to agree.")
    ],
    target: Annotated[Path, typer.Option("--out", help="Where the short model goes.")] = Path("fewkern-short.npz"),
    vectors: Annotated[
        int | None, typer.Option(min=1, help="Number of vectors (the fewest within the tolerance if not given).")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Share of other decisions, or relative error of the values.")
    ] = 0.02,
) -> None:
    """Make a short model that does what a fitted one does."""
    with _problems():
        short, remarks = jobs.compress_model(_table_model(model), jobs.read_table(table), vectors, tolerance)
        written = save(short, target)
    for remark in remarks:
        err.print(f"note: {remark}", markup=False)
    _show(short)
    out.print(f"written: {written}", markup=False)


def _table_model(path: Path) -> TableModel:
    found = load(path)
    if not isinstance(found, TableModel):
        raise jobs.Problem(
            f"{path.name} holds a bare {type(found).__name__}, saved from Python; load it there with fewkern.load."
        )
    return found


def _figure(model: TableModel, X: Any = None, y: Any = None) -> Any:
    """The picture of a model: path, density, or samples on components; ``None`` where there is nothing to draw."""
    from fewkern.plotting import ComponentsDisplay, DensityDisplay, TraceDisplay

    if model.task == "reduce":
        # the samples are not in the file
        shown = X is not None and model.estimator.n_components_ > 0
        return ComponentsDisplay.from_estimator(model.estimator, X, y).figure_ if shown else None
    if model.task == "density":
        names = model.encoder.names
        if len(names) > 2:
            return None
        display = DensityDisplay.from_estimator(model.estimator, X)
        display.ax_.set_xlabel(names[0] + " (standardized)")
        if len(names) == 2:
            display.ax_.set_ylabel(names[1] + " (standardized)")
        return display.figure_
    return TraceDisplay.from_estimator(model.estimator).figure_ if hasattr(model.estimator, "trace_") else None


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.pyplot import close

    kind = path.suffix.lstrip(".").lower() or "png"
    try:
        write_atomically(path, lambda handle: figure.savefig(handle, format=kind, dpi=150))
    finally:
        close(figure)


def _write_picture(fitted: jobs.Fitted, path: Path) -> list[str]:
    figure = _figure(fitted.model, fitted.X, fitted.y)
    if figure is None:
        return []
    _save_figure(figure, path)
    return [str(path)]


def _show(model: TableModel) -> None:
    """The short summary."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in model.summary():
        table.add_row(name, text)
    out.print(table)
