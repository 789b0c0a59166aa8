"""What was found in a table, as text for a terminal."""

from __future__ import annotations

from fewkern.reporting.formatting import label, number, percent
from fewkern.tables.check import TableCheck
from fewkern.tables.evaluate import rate

__all__ = ["as_text"]


def as_text(found: TableCheck, count: int) -> str:
    """Findings, errors side by side, and the least credible rows."""
    lines = [f"{found.target}: {len(found.rows):,} rows, {'numbers' if found.task == 'regress' else 'classes'}"]
    lines += ["", "To look at:" if found.findings else "Nothing to remark on columns and copies."]
    lines += [f"- {finding}" for finding in found.findings]
    lines += ["", "Error of a quick model on rows that were held out:"]
    width = max(len(error.how) for error in found.errors)
    for error in found.errors:
        beside = (
            f"  ({_error(found, error.beside)} on the same rows, one by one)" if error is not found.errors[0] else ""
        )
        lines.append(f"  {error.how:{width}}  {_error(found, error.value)}{beside}")
    return "\n".join([*lines, "", *_suspicious(found, count)])


def _error(found: TableCheck, value: float) -> str:
    return rate(value) if found.task == "classify" else f"RMSE {number(value, 4)}"


def _suspicious(found: TableCheck, count: int) -> list[str]:
    """The least credible rows, and how many there are."""
    numbers, of = found.task == "regress", f"{len(found.suspicious):,} of {len(found.rows):,} rows have"
    what = f"{of} another {found.target!r} than the other rows suggest"
    if numbers:
        what = f"{of} a {found.target!r} that is more than four deviations off"
    rows = []
    for row, score, given, expected in found.suspicious.head(count).iloc[:, :4].itertuples(index=False):
        if numbers:
            text = f"{number(given, 4)}, expected {number(expected, 4)} ({score:.1f} deviations)"
        else:
            text = f"{label(given)}, expected {label(expected)} (probability of {label(given)}: {percent(1 - score)})"
        rows.append(f"  row {row:,}: {text}")
    return [what + (", least credible first:" if rows else ""), *rows]
