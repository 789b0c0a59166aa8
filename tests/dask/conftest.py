"""Samples and blocks that are much smaller than the tables of these tests."""

import pytest

from fewkern.arrays import partitions, sampling


@pytest.fixture(autouse=True)
def _small(request, monkeypatch):
    """As many rows in a sample and in a block as the module says."""
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", request.module.SAMPLE)
    monkeypatch.setattr(partitions, "BLOCK_ROWS", request.module.BLOCK)
