"""Kernel objects. The list is that of :mod:`fewkern.core.kernels`, so that a new kernel is written in one file."""

from fewkern.core.kernels import *
from fewkern.core.kernels import __all__ as __all__
