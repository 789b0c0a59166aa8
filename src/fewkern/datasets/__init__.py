"""Generators of the papers' toy data and densities."""

from fewkern.datasets.densities import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)
from fewkern.datasets.toys import (
    make_banana,
    make_crossing_circles,
    make_ringnorm,
    make_rings,
    make_sinc,
    make_two_gaussians,
    make_twonorm,
    make_waveform,
)

__all__ = [
    "gaussian_laplacian_density",
    "make_banana",
    "make_crossing_circles",
    "make_gaussian_laplacian",
    "make_ringnorm",
    "make_rings",
    "make_sinc",
    "make_three_gaussians",
    "make_two_gaussians",
    "make_twonorm",
    "make_waveform",
    "three_gaussians_density",
]
