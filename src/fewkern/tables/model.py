"""One object for a table: what its columns mean, a model of it, and how far to trust it."""

from __future__ import annotations

import copy
import inspect
import os
import time
import warnings
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.partitions import is_collection
from fewkern.arrays.storable import storable
from fewkern.arrays.validation import Interval, StrOptions, fit_context
from fewkern.base import CONSTRAINTS, path_of
from fewkern.compression import compress
from fewkern.core.path import TOLERANCE
from fewkern.core.preparation import Prepared
from fewkern.io import save, to_c, to_onnx
from fewkern.reporting import Report, ReportSettings, report
from fewkern.tables.encoder import EncodedTable, TableWarning, named
from fewkern.tables.export import prepared
from fewkern.tables.fitting import fit_job
from fewkern.tables.frames import as_column, as_frame, listed, nearest
from fewkern.tables.lazy import can, predict_lazily
from fewkern.tables.resolve import Request, resolve
from fewkern.tables.streaming import fit_parts
from fewkern.tables.streams import as_parts
from fewkern.tables.summary import facts_of, short_facts, summary
from fewkern.tables.target import known_targets, target_values
from fewkern.tables.tasks import TASKS
from fewkern.tables.trial import check_parts, try_table
from fewkern.tables.vectors import vectors_frame

__all__ = ["TableModel"]


def _check(model: TableModel) -> None:
    """Raise a ValueError if the parts of a model from a file do not belong together."""
    if not any(name.endswith("_") for name in vars(model)):
        return  # not fitted
    check_parts(model)
    features = len(model.encoder_.mean_)
    if getattr(model.estimator_, "n_features_in_", None) != features:
        raise ValueError(f"TableModel: the estimator was not fitted with the {features} features of the encoder.")
    if model.task_ not in TASKS:
        raise ValueError(f"TableModel: there is no task {model.task_!r}.")
    try_table(model)


