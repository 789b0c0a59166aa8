import numpy as np
import pytest
import scipy.stats

from fewkern import datasets

GENERATORS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("make_")]


def _table(made):
    """Samples alone (of a density), or samples and targets, as one matrix."""
    return np.column_stack(made) if isinstance(made, tuple) else made


@pytest.mark.parametrize("make", GENERATORS, ids=lambda f: f.__name__)
def test_generators_follow_their_seed(make):
    one, again, other = (_table(make(101, random_state=seed)) for seed in (1, 1, 2))
    assert len(one) == 101
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_two_gaussians_are_those_of_the_paper():
    X, y = datasets.make_two_gaussians(40_000)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), [-1, 0], atol=0.03)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), [1, 0], atol=0.03)
    np.testing.assert_allclose(X[y == 0].var(axis=0), [1, 1], atol=0.04)
    np.testing.assert_allclose(X[y == 1].var(axis=0), [1, 0.1], atol=0.04)
    likelihood = [
        scipy.stats.multivariate_normal(mean, np.diag(variance)).logpdf(X)
        for mean, variance in (([-1, 0], [1, 1]), ([1, 0], [1, 0.1]))
    ]
    assert 100 * np.mean((likelihood[1] > likelihood[0]) == y) == pytest.approx(88.84, abs=0.4)


def test_sinc_without_noise():
    x, y = datasets.make_sinc(7, noise=0.0)
    np.testing.assert_allclose(x[:, 0], [-3, -2, -1, 0, 1, 2, 3])
    np.testing.assert_allclose(y, [0, 0, 0, 1, 0, 0, 0], atol=1e-15)


def test_rings_lie_on_their_radii():
    X, y = datasets.make_rings(90, radii=(1.0, 2.0, 3.0))
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), y + 1.0)
    assert np.bincount(y).tolist() == [30, 30, 30]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    return tmp_path


def test_local_sets(folder):
    (folder / "ida").mkdir()
    arrays = {"X": np.eye(3, dtype=np.float32), "y": np.array([1, -1, 1], dtype=np.int8)}
    splits = {"train_idx": [[0, 1]], "test_idx": [[2]], "split_no": [1]}
    np.savez(folder / "ida" / "banana.npz", **arrays, **splits)
    data = datasets.fetch_ida("banana")
    assert data.X.dtype == float
    assert data.y.tolist() == [1, -1, 1]
    assert data.train_idx.tolist() == [[0, 1]]


def test_sets_that_are_not_here(folder, monkeypatch):
    for call in (datasets.fetch_ida, datasets.fetch_large):
        with pytest.raises(ValueError, match=r"expected one of \[.*\], got 'iris'"):
            call("iris")
    with pytest.raises(datasets.DataNotFoundError, match=r"heart is not on this machine: .* FEWKERN_DATA"):
        datasets.fetch_ida("heart")
    with pytest.raises(datasets.DataNotFoundError, match=rf"it is now {folder}, which has no file ida/heart.npz"):
        datasets.fetch_ida("heart")
    monkeypatch.setenv("FEWKERN_DATA", "~/nowhere")
    with pytest.raises(datasets.DataNotFoundError, match="it is now ~/nowhere, which is no folder"):
        datasets.fetch_ida("heart")
    monkeypatch.delenv("FEWKERN_DATA")
    with pytest.raises(
        datasets.DataNotFoundError, match=r"adult is not on this machine: .* FEWKERN_DATA .it is not set"
    ):
        datasets.fetch_large("adult")


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.eye(3)},
        {"X": np.eye(3), "y": np.zeros(2)},
        {"X": np.array([["a"], ["b"]]), "y": np.zeros(2)},
        {},
    ],
    ids=["no y", "other lengths", "text", "nothing"],
)
def test_a_file_with_other_arrays(folder, arrays):
    (folder / "uci").mkdir()
    np.savez(folder / "uci" / "sonar.npz", **arrays)
    message = r"fetch_uci: expected numbers X, as many y, .* in .*sonar.npz, got .*; delete it to have it downloaded"
    with pytest.raises(datasets.DataNotFoundError, match=message):
        datasets.fetch_uci("sonar")
