"""Options of several commands, and groups of options as dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from fewkern.tables.tasks import MODELS, TASKS

# Options with choices: typer wants an enumeration, a type checker wants to see its members in the source.
if TYPE_CHECKING:
    Task = str
    Model = str
    Prefer = str
    ClassWeight = str
    Dtype = str
else:

    def _choice(name: str, values: list[str]) -> type[StrEnum]:
        """An option that accepts these values, for typer."""
        return StrEnum(name, {value.replace("-", "_"): value for value in values})

    Task = _choice("Task", ["auto", *TASKS])
    Model = _choice("Model", ["auto", *dict.fromkeys(model for models in MODELS.values() for model in models)])
    Prefer = _choice("Prefer", ["balanced", "accurate", "sparse"])
    ClassWeight = _choice("ClassWeight", ["balanced"])
    Dtype = _choice("Dtype", ["float", "double", "int16"])

TABLES = "CSV, TSV, JSON, Parquet, NPZ or Excel (.xlsx), also .gz; - is standard input."
MANY = "Several files, a folder or a pattern in quotes are one table, which need not fit into memory."

ModelFile = Annotated[Path, typer.Argument(help="A model file written by fit.")]
SameTable = Annotated[Path, typer.Argument(help=f"A table with the same columns: {TABLES}")]
Groups = Annotated[
    str | None, typer.Option(help="Column that says which rows belong together: whole groups are held out.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given several times.")]
MergeSpellings = Annotated[
    bool, typer.Option("--merge-spellings", help="Take spellings such as Yes, yes and Y as one class or category.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no summary; errors are still shown.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
NoFormulas = Annotated[
    bool,
    typer.Option(
        "--no-formulas", help="Write an apostrophe before texts that a spreadsheet program would take for formulas."
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a text file or a workbook is read; what is not given is detected."""

    sep: Annotated[
        str | None, typer.Option(help="Separator of a text file, such as ';' or tab (detected by default).")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal mark of a text file, '.' or ',' (detected by default).")
    ] = None
    skip: Annotated[
        int | None, typer.Option(min=0, help="Lines above the header of a text file or workbook (detected by default).")
    ] = None


@dataclass(frozen=True)
class Fitting:
    """What to fit: the parameters of a :class:`~fewkern.TableModel`, under their names."""

    task: Annotated[Task, typer.Option(help="What to do with the table.")] = "auto"
    model: Annotated[Model, typer.Option(help="Which model of the task; auto is the usual one.")] = "auto"
    prefer: Annotated[Prefer, typer.Option(help="Size of the model (where it has the choice).")] = "balanced"
    n_vectors: Annotated[int | None, typer.Option(min=1, help="Number of vectors to keep.")] = None
    max_vectors: Annotated[int | None, typer.Option(min=1, help="Largest number of vectors to keep.")] = None
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Let every class count the same, however rare it is.")
    ] = None
    n_components: Annotated[int | None, typer.Option(min=1, help="Components (--task reduce; 2 by default).")] = None
    drop: Drop = None
    keep: Annotated[
        list[str] | None, typer.Option(help="Column to use although it looks like an index, a key or names.")
    ] = None
    merge_spellings: MergeSpellings = False
    holdout: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of rows held out to measure the error.")] = 0.2
    random_state: Annotated[int, typer.Option("--seed", help="Seed of all random choices.")] = 0


@dataclass(frozen=True)
class ExtraColumns:
    """The columns that are written beside the predictions."""

    proba: Annotated[bool, typer.Option("--proba", help="Add a column of probability per class.")] = False
    interval: Annotated[
        float | None,
        typer.Option(help="Add the ends of intervals that contain this share of the true numbers, e.g. 0.9."),
    ] = None
    sets: Annotated[
        float | None,
        typer.Option(help="Add a set of classes that contains the right one with this probability, e.g. 0.9."),
    ] = None
    novelty: Annotated[
        bool, typer.Option("--novelty", help="Add how unlike the training rows a row is, and whether it is novel.")
    ] = False
    with_input: Annotated[bool, typer.Option("--with-input", help="Put the columns of the table first.")] = False
    id: Annotated[str | None, typer.Option("--id", help="Put this column of the table first.")] = None


@dataclass(frozen=True)
class Exported:
    """What else an exported model computes, and how its numbers are stored."""

    dtype: Annotated[
        Dtype | None, typer.Option(help="Type of all numbers (by default float in ONNX, double in C; int16 in C).")
    ] = None
    name: Annotated[str | None, typer.Option(help="C: begins the name of every function (default: model).")] = None
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Also intervals, or sets of classes, that contain the truth with this probability, e.g. 0.9."
        ),
    ] = None
    false_alarms: Annotated[
        float | None,
        typer.Option(help="Also novelty, and the threshold that this share of ordinary rows exceeds, e.g. 0.05."),
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="C: also the share of every column.")] = False


def given(options: Any) -> dict[str, Any]:
    """The options of a group that have a value, as keyword arguments of a function."""
    found = {name: value for name, value in asdict(options).items() if value is not None}
    plain = {name: value.value if isinstance(value, Enum) else value for name, value in found.items()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer takes it: in place of every parameter that is a group of options, one parameter per option."""
    groups: dict[str, Any] = {}
    flat: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        own = [parameter]
        if is_dataclass(group := parameter.annotation):
            groups[parameter.name] = group
            hints = get_type_hints(group, include_extras=True)
            own = [p.replace(annotation=hints[name]) for name, p in inspect.signature(group).parameters.items()]  # type: ignore[arg-type]
        flat += [p.replace(kind=p.KEYWORD_ONLY) for p in own]

    def called(**values: Any) -> None:
        made = {name: group(**{f.name: values.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**values, **made)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {p.name: p.annotation for p in flat}
    called.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return called
