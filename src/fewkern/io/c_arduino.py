"""An Arduino sketch around a C file: numbers from the serial port in, predictions out."""

from __future__ import annotations

import re
from pathlib import Path

from fewkern._version import __version__
from fewkern.io.plan import Plan


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
    words = {"VERSION": __version__, "COUNT": str(described.n_inputs), "ANSWER": answer, "T": given, "NAME": name}
    words |= {"HEADER": header, "BODY": "\n    ".join(lines)}
    text = Path(__file__).with_name("sketch.ino").read_text(encoding="ascii")
    return re.sub(rf"(?<![A-Za-z_])({'|'.join(words)})(?![A-Za-z])", lambda m: words[m[0]], text)
