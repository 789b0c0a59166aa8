"""Damage files, load them, ask what loads; every load has a number, and its number is its seed."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fewkern.io import ModelFileError, archive
from fewkern.tables.encoder import TableWarning
from tests.fuzz.models import answers, load_bytes, subjects
from tests.fuzz.mutate import MUTATIONS, SHARES

# Answers to samples of another kind than those of the model: a column of texts without its encoder, other columns.
_OTHER_SAMPLES = ("X must hold numbers", "features as input", "feature names should match", "columns are missing")


@dataclass(frozen=True)
class Outcome:
    """What one damaged file did: "refused", "predicted", or "wrong" and how."""

    number: int
    model: str
    mutation: str
    result: str
    detail: str = ""


def damaged(number: int, seed: int) -> tuple[str, str, bytes]:
    """Name of the model, name of the mutation, and the damaged file."""
    rng = np.random.default_rng([seed, number])
    subject = subjects()[int(rng.integers(len(subjects())))]
    name = list(MUTATIONS)[int(rng.choice(len(MUTATIONS), p=SHARES))]
    return subject.name, name, MUTATIONS[name](subject.content, rng)


def one(number: int, seed: int, folder: Path) -> Outcome:
    """The load with this number."""
    model, mutation, content = damaged(number, seed)
    samples = next(s.samples for s in subjects() if s.name == model)
    try:
        found = within_promise(content, folder)
    except ModelFileError:
        return Outcome(number, model, mutation, "refused")
    except Exception as error:  # anything else is what this program looks for
        return Outcome(number, model, mutation, "wrong", f"load: {error!r}"[:200])
    if not isinstance(found, BaseEstimator) and found.vectors.shape[1] != samples.shape[1]:
        samples = found.vectors[:5]  # a function of other columns, and no estimator to say so
    try:
        answers(found, samples)
    except Exception as error:
        if isinstance(error, ValueError) and any(words in str(error) for words in _OTHER_SAMPLES):
            return Outcome(number, model, mutation, "predicted")
        return Outcome(number, model, mutation, "wrong", f"use: {error!r}"[:200])
    return Outcome(number, model, mutation, "predicted")


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
            outcome = one(number, seed, folder)
            counts[f"{outcome.mutation}: {outcome.result}"] += 1
            if outcome.result == "wrong":
                wrong.append(f"{number}: {outcome.model}, {outcome.mutation}: {outcome.detail}")
    return counts, wrong
