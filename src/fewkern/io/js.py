"""A fitted model as one JavaScript module: its plan as JSON, and the functions of ``module.js``, which read it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.arrays.validation import plain_label
from fewkern.density.mixture import product_bound, square_limit
from fewkern.io.archive import write_atomically
from fewkern.io.c_text import c_comment
from fewkern.io.describe import plan, refuse_columns
from fewkern.io.plan import LogSum, Plan, Sum

_LARGEST = float(np.finfo(np.float64).max)
# What module.js reads of a plan.
_READ = ("inputs", "bounds", "novelty", "novelty_threshold", "set_threshold")


def to_js(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    coverage: float | None = None,
    false_alarms: float | None = None,
) -> str:
    """A fitted model as JavaScript: one module without dependencies, for web pages, Node and Deno.

    Every function takes one row: an array, or an object by the names of the columns. Texts are given as they are, and
    ``null`` is a missing number; an object that lacks a column is an error. A date in a table becomes several
    columns, which the head of the file describes.

    ===================== ==========================================================================
    ``predict(x)``        label of the class (classifiers), or an array of values (regression)
    ``predictProba(x)``   probability of every class, in the order of ``labels``
    ``decision(x)``       scores: one for two classes, else one per class
    ``transform(x)``      components or features (transformers)
    ``logDensity(x)``     log density
    ``interval(x)``       lower and upper bound of every value (``coverage``)
    ``predictSet(x)``     labels of the classes in the set (``coverage``)
    ``novelty(x)``        novelty, and ``isNovel(x)``: whether it is above the threshold (``false_alarms``)
    ===================== ==========================================================================

    ``columns`` names the inputs. Where a score is not a number the label is ``null``.

    Parameters
    ----------
    model, coverage, false_alarms
        As in :func:`to_c`. All numbers are doubles, as in JavaScript.
    path : str, path or None, default None
        If given, also write the text to this file. Node takes a file for a module if its name ends in ``.mjs``, or if
        ``package.json`` says ``"type": "module"``.

    Returns
    -------
    str
        The text of the module.

    Examples
    --------
    >>> from fewkern import FeatureVectorDiscriminant, to_js
    >>> from fewkern.datasets import make_banana
    >>> model = FeatureVectorDiscriminant(max_vectors=10).fit(*make_banana(200))
    >>> print(to_js(model).splitlines()[-1])
    export { columns, labels, decision, predictClass as predict, predictProba, values as transform };
    """
    refuse_columns(model, "to_js")
    described = plan(model, "double", "to_js", coverage, false_alarms)
    names = _exports(described)
    functions = Path(__file__).with_name("module.js").read_text(encoding="ascii")
    lines = [described.title, "", f"Written by fewkern {__version__} (to_js).", "", *described.notes]
    comment = "\n".join(f" * {c_comment(line)}".rstrip() for line in lines)
    text = "\n".join(
        [
            f"/*\n{comment}\n */",
            f"const model = {_json(_numbers(described))};",
            "const { columns, labels } = model;",
            re.sub(r"\A/\*.*?\*/\n", "", functions, flags=re.DOTALL),
            f"export {{ {', '.join(names)} }};\n",
        ]
    )
    if path is not None:
        write_atomically(path, lambda handle: handle.write(text.encode("ascii")))
    return text


def json_label(label: Any, caller: str) -> bool | int | float | str:
    """A label as JSON has it: a number, a text or a truth value."""
    found = plain_label(label)
    if not isinstance(found, (bool, int, float, str)):
        raise TypeError(
            f"{caller}: labels must be numbers, texts or truth values, got {type(found).__name__}; rename the classes."
        )
    return found


def _exports(described: Plan) -> list[str]:
    names = ["columns"]
    if described.classes is not None:
        names += ["labels", "decision", "predictClass as predict"]
        names += ["predictProba"] if described.classes.probable else []
    if described.values is not None:
        names.append("logDensity" if described.values == "log_density" else f"values as {described.values}")
    names += ["predictSet"] if described.set_threshold is not None else []
    names += ["interval"] if described.bounds is not None else []
    return names + (["novelty", "isNovel"] if described.novelty is not None else [])


def _json(found: Any) -> str:
    """JSON that can stand in a script of a page: ASCII, and no ``<``."""
    try:
        text = json.dumps(found, allow_nan=False, separators=(",", ":"), default=lambda array: array.tolist())
    except ValueError:
        raise ValueError(
            "to_js: the model holds a number that is not finite; fit it again on finite samples."
        ) from None
    return text.replace("<", "\\u003c")


def _part(part: Sum | LogSum) -> dict[str, Any]:
    found = asdict(part)
    if isinstance(part, LogSum):
        found |= {"kind": "log", "limit": square_limit(part.vectors.shape[1], _LARGEST), "lowest": -0.4 * _LARGEST}
        found |= {"bound": product_bound(part.factor, _LARGEST)} if part.factor.ndim == 2 else {}
    return found


def _numbers(described: Plan) -> dict[str, Any]:
    """The data that ``module.js`` reads: the plan, with labels as JSON has them, and null where Python refuses."""
    found = {name: value for name, value in asdict(described).items() if name in _READ}
    for part in found["inputs"]["parts"] if described.inputs is not None else ():
        if "unknown" in part:
            part["unknown"] = [None if np.isnan(one) else one for one in part["unknown"]]
    if described.classes is not None:
        found["labels"] = [json_label(one, "to_js") for one in described.classes.labels]
        found["scores"] = asdict(described.classes.scores)
    return found | {"columns": described.input_names, "sums": [_part(part) for part in described.sums]}
