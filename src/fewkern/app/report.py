"""A self-contained HTML page about one fit: figures, pictures, the samples that were kept."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import Any

import numpy as np

from fewkern.io.save import write_atomically

__all__ = ["write_report"]

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


def write_report(path: str | Path, fitted: Any) -> None:
    """Write the report of a fit of the command line to ``path``."""
    page = _page(fitted)
    write_atomically(path, lambda handle: handle.write(page.encode()))


def _page(fitted: Any) -> str:
    model = fitted.model
    parts = [f"<h1>fewkern report: {html.escape(model.task)} {html.escape(model.target or '')}</h1>"]
    parts.append(_table(["", ""], model.summary()))
    if fitted.remarks:
        parts.append("<h2>Remarks</h2><ul>" + "".join(f"<li>{html.escape(r)}</li>" for r in fitted.remarks) + "</ul>")
    parts += _pictures(fitted)
    if fitted.held_out is not None:
        parts.append("<h2>Rows held out</h2>")
        parts.append(_confusion(*fitted.held_out) if model.task == "classify" else _scatter(*fitted.held_out))
        parts.append(
            "<p><small>Measured with a model fitted to the other rows; the saved one is fitted to all rows.</small></p>"
        )
    if model.task == "density":
        parts += ["<h2>Kernels</h2>", _kernels(fitted)]
    elif model.estimator.n_vectors_ == 0:
        parts += ["<h2>Components</h2>", _components(fitted)]
    else:
        parts += ["<h2>Samples that were kept</h2>", _kept(fitted)]
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>fewkern report</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _pictures(fitted: Any) -> list[str]:
    from fewkern.plotting import ComponentsDisplay, DensityDisplay, ImportancesDisplay, TraceDisplay, VectorsDisplay

    estimator, parts = fitted.model.estimator, []
    if fitted.model.task == "density":
        if fitted.X.shape[1] <= 2:
            picture = DensityDisplay.from_estimator(estimator, fitted.X)
            parts += ["<h2>The density and its kernels (standardized)</h2>", _image(picture.figure_, "density")]
        return parts
    if fitted.model.task == "reduce" and estimator.n_components_:
        shown = ComponentsDisplay.from_estimator(estimator, fitted.X, fitted.y)
        parts += ["<h2>The first components</h2>", _image(shown.figure_, "components")]
    if hasattr(estimator, "feature_importances_"):
        encoder = fitted.model.encoder
        display = ImportancesDisplay(encoder.by_column(estimator.feature_importances_), encoder.columns).plot()
        parts += ["<h2>How much the columns matter</h2>", _image(display.figure_, "importances"), _IMPORTANCES]
    if hasattr(estimator, "trace_"):
        parts += ["<h2>The path of models</h2>", _image(TraceDisplay.from_estimator(estimator).figure_, "path")]
    if fitted.X.shape[1] == 2 and fitted.y is not None and fitted.model.task == "classify":
        plane = VectorsDisplay.from_estimator(estimator, fitted.X, fitted.y)
        plane.ax_.set_xlabel(fitted.model.encoder.names[0] + " (standardized)")
        plane.ax_.set_ylabel(fitted.model.encoder.names[1] + " (standardized)")
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


def _kernels(fitted: Any) -> str:
    """Weight, width and centre of the heaviest kernels of a density."""
    estimator, encoder = fitted.model.estimator, fitted.model.encoder
    order = np.argsort(-np.asarray(estimator.weights_), kind="stable")[:_MOST_ROWS]
    rows = [
        [
            f"{estimator.weights_[j]:.4g}",
            f"{estimator.widths_[j]:.4g}",
            *[f"{v:.4g}" for v in (estimator.vectors_[j] * encoder.scale + encoder.mean)[:_MOST_COLUMNS]],
        ]
        for j in order
    ]
    table = _table(["weight", "width (standardized)", *encoder.names[:_MOST_COLUMNS]], rows, numbers_from=0)
    hidden = int(estimator.n_vectors_) - len(order)
    return table + (f"<p><small>and {hidden} more</small></p>" if hidden > 0 else "")


def _components(fitted: Any) -> str:
    """What every feature, standardized, weighs in the first components."""
    W = np.asarray(fitted.model.estimator.components_)[:_MOST_COLUMNS]
    rows = [[name, *[f"{v:.4g}" for v in W[:, j]]] for j, name in enumerate(fitted.model.encoder.names)]
    head = ["feature (standardized)", *[f"component {k + 1}" for k in range(len(W))]]
    return _table(head, rows, numbers_from=1)


def _kept(fitted: Any) -> str:
    estimator, names = fitted.model.estimator, fitted.model.encoder.names
    indices = np.asarray(estimator.indices_)[:_MOST_ROWS]
    coef = np.asarray(estimator.expansion_.coef)
    encoder = fitted.model.encoder
    rows = [
        [
            int(i),
            *[f"{v:.4g}" for v in (fitted.X[i] * encoder.scale + encoder.mean)[:_MOST_COLUMNS]],
            f"{coef[k, 0]:.4g}",
        ]
        for k, i in enumerate(indices)
    ]
    table = _table(["row", *names[:_MOST_COLUMNS], "coefficient"], rows, numbers_from=0)
    hidden = len(estimator.indices_) - len(indices)
    return table + (f"<p><small>and {hidden} more</small></p>" if hidden > 0 else "")
