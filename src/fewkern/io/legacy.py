"""Files of earlier formats, upgraded to what the classes are now.

``UPGRADES[v]`` holds, by the name of a class in a file of format ``v``, a function that takes the fields of such an
object and returns the name and fields of format ``v + 1``. Fields hold plain values, arrays and
:class:`~fewkern.io.records.Record`, whose own fields were upgraded before. Classes that are not listed did not change.

To change what a class stores, after a release:

1. Add one to ``FORMAT_VERSION`` in ``archive.py`` (once per release).
2. Add an entry to ``UPGRADES`` under the number before, mostly one line with :func:`renamed`.
3. Put a file of the old format into ``tests/io``; it must go on loading and answering.

A new constructor parameter needs nothing: where a file does not have it, it gets its default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fewkern.io.archive import FORMAT_VERSION
from fewkern.io.records import Record, State

__all__ = ["UPGRADES", "Upgrade", "renamed", "upgrade"]

Upgrade: TypeAlias = Callable[[State], tuple[str, State]]


def renamed(name: str, /, **fields: str | None) -> Upgrade:
    """An upgrade that only changes names: ``old="new"``, or ``old=None`` for a field that is gone.

    Examples
    --------
    >>> from fewkern.io.legacy import renamed
    >>> renamed("FeatureVectorSelector", centre="center", tol="basis_tol")({"centre": 1, "tol": None, "rule": "gain"})
    ('FeatureVectorSelector', {'center': 1, 'basis_tol': None, 'rule': 'gain'})
    >>> renamed("ReducedSetDensity", n_folds="cv", threshold=None)({"n_folds": 5, "threshold": 1e-4})
    ('ReducedSetDensity', {'cv': 5})
    """

    def change(state: State) -> tuple[str, State]:
        new = ((fields.get(key, key), value) for key, value in state.items())
        return name, {key: value for key, value in new if key is not None}

    return change


UPGRADES: dict[int, dict[str, Upgrade]] = {1: {}}


def upgrade(tree: Any, version: int, upgrades: dict[int, dict[str, Upgrade]] = UPGRADES) -> Any:
    """The tree of a file of format ``version`` as the present format would have it."""
    for step in range(version, FORMAT_VERSION):
        if step in upgrades:
            tree = _walk(tree, upgrades[step])
    return tree


def _walk(tree: Any, upgrades: dict[str, Upgrade]) -> Any:
    if isinstance(tree, list):
        return [_walk(item, upgrades) for item in tree]
    if isinstance(tree, tuple):
        return tuple(_walk(item, upgrades) for item in tree)
    if isinstance(tree, dict):
        return {_walk(key, upgrades): _walk(value, upgrades) for key, value in tree.items()}
    if not isinstance(tree, Record):
        return tree
    state = {key: _walk(value, upgrades) for key, value in tree.state.items()}
    return Record(*upgrades[tree.name](state)) if tree.name in upgrades else Record(tree.name, state)
