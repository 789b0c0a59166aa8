"""Components of columns, prepared like columns."""

from __future__ import annotations

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.arrays.storable import stored_classes
from fewkern.core.components import ComponentPreparation, check_sees_columns, sees_components
from fewkern.core.gaussians import GaussianBasis, Preparation
from fewkern.io.fields import check_fields


@pytest.fixture
def made(rng):
    plain = Preparation(np.sort(rng.standard_normal((5, 2)), axis=0), np.sort(rng.standard_normal((5, 2)), axis=0))
    return plain, ComponentPreparation.of(plain, rng.standard_normal((7, 2)))


def test_columns_become_components_which_stay(made, rng):
    plain, found = made
    X = rng.standard_normal((40, 7)) * (rng.random((40, 7)) < 0.4)
    expected = plain(X @ found.matrix)
    for rows in (X, sp.csr_array(X), sp.csr_matrix(X), X @ found.matrix):
        np.testing.assert_allclose(found(rows), expected, atol=1e-12)
    np.testing.assert_allclose(np.asarray(found(array_api_strict.asarray(X))), expected, atol=1e-12)
    assert found(sp.csr_array(X.astype(np.float32))).dtype == np.float32
    np.testing.assert_allclose(found.inverse(expected), plain.inverse(expected))
    assert found.nbytes == plain.nbytes + 7 * 2 * 8


def test_who_sees_components(made):
    plain, found = made
    basis = GaussianBasis(plain, np.zeros((1, 2)), np.ones(2), np.zeros((2, 0)), np.ones(1), np.zeros((2, 0)))
    seen = replace(basis, preparation=found)
    assert not any(map(sees_components, (None, basis, basis.expand(np.ones((1, 1)), np.zeros(1)))))
    assert all(map(sees_components, (seen, seen.expand(np.ones((1, 1)), np.zeros(1)))))
    check_sees_columns(basis.expand(np.ones((1, 1)), np.zeros(1)), "anybody")
    with pytest.raises(ValueError, match=r"^somebody: needs a model of the columns, .* 2 components of 7 columns"):
        check_sees_columns(seen.expand(np.ones((1, 1)), np.zeros(1)), "somebody")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((7, 3)), "has the shape"),
        (np.full((7, 2), np.nan), "holds NaN or infinity"),
        (np.zeros(7), "has the shape"),
    ],
)
def test_a_file_with_an_array_that_cannot_be(made, matrix, message):
    with pytest.raises(ValueError, match=message):
        check_fields(replace(made[1], matrix=matrix), stored_classes()["ComponentPreparation"])


def test_a_file_with_as_many_components_as_columns(made):
    with pytest.raises(ValueError, match="2 columns have no 2 components: there must be fewer"):
        stored_classes()["ComponentPreparation"].check(replace(made[1], matrix=np.zeros((2, 2))))
    with pytest.raises(ValueError, match="the preparation of 3 components has 2 columns"):
        stored_classes()["ComponentPreparation"].check(replace(made[1], matrix=np.zeros((7, 3))))
