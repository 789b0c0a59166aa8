"""What C files are made of: numbers, texts and comments, and the functions of ``loops.c``."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np

from fewkern.io.plan import DTYPES

__all__ = ["c_comment", "c_library", "c_lines", "c_loops", "c_number", "c_string"]

# Numbers and texts are broken into lines of about this length.
_LINE = 110
# C99 guarantees string literals of at least this many bytes.
_LONGEST_STRING = 4095


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
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"to_c: the label {text[:50]!r} cannot be written as UTF-8; rename the class.") from None
    if 0 in content:
        raise ValueError(f"to_c: the label {text!r} holds a NUL, which ends a text in C; rename the class.")
    if len(content) > _LONGEST_STRING:
        raise ValueError(
            f"to_c: the label {text[:50]!r}... has {len(content)} bytes, and C guarantees texts of {_LONGEST_STRING}; "
            "rename the class."
        )
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in content) + '"'


def c_comment(text: str) -> str:
    """Text that can stand in a comment: ASCII, on one line, neither its end nor a trigraph."""
    text = text.encode("unicode_escape").decode("ascii")
    text = re.sub(r"\?(?=\?)|\*(?=/)|/(?=\*)", r"\g<0> ", text)
    # a backslash at the end would continue the line
    return text + " ." if text.endswith("\\") else text


def c_lines(numbers: list[str]) -> str:
    """Numbers with commas, in lines of readable length."""
    lines, line = [], "   "
    for text in numbers:
        if len(line) + len(text) > _LINE and line.strip():
            lines.append(line)
            line = "   "
        line += f" {text},"
    return "\n".join([*lines, line]).rstrip(",")


@functools.cache
def c_library() -> dict[str, str]:
    """The functions of ``loops.c`` by name."""
    text = Path(__file__).with_name("loops.c").read_text(encoding="ascii")
    found = re.findall(r"^static .*?^}\n", text, flags=re.MULTILINE | re.DOTALL)
    return {re.search(r"model_(\w+)\(", function)[1]: function for function in found}  # type: ignore[index]


def c_loops(functions: str, name: str, dtype: str) -> list[str]:
    """The functions of ``loops.c`` that ``functions`` call, and those that they call, in the order of that file."""
    library = c_library()
    wanted = {loop for loop in library if re.search(rf"\b{name}_{loop}\(", functions)}
    while more := {
        other for loop in wanted for other in library if f"model_{other}(" in library[loop] and other not in wanted
    }:
        wanted |= more
    suffix = "f" if dtype == "float" else ""
    words = {"T": dtype, "EXP": f"exp{suffix}", "LOG": f"log{suffix}", "FABS": f"fabs{suffix}"}
    return [
        re.sub(r"\b(T|EXP|LOG|FABS)\b", lambda m: words[m[0]], library[loop]).replace("model_", f"{name}_")
        for loop in library
        if loop in wanted
    ]
