"""The record on disk: one compressed ``.npz`` file, keys ``case|array``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

RECORD = Path(__file__).with_name("record.npz")
# Relative to the largest entry of an array. BLAS libraries differ in the last digits, and a choice between equally good
# models may then fall the other way; on one machine a difference is exactly zero.
TOLERANCE = {"float64": 1e-6, "float32": 1e-3}


def read() -> dict[str, dict[str, np.ndarray]]:
    """Arrays of every case."""
    found: dict[str, dict[str, np.ndarray]] = {}
    if not RECORD.exists():
        return found
    with np.load(RECORD, allow_pickle=False) as archive:
        for key in archive.files:
            case, name = key.split("|")
            found.setdefault(case, {})[name] = archive[key]
    return found


def write(results: dict[str, dict[str, np.ndarray]]) -> None:
    """Replace the record."""
    arrays = {f"{case}|{name}": array for case, result in results.items() for name, array in result.items()}
    part = RECORD.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.replace(RECORD)


def differences(
    found: dict[str, np.ndarray], expected: dict[str, np.ndarray] | None, tolerance: float | None = None
) -> tuple[list[str], float]:
    """What differs, in words, and the largest relative difference where nothing does. New answers are no difference."""
    if expected is None:
        return ["not in the record"], 0.0
    problems, worst = [], 0.0
    for name, old in expected.items():
        new = found.get(name)
        if new is None:
            problems.append(f"{name} is gone")
        elif new.shape != old.shape:
            problems.append(f"{name} has shape {new.shape}, was {old.shape}")
        elif old.dtype.kind not in "fc":
            if not np.array_equal(new, old) and tolerance is None:
                problems.append(f"{name} differs in {int(np.sum(new != old))} of {old.size} entries")
        else:
            scale = max(float(np.max(np.abs(old), initial=0.0)), 1e-300)
            gap = float(np.max(np.abs(new.astype(float) - old.astype(float)), initial=0.0)) / scale
            if gap > (tolerance or TOLERANCE[str(old.dtype)]):
                problems.append(f"{name} differs by {gap:.1e} of its size")
            else:
                worst = max(worst, gap)
    return problems, worst
