"""Which classes a model file may hold, and what their arrays must look like.

Every class that can be part of a fitted model registers itself here with :func:`storable`. ``fewkern.io`` writes and
reads registered classes and no others, so it names none of them, and a file cannot create
anything else. Estimators in ``fewkern.__all__`` are announced by the package: a class is imported, and registered, when
the list of classes is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, overload

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Shape:
    """What an array must be: its kind, its dimensions by name, and the range of its entries.

    The same letter is the same number in all arrays of one object.
    """

    kind: Literal["floats", "samples", "indices"]
    dims: tuple[str, ...]
    finite: bool = True
    least: float | None = None
    above: float | None = None


def floats(*dims: str, finite: bool = True, least: float | None = None, above: float | None = None) -> Shape:
    """Numbers of float32 or float64: finite, at least ``least``, larger than ``above``, where these are given."""
    return Shape("floats", dims, finite, least, above)


def samples(*dims: str) -> Shape:
    """Rows of samples: finite numbers, dense or sparse, or row numbers (of a precomputed kernel)."""
    return Shape("samples", dims)


def indices(*dims: str) -> Shape:
    """Non-negative integers."""
    return Shape("indices", dims)


@dataclass(frozen=True)
class Stored:
    """A registered class and what is checked when one is read."""

    cls: type
    shapes: dict[str, tuple[Shape, ...]]
    check: Callable[[Any], None] | None = None


_CLASSES: dict[str, Stored] = {}


@overload
def storable(cls: Class, /) -> Class: ...
@overload
def storable(
    cls: None = None, /, *, check: Callable[[Any], None] | None = None, **shapes: Shape | tuple[Shape, ...]
) -> Callable[[Class], Class]: ...
def storable(
    cls: Any = None, /, *, check: Callable[[Any], None] | None = None, **shapes: Shape | tuple[Shape, ...]
) -> Any:
    """Class decorator: files may hold objects of this class.

    A dataclass or an enumeration is stored by its fields or its value. An estimator is stored by its attributes, except
    those that its class names in ``_transient``: caches and other things that are not part of the model.

    Parameters
    ----------
    cls : type
        Needs a name that no other registered class has.
    check : callable or None
        Called with every object that was read; raises a ValueError if the object contradicts itself.
    **shapes : Shape or tuple of Shape
        What the array in the field of that name must be (one of several shapes, if it is a tuple). Fields that are not
        arrays are compared with their type hints.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from fewkern.arrays.storable import floats, storable, stored_classes
    >>> @storable(points=floats("n", "d"), masses=floats("n", least=0.0))
    ... @dataclass(frozen=True)
    ... class Cloud:
    ...     points: object
    ...     masses: object
    >>> stored_classes()["Cloud"].shapes["masses"][0].dims
    ('n',)
    """

    def register(found: Class) -> Class:
        name = found.__name__
        other = _CLASSES.get(name)
        if other is not None and (other.cls.__module__, other.cls.__qualname__) != (
            found.__module__,
            found.__qualname__,
        ):
            raise ValueError(
                f"storable: files already know a class {name} ({other.cls.__module__}); give "
                f"{found.__module__}.{name} another name."
            )
        wanted = {field: shape if isinstance(shape, tuple) else (shape,) for field, shape in shapes.items()}
        _CLASSES[name] = Stored(found, wanted, check)
        return found

    return register if cls is None else register(cls)


# Classes that are registered when they are first needed, and the modules that they are in.
_ANNOUNCED: dict[str, str] = {}


def announce(places: dict[str, str]) -> None:
    """Name classes that files may hold, with their modules, without importing them yet."""
    _ANNOUNCED.update(places)


def stored_classes() -> dict[str, Stored]:
    """Registered classes by name, and those that were announced."""
    for name, module in list(_ANNOUNCED.items()):
        found = getattr(import_module(module), name)
        if name not in _CLASSES:
            storable(found)
        _ANNOUNCED.pop(name, None)
    return dict(_CLASSES)
