"""Named parameters of small objects, for ``kernel__length_scale`` and ``graph__neighbors`` in a grid search."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from fewkern.arrays.namespace import to_numpy

__all__ = ["Parameters"]


class Parameters:
    """Base of dataclasses whose fields are parameters in scikit-learn's protocol: kernels and graph rules.

    Subclasses are declared with ``@dataclass(eq=False)``: equality is defined here.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's protocol
        """Parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place and return the object."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known) or 'none'}.")
            setattr(self, name, value)
        return self

    def __eq__(self, other: object) -> bool:
        """Objects of one class with equal parameters are equal; an array is compared entry by entry."""
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs = self.get_params(), other.get_params()
        return all(_same(ours[name], theirs[name]) for name in ours)

    __hash__ = None  # type: ignore[assignment]  # parameters may change


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "shape") or hasattr(other, "shape"):
        one, other = to_numpy(one), to_numpy(other)
        return bool(one.shape == other.shape and (one == other).all())
    return bool(one == other)
