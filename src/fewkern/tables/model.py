"""The estimator of whole tables, and the files in other languages that it writes."""

from __future__ import annotations

import copy
import inspect
import os
import time
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.storable import storable
from fewkern.arrays.validation import Interval, StrOptions, fit_context
from fewkern.base import CONSTRAINTS, path_of
from fewkern.compression import compress
from fewkern.core.expansion import Prepared
from fewkern.core.path import TOLERANCE
from fewkern.io import save, to_c, to_js, to_onnx, to_sql
from fewkern.reporting import Report, ReportSettings, report
from fewkern.tables import TASKS
from fewkern.tables.encoder import named, of_tables, prepared
from fewkern.tables.facts import short_facts, summary
from fewkern.tables.fitting import facts_of, fit_job, fit_parts
from fewkern.tables.parts import as_parts
from fewkern.tables.predicting import Predicting, check_loaded, if_model_has, known_targets
from fewkern.tables.reading import as_column, as_frame, listed
from fewkern.tables.resolve import Request, resolve, weight_values

# Settings of the estimator, and the values that leave them to it.
_SETTINGS = {"prefer": "balanced", "n_vectors": None, "max_vectors": None, "class_weight": None, "n_components": "auto"}
# suffix of a file -> what writes it
_WRITERS: dict[str, Callable[..., Any]]
_WRITERS = {".onnx": to_onnx, ".c": to_c, ".ino": to_c, ".js": to_js, ".mjs": to_js, ".sql": to_sql}
SUFFIXES = tuple(_WRITERS)


