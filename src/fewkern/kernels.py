"""Kernel objects: ``Gaussian``, ``Laplacian``, ``Polynomial``, ``Linear``, ``LinearSpline``, ``Precomputed``,
``Function``."""

from fewkern.core.kernels import (
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    LinearSpline,
    Polynomial,
    Precomputed,
    as_kernel,
)

__all__ = [
    "Function",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "LinearSpline",
    "Polynomial",
    "Precomputed",
    "as_kernel",
]
