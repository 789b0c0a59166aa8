"""Generators of the papers' toy data, and readers of their benchmark sets."""

from fewkern.datasets.local import DataNotFoundError, data_folder, fetch_ida, fetch_large
from fewkern.datasets.toys import make_banana, make_crossing_circles, make_rings, make_sinc, make_two_gaussians

__all__ = [
    "DataNotFoundError",
    "data_folder",
    "fetch_ida",
    "fetch_large",
    "make_banana",
    "make_crossing_circles",
    "make_rings",
    "make_sinc",
    "make_two_gaussians",
]
