"""What surrounds a fit: callbacks of scikit-learn 1.9, words about what runs, a clean end when it is interrupted."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import fewkern
from fewkern import FeatureVectorDiscriminant, RecursiveSVM, SparseKernelFisher
from fewkern.datasets import make_banana
from tests.checks.everyone import ALL, assert_same_outputs, every, fresh

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
        return sorted(task for what, who, task in self.events if (what, who) == (event, name))


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


@every(ALL)
def test_a_fit_is_a_task_and_its_loops_are_subtasks(callbacks, model):
    seen, name = Tasks(), type(model).__name__
    followed = fresh(model).set_callbacks(seen).fit(X, Y)
    assert seen.events[:2] == [("setup", name, None), ("begin", name, "fit")]
    assert seen.events[-2:] == [("end", name, "fit"), ("teardown", name, None)]
    begun, ended = seen.of("begin", name), seen.of("end", name)
    assert begun == ended
    assert (len(begun) > 2) == (name not in AT_ONCE)
    assert not hasattr(followed, "_callback_fit_ctx")
    assert_same_outputs(fresh(model).fit(X, Y), followed, X)


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


def test_tasks_under_a_grid_search(callbacks):
    seen = Tasks()
    search = GridSearchCV(SparseKernelFisher(cv=2), {"max_vectors": [3, 5]}, cv=2).set_callbacks(seen)
    search.fit(X, Y)
    assert seen.of("begin", "SparseKernelFisher").count("fit") == 5
    assert seen.of("setup", "SparseKernelFisher") == []  # that of the search has set them up


def test_callbacks_are_no_part_of_a_model_file_and_torn_down_when_a_fit_fails(callbacks, tmp_path):
    seen = Tasks()
    model = FeatureVectorDiscriminant(max_vectors=5).set_callbacks(seen).fit(X, Y)
    np.testing.assert_array_equal(fewkern.load(fewkern.save(model, tmp_path / "model")).predict(X), model.predict(X))
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


def assert_as_it_was(model, before):
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


@every([model for model in ALL if "verbose" in model.get_params(deep=False)])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(model, monkeypatch):
    """Ctrl-C at the first line on stderr."""
    fitted = fresh(model, verbose=True).fit(X, Y)
    unfitted = clone(fitted)

    def interrupt(text):
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stderr.write", interrupt)
    for one in (unfitted, fitted):
        before = copy.copy(vars(one))
        with pytest.raises(KeyboardInterrupt):
            one.fit(X[::-1] + 1.0, Y[::-1])
        assert_as_it_was(one, before)


@every(ALL)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model):
    fitted = fresh(model).fit(X, Y)
    before = copy.copy(vars(fitted))
    with pytest.raises(ValueError):
        fitted.fit(np.full((3, 3), np.inf), [0, 1, 1])
    assert_as_it_was(fitted, before)
