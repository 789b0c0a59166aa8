"""A fitted model as one C99 file that needs nothing but ``math.h``, an Arduino sketch around it, and a test of it."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fewkern._version import __version__
from fewkern.arrays.namespace import to_numpy
from fewkern.core.expansion import Preparing
from fewkern.io.archive import write_atomically
from fewkern.io.c_text import c_header, c_lines, c_number, from_file
from fewkern.io.c_writer import CWriter, LearningWriter
from fewkern.io.describe import inner_model, plan, refuse_columns
from fewkern.io.fixed import FixedWriter, fixed
from fewkern.io.plan import ROUNDING, Plan, Vector, learning, shares

# Rows of the test program, spread over those that it is given.
_ROWS = 20
# Largest difference, as a share of the largest output.
_TOLERANCES = {"double": 1e-9, "float": ROUNDING}


def to_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "model",
    dtype: Literal["float", "double", "int16"] = "double",
    coverage: float | None = None,
    false_alarms: float | None = None,
    update: bool = False,
    explain: bool = False,
) -> str:
    """A fitted model as C: one file, no dependency but ``math.h``, no memory allocated.

    The comment at the head lists the functions, with ``T`` the type ``dtype`` and ``model`` replaced by ``name``:

    ==================================================== ======================================================
    ``int model_predict(const T *x)``                    number of the class (classifiers)
    ``const char *model_class_name(int number)``         its label
    ``void model_decision(const T *x, T *out)``          scores: one for two classes, else one per class
    ``void model_predict_proba(const T *x, T *out)``     probability of every class, where the model has them
    ``void model_predict(const T *x, T *out)``           values (regression)
    ``void model_transform(const T *x, T *out)``         components or features (transformers)
    ``T model_log_density(const T *x)``                  log density
    ``int model_code(int input, const char *text)``      what to put into ``x[input]`` for a text (pipelines with text)
    ``void model_interval(const T *x, T *out)``          lower and upper bound of every value (``coverage``)
    ``int model_predict_set(const T *x, int *out)``      1 for every class in the set; how many (``coverage``)
    ``T model_novelty(const T *x)``                      novelty (``false_alarms``)
    ``int model_is_novel(const T *x)``                   whether it is above the threshold (``false_alarms``)
    ``int model_update(const T *x, T *y, T forgetting)`` learns a sample (``update``; ``int y`` for classes)
    ``T model_error(void)``                              mean error of samples before they were learned (``update``)
    ``void model_merge(const T *other)``                 learns what another device has learned (``update``)
    ``void model_explain(const T *x, T *out)``           share of every input in every value (``explain``)
    ``void model_baseline(T *out)``                      what the shares start from (``explain``)
    ==================================================== ======================================================

    Parameters
    ----------
    model : fitted estimator of fewkern
        Or a pipeline of scikit-learn that ends in one, with scalers, SimpleImputer, OneHotEncoder, OrdinalEncoder,
        ColumnTransformer or feature selection before it; a model that the command line saved; an expansion
        (``expansion_`` of an estimator).
    path : str, path or None, default None
        If given, also write the text to this file, and its declarations to a header beside it: ``model.h`` for
        ``model.c``. A program includes the header and is linked with the file, or includes the file itself. A path
        such as ``model/model.ino`` makes an Arduino sketch: the folder ``model`` with ``model.c``, ``model.h``, and a
        sketch that answers on the serial port.
    name : str, default "model"
        Begins the name of everything in the file.
    dtype : {"double", "float", "int16"}, default "double"
        Type of all numbers. "float" is half the size, and fast on a microcontroller. "int16" is for processors without
        floating point: whole numbers only from the sample to the class. See Notes. For :class:`KernelClassifier` and
        :class:`KernelRegressor` on columns of numbers.
    coverage : float or None, default None
        If given, also write the intervals of a regressor (``predict_interval``) or the sets of a classifier
        (``predict_set``) of this coverage.
    false_alarms : float or None, default None
        If given, also write ``novelty``, and whether it is above ``novelty_threshold(false_alarms)``.
    update : bool, default False
        If true, the model goes on learning where it runs: see Notes. For :class:`KernelClassifier` and
        :class:`KernelRegressor`.
    explain : bool, default False
        If true, also write what every input contributes to every value, as the model's ``explain`` does. For sums of
        Gaussians.

    Returns
    -------
    str
        The text of the file.

    Notes
    -----
    Numbers are written so that a compiler reads back the same bits. The kernels ``Precomputed`` and ``Function``
    have no form in C. Sparse vectors are written dense.

    With ``update`` the vectors stay, and the coefficients follow every sample by recursive least squares, on one
    triangle of ``n (n + 1) / 2`` numbers for ``n`` coefficients, in constant memory. With ``forgetting`` 1 they
    are those of ``partial_fit`` (the ridge grows with the number of samples, one coefficient after the other); with
    0.999, say, old samples fade, and about the last 1,000 count. ``model_update`` returns 0 and learns nothing where a
    number is not finite, or ``forgetting`` is not in (0, 1]. ``model_error`` is the mean squared error, or the error
    rate, that began as ``held_out_error_``. ``model_state()`` gives ``model_N_STATE`` numbers to send to another device
    with the same file, for its ``model_merge``, which adds them up as ``merge`` does: the samples that the file was
    fitted to count in both. The factor of the probabilities stays. Coefficients of logistic regression (``loss_`` of a
    classifier after ``fit``) cannot be updated: the file begins with those of least squares, and a warning says so.

    With ``dtype="int16"`` a sample is ``int16_t``, values are ``int32_t`` and probabilities ``uint16_t``, each a number
    times a power of two that the head of the file names; ``model_quantize`` and ``model_dequantize`` convert samples
    and values of type float. The head also says how much rounding changes the values, as measured on 1,000 rows.

    ``model_explain`` writes ``model_N_FEATURES`` rows of one share per value (of a classifier, per score). Shares and
    ``model_baseline`` add up to what ``model_predict`` or ``model_decision`` gives. They are compared with the centers
    that the model keeps (``background_``), else with its vectors; features that one input becomes are added up.

    Examples
    --------
    >>> from fewkern import FeatureVectorDiscriminant, to_c
    >>> from fewkern.datasets import make_banana
    >>> model = FeatureVectorDiscriminant(max_vectors=10).fit(*make_banana(200))
    >>> text = to_c(model, name="banana", dtype="float")
    >>> "int banana_predict(const float *x)" in text
    True
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            f"to_c: name must be a C identifier (a letter, then letters, digits and underscores), got {name!r}."
        )
    given = {"coverage": coverage, "explain": explain, "update": update, "false_alarms": false_alarms}
    more = [key for key, value in given.items() if value not in (None, False)]
    if dtype == "int16" and more:
        raise ValueError(f'to_c: dtype="int16" writes predictions only; leave {more[0]} out, or use dtype="float".')
    if update and more[0] in ("coverage", "explain"):
        raise ValueError(f"to_c: {more[0]} is for the model as it was fitted; leave {more[0]} or update out.")
    described = plan(model, "double" if dtype == "int16" else dtype, "to_c", coverage, false_alarms)
    inner = inner_model(model, "to_c")
    if dtype == "int16":
        refuse_columns(model, 'to_c, dtype="int16"')
        text = FixedWriter(described, name).text()
    elif update:
        text = LearningWriter(described, name, dtype, learning(inner, "to_c")).text()
    else:
        text = CWriter(described, name, dtype, shares(described, inner, "to_c") if explain else None).text()
    if path is not None:
        path = Path(path)
        sketch = arduino_sketch(described, name, f"{path.stem}.h", dtype) if path.suffix == ".ino" else None
        _write(path, text, name, sketch)
    return text


