"""Rows whose label or value a model that was fitted without them finds hard to believe.

Vectors are samples, chosen without a look at the targets, so predictions for every row by the model without that row
are exact and cost one solve: no folds, and no second fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewkern.arrays import sampling
from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.base import check_groups, check_labelled, check_measured
from fewkern.core.samples import Samples, class_targets
from fewkern.core.scores import ClassScores
from fewkern.learn.batches import Sums
from fewkern.learn.estimators import KernelClassifier, KernelRegressor
from fewkern.learn.learner import learn_from_samples
from fewkern.learn.policy import QUICK
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate

# Numbers with at most this many different values, all of them whole, are taken for classes.
_MOST_CLASSES = 20


@dataclass(frozen=True)
class Suspects:
    """How hard every row is to believe.

    Attributes
    ----------
    rows : array of shape (n_samples,)
        Positions of all rows, the least credible first.
    scores : array of shape (n_samples,)
        Of the rows as they were given. Of a class: the probability that it is another one. Of a number: its distance
        from the prediction, over the robust standard deviation of all such distances.
    expected : array of shape (n_samples,)
        What the model without the row predicts.
    """

    rows: Any
    scores: Any
    expected: Any


def suspects(X: Any, y: Any, *, task: Literal["auto", "classify", "regress"] = "auto", groups: Any = None) -> Suspects:
    """Rank rows by how hard their label or value is to believe, given all other rows.

    Parameters
    ----------
    X : array or data frame of shape (n_samples, n_features)
        Numbers without gaps; :class:`TableEncoder` makes them of a table as it comes.
    y : array of shape (n_samples,)
        Labels or numbers.
    task : {"auto", "classify", "regress"}, default "auto"
        What ``y`` holds. "auto" takes numbers with a fraction, or more than 20 different ones, as numbers.
    groups : array of shape (n_samples,) or None, default None
        Labels, equal for rows that belong together: a row is then predicted without all rows of its group. Without
        them, a copy of a row confirms its label.

    Returns
    -------
    Suspects
        Scores of all rows, and their order.

    See Also
    --------
    KernelClassifier : A model of the rows that are left.

    Notes
    -----
    A model of 200 vectors, which are samples, and linear features. What it predicts for a row that it has not seen is
    exact, by the leverage of the row; length scale and ridge are those of least leave-one-out error. Cost: ``n m^2``
    flops with ``m`` vectors and features; more than 20,000 rows are looked at in parts, each by itself.

    The score ranks rows and condemns none: a rare but true row is hard to believe, too. Errors that follow a rule, such
    as those of one annotator, look like the truth.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from fewkern import suspects
    >>> X, y = make_moons(300, noise=0.15, random_state=0)
    >>> y[:4] = 1 - y[:4]  # wrong labels
    >>> sorted(suspects(X, y).rows[:4].tolist())
    [0, 1, 2, 3]
    """
    if task not in ("auto", "classify", "regress"):
        raise ValueError(f"suspects: task must be 'auto', 'classify' or 'regress', got {task!r}.")
    if is_sparse(X):
        raise TypeError("suspects: X is sparse; pass X.toarray(), or the leading components of TruncatedSVD.")
    if _is_measured(y) if task == "auto" else task == "regress":
        checker = _checker(KernelRegressor)
        samples, single = check_measured(checker, X, y, None)
        if not single:
            raise ValueError(f"suspects: y must be one column, got shape {np.shape(y)}; call it for every column.")
        held_out = leave_out(check_groups(checker, samples, groups).on_host())
        return _of_numbers(held_out)
    checker = _checker(KernelClassifier)
    samples = class_targets(check_groups(checker, check_labelled(checker, X, y, None), groups).on_host())
    return _of_classes(leave_out(samples), to_numpy(checker.classes_))


@one_thread()
def leave_out(samples: Samples) -> HeldOut:
    """Predictions for every row by the model without it, or without all rows of its group."""
    assert samples.targets is not None
    values = np.empty(samples.targets.shape)
    for part in _parts(samples):
        values[part] = learn_from_samples(samples.take(part), QUICK)[1]
    return HeldOut(values, samples)


@one_thread()
def hold_out(samples: Samples, held: Any) -> Any:
    """Predictions for the rows ``held`` (a mask) by a model of the others."""
    rest = samples.take(np.flatnonzero(~held))
    found, _ = learn_from_samples(rest, QUICK)
    return Sums.of(found.basis, found.ridge, rest).expansion()(samples.X[held])


def _parts(samples: Samples) -> list[Any]:
    """Positions of all rows, at random in parts that bound the memory; a group lies in one of them."""
    units = np.arange(samples.n) if samples.groups is None else np.unique(samples.groups, return_inverse=True)[1]
    count = -(-samples.n // sampling.SAMPLE_ROWS)
    part = np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % count
    return [np.flatnonzero(part == k) for k in range(count) if (part == k).any()]


def _is_measured(y: Any) -> bool:
    values = to_numpy(y)
    if values.dtype.kind not in "iuf":
        return False
    known = np.unique(values[np.isfinite(values)])
    return len(known) > _MOST_CLASSES or bool(np.any(known % 1))


def _checker(kind: Any) -> Any:
    """An estimator that checks the input, and names this function in its messages."""
    return type("suspects", (kind,), {"__module__": __name__})()


def _of_numbers(held_out: HeldOut) -> Suspects:
    values = to_numpy(held_out.values)[:, 0].astype(np.float64)
    away = np.abs(to_numpy(held_out.samples.targets)[:, 0] - values)
    # of normal errors, 1.4826 times the median absolute deviation is the standard deviation
    spread = 1.4826 * float(np.median(away)) or float(away.max()) or 1.0
    return _ranked(away / spread, values)


def _of_classes(held_out: HeldOut, classes: Any) -> Suspects:
    scores = calibrate(ClassScores(), held_out)
    codes = to_numpy(held_out.samples.codes)
    probabilities = to_numpy(scores.probabilities(held_out.values))
    own = probabilities[np.arange(len(codes)), codes]
    return _ranked(1.0 - own, classes[to_numpy(scores.codes(held_out.values))])


def _ranked(scores: Any, expected: Any) -> Suspects:
    return Suspects(np.argsort(-scores, kind="stable"), scores, expected)
