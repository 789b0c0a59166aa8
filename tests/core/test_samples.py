import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples, with_indicators
from fewkern.kernels import Gaussian, Precomputed

WEIGHTS = np.array([1.0, 0, 2, 1, 0, 1])


def test_rows_of_weight_zero_are_absent():
    X, kept = np.arange(12.0).reshape(6, 2), [0, 2, 3, 5]
    codes = np.array([0, 1, 0, 1, 1, 1])
    samples = Samples.of(X, WEIGHTS, codes=codes, n_classes=2, targets=2 * X, groups=codes)
    for name, whole in (("X", X), ("weights", WEIGHTS), ("codes", codes), ("targets", 2 * X), ("groups", codes)):
        np.testing.assert_array_equal(getattr(samples, name), whole[kept])
    np.testing.assert_array_equal(samples.all_rows(np.array([1, 3])), [2, 5])
    assert (samples.n, samples.n_all, samples.n_outputs, samples.weighted) == (4, 6, 2, True)
    assert Samples.of(sp.csr_array(np.eye(6)), WEIGHTS).X.shape == (4, 6)
    # a row of kernel values goes with its column
    K = np.arange(36.0).reshape(6, 6)
    np.testing.assert_array_equal(Samples.of(K, WEIGHTS, pairwise=True).X, K[np.ix_(kept, kept)])


def test_no_weights_are_ones_and_weights_that_differ_anywhere_count():
    X = np.zeros((3, 1), dtype=np.float32)
    assert Samples.of(X).weights.dtype == np.float32
    given = ([1.0, 1.0, 1.0], False), ([2.0, 2.0, 2.0], False), ([2.0, 2.0, 3.0], True), ([2.0, 0.0, 2.0], True)
    for weights, differ in given:
        assert Samples.of(X, np.array(weights)).weighted is differ
    assert not Samples.of(X).weighted
    assert Samples.of(X).n_outputs == 0


def test_original_numbers_of_an_expansion():
    samples = Samples.of(np.arange(6.0)[:, None], WEIGHTS)
    one = KernelExpansion(Gaussian(1.0), samples.X[[1]], np.ones((1, 1)), np.zeros(1), np.array([1]))
    np.testing.assert_array_equal(samples.original(one).indices, [2])
    np.testing.assert_array_equal(samples.original(one).vectors, [[2.0]])
    assert Samples.of(np.zeros((6, 1))).original(one) is one
    pairwise = Samples.of(np.eye(6), WEIGHTS, pairwise=True)
    one = KernelExpansion(Precomputed(), np.array([[1]]), np.ones((1, 1)), np.zeros(1), np.array([1]))
    np.testing.assert_array_equal(pairwise.original(one).vectors, [[2]])


def test_folds_hold_every_sample_out_once_and_know_no_absent_row():
    codes = np.arange(20) % 2
    weights = np.ones(20)
    weights[[0, 7]] = 0
    samples = Samples.of(np.zeros((20, 1)), weights, codes=codes, n_classes=2)
    for cv in (3, KFold(4)):
        folds = samples.folds(cv)
        assert sorted(i for _, test in folds for i in test) == list(range(18))
        assert all(sorted([*train, *test]) == list(range(18)) for train, test in folds)


@pytest.mark.parametrize(("sizes", "count"), [([5, 2], 2), ([5, 1], 0)])
def test_no_more_folds_than_the_smallest_class_has_samples(sizes, count):
    codes = np.repeat([0, 1], sizes)
    assert len(Samples.of(np.zeros((len(codes), 1)), codes=codes, n_classes=2).folds(5)) == count


@pytest.mark.parametrize("seed", range(20))
def test_folds_of_classes_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.repeat(np.arange(3), 5), rng.integers(0, 3, rng.integers(1, 60))])
    rng.shuffle(codes)
    found = Samples.of(np.zeros((len(codes), 1)), codes=codes, n_classes=3).folds(5)
    for (train, test), (own_train, own_test) in zip(found, StratifiedKFold(5).split(codes, codes), strict=True):
        assert list(train) == own_train.tolist()
        assert list(test) == own_test.tolist()


def test_folds_without_classes_are_dealt_in_turn():
    folds = Samples.of(np.zeros((5, 1))).folds(2)
    assert [list(test) for _, test in folds] == [[0, 2, 4], [1, 3]]
    assert Samples.of(np.zeros((3, 1))).folds(5) == []


@pytest.mark.parametrize(("sizes", "counts"), [([997, 3], [100, 2]), ([600, 300, 100], [60, 30, 10])])
def test_some_keep_the_shares_of_classes_and_two_of_a_rare_one(sizes, counts, rng):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    some = Samples.of(np.zeros((1000, 1)), codes=codes, n_classes=len(sizes)).some(100, rng)
    assert np.bincount(some.codes).tolist() == counts
    assert len(set(some.rows.tolist())) == sum(counts)


def test_a_splitter_sees_the_classes_of_all_rows():
    class Asks:
        def split(self, X, y=None, groups=None):
            self.y = list(y)
            yield [0, 1, 2, 3], [4, 5]

        def get_n_splits(self, X=None, y=None, groups=None):
            return 1

    asks = Asks()
    samples = Samples.of(np.zeros((6, 1)), WEIGHTS, codes=np.array([1, 1, 0, 1, 1, 0]), n_classes=2)
    # rows 1 and 4 are absent: they count as the first class, and are in no fold
    assert samples.folds(asks) == [([0, 1, 2], [3])]
    assert asks.y == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("classes", [False, True])
def test_folds_never_split_a_group(rng, classes, seed):
    groups = rng.integers(0, 12, 60)
    labels = {"codes": np.arange(60) % 2, "n_classes": 2} if classes else {}
    samples = Samples.of(np.zeros((60, 1)), groups=groups, **labels)
    folds, parts = samples.folds(4, seed), samples.deal(4, 0)
    assert [len(set(parts[groups == g])) for g in set(groups)] == [1] * len(set(groups))
    assert len(folds) == 4
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    assert sorted(row for _, test in folds for row in test) == list(range(60))


def test_indicators_are_one_column_per_class_and_ones_without_classes():
    X, codes = np.zeros((3, 1)), np.array([0, 2, 1])
    np.testing.assert_array_equal(with_indicators(Samples.of(X)).targets, np.ones((3, 1)))
    np.testing.assert_array_equal(with_indicators(Samples.of(X, codes=codes, n_classes=3)).targets, np.eye(3)[codes])
