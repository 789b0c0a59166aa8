"""Parameter objects: scikit-learn's protocol on dataclasses."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from fewkern.core.kernel import Parameters


@dataclass(eq=False)
class Example(Parameters):
    count: int = 3
    width: Any = "median"


def test_protocol():
    example = Example(width=2.0)
    assert example.get_params() == {"count": 3, "width": 2.0}
    assert example.set_params(count=5) is example
    assert example.count == 5
    copy = clone(example, safe=False)
    assert copy == example
    assert copy is not example
    with pytest.raises(ValueError, match=r"Example has no parameter 'size'; it has \['count', 'width'\]"):
        example.set_params(size=1)


def test_equality_is_by_value():
    long = np.ones(2000)
    other = long.copy()
    other[1000] = 2.0  # where a printed array has only dots
    assert Example(width=long) == Example(width=long.copy())
    assert Example(width=long) != Example(width=other)
    assert Example(width=long) != Example(width=1.0)
    assert Example() != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(Example())
