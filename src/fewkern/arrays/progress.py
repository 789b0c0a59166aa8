"""What users see: the progress of a fit, texts that are safe to show, and what is not installed.

This module alone reports progress to scikit-learn's callbacks, a terminal or a log. An algorithm only calls ``step``
with the number of items done.
"""

from __future__ import annotations

import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

Step = Callable[[int], None]

# Without a terminal a line is written at the end of a loop, and during it at most once in this number of seconds.
_SECONDS_BETWEEN_LINES = 5.0
# What comes before every label.
_title: ContextVar[str] = ContextVar("title", default="")
# Control characters, invisible ones that change the direction of text, halves of pairs, ends of lines and paragraphs.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@contextmanager
def titled(title: str) -> Iterator[None]:
    """Say with every bar and line inside which part of the work it belongs to, such as ``"1/2 held-out check"``.

    Examples
    --------
    >>> from fewkern.arrays.progress import titled
    >>> with titled("1/2 held-out check"):
    ...     pass  # model.fit(X, y)
    """
    token = _title.set(f"{title}, ")
    try:
        yield
    finally:
        _title.reset(token)


@contextmanager
def progress(estimator: Any, label: str, total: int | None) -> Iterator[Step]:
    """Yield ``step(done)`` for a loop in the fit of an estimator.

    The estimator's callbacks are called if it has any (``set_callbacks``, scikit-learn 1.9 and later), and a
    bar or lines are written to stderr if it has ``verbose``.

    Parameters
    ----------
    estimator : estimator
    label : str
        What the loop does, in words.
    total : int or None
        How often it runs at most; None if that is not known.
    """
    followed = hasattr(estimator, "_callback_fit_ctx")
    tasks = _Subtasks(estimator, label, total) if followed else None
    # lines do not disturb the bar of a callback, another bar would
    full_label = f"{type(estimator).__name__}: {label}"
    seen = shown(full_label, total, bar=not followed) if getattr(estimator, "verbose", False) else nullcontext(None)
    with seen as show:

        def step(done: int) -> None:
            if tasks is not None:
                tasks.step(done)
            if show is not None:
                show(done)

        yield step
    if tasks is not None:
        tasks.end()


@contextmanager
def shown(label: str, total: int | None, *, bar: bool = True, lines: bool = True) -> Iterator[Step]:
    """Yield ``step(done)``, which draws a bar on a terminal (if rich is installed) and writes lines elsewhere."""
    drawn = _bar() if bar and sys.stderr.isatty() else None
    label = _title.get() + label
    if drawn is not None:
        with drawn:
            task = drawn.add_task(label, total=total)
            yield lambda done: drawn.update(task, completed=done)
    elif lines:
        written = _Lines(label, total)
        try:
            yield written.step
        except BaseException:
            written.write(", stopped")
            raise
        written.write(", done")
    else:
        yield lambda _: None


def _bar() -> Any:
    """A bar of rich that disappears in the end; None if rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


class _Lines:
    """Lines on stderr, such as "FeatureVectorRegressor: comparing kernel length scales: 3 of 9, 5.1 s"."""

    def __init__(self, label: str, total: int | None) -> None:
        self.label, self.total, self.done = label, total, 0
        self.began = self.last = time.monotonic()

    def step(self, done: int) -> None:
        self.done = done
        if time.monotonic() - self.last >= _SECONDS_BETWEEN_LINES:
            self.write()

    def write(self, ending: str = "") -> None:
        self.last = time.monotonic()
        early = ending and self.total is not None and self.done < self.total
        count = f"{self.done}" if self.total is None else f"{self.done} of {'at most ' * bool(early)}{self.total}"
        print(f"{self.label}: {count}, {self.last - self.began:.1f} s{ending}", file=sys.stderr, flush=True)


class _Subtasks:
    """A task of scikit-learn's callbacks below the whole fit, with one task below it for every item done."""

    def __init__(self, estimator: Any, label: str, total: int | None) -> None:
        self.estimator, self.label, self.total, self.told = estimator, label, total, 0
        self.task = estimator._callback_fit_ctx.subcontext(task_name=label, max_subtasks=total)
        self.task.call_on_fit_task_begin(estimator=estimator)

    def step(self, done: int) -> None:
        # a loop may do several items at once, and no more tasks are accepted than were announced
        done = done if self.total is None else min(done, self.total)
        for _ in range(self.told, done):
            one = self.task.subcontext(task_name=self.label)
            one.call_on_fit_task_begin(estimator=self.estimator)
            one.call_on_fit_task_end(estimator=self.estimator)
        self.told = max(self.told, done)

    def end(self) -> None:
        self.task.call_on_fit_task_end(estimator=self.estimator)


def printable(text: str, keep: str = "") -> str:
    r"""The text with escapes in place of characters that control a terminal or change the direction of text.

    Everything from a file or a table passes through this on its way to a terminal or into an error message. Characters
    in ``keep`` stay as they are. The escapes are those of JSON, so a text that is JSON stays the same JSON.

    Examples
    --------
    >>> from fewkern.arrays.progress import printable
    >>> print(printable("\x1b[31mred\x00 \u202etxt.exe żółw"))
    \u001b[31mred\u0000 \u202etxt.exe żółw
    """
    if text.isprintable():
        return text
    return "".join(
        _escape(character) if character not in keep and unicodedata.category(character) in _UNSAFE else character
        for character in text
    )


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def missing_package(what: str, *packages: str) -> ImportError:
    """The error that names what needs packages that are not installed, and how to get them.

    Examples
    --------
    >>> from fewkern.arrays.progress import missing_package
    >>> print(missing_package("t.xlsx is an Excel workbook, which", "openpyxl"))
    t.xlsx is an Excel workbook, which needs openpyxl: pip install openpyxl
    """
    bare = [re.sub(r"\[.*", "", package) for package in packages]
    return ImportError(f"{what} needs {' and '.join(bare)}: pip install {' '.join(packages)}")
