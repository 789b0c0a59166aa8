"""A model with what happens to a sample before the model sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from fewkern.arrays.namespace import Array

__all__ = ["Prepared", "Preparing", "Scaling"]


@dataclass(frozen=True)
class Scaling:
    """``u = (x - shift) * factor``, one number per feature in both."""

    shift: Array
    factor: Array

    def then(self, after: Scaling) -> Scaling:
        """This scaling, then another one, as one."""
        return Scaling(self.shift + after.shift / self.factor, self.factor * after.factor)


@dataclass(frozen=True)
class Prepared:
    """A model, and what surrounds it."""

    model: Any
    scaling: Scaling | None = None
    feature_names: tuple[str, ...] | None = None
    log_unit: float = 0.0
    """Added to a log density: its unit of volume."""
    notes: tuple[str, ...] = ()
    """Sentences for whoever uses the model outside of Python."""
    inputs: Any = None
    """How the inputs become features (``fewkern.io.plan.Inputs``); None: they are the features."""


@runtime_checkable
class Preparing(Protocol):
    """Anything that holds a model and its preparation: it can be exported as one."""

    def prepared(self) -> Prepared:
        """The model inside, and what happens to a sample before the model sees it."""
