"""Generators of the papers' toy data, and readers of their benchmark sets."""

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
    "make_banana",
    "make_crossing_circles",
    "make_ringnorm",
    "make_rings",
    "make_sinc",
    "make_two_gaussians",
    "make_twonorm",
    "make_waveform",
]
