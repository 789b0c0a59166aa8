"""What a command takes from its caller, and what it shows: options, notes, errors in one line, tables and outputs."""

from __future__ import annotations

import inspect
import os
import platform
import secrets
import shlex
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from fewkern import __version__
from fewkern.arrays.progress import printable
from fewkern.tables import MODELS, TASKS

MODEL, PAGE, PICTURE = (".npz",), (".html", ".htm"), (".png", ".pdf", ".svg")
TABLE = (".csv", ".tsv", ".csv.gz", ".parquet", ".pq")
_HINTS = dict.fromkeys(
    (".onnx", ".c", ".ino", ".js", ".mjs", ".sql"), "'fewkern export' writes ONNX, C, JavaScript and SQL"
)
_HINTS |= {".xlsx": "a spreadsheet program reads .csv", ".xls": "a spreadsheet program reads .csv"}

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
    prefer: Annotated[Prefer, typer.Option(help="Size of the model; kernel has no accurate.")] = "balanced"
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


def say(text: str, quiet: bool = False) -> None:
    """A note on stderr."""
    if not quiet:
        sys.stderr.write(f"note: {printable(text)}\n")


def show_line(text: str) -> None:
    """A line on stdout, or several, at once."""
    sys.stdout.write(printable(text, keep="\n") + "\n")
    sys.stdout.flush()


@contextmanager
def work(*inputs: Path) -> Iterator[Outputs]:
    """The work of a command: any error is one line on stderr, with exit code 1; an interrupt has the code 130."""
    outputs = Outputs(*inputs)
    try:
        yield outputs
    except BrokenPipeError:  # the reader has closed the pipe, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        sys.stderr.write(f"fewkern: {printable(one_line(error))}\n")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        done = f"written: {', '.join(outputs.written)}" if outputs.written else "nothing was written"
        sys.stderr.write(f"fewkern: stopped; {done}.\n")
        raise typer.Exit(130) from None


@contextmanager
def warnings_as_notes(quiet: bool = False) -> Iterator[None]:
    """Show warnings as notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say(text, quiet)


def read_tables(files: Sequence[Path], reading: Reading, quiet: bool = False, *, whole: bool = False) -> Any:
    """One table from files, in memory or in parts; ``whole``: from the only one, in memory."""
    from fewkern.tables.parts import open_tables
    from fewkern.tables.reading import read_file
    from fewkern.tables.text_files import Marks

    marks = Marks(**asdict(reading))
    found = read_file(files[0], marks) if whole else open_tables(files, marks, shows_progress(quiet))
    for note in found.notes:
        say(f"{files[0]}: {note}", quiet)
    return found.frame


def shows_progress(quiet: bool) -> bool:
    """Whether progress is shown: stderr is a terminal, and not quiet."""
    return sys.stderr.isatty() and not quiet


def one_line(error: BaseException) -> str:
    """The message of an expected error; for any other, its type and the file with its traceback."""
    text = " ".join(str(error).split())
    if _foreseen(error):
        return text
    if isinstance(error, MemoryError):
        what = "there is not enough memory; use fewer rows or columns (--drop), or give the table as several files"
    else:
        shown = text if len(text) <= 200 else f"{text[:200]} ..."
        what = f"unexpected error: {type(error).__name__}: {shown}".rstrip(": ")
    try:
        return f"{what}. The details are in {_log(error)}; please report them, or leave out unusual columns (--drop)."
    except OSError:
        return f"{what}. The details could not be written to {tempfile.gettempdir()}."


def _foreseen(error: BaseException) -> bool:
    """Whether the message was written for the user: by us or by scikit-learn."""
    if isinstance(error, OSError | ImportError) or type(error).__name__ == "PartitionError":
        return True
    if not isinstance(error, ValueError | TypeError) or error.__traceback__ is None:
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    # a line without "raise" called compiled code, such as most of NumPy
    said = not last.line or last.line.startswith("raise")
    return said and not {"fewkern", "sklearn"}.isdisjoint(last.filename.split(os.sep))


def _log(error: BaseException) -> str:
    """Write the traceback to a new file; returns its name."""
    handle, path = tempfile.mkstemp(prefix="fewkern-", suffix=".log")
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"fewkern {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        file.write(shlex.join(["fewkern", *sys.argv[1:]]) + "\n\n")
        file.writelines(traceback.format_exception(error))
    return path


class Outputs:
    """What a command will write, and what it has written."""

    def __init__(self, *inputs: Path) -> None:
        self.written: list[str] = []
        self._taken: list[tuple[Path, str]] = []  # files that must not be written, and why
        self._waiting: dict[Path, Path] | None = None
        self.reads(*inputs)

    def reads(self, *paths: Path) -> None:
        """Files that the command reads, and so must not write."""
        self._taken += [(path, "that is the file to read") for path in paths if str(path) != "-"]

    def tables(self, names: Sequence[str]) -> tuple[Path, ...]:
        """The files that are meant by the names, patterns and folders of tables that the command reads."""
        from fewkern.tables.parts import find_files

        files = find_files(names)
        self.reads(*files)
        return files

    def claim_folder(self, path: Path) -> Path:
        """Check a folder before the work: that it is new or empty, and can be made."""
        _check_parent(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(f"cannot write {path}: it exists, and is not an empty folder; choose another name.")
        return path

    def claim(self, path: Path, suffixes: tuple[str, ...]) -> Path:
        """Check a path before the work: its suffix, its folder, and that it is no input and no other output."""
        if not path.suffix and suffixes is MODEL:
            path = path.with_suffix(MODEL[0])
        if not path.name.lower().endswith(suffixes):
            hint = _HINTS.get(path.suffix.lower())
            raise ValueError(
                f"cannot write {path}: expected a file that ends in {', '.join(suffixes)}"
                + (f" ({hint})." if hint else ".")
            )
        if path.is_dir():
            raise ValueError(f"cannot write {path}: it is a folder; give the name of a file.")
        _check_parent(path)
        for other, why in self._taken:
            if _same(path, other):
                raise ValueError(f"cannot write {path}: {why}; choose another name.")
        self._taken.append((path, "two results would go to the same file"))
        return path

    def write(self, path: Path, make: Callable[[Path], Any]) -> None:
        """Call ``make(path)``, and keep in mind that the file is there."""
        before, to = path.exists(), path
        real = Path(os.path.realpath(path))  # the target of a link is replaced, a device is written to
        if self._waiting is not None and (real.is_file() or not before):
            to = self._waiting[real] = real.with_name(f".fewkern-{secrets.token_hex(8)}.part{path.suffix}")
        try:
            make(to)
        except OSError as error:
            reason = error.strerror or str(error).removeprefix(f"cannot write {to.name}: ").rstrip(".")
            done = f"; written before: {', '.join(self.written)}" if self.written else "; nothing was written"
            raise OSError(f"cannot write {path}: {reason}{done}.") from error
        self.written.append(f"{path} (replaced)" if before else str(path))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Files that are written inside take their names at the end, one right after the other.

        A killed process thus leaves the files of one run: all the old ones, or all the new ones. After an error,
        those that are complete take their names.
        """
        self._waiting = {}
        try:
            yield
        finally:
            for path, part in self._waiting.items():
                if part.exists():
                    if path.exists():
                        shutil.copymode(path, part)
                    os.replace(part, path)
            self._waiting = None


def _check_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: the folder {path.parent} does not exist; make it first.")


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there yet
        return os.path.realpath(one) == os.path.realpath(other)
