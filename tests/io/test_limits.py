"""Files that ask for more than their size can justify: loading stays within its promise, and ends."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fewkern
from fewkern import load, save
from fewkern.datasets import make_banana
from tests.fuzz import attacks
from tests.fuzz.attacks import ALLOWED, ATTACKS, intact


def taken(make, folder):
    """What loading a file came to; a failure if it took more than promised."""
    path = folder / "attack.npz"
    path.write_bytes(make(intact()))
    found, size = attacks.loading(path), path.stat().st_size
    assert found.nbytes <= attacks.promised_bytes(size)
    assert found.seconds <= attacks.promised_seconds(size)
    return found.error


def test_the_promise_is_that_of_the_docs():
    assert attacks.promised_bytes(1000) == 64 * 2**20 + 100 * 1000


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused_within_the_promise(name, tmp_path):
    make, message = ATTACKS[name]
    error = taken(make, tmp_path)
    assert error is not None
    assert error.startswith("ModelFileError: ")
    assert message in error


@pytest.mark.parametrize("name", ALLOWED)
def test_large_models_load_within_the_promise(name, tmp_path):
    error = taken(ALLOWED[name], tmp_path)
    if name.startswith("categories"):  # the encoder has other categories than its columns
        assert error is None or "asks for more" not in error
    else:
        assert error is None


def test_what_compresses_too_well_is_written_uncompressed(tmp_path):
    """Zeros would unpack to more than so small a file may; and many categories are fine in a file of their size."""
    zeros = np.zeros((2000, 2000))
    model = fewkern.KernelExpansion(fewkern.kernels.Linear(), zeros, np.zeros((2000, 1)), np.zeros(1))
    path = save(model, tmp_path / "zeros")
    assert path.stat().st_size > zeros.nbytes
    encoder = OneHotEncoder(categories=[np.arange(300_000)], handle_unknown="ignore")
    numbers = np.arange(60)[:, None]
    last = fewkern.FeatureVectorDiscriminant(max_vectors=3, kernel="linear")
    path = save(make_pipeline(encoder, last).fit(numbers, make_banana(60)[1]), tmp_path / "many")
    assert load(path).predict(numbers).shape == (60,)
