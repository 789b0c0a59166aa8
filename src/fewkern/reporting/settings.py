"""What may be chosen about a report."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ReportSettings"]


@dataclass(frozen=True)
class ReportSettings:
    """Choices of a report, and what its footer says.

    Parameters
    ----------
    rows : {"auto", "fitted", "new"}, default "auto"
        Whether the model was fitted to the rows of the report. With "fitted" its error is that on the rows which the
        model itself held out, as a TableModel does, or else that of a copy which is fitted to four fifths of the rows;
        with "new" it is measured directly. "auto" finds out.
    compare : bool, default True
        Also fit an SVC or SVR, with a small grid search, for its size and speed.
    random_state : int, default 0
        Seed of all random choices of the report.
    source : str or None, default None
        Name of the file that the table came from.
    command : str or None, default None
        The command that made the report.

    Examples
    --------
    >>> from fewkern import ReportSettings
    >>> ReportSettings(rows="new", compare=False).random_state
    0
    """

    rows: str = "auto"
    compare: bool = True
    random_state: int = 0
    source: str | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        if self.rows not in ("auto", "fitted", "new"):
            raise ValueError(f"ReportSettings: rows must be 'auto', 'fitted' or 'new', got {self.rows!r}.")
