"""How good a reduction or a density is, and what its components or columns look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import scale

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.density.mixture import KernelMixture
from fewkern.plotting.density import mixture_in_units
from fewkern.reporting.comparison import normal_log_density
from fewkern.reporting.evaluation import ReportSettings, relation, try_out
from fewkern.reporting.formatting import number, percent, plural
from fewkern.reporting.judgement import EACH_ROW
from fewkern.reporting.kept import in_units
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# Neighbors whose mean is the way back from components to columns, and those that vote on a class.
_MEAN_OF, _VOTES = 10, 5
_MOST_ROWS = 3000
_MOST_COMPONENTS = 4
_MOST_WORST = 10


@dataclass(frozen=True)
class Reduction:
    """How much of the table can be recovered from a few components."""

    how: str
    """How the rows of the trial relate to the model, as in :class:`~fewkern.reporting.evaluation.Predictions`."""
    components: Array
    """Of all rows, at most the first four, shape ``(n, k)``."""
    total: int
    """Number of components."""
    carried: tuple[tuple[str, float], ...]
    """Share of the differences between rows that can be recovered: this model, linear components."""
    accuracy: tuple[tuple[str, float], ...]
    """Share of rows whose class its nearest rows name, where classes were given: on components, on all columns."""
    columns: tuple[str, ...]
    correlations: Array
    """Of columns (features, where a column becomes several) with components, shape ``(d, k)``."""
    weights: Array | None
    """Of the features in the components of a linear map, shape ``(d, k)``."""
    worst: tuple[tuple[int, float], ...]
    """Rows that are recovered worst: position and mean distance in units of spread."""
    sentences: tuple[str, ...]

    @property
    def order(self) -> list[int]:
        """Positions of the columns, those of the largest correlations first."""
        return np.argsort(-np.abs(self.correlations).max(axis=1), kind="stable").tolist()


def reduction(subject: Subject, settings: ReportSettings) -> Reduction:
    """Evaluate components by what can be recovered from them, on rows that the model was not fitted to."""
    model, train, test, how = try_out(subject, settings)
    train, test = _parts(train, test, settings.random_state)
    X = scale(subject.samples)
    T = to_numpy(model.core.expansion_(model.samples))
    k = T.shape[1]
    plain = PCA(min(k, *X[train].shape)).fit(X[train]).transform(X) if k else T
    back, other = (_recover(Z[train], X[train], Z[test]) for Z in (T, plain))
    total = float(((X[test] - X[train].mean(axis=0)) ** 2).sum())
    own_share, other_share = (
        1 - float(((X[test] - rows) ** 2).sum()) / total if total > 0 else float("nan") for rows in (back, other)
    )
    carried = (("this model", own_share), ("linear components (PCA)", other_share))
    own = to_numpy(subject.core.expansion_(subject.samples))
    shown = own[:, :_MOST_COMPONENTS]
    miss = np.sqrt(((X[test] - back) ** 2).mean(axis=1))
    worst = tuple((int(test[i]), float(miss[i])) for i in np.argsort(-miss, kind="stable")[:_MOST_WORST])
    weights = getattr(subject.core, "components_", None)
    accuracy = _accuracies(subject, T, X, train, test)
    return Reduction(
        how, shown, own.shape[1], carried, accuracy, subject.feature_names,
        X.T @ scale(shown) / len(X) if shown.shape[1] else np.zeros((X.shape[1], 0)),
        None if weights is None else to_numpy(weights).astype(float)[:_MOST_COMPONENTS].T, worst,
        _reduction_sentences(own.shape[1], X.shape[1], carried, accuracy),
    )  # fmt: skip


def _parts(train: Array, test: Array, seed: int) -> tuple[Array, Array]:
    """Rows to learn the reconstruction from, and rows to test it on; of new rows one half each."""
    rng = np.random.default_rng(seed)
    if not len(train):
        mixed = rng.permutation(test)
        train, test = np.sort(mixed[: len(mixed) // 2]), np.sort(mixed[len(mixed) // 2 :])
    train, test = (sample_rows(part, _MOST_ROWS, rng) for part in (train, test))
    return (train, test) if len(train) else (test, test)


def _recover(T: Array, X: Array, new: Array) -> Array:
    """Rows from components: the mean of the rows with the nearest components."""
    if not T.shape[1]:
        return np.broadcast_to(X.mean(axis=0), (len(new), X.shape[1]))
    return np.asarray(KNeighborsRegressor(min(_MEAN_OF, len(T))).fit(T, X).predict(new))


def _accuracies(subject: Subject, T: Array, X: Array, train: Array, test: Array) -> tuple[tuple[str, float], ...]:
    y = subject.truth
    if y is None or not T.shape[1] or len(set(y.tolist())) > max(2, len(y) // 5):
        return ()
    votes = min(_VOTES, len(train))
    return tuple(
        (name, float(KNeighborsClassifier(votes).fit(Z[train], y[train]).score(Z[test], y[test])))
        for name, Z in (("on the components", T), ("on all columns", X))
    )


def _reduction_sentences(k: int, d: int, carried: Any, accuracy: Any) -> tuple[str, ...]:
    if not k:
        return ("The model found no component.",)
    own, plain = (max(share, 0.0) for _, share in carried)
    them, linear = ("it", "One linear component") if k == 1 else ("them", "As many linear components")
    instead = f"{plural(k, 'component')} in place of {plural(d, 'feature')}"
    sentences = [
        f"{instead}: {percent(own, 0)} of the variance can be recovered from {them}.",
        f"{linear} (PCA) would give {percent(plain, 0)}.",
    ]
    if accuracy:
        (_, few), (_, full) = accuracy
        sentences.append(
            f"A nearest-neighbor classifier is right for {percent(few, 0)} of these rows on the components, and for "
            f"{percent(full, 0)} on all columns."
        )
    return tuple(sentences)


@dataclass(frozen=True)
class DensityShape:
    """A density, in the units of the table where that is possible."""

    how: str
    """As in :class:`Reduction`."""
    mixture: KernelMixture
    columns: tuple[str, ...]
    """One per column of the mixture."""
    samples: Array
    """Some rows, in the same units."""
    gain: tuple[float, float, float]
    """Mean log density of rows that were held out, less that of one normal distribution; and its 95% interval."""
    rows: int
    """Rows that the gain is the mean of."""
    lowest: tuple[tuple[int, float], ...]
    """Rows of least density: position, and log density."""
    sentences: tuple[str, ...]

    @property
    def times(self) -> float:
        """How many times as probable a row is as under one normal distribution, on (geometric) average."""
        return _times(self.gain[0])


def density_shape(subject: Subject, settings: ReportSettings) -> DensityShape:
    """Evaluate a density on rows that it was not fitted to, compared with one normal distribution."""
    complete: Array = np.asarray(np.isfinite(subject.samples).all(axis=1))
    model, train, test, how = try_out(subject, settings)
    test = test[complete[test]]
    learn = train[complete[train]] if len(train) else test
    X = model.samples
    own = to_numpy(model.core.expansion_.log_density(X[test]))
    gaps = own - normal_log_density(X[learn], X[test])
    gain = (float(gaps.mean()), *EACH_ROW.interval(gaps))
    mixture = subject.core.expansion_.like(np.empty(0))
    found = in_units(subject)
    mixture = mixture if found is None else mixture_in_units(mixture, found)
    samples = subject.samples if found is None else found.given_units(subject.samples)
    log_density = mixture.log_density(samples)
    order = np.argsort(np.where(complete, log_density, np.inf), kind="stable")[:_MOST_WORST]
    lowest = tuple((int(i), float(log_density[i])) for i in order)
    some = np.flatnonzero(complete)[:: max(1, int(complete.sum()) // _MOST_ROWS)]
    names = subject.feature_names
    if found is None:
        names = tuple(f"{name} (standardized)" for name in names)
    sentences = _density_sentences(gain, len(test), how, mixture.n_vectors)
    return DensityShape(how, mixture, names, samples[some], gain, len(test), lowest, sentences)


def _density_sentences(gain: tuple[float, float, float], n: int, how: str, kernels: int) -> tuple[str, ...]:
    mean, low, high = (number(_times(value)) for value in gain)
    chance = "; the difference may be chance" if gain[1] <= 0 <= gain[2] else ""
    rows, interval = f"the {plural(n, 'row')} {relation(how)}", f"(95% CI {low} to {high}{chance})"
    return (
        f"On average, {rows} are {mean} times as probable as under a single normal distribution {interval}.",
        f"The density is a mixture of {plural(kernels, 'kernel')}.",
    )


def _times(log_ratio: float) -> float:
    return float(np.exp(min(log_ratio, 500.0)))
