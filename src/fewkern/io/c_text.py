"""Numbers, strings and comments as C writes them."""

from __future__ import annotations

import re

import numpy as np

from fewkern.io.plan import DTYPES

__all__ = ["c_comment", "c_lines", "c_number", "c_row", "c_string"]


def c_number(value: float, dtype: str) -> str:
    """The shortest decimal that a compiler reads back as the same number."""
    with np.errstate(over="ignore"):
        number = DTYPES[dtype](value)
    if not np.isfinite(number):
        raise ValueError(
            f"to_c: the model holds the number {value!r}, which no {dtype} can hold"
            + ('; use dtype="double".' if np.isfinite(value) else "; fit it again on finite samples.")
        )
    return str(number) + ("f" if dtype == "float" else "")


def c_string(text: str) -> str:
    """A C string literal: ASCII, everything else as octal escapes of its UTF-8 bytes (they end after three digits)."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'


def c_comment(text: str) -> str:
    """Text that can stand in a comment: ASCII, on one line, neither its end nor a trigraph."""
    text = text.encode("unicode_escape").decode("ascii")
    return re.sub(r"\?(?=\?)|\*(?=/)|/(?=\*)", r"\g<0> ", text)


def c_row(numbers: list[str]) -> str:
    """One row of a matrix, on one line if it fits."""
    text = c_lines(numbers, "        ")
    return f"    {{\n{text}\n    }}" if "\n" in text else f"    {{{text.strip()}}}"


def c_lines(numbers: list[str], indent: str) -> str:
    """Numbers with commas, in lines of readable length."""
    lines, line = [], ""
    for text in numbers:
        if line and len(line) + len(text) > 100:
            lines.append(indent + line.rstrip())
            line = ""
        line += text + ", "
    return "\n".join([*lines, indent + line.rstrip(", ")])
