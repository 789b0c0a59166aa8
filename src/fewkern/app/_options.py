"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

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

Groups = Annotated[
    str | None, typer.Option(help="Column that says which rows belong together: whole groups are held out.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be given several times.")]
MergeSpellings = Annotated[
    bool, typer.Option("--merge-spellings", help="Take spellings such as Yes, yes and Y as one class or category.")
]
Sep = Annotated[str | None, typer.Option(help="Separator of a text file, such as ';' or tab (detected by default).")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark of a text file, '.' or ',' (detected by default).")]
Skip = Annotated[
    int | None, typer.Option(min=0, help="Lines above the header of a text file or workbook (detected by default).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no summary; errors are still shown.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
NoFormulas = Annotated[
    bool,
    typer.Option(
        "--no-formulas", help="Write an apostrophe before texts that a spreadsheet program would take for formulas."
    ),
]
TABLES = "CSV, TSV, JSON, Parquet, NPZ or Excel (.xlsx), also .gz; - is standard input."
MANY = "Several files, a folder or a pattern in quotes are one table, which need not fit into memory."
