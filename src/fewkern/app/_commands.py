"""The commands as typer sees them. Nothing heavy is imported before a command has work to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fewkern import __version__
from fewkern.app._terminal import (
    MANY,
    MODEL,
    PAGE,
    PICTURE,
    TABLE,
    TABLES,
    Drop,
    Exported,
    ExtraColumns,
    Fitting,
    Groups,
    Json,
    MergeSpellings,
    ModelFile,
    NoFormulas,
    Outputs,
    Quiet,
    Reading,
    Task,
    given,
    grouped,
    read_tables,
    say,
    show_line,
    shows_progress,
    warnings_as_notes,
    work,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Kernel machines that keep only a few vectors.",
    rich_markup_mode=None,
)


def _version(show: bool) -> None:
    if show:
        show_line(f"fewkern {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


@app.command()
@grouped
def fit(
    tables: Annotated[
        list[str] | None, typer.Argument(help=f"{TABLES} {MANY} Without one, a generated example is used.")
    ] = None,
    *,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column to predict (the last one by default); several columns of numbers, one option each."),
    ] = None,
    groups: Groups = None,
    weights: Annotated[str | None, typer.Option(help="Column that says how much every row counts.")] = None,
    fitting: Fitting,
    model_file: Annotated[Path, typer.Option("--out", help="Where to write the model (.npz).")] = Path(
        "fewkern-model.npz"
    ),
    picture: Annotated[
        Path | None, typer.Option(help="Where to write the picture (.png, .pdf, .svg; beside the model by default).")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a self-contained HTML report.")] = None,
    reading: Reading,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Fit a model to a table, and show how good and how small it is."""
    with work() as outputs:
        # before the work, not after it
        files = outputs.tables(tables or ())
        model_file = outputs.claim(model_file, MODEL)
        picture = outputs.claim(picture or model_file.with_suffix(".png"), PICTURE)
        report = None if report is None else outputs.claim(report, PAGE)
        from fewkern.app import jobs
        from fewkern.tables.model import TableModel

        if report is not None and target and len(target) > 1:
            raise ValueError("--report: a report is about one target; leave it out, or give one --target.")
        if not files:
            frame, target = jobs.embedded_table(), target or ["side"]
            if not quiet and not json:
                show_line("No table given: fitting the embedded example (2,000 points in two interlocked crescents).")
        else:
            frame = read_tables(files, reading, quiet)
        asked = TableModel(**given(fitting), verbose=shows_progress(quiet))
        named = target[0] if target and len(target) == 1 else target or None
        with warnings_as_notes(quiet):
            fitted = asked.fit(frame, named, sample_weight=weights, groups=groups)
        for note in fitted.notes_:
            say(note, quiet)
        if not json and not quiet:  # before writing, so that it is shown even if the disk is full
            _show(fitted)
        with warnings_as_notes(quiet), outputs.together():
            outputs.write(model_file, fitted.save)
            drawn = jobs.picture_of(fitted, jobs.picture_rows(fitted, frame))
            if drawn is not None:
                outputs.write(picture, lambda path: jobs.save_figure(drawn, path))
            if report is not None:
                rows, which = jobs.report_rows(fitted, frame)
                settings = jobs.report_settings(files, asked.random_state, rows=which)
                outputs.write(report, lambda path: fitted.report(jobs.counted(rows), path, settings=settings))
        if json:
            show_line(jobs.as_json(fitted, written=outputs.written))
        elif not quiet:
            _written(outputs)


