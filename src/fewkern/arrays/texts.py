"""Texts: those that come from elsewhere, made safe to show, and the one about a package that is not installed."""

from __future__ import annotations

import re
import unicodedata

# Control characters, invisible ones that change the direction of text, halves of pairs, ends of lines and paragraphs.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str, keep: str = "") -> str:
    r"""The text with escapes in place of characters that control a terminal or change the direction of text.

    Everything from a file or a table passes through this on its way to a terminal or into an error message. Characters
    in ``keep`` stay as they are. The escapes are those of JSON, so a text that is JSON stays the same JSON.

    Examples
    --------
    >>> from fewkern.arrays.texts import printable
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
    >>> from fewkern.arrays.texts import missing_package
    >>> print(missing_package("t.xlsx is an Excel workbook, which", "openpyxl"))
    t.xlsx is an Excel workbook, which needs openpyxl: pip install openpyxl
    """
    bare = [re.sub(r"\[.*", "", package) for package in packages]
    return ImportError(f"{what} needs {' and '.join(bare)}: pip install {' '.join(packages)}")