@storable(check=_check)
class TableModel(BaseEstimator):
    """A model of a table as it comes: numbers, categories, dates, gaps, and columns that should not be used.

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
        The size of the model, see :class:`KernelRegressor`.
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
        The error on these rows with a 95% interval, beside those of simpler answers.
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
    data frame are Dask series and data frames; they warn of nothing.

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
        names = ("prefer", "n_vectors", "max_vectors", "class_weight", "n_components")
        usual = {name: parameter.default for name, parameter in inspect.signature(TableModel).parameters.items()}
        settings = {name: getattr(self, name) for name in names if getattr(self, name) != usual[name]}
        request = Request(
            task=self.task,
            model=self.model,
            holdout=self.holdout,
            drop=named(self.drop),
            keep=named(self.keep),
            random_state=self.random_state,
            verbose=bool(self.verbose),
            settings=settings,
            groups=groups,
            weights=sample_weight,
            merge_spellings=self.merge_spellings,
        )
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

    def _encode(self, frame: Any) -> EncodedTable:
        """Features of new rows; warns of what is unusual about them, unless they are encoded already."""
        check_is_fitted(self)
        if isinstance(frame, EncodedTable):
            return frame
        found = self.encoder_.encode(frame)
        for remark in found.remarks:
            warnings.warn(remark, TableWarning, stacklevel=3)
        return found

    def _ask(self, method: str, frame: Any, **given: Any) -> Any:
        """What the estimator says of new rows; of no rows, nothing; of a Dask data frame, when it is computed."""
        if is_collection(frame):
            return predict_lazily(self, method, frame, given)
        X = self._encode(frame).values
        if len(X):
            return getattr(self.estimator_, method)(X, **given)
        one = getattr(self.estimator_, method)(np.zeros((1, X.shape[1])), **given)
        return one[:0]

    @available_if(can("predict"))
    def predict(self, frame: Any) -> Any:
        """Class or number of every row."""
        return self._ask("predict", frame)

    @available_if(can("predict_proba"))
    def predict_proba(self, frame: Any) -> Any:
        """Probability of every class, shape ``(n_rows, n_classes)``, in the order of ``classes_``."""
        return self._ask("predict_proba", frame)

    @available_if(can("predict_interval"))
    def predict_interval(self, frame: Any, coverage: float = 0.9) -> Any:
        """Ends of intervals, shape ``(n_rows, 2)``, that hold the share ``coverage`` of the true numbers."""
        return self._ask("predict_interval", frame, coverage=coverage)

    @available_if(can("predict_set"))
    def predict_set(self, frame: Any, coverage: float = 0.9) -> Any:
        """Classes of which one is right with that probability, a truth value each, shape ``(n_rows, n_classes)``."""
        return self._ask("predict_set", frame, coverage=coverage)

    @available_if(can("novelty"))
    def novelty(self, frame: Any) -> Any:
        """How unlike the kept vectors every row is, from 0 to 1."""
        return self._ask("novelty", frame)

    @available_if(can("novelty_threshold"))
    def novelty_threshold(self, false_alarms: float = 0.05) -> float:
        """The novelty that a new row of the same kind exceeds with probability ``false_alarms`` at most."""
        return self.estimator_.novelty_threshold(false_alarms)

    @available_if(can("transform"))
    def transform(self, frame: Any) -> Any:
        """Components of every row, shape ``(n_rows, n_components)``."""
        return self._ask("transform", frame)

    @available_if(can("score_samples"))
    def score_samples(self, frame: Any) -> Any:
        """Log density of every row, per unit of the columns of the table; NaN where a value is missing."""
        if is_collection(frame):
            return predict_lazily(self, "score_samples", frame, {})
        found = self._encode(frame)
        gaps = found.gaps
        values = np.full(len(gaps), np.nan)
        if not gaps.all():
            unit = np.log(self.encoder_.scale_).sum()
            values[~gaps] = np.asarray(self.estimator_.score_samples(found.values[~gaps])) - unit
        if gaps.any() and found is not frame:
            text = f"{int(gaps.sum()):,} of {len(gaps):,} rows have a missing value and so no log density"
            warnings.warn(text, TableWarning, stacklevel=2)
        return values

    def score(self, frame: Any, y: Any = None) -> float:
        """Accuracy, R², or mean log density of the rows of a table.

        Parameters
        ----------
        frame : table
        y : array or None, default None
            The true targets; None takes them from the column ``target_`` of the table.
        """
        check_is_fitted(self)
        if self.task_ == "reduce":
            raise AttributeError("TableModel: a model that reduces has no score.")
        if self.task_ == "density":
            return float(np.nanmean(self.score_samples(frame)))
        frame = self.encoder_.frame(frame)
        truth, predicted = known_targets(self.truth(frame, y), self.predict(frame))
        if not len(truth):
            raise ValueError(f"TableModel: no row of the table has a target {self.target_!r}.")
        if self.task_ == "classify":
            return float(np.mean(truth == predicted))
        return float(r2_score(truth, predicted)) if len(truth) > 1 else float("nan")

    def truth(self, frame: Any, y: Any = None) -> np.ndarray[Any, Any]:
        """The true targets of the rows of a table, as the model predicts them; None or NaN where one is missing."""
        if y is None:
            absent = [name for name in self.targets if name not in frame.columns]
            if absent or not self.targets:
                name = absent[0] if absent else None
                raise ValueError(
                    f"TableModel: the table has no column {name!r} to compare with; {nearest(str(name), frame.columns)}"
                )
            y = frame[list(self.targets)] if len(self.targets) > 1 else frame[self.targets[0]]
        if getattr(y, "ndim", 1) == 2:
            table = as_frame(y, "TableModel")
            return np.column_stack([self.truth(frame, table[name]) for name in table])
        column = as_column(y, len(frame), "TableModel")
        return target_values(column, self.task_, getattr(self.estimator_, "classes_", None), self.merge_spellings)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that are predicted."""
        return () if self.target_ is None else (self.target_,) if isinstance(self.target_, str) else self.target_

    @property
    def classes_(self) -> Any:
        """Classes in the order of ``predict_proba``."""
        return self.estimator_.classes_

    @property
    def expansion_(self) -> Any:
        """The fitted function of the features."""
        return self.estimator_.expansion_

    def kept(self) -> Any:
        """The vectors that the model keeps, as rows of a table: where they come from, cells, target, coefficient.

        Where vectors were moved, the cells are those nearest to them, and ``row`` is the row they started from.
        """
        check_is_fitted(self)
        return vectors_frame(self)

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

    def save(self, path: str | os.PathLike[str], *, keep_path: bool = True) -> Path:
        """Write the model to a file, which :func:`fewkern.load` reads; see :func:`fewkern.save`.

        ``keep_path=False`` leaves out ``path_``, the errors of all settings that were compared: most of what a small
        model stores.
        """
        check_is_fitted(self)
        model = copy.copy(self)
        if not keep_path and path_of(self.estimator_) is not None:
            model.estimator_ = copy.copy(self.estimator_)
            del model.estimator_.path_
        return save(model, path)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        name: str = "model",
        coverage: float | None = None,
        false_alarms: float | None = None,
    ) -> Path:
        """Write the model as ONNX or C, by the suffix of ``path``: :func:`fewkern.to_onnx`, :func:`fewkern.to_c`."""
        path = Path(path)
        given: dict[str, Any] = {"coverage": coverage, "false_alarms": false_alarms}
        if dtype is not None:
            given["dtype"] = dtype
        if path.suffix.lower() == ".onnx":
            to_onnx(self, path, **given)
        elif path.suffix.lower() == ".c":
            to_c(self, path, name=name, **given)
        else:
            raise ValueError(
                f"{path.name}: expected a file that ends in .onnx or .c, got {path.suffix or 'no suffix'!r}."
            )
        return path

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
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        task = getattr(self, "task_", self.task)
        if task == "classify":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "regress":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
