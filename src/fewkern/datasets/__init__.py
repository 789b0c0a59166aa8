"""Generators of the papers' toy data, and readers of their benchmark sets."""

from fewkern.datasets.densities import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)
from fewkern.datasets.fetch import DataNotFoundError, data_file, fetch_faces, fetch_ida, fetch_large, fetch_uci
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
    "DataNotFoundError",
    "data_file",
    "fetch_faces",
    "fetch_ida",
    "fetch_large",
    "fetch_uci",
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
