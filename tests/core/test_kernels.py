import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV

from fewkern import FeatureVectorDiscriminant, FeatureVectorSelector, kernels, load, save
from fewkern.core.kernels import NAMES
from fewkern.kernels import (
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    LinearSpline,
    Polynomial,
    Precomputed,
    as_kernel,
)

WIDTHS = np.array([0.5, 1.0, 2.5])


def spline(x, y):
    """The FVS paper's linear spline kernel (sec. 5.2) of two samples, with its misprint corrected."""
    value = 1.0
    for a, b in zip(x, y):
        m = min(a, b)
        value *= 1 + a * b + a * b * m - (a + b) / 2 * m**2 + m**3 / 3
    return value


FORMULAS = [
    (Gaussian(length_scale=1.7), lambda x, y: np.exp(-np.sum((x - y) ** 2) / (2 * 1.7**2))),
    (Gaussian(length_scale=WIDTHS), lambda x, y: np.exp(-np.sum(((x - y) / WIDTHS) ** 2) / 2)),
    (Laplacian(length_scale=1.7), lambda x, y: np.exp(-np.sum(np.abs(x - y)) / 1.7)),
    (Laplacian(length_scale=WIDTHS), lambda x, y: np.exp(-np.sum(np.abs(x - y) / WIDTHS))),
    (Polynomial(degree=3, gamma=0.5, coef0=2.0), lambda x, y: (0.5 * np.dot(x, y) + 2.0) ** 3),
    (Linear(), np.dot),
    (LinearSpline(origin=-0.5), lambda x, y: spline(x + 0.5, y + 0.5)),
]
# Kernels that hold no formula.
GIVEN = {Precomputed, Function}
# Kernels with rules in place of numbers.
RULES = [cls(rule, unit) for cls in (Gaussian, Laplacian) for rule in ("median", "scale") for unit in ("auto", "range")]
EVERY = [*(kernel for kernel, _ in FORMULAS), *RULES]
IDS = [repr(kernel).split("(")[0] + str(i) for i, (kernel, _) in enumerate(FORMULAS)]


def test_no_kernel_was_forgotten():
    public = {getattr(kernels, name) for name in kernels.__all__} - {Kernel, as_kernel}
    assert {type(kernel) for kernel, _ in FORMULAS} == public - GIVEN
    assert set(NAMES.values()) == public - {Function}


@pytest.fixture
def X(rng):
    return rng.random((12, 3)) * 3


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=IDS)
def test_matrix_and_diagonal_equal_the_formula(kernel, formula, X, rng):
    Y = rng.random((5, 3)) * 3
    expected = [[formula(x, y) for y in Y] for x in X]
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), [formula(x, x) for x in X], rtol=1e-12)


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=IDS)
def test_in_an_estimator_a_grid_search_and_a_file(kernel, formula, X, tmp_path):
    y = np.arange(12) % 2
    model = FeatureVectorDiscriminant(kernel=clone(kernel), max_vectors=3)
    for name, value in kernel.get_params().items():
        model = GridSearchCV(model, {f"kernel__{name}": [value]}, cv=2).fit(X, y).best_estimator_
    model.fit(X, y)
    assert type(model.kernel_) is type(kernel)
    again = load(save(model, tmp_path / "model.npz"))
    assert again.kernel == kernel
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_scale_rule_is_that_of_scikit_learn_on_centred_features(rng):
    X = rng.standard_normal((50, 4)) * [1.0, 2.0, 3.0, 0.1]
    X -= X.mean(axis=0)
    gamma = 1 / (4 * X.var())
    kernel = Gaussian("scale", "common")
    assert 1 / (2 * kernel.resolve(X).length_scale ** 2) == pytest.approx(gamma)
    assert Polynomial(gamma="scale").resolve(X).gamma == pytest.approx(gamma)
    assert kernel.resolve(sp.csr_array(X)).length_scale == pytest.approx((1 / (2 * gamma)) ** 0.5)


@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(2, 0.5, 1.0), Polynomial(3, 1.0, 0.0), Gaussian(1.0)], ids=repr
)
def test_the_rank_is_that_of_the_matrix(kernel, rng):
    Z = rng.standard_normal((40, 3))
    assert np.linalg.matrix_rank(kernel(Z, Z)) == (kernel.rank(3) or 40)


def test_far_from_the_origin_keeps_its_figures(rng):
    X = rng.integers(0, 50, (30, 2)).astype(float)
    np.testing.assert_allclose(
        Gaussian(length_scale=10.0)(X + 1e7, X + 1e7), Gaussian(length_scale=10.0)(X, X), atol=1e-7
    )


def test_a_kernel_derived_from_ours_stays_what_it_is(X):
    class Halved(Gaussian):
        def _block(self, X, Y):
            return super()._block(X, Y) / 2

        def diag(self, X):
            return super().diag(X) / 2

    for width in ("median", 1.0, [1.0, 2.0]):
        kernel = Halved(length_scale=width).resolve(X[:, :2])
        assert type(kernel) is Halved
        np.testing.assert_allclose(np.diag(kernel(X[:, :2], X[:, :2])), 0.5)
    assert type(FeatureVectorSelector(kernel=Halved()).fit(X).kernel_) is Halved


def test_spline_starts_at_the_smallest_value_and_extrapolates_straight(rng):
    X = rng.uniform(-3, 3, (20, 1))
    kernel = LinearSpline().resolve(X)
    assert kernel.origin == X.min()
    left = X.min() - np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(np.diff(kernel(left, X), n=2, axis=0), 0.0, atol=1e-12)


