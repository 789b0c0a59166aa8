"""What surrounds a fit: callbacks of scikit-learn 1.9, words about what runs, a clean end when it is interrupted."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern
from fewkern import FeatureVectorDiscriminant, FeatureVectorSelector, RecursiveSVM, SparseKernelFisher
from fewkern.datasets import make_banana
from tests.checks.everyone import ALL, assert_same_outputs, every, fresh, use

X, Y = make_banana(60)
# Estimators whose fit has no loop that could take long.
AT_ONCE = {"GraphEmbedding"}


class Tasks:
    """A callback that writes down which tasks began and ended; it goes to estimators inside of others."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", context.estimator_name, None))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.estimator_name, context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.estimator_name, context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.estimator_name, None))

    def of(self, event, name):
        return [task for what, who, task in self.events if (what, who) == (event, name)]


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


@every(ALL)
def test_a_fit_is_a_task_and_its_loops_are_subtasks(callbacks, model):
    seen, name = Tasks(), type(model).__name__
    followed = fresh(model).set_callbacks(seen).fit(X, Y)
    assert seen.events[:2] == [("setup", name, None), ("begin", name, "fit")]
    assert seen.events[-2:] == [("end", name, "fit"), ("teardown", name, None)]
    begun, ended = (sorted(seen.of(event, name)) for event in ("begin", "end"))
    assert begun == ended
    assert (len(begun) > 2) == (name not in AT_ONCE)
    assert not hasattr(followed, "_callback_fit_ctx")
    assert_same_outputs(fresh(model).fit(X, Y), followed, X)


def test_every_thing_done_is_a_task_of_its_own(callbacks):
    seen = Tasks()
    model = FeatureVectorSelector(kernel="linear", max_vectors=50).set_callbacks(seen).fit(X)
    assert model.n_vectors_ == 2
    for event in ("begin", "end"):
        assert seen.of(event, "FeatureVectorSelector").count("choosing vectors") == 1 + model.n_vectors_


def test_verbose_beside_callbacks_writes_lines_also_on_a_terminal(callbacks, capsys, monkeypatch):
    """Two bars would disturb each other."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    RecursiveSVM(n_components=1, verbose=True).set_callbacks(Tasks()).fit(X, Y)
    assert capsys.readouterr().err.startswith("RecursiveSVM: finding directions: 1 of 1,")


def test_a_monitor_scores_the_fitted_model(callbacks):
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    weights = np.where(Y == 0, 3.0, 1.0)
    model = FeatureVectorDiscriminant(max_vectors=5).set_callbacks(monitor).fit(X, Y, weights)
    (row,) = monitor.get_logs().data
    assert row["accuracy"] == pytest.approx(model.score(X, Y, weights))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_bar_of_a_grid_search_reaches_the_model(callbacks, capsys, jobs):
    pytest.importorskip("rich")
    steps = make_pipeline(StandardScaler(), FeatureVectorDiscriminant())
    search = GridSearchCV(steps, {"featurevectordiscriminant__max_vectors": [3, 5]}, cv=2, n_jobs=jobs)
    search.set_callbacks(callbacks.ProgressBar(max_propagation_depth=None)).fit(X, Y)
    drawn = capsys.readouterr().out
    assert drawn.count("fit-final-estimator") >= 5
    assert drawn.count("comparing kernel length scales") >= 5


def test_tasks_under_a_grid_search(callbacks):
    seen = Tasks()
    search = GridSearchCV(SparseKernelFisher(cv=2), {"max_vectors": [3, 5]}, cv=2).set_callbacks(seen)
    search.fit(X, Y)
    assert seen.of("begin", "SparseKernelFisher").count("fit") == 5
    assert seen.of("setup", "SparseKernelFisher") == []  # that of the search has set them up


def test_callbacks_are_no_part_of_a_model_file(callbacks, tmp_path):
    model = FeatureVectorSelector(max_vectors=3).set_callbacks(Tasks()).fit(X)
    fewkern.save(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(fewkern.load(tmp_path / "model.npz").vectors_, model.vectors_)


def test_callbacks_are_torn_down_when_a_fit_fails(callbacks):
    seen = Tasks()
    model = FeatureVectorDiscriminant(max_vectors=5).set_callbacks(seen)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(len(X)))
    assert seen.events[-1] == ("teardown", "FeatureVectorDiscriminant", None)
    assert not hasattr(model, "_callback_fit_ctx")


@every([model for model in ALL if "verbose" in model.get_params(deep=False)])
def test_verbose_says_what_runs(model, capsys):
    fresh(model, verbose=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith(f"{type(model).__name__}: ") and line.endswith(" s, done") for line in lines)


class Interrupting:
    """A stream at whose first line somebody presses Ctrl-C."""

    def write(self, text):
        raise KeyboardInterrupt

    def flush(self):
        """Nothing to do."""

    def isatty(self):
        return False


@every([model for model in ALL if "verbose" in model.get_params(deep=False)])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(model, monkeypatch):
    fitted = fresh(model, verbose=True).fit(X, Y)
    before, said = copy.copy(vars(fitted)), use(fitted, X)
    unfitted = clone(fitted)
    monkeypatch.setattr("sys.stderr", Interrupting())
    for one in (unfitted, fitted):
        with pytest.raises(KeyboardInterrupt):
            one.fit(X[::-1] + 1.0, Y[::-1])
    assert vars(unfitted) == vars(clone(fitted))
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is before[name] for name in before)
    np.testing.assert_array_equal(use(fitted, X), said)


@every(ALL)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model):
    fitted = fresh(model).fit(X, Y)
    before = copy.copy(vars(fitted))
    with pytest.raises(ValueError):
        fitted.fit(np.full((3, 3), np.nan), [0, 1, 1])
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is before[name] for name in before)
