"""A C program that compares what ``to_c`` wrote with the model, on a few rows."""

from __future__ import annotations

import os
import warnings
from typing import Any, Literal

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.io.c_text import c_lines, c_number
from fewkern.io.describe import plan
from fewkern.io.fixed import fixed
from fewkern.io.plan import DTYPES, ROUNDING, Plan, Vector
from fewkern.io.save import write_atomically

__all__ = ["to_c_test"]

# Rows of the program, spread over those that it is given.
_ROWS = 20
# Largest difference, as a share of the largest output.
_TOLERANCES = {"double": 1e-9, "float": ROUNDING}

_PROGRAM = """/*
 * {name}_test: {rows} rows, and what Python says of them. Written by fewkern (to_c_test).
 *
 * {name}_test() returns the number of rows whose outputs differ by {tolerance} or more: 0 if all is well. Compile it
 * with {name}.c; with -D{name}_TEST_MAIN it is a program that returns the same.
 */
#include "{name}.h"

int {name}_test(void);

static const {x_type} {name}_test_x[{n_x}] = {{
{x}
}};

static const {y_type} {name}_test_y[{n_y}] = {{
{y}
}};

int {name}_test(void)
{{
    int wrong = 0;
    for (int i = 0; i < {rows}; i++) {{
        {y_type} out[{q}];
        int same = 1;
        {call}
        for (int o = 0; o < {q}; o++) {{
            const {y_type} gap = out[o] - {name}_test_y[{q} * i + o];
            same = same && gap < {tolerance} && -gap < {tolerance};
        }}
        wrong += !same;
    }}
    return wrong;
}}

#ifdef {name}_TEST_MAIN
int main(void)
{{
    return {name}_test();
}}
#endif
"""


def to_c_test(
    model: Any,
    X: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "model",
    dtype: Literal["float", "double", "int16"] = "double",
) -> str:
    """A test in C of what :func:`to_c` wrote: 20 rows of ``X``, and what the model says of them.

    ``int model_test(void)`` returns the number of rows on which the compiled file disagrees, 0 if all is well: on the
    device itself, with its compiler and its arithmetic.

    Parameters
    ----------
    model
        As in :func:`to_c`.
    X : array or data frame
        Rows as the model takes them; 20 of them, spread over all, go into the file.
    path : str, path or None, default None
        If given, also write the text to this file.
    name, dtype
        Those of the file that is tested: the test includes its header, ``name.h``.

    Returns
    -------
    str
        The text of the test. Probabilities are compared if the model has them, else scores, values, components or log
        densities, up to 1e-9 of the largest in double, and 1e-3 in float. With ``dtype="int16"`` scores or values are
        compared, with those of the same arithmetic in Python, to the bit.

    Examples
    --------
    >>> from fewkern import KernelRegressor, to_c_test
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1)
    >>> text = to_c_test(KernelRegressor(n_vectors=5).fit(X, y), X, name="sinc")
    >>> "int sinc_test(void)" in text
    True
    """
    if isinstance(X, str | os.PathLike):
        raise TypeError(f"to_c_test: X must be rows for the model, got {os.fspath(X)!r}; the path comes third.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rounding: to_c warns
        described = plan(model, "double" if dtype == "int16" else dtype, "to_c_test")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n == 0:
        raise ValueError("to_c_test: X has no rows; give some to test the file on.")
    places = np.unique(np.linspace(0, n - 1, _ROWS).astype(int))
    rows = X.iloc[places] if hasattr(X, "iloc") else np.asarray(X)[places]
    cells = _cells(described, rows)
    truth: np.ndarray[Any, Any]
    if dtype == "int16":
        numbers = fixed(described, "to_c_test")
        whole = numbers.inputs(cells)
        truth, call = numbers(whole), f"{{name}}_{'predict' if described.classes is None else 'decision'}({{x}}, out);"
        tolerance, x, y = "1", [str(one) for one in whole.ravel()], [str(one) for one in truth.ravel()]
    else:
        method, call = _output(described, model)
        truth = np.asarray(to_numpy(getattr(model, method)(rows)), float).reshape(len(places), -1)
        tolerance = c_number(_TOLERANCES[dtype] * max(float(np.abs(truth).max()), 1e-300), dtype)
        x = ["NAN" if np.isnan(one) else c_number(one, dtype) for one in cells.ravel()]
        y = [c_number(float(one), dtype) for one in truth.ravel()]
    text = _PROGRAM.format(
        name=name,
        x_type="int16_t" if dtype == "int16" else dtype,
        y_type="int32_t" if dtype == "int16" else dtype,
        rows=len(places),
        tolerance=tolerance,
        n_x=cells.size,
        n_y=truth.size,
        x=c_lines(x),
        y=c_lines(y),
        q=truth.shape[1],
        call=call.format(name=name, x=f"{name}_test_x + {cells.shape[1]} * i"),
    )
    if dtype != "int16" and np.isnan(cells).any():
        text = text.replace("#include", "#include <math.h>\n#include", 1)
    if path is not None:
        write_atomically(path, lambda handle: handle.write(text.encode("ascii")))
    return text


def _output(described: Plan, model: Any) -> tuple[str, str]:
    """The method of the model, and the statement that computes the same in C."""
    if described.classes is not None:
        if described.classes.probable:
            return "predict_proba", "{name}_predict_proba({x}, out);"
        return "decision_function", "{name}_decision({x}, out);"
    if described.values == "log_density":
        return "score_samples", "out[0] = {name}_log_density({x});"
    method = "__call__" if callable(model) else str(described.values)
    return method, f"{{name}}_{described.values}({{x}}, out);"


def _cells(described: Plan, rows: Any) -> Vector:
    """The inputs of the C file: numbers, and the numbers of texts."""
    names = described.feature_names
    if hasattr(rows, "columns") and names is not None:
        absent = [name for name in names if name not in rows.columns]
        if absent:
            raise ValueError(f"to_c_test: X has no column {absent[0]!r}, an input of the file (a date has several).")
        rows = rows[list(names)]
    table = np.asarray(rows, dtype=object)
    texts = {} if described.inputs is None else described.inputs.texts
    cells = np.empty(table.shape)
    for column in range(table.shape[1]):
        known = {text: float(number) for number, text in enumerate(texts.get(column, ()))}
        for i, cell in enumerate(table[:, column]):
            cells[i, column] = known.get(cell, -1.0) if column in texts else np.nan if cell is None else float(cell)
    return cells.astype(DTYPES["double"])