def test_callable_equals_the_kernel_it_computes(X):
    kernel = as_kernel(pairwise.rbf_kernel)
    assert isinstance(kernel, Function)
    with_params = Function(pairwise.rbf_kernel, params={"gamma": 0.125})
    np.testing.assert_allclose(with_params(X, X[:4]), Gaussian(length_scale=2.0)(X, X[:4]))
    np.testing.assert_allclose(with_params.diag(X), np.ones(len(X)))


def test_kernel_and_its_width_set_together():
    model = FeatureVectorSelector().set_params(kernel="laplacian", kernel__length_scale=3.0)
    assert repr(model.kernel) == "Laplacian(length_scale=3.0)"


def test_parameters_and_equality_by_value():
    long = np.ones(2000)
    kernel, other = Gaussian(long), long.copy()
    assert kernel.get_params() == {"length_scale": long, "unit": "auto"}
    assert kernel.set_params(unit="range") is kernel
    copied = clone(kernel, safe=False)
    assert copied is not kernel
    assert copied == kernel == Gaussian(long.copy(), "range")
    other[1000] = 2.0  # where a printed array has only dots
    for unequal in (Gaussian(other, "range"), Gaussian(1.0, "range"), Gaussian(long), Laplacian(long, "range"), 3):
        assert kernel != unequal
    with pytest.raises(TypeError, match="unhashable"):
        hash(kernel)


@pytest.mark.parametrize("sparse", [sp.csr_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.3), Gaussian(WIDTHS), Laplacian(1.3), Laplacian(WIDTHS), Polynomial(2, 0.5, 1.0), Linear(), *RULES],
    ids=repr,
)
def test_sparse_equals_dense(kernel, sparse, X):
    X = np.where(X > 1.5, X, 0.0) * [1.0, 1e-3, 1e3]
    X[:, 2] = 0.0
    dense, found, S = kernel.resolve(X), kernel.resolve(sparse(X)), sp.csr_array(X)
    np.testing.assert_allclose(found(S, S[:4]), dense(X, X[:4]), rtol=1e-7)
    np.testing.assert_allclose(found.diag(S), dense.diag(X), rtol=1e-12)
    assert found(S.astype(np.float32), S.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_float32_stays_float32(kernel, X):
    X32 = X.astype(np.float32)
    resolved = kernel.resolve(X32)
    assert resolved(X32, X32).dtype == resolved.diag(X32).dtype == np.float32
    np.testing.assert_allclose(resolved(X32, X32), kernel.resolve(X)(X, X), rtol=1e-4)


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_other_array_libraries(kernel, X, foreign):
    to, back = foreign
    here, there, A = kernel.resolve(X), kernel.resolve(to(X)), to(X)
    assert [type(value) for value in there.get_params().values() if hasattr(value, "shape")] == [
        type(A) for value in here.get_params().values() if hasattr(value, "shape")
    ]
    np.testing.assert_allclose(back(there(A, A[:4, :])), here(X, X[:4]), rtol=1e-12)
    np.testing.assert_allclose(back(there.diag(A)), here.diag(X), rtol=1e-12)


def test_torch_samples_of_two_precisions():
    torch = pytest.importorskip("torch")
    X = torch.rand((5, 2), dtype=torch.float64)
    for kernel in (Linear(), Polynomial(2, 1.0, 1.0), Gaussian(1.0), Laplacian(1.0)):
        np.testing.assert_allclose(kernel(X.to(torch.float32), X), kernel(X, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (Gaussian(length_scale=0.0).resolve, "Gaussian: length_scale must be a positive number, got 0.0"),
        (Gaussian(None).resolve, "length_scale must be a positive number, got None"),
        (Laplacian(length_scale=[1.0, 2.0]).resolve, r"Laplacian: .* one per feature, got shape \(2,\) for 3 features"),
        (Polynomial(degree=1.5).resolve, "degree must be a whole number of at least 1, got 1.5"),
        (Polynomial(degree=0).resolve, "degree must be a whole number"),
        (Polynomial(coef0=-1.0).resolve, "coef0 must not be negative, got -1.0"),
        (Polynomial(gamma="wide").resolve, "gamma must be a positive number or .scale., got .wide"),
        (Polynomial(gamma=0).resolve, "Polynomial: gamma must be a positive number"),
        (LinearSpline(origin=1.0).resolve, "every sample must lie right of origin=1.0"),
        (LinearSpline(origin="left").resolve, "origin must be a number or .min., got .left"),
        (lambda X: LinearSpline().resolve(sp.csr_array(X)), "LinearSpline: sparse samples are not supported"),
        (Precomputed().resolve, r"square kernel matrix of the training samples, got \(12, 3\)"),
        (lambda X: Precomputed().resolve(X[:2, :2]), "must be symmetric, but entries differ by up to"),
        (lambda X: Precomputed().resolve(sp.csr_array(X)), "Precomputed: the kernel matrix must be dense"),
        (Function(None).resolve, "function must be callable, got None"),
        (lambda X: as_kernel("g"), "kernel: expected one of .*gaussian.*, a kernel object or a callable, got 'g'"),
        (lambda X: as_kernel(3), "kernel: expected one of .* got 3"),
        (
            lambda X: Gaussian().set_params(gamma=1.0),
            r"Gaussian has no parameter 'gamma'; it has \['length_scale', 'unit'\]",
        ),
        (lambda X: Kernel(), "abstract method"),
    ],
)
def test_error_messages(ask, message, X):
    with pytest.raises((ValueError, TypeError), match=message):
        ask(X)
