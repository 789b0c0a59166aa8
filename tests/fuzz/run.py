"""Damage files, load them, ask what loads; every load has a number, and its number is its seed."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fewkern.io import ModelFileError, archive
from fewkern.tables.encoder import TableWarning
from tests.fuzz.models import Subject, answers, load_bytes, subjects
from tests.fuzz.mutate import MUTATIONS, SHARES

# Answers to samples of another kind than those of the model: a column of texts without its encoder, other columns.
_OTHER_SAMPLES = ("X must hold numbers", "features as input", "feature names should match", "columns are missing")


def damaged(number: int, seed: int) -> tuple[Subject, str, bytes]:
    """A model, the name of a mutation, and the damaged file."""
    rng = np.random.default_rng([seed, number])
    subject = subjects()[int(rng.integers(len(subjects())))]
    name = list(MUTATIONS)[int(rng.choice(len(MUTATIONS), p=SHARES))]
    return subject, name, MUTATIONS[name](subject.content, rng)


def result(content: bytes, samples: Any, folder: Path) -> str:
    """What a damaged file does: "refused", "predicted", or what else, which is wrong."""
    try:
        found = within_promise(content, folder)
    except ModelFileError:
        return "refused"
    except Exception as error:  # anything else is what this program looks for
        return f"load: {error!r}"[:200]
    if not isinstance(found, BaseEstimator) and found.vectors.shape[1] != samples.shape[1]:
        samples = found.vectors[:5]  # a function of other columns, and no estimator to say so
    try:
        answers(found, samples)
    except Exception as error:
        if not isinstance(error, ValueError) or not any(words in str(error) for words in _OTHER_SAMPLES):
            return f"use: {error!r}"[:200]
    return "predicted"


def within_promise(content: bytes, folder: Path) -> Any:
    """The model of a file; a MemoryError if loading it takes more than ``load`` promises."""
    before = _high_water(reset=True)
    try:
        return load_bytes(content, folder)
    finally:
        peak = _high_water() - before
        if peak > archive.MEMORY_BASE_BYTES + archive.MEMORY_FACTOR * len(content):
            raise MemoryError(f"{peak:,} bytes for a file of {len(content):,}")


def _high_water(reset: bool = False) -> int:
    """The most resident memory of this process so far, in bytes; 0 where no Linux says so."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def many(numbers: range, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Counts of "mutation: result", and what went wrong, with the number of the load."""
    counts: Counter[str] = Counter()
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # the cells of damaged tables are unusual
        for number in numbers:
            # the last file stays on the disk, so that a crash of the process can be looked at
            subject, mutation, content = damaged(number, seed)
            found = result(content, subject.samples, folder)
            known = found in ("refused", "predicted")
            counts[f"{mutation}: {found if known else 'wrong'}"] += 1
            if not known:
                wrong.append(f"{number}: {subject.name}, {mutation}: {found}")
    return counts, wrong
