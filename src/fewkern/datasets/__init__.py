"""Generators of the papers' toy data, and readers of their benchmark sets."""

from fewkern.datasets.densities import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)
from fewkern.datasets.local import DataNotFoundError, data_folder, fetch_ida, fetch_large
from fewkern.datasets.toys import make_banana, make_crossing_circles, make_rings, make_sinc, make_two_gaussians

__all__ = [
    "DataNotFoundError",
    "data_folder",
    "fetch_ida",
    "fetch_large",
    "gaussian_laplacian_density",
    "make_banana",
    "make_crossing_circles",
    "make_gaussian_laplacian",
    "make_rings",
    "make_sinc",
    "make_three_gaussians",
    "make_two_gaussians",
    "three_gaussians_density",
]
