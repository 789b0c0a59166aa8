"""A self-contained HTML page about one model: figures, pictures, the samples that were kept.

``TableModel.report`` and the command line call :func:`report` and nothing else of this module.
"""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np

from fewkern.io.save import write_atomically
from fewkern.table.target import settle_target

__all__ = ["report"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .25rem .9rem .25rem 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tbody tr:nth-child(odd) { background: #f4f7f9; } img { max-width: 100%; } small { color: #5a6b7b; }
"""
_IMPORTANCES = (
    "<p><small>The mean squared slope of the model along a column, in units of the column's spread, as a share of the "
    "sum. It says what this model uses, not what causes the target.</small></p>"
)
# Rows and columns of the table of kept samples.
_MOST_ROWS, _MOST_COLUMNS = 25, 8


def report(model: Any, frame: Any, path: Any = None) -> str:
    """The page about a fitted :class:`TableModel` and the rows of a table; also written to ``path`` if it is given."""
    page = _page(model, model.encoder_.encode(frame).values, _colours(model, frame))
    if path is not None:
        write_atomically(path, lambda handle: handle.write(page.encode()))
    return page


def _colours(model: Any, frame: Any) -> Any:
    """The targets of the rows, if the table has them."""
    if model.target_ is None or model.target_ not in frame.columns:
        return None
    if model.task_ == "reduce":
        return settle_target(model.target_, frame[model.target_], "auto").values
    return model.truth(frame)


def _page(model: Any, X: Any, y: Any) -> str:
    parts = [f"<h1>fewkern report: {html.escape(model.task_)} {html.escape(model.target_ or '')}</h1>"]
    parts.append(_table(["", ""], model.summary()))
    if model.notes_:
        parts.append("<h2>Remarks</h2><ul>" + "".join(f"<li>{html.escape(r)}</li>" for r in model.notes_) + "</ul>")
    parts += _pictures(model, X, y)
    if model.held_out_ is not None:
        truth, predicted = model.held_out_.truth, model.held_out_.predicted
        parts.append("<h2>Rows held out</h2>")
        parts.append(_confusion(truth, predicted) if model.task_ == "classify" else _scatter(truth, predicted))
        parts.append("<p><small>Measured with a model that did not see these rows.</small></p>")
    if model.task_ == "density":
        parts += ["<h2>Kernels</h2>", _kept(model)]
    elif model.estimator_.n_vectors_ == 0:
        parts += ["<h2>Components</h2>", _components(model)]
    else:
        parts += ["<h2>Samples that were kept</h2>", _kept(model)]
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>fewkern report</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _pictures(model: Any, X: Any, y: Any) -> list[str]:
    from fewkern.plotting import ComponentsDisplay, DensityDisplay, ImportancesDisplay, TraceDisplay, VectorsDisplay

    estimator, parts = model.estimator_, []
    if model.task_ == "density":
        if X.shape[1] <= 2:
            picture = DensityDisplay.from_estimator(estimator, X)
            parts += ["<h2>The density and its kernels (standardized)</h2>", _image(picture.figure_, "density")]
        return parts
    if model.task_ == "reduce" and estimator.n_components_:
        shown = ComponentsDisplay.from_estimator(estimator, X, y)
        parts += ["<h2>The first components</h2>", _image(shown.figure_, "components")]
    if hasattr(estimator, "feature_importances_"):
        encoder = model.encoder_
        display = ImportancesDisplay(encoder.by_column(estimator.feature_importances_), encoder.columns).plot()
        parts += ["<h2>How much the columns matter</h2>", _image(display.figure_, "importances"), _IMPORTANCES]
    if hasattr(estimator, "trace_"):
        parts += ["<h2>The path of models</h2>", _image(TraceDisplay.from_estimator(estimator).figure_, "path")]
    if X.shape[1] == 2 and y is not None and model.task_ == "classify":
        plane = VectorsDisplay.from_estimator(estimator, X, y)
        plane.ax_.set_xlabel(model.encoder_.names[0] + " (standardized)")
        plane.ax_.set_ylabel(model.encoder_.names[1] + " (standardized)")
        parts += ["<h2>Samples, boundary, vectors</h2>", _image(plane.figure_, "samples")]
    return parts


def _image(figure: Any, alt: str) -> str:
    from matplotlib.pyplot import close

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    close(figure)
    return f'<img alt="{alt}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def _table(head: list[str], rows: Any, numbers_from: int = 99) -> str:
    def cells(tag: str, row: Any) -> str:
        return "".join(
            f"<{tag}{' class=n' if j >= numbers_from else ''}>{html.escape(str(v))}</{tag}>" for j, v in enumerate(row)
        )

    top = f"<thead><tr>{cells('th', head)}</tr></thead>" if any(head) else ""
    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table>{top}<tbody>{lines}</tbody></table>"


def _confusion(truth: Any, predicted: Any) -> str:
    labels = sorted({str(v) for v in truth} | {str(v) for v in predicted})
    pairs = [(str(a), str(b)) for a, b in zip(truth, predicted)]
    rows = [[a, *[pairs.count((a, b)) for b in labels]] for a in labels]
    return _table(["true \\ predicted", *labels], rows, numbers_from=1)


def _scatter(truth: Any, predicted: Any) -> str:
    from fewkern.plotting.style import ACCENT, axes_for

    ax = axes_for(None)
    ax.scatter(truth, predicted, s=12, color=ACCENT, alpha=0.5, lw=0)
    low, high = float(np.min(truth)), float(np.max(truth))
    ax.plot([low, high], [low, high], color="#d95f02", lw=1)
    ax.set_xlabel("true value")
    ax.set_ylabel("predicted value")
    ax.spines[["top", "right"]].set_visible(False)
    return _image(ax.figure, "predicted against true")


def _components(model: Any) -> str:
    """What every feature, standardized, weighs in the first components."""
    W = np.asarray(model.estimator_.components_)[:_MOST_COLUMNS]
    rows = [[name, *[f"{v:.4g}" for v in W[:, j]]] for j, name in enumerate(model.encoder_.names)]
    head = ["feature (standardized)", *[f"component {k + 1}" for k in range(len(W))]]
    return _table(head, rows, numbers_from=1)


def _kept(model: Any) -> str:
    """The first of the kept vectors, as rows of the table."""
    frame = model.kept()
    shown = frame.head(_MOST_ROWS)
    rows = [["" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row]
            for row in shown.itertuples(index=False)]  # fmt: skip
    table = _table(list(map(str, shown.columns)), rows, numbers_from=0)
    hidden = len(frame) - len(shown)
    return table + (f"<p><small>and {hidden} more</small></p>" if hidden > 0 else "")
