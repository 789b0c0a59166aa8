"""Kernel machines that keep only a few samples, in the scikit-learn API."""

from fewkern import kernels
from fewkern._version import __version__
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion

__all__ = ["KernelBasis", "KernelExpansion", "__version__", "kernels"]
