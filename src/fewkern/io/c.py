"""A fitted model as one C99 file that needs nothing but ``math.h``."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.density.mixture import product_bound, square_limit
from fewkern.io.c_text import c_comment, c_lines, c_number, c_row, c_string
from fewkern.io.describe import plan
from fewkern.io.plan import DTYPES, Classes, LogSum, Number, Plan, Sum
from fewkern.io.save import write_atomically

__all__ = ["to_c"]


def to_c(
    model: Any, path: str | os.PathLike[str] | None = None, *, name: str = "model", dtype: Number = "double"
) -> str:
    """A fitted model as C: one file, no dependency but ``math.h``, no memory allocated.

    The head of the file says which functions it has, with ``T`` the type ``dtype`` and ``model`` replaced by ``name``:

    ==================================================== ====================================================
    ``int model_predict(const T *x)``                    number of the class (classifiers)
    ``const char *model_class_name(int number)``         its label
    ``void model_decision(const T *x, T *out)``          scores: one for two classes, else one per class
    ``void model_predict_proba(const T *x, T *out)``     probability of every class
    ``void model_predict(const T *x, T *out)``           values (regression)
    ``void model_transform(const T *x, T *out)``         components or features (transformers)
    ``T model_log_density(const T *x)``                  log density
    ==================================================== ====================================================

    Parameters
    ----------
    model : fitted estimator of fewkern
        Or a pipeline of scikit-learn that ends in one, with StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler
        before it; a model that the command line saved; a KernelExpansion.
    path : str, path or None, default None
        Where the text also goes.
    name : str, default "model"
        Begins the name of everything in the file.
    dtype : {"double", "float"}, default "double"
        Type of all numbers. "float" is half the size, and fast on a microcontroller.

    Returns
    -------
    str
        The text of the file.

    Notes
    -----
    Numbers are written so that a compiler reads back the same bits. The kernels ``Precomputed`` and ``Function``
    have no form in C. Sparse vectors are written dense.

    Examples
    --------
    >>> from fewkern import FeatureVectorClassifier, to_c
    >>> from fewkern.datasets import make_banana
    >>> model = FeatureVectorClassifier(max_vectors=10).fit(*make_banana(200))
    >>> text = to_c(model, name="banana", dtype="float")
    >>> "int banana_predict(const float *x)" in text
    True
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            f"to_c: name must be a C identifier (a letter, then letters, digits and underscores), got {name!r}."
        )
    text = _Writer(plan(model, dtype, "to_c"), name, dtype).text()
    if path is not None:
        write_atomically(path, lambda handle: handle.write(text.encode("ascii")))
    return text