@app.command()
@grouped
def check(
    tables: Annotated[list[str], typer.Argument(help=f"{TABLES} {MANY}")],
    *,
    target: Annotated[str | None, typer.Option(help="Column to predict (the last one by default).")] = None,
    groups: Groups = None,
    task: Annotated[Task, typer.Option(help="Whether the target holds classes or numbers.")] = "auto",
    drop: Drop = None,
    merge_spellings: MergeSpellings = False,
    count: Annotated[int, typer.Option("--show", min=0, help="Suspicious rows to show.")] = 10,
    ranked: Annotated[
        Path | None, typer.Option("--out", help="Also write all rows, the least credible first (.csv, .tsv, .parquet).")
    ] = None,
    no_formulas: NoFormulas = False,
    reading: Reading,
) -> None:
    """Look for problems in a table: suspicious rows, copies, columns, and the order of rows."""
    with work() as outputs:
        files = outputs.tables(tables)
        ranked = None if ranked is None else outputs.claim(ranked, TABLE)
        from fewkern.app import jobs
        from fewkern.tables.check import check_table
        from fewkern.tables.resolve import Request

        frame = read_tables(files, reading)
        asked = Request(task=str(task), drop=tuple(drop or ()), groups=groups, merge_spellings=merge_spellings)
        with warnings_as_notes():
            found = check_table(frame, target, asked)
        show_line(found.text(count))
        if ranked is not None:
            outputs.write(ranked, lambda path: jobs.write_frames([found.rows], path, no_formulas))
            _written(outputs)


@app.command()
@grouped
def predict(
    model: ModelFile,
    tables: Annotated[list[str], typer.Argument(help=f"A table with the same columns: {TABLES} {MANY}")],
    *,
    target: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to write the predictions: .csv, .tsv, .parquet, or a new folder for those of several files "
            "(standard output).",
        ),
    ] = None,
    extra: ExtraColumns,
    no_formulas: NoFormulas = False,
    reading: Reading,
    quiet: Quiet = False,
) -> None:
    """Predict for the rows of a table."""
    with work(model) as outputs:
        files = outputs.tables(tables)
        folder = target is not None and not target.suffix and len(files) > 1
        if target is not None:
            target = outputs.claim_folder(target) if folder else outputs.claim(target, TABLE)
        from fewkern.app import jobs

        found = jobs.load_table_model(model)
        frame = read_tables(files, reading, quiet)
        predictions = jobs.Predictions(found, frame, extra, shows_progress(quiet))
        with warnings_as_notes(quiet):
            if target is None:
                jobs.write_frames(predictions, None, no_formulas)
            else:
                outputs.write(target, lambda path: jobs.write_frames(predictions, path, no_formulas))
        notes = [*predictions.notes, *(f"written: {name}" for name in outputs.written)]
        for note in [*notes, *jobs.score_line(found, predictions.tally)]:
            say(note, quiet)


@app.command()
@grouped
def explain(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(help=f"A table with the same columns: {TABLES}")],
    *,
    row: Annotated[int, typer.Option(min=1, help="Which row of the table, counted from 1, as check does.")],
    picture: Annotated[Path | None, typer.Option("--out", help="Also draw it: PNG, PDF or SVG file.")] = None,
    reading: Reading,
    quiet: Quiet = False,
) -> None:
    """Show what every column contributes to the prediction for one row."""
    with work(model, table) as outputs:
        if picture is not None:
            picture = outputs.claim(picture, PICTURE)
        from fewkern.app import jobs

        found, frame = jobs.load_table_model(model), read_tables([table], reading, quiet, whole=True)
        with warnings_as_notes(quiet):
            steps = jobs.waterfall_of(found, frame, row)
        for line in jobs.step_lines(steps):
            show_line(line)
        if picture is not None:
            outputs.write(picture, lambda path: jobs.save_figure(jobs.step_figure(steps), path))
            say(f"written: {outputs.written[0]}", quiet)


@app.command()
def info(model: ModelFile, json: Json = False) -> None:
    """Show what is in a model file."""
    with work():
        from fewkern.app import jobs

        found = jobs.load_table_model(model)
        if json:
            show_line(jobs.as_json(found))
            return
    _show(found)
    features = found.encoder_.names
    shown = ", ".join(features[:8]) + (f", ... ({len(features)} in all)" if len(features) > 8 else "")
    show_line(f"features: {shown}")
    if found.facts_.vectors:
        show_line(jobs.rows_inside(found))


