import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern import KernelExpansion
from fewkern.kernels import Gaussian


@pytest.fixture
def f(rng):
    coef, offset = rng.standard_normal((6, 2)), rng.standard_normal(2)
    return KernelExpansion(Gaussian(length_scale=1.0), rng.standard_normal((6, 3)), coef, offset, np.arange(6))


def test_no_vectors_is_the_constant(f):
    g = dataclasses.replace(f, vectors=f.vectors[:0], coef=f.coef[:0])
    np.testing.assert_array_equal(g(np.zeros((4, 3))), np.tile(f.offset, (4, 1)))


def test_bytes(f):
    assert f.nbytes == 8 * (6 * 3 + 6 * 2 + 2)
    sparse = dataclasses.replace(f, vectors=sp.csr_array(np.eye(6)[:, :3]))
    assert sparse.nbytes == 8 * (3 + 6 * 2 + 2)
