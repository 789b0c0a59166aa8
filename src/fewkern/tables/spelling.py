"""Texts that are written differently and probably mean the same: ``Yes``, ``yes`` and ``Y``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["canonical", "note_on_spellings", "speller"]

_TRUTH = dict.fromkeys(("1", "y", "yes", "t", "true", "on", "j", "ja", "oui", "si", "sí"), "yes")
_TRUTH |= dict.fromkeys(("0", "n", "no", "f", "false", "off", "nein", "non"), "no")


def _plain(text: str) -> str:
    """Without case, outer punctuation, and differences of spaces, hyphens and underscores."""
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split()).rstrip(" .:;")


def speller(words: Iterable[str]) -> Callable[[str], str]:
    """A function that gives texts of the same meaning the same key, for a column with these texts.

    Examples
    --------
    >>> from fewkern.tables.spelling import speller
    >>> [speller(["Y", "yes", "No"])(text) for text in ("Y", "yes", "TRUE", "n")]
    ['yes', 'yes', 'yes', 'no']
    >>> [speller(["Y", "one year"])(text) for text in ("Y", "One  Year")]
    ['y', 'one year']
    """
    if all(_plain(word) in _TRUTH for word in words):
        return lambda text: _TRUTH.get(_plain(text), _plain(text))
    return _plain


def canonical(words: Any) -> dict[str, str]:
    """The most frequent spelling of every text that has several; of equally frequent ones the first."""
    counts = Counter(word for word in words if word is not None)
    key = speller(counts)
    best: dict[str, str] = {}
    for word, _ in counts.most_common():
        best.setdefault(key(word), word)
    return {word: best[key(word)] for word in counts if best[key(word)] != word}


def note_on_spellings(who: str, names: dict[str, str], merge: bool) -> str | None:
    """A sentence about texts with several spellings; ``who`` and ``names``: a column, and :func:`canonical`."""
    if not names:
        return None
    word = next(iter(names.values()))
    others = [repr(other) for other, best in names.items() if best == word][:3]
    more = f" (and {len(set(names.values())) - 1:,} more)" if len(set(names.values())) > 1 else ""
    if merge:
        return f"{who}: {', '.join(others)} {'are' if len(others) > 1 else 'is'} taken as {word!r}{more}"
    alike = ", ".join([repr(word), *others])
    return f"{who}: {alike} look like the same and are kept apart{more}; merge_spellings (--merge-spellings) joins them"
