"""Fixtures that all tests share."""

import os
import sys

# Small matrices on few cores: threads inside BLAS only get in each other's way, and tests run in parallel already.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import importlib

import array_api_strict
import matplotlib
import numpy as np
import pytest
from hypothesis import settings

from experiments.data import data_file, download, fetch_ida
from fewkern.arrays.namespace import to_numpy

matplotlib.use("Agg")
settings.register_profile("fewkern", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("fewkern")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    """No test downloads data, or reads what its user downloaded: as if pooch were not there."""
    monkeypatch.setattr(download, "cache_folder", lambda: None)


@pytest.fixture
def rng():
    """A generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture(params=["array_api_strict", "torch"])
def foreign(request):
    """Functions from NumPy to another array library and back; torch only where it is installed."""
    if request.param == "array_api_strict":
        return array_api_strict.asarray, to_numpy
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed (pip install 'fewkern[gpu]')")
    import torch

    return torch.asarray, to_numpy


@pytest.fixture
def ida():
    """Reader of the IDA benchmark; skips where the data is not on this machine."""

    def read(name):
        if data_file(f"ida/{name}") is None:
            pytest.skip(f"ida/{name}.npz is not in the folder that FEWKERN_DATA names")
        return fetch_ida(name)

    return read


@pytest.fixture(autouse=True)
def no_scheduler_of_a_closed_cluster():
    """A client that ended in another test may leave its name in the settings of Dask, and later tests would ask it."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and distributed.client._get_global_client() is None:
        sys.modules["dask"].config.config.pop("scheduler", None)
