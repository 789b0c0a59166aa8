"""A progress bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(label: str, total: int, enabled: bool) -> Iterator[Callable[[int], None]]:
    """Yield ``step(done)``; it draws a bar if ``enabled``, stderr is a terminal and rich is installed."""
    bar = None
    if enabled and sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            pass
        else:
            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
    if bar is None:
        yield lambda _: None
        return
    with bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)