@app.command()
def plot(
    model: ModelFile,
    picture: Annotated[Path, typer.Option("--out", help="PNG, PDF or SVG file.")] = Path("fewkern-path.png"),
) -> None:
    """Draw the path of a saved model."""
    with work(model) as outputs:
        picture = outputs.claim(picture, PICTURE)
        from fewkern.app import jobs

        drawn = jobs.picture_of(jobs.load_table_model(model))
        if drawn is None:
            raise ValueError(
                "this model has no path of errors to draw and is not a density; the picture of components is drawn by "
                "fit, which has the samples."
            )
        outputs.write(picture, lambda path: jobs.save_figure(drawn, path))
        _written(outputs)


@app.command()
@grouped
def report(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(help=f"A table with the same columns and the target: {TABLES}")],
    *,
    page: Annotated[Path, typer.Option("--out", help="HTML file.")] = Path("fewkern-report.html"),
    reading: Reading,
    quiet: Quiet = False,
) -> None:
    """Write a page about a saved model and the rows of a table."""
    with work(model, table) as outputs:
        page = outputs.claim(page, PAGE)
        from fewkern.app import jobs

        found, frame = jobs.load_table_model(model), read_tables([table], reading, quiet, whole=True)
        with warnings_as_notes(quiet):
            settings = jobs.report_settings([table])
            outputs.write(page, lambda path: found.report(jobs.counted(frame), path, settings=settings))
        _written(outputs)


@app.command()
@grouped
def export(
    model: Annotated[Path, typer.Argument(help="A model file written by fit, or by fewkern.save.")],
    target: Annotated[Path, typer.Argument(help="Where to write it: .onnx, .c, .js, .mjs, .sql, or NAME/NAME.ino.")],
    *,
    exported: Exported,
) -> None:
    """Write a model as ONNX, C, an Arduino sketch, a JavaScript module or one SQL expression, by the suffix."""
    with work(model) as outputs, warnings_as_notes():
        from fewkern.io import load
        from fewkern.tables.model import SUFFIXES, write_code

        sketch = target.suffix.lower() == ".ino"
        if sketch and target.parent.name == target.stem and target.parent.parent.is_dir():
            target.parent.mkdir(exist_ok=True)  # Arduino wants a folder of this name
        target = outputs.claim(target, SUFFIXES)
        found, options = load(model), given(exported) | {"explain": exported.explain or None}
        outputs.write(target, lambda path: write_code(found, path, options))
    more = {".c": (".h",), ".ino": (".c", ".h")}.get(target.suffix, ())
    beside = "".join(f", and {target.with_suffix(suffix).name}" for suffix in more)
    show_line(f"written: {outputs.written[0]} ({target.stat().st_size:,} bytes){beside}")


@app.command()
@grouped
def compress(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(help=f"Rows on which the models have to agree: {TABLES}")],
    *,
    target: Annotated[Path, typer.Option("--out", help="Where to write the short model.")] = Path("fewkern-short.npz"),
    vectors: Annotated[
        int | None, typer.Option(min=1, help="Number of vectors (the fewest within the tolerance if not given).")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.99, help="Largest share of different decisions, or largest relative error of the values."
        ),
    ] = 0.02,
    reading: Reading,
    quiet: Quiet = False,
) -> None:
    """Make a short model that does what a fitted one does."""
    with work(model, table) as outputs:
        target = outputs.claim(target, MODEL)
        from fewkern.app import jobs

        found, frame = jobs.load_table_model(model), read_tables([table], reading, quiet, whole=True)
        with warnings_as_notes(quiet):
            short = found.compress(frame, n_vectors=vectors, tolerance=tolerance, verbose=shows_progress(quiet))
        if not quiet:
            _show(short)
        outputs.write(target, short.save)
        _written(outputs)


def _show(model: Any) -> None:
    """The short summary, names and texts in two columns."""
    rows = model.summary()
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        show_line(f"{name:{width}}  {text}")


def _written(outputs: Outputs) -> None:
    show_line(f"written: {', '.join(outputs.written)}")
