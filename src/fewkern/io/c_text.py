"""Parts of C files: numbers, texts and comments, the head, and the functions that are written in C."""

from __future__ import annotations

import functools
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.io.plan import DTYPES, Plan

# C99 guarantees string literals of at least this many bytes.
_LONGEST_STRING_BYTES = 4095


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
    if len(content) > _LONGEST_STRING_BYTES:
        raise ValueError(
            f"to_c: the label {text[:50]!r}... has {len(content)} bytes, and C guarantees texts of "
            f"{_LONGEST_STRING_BYTES}; rename the class."
        )
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in content) + '"'


def c_comment(text: str) -> str:
    """Text for a comment: ASCII, on one line, without the end of a comment or a trigraph."""
    text = text.encode("unicode_escape").decode("ascii")
    text = re.sub(r"\?(?=\?)|\*(?=/)|/(?=\*)", r"\g<0> ", text)
    # a backslash at the end would continue the line
    return text + " ." if text.endswith("\\") else text


def c_lines(numbers: list[str]) -> str:
    """Numbers with commas, in lines of readable length."""
    indent = "    "
    return textwrap.fill(
        ", ".join(numbers), 112, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def filled(text: str, words: dict[str, Any]) -> str:
    """A text with others in place of words in capitals."""
    return re.sub(rf"(?<![A-Za-z_])({'|'.join(words)})(?![A-Za-z])", lambda m: str(words[m[0]]), text)


def from_file(file: str, words: dict[str, Any]) -> str:
    """The text of a file beside this one, with these words in place."""
    return filled(Path(__file__).with_name(file).read_text(encoding="ascii"), words)


def c_words(dtype: str) -> dict[str, str]:
    """The type of numbers, and the functions of ``math.h`` for it."""
    suffix = "f" if dtype == "float" else ""
    return {"T": dtype} | {word: word.lower() + suffix for word in ("EXP", "LOG", "FABS", "SQRT", "ERF", "ERFC")}


@functools.cache
def c_library() -> dict[str, str]:
    """The functions of ``loops.c`` by name."""
    text = Path(__file__).with_name("loops.c").read_text(encoding="ascii")
    found = re.findall(r"^static .*?^}\n", text, flags=re.MULTILINE | re.DOTALL)
    return {re.search(r"model_(\w+)\(", function)[1]: function for function in found}  # type: ignore[index]


@functools.cache
def c_functions() -> dict[str, tuple[str, str]]:
    """What the functions of ``functions.c`` do, and their text, by name."""
    text = Path(__file__).with_name("functions.c").read_text(encoding="ascii")
    found = re.findall(r"^/\* (.*) \*/\n(.*NAME_(\w+)\((?:.*\n)+?}\n)", text, flags=re.MULTILINE)
    return {name: (meaning, function) for meaning, function, name in found}


def c_loops(functions: str, name: str, dtype: str) -> list[str]:
    """The functions of ``loops.c`` that ``functions`` call, and those that they call, in the order of that file."""
    library = c_library()
    wanted = {loop for loop in library if re.search(rf"\b{name}_{loop}\(", functions)}
    while more := {
        other for loop in wanted for other in library if f"model_{other}(" in library[loop] and other not in wanted
    }:
        wanted |= more
    words = c_words(dtype)
    return [filled(library[loop], words).replace("model_", f"{name}_") for loop in library if loop in wanted]


def _about_numbers(described: Plan, name: str) -> list[str]:
    """What may be in ``x``."""
    if described.inputs is None:
        return ["They must be numbers: where one is NaN so are the outputs, and the number of the class means nothing."]
    lines = ["Missing numbers (NaN) and categories are handled as in the pipeline; where that is an error, as NaN."]
    for column, texts in sorted(described.inputs.texts.items()):
        lines += [f"x[{column}] is a text: put {name}_code({column}, text) there. Its {len(texts)} categories:"]
        lines += [f"  {i}  {text}" for i, text in enumerate(texts)]
    return lines


def c_head(
    described: Plan,
    name: str,
    size: str,
    prototypes: list[tuple[str, str]],
    state: int = 0,
    numbers: list[str] | None = None,
) -> str:
    """The comment at the head of a file, and its declarations; ``size`` says how large its constants are.

    ``state`` is how many numbers a model that learns can send to another one; ``numbers`` says what ``x`` holds, where
    these are whole numbers.
    """
    needed = "math.h" if numbers is None else "stdint.h"
    if numbers is None:
        what = f"x holds the {described.n_inputs} features of one sample"
        what += ", in this order:" if described.feature_names else ", in the order of the training samples."
        names = [f"  {i}  {feature}" for i, feature in enumerate(described.feature_names or ())]
        numbers = [what, *names, *_about_numbers(described, name)]
    lines = [
        f"{name}: {described.title}",
        "",
        f"Written by fewkern {__version__} (to_c). C99, also C++; needs {needed}, allocates no memory.",
        *size.splitlines(),
        "",
        *numbers,
    ]
    if described.classes is not None:
        lines += ["", "Classes:", *[f"  {i}  {label}" for i, label in enumerate(described.classes.labels)]]
        if described.n_scores == 1:
            lines += ["A positive score means class 1."]
    lines += ["", *described.notes, *([""] if described.notes else [])]
    lines += [f"{signature.split('(')[0].split()[-1].lstrip('*')}: {what}" for signature, what in prototypes]
    comment = "\n".join(f" * {c_comment(line)}".rstrip() for line in lines)
    sizes = [f"{name}_N_FEATURES = {described.n_inputs}"]
    if described.values is not None:
        sizes.append(f"{name}_N_VALUES = {described.n_values}")
    if described.classes is not None:
        sizes += [
            f"{name}_N_SCORES = {described.n_scores}",
            f"{name}_N_CLASSES = {len(described.classes.labels)}",
        ]
    sizes += [f"{name}_N_STATE = {state}"] if state else []
    declared = "\n".join(f"{signature};" for signature, _ in prototypes)
    words = {"COMMENT": comment, "NEEDED": needed, "SIZES": ", ".join(sizes), "FUNCTIONS": declared, "NAME": name}
    return from_file("head.h", words)


def c_header(text: str, name: str) -> str:
    """The header of a file: its comment and its declarations, guarded against a second inclusion."""
    end = f"#endif /* {name}_DECLARED */\n"
    return text[: text.index(end)].replace("#include <math.h>\n\n", "", 1) + end
