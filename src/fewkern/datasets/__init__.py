"""Generators of the papers' toy data and densities."""

from fewkern.datasets.generators import *  # noqa: F403
from fewkern.datasets.generators import __all__ as __all__
