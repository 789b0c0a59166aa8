"""How good a reduction or a density is, and what its components or columns look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import scale

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.density.mixture import KernelMixture
from fewkern.plotting.density import mixture_in_units
from fewkern.reporting.comparison import normal_log_density
from fewkern.reporting.evaluation import ReportSettings, relation, try_out
from fewkern.reporting.formatting import number, percent, plural
from fewkern.reporting.judgement import EACH_ROW, judge_density
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# Neighbors whose mean is the way back from components to columns.
_WAY_BACK_NEIGHBORS = 10
_MOST_ROWS = 3000
_MOST_COMPONENTS = 4
_MOST_WORST = 10


@dataclass(frozen=True)
class Reduction:
    """How much of the table can be recovered from a few components."""

    how: str
    """How the rows of the trial relate to the model, as in :class:`~fewkern.reporting.evaluation.Predictions`."""
    total: int
    """Number of components."""
    carried: tuple[tuple[str, float], ...]
    """Share of the differences between rows that can be recovered: this model, linear components."""
    columns: tuple[str, ...]
    correlations: Array
    """Correlations of columns (features, where a column becomes several) with components, shape ``(d, k)``."""
    weights: Array | None
    """Weights of the features in the components of a linear map, shape ``(d, k)``."""
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
    if not T.shape[1]:
        raise ValueError("report: the model has no component, so there is nothing to report.")
    plain = PCA(min(T.shape[1], *X[train].shape)).fit(X[train]).transform(X)
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
    return Reduction(
        how, own.shape[1], carried, tuple(subject.fitted.labels),
        X.T @ scale(shown) / len(X),
        None if weights is None else to_numpy(weights).astype(float)[:_MOST_COMPONENTS].T, worst,
        _reduction_sentences(own.shape[1], X.shape[1], carried),
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
    return np.asarray(KNeighborsRegressor(min(_WAY_BACK_NEIGHBORS, len(T))).fit(T, X).predict(new))


def _reduction_sentences(k: int, d: int, carried: Any) -> tuple[str, ...]:
    own, plain = (percent(max(share, 0.0), 0) for _, share in carried)
    them, linear = ("it", "One linear component") if k == 1 else ("them", "As many linear components")
    instead = f"{plural(k, 'component')} in place of {plural(d, 'feature')}"
    return (
        f"{instead}: {own} of the variance can be recovered from {them}.",
        f"{linear} (PCA) would give {plain}.",
    )


@dataclass(frozen=True)
class DensityShape:
    """A density, in the units of the table where that is possible."""

    how: str
    """How the rows relate to the model, as in :class:`Reduction`."""
    mixture: KernelMixture
    columns: tuple[str, ...]
    """One per column of the mixture."""
    samples: Array
    """Some rows, in the same units."""
    times: tuple[float, float, float]
    """How many times as probable rows are as under one normal distribution, on (geometric) average; its 95% interval.

    The rows were held out.
    """
    lowest: tuple[tuple[int, float], ...]
    """Rows of least density: position, and log density."""
    sentences: tuple[str, ...]


def density_shape(subject: Subject, settings: ReportSettings) -> DensityShape:
    """Evaluate a density on rows that it was not fitted to, compared with one normal distribution."""
    complete: Array = np.asarray(np.isfinite(subject.samples).all(axis=1))
    model, train, test, how = try_out(subject, settings)
    test = test[complete[test]]
    learn = train[complete[train]] if len(train) else test
    X = model.samples
    own = to_numpy(model.core.expansion_.log_density(X[test]))
    normal = normal_log_density(X[learn], X[test])
    gaps, verdict = own - normal, judge_density(own, normal).verdict
    mean, low, high = np.exp(np.minimum((gaps.mean(), *EACH_ROW.interval(gaps)), 500.0)).tolist()
    mixture = mixture_in_units(subject.core.expansion_.like(np.empty(0)), subject.fitted)
    samples = subject.fitted.given_units(subject.samples)
    log_density = mixture.log_density(samples)
    order = np.argsort(np.where(complete, log_density, np.inf), kind="stable")[:_MOST_WORST]
    lowest = tuple((int(i), float(log_density[i])) for i in order)
    some = np.flatnonzero(complete)[:: max(1, int(complete.sum()) // _MOST_ROWS)]
    rows, interval = f"the {plural(len(test), 'row')} {relation(how)}", f"(95% CI {number(low)} to {number(high)})"
    sentences = (
        f"On average, {rows} are {number(mean)} times as probable as under a single normal distribution {interval}.",
        f"The density, a mixture of {plural(mixture.n_vectors, 'kernel')}, is {verdict}.",
    )
    return DensityShape(how, mixture, tuple(subject.fitted.labels), samples[some], (mean, low, high), lowest, sentences)