def _write(path: Path, text: str, name: str, sketch: str | None) -> None:
    """Write a C file with its header, alone or in the folder of a sketch; under another suffix the text only."""
    files = {path: text}
    if sketch is not None:
        if path.resolve().parent.name != path.stem:
            raise ValueError(
                f"to_c: Arduino opens a sketch in a folder of its name only; write {path.name} as "
                f"{path.stem}/{path.name}, not as {path}."
            )
        if path.parent.parent.is_dir():
            path.parent.mkdir(exist_ok=True)
        files = {path.with_suffix(".c"): text, path: sketch}
    if path.suffix in (".c", ".ino"):
        files[path.with_suffix(".h")] = c_header(text, name)
    for place, content in files.items():
        write_atomically(place, lambda handle, content=content: handle.write(content.encode("ascii")))


def arduino_sketch(described: Plan, name: str, header: str, dtype: str) -> str:
    """The text of a sketch beside the C file of a plan and its header."""
    whole, x, lines, answer = dtype == "int16", "x", [], "the class"
    given = "float" if whole else dtype
    if whole:
        x, lines = "numbers", [f"int16_t numbers[{name}_N_FEATURES];", f"{name}_quantize(x, numbers);"]
    if described.classes is not None:
        lines.append(f"Serial.println({name}_class_name({name}_predict({x})));")
    elif described.values == "log_density":
        answer = "the logarithm of the density"
        lines.append(f"Serial.println({name}_log_density({x}), 6);")
    else:
        answer, out = f"{described.n_values} line(s), one per value", "whole" if whole else "out"
        lines += [f"{'int32_t' if whole else dtype} {out}[{name}_N_VALUES];"]
        lines += [f"{name}_{described.values}({x}, {out});"]
        lines += [f"float out[{name}_N_VALUES];", f"{name}_dequantize(whole, out);"] if whole else []
        lines += [f"for (int i = 0; i < {name}_N_VALUES; i++) {{", "    Serial.println(out[i], 6);", "}"]
    words = {"VERSION": __version__, "COUNT": described.n_inputs, "ANSWER": answer, "T": given, "NAME": name}
    return from_file("sketch.ino", words | {"HEADER": header, "BODY": "\n    ".join(lines)})


def to_c_test(
    model: Any,
    X: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "model",
    dtype: Literal["float", "double", "int16"] = "double",
) -> str:
    """A test in C of what :func:`to_c` wrote: 20 rows of ``X`` and the outputs of the model.

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
    preparing = model.prepared() if isinstance(model, Preparing) else None
    cells = _cells(described, rows if preparing is None or preparing.rows is None else preparing.rows(rows))
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
    words = {"NAME": name, "ROWS": len(places), "TOLERANCE": tolerance, "WIDTH": truth.shape[1]}
    words |= {"X_TYPE": "int16_t", "Y_TYPE": "int32_t"} if dtype == "int16" else {"X_TYPE": dtype, "Y_TYPE": dtype}
    words |= {"N_X": cells.size, "N_Y": truth.size, "X_ROWS": c_lines(x), "Y_ROWS": c_lines(y)}
    words["CALL"] = call.format(name=name, x=f"{name}_test_x + {cells.shape[1]} * i")
    text = from_file("selftest.c", words)
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
            raise ValueError(f"to_c_test: X has no column {absent[0]!r}, an input of the file.")
        rows = rows[list(names)]
    cells = np.array(rows, dtype=object)
    for column, texts in described.texts.items():
        cells[:, column] = [texts.index(cell) if cell in texts else -1 for cell in cells[:, column]]
    return cells.astype(float)