@storable(check=check_loaded)
class TableModel(Predicting, BaseEstimator):
    """A model of a raw table: numbers, categories, dates, missing values, and columns that should not be used.

    ``fit(frame, "column")`` decides what every column is (``encoder_``), measures the error on rows that it holds out,
    fits to all rows, and says what it did in sentences (``notes_``, ``summary()``). ``predict`` and the other methods
    take tables with the same columns, in any order, and with any others.

    Parameters
    ----------
    task : {"auto", "classify", "regress", "reduce", "density"}, default "auto"
        "auto" takes text, truth values and at most 20 different whole numbers as classes, and other numbers as numbers.
    model : str, default "auto"
        The model of the task, "auto" is the first: "kernel", "discriminant", "fisher", "forward-fisher" (classify);
        "kernel", "fvs" (regress); "pca", "embedding", "margins", "soft-margins" (reduce; all but the first look at the
        target); "forward", "parzen", "reduced", "orthogonal" (density).
    prefer : {"balanced", "accurate", "sparse"}, default "balanced"
        The size of the model, see :class:`KernelRegressor`; "accurate" is for the other models that have the choice.
    n_vectors : int or None, default None
        Number of vectors to keep; None lets the model decide.
    max_vectors : int or None, default None
        Largest number of vectors to keep; None: as the model of the task does by default.
    class_weight : dict, "balanced" or None, default None
        How much the rows of every class count, in the fit and in its error; "balanced": every class the same.
    n_components : int or "auto", default "auto"
        Of the task "reduce"; "auto" is 2.
    holdout : float, default 0.2
        Share of the rows that are held out to measure the error; 0 measures none.
    drop : sequence of str, default ()
        Columns to leave out.
    keep : sequence of str, default ()
        Columns to use although they look like an index, a key or names.
    merge_spellings : bool, default False
        Take classes and categories that differ in case, spaces or hyphens as one, and ``Y``, ``yes``, ``true`` too.
    random_state : int or RandomState, default 0
    verbose : bool or int, default False
        Say on stderr what is being fitted, with a progress bar on a terminal.

    Attributes
    ----------
    task_, target_, model_ : str
        What was resolved; ``target_`` is None without one, a tuple of several names.
    encoder_ : TableEncoder
        How rows become features.
    estimator_ : estimator
        The fitted model of these features.
    notes_ : tuple of str
        What was guessed, left out or replaced.
    held_out_ : HeldOutRows or None
        Positions, true and predicted targets (and probabilities) of the rows that were held out.
    judgement_ : Judgement or None
        The error on these rows with a 95% interval, and the errors of simple baselines.
    facts_ : FitFacts
    classes_ : array
        Of a classifier.

    Notes
    -----
    The error is that of a model that did not see the rows it is measured on; the model that is kept is then fitted to
    all rows. From 20,000 rows on, the model that was measured is kept. What the columns are (number, category, index,
    ...) is decided once, on all rows; medians, categories and scales come from the fitted rows only.

    A Dask data frame stays where it is. Up to 20,000 rows it is fitted as if it were in memory. Of a larger one 25,000
    rows are drawn by their numbers (with ``holdout=0.2``): what columns and target are, medians, categories and scales
    come from them, and a fifth of them is held out. All other rows are fitted, with the coefficients from sums over all
    of them, and the model is the same for any partitions. A category that no drawn row has counts as unknown. Models
    that need their rows in memory are fitted to the rows that were drawn, and ``notes_`` says so. Predictions of a Dask
    data frame are Dask series and data frames, without warnings.

    A density never sees a value in place of a missing one: incomplete rows are left out, and have no log density.

    The vectors that a model keeps are rows of the table, unless they were moved; the rows by which novelty is measured,
    where it is, are rows of the table in any case. A saved, exported or printed model contains them. Where rows are
    about people, treat it as you treat the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern import TableModel
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(300, random_state=0)
    >>> table = pd.DataFrame({"width": X[:, 0], "height": X[:, 1], "kind": ["left" if t else "right" for t in y == 1]})
    >>> model = TableModel().fit(table, "kind")
    >>> model.task_, model.held_out_.truth.shape, model.predict(table.head(2)).shape
    ('classify', (60,), (2,))
    >>> model.judgement_.verdict
    "better than always answering 'left'; the difference to a linear model may be chance"
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "task": [StrOptions({"auto", *TASKS})],
        "model": [str],
        "prefer": [StrOptions(set(TOLERANCE))],
        "n_vectors": CONSTRAINTS["max_vectors"],
        "max_vectors": CONSTRAINTS["max_vectors"],
        "class_weight": CONSTRAINTS["class_weight"],
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "holdout": [Interval(Real, 0, 1, closed="left")],
        "drop": ["array-like", str],
        "keep": ["array-like", str],
        "merge_spellings": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        task: str = "auto",
        model: str = "auto",
        prefer: str = "balanced",
        n_vectors: int | None = None,
        max_vectors: int | None = None,
        class_weight: Any = None,
        n_components: Any = "auto",
        holdout: float = 0.2,
        drop: Any = (),
        keep: Any = (),
        merge_spellings: bool = False,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.task = task
        self.model = model
        self.prefer = prefer
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.class_weight = class_weight
        self.n_components = n_components
        self.holdout = holdout
        self.drop = drop
        self.keep = keep
        self.merge_spellings = merge_spellings
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, frame: Any, target: Any = None, *, sample_weight: Any = None, groups: Any = None) -> TableModel:
        """Fit to the rows of a table.

        Parameters
        ----------
        frame : data frame of pandas, polars or Dask, dict of columns, or array
        target : str, list of str, array of shape (n_rows,) or (n_rows, n_targets), or None, default None
            The column to predict, or the targets themselves (of a Dask data frame, the name of a column). Several
            columns must hold numbers. None: the last column (classify, regress), or no target (reduce, density).
        sample_weight : str, array of shape (n_rows,) or None, default None
            How much every row counts, in the fit and in its error: a column, which is then no feature, or numbers.
        groups : str, array of shape (n_rows,) or None, default None
            Which rows belong together, such as the visits of one patient: a column, which is then no feature, or
            labels. Whole groups are held out, by the fit too, so that the error is that of groups not seen before.

        Returns
        -------
        self
        """
        start = time.perf_counter()
        settings = {name: getattr(self, name) for name, own in _SETTINGS.items() if getattr(self, name) != own}
        request = Request(
            task=self.task, model=self.model, holdout=self.holdout, drop=named(self.drop), keep=named(self.keep),
            random_state=self.random_state, verbose=bool(self.verbose), settings=settings, groups=groups,
            weights=sample_weight, merge_spellings=self.merge_spellings,
        )  # fmt: skip
        parts = as_parts(frame, "TableModel", request.verbose)
        if parts is not None:
            job, found = fit_parts(parts, target, request)
        else:
            job = resolve(as_frame(frame, "TableModel"), target, request)
            found = fit_job(job)
        self.task_, self.model_, self.target_ = job.task, job.model, job.target
        self.encoder_, self.estimator_, self.notes_ = found.encoder, found.estimator, found.notes
        self.held_out_, self.judgement_ = found.held_out, found.judgement
        self.n_features_in_, self.feature_names_in_ = self.encoder_.n_features_in_, self.encoder_.feature_names_in_
        self.facts_ = facts_of(found, job, time.perf_counter() - start)
        return self

    @property
    def expansion_(self) -> Any:
        """The fitted function of the features."""
        return self.estimator_.expansion_

    def summary(self) -> list[tuple[str, str]]:
        """How good and how small the model is, as pairs of a name and a text."""
        check_is_fitted(self)
        return summary(self)

    def prepared(self) -> Prepared:
        """The estimator, and what happens to a row before the estimator sees it, for export."""
        check_is_fitted(self)
        return prepared(self.encoder_, self.estimator_, fill=self.task_ != "density")

    def compress(
        self,
        frame: Any,
        *,
        X_new: Any = None,
        n_vectors: int | None = None,
        tolerance: float = 0.02,
        verbose: Any = False,
        random_state: Any = 0,
    ) -> TableModel:
        """A copy with a short estimator that does what this one does on the rows of a table; see :func:`compress`."""
        start = time.perf_counter()
        X = self._encode(frame).values
        given: dict[str, Any] = {"X_new": None if X_new is None else self._encode(X_new).values}
        given |= {"n_vectors": n_vectors, "tolerance": tolerance, "verbose": verbose, "random_state": random_state}
        short = copy.copy(self)
        short.estimator_ = compress(self.estimator_, X, **given)
        # what was measured belongs to the long model
        short.held_out_, short.judgement_ = None, None
        short.facts_ = short_facts(self.facts_, short.estimator_, len(X), time.perf_counter() - start)
        return short

    @if_model_has("forget")
    def forget(self, frame: Any, y: Any = None, *, sample_weight: Any = None) -> TableModel:
        """Remove rows that the model was fitted to; see :meth:`KernelRegressor.forget`.

        Parameters
        ----------
        frame : table
            The rows as they were when the model was fitted. Rows without a target are ignored, as they were by the fit.
        y : array or None, default None
            Their targets; None takes them from the columns ``target_`` of the table.
        sample_weight : str, array of shape (n_rows,) or None, default None
            The weights that they had: a column, or numbers.

        Returns
        -------
        self

        Notes
        -----
        ``encoder_`` (medians, scales, categories) does not change, nor does what the estimator cannot unlearn.
        ``held_out_`` and the targets in :meth:`kept` are removed, since they may be those of the rows; ``judgement_``
        stays, and is about the model before. Rows that were held out from a table of 20,000 rows or more were not
        fitted, and must not be given.
        """
        encoded, frame = self._encode(frame), self.encoder_.frame(frame)
        truth = self.truth(frame, y)
        given = np.ones(len(frame)) if sample_weight is None else sample_weight
        column = frame[given] if isinstance(given, str) else as_column(given, len(frame), "sample_weight")
        weights = np.nan_to_num(weight_values(given if isinstance(given, str) else "sample_weight", column))
        rows = known_targets(truth, np.arange(len(frame)))[1]
        rows = rows[weights[rows] > 0]
        known = self.classes_.dtype if self.task_ == "classify" else float
        self.estimator_.forget(encoded.values[rows], truth[rows].astype(known), sample_weight=weights[rows])
        self.held_out_ = None
        left = self.facts_.rows - len(rows)
        self.facts_ = replace(self.facts_, rows=left, kept_rows=None, kept_missing=None, kept_target=None)
        return self

    def save(self, path: str | os.PathLike[str], *, keep_path: bool = True, with_sums: bool = False) -> Path:
        """Write the model to a file, which :func:`fewkern.load` reads; see :func:`fewkern.save`.

        ``keep_path=False`` leaves out ``path_``, the errors of all settings that were compared: most of what a small
        model stores. ``with_sums=True`` writes what :meth:`forget` needs after ``load``.
        """
        check_is_fitted(self)
        model = copy.copy(self)
        if not keep_path and path_of(self.estimator_) is not None:
            model.estimator_ = copy.copy(self.estimator_)
            del model.estimator_.path_
        return save(model, path, with_sums=with_sums)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        name: str | None = None,
        coverage: float | None = None,
        false_alarms: float | None = None,
    ) -> Path:
        """Write the model in the language of the suffix of ``path``.

        ``.onnx``: :func:`fewkern.to_onnx`, ``.c``: :func:`fewkern.to_c`, ``.js`` and ``.mjs``: :func:`fewkern.to_js`,
        ``.sql``: :func:`fewkern.to_sql`. These functions take a TableModel, too, and have further parameters.
        """
        options = {"dtype": dtype, "name": name, "coverage": coverage, "false_alarms": false_alarms}
        return write_code(self, Path(path), options)

    def report(
        self, frame: Any, path: str | os.PathLike[str] | None = None, *, settings: ReportSettings | None = None
    ) -> Report:
        """A page about the model and the rows of a table with the target; see :func:`fewkern.report`."""
        check_is_fitted(self)
        if len(self.targets) > 1:
            raise ValueError(
                f"report: a report is about one target, this model has {len(self.targets)} ({listed(self.targets)}); "
                "fit a model of one of them."
            )
        return report(self, self.encoder_.frame(frame), path=path, settings=settings)

    def __sklearn_tags__(self) -> Any:
        tags = of_tables(super().__sklearn_tags__())
        task = getattr(self, "task_", self.task)
        if task == "classify":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "regress":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def write_code(model: Any, path: Path, options: dict[str, Any]) -> Path:
    """Write a model in the language of the suffix of ``path``; options may be None."""
    given, suffix = {key: value for key, value in options.items() if value is not None}, path.suffix.lower()
    if suffix not in _WRITERS:
        known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise ValueError(f"{path.name}: expected a file that ends in {known}, got {suffix or 'no suffix'!r}.")
    write = _WRITERS[suffix]
    for option in given:
        if option not in inspect.signature(write).parameters:
            raise ValueError(f"{path.name}: {write.__name__} has no option {option!r}; leave it out.")
    write(model, path, **given)
    return path