class _Writer:
    """The text of one plan."""

    def __init__(self, described: Plan, name: str, dtype: str) -> None:
        self.plan, self.name, self.dtype = described, name, dtype
        self.nbytes = 0
        self.constants: list[str] = []
        self.prototypes: list[tuple[str, str]] = []
        self.functions: list[str] = []
        suffix = "f" if dtype == "float" else ""
        self.exp, self.log, self.fabs = (f + suffix for f in ("exp", "log", "fabs"))

    def text(self) -> str:
        described = self.plan
        for i, part in enumerate(described.sums):
            (self._sum if isinstance(part, Sum) else self._log_sum)(part, i)  # type: ignore[arg-type]
        if described.values == "log_density":
            self._public(f"{self.dtype} {self.name}_log_density(const {self.dtype} *x)", "logarithm of the density")
            self.functions[-1] += f"{{\n    return {self.name}_sum0(x);\n}}\n"
        elif described.values is not None:
            self._public(
                f"void {self.name}_{described.values}(const {self.dtype} *x, {self.dtype} *out)",
                f"{described.n_values} value(s) to out",
            )
            self.functions[-1] += "{\n" + self._values("out") + "}\n"
        if described.classes is not None:
            self._class_functions(described.classes)
        return "\n".join([self._head(), *self.constants, *self.functions])

    # pieces of text

    def _array(self, what: str, values: Any) -> None:
        """A constant array of one or two dimensions."""
        values = np.asarray(values, dtype=float)
        self.nbytes += values.size * np.dtype(DTYPES[self.dtype]).itemsize
        shape = "".join(f"[{n}]" for n in values.shape)
        rows = [[c_number(v, self.dtype) for v in row] for row in np.atleast_2d(values)]
        body = c_lines(rows[0], "    ") if values.ndim == 1 else ",\n".join(map(c_row, rows))
        self.constants.append(f"static const {self.dtype} {self.name}_{what}{shape} = {{\n{body}\n}};\n")

    def _public(self, signature: str, meaning: str) -> None:
        self.prototypes.append((signature, meaning))
        self.functions.append(f"{signature}\n")

    def _prepare(self, part: Sum | LogSum, i: int, d: int) -> str:
        """Statements that give ``z``, from the samples ``x``."""
        n, t = self.name, self.dtype
        if part.shift is None or part.factor is None:
            return f"    const {t} *const z = x;\n"
        self._array(f"shift{i}", part.shift)
        self._array(f"factor{i}", part.factor)
        lines = [f"    {t} z[{d}];"]
        term = f"x[i] - {n}_shift{i}[i]"
        largest = float(np.finfo(DTYPES[t]).max)
        if part.factor.ndim == 1:
            lines += [f"    for (int i = 0; i < {d}; i++) {{", f"        z[i] = ({term}) * {n}_factor{i}[i];"]
        else:
            self._array(f"bound{i}", product_bound(part.factor, largest))
            lines += [
                f"    {t} y[{d}];",
                f"    for (int i = 0; i < {d}; i++) {{",
                f"        y[i] = {n}_within({term}, {n}_bound{i}[i]);",
                "    }",
                f"    for (int i = 0; i < {d}; i++) {{",
                "        z[i] = 0;",
                f"        for (int k = 0; k < {d}; k++) {{",
                f"            z[i] += {n}_factor{i}[i][k] * y[k];",
                "        }",
            ]
        if isinstance(part, LogSum):
            lines.append(f"        z[i] = {n}_within(z[i], {c_number(square_limit(d, largest), t)});")
        return "\n".join([*lines, "    }", ""])

    def _sum(self, part: Sum, i: int) -> None:
        n, t = self.name, self.dtype
        (m, d), q = part.vectors.shape, len(part.offset)
        prepare = self._prepare(part, i, d)
        self._array(f"vectors{i}", part.vectors)
        self._array(f"offset{i}", part.offset)
        body = f"static void {n}_sum{i}(const {t} *x, {t} *out)\n{{\n{prepare}"
        if part.coef is None:
            body += f"""    for (int o = 0; o < {q}; o++) {{
        out[o] = {n}_offset{i}[o];
        for (int i = 0; i < {d}; i++) {{
            out[o] += z[i] * {n}_vectors{i}[o][i];
        }}
    }}
}}
"""
            self.functions.append(body)
            return
        self._array(f"coef{i}", part.coef)
        if part.constant is not None:
            self._array(f"constant{i}", part.constant)
        start, step, end = self._kernel(part, f"{n}_vectors{i}[j][i]", f"{n}_constant{i}[j]")
        body += f"""    for (int o = 0; o < {q}; o++) {{
        out[o] = {n}_offset{i}[o];
    }}
    for (int j = 0; j < {m}; j++) {{
        {t} k = {start};
        for (int i = 0; i < {d}; i++) {{
            {step}
        }}
{end}        for (int o = 0; o < {q}; o++) {{
            out[o] += k * {n}_coef{i}[j][o];
        }}
    }}
}}
"""
        self.functions.append(body)

    def _kernel(self, part: Sum, v: str, constant: str) -> tuple[str, str, str]:
        """Where ``k`` starts, what every feature does to it, and what happens at the end."""
        t = self.dtype
        indent = "\n            "
        if part.kind == "gaussian":
            return "0", f"const {t} gap = z[i] - {v};{indent}k += gap * gap;", f"        k = {self.exp}(-k);\n"
        if part.kind == "laplacian":
            return "0", f"k += {self.fabs}(z[i] - {v});", f"        k = {self.exp}(-k);\n"
        if part.kind == "polynomial":
            power = (
                ""
                if part.degree == 1
                else (
                    f"        const {t} base = k;\n"
                    f"        for (int p = 1; p < {part.degree}; p++) {{\n            k *= base;\n        }}\n"
                )
            )
            return constant, f"k += z[i] * {v};", power
        half, third = c_number(0.5, t), c_number(3.0, t)
        steps = [
            f"const {t} a = z[i], b = {v}, ab = a * b;",
            f"const {t} low = a < b ? (a > 0 ? a : 0) : (b > 0 ? b : 0);",
            f"k *= 1 + ab + low * (ab - low * ({half} * (a + b) - low / {third}));",
        ]
        return "1", indent.join(steps), ""

    def _log_sum(self, part: LogSum, i: int) -> None:
        n, t = self.name, self.dtype
        m, d = part.vectors.shape
        largest = float(np.finfo(DTYPES[t]).max)
        lowest = c_number(-0.4 * largest, t)
        prepare = self._prepare(part, i, d)
        self._array(f"vectors{i}", part.vectors)
        self._array(f"level{i}", part.level)
        self._array(f"narrow{i}", part.narrow)
        if i == 0:
            self.functions.append(f"""static {t} {n}_within({t} value, {t} limit)
{{
    return value > limit ? limit : value < -limit ? -limit : value;
}}
""")
        # One pass: the largest exponent so far stays outside of the sum. What is no number in x stays none.
        self.functions.append(f"""static {t} {n}_sum{i}(const {t} *x)
{{
{prepare}    {t} top = 0, total = 0;
    for (int j = 0; j < {m}; j++) {{
        {t} e = 0;
        for (int i = 0; i < {d}; i++) {{
            const {t} gap = z[i] - {n}_vectors{i}[j][i];
            e -= gap * gap;
        }}
        e *= {n}_narrow{i}[j];
        e = (e < {lowest} ? {lowest} : e) + {n}_level{i}[j];
        if (j == 0) {{
            top = e;
            total = 1;
        }} else if (e > top) {{
            total = total * {self.exp}(top - e) + 1;
            top = e;
        }} else {{
            total += {self.exp}(e - top);
        }}
    }}
    return top + {self.log}(total);
}}
""")

    def _values(self, target: str) -> str:
        """Statements that write all values to ``target``."""
        if isinstance(self.plan.sums[0], Sum):
            return f"    {self.name}_sum0(x, {target});\n"
        return "".join(f"    {target}[{i}] = {self.name}_sum{i}(x);\n" for i in range(len(self.plan.sums)))

    def _class_functions(self, classes: Classes) -> None:
        n, t, count, q, s = self.name, self.dtype, len(classes.labels), self.plan.n_values, self.plan.n_scores
        for label in classes.labels:
            if "\0" in str(label):
                raise ValueError(
                    f"to_c: the label {str(label)!r} holds a NUL, which ends a text in C; rename the class."
                )
        names = ",\n    ".join(c_string(str(label)) for label in classes.labels)
        self.constants.append(f"static const char *const {n}_classes[{count}] = {{\n    {names}\n}};\n")
        if classes.weights is not None:
            self._array("score_weights", classes.weights.T)
        if classes.offset is not None:
            self._array("score_offset", classes.offset)
        self._public(f"void {n}_decision(const {t} *x, {t} *out)", f"{s} score(s) to out")
        if classes.weights is None:
            body = self._values("out")
            if classes.offset is not None:
                body += f"    for (int o = 0; o < {s}; o++) {{\n        out[o] += {n}_score_offset[o];\n    }}\n"
        else:
            start = "0" if classes.offset is None else f"{n}_score_offset[o]"
            body = f"    {t} values[{q}];\n{self._values('values')}"
            body += f"""    for (int o = 0; o < {s}; o++) {{
        out[o] = {start};
        for (int i = 0; i < {q}; i++) {{
            out[o] += values[i] * {n}_score_weights[o][i];
        }}
    }}
"""
        self.functions[-1] += "{\n" + body + "}\n"
        self._public(f"int {n}_predict(const {t} *x)", f"number of the class, 0 to {count - 1}")
        if s == 1:
            body = f"    {t} score[1];\n    {n}_decision(x, score);\n    return score[0] > 0;\n"
        else:
            body = f"""    {t} scores[{s}];
    int best = 0;
    {n}_decision(x, scores);
    for (int c = 1; c < {count}; c++) {{
        if (scores[c] > scores[best]) {{
            best = c;
        }}
    }}
    return best;
"""
        self.functions[-1] += "{\n" + body + "}\n"
        self._public(f"void {n}_predict_proba(const {t} *x, {t} *out)", f"{count} probabilities to out")
        self.functions[-1] += "{\n" + self._probabilities(classes, count, s) + "}\n"
        self._public(f"const char *{n}_class_name(int number)", "label of a class, 0 if there is no such class")
        self.functions[-1] += f"{{\n    return number >= 0 && number < {count} ? {n}_classes[number] : 0;\n}}\n"

    def _probabilities(self, classes: Classes, count: int, s: int) -> str:
        t = self.dtype
        body = f"    {t} total = 0;\n    {self.name}_decision(x, out);\n"
        if s == 1:
            # one score s stands for (t - s, t + s) / 2, with t = 0 where a softmax follows
            slope, level = classes.shares or (0.0, 0.0)
            whole = f"{c_number(slope, t)} * score + {c_number(level, t)}" if classes.shares else "0"
            half = c_number(0.5, t)
            body = f"    {t} score, whole, total = 0;\n    {self.name}_decision(x, out);\n"
            body += f"    score = out[0];\n    whole = {whole};\n"
            body += f"    out[0] = {half} * (whole - score);\n    out[1] = {half} * (whole + score);\n"
        if classes.shares is None:
            # relative to the largest score, so that no exponential overflows
            factor = "" if classes.factor == 1 else f"{c_number(classes.factor, t)} * "
            body += f"""    {t} top = out[0];
    for (int c = 1; c < {count}; c++) {{
        top = out[c] > top ? out[c] : top;
    }}
"""
            value = f"{self.exp}({factor}(out[c] - top))"
        else:
            value = "out[c] > 0 ? out[c] : 0"
        return (
            body
            + f"""    for (int c = 0; c < {count}; c++) {{
        out[c] = {value};
        total += out[c];
    }}
    for (int c = 0; c < {count}; c++) {{
        out[c] /= total;
    }}
"""
        )

    def _head(self) -> str:
        described = self.plan
        lines = [
            f"{self.name}: {described.title}",
            "",
            f"Written by fewkern {__version__} (to_c). C99, also C++; needs math.h, allocates no memory.",
            f"Constants: {self.nbytes} bytes of {self.dtype}.",
            "",
            f"x holds the {described.n_features} features of one sample"
            + (", in this order:" if described.feature_names else ", in the order of the training samples."),
            *[f"  {i}  {name}" for i, name in enumerate(described.feature_names or ())],
            "They must be numbers: where one is NaN so are the outputs, and the number of the class means nothing.",
        ]
        if described.classes is not None:
            lines += ["", "Classes:", *[f"  {i}  {label}" for i, label in enumerate(described.classes.labels)]]
            if described.n_scores == 1:
                lines += ["A positive score means class 1."]
        lines += ["", *described.notes, *([""] if described.notes else [])]
        lines += [f"{signature.split('(')[0].split()[-1].lstrip('*')}: {what}" for signature, what in self.prototypes]
        comment = "\n".join(f" * {c_comment(line)}".rstrip() for line in lines)
        sizes = [f"{self.name}_N_FEATURES = {described.n_features}"]
        if described.values is not None:
            sizes.append(f"{self.name}_N_VALUES = {described.n_values}")
        if described.classes is not None:
            sizes += [
                f"{self.name}_N_SCORES = {described.n_scores}",
                f"{self.name}_N_CLASSES = {len(described.classes.labels)}",
            ]
        prototypes = "\n".join(f"{signature};" for signature, _ in self.prototypes)
        return f"""/*
{comment}
 */
#include <math.h>

#ifdef __cplusplus
extern "C" {{
#endif
enum {{ {", ".join(sizes)} }};
{prototypes}
#ifdef __cplusplus
}}
#endif
"""
