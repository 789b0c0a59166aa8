"""Tables of numbers and categories as samples, for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.backend.storable import floats, storable
from fewkern.core.prepared import Prepared, Scaling

__all__ = ["TableEncoder", "TableModel"]

# A column of text with more distinct values than this is a name or a key, not a category.
_MOST_LEVELS = 100


@storable(mean=floats("f"), scale=floats("f", above=0.0), check=lambda encoder: encoder.check())
@dataclass(frozen=True)
class TableEncoder:
    """How the columns of a table become features: numbers standardized, categories one-hot.

    A missing number becomes the median of its column (of the training table), a missing or unknown category all zeros.
    """

    columns: list[str]
    levels: dict[str, list[str]]
    """Categories of every categorical column; columns not listed are numeric."""
    median: dict[str, float]
    mean: np.ndarray[Any, Any]
    scale: np.ndarray[Any, Any]

    @classmethod
    def learn(cls, frame: Any) -> tuple[TableEncoder, list[str]]:
        """Encoder for ``frame``, and remarks on what it did to the table."""
        remarks: list[str] = []
        levels: dict[str, list[str]] = {}
        median: dict[str, float] = {}
        kept: list[str] = []
        for name in map(str, frame.columns):
            column = frame[name]
            missing = int(column.isna().sum())
            if missing == len(column):
                remarks.append(f"column {name!r} is empty and was left out")
                continue
            if _is_number(column):
                values = column.astype(float).to_numpy()
                if not np.all(np.isfinite(values[~np.isnan(values)])):
                    raise ValueError(f"column {name!r} holds infinite values; replace them first.")
                median[name] = float(np.nanmedian(values))
                if missing:
                    remarks.append(f"column {name!r}: {missing} missing values replaced by the median {median[name]:g}")
            else:
                found = sorted({str(v) for v in column.dropna()})
                if len(found) > _MOST_LEVELS:
                    remarks.append(
                        f"column {name!r} has {len(found)} different texts (more than {_MOST_LEVELS}) and was left out"
                    )
                    continue
                levels[name] = found
                if missing:
                    remarks.append(f"column {name!r}: {missing} missing values count as no category")
            kept.append(name)
        if not kept:
            raise ValueError("the table has no usable column besides the target.")
        width = sum(len(levels.get(name, " ")) for name in kept)
        draft = cls(kept, levels, median, np.zeros(width), np.ones(width))
        X = draft.encode(frame)
        spread = X.std(axis=0)
        return cls(kept, levels, median, X.mean(axis=0), np.where(spread > 0, spread, 1.0)), remarks

    def check(self) -> None:
        """Raise a ValueError if the parts do not belong together."""
        numeric = [name for name in self.columns if name not in self.levels]
        if sorted(self.median) != sorted(numeric) or not set(self.levels) <= set(self.columns):
            raise ValueError("TableEncoder: every column has either a median or levels.")
        if not np.all(np.isfinite(list(self.median.values()))):
            raise ValueError("TableEncoder: medians must be finite.")
        if len(self.names) != len(self.mean):
            raise ValueError(f"TableEncoder: {len(self.names)} features, but {len(self.mean)} means.")

    @property
    def names(self) -> list[str]:
        """Name of every feature."""
        return [
            feature
            for name in self.columns
            for feature in ([f"{name}={level}" for level in self.levels[name]] if name in self.levels else [name])
        ]

    def by_column(self, values: Any) -> np.ndarray[Any, Any]:
        """A number per feature, added up to one per column."""
        widths = [len(self.levels[name]) if name in self.levels else 1 for name in self.columns]
        return np.array([part.sum() for part in np.split(np.asarray(values), np.cumsum(widths)[:-1])])

    def encode(self, frame: Any) -> np.ndarray[Any, Any]:
        """Features of the rows of ``frame``, shape ``(n, d)``."""
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise ValueError(
                f"the table lacks the column(s) {absent}, which the model was fitted with; it has "
                f"{list(frame.columns)}."
            )
        parts = []
        for name in self.columns:
            column = frame[name]
            if name in self.levels:
                text = column.astype(object).where(column.notna(), None)
                parts.append(
                    np.array(
                        [[value is not None and str(value) == level for level in self.levels[name]] for value in text]
                    )
                )
            else:
                try:
                    values = column.astype(float).to_numpy()
                except (TypeError, ValueError):
                    raise ValueError(
                        f"column {name!r} was numeric when the model was fitted, but now holds text."
                    ) from None
                parts.append(np.where(np.isnan(values), self.median[name], values)[:, None])
        X = np.concatenate([np.asarray(p, dtype=float).reshape(len(frame), -1) for p in parts], axis=1)
        return (X - self.mean) / self.scale


@storable(check=lambda model: model.check())
@dataclass(frozen=True)
class TableModel:
    """A fitted estimator with the encoder of its table and what is worth telling about it."""

    task: str
    target: str | None
    encoder: TableEncoder
    estimator: Any
    facts: dict[str, Any]

    def check(self) -> None:
        """Raise a ValueError if the estimator does not take what the encoder makes."""
        features = len(self.encoder.names)
        if getattr(self.estimator, "n_features_in_", None) != features:
            raise ValueError(f"TableModel: the estimator was not fitted with the {features} features of the encoder.")

    def prepared(self) -> Prepared:
        """The estimator, and what the encoder does to a row before the estimator sees it."""
        encoder = self.encoder
        medians = ", ".join(f"{float(value)!r} ({name})" for name, value in encoder.median.items()) or "0"
        notes = [f"Missing numbers are not handled here: put {medians} in their place."]
        if encoder.levels:
            notes.append('A feature "column=level" is 1 where the column has that level, and 0 elsewhere.')
        standard = Scaling(np.asarray(encoder.mean, float), 1.0 / np.asarray(encoder.scale, float))
        # as the command line predicts: per unit of the columns, not of the standardized ones
        log_unit = -float(np.log(encoder.scale).sum())
        return Prepared(self.estimator, standard, tuple(encoder.names), log_unit, tuple(notes))

    def summary(self) -> list[tuple[str, str]]:
        """The facts of the fit as pairs of name and text."""
        facts = self.facts
        rows = [
            (
                "task",
                f"{facts['task']} with model {facts['model']}"
                + (f", target {facts['target']}" if facts["target"] else ""),
            ),
            ("rows", f"{facts['rows']:,} of {facts['features']} features"),
        ]
        if "components" in facts:
            rows.append(("components", f"{facts['components']:,}"))
        if facts["vectors"] is not None:
            rows.append(("vectors kept", f"{facts['vectors']:,} ({facts['vectors'] / facts['rows']:.1%} of the rows)"))
        if "agreement" in facts:
            rows.append(("agreement with the long model", f"{facts['agreement']}, held out"))
        if "loo_error" in facts:
            rows.append(("error, cross-validated", f"{facts['loo_error']:.2%}"))
        if "held_out_error" in facts:
            rows.append(
                ("error, held out", f"{facts['held_out_error']:.2%} of {facts['held_out_rows']:,} rows not fitted")
            )
        if "loo_rmse" in facts:
            rows.append(("RMSE, cross-validated", f"{facts['loo_rmse']:.4g} (R² {facts['loo_r2']:.3f})"))
        if "held_out_rmse" in facts:
            score = f"{facts['held_out_rmse']:.4g} (R² {facts['held_out_r2']:.3f})"
            rows.append(("RMSE, held out", f"{score} on {facts['held_out_rows']:,} rows not fitted"))
        if "held_out_log_density" in facts:
            score = f"{facts['held_out_log_density']:.4g} on average"
            rows.append(("log density, held out", f"{score} over {facts['held_out_rows']:,} rows not fitted"))
        rows += [
            ("kernel", facts["kernel"]),
            ("fitted in", f"{facts['seconds']:.2f} s"),
            ("size of the model", f"{facts['bytes']:,} bytes of numbers"),
        ]
        return rows


def _is_number(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", "O")
    return kind in "iufb"
