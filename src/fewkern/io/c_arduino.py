"""An Arduino sketch around a C file: numbers from the serial port in, predictions out."""

from __future__ import annotations

from fewkern._version import __version__
from fewkern.io.plan import Plan

__all__ = ["arduino_sketch"]

_SKETCH = """/*
 * A sketch around {header}, whose head says what the {count} numbers are. Written by fewkern {version} (to_c).
 *
 * Send them as one line in the serial monitor (115200 baud), with spaces, tabs, commas or semicolons between them; it
 * answers with {answer}. In a sketch of your own, fill x from sensors.
 */
#include "{header}"

void setup()
{{
    Serial.begin(115200);
}}

void loop()
{{
    if (!Serial.available()) {{
        return;
    }}
    const String line = Serial.readStringUntil('\\n');
    const char *text = line.c_str();
    {given} x[{name}_N_FEATURES];
    for (int i = 0; i < {name}_N_FEATURES; i++) {{
        char *end;
        x[i] = ({given})strtod(text, &end);
        if (end == text) {{
            Serial.println("expected {count} numbers");
            return;
        }}
        for (text = end; *text == ' ' || *text == '\\t' || *text == ',' || *text == ';'; text++) {{
        }}
    }}
{body}}}
"""


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
    body = "".join(f"    {line}\n" for line in lines)
    facts = {"version": __version__, "count": described.n_inputs, "answer": answer, "given": given, "body": body}
    return _SKETCH.format(header=header, name=name, **facts)
