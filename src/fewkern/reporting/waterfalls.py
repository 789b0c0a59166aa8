"""Two predictions, column by column: the one that is furthest off, and a typical one."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from fewkern.core.explanation import explainable
from fewkern.plotting import WaterfallDisplay
from fewkern.reporting.errors import worst_rows
from fewkern.reporting.formatting import text
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.subject import Subject

__all__ = ["explained_rows"]

_LONGEST_LABEL = 30


def explained_rows(subject: Subject, found: Predictions | None) -> list[tuple[WaterfallDisplay, str]]:
    """Displays, not drawn, and their captions; none for a model without a closed form of the shares."""
    core = subject.core
    if found is None or len(subject.used) < 2 or not (hasattr(core, "explain") and explainable(core.expansion_)):
        return []
    classify = subject.task == "classify"
    order = np.argsort(found.losses, kind="stable")
    middle = int(found.positions[order[len(order) // 2]])
    worst = [
        (row, "the most confident wrong prediction" if classify else "the largest difference")
        for row, _ in worst_rows(found)[:1]
    ]
    chosen = [*worst, *([(middle, "a typical one")] if middle not in [row for row, _ in worst] else [])]
    drawn = []
    for row, which in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the page has the remarks on the cells already
            steps = WaterfallDisplay.of_row(subject.model, subject.given(subject.rows), row=row)
        caption = (
            f"What each column contributes to the prediction of this model for row {subject.rows.label(row)}, {which}: "
            f"from {steps.baseline:.4g}, the mean over the background, to {steps.value:.4g}."
        )
        drawn.append((replace(steps, labels=[text(label, _LONGEST_LABEL) for label in steps.labels]), caption))
    return drawn
